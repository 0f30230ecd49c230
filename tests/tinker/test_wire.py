"""Stops and replies, case by case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tinker

from focus_format import ChatTemplateCodec
from focus_format.exchange import TokenReply, TokenRequest
from focus_testing import ByteTokenizer
from focus_tinker.stops import Stops, plan_stops
from focus_tinker.wire import align_prompt, decode_response
from focus_types import ProtocolError, SamplingParams
from support.tinker_client import sequence

CODEC = ChatTemplateCodec(ByteTokenizer())
END, ENDOFTEXT, TOOL_CALL = CODEC.encode("<|im_end|><|endoftext|><tool_call>")
HI = CODEC.encode("Hi")


def decode(
    *sequences: tinker.SampledSequence,
    stop: list[str] | None = None,
    prompt: Sequence[int] = HI,
    prompt_own: list[float | None] | None = None,
    prompt_top: list[list[tuple[int, float]] | None] | None = None,
    **given: Any,
) -> TokenReply:
    request = TokenRequest(tuple(prompt), SamplingParams(**{"logprobs": 0, **given}), 512)
    response = tinker.SampleResponse(
        sequences=sequences, _prompt_logprobs_list=prompt_own, _topk_prompt_logprobs_list=prompt_top
    )
    return decode_response(response, request, plan_stops(stop, CODEC), CODEC)


@pytest.mark.parametrize(
    ("strings", "sent"),
    [
        (None, [END]),
        ([], [END]),
        (["<|endoftext|>"], sorted([END, ENDOFTEXT])),
        (["<|im_end|>"], [END]),
        (["\n\n"], ["\n\n"]),
        (["x"], ["x"]),
        (["<tool_call>"], ["<tool_call>"]),
        (["<|endoftext|>", "."], ["<|endoftext|>", "."]),
    ],
)
def test_ids_where_they_mean_the_same_and_strings_where_not(strings: list[str] | None, sent: list[Any]) -> None:
    assert plan_stops(strings, CODEC).sent() == sent


def test_a_format_without_stop_ids_leaves_the_end_to_the_server() -> None:
    assert Stops(frozenset()).sent() is None


def test_a_reply_ends_at_the_formats_id() -> None:
    reply = decode(sequence([*HI, END], stop_reason="stop"))
    assert (reply.tokens, reply.stop_reason, reply.matched_stop) == ([*HI, END], "stop", END)


def test_a_callers_control_token_is_reported_as_its_string() -> None:
    reply = decode(sequence([*HI, ENDOFTEXT], stop_reason="stop"), stop=["<|endoftext|>"])
    assert (reply.tokens, reply.matched_stop) == ([*HI, ENDOFTEXT], "<|endoftext|>")


def test_a_reply_that_ran_past_its_end_of_turn_is_cut_there() -> None:
    top = [[(1, -0.5)], [(2, -0.6)], [(3, -0.7)], [(4, -0.8)], [(5, -0.9)]]
    ran_on = sequence([*HI, END, *HI], [-0.1, -0.2, -0.3, -0.4, -0.5], "length", top)
    reply = decode(ran_on, stop=["."], logprobs=1)
    assert (reply.tokens, reply.stop_reason, reply.matched_stop) == ([*HI, END], "stop", END)
    assert reply.logprobs == pytest.approx([-0.1, -0.2, -0.3])
    assert reply.top_logprobs is not None
    assert [set(entry) for entry in reply.top_logprobs] == [
        {"token_id:1", f"token_id:{HI[0]}"},
        {"token_id:2", f"token_id:{HI[1]}"},
        {"token_id:3", f"token_id:{END}"},
    ]


def test_a_control_token_ends_a_reply_beside_strings_too() -> None:
    reply = decode(sequence([*HI, ENDOFTEXT, *HI]), stop=[".", "<|endoftext|>"])
    assert (reply.tokens, reply.stop_reason, reply.matched_stop) == ([*HI, ENDOFTEXT], "stop", "<|endoftext|>")


def test_an_end_of_turn_in_the_last_place_is_a_stop() -> None:
    reply = decode(sequence([*HI, END], stop_reason="length"), stop=["."])
    assert (reply.stop_reason, reply.matched_stop) == ("stop", END)


@pytest.mark.parametrize(
    ("text", "stop", "matched"),
    [("one. two!", ["!", "."], "."), ("one two", ["!"], None), ("abc", ["bc", "abc"], "abc"), ("ab", ["ab", "a"], "a")],
)
def test_the_string_that_begins_first_is_the_matched_one(text: str, stop: list[str], matched: str | None) -> None:
    reply = decode(sequence(CODEC.encode(text), stop_reason="stop"), stop=stop)
    assert (reply.stop_reason, reply.matched_stop) == ("stop", matched)


def test_a_stop_string_in_a_reply_that_ran_out_did_not_end_it() -> None:
    reply = decode(sequence(CODEC.encode("a.b")), stop=["."])
    assert (reply.stop_reason, reply.matched_stop) == ("length", None)


@pytest.mark.parametrize("count", [0, 2])
def test_one_sequence_was_asked_for(count: int) -> None:
    with pytest.raises(ProtocolError, match=f"returned {count} sequences"):
        decode(*[sequence(HI)] * count)


def test_ids_must_be_integers() -> None:
    floats = tinker.SampledSequence(stop_reason="stop", sequence_id="1", tokens_np=np.array([1.0, 2.0]))
    with pytest.raises(ProtocolError, match="not integers"):
        decode(floats)


def test_misaligned_logprobs_stay_visible_after_a_cut() -> None:
    reply = decode(sequence([*HI, END, *HI], [-1.0, -1.0, -1.0]), stop=["."])
    assert len(reply.tokens) == 3
    assert reply.logprobs is not None
    assert len(reply.logprobs) == 3


def test_the_sampled_token_is_always_among_the_alternatives() -> None:
    reply = decode(sequence(HI, [-3.0, -0.25], top=[[(1, -0.5), (2, -1.0)], [(HI[1], -0.25)]]), logprobs=2)
    assert reply.top_logprobs == [
        {"token_id:1": -0.5, "token_id:2": -1.0, f"token_id:{HI[0]}": -3.0},
        {f"token_id:{HI[1]}": -0.25},
    ]


@pytest.mark.parametrize("top", [None, [[(1, -1.0)]], [[(1, -1.0)], None], [[(1, -1.0)], []]])
def test_missing_alternatives_are_an_error(top: Any) -> None:
    with pytest.raises(ProtocolError, match="use logprobs=0"):
        decode(sequence(HI, top=top), logprobs=2)


@pytest.mark.parametrize("values", [[None, -1.0, -2.0], [-1.0, -2.0]])
def test_prompt_logprobs_align_with_or_without_the_first(values: list[float | None]) -> None:
    assert align_prompt(values, 3) == [None, -1.0, -2.0]


def test_a_prompt_of_one_token_has_no_logprob() -> None:
    assert align_prompt([], 1) == align_prompt([None], 1) == [None]


@pytest.mark.parametrize(
    "values",
    [None, [], [-1.0], [None, -1.0], [-1.0, -1.0, -1.0], [None, -1.0, None], [-1.0, float("nan")], [-1.0] * 4],
)
def test_prompt_logprobs_that_do_not_fit_are_an_error(values: list[float | None] | None) -> None:
    with pytest.raises(ProtocolError, match="prompt"):
        align_prompt(values, 3)


@pytest.mark.parametrize("leading", [[], [None]])
def test_prompt_alternatives_hold_the_prompts_own_token(leading: list[Any]) -> None:
    top = [*leading, [(5, -0.5)]]
    reply = decode(sequence(HI), prompt=(10, 11), prompt_own=[None, -2.0], prompt_top=top, prompt_logprobs=1)
    assert reply.prompt_top_logprobs == [None, {"token_id:5": -0.5, "token_id:11": -2.0}]


@pytest.mark.parametrize("top", [None, [None], [[(5, -0.5)]] * 3])
def test_missing_prompt_alternatives_are_an_error(top: Any) -> None:
    with pytest.raises(ProtocolError, match="use prompt_logprobs=0"):
        decode(sequence(HI), prompt=(10, 11), prompt_own=[None, -2.0], prompt_top=top, prompt_logprobs=1)
