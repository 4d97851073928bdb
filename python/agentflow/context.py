"""What a handler may ask and tell while it works."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Mapping, Optional


class Context:
    """The second parameter of a handler that takes two.

    ``heartbeat``, ``progress`` and ``update`` are signs of life: the timeout starts anew.
    """

    def __init__(self, send: Callable[[str, Any], None], facts: Mapping[str, Any]) -> None:
        self._send = send
        self._cancelled = False
        self.facet: str = facts.get("facet", "")
        self.idempotency_key: str = facts.get("idempotency_key", "")
        self.attempt: int = facts.get("attempt", 1)
        self.lease_token: int = facts.get("lease_token", 0)
        self.path: str = facts.get("path", "")

    def log(self, *values: Any, level: str = "info") -> None:
        """Writes a line of the task's log; level is debug, info, warn or error."""
        if level not in ("debug", "info", "warn", "error"):
            raise ValueError(f"level {level!r} is none of debug, info, warn, error")
        self._send("log", {"level": level, "text": " ".join(str(value) for value in values)})

    def progress(self, fraction: Optional[float] = None, message: str = "") -> None:
        """Tells how far the work is, from 0 to 1."""
        fraction = None if fraction is None else min(1.0, max(0.0, float(fraction)))
        self._send("progress", {"fraction": fraction, "message": str(message)})

    def heartbeat(self) -> None:
        """Tells that the work goes on."""
        self._send("heartbeat", {})

    def update(self, partial: Optional[Mapping[str, Any]] = None, **values: Any) -> None:
        """Shows a part of the result before the end."""
        merged: Dict[str, Any] = dict(partial or {})
        merged.update(values)
        self._send("update", merged)

    @property
    def cancelled(self) -> bool:
        """Whether the work is no longer wanted: clean up and return; soon after, the process is killed."""
        return self._cancelled
