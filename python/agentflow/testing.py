"""Calls handlers as a host would, without one."""

import importlib
import importlib.util
import json
import os
import sys
import types
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

from .context import Context
from .dispatch import DEFAULT_ENTRYPOINT, find, invoke
from .result import encode


class Run:
    """What a handler returned, and what it told on the way."""

    def __init__(self) -> None:
        self.result: Dict[str, Any] = {}
        self.logs: List[Dict[str, str]] = []
        self.progress: List[Dict[str, Any]] = []
        self.updates: List[Dict[str, Any]] = []
        self.heartbeats = 0

    def _take(self, kind: str, body: Any) -> None:
        if kind == "log":
            self.logs.append(body)
        elif kind == "progress":
            self.progress.append(body)
        elif kind == "update":
            self.updates.append(json.loads(encode(body, "update")))
        elif kind == "heartbeat":
            self.heartbeats += 1


def run_handler(
    handler: Union[Callable[..., Any], types.ModuleType],
    payload: Optional[Mapping[str, Any]] = None,
    *,
    facet: str = "",
    entrypoint: str = DEFAULT_ENTRYPOINT,
    metadata: Optional[Mapping[str, Any]] = None,
    idempotency_key: str = "test",
    attempt: int = 1,
    on: Optional[Callable[[str, Any], None]] = None,
) -> Run:
    """Calls a function, or the one of a module that handles the facet. Its exceptions come out as they are;
    a result that is no JSON object raises :class:`~agentflow.InvalidResult`."""
    function = find(handler, facet, entrypoint) if isinstance(handler, types.ModuleType) else handler
    run = Run()

    def send(kind: str, body: Any) -> None:
        run._take(kind, body)
        if on is not None:
            on(kind, body)

    facts = {"facet": facet, "idempotency_key": idempotency_key, "attempt": attempt, "path": facet}
    # Through JSON, so that the handler sees what it would see and cannot change the caller's values.
    sent = json.loads(encode(dict(payload or {}), "payload"))
    sent["_facet_name"] = facet
    sent["_handler_metadata"] = dict(metadata or {})
    returned = invoke(function, sent, Context(send, facts), _wait)
    run.result = json.loads(encode(returned))
    return run


def _wait(awaitable: Any) -> Any:
    import asyncio  # only when needed: it takes longer to load than all the rest

    async def outer() -> Any:
        return await awaitable

    return asyncio.run(outer())


def load(module: str) -> types.ModuleType:
    """A module by dotted name, seen from here, or by the path of its file."""
    if not module.endswith(".py"):
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(module)
    name = os.path.splitext(os.path.basename(module))[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(module)))
    spec = importlib.util.spec_from_file_location(name, module)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {module}")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded
