"""Handlers of AgentFlow's event facets, in plain Python.

    from agentflow import handler

    @handler("billing.ProcessPayment")
    def process_payment(payload, ctx):
        ctx.log("charging", payload["amount"])
        return {"transaction_id": "txn-1", "status": "approved"}

Try one without an engine: ``python -m agentflow test billing --facet billing.ProcessPayment --input '{"amount": 5}'``,
or call :func:`run_handler` in a unit test.
"""

from .context import Context
from .decorate import handler
from .result import InvalidResult, NotDone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .testing import Run, run_handler

__all__ = ["Context", "InvalidResult", "NotDone", "Run", "handler", "run_handler"]


def __getattr__(name: str) -> object:
    """What only tests need is loaded when they ask for it."""
    if name in ("Run", "run_handler"):
        from . import testing

        return getattr(testing, name)
    raise AttributeError(f"module 'agentflow' has no attribute {name!r}")
