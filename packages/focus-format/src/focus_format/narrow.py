"""Type checks of values from outside, as type checkers understand them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

__all__ = ["is_list", "is_mapping"]


def is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether this is a mapping; its keys are looked at where they are read."""
    # Most are dicts, and the test for those is many times faster.
    return isinstance(value, dict) or isinstance(value, Mapping)  # noqa: SIM101


def is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether this is a list or a tuple."""
    return isinstance(value, list | tuple)
