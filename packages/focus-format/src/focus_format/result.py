"""From a wire reply to a GenerateResult: one rule for every token backend.

Ids, echo, counts and log-probabilities are compared; what does not fit makes the result inexact, with the reason.
Nothing is ever re-tokenised, padded or filled in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from focus_format.exchange import Problem, TokenReply, TokenRequest
from focus_types import ChatCodec, GenerateMeta, GenerateResult, LogprobMode, ProtocolError, TokenId
from focus_types.meta import logprobs_match_sampling

__all__ = ["build_result", "is_filler", "is_id"]

# Servers write -inf, which JSON lacks, as -9999.0 (vLLM) or as the lowest float32 (SGLang).
_FILLER = -9999.0
_LOWEST = -3.4e38
_ID_BOUND = 2**31


def is_filler(logprob: float) -> bool:
    """Whether a server wrote this number for "impossible" or "not among the candidates"."""
    return logprob == _FILLER or logprob <= _LOWEST


def is_id(token: int) -> bool:
    """Whether a number can be a token id at all: tokenizers take 32 bits."""
    return 0 <= token < _ID_BOUND


def build_result(
    request: TokenRequest, reply: TokenReply, codec: ChatCodec, mode: LogprobMode
) -> tuple[GenerateResult, list[Problem]]:
    """The judged result, and the problems that were found on the way.

    Raises:
        ProtocolError: A number that cannot be an id.
    """
    tokens = tuple(reply.tokens)
    for token in (min(tokens, default=0), max(tokens, default=0)):
        if not is_id(token):
            raise ProtocolError(f"the server returned the token id {token}", request_id=reply.request_id)
    problems = [*reply.problems, *_prompt_problems(request, reply), *_vocabulary_problems(tokens, codec)]
    logprobs = _logprobs(request, reply, len(tokens), problems)
    prompt_logprobs, prompt_top = _prompt_logprobs(request, reply, problems)
    top_logprobs = _top_logprobs(request, reply, len(tokens), problems)
    matched = reply.matched_stop
    result = GenerateResult(
        tokens=tokens,
        prefix_tokens=request.tokens,
        text=_text(tokens, matched, codec),
        stop_reason=reply.stop_reason,
        matched_stop=matched,
        logprobs=logprobs,
        top_logprobs=top_logprobs,
        prompt_logprobs=prompt_logprobs,
        prompt_top_logprobs=prompt_top,
        entropy=abs(math.fsum(logprobs)) / len(logprobs) if logprobs else 0.0,
        exact_generation=not any(problem.inexact for problem in problems),
        meta=GenerateMeta(
            inexact_reason="; ".join(problem.reason for problem in problems) or None,
            logprob_mode=mode,
            logprobs_match_sampling=logprobs_match_sampling(mode, request.sampling) if logprobs else None,
            weight_versions=reply.weight_versions,
            cached_tokens=reply.cached_tokens,
            context_full=reply.stop_reason == "length" and len(tokens) < request.asked_max_tokens,
            request_id=reply.request_id,
            server=reply.server,
            attempts=reply.attempts,
            latency_s=reply.latency_s,
            sampling=request.sampling,
        ),
    )
    return result, problems


def _text(tokens: tuple[TokenId, ...], matched: int | str | None, codec: ChatCodec) -> str:
    if isinstance(matched, int) and tokens and tokens[-1] == matched:
        return codec.decode(tokens[:-1])
    text = codec.decode(tokens)
    if isinstance(matched, str) and (start := text.find(matched)) >= 0:
        return text[:start]
    return text


def _prompt_problems(request: TokenRequest, reply: TokenReply) -> list[Problem]:
    sent = request.tokens
    if reply.prompt_tokens is not None and tuple(reply.prompt_tokens) != sent:
        return [Problem("prompt", "the server continued other prompt ids than the ones sent")]
    if reply.prompt_count is not None and reply.prompt_count != len(sent):
        return [Problem("prompt", f"the server counted {reply.prompt_count} prompt tokens, {len(sent)} were sent")]
    return []


def _vocabulary_problems(tokens: tuple[TokenId, ...], codec: ChatCodec) -> list[Problem]:
    bound = codec.vocab_size
    if bound is not None and tokens and max(tokens) >= bound:
        reason = f"the server returned the id {max(tokens)}, outside the format's vocabulary of {bound}"
        return [Problem("vocabulary", reason)]
    return []


def _logprobs(request: TokenRequest, reply: TokenReply, count: int, problems: list[Problem]) -> list[float]:
    if request.sampling.logprobs is None:
        return []
    if reply.logprobs is None:
        if count:
            problems.append(Problem("logprobs", "log-probabilities were asked for and none came"))
        return []
    values = [value for value in reply.logprobs if value is not None]
    if len(reply.logprobs) != count:
        problems.append(Problem("logprobs", f"{len(reply.logprobs)} log-probabilities came for {count} tokens"))
    elif len(values) != count or not math.isfinite(sum(values)):
        problems.append(Problem("logprobs", "a sampled token's log-probability is missing or not finite"))
    elif values and (min(values) <= _LOWEST or _FILLER in values):
        problems.append(Problem("logprobs", "a sampled token's log-probability is a filler for minus infinity"))
    elif values and max(values) > 1e-3:
        problems.append(Problem("logprobs", f"a log-probability of {max(values)} is above zero"))
    else:
        return values
    return []


def _top_logprobs(
    request: TokenRequest, reply: TokenReply, count: int, problems: list[Problem]
) -> list[dict[str, float]] | None:
    if not request.sampling.logprobs:
        return None
    top = reply.top_logprobs
    if top is not None and any(math.isnan(value) for entry in top for value in entry.values()):
        problems.append(Problem("top_logprobs", "a top log-probability is not a number", inexact=False))
        return None
    if top is not None and len(top) == count:
        return [{key: value for key, value in entry.items() if not is_filler(value)} for entry in top]
    if count and not any(problem.kind == "top_logprobs" for problem in problems):
        problems.append(Problem("top_logprobs", "top log-probabilities were asked for and none came", inexact=False))
    return None


def _prompt_logprobs(
    request: TokenRequest, reply: TokenReply, problems: list[Problem]
) -> tuple[list[float | None], list[dict[str, float] | None] | None]:
    asked = request.sampling.prompt_logprobs
    if asked is None:
        return [], None
    values, top = reply.prompt_logprobs, reply.prompt_top_logprobs
    if values is None or not _aligned(values, len(request.tokens)):
        reason = "the prompt's log-probabilities were asked for and did not come one per token"
        problems.append(Problem("prompt_logprobs", reason, inexact=False))
        return [], None
    if not asked:
        return values, None
    if top is None or len(top) != len(values):
        reason = "the prompt's top log-probabilities were asked for and none came"
        problems.append(Problem("prompt_top_logprobs", reason, inexact=False))
        return values, None
    return values, top


def _aligned(values: Sequence[float | None], count: int) -> bool:
    return len(values) == count and values[0] is None and all(v is not None and math.isfinite(v) for v in values[1:])
