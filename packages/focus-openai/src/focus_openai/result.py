"""What a chat API's reply becomes: a GenerateResult that never claims to be exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from focus_format import PreparedPrompt
from focus_format.result import is_filler
from focus_http import HttpReply
from focus_types import GenerateMeta, GenerateResult, NativeToolCall, SamplingParams

__all__ = ["INEXACT", "ApiToken", "NativeReply", "native_result"]

# Log-probabilities of certain tokens can come out this far above zero.
_ROUNDING = 1e-3

INEXACT = "a chat API takes messages and returns no token ids: the prompt's ids are an estimate"


# Rounding takes the log-probability of a certain token this far.
_ABOVE_ZERO = 1e-3


class _Candidate(msgspec.Struct):
    token: str
    logprob: float


class ApiToken(msgspec.Struct):
    """One token of a reply as the APIs show it: its text and its log-probability."""

    token: str
    logprob: float
    top_logprobs: list[_Candidate] | None = None


@dataclass(slots=True)
class NativeReply:
    """A decoded reply of either API."""

    text: str
    stop_reason: str
    calls: tuple[NativeToolCall, ...]
    output: tuple[dict[str, Any], ...]
    """What is replayed in the next request."""
    matched_stop: int | str | None = None
    logprobs: Sequence[ApiToken] | None = None
    cached_tokens: int | None = None
    server: str | None = None
    reply_id: str | None = None
    notes: list[str] = field(default_factory=list[str])
    """Why something that was asked for is missing."""


def native_result(
    prompt: PreparedPrompt, sampling: SamplingParams, reply: NativeReply, http: HttpReply
) -> GenerateResult:
    """The result of one call.

    Log-probabilities belong to the API's own tokens, whose ids it does not tell: there is one per token of the API,
    while ``tokens`` is empty.

    Args:
        prompt: What was answered.
        sampling: The parameters that were in effect.
        reply: The decoded reply.
        http: Where it came from.
    """
    notes = [INEXACT, *reply.notes]
    logprobs, top = _logprobs(sampling, reply, notes)
    return GenerateResult(
        prefix_tokens=prompt.tokens,
        text=reply.text,
        stop_reason=reply.stop_reason,
        matched_stop=reply.matched_stop,
        logprobs=logprobs,
        top_logprobs=top,
        entropy=abs(math.fsum(logprobs)) / len(logprobs) if logprobs else 0.0,
        exact_generation=False,
        native_tool_calls=reply.calls,
        native_output=reply.output,
        meta=GenerateMeta(
            inexact_reason="; ".join(notes),
            cached_tokens=reply.cached_tokens,
            request_id=http.request_id or reply.reply_id,
            server=reply.server,
            attempts=http.attempts,
            latency_s=http.latency_s,
            sampling=sampling,
        ),
    )


def _logprobs(
    sampling: SamplingParams, reply: NativeReply, notes: list[str]
) -> tuple[list[float], list[dict[str, float]] | None]:
    if sampling.logprobs is None:
        return [], None
    if not reply.logprobs:
        notes.append("log-probabilities were asked for and none came")
        return [], None
    values = [token.logprob for token in reply.logprobs]
    if any(map(is_filler, values)):
        notes.append("a sampled token's log-probability is a filler for minus infinity")
        return [], None
    if max(values) > _ROUNDING:
        notes.append(f"a log-probability of {max(values)} is above zero")
        return [], None
    if max(values) > _ABOVE_ZERO:
        notes.append(f"a log-probability of {max(values)} is above zero")
        return [], None
    if not sampling.logprobs:
        return values, None
    if any(token.top_logprobs is None for token in reply.logprobs):
        notes.append("top log-probabilities were asked for and none came")
        return values, None
    return values, [_top(token) for token in reply.logprobs]


def _top(token: ApiToken) -> dict[str, float]:
    candidates = reversed(token.top_logprobs or [])
    others = {other.token: other.logprob for other in candidates if not is_filler(other.logprob)}
    # Two ids can have one text: the sampled token's own value stays under its text.
    return {**others, token.token: token.logprob}
