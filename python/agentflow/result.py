"""A handler's result as JSON, or a clear word about why it is none."""

from __future__ import annotations

import json
import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Tuple

SMALLEST, LARGEST = -(2**63), 2**64 - 1
MAX_DEPTH = 100
_LONG_NUMBER = re.compile(rb"\d{19}")


class InvalidResult(ValueError):
    """What the handler returned cannot be the result of a task."""


class NotDone(Exception):
    """Nothing of the work has happened, so it may be done again, even with ``Effect(kind = "once")``.

    Any other exception fails such work without a repetition.
    """


def encode(result: Any, what: str = "result") -> bytes:
    """The JSON text of an object."""
    if not isinstance(result, dict):
        shown = "None (is a `return` missing?)" if result is None else type(result).__name__
        raise InvalidResult(f"the {what} is {shown}, and must be a dict")
    try:
        text = json.dumps(result, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidResult(_first_problem(result, what) or f"the {what} is no JSON: {error}") from None
    if _LONG_NUMBER.search(text):
        problem = _first_problem(result, what)
        if problem:
            raise InvalidResult(problem)
    return text


def _first_problem(result: Any, what: str) -> str:
    return next(_problems(result, what, ()), "")


def _problems(value: Any, path: str, above: Tuple[int, ...]) -> Iterator[str]:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            yield f"{path} has characters that are no Unicode text"
    elif isinstance(value, int):
        if not SMALLEST <= value <= LARGEST:
            yield f"{path} is an integer beyond 64 bits: return it as text"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"{path} is {value}, which JSON does not have: return None or text"
    elif isinstance(value, (dict, list, tuple)):
        if id(value) in above:
            yield f"{path} contains itself"
            return
        if len(above) >= MAX_DEPTH:
            yield f"{path[:60]}… is nested more than {MAX_DEPTH} levels deep"
            return
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            if isinstance(value, dict) and not isinstance(key, (str, int, float, bool, type(None))):
                yield f"{path} has the key {key!r}, and keys must be text"
                continue
            place = f"{path}.{key}" if isinstance(value, dict) else f"{path}[{key}]"
            yield from _problems(inner, place, above + (id(value),))
    else:
        yield (
            f"{path} is a {type(value).__module__}.{type(value).__qualname__}, which is no JSON: "
            "return text, a number, a list or a dict"
        )
