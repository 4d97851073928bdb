"""Finds the function of a module that handles a facet, and calls it."""

import inspect
import types
from typing import Any, Callable, Dict, List, Optional

from .context import Context
from .decorate import ATTRIBUTE

DEFAULT_ENTRYPOINT = "handle"


class NoEntrypoint(LookupError):
    """The module has no function for the facet."""


def find(module: types.ModuleType, facet: str, entrypoint: str = DEFAULT_ENTRYPOINT) -> Callable[..., Any]:
    """The function decorated for the facet, else the entrypoint. An entrypoint that is given goes first."""
    decorated = _decorated(module)
    marked = decorated.get(facet) or decorated.get(facet.rsplit(".", 1)[-1])
    named = getattr(module, entrypoint, None)
    found = (marked or named) if entrypoint == DEFAULT_ENTRYPOINT else named
    if callable(found):
        return found
    offered = ", ".join(sorted(decorated)) or "none"
    raise NoEntrypoint(
        f"module {module.__name__!r} has no function {entrypoint!r} for {facet}; "
        f"facets decorated with @handler there: {offered}"
    )


def _decorated(module: types.ModuleType) -> Dict[str, Callable[..., Any]]:
    found: Dict[str, Callable[..., Any]] = {}
    for value in list(vars(module).values()):
        facets = getattr(value, ATTRIBUTE, None) if callable(value) else None
        if isinstance(facets, tuple):
            found.update((facet, value) for facet in facets if isinstance(facet, str))
    return found


class _Recorder:
    """Stands for the runner in a module's ``register_handlers(runner)``."""

    def __init__(self) -> None:
        self.records: List[Dict[str, Any]] = []

    def register_handler(self, facet_name: str, module_uri: str = "", entrypoint: str = DEFAULT_ENTRYPOINT,
                         **others: Any) -> None:
        record = {"facet_name": facet_name, "module_uri": module_uri, "entrypoint": entrypoint}
        record.update((name, value) for name, value in others.items() if value is not None)
        self.records.append(record)


def registrations(module: types.ModuleType) -> List[Dict[str, Any]]:
    """What the module is to be registered for: its decorated functions, and what its factory registers."""
    recorder = _Recorder()
    for facet in sorted(_decorated(module)):
        recorder.register_handler(facet)
    factory = getattr(module, "register_handlers", None)
    if callable(factory):
        factory(recorder)
    return recorder.records


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether the second parameter is there for the context: it has no default, or is called so."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(places) < 2:
        return False
    second = places[1]
    return second.default is second.empty or second.name in ("ctx", "context")


def invoke(function: Callable[..., Any], payload: Dict[str, Any], context: Context,
           wait: Callable[[Any], Any], with_context: Optional[bool] = None) -> Any:
    """Calls the handler; what it returns to be awaited goes through ``wait``."""
    if with_context is None:
        with_context = takes_context(function)
    returned = function(payload, context) if with_context else function(payload)
    return wait(returned) if inspect.isawaitable(returned) else returned
