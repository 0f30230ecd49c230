"""What a live vLLM server is and what its log-probabilities mean, as a list of requests to make."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from focus_format.channel import TokenChannel
from focus_format.exchange import TokenRequest
from focus_format.probe import PROBE_PARAMS, compare_logprobs, text_agrees
from focus_http import HttpReply, Step
from focus_types import BackendError, ChatCodec, GenerateResult, LogprobMode, SamplingParams, ServerReport, TokenId
from focus_vllm import wire

__all__ = ["STOP_STRING_LIMIT", "probe_steps"]

STOP_STRING_LIMIT = 4

_SCORE = SamplingParams(temperature=0.0, max_tokens=1, top_p=1.0, prompt_logprobs=2)
_MANY_STOPS = [f"\x00never {n}" for n in range(STOP_STRING_LIMIT + 1)]


def probe_steps(
    prompt: Sequence[TokenId], url: str, served_model: str, codec: ChatCodec, channel: TokenChannel
) -> Generator[Step, HttpReply, ServerReport]:
    """Yields each request, is sent its reply, returns the report.

    Raises:
        BackendError: The served model is another, or the prompt's ids are not this model's.
    """
    models = wire.decode_models((yield Step("GET", "/models")))
    if served_model not in models:
        raise BackendError(
            f"{url} serves {', '.join(models) or 'no model'}, not {served_model!r}: pass"
            f" served_model={next(iter(models), '...')!r}"
        )
    context_length = models[served_model]
    notes: list[str] = []

    def step(request: TokenRequest) -> Step:
        return Step("POST", "/completions", wire.encode_request(request, served_model, codec.stop_tokens))

    request = channel.request(prompt, PROBE_PARAMS, None)
    try:
        reply = yield step(request)
    except BackendError as error:
        if error.status == 400 and "vocab" in str(error):
            raise BackendError(
                f"{url} refuses the ids of the format's tokenizer as outside its vocabulary: the format belongs to"
                " another model",
                status=400,
                request_id=error.request_id,
            ) from error
        raise
    decoded = wire.decode_reply(reply, request)
    sampled = channel.result(request, decoded)
    rescore = channel.request((*request.tokens, *sampled.tokens), _SCORE, None)
    raw = channel.result(rescore, wire.decode_reply((yield step(rescore)), rescore))
    mode = _mode(sampled, raw, len(request.tokens))
    if mode == "unknown":
        notes.append(
            "the model was certain of every token of the probe, so its log-probabilities tell no mode: probe with a"
            " prompt that leaves it a choice, probe(prompt=ids)"
        )
    limit: int | None = None
    try:
        yield step(channel.request(prompt, SamplingParams(max_tokens=1, stop=_MANY_STOPS), None))
    except BackendError as error:
        if error.status != 400:
            raise
        limit = STOP_STRING_LIMIT
        notes.append(
            f"takes at most {limit} stop strings (VLLM_MAX_STOP_STRINGS in the server's environment raises it)"
        )
    ended_by_token = isinstance(sampled.matched_stop, int)
    return ServerReport(
        backend="vllm",
        url=url,
        served_models=tuple(models),
        version=decoded.server,
        context_length=context_length,
        ids_confirmed=True,
        prompt_confirmed=decoded.prompt_tokens is not None and tuple(decoded.prompt_tokens) == request.tokens,
        text_agrees=_text_agrees(reply, sampled),
        logprob_mode=mode,
        stop_token_kept=sampled.tokens[-1:] == (sampled.matched_stop,) if ended_by_token else None,
        stop_string_limit=limit,
        notes=tuple(notes),
    )


def _mode(sampled: GenerateResult, raw: GenerateResult, start: int) -> LogprobMode:
    own = [entry or {} for entry in (raw.prompt_top_logprobs or [])[start:]]
    found = compare_logprobs(sampled.top_logprobs or [], own)
    return "behavior" if found == "scaled" else found


def _text_agrees(reply: HttpReply, sampled: GenerateResult) -> bool | None:
    text = wire.server_text(reply)
    return None if text is None else text_agrees(text, sampled.text)
