"""SGLang's native ``/generate``: a request as its JSON object, and its JSON object as a reply.

Pure mapping, shared by every transport that carries it; no I/O, and nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from focus_format.exchange import Problem, TokenReply, TokenRequest
from focus_types import BackendError, ChatCodec, ContextLengthError, InvalidRequestError, ProtocolError, SamplingParams

__all__ = ["RESERVED", "decode", "encode", "refine", "server_text"]

RESERVED = 6
"""Positions at the end of the context that a prompt cannot use: 4,089 of 4,096 are the most that are accepted."""

_HIGHEST_PENALTY = 2
_CONTEXT_FULL = ("maximum context length", "maximum allowed length", "longer than the model's context length")


def encode(request: TokenRequest, codec: ChatCodec) -> dict[str, Any]:
    """The request's JSON object.

    Every parameter is explicit, because the server fills in what is left out. Log-probabilities are always asked
    for: their ids check ``output_ids``.

    Args:
        request: Checked ids and effective parameters.
        codec: Its stop tokens are sent; its vocabulary bounds the number of top log-probabilities.

    Raises:
        InvalidRequestError: A parameter that SGLang refuses, or that would end the server.
    """
    sampling = request.sampling
    _refuse(sampling, codec)
    params: dict[str, Any] = {
        "temperature": sampling.temperature,
        "max_new_tokens": sampling.max_tokens,
        "top_p": sampling.top_p,
        "top_k": -1 if sampling.top_k is None else sampling.top_k,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0 if sampling.repetition_penalty is None else sampling.repetition_penalty,
        "stop": sampling.stop or [],
        "stop_token_ids": sorted(codec.stop_tokens),
        # Text and stop handling then follow the ids: nothing is hidden from either.
        "skip_special_tokens": False,
        "no_stop_trim": True,
        "spaces_between_special_tokens": False,
    }
    if sampling.seed is not None:
        params["sampling_seed"] = sampling.seed
    body: dict[str, Any] = {"input_ids": list(request.tokens), "sampling_params": params, "return_logprob": True}
    if sampling.prompt_logprobs is not None:
        body["logprob_start_len"] = 0
    if candidates := _candidates(sampling):
        body["top_logprobs_num"] = candidates
    return body


def decode(body: Mapping[str, Any], request: TokenRequest) -> TokenReply:
    """The reply in a response's JSON object.

    Raises:
        ProtocolError: Ids, stop reason or log-probabilities are missing or of another type. The message quotes
            nothing of the reply but the names of its fields.
    """
    if "meta_info" not in body:
        raise _broken(f"meta_info is missing; the fields are {', '.join(sorted(map(str, body)))[:200] or 'none'}")
    meta = _mapping(body, "meta_info")
    finish = _mapping(meta, "finish_reason")
    reason: Any = finish.get("type")
    if not isinstance(reason, str):
        raise _broken("finish_reason.type is no string")
    tokens = _ids(body.get("output_ids"), "output_ids")
    matched: Any = finish.get("matched")
    request_id: Any = meta.get("id")
    reply = TokenReply(
        tokens,
        reason,
        matched_stop=matched if isinstance(matched, str) or type(matched) is int else None,
        prompt_count=_count(meta, "prompt_tokens"),
        cached_tokens=_count(meta, "cached_tokens"),
        request_id=request_id if isinstance(request_id, str) else None,
        weight_versions=_weight_versions(meta, len(tokens)),
    )
    completed = _count(meta, "completion_tokens")
    if completed is not None and completed != len(tokens):
        reply.problems.append(Problem("count", f"the server counted {completed} tokens and returned {len(tokens)}"))
    _add_logprobs(reply, meta, request.sampling)
    if request.sampling.prompt_logprobs is not None:
        _add_prompt_logprobs(reply, meta, request.sampling.prompt_logprobs)
    return reply


def server_text(body: Mapping[str, Any]) -> str | None:
    """The reply as the server decoded it; None from a server without a tokenizer."""
    text = body.get("text")
    return text if isinstance(text, str) else None


def refine(status: int, message: str, body: bytes) -> type[BackendError] | None:
    """A refusal because the context is full, told from the other refusals of a request."""
    if status == 400 and any(phrase in message for phrase in _CONTEXT_FULL):
        return ContextLengthError
    return None


def _refuse(sampling: SamplingParams, codec: ChatCodec) -> None:
    penalty = sampling.repetition_penalty
    if penalty is not None and penalty > _HIGHEST_PENALTY:
        raise InvalidRequestError(f"SGLang takes a repetition_penalty of at most {_HIGHEST_PENALTY}, got {penalty!r}")
    if sampling.top_k == 1 and sampling.temperature not in (0, 1) and sampling.logprobs is not None:
        raise InvalidRequestError(
            f"SGLang divides the log-probabilities of top_k=1 by temperature={sampling.temperature} or not, depending"
            " on the requests it happens to run beside this one: use temperature=0 for greedy replies"
        )
    bound: int | None = codec.vocab_size
    if bound is None:
        bound = getattr(codec, "tokenizer_length", None)
    if bound is not None and _candidates(sampling) > bound:
        raise InvalidRequestError(
            f"logprobs={sampling.logprobs}, prompt_logprobs={sampling.prompt_logprobs}: more than the vocabulary's"
            f" {bound} ids, which would end the SGLang server"
        )


def _candidates(sampling: SamplingParams) -> int:
    """How many top log-probabilities to ask for; one number serves prompt and reply."""
    return max(sampling.logprobs or 0, sampling.prompt_logprobs or 0)


def _add_logprobs(reply: TokenReply, meta: Mapping[str, Any], sampling: SamplingParams) -> None:
    entries = meta.get("output_token_logprobs")
    if entries is None:
        return
    values, ids = _columns(entries, "output_token_logprobs")
    reply.logprobs = values
    if ids != reply.tokens:
        reply.problems.append(Problem("ids", "output_ids and the ids of output_token_logprobs differ"))
    top = meta.get("output_top_logprobs")
    if sampling.logprobs and _is_list(top) and len(top) == len(ids):
        reply.top_logprobs = [
            _candidate_map(entry, sampling.logprobs, token, value)
            for entry, token, value in zip(top, ids, values, strict=True)
        ]


def _add_prompt_logprobs(reply: TokenReply, meta: Mapping[str, Any], count: int) -> None:
    entries = meta.get("input_token_logprobs")
    if not entries:
        return
    values, ids = _columns(entries, "input_token_logprobs")
    reply.prompt_logprobs, reply.prompt_tokens = values, ids
    top = meta.get("input_top_logprobs")
    if count and _is_list(top) and len(top) == len(ids):
        reply.prompt_top_logprobs = [
            None if value is None else _candidate_map(entry, count, token, value)
            for entry, token, value in zip(top, ids, values, strict=True)
        ]


def _candidate_map(entries: object, count: int, token: int, logprob: float | None) -> dict[str, float]:
    """The best ``count`` candidates of one position, best first, and the token that stands there."""
    values, ids = _columns(entries, "top log-probabilities")
    found = {
        f"token_id:{id}": value for id, value in zip(ids[:count], values[:count], strict=True) if value is not None
    }
    if logprob is not None:
        found.setdefault(f"token_id:{token}", logprob)
    return found


def _columns(entries: object, where: str) -> tuple[list[float | None], tuple[int, ...]]:
    """The numbers and the ids of ``[[logprob, id, text or null], ...]``."""
    if not _is_list(entries):
        raise _broken(f"{where} is no list")
    if not entries:
        return [], ()
    values: Sequence[Any]
    try:
        values, ids, *_ = zip(*entries, strict=True)
    except (TypeError, ValueError):
        raise _broken(f"{where} holds something other than [logprob, id, text]") from None
    kinds: set[type[Any]] = set(map(type, values))
    try:
        if int in kinds:
            values = [float(value) if type(value) is int else value for value in values]
    except OverflowError:
        raise _broken(f"{where} holds a log-probability that no float can hold") from None
    if not kinds <= {float, int, type(None)}:
        raise _broken(f"{where} holds a log-probability that is no number")
    return list(values), _ids(list(ids), where)


def _ids(value: object, where: str) -> tuple[int, ...]:
    if not _is_list(value):
        raise _broken(f"{where} is missing or no list")
    ids = tuple(value)
    kinds: set[type[Any]] = set(map(type, ids))
    if not kinds <= {int}:
        raise _broken(f"{where} holds something other than integer ids")
    return ids


def _mapping(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = parent.get(name)
    if not _is_mapping(value):
        raise _broken(f"{name} is missing or no object")
    return value


def _count(meta: Mapping[str, Any], name: str) -> int | None:
    value = meta.get(name)
    if value is not None and type(value) is not int:
        raise _broken(f"{name} is no integer")
    return value


def _weight_versions(meta: Mapping[str, Any], count: int) -> tuple[tuple[str, int, int], ...]:
    spans = meta.get("weight_versions")
    if _is_list(spans):
        try:
            return tuple((str(s["version"]), int(s["start"]), int(s["end"])) for s in spans)
        except (TypeError, KeyError, ValueError, OverflowError):
            return ()
    last = meta.get("weight_version")
    # Older servers tell the version at the end alone: which tokens came from it, nobody knows.
    return () if last is None else ((str(last), count, count),)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _broken(problem: str) -> ProtocolError:
    return ProtocolError(f"SGLang's reply is not what the protocol says: {problem}")
