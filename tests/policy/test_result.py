"""One rule for what a wire reply is worth, whatever the backend."""

from __future__ import annotations

import math
from typing import Any

import pytest

from focus.backends import GenerateResult, SamplingParams
from focus.errors import ProtocolError
from focus_format.exchange import TokenReply, TokenRequest
from focus_format.result import build_result
from support.formats import byte_format

CODEC = byte_format().codec
END = 258
PROMPT = (1, 2, 3)


def judged(reply: TokenReply, max_tokens: int = 8, **params: Any) -> GenerateResult:
    sampling = SamplingParams(temperature=1.0, max_tokens=max_tokens, **params)
    return build_result(TokenRequest(PROMPT, sampling, max_tokens), reply, CODEC, "behavior")[0]


def said(text: str, end: bool = True, **fields: Any) -> TokenReply:
    tokens = (*text.encode(), END) if end else tuple(text.encode())
    return TokenReply(tokens, fields.pop("stop_reason", "stop"), **fields)


@pytest.mark.parametrize(
    ("logprobs", "reason"),
    [
        (None, "log-probabilities were asked for and none came"),
        ([-1.0], "1 log-probabilities came for 2 tokens"),
        ([-1.0, None], "a sampled token's log-probability is missing or not finite"),
        ([-1.0, math.nan], "a sampled token's log-probability is missing or not finite"),
        ([-1.0, -math.inf], "a sampled token's log-probability is missing or not finite"),
        ([-1.0, -9999.0], "a sampled token's log-probability is a filler for minus infinity"),
        ([-1.0, -3.4028234663852886e38], "a sampled token's log-probability is a filler for minus infinity"),
        ([-1.0, 0.5], "a log-probability of 0.5 is above zero"),
    ],
)
def test_logprobs_that_cannot_be_trusted_are_emptied(logprobs: Any, reason: str) -> None:
    result = judged(said("a", logprobs=logprobs, matched_stop=END), logprobs=0)
    assert (result.exact_generation, result.logprobs, result.entropy) == (False, [], 0.0)
    assert result.meta is not None
    assert result.meta.inexact_reason == reason
    assert result.meta.logprobs_match_sampling is None


def test_logprobs_that_were_not_asked_for_are_not_judged() -> None:
    result = judged(said("a", logprobs=[None]))
    assert (result.exact_generation, result.logprobs) == (True, [])


def test_entropy_is_the_mean_of_minus_logprob() -> None:
    assert judged(said("a", logprobs=[-1.0, -0.5]), logprobs=0).entropy == 0.75
    assert math.copysign(1, judged(said("a", logprobs=[-0.0, 0.0]), logprobs=0).entropy) == 1


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        (
            [{"token_id:97": -1.0, "token_id:5": -9999.0}, {"token_id:258": 0.0}],
            [{"token_id:97": -1.0}, {"token_id:258": 0.0}],
        ),
        (
            [{"token_id:97": -1.0, "token_id:5": -math.inf}, {"token_id:258": 0.0}],
            [{"token_id:97": -1.0}, {"token_id:258": 0.0}],
        ),
        ([{"token_id:97": math.nan}, {"token_id:258": 0.0}], None),
        ([{"token_id:97": -1.0}], None),
        (None, None),
    ],
)
def test_top_logprobs(top: Any, expected: Any) -> None:
    result = judged(said("a", logprobs=[-1.0, 0.0], top_logprobs=top), logprobs=2)
    assert result.top_logprobs == expected
    assert result.exact_generation
    assert result.meta is not None
    assert (result.meta.inexact_reason is None) is (expected is not None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([None, -1.0, -2.0], [None, -1.0, -2.0]),
        ([None, -1.0], []),
        ([-1.0, -1.0, -1.0], []),
        ([None, None, -1.0], []),
        ([None, math.nan, -1.0], []),
        (None, []),
    ],
)
def test_prompt_logprobs_are_one_per_prompt_token_or_none_at_all(values: Any, expected: Any) -> None:
    result = judged(said("a", prompt_logprobs=values), prompt_logprobs=0)
    assert result.prompt_logprobs == expected
    assert result.exact_generation


@pytest.mark.parametrize(
    ("fields", "exact"),
    [
        ({"prompt_tokens": (1, 2, 3), "prompt_count": 3}, True),
        ({"prompt_tokens": [1, 2, 3]}, True),
        ({"prompt_tokens": (1, 2)}, False),
        ({"prompt_count": 4}, False),
    ],
)
def test_another_prompt_than_the_one_sent_is_not_exact(fields: Any, exact: bool) -> None:
    assert judged(said("a", **fields)).exact_generation is exact


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (said("hello", matched_stop=END), "hello"),
        (said("hello", end=False, stop_reason="length"), "hello"),
        (said("hello", stop_reason="length"), "hello<|im_end|>"),
        (said("say STOP now STOP", end=False, matched_stop="STOP"), "say "),
        (said("nothing of it", end=False, matched_stop="STOP"), "nothing of it"),
        (TokenReply((), "abort"), ""),
    ],
)
def test_text(reply: TokenReply, text: str) -> None:
    assert judged(reply).text == text


def test_a_length_before_max_tokens_is_the_end_of_the_context() -> None:
    full = judged(said("abc", end=False, stop_reason="length"), max_tokens=8).meta
    fits = judged(said("abc", end=False, stop_reason="length"), max_tokens=3).meta
    ended = judged(said("abc"), max_tokens=8).meta
    assert full is not None
    assert fits is not None
    assert ended is not None
    assert (full.context_full, fits.context_full, ended.context_full) == (True, False, False)


def test_an_id_outside_the_known_vocabulary_is_not_exact() -> None:
    class Known:
        vocab_size = 300
        decode = CODEC.decode

    known: Any = Known()
    request = TokenRequest(PROMPT, SamplingParams(), 8)
    assert build_result(request, TokenReply((299,), "stop"), known, "raw")[0].exact_generation
    result, problems = build_result(request, TokenReply((300,), "stop"), known, "raw")
    assert not result.exact_generation
    assert [problem.kind for problem in problems] == ["vocabulary"]


def test_a_negative_id_is_no_protocol() -> None:
    with pytest.raises(ProtocolError, match="token id -5"):
        judged(TokenReply((1, -5), "stop"))
