"""Reading a completion request the way vLLM does, with its refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

from focus_testing.engine import Engine
from focus_testing.wires.fields import Fields, is_list
from focus_testing.wires.vllm_errors import invalid, refuse
from focus_types import SamplingParams

__all__ = ["check_length", "read_params", "read_prompts"]

_NOT_SERVED = (
    "allowed_token_ids",
    "bad_words",
    "best_of",
    "echo",
    "frequency_penalty",
    "ignore_eos",
    "logit_bias",
    "logprob_token_ids",
    "min_p",
    "min_tokens",
    "presence_penalty",
    "stream",
    "structured_outputs",
    "suffix",
    "use_beam_search",
)
"""Fields that change the reply of a real server and that this one does not know."""


def read_prompts(fields: Fields, engine: Engine) -> list[list[int]]:
    """The prompts as ids: a text, ids, or a list of either; each leaves room for a token.

    Raises:
        Refusal: As the server refuses them.
    """
    value = fields.raw("prompt")
    if not value:
        refuse("You must pass at least one prompt")
    many: list[Any] = value if is_list(value) and isinstance(value[0], list | str) else [value]
    limit = fields.integer("truncate_prompt_tokens")
    prompts: list[list[int]] = []
    for one in many:
        ids: Any = engine.tokenizer.encode(one, add_special_tokens=False) if isinstance(one, str) else one
        if not is_list(ids):
            invalid("prompt", "list_type", "Input should be a valid list")
        prompts.append(_checked(ids if limit is None or limit < 0 else ids[-limit:], engine))
    return prompts


def check_length(count: int, length: int) -> None:
    """Refuse a prompt that is empty or does not fit the context by itself.

    Raises:
        Refusal: As the server refuses it.
    """
    if not count:
        refuse("The decoder prompt cannot be empty")
    if count > length:
        refuse(
            f"This model's maximum context length is {length} tokens. However, your prompt contains at least {count}"
            " input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the"
            " input prompt.",
            param="input_tokens",
            value=count,
        )


def _checked(prompt: list[Any], engine: Engine) -> list[int]:
    for i, token in enumerate(prompt):
        if type(token) is not int:
            invalid(f"prompt.{i}", "int_type", "Input should be a valid integer")
        if token < 0:
            invalid(f"prompt.{i}", "greater_than_equal", "Input should be greater than or equal to 0")
        if token >= engine.vocab_size:
            refuse(f"Token id {token} is out of vocabulary")
    check_length(len(prompt), engine.context_length)
    if len(prompt) == engine.context_length:
        _bad("max_tokens", "must be at least 1", 0)
    return prompt


def read_params(fields: Fields, defaults: SamplingParams, max_stops: int, max_logprobs: int) -> SamplingParams:
    """The sampling parameters, omitted ones from ``defaults``.

    Raises:
        Refusal: As the server refuses them, and for fields that only a real server knows.
    """
    unserved = [name for name in _NOT_SERVED if fields.raw(name)]
    if unserved:
        refuse(f"focus-testing does not serve {', '.join(unserved)}", param=unserved[0])
    params = SamplingParams(
        temperature=fields.number("temperature", defaults.temperature),
        top_p=fields.number("top_p", defaults.top_p),
        top_k=fields.integer("top_k", defaults.top_k),
        max_tokens=fields.integer("max_tokens", defaults.max_tokens),
        repetition_penalty=fields.number("repetition_penalty", defaults.repetition_penalty),
        logprobs=fields.integer("logprobs"),
        prompt_logprobs=fields.integer("prompt_logprobs"),
        stop=fields.texts("stop"),
        seed=fields.integer("seed"),
    )
    _check_stop(params.stop or [], max_stops)
    if params.seed is not None and not -(2**63) <= params.seed < 2**63:
        invalid("seed", "less_than_equal", f"Input should be less than or equal to {2**63 - 1}")
    _check_logprobs("logprobs", "sample", params.logprobs, max_logprobs)
    _check_logprobs("prompt_logprobs", "prompt", params.prompt_logprobs, max_logprobs)
    return _legal(params)


def _check_stop(stop: list[str], most: int) -> None:
    if len(stop) > most:
        invalid("stop", "too_long", f"List should have at most {most} items after validation, not {len(stop)}")
    if "" in stop:
        refuse("stop cannot contain an empty string.")


def _check_logprobs(name: str, kind: str, asked: int | None, most: int) -> None:
    if asked is not None and not 0 <= asked <= most:
        refuse(
            f"Requested {kind} logprobs of {asked}, which is greater than max allowed: {most}", param=name, value=asked
        )


def _legal(params: SamplingParams) -> SamplingParams:
    temperature, top_p, top_k = params.temperature, params.top_p, params.top_k
    if temperature is not None and temperature < 0:
        _bad("temperature", "must be non-negative", temperature)
    if top_p is not None and not 0 < top_p <= 1:
        _bad("top_p", "must be in (0, 1]", top_p)
    if top_k is not None and top_k < -1:
        refuse(f"top_k must be 0 (disable), or at least 1, got {top_k}.")
    if params.repetition_penalty is not None and params.repetition_penalty <= 0:
        refuse(f"repetition_penalty must be greater than zero, got {params.repetition_penalty}.")
    if params.max_tokens is not None and params.max_tokens < 1:
        _bad("max_tokens", "must be at least 1", params.max_tokens)
    return replace(params, top_k=top_k or None)


def _bad(name: str, rule: str, value: float) -> NoReturn:
    refuse(f"{name} {rule}, got {value}.", param=name, value=value)
