"""Says which facets a function handles."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

ATTRIBUTE = "__agentflow_facets__"


def handler(*facets: str) -> Callable[[F], F]:
    """Marks a function as the handler of one or more facets, by qualified or short name."""
    if not facets or not all(isinstance(facet, str) and facet for facet in facets):
        raise TypeError('name the facet: @handler("ns.Facet")')

    def mark(function: F) -> F:
        setattr(function, ATTRIBUTE, getattr(function, ATTRIBUTE, ()) + facets)
        return function

    return mark
