"""Sampling parameters: the record, its rules, and how a call's parameters meet a policy's defaults."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace
from typing import Any

from focus_types.errors import InvalidRequestError

__all__ = [
    "DEFAULT_MAX_TOKENS",
    "DEFAULT_TEMPERATURE",
    "DEFAULT_TOP_P",
    "SamplingParams",
    "effective_params",
    "merge_params",
    "truncates",
    "validate_params",
]

_INT64 = 2**63

DEFAULT_TEMPERATURE = 0.7
DEFAULT_MAX_TOKENS = 512
DEFAULT_TOP_P = 1.0


@dataclass
class SamplingParams:
    """How to sample one reply.

    An object sent with a call is literal: the defaults below count as given. ``None`` in a field means "not
    specified": the policy's ``default_params`` field applies, else the module default (temperature,
    max_tokens, top_p), else the control is off. To change one thing, copy the policy's defaults:
    ``dataclasses.replace(policy.default_params, max_tokens=64)``.
    """

    temperature: float | None = DEFAULT_TEMPERATURE
    """Finite, >= 0. 0 is greedy."""
    max_tokens: int | None = DEFAULT_MAX_TOKENS
    """Most tokens to generate, >= 1."""
    top_p: float | None = DEFAULT_TOP_P
    """Nucleus probability in (0, 1]; 1.0 is off."""
    top_k: int | None = None
    """Candidates kept, >= 1; -1 is explicitly off."""
    stop: list[str] | None = None
    """Strings that end a reply; ``[]`` is explicitly none."""
    logprobs: int | None = None
    """0: the sampled token's log-probability; k: the top k alternatives as well; ``None``: not asked."""
    prompt_logprobs: int | None = None
    """The same for the prompt's tokens."""
    repetition_penalty: float | None = None
    """Finite, > 0; 1.0 is explicitly off."""
    seed: int | None = None
    """Signed 64-bit. One seed for k branches gives k equal branches."""


def _integer(name: str, value: Any, low: int, hint: str) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value < _INT64:
        raise InvalidRequestError(f"{name} must be {hint}, got {value!r}")


def _number(name: str, value: Any, hint: str, *, low: float, open_low: bool, high: float = sys.float_info.max) -> None:
    if value is None:
        return
    # Compared before anything else: the largest integers are no floats, and NaN is not in any range.
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidRequestError(f"{name} must be {hint}, got {value!r}")
    if open_low and value == low:
        raise InvalidRequestError(f"{name} must be {hint}, got {value!r}")


def validate_params(params: SamplingParams) -> None:
    """Refuse values that no backend can mean.

    Raises:
        InvalidRequestError: Naming the field, the rule and the value.
    """
    if not isinstance(params, SamplingParams):
        raise InvalidRequestError(f"sampling_params must be a SamplingParams or None, got {type(params).__name__}")
    _number("temperature", params.temperature, "a finite number >= 0", low=0, open_low=False)
    _number("top_p", params.top_p, "a number in (0, 1]", low=0, open_low=True, high=1)
    _number("repetition_penalty", params.repetition_penalty, "a finite number > 0", low=0, open_low=True)
    _integer("max_tokens", params.max_tokens, 1, "an integer >= 1")
    _integer("logprobs", params.logprobs, 0, "an integer >= 0")
    _integer("prompt_logprobs", params.prompt_logprobs, 0, "an integer >= 0")
    _integer("seed", params.seed, -_INT64, "a signed 64-bit integer")
    if params.top_k != -1:
        _integer("top_k", params.top_k, 1, "an integer >= 1, or -1 for off")
    stop: Any = params.stop
    if stop is None:
        return
    if not isinstance(stop, list | tuple):
        raise InvalidRequestError(f"stop must be a list of strings, got {stop!r}")
    texts: list[Any] = list(stop)  # pyright: ignore[reportUnknownArgumentType] - narrowed from Any on purpose
    for text in texts:
        if not isinstance(text, str) or not text or any("\ud800" <= character <= "\udfff" for character in text):
            raise InvalidRequestError(f"stop strings must be non-empty strings of Unicode characters, got {text!r}")


def merge_params(call: SamplingParams | None, defaults: SamplingParams | None) -> SamplingParams | None:
    """The call's parameters over the policy's defaults, field by field; ``None`` if both are absent.

    The result is always a new object, so neither argument is ever changed.
    """
    if call is not None:
        validate_params(call)
    given = [params for params in (call, defaults) if params is not None]
    if not given:
        return None
    merged = replace(given[-1])
    if call is not None and defaults is not None:
        for field in fields(SamplingParams):
            value = getattr(call, field.name)
            if value is not None:
                setattr(merged, field.name, value)
    if merged.stop is not None:
        merged.stop = list(merged.stop)
    return merged


def effective_params(call: SamplingParams | None, defaults: SamplingParams | None) -> SamplingParams:
    """What a backend sends: merged parameters with the module defaults where nothing was specified.

    Temperature, max_tokens and top_p are never ``None`` in the result, because servers fill omitted fields
    with values of their own.
    """
    params = merge_params(call, defaults) or SamplingParams()
    if params.temperature is None:
        params.temperature = DEFAULT_TEMPERATURE
    if params.max_tokens is None:
        params.max_tokens = DEFAULT_MAX_TOKENS
    if params.top_p is None:
        params.top_p = DEFAULT_TOP_P
    return params


def truncates(params: SamplingParams) -> bool:
    """Whether top-p or top-k cut the distribution that is sampled from."""
    return (params.top_p is not None and params.top_p < 1) or (params.top_k is not None and params.top_k != -1)
