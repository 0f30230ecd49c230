"""From the values of a context's tokens to the value of the context."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from focus_types import InvalidRequestError

__all__ = ["reduction"]


def _last(values: Sequence[float]) -> float:
    return values[-1]


def _first(values: Sequence[float]) -> float:
    return values[0]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


_REDUCTIONS: dict[str, Callable[[Sequence[float]], float]] = {"last": _last, "first": _first, "sum": sum, "mean": _mean}


def reduction(name: str) -> Callable[[Sequence[float]], float]:
    """The function of this name: "last", "first", "sum" or "mean".

    Raises:
        InvalidRequestError: No such reduction.
    """
    names = list(_REDUCTIONS)
    if name not in names:
        raise InvalidRequestError(f"reduce must be one of {', '.join(map(repr, names))}, got {name!r}")
    return _REDUCTIONS[name]
