"""The callback that a custom policy generates through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from focus_types.aliases import TokenId
from focus_types.records import GenerateResult
from focus_types.sampling import SamplingParams

__all__ = ["Completion"]

Completion = Callable[[Sequence[TokenId], SamplingParams | None], Awaitable[GenerateResult]]
"""Prefix ids and optional per-call parameters in, one result out."""
