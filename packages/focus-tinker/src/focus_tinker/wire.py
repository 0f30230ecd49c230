"""One exchange in the types of the Tinker SDK.

Tinker's ``SamplingParams`` drops fields that it does not know without a word, so every one is named here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from focus_format.exchange import TokenReply, TokenRequest
from focus_format.result import is_id
from focus_tinker.stops import Stops
from focus_types import ChatCodec, InvalidRequestError, ProtocolError, TokenId

if TYPE_CHECKING:
    import tinker

__all__ = ["align_prompt", "decode_response", "refuse_unsupported", "submit"]


def refuse_unsupported(request: TokenRequest) -> None:
    """Refuse what Tinker has no parameter for.

    Raises:
        InvalidRequestError: Naming the parameter.
    """
    penalty = request.sampling.repetition_penalty
    if penalty is not None and penalty != 1:
        raise InvalidRequestError(
            f"repetition_penalty={penalty}: Tinker has no repetition penalty; use 1.0 or None, or another backend"
        )


def submit(
    client: tinker.SamplingClient, request: TokenRequest, stops: Stops
) -> tinker.APIFuture[tinker.SampleResponse]:
    """Start one request."""
    import tinker

    sampling = request.sampling
    assert sampling.temperature is not None
    assert sampling.top_p is not None
    return client.sample(
        prompt=tinker.ModelInput.from_ints(list(request.tokens)),
        num_samples=1,
        sampling_params=tinker.SamplingParams(
            max_tokens=sampling.max_tokens,
            seed=sampling.seed,
            stop=stops.sent(),
            temperature=sampling.temperature,
            top_k=-1 if sampling.top_k is None else sampling.top_k,
            top_p=sampling.top_p,
        ),
        include_prompt_logprobs=sampling.prompt_logprobs is not None,
        topk_prompt_logprobs=sampling.prompt_logprobs or 0,
        topk_sample_logprobs=sampling.logprobs or 0,
    )


def decode_response(
    response: tinker.SampleResponse, request: TokenRequest, stops: Stops, codec: ChatCodec
) -> TokenReply:
    """The reply's ids and numbers, cut where it ends.

    Raises:
        ProtocolError: Not one sequence of integer ids, or alternatives or prompt log-probabilities that were asked
            for are missing or do not fit their tokens.
    """
    if len(response.sequences) != 1:
        raise ProtocolError(f"Tinker returned {len(response.sequences)} sequences, 1 was asked for")
    sequence = response.sequences[0]
    tokens = sequence.tokens
    # Here already, because finding a stop string decodes them.
    if not all(type(token) is int and is_id(token) for token in tokens):
        raise ProtocolError(
            "Tinker returned token ids that are not integers from 0 to 2147483647", request_id=sequence.sequence_id
        )
    ending = stops.ending(tokens, sequence.stop_reason, codec)
    reply = TokenReply(
        tokens=tokens[: ending.length],
        stop_reason=ending.stop_reason,
        matched_stop=ending.matched_stop,
        logprobs=sequence.logprobs,
        # The SDK says 0 as well when the server does not say.
        cached_tokens=response.prompt_cache_hit_tokens or None,
        request_id=sequence.sequence_id,
    )
    # Cut only what is aligned: a list of another length must be seen as such.
    if sequence.logprobs is not None and len(sequence.logprobs) == len(tokens):
        reply.logprobs = sequence.logprobs[: ending.length]
    if request.sampling.logprobs:
        reply.top_logprobs = _top_logprobs(sequence, ending.length)
    if request.sampling.prompt_logprobs is not None:
        reply.prompt_logprobs = align_prompt(response.prompt_logprobs, len(request.tokens))
        if request.sampling.prompt_logprobs:
            reply.prompt_top_logprobs = _prompt_top(response, request.tokens, reply.prompt_logprobs)
    return reply


def align_prompt(values: Sequence[float | None] | None, count: int) -> list[float | None]:
    """One log-probability per prompt token, the first None.

    The SDK promises ``count`` entries that begin with None; skyrl's JAX backend returns the ``count - 1`` that exist.

    Raises:
        ProtocolError: Any other length, or an entry that is missing or not finite.
    """
    if values is None:
        raise ProtocolError("prompt_logprobs were asked for and this Tinker server returned none: use None")
    scored = values[1:] if len(values) == count and values[0] is None else values
    if len(scored) != count - 1:
        raise ProtocolError(f"Tinker returned {len(values)} prompt log-probabilities for {count} tokens")
    if any(value is None or not math.isfinite(value) for value in scored):
        raise ProtocolError("Tinker returned a prompt log-probability that is missing or not finite")
    return [None, *scored]


def _top_logprobs(sequence: tinker.SampledSequence, length: int) -> list[dict[str, float]]:
    rows, tokens = sequence.topk_logprobs, sequence.tokens
    if rows is None or len(rows) != len(tokens) or not all(rows):
        raise ProtocolError(
            "top log-probabilities were asked for and this Tinker server did not return them for every token"
            " (skyrl's JAX backend never does): use logprobs=0 for the sampled token's",
            request_id=sequence.sequence_id,
        )
    own: Sequence[float | None] = sequence.logprobs or ()
    if len(own) != len(tokens):
        own = [None] * len(tokens)
    return [_keyed(rows[i], tokens[i], own[i]) for i in range(length)]


def _prompt_top(
    response: tinker.SampleResponse, tokens: Sequence[TokenId], logprobs: Sequence[float | None]
) -> list[dict[str, float] | None]:
    rows = response.topk_prompt_logprobs
    if rows is not None and len(rows) == len(tokens) and not rows[0]:
        rows = rows[1:]
    if rows is None or len(rows) != len(tokens) - 1 or not all(rows):
        raise ProtocolError(
            "top prompt log-probabilities were asked for and this Tinker server did not return them for every token:"
            " use prompt_logprobs=0 for the prompt tokens' own"
        )
    return [None, *(_keyed(rows[i - 1], tokens[i], logprobs[i]) for i in range(1, len(tokens)))]


def _keyed(row: Sequence[tuple[TokenId, float]] | None, token: TokenId, own: float | None) -> dict[str, float]:
    keyed = {f"token_id:{candidate}": logprob for candidate, logprob in row or ()}
    if own is not None:
        keyed.setdefault(f"token_id:{token}", own)
    return keyed
