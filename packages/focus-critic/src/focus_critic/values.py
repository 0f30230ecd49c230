"""What a critic may be given, and what it may give back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from focus_types import InvalidRequestError, ScoringError

__all__ = ["as_float", "as_floats", "check_texts", "check_timeout", "finite"]


def check_texts(contexts: Sequence[str]) -> list[str]:
    """The contexts as a list of texts.

    Raises:
        InvalidRequestError: One text instead of a sequence of them, or no sequence.
        ScoringError: A context is no text; ``index`` is the first such one.
    """
    if isinstance(contexts, str | bytes):
        raise InvalidRequestError("contexts must be a sequence of texts, got one text: wrap it in a list")
    try:
        texts = list(contexts)
    except TypeError:
        raise InvalidRequestError(f"contexts must be a sequence of texts, got {type(contexts).__name__}") from None
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise ScoringError(f"context {at} must be text, got {type(text).__name__}", index=at)
    return texts


def check_timeout(name: str, value: Any) -> None:
    """Refuse a time limit that can never be kept.

    Raises:
        InvalidRequestError: Neither ``None`` nor a finite number of seconds above 0.
    """
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InvalidRequestError(f"{name} must be None or a finite number of seconds > 0, got {value!r}")


def as_floats(predicted: Any, count: int) -> list[float]:
    """Exactly one finite float per context, in order.

    Args:
        predicted: A sequence of numbers. An array or tensor is read through its ``tolist``, so numpy and torch
            need not be installed, and a tensor may live on any device.
        count: How many contexts there were.

    Raises:
        ScoringError: No sequence, another number of values, or a value that is no finite number; ``index`` is
            the first such value and ``values`` are the good ones.
    """
    given = type(predicted).__name__
    if callable(getattr(predicted, "tolist", None)):
        predicted = predicted.tolist()
    if not isinstance(predicted, Sequence) or isinstance(predicted, str | bytes):
        raise ScoringError(f"a critic must return a sequence of {count} numbers, got {given}")
    numbers: Sequence[Any] = predicted  # pyright: ignore[reportUnknownVariableType] - checked one by one below
    if len(numbers) != count:
        raise ScoringError(f"a critic must return one number per context, got {len(numbers)} for {count} contexts")
    return finite([_number(at, number) for at, number in enumerate(numbers)])


def as_float(number: Any) -> float | None:
    """A number of any library as a float; None for what is none, or too large for one."""
    # A text has no __float__, though float() would read one.
    if not hasattr(number, "__float__"):
        return None
    try:
        return float(number)
    except Exception:
        # An array or tensor of several numbers has __float__, too, and each library an error of its own.
        return None


def _number(at: int, number: Any) -> float:
    value = as_float(number)
    if value is None:
        raise ScoringError(
            f"the prediction for context {at} is no number but {type(number).__name__}; a critic must return a flat"
            " sequence of numbers",
            index=at,
        )
    return value


def finite(values: Sequence[float]) -> list[float]:
    """The values, if all of them are finite.

    Raises:
        ScoringError: ``index`` is the first that is not, ``values`` holds ``None`` in place of each.
    """
    bad = [at for at, value in enumerate(values) if not math.isfinite(value)]
    if not bad:
        return list(values)
    raise ScoringError(
        f"the prediction for context {bad[0]} is {values[bad[0]]}"
        + (f", and {len(bad) - 1} more are not finite" if len(bad) > 1 else ""),
        index=bad[0],
        values=[value if math.isfinite(value) else None for value in values],
    )
