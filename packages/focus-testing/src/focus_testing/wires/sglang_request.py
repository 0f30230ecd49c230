"""Reading a /generate request the way SGLang does, with its refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from focus_testing.engine import Engine
from focus_testing.wires.base import HangUp, Refusal, Reply
from focus_testing.wires.fields import Fields, is_list
from focus_types import SamplingParams

__all__ = ["RESERVED", "GenerateRequest", "bad_type", "read_generate", "refuse"]

RESERVED = 6
"""Positions at the end of the context that no prompt may use."""
_DEFAULT_TOKENS = 128
_SAMPLING = [
    "max_new_tokens",
    "stop",
    "stop_token_ids",
    "stop_regex",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "min_new_tokens",
    "n",
    "json_schema",
    "regex",
    "ebnf",
    "structural_tag",
    "ignore_eos",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "no_stop_trim",
    "stream_interval",
    "logit_bias",
    "sampling_seed",
    "custom_params",
]
_SERVED = frozenset(
    [
        "max_new_tokens",
        "stop",
        "stop_token_ids",
        "temperature",
        "top_p",
        "top_k",
        "repetition_penalty",
        "skip_special_tokens",
        "spaces_between_special_tokens",
        "no_stop_trim",
        "sampling_seed",
        "custom_params",
    ]
)
_UNSERVED_FIELDS = ("stream", "return_sampling_mask", "return_routed_experts", "text")


@dataclass(frozen=True)
class GenerateRequest:
    """One prompt of a /generate request."""

    tokens: list[int]
    params: SamplingParams
    """``max_tokens`` None is to the end of the context, 0 only scores the prompt."""
    stop_token_ids: list[int]
    skip_special_tokens: bool
    no_stop_trim: bool
    return_logprob: bool
    start: int
    """First prompt position with a log-probability; the prompt's length for none."""
    top: int
    text_in_logprobs: bool


def refuse(message: str) -> NoReturn:
    """400 for values that make no sense."""
    raise Refusal(Reply({"error": {"message": message}}, 400))


def bad_type(name: str, kind: str, message: str) -> NoReturn:
    """400 for JSON of another type."""
    text = f"1 validation error:\n  {{'type': '{kind}', 'loc': ('body', '{name}'), 'msg': '{message}'}}"
    body = {"object": "error", "message": text, "type": "Bad Request", "param": None, "code": 400}
    raise Refusal(Reply(body, 400))


def _bad_sampling(name: str, kind: str, message: str) -> NoReturn:
    raise Refusal(Reply({"error": f"{name}: {message}"}, 400))


def read_generate(body: Any, engine: Engine, *, router: bool) -> list[GenerateRequest]:
    """The requests of a body: one, or one for each prompt of a batch.

    Args:
        body: Decoded JSON.
        engine: Bounds ids and context.
        router: Whether the body comes through a router, which drops sampling parameters that it does not know.

    Raises:
        Refusal: As the server refuses them.
        HangUp: Ids out of range, which end a real server.
    """
    fields = Fields(body, bad_type)
    unserved = [name for name in _UNSERVED_FIELDS if fields.raw(name)]
    if unserved:
        refuse(f"focus-testing does not serve {', '.join(unserved)}")
    ids = fields.raw("input_ids")
    if not ids:
        refuse("input_ids cannot be empty.")
    if not is_list(ids):
        bad_type("input_ids", "list_type", "Input should be a valid list")
    many = ids if isinstance(ids[0], list) else [ids]
    sampling = Fields(fields.raw("sampling_params") or {}, bad_type)
    return [_request(_checked(one, engine), fields, sampling, engine, router) for one in many]


def _checked(ids: list[Any], engine: Engine) -> list[int]:
    for token in ids:
        if type(token) is not int:
            bad_type(
                "input_ids", "value_error", f"Value error, elements must be int or list; got {type(token).__name__}"
            )
        if not 0 <= token < engine.vocab_size:
            raise HangUp
    return ids


def _request(tokens: list[int], fields: Fields, sampling: Fields, engine: Engine, router: bool) -> GenerateRequest:
    size = len(tokens)
    return_logprob = fields.boolean("return_logprob")
    start = fields.integer("logprob_start_len", -1)
    start = size if start is None or start < 0 or not return_logprob else start
    if start > size:
        refuse(
            f"req.logprob_start_len={start} is higher than the number of input tokens len(req.origin_input_ids)={size}."
            " Please use a smaller logprob_start_len."
        )
    # Checked as the server does, before anything runs; the values are not served.
    for token in fields.integers("token_ids_logprob"):
        if not 0 <= token < engine.vocab_size:
            refuse(
                f"token_ids_logprob contains out-of-vocabulary token id {token}; valid range is"
                f" [0, {engine.vocab_size})."
            )
    params = _params(sampling, router)
    _check_length(size, params.max_tokens, engine.context_length)
    return GenerateRequest(
        tokens=tokens,
        params=params,
        stop_token_ids=sampling.integers("stop_token_ids"),
        skip_special_tokens=sampling.boolean("skip_special_tokens", True),
        no_stop_trim=sampling.boolean("no_stop_trim"),
        return_logprob=return_logprob,
        start=start,
        top=fields.integer("top_logprobs_num", 0) or 0,
        text_in_logprobs=fields.boolean("return_text_in_logprobs"),
    )


def _params(sampling: Fields, router: bool) -> SamplingParams:
    for name in sampling.names():
        if name not in _SAMPLING and not router:
            expected = ", ".join(f"`{known}`" for known in _SAMPLING)
            raise Refusal(Reply({"error": f"unknown field `{name}`, expected one of {expected}"}, 400))
        if name in _SAMPLING and name not in _SERVED and sampling.raw(name):
            refuse(f"focus-testing does not serve {name}")
    read = Fields({name: sampling.raw(name) for name in sampling.names()}, _bad_sampling)
    max_tokens = read.integer("max_new_tokens") if "max_new_tokens" in sampling.names() else _DEFAULT_TOKENS
    params = SamplingParams(
        temperature=read.number("temperature", 1.0),
        top_p=read.number("top_p", 1.0),
        top_k=read.integer("top_k", -1),
        max_tokens=max_tokens,
        repetition_penalty=read.number("repetition_penalty", 1.0),
        stop=read.texts("stop"),
        seed=read.integer("sampling_seed"),
    )
    _check_values(params)
    return params


def _check_values(params: SamplingParams) -> None:
    if params.temperature is None or params.temperature < 0:
        refuse(f"temperature must be non-negative, got {params.temperature}.")
    if params.top_p is None or not 0 < params.top_p <= 1:
        refuse(f"top_p must be in (0, 1], got {params.top_p}.")
    if params.top_k is None or params.top_k == 0 or params.top_k < -1:
        refuse(f"top_k must be -1 (disable) or at least 1, got {params.top_k}.")
    if params.repetition_penalty is None or not 0 < params.repetition_penalty <= 2:
        refuse(f"repetition_penalty must be in (0, 2], got {params.repetition_penalty}.")
    if params.max_tokens is not None and params.max_tokens < 0:
        refuse(f"max_new_tokens must be at least 0, got {params.max_tokens}.")


def _check_length(size: int, asked: int | None, length: int) -> None:
    if size > length:
        refuse(f"The input ({size} tokens) is longer than the model's context length ({length} tokens).")
    if asked is not None and size + asked > length:
        refuse(
            f"Requested token count exceeds the model's maximum context length of {length} tokens. You requested a"
            f" total of {size + asked} tokens: {size} tokens from the input messages and {asked} tokens for the"
            " completion. Please reduce the number of tokens in the input messages or the completion to fit within the"
            " limit."
        )
    if size >= length - RESERVED:
        refuse(
            f"Input length ({size} tokens) exceeds the maximum allowed length ({length - RESERVED} tokens). Use a"
            " shorter input or enable --allow-auto-truncate."
        )
