"""The wire of vLLM's /v1/completions with token-id prompts.

Every sampling field is sent explicitly, because the server fills omitted ones from the model's generation_config.json
and reads an omitted or null max_tokens as 16.
"""

from __future__ import annotations

from typing import Any

import msgspec

from focus_format.exchange import Problem, TokenReply, TokenRequest
from focus_http import HttpReply, decode_json, encode_json
from focus_http.reply import excerpt
from focus_types import BackendError, ContextLengthError, ProtocolError, TokenId

__all__ = ["BACKEND", "decode_models", "decode_reply", "encode_request", "refine_error", "server_text"]

BACKEND = "vLLM"
_KEY = "token_id:"
_NULL = msgspec.Raw(b"null")


def encode_request(request: TokenRequest, served_model: str, stop_tokens: frozenset[TokenId]) -> bytes:
    """The JSON body of one completion."""
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": served_model,
        "prompt": request.tokens,
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": 0 if sampling.top_k in (None, -1) else sampling.top_k,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0 if sampling.repetition_penalty is None else sampling.repetition_penalty,
        "stop": sampling.stop or [],
        "stop_token_ids": sorted(stop_tokens),
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        "add_special_tokens": False,
    }
    for name in ("logprobs", "prompt_logprobs", "seed"):
        value = getattr(sampling, name)
        if value is not None:
            body[name] = value
    return encode_json(body)


class _Logprobs(msgspec.Struct):
    token_logprobs: list[float | None]


class _TopLogprobs(_Logprobs):
    top_logprobs: list[dict[str, float] | None] | None = None


class _PromptLogprob(msgspec.Struct):
    logprob: float


class _Choice[L](msgspec.Struct):
    finish_reason: str | None
    token_ids: tuple[int, ...] | None = None
    prompt_token_ids: msgspec.Raw = _NULL
    stop_reason: int | str | None = None
    text: str | None = None
    logprobs: L | None = None
    prompt_logprobs: list[dict[str, _PromptLogprob] | None] | None = None


class _Echo(msgspec.Struct):
    prompt_token_ids: tuple[int, ...] | None = None


class _Echoes(msgspec.Struct):
    choices: list[_Echo]


class _CachedTokens(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens_details: _CachedTokens | None = None


class _Completion[L](msgspec.Struct):
    choices: list[_Choice[L]]
    id: str | None = None
    system_fingerprint: str | None = None
    usage: _Usage | None = None


class _Model(msgspec.Struct):
    id: str
    max_model_len: int | None = None


class _Models(msgspec.Struct):
    data: list[_Model]


def decode_reply(reply: HttpReply, request: TokenRequest) -> TokenReply:
    """The reply's ids and numbers.

    Raises:
        ProtocolError: Not a completion, several choices, or no token ids.
    """
    asked_top = bool(request.sampling.logprobs)
    completion: _Completion[Any] = decode_json(
        reply, _Completion[_TopLogprobs] if asked_top else _Completion[_Logprobs], backend=BACKEND
    )
    if len(completion.choices) != 1:
        raise _protocol_error(f"one choice was asked for, {len(completion.choices)} came", reply, completion.id)
    choice = completion.choices[0]
    tokens = choice.token_ids
    if tokens is None:
        hint = "the server ignores return_token_ids (vLLM before 0.10.2), or is not vLLM"
        raise _protocol_error(f"the reply holds no token_ids: {hint}", reply, completion.id)
    if choice.finish_reason is None:
        raise _protocol_error("the reply has no finish_reason", reply, completion.id)
    problems: list[Problem] = []
    prompt_tokens = _echo(choice.prompt_token_ids, reply, request)
    if prompt_tokens is None:
        problems.append(Problem("prompt", "the server does not say which prompt ids it continued"))
    details = completion.usage.prompt_tokens_details if completion.usage else None
    prompt_logprobs, prompt_top = _prompt_logprobs(choice.prompt_logprobs, request)
    return TokenReply(
        tokens=tokens,
        stop_reason=choice.finish_reason,
        matched_stop=_matched_stop(choice),
        logprobs=choice.logprobs.token_logprobs if choice.logprobs else None,
        top_logprobs=_top_logprobs(choice.logprobs, tokens, problems) if asked_top and choice.logprobs else None,
        prompt_logprobs=prompt_logprobs,
        prompt_top_logprobs=prompt_top,
        prompt_tokens=prompt_tokens,
        problems=problems,
        cached_tokens=details.cached_tokens if details else None,
        request_id=completion.id,
        server=completion.system_fingerprint,
        attempts=reply.attempts,
        latency_s=reply.latency_s,
    )


def server_text(reply: HttpReply) -> str | None:
    """The text as the server decoded it: trimmed at stops, so only a probe reads it."""
    completion: _Completion[_Logprobs] = decode_json(reply, _Completion[_Logprobs], backend=BACKEND)
    return completion.choices[0].text if completion.choices else None


def decode_models(reply: HttpReply) -> dict[str, int | None]:
    """Served names and the context length of each."""
    return {model.id: model.max_model_len for model in decode_json(reply, _Models, backend=BACKEND).data}


def refine_error(status: int, message: str, body: bytes) -> type[BackendError] | None:
    """A prompt that does not fit is a 400 of several wordings, one of which speaks of max_tokens 0."""
    if status != 400:
        return None
    lowered = message.lower()
    full = "max_tokens must be at least 1, got 0" in lowered
    if full or "maximum context length" in lowered or "maximum model length" in lowered or b'"input_tokens"' in body:
        return ContextLengthError
    return None


def _echo(echo: msgspec.Raw, reply: HttpReply, request: TokenRequest) -> tuple[TokenId, ...] | None:
    # An echo that is byte for byte what was sent need not become thousands of integers.
    if bytes(echo) == encode_json(request.tokens):
        return request.tokens
    return decode_json(reply, _Echoes, backend=BACKEND).choices[0].prompt_token_ids


def _matched_stop(choice: _Choice[Any]) -> int | str | None:
    # The server reports null when the model's own end-of-text token ended the reply.
    if choice.stop_reason is None and choice.finish_reason == "stop" and choice.token_ids:
        return choice.token_ids[-1]
    return choice.stop_reason


def _top_logprobs(
    logprobs: _TopLogprobs, tokens: tuple[TokenId, ...], problems: list[Problem]
) -> list[dict[str, float]] | None:
    if logprobs.top_logprobs is None:
        return None
    top = [entry or {} for entry in logprobs.top_logprobs]
    if not all(key.startswith(_KEY) for entry in top for key in entry):
        reason = "top log-probabilities are keyed by token text, which several ids can share"
        problems.append(Problem("top_logprobs", reason, inexact=False))
        return None
    if len(top) == len(tokens) and not all(f"{_KEY}{token}" in entry for token, entry in zip(tokens, top, strict=True)):
        problems.append(Problem("top_logprobs", "top log-probabilities do not hold the tokens that were sampled"))
        return None
    return top


def _prompt_logprobs(
    entries: list[dict[str, _PromptLogprob] | None] | None, request: TokenRequest
) -> tuple[list[float | None] | None, list[dict[str, float] | None] | None]:
    if entries is None or len(entries) != len(request.tokens):
        return None, None
    values: list[float | None] = []
    top: list[dict[str, float] | None] = []
    for token, entry in zip(request.tokens, entries, strict=True):
        own = entry.get(str(token)) if entry else None
        values.append(own.logprob if own else None)
        top.append({_KEY + key: value.logprob for key, value in entry.items()} if entry else None)
    return values, top


def _protocol_error(problem: str, reply: HttpReply, request_id: str | None) -> ProtocolError:
    return ProtocolError(
        f"{BACKEND}: {problem}",
        status=reply.status,
        request_id=request_id,
        body=excerpt(reply),
        attempts=reply.attempts,
    )
