"""The record of sampling parameters, its rules, and how a call meets a policy's defaults."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focus_types import InvalidRequestError, SamplingParams
from focus_types.sampling import effective_params, merge_params, truncates, validate_params

BAD: list[tuple[str, Any, str]] = [
    ("temperature", -0.1, "temperature must be a finite number >= 0, got -0.1"),
    ("temperature", math.nan, "temperature must be a finite number >= 0, got nan"),
    ("temperature", math.inf, "temperature must be a finite number >= 0, got inf"),
    ("temperature", True, "temperature must be a finite number >= 0, got True"),
    ("temperature", "1", "temperature must be a finite number >= 0, got '1'"),
    ("temperature", 10**400, "temperature must be a finite number >= 0, got 1000000000"),
    ("top_p", 0.0, "top_p must be a number in (0, 1], got 0.0"),
    ("top_p", 1.01, "top_p must be a number in (0, 1], got 1.01"),
    ("top_p", math.nan, "top_p must be a number in (0, 1], got nan"),
    ("max_tokens", 0, "max_tokens must be an integer >= 1, got 0"),
    ("max_tokens", 1.0, "max_tokens must be an integer >= 1, got 1.0"),
    ("max_tokens", 2**63, "max_tokens must be an integer >= 1, got 9223372036854775808"),
    ("max_tokens", True, "max_tokens must be an integer >= 1, got True"),
    ("top_k", 0, "top_k must be an integer >= 1, or -1 for off, got 0"),
    ("top_k", -2, "top_k must be an integer >= 1, or -1 for off, got -2"),
    ("top_k", 2.0, "top_k must be an integer >= 1, or -1 for off, got 2.0"),
    ("stop", "END", "stop must be a list of strings, got 'END'"),
    ("stop", [""], "stop strings must be non-empty strings of Unicode characters, got ''"),
    ("stop", ["\ud800"], "stop strings must be non-empty strings of Unicode characters, got '\\ud800'"),
    ("stop", ["a", 7], "stop strings must be non-empty strings of Unicode characters, got 7"),
    ("logprobs", -1, "logprobs must be an integer >= 0, got -1"),
    ("logprobs", True, "logprobs must be an integer >= 0, got True"),
    ("prompt_logprobs", -1, "prompt_logprobs must be an integer >= 0, got -1"),
    ("repetition_penalty", 0, "repetition_penalty must be a finite number > 0, got 0"),
    ("repetition_penalty", math.inf, "repetition_penalty must be a finite number > 0, got inf"),
    ("seed", 2**63, "seed must be a signed 64-bit integer, got 9223372036854775808"),
    ("seed", -(2**63) - 1, "seed must be a signed 64-bit integer, got -9223372036854775809"),
    ("seed", 1.5, "seed must be a signed 64-bit integer, got 1.5"),
]
GOOD: list[tuple[str, Any]] = [
    ("temperature", 0),
    ("temperature", 2.5),
    ("top_p", 1),
    ("top_p", 1e-9),
    ("max_tokens", 1),
    ("top_k", -1),
    ("top_k", 1),
    ("stop", []),
    ("stop", ["\n"]),
    ("logprobs", 0),
    ("prompt_logprobs", 20),
    ("repetition_penalty", 0.5),
    ("seed", -1),
    ("seed", 2**63 - 1),
]


def with_value(name: str, value: Any) -> SamplingParams:
    return replace(SamplingParams(), **{name: value})


@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_bad_value_is_refused_by_name(name: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        validate_params(with_value(name, value))
    assert str(caught.value).startswith(message)
    with pytest.raises(InvalidRequestError):
        merge_params(with_value(name, value), None)


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_good_value_is_kept_as_it_is(name: str, value: Any) -> None:
    assert getattr(effective_params(with_value(name, value), None), name) == value


@pytest.mark.parametrize("field", [field.name for field in fields(SamplingParams)])
def test_none_is_always_legal(field: str) -> None:
    validate_params(with_value(field, None))


def test_something_else_than_params_is_refused() -> None:
    bad: Any = {"temperature": 1}
    with pytest.raises(InvalidRequestError, match=r"must be a SamplingParams or None, got dict"):
        merge_params(bad, None)


def test_defaults_are_the_documented_ones() -> None:
    params = SamplingParams()
    assert (params.temperature, params.max_tokens, params.top_p) == (0.7, 512, 1.0)
    rest = (params.top_k, params.stop, params.logprobs, params.prompt_logprobs, params.repetition_penalty, params.seed)
    assert rest == (None,) * 6


def test_an_object_sent_with_a_call_is_literal() -> None:
    call = SamplingParams(max_tokens=8)
    defaults = SamplingParams(temperature=1.0, max_tokens=99, top_p=0.9, top_k=5, stop=["x"], logprobs=3, seed=1)
    merged = effective_params(call, defaults)
    # The call's own defaults count as given; its None fields do not.
    assert merged == SamplingParams(temperature=0.7, max_tokens=8, top_p=1.0, top_k=5, stop=["x"], logprobs=3, seed=1)


def test_none_falls_to_the_policy_then_to_the_module() -> None:
    call = SamplingParams(temperature=None, max_tokens=None, top_p=None)
    assert effective_params(call, SamplingParams(temperature=0.2, max_tokens=None, top_p=None)) == SamplingParams(
        temperature=0.2, max_tokens=512, top_p=1.0
    )
    assert effective_params(None, None) == SamplingParams()


def test_off_values_override_the_policy() -> None:
    defaults = SamplingParams(top_k=40, stop=["x"], repetition_penalty=1.3)
    merged = effective_params(SamplingParams(top_k=-1, stop=[], repetition_penalty=1.0), defaults)
    assert (merged.top_k, merged.stop, merged.repetition_penalty) == (-1, [], 1.0)


def test_merge_keeps_what_nobody_specified_open() -> None:
    assert merge_params(None, None) is None
    open_params = SamplingParams(temperature=None, max_tokens=None, top_p=None)
    assert merge_params(open_params, None) == open_params
    assert merge_params(None, open_params) == open_params


@given(st.sampled_from([None, 0.5]), st.lists(st.text(min_size=1), max_size=2))
@settings(deadline=None, derandomize=True)
def test_callers_objects_never_change_and_are_never_shared(temperature: float | None, stop: list[str]) -> None:
    call = SamplingParams(temperature=temperature, stop=list(stop))
    defaults = SamplingParams(max_tokens=7, stop=["d"])
    merged = effective_params(call, defaults)
    assert merged.stop is not None
    merged.stop.append("changed")
    merged.max_tokens = 1
    assert call == SamplingParams(temperature=temperature, stop=stop)
    assert defaults == SamplingParams(max_tokens=7, stop=["d"])


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (SamplingParams(), False),
        (SamplingParams(top_p=0.9), True),
        (SamplingParams(top_k=5), True),
        (SamplingParams(top_k=-1), False),
        (SamplingParams(top_p=None), False),
    ],
)
def test_truncates(params: SamplingParams, expected: bool) -> None:
    assert truncates(params) is expected
