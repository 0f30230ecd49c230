"""One exchange with a token backend: the checked request, and the reply as the wire gave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from focus_types import SamplingParams, TokenId

__all__ = ["Problem", "TokenReply", "TokenRequest"]


class Problem(NamedTuple):
    """Something that keeps a reply from being exact, or from holding what was asked."""

    kind: str
    """A short constant; each kind is logged once per policy."""
    reason: str
    """One sentence for a reader."""
    inexact: bool = True
    """Whether ids or alignment are in doubt."""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """What is about to be sent: checked ids and parameters with nothing left open."""

    tokens: tuple[TokenId, ...]
    sampling: SamplingParams
    """Effective parameters; ``max_tokens`` already fits the context where its length is known."""
    asked_max_tokens: int
    """``max_tokens`` before it was fitted."""


@dataclass(slots=True)
class TokenReply:
    """What a backend's wire said, ids and numbers only, before it is judged."""

    tokens: Sequence[TokenId]
    stop_reason: str
    matched_stop: int | str | None = None
    logprobs: Sequence[float | None] | None = None
    """One per token; None if the server sent none."""
    top_logprobs: list[dict[str, float]] | None = None
    prompt_logprobs: list[float | None] | None = None
    prompt_top_logprobs: list[dict[str, float] | None] | None = None
    prompt_tokens: Sequence[TokenId] | None = None
    """The prompt's ids as the server echoed them, where it does."""
    prompt_count: int | None = None
    """The number of prompt tokens as the server counted them, where it does."""
    problems: list[Problem] = field(default_factory=list[Problem])
    """What the wire module itself noticed."""
    weight_versions: tuple[tuple[str, int, int], ...] = ()
    cached_tokens: int | None = None
    request_id: str | None = None
    server: str | None = None
    attempts: int = 1
    latency_s: float = 0.0
