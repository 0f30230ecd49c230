"""What is known about a reply or a server beyond the reply's content."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from focus_types.sampling import SamplingParams, truncates

__all__ = ["GenerateMeta", "LogprobMode", "ServerReport", "logprobs_match_sampling"]

type LogprobMode = Literal["raw", "tempered", "behavior", "unknown"]
"""Which distribution a server's log-probabilities are of.

"raw": the model's own, at temperature 1, before any truncation or penalty. "tempered": divided by the
temperature, with penalties, before top-p and top-k. "behavior": the one that was sampled from. "unknown":
nobody has found out.
"""


@dataclass(frozen=True)
class GenerateMeta:
    """Where a reply came from and how far it can be trusted. What the server does not say is None or empty."""

    inexact_reason: str | None = None
    """Why ``exact_generation`` is False, or why something that was asked for is missing."""
    logprob_mode: LogprobMode = "unknown"
    """As found by the policy's probe."""
    logprobs_match_sampling: bool | None = None
    """Whether the log-probabilities are those of the sampled distribution; None when the mode is unknown."""
    weight_versions: tuple[tuple[str, int, int], ...] = ()
    """(version, first token, end) of each stretch of the reply, as the server reports it."""
    cached_tokens: int | None = None
    """Prompt tokens served from the prefix cache."""
    context_full: bool = False
    """A "length" that came from the end of the context, not from ``max_tokens``."""
    request_id: str | None = None
    """The server's id of the request."""
    server: str | None = None
    """What the server calls itself: a fingerprint, or the worker behind a router."""
    attempts: int = 1
    """Times the request was sent; more than 1 only after refusals that started nothing."""
    latency_s: float = 0.0
    """Seconds from the first attempt to the decoded reply."""
    sampling: SamplingParams | None = None
    """The parameters that were in effect."""


@dataclass(frozen=True)
class ServerReport:
    """What a probe found out about a live server."""

    backend: str
    """"vllm", "sglang", "slime" or "tinker"."""
    url: str = ""
    """Without credentials."""
    served_models: tuple[str, ...] = ()
    """Names that the server answers to; empty if it does not say."""
    version: str | None = None
    """The server's own version or fingerprint."""
    context_length: int | None = None
    """Most tokens of prompt and reply together."""
    ids_confirmed: bool = False
    """The reply carried integer token ids."""
    prompt_confirmed: bool | None = None
    """The server echoed the prompt's ids, or their number, and it agreed; None if it cannot."""
    text_agrees: bool | None = None
    """The server's text equals the local decoding of its ids; False means another tokenizer."""
    logprob_mode: LogprobMode = "unknown"
    """Which distribution the log-probabilities are of."""
    stop_token_kept: bool | None = None
    """The stop token is the last id of a reply that it ended; None if the probe's replies ended otherwise."""
    stop_string_limit: int | None = None
    """Most stop strings that one request may carry; None if no limit was met."""
    notes: tuple[str, ...] = field(default_factory=tuple)
    """Findings in plain words, each saying what to change where something should be."""


def logprobs_match_sampling(mode: LogprobMode, params: SamplingParams) -> bool | None:
    """Whether log-probabilities of this mode are those of the distribution that ``params`` sample from.

    Greedy sampling draws from a point mass, which no mode reports, so it never matches.
    """
    if mode == "unknown":
        return None
    if params.temperature == 0:
        return False
    if mode == "behavior":
        return True
    if mode == "tempered":
        return not truncates(params)
    return params.temperature == 1 and not truncates(params) and params.repetition_penalty in (None, 1)
