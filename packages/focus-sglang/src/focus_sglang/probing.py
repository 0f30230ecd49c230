"""What SGLang's replies say about the server that made them, whatever carries requests and replies."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from focus_format.channel import TokenChannel
from focus_format.exchange import TokenReply, TokenRequest
from focus_format.probe import PROBE_PARAMS, compare_logprobs, text_agrees
from focus_sglang import wire
from focus_types import BackendError, ChatCodec, GenerateResult, LogprobMode, SamplingParams, ServerReport, TokenId

__all__ = ["REMEDY", "probe_replies"]

REMEDY = {
    "raw": (
        "Start the server without SGLANG_RETURN_ORIGINAL_LOGPROB, or sample at temperature 1 with top_p, top_k and"
        " repetition_penalty off."
    ),
    "tempered": "SGLang leaves top_p and top_k out of them: sample with top_p=1.0, top_k=-1 and a temperature above 0.",
}
"""Per mode, what makes the log-probabilities those of the sampled distribution."""

_SCORE = SamplingParams(temperature=0.0, max_tokens=8, top_p=1.0, logprobs=0, prompt_logprobs=2)
_SOME_ID = 0


def probe_replies(
    prompt: Sequence[TokenId], codec: ChatCodec, channel: TokenChannel, *, backend: str, url: str
) -> Generator[dict[str, Any], Mapping[str, Any], ServerReport]:
    """Yields three request objects, is sent the reply object of each, returns the report.

    The first asks for the log-probability of the prompt's highest id, which the server checks against its
    vocabulary: sent as a prompt, an id outside would end it. The second samples, the third scores prompt and reply at
    temperature 1, where SGLang's prompt log-probabilities always are.

    Raises:
        BackendError: The prompt's ids are not this model's.
        ProtocolError: A reply is not what the protocol says.
    """
    request = channel.request(prompt, PROBE_PARAMS, None)
    yield from _guard(max(request.tokens), codec, channel, url)
    body = yield wire.encode(request, codec)
    reply = wire.decode(body, request)
    sampled = channel.result(request, reply)
    rescore = channel.request((*request.tokens, *sampled.tokens), _SCORE, None)
    second_body = yield wire.encode(rescore, codec)
    second = wire.decode(second_body, rescore)
    scored = channel.result(rescore, second)
    mode = _mode(sampled, scored, len(request.tokens))
    texts = [_text_agrees(body, sampled, codec), _text_agrees(second_body, scored, codec)]
    return ServerReport(
        backend=backend,
        url=url,
        ids_confirmed=True,
        prompt_confirmed=_prompt_confirmed((request, reply), (rescore, second)),
        text_agrees=False if False in texts else (True if True in texts else None),
        logprob_mode=mode,
        stop_token_kept=_stop_token_kept(sampled, scored),
        notes=tuple(_notes(mode, body)),
    )


def _guard(
    highest: TokenId, codec: ChatCodec, channel: TokenChannel, url: str
) -> Generator[dict[str, Any], Mapping[str, Any]]:
    probe = wire.encode(channel.request((_SOME_ID,), SamplingParams(temperature=0.0, max_tokens=1), None), codec)
    try:
        yield probe | {"token_ids_logprob": [highest]}
    except BackendError as error:
        if error.status == 400 and "out-of-vocabulary" in str(error):
            raise BackendError(
                f"{url} does not know the id {highest} of the probe's prompt: the format belongs to another model, and"
                " its prompts would end the server. Pass the model whose tokenizer the server uses",
                status=error.status,
                request_id=error.request_id,
            ) from None
        raise


def _mode(sampled: GenerateResult, scored: GenerateResult, start: int) -> LogprobMode:
    raw = [entry or {} for entry in (scored.prompt_top_logprobs or [])[start:]]
    found = compare_logprobs(sampled.top_logprobs or [], raw)
    return "tempered" if found == "scaled" else found


def _text_agrees(body: Mapping[str, Any], result: GenerateResult, codec: ChatCodec) -> bool | None:
    text = wire.server_text(body)
    return None if text is None else text_agrees(text, codec.decode(result.tokens))


def _prompt_confirmed(*exchanges: tuple[TokenRequest, TokenReply]) -> bool | None:
    """Whether every echo and every count of prompt tokens agrees; None if there was none."""
    said = [
        tuple(reply.prompt_tokens) == request.tokens for request, reply in exchanges if reply.prompt_tokens is not None
    ]
    said += [
        reply.prompt_count == len(request.tokens) for request, reply in exchanges if reply.prompt_count is not None
    ]
    return all(said) if said else None


def _stop_token_kept(*results: GenerateResult) -> bool | None:
    ended = [result for result in results if isinstance(result.matched_stop, int)]
    return all(result.tokens[-1:] == (result.matched_stop,) for result in ended) if ended else None


def _notes(mode: LogprobMode, body: Mapping[str, Any]) -> Generator[str]:
    if mode == "unknown":
        yield (
            "the model was certain of every token of the probe, so its log-probabilities tell no mode: probe with a"
            " prompt that leaves it a choice, probe(prompt=ids)"
        )
    if wire.server_text(body) is None:
        yield "the server decodes no text (--skip-tokenizer-init), so it takes no stop strings"
