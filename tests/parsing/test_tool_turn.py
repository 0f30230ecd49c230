"""tool_turn: a block syntax of one's own on the same reader."""

from __future__ import annotations

import json
import re

import pytest

from focus_parsing import TOOL_CALL, tool_turn
from focus_types import ToolCall
from support.turns import bad, turn

__all__: list[str] = []


def raw(body: str) -> ToolCall:
    return ToolCall("raw", body)


def test_the_pattern_is_the_documented_one() -> None:
    assert (TOOL_CALL.pattern, TOOL_CALL.flags) == ("<tool_call>(.*?)</tool_call>", re.DOTALL | re.UNICODE)
    assert TOOL_CALL.findall("a<tool_call>\nb</tool_call><tool_call></tool_call>") == ["\nb", ""]


def test_the_decoder_gets_what_stands_between_the_tags() -> None:
    assert tool_turn("a <tool_call>\n x \n</tool_call> b <tool_call></tool_call>", raw) == turn(
        "a  b", raw("\n x \n"), raw("")
    )


def test_each_block_outside_thoughts_is_decoded_once() -> None:
    bodies: list[str] = []

    def decode(body: str) -> ToolCall:
        bodies.append(body)
        return raw(body)

    tool_turn("<think><tool_call>draft</tool_call></think>a<tool_call>b</tool_call><tool_call>{c</tool_call>", decode)
    assert bodies == ["b", "{c"]


@pytest.mark.parametrize("error", [ValueError, KeyError, IndexError, TypeError, UnicodeError, RecursionError])
def test_a_slip_of_the_model_is_reported(error: type[Exception]) -> None:
    def decode(body: str) -> ToolCall:
        raise error

    assert tool_turn("<tool_call> x </tool_call>", decode) == turn("", bad("x"))


def test_a_fault_of_the_decoder_is_raised() -> None:
    def decode(body: str) -> ToolCall:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tool_turn("<tool_call>x</tool_call>", decode)


def test_a_body_that_is_cut_off_is_not_decoded() -> None:
    assert tool_turn('<tool_call>{"city": "New Yo', raw) == turn("", bad('{"city": "New Yo'))
    assert tool_turn("<tool_call><function=f><parameter=a>New Yo", raw) == turn(
        "", bad("<function=f><parameter=a>New Yo")
    )
    assert tool_turn('<tool_call>{"city": "Oslo"}</tool', raw) == turn("", raw('{"city": "Oslo"}'))
    assert tool_turn("<tool_call>1", lambda body: raw(str(int(body)))) == turn("<tool_call>1")


def test_a_new_opening_ends_a_block() -> None:
    def decode(body: str) -> ToolCall:
        return ToolCall(json.loads(body)["name"], "{}")

    assert tool_turn('<tool_call>{"name": "f"}<tool_call>{"name": "g"}</tool_call>', decode) == turn(
        "", ToolCall("f", "{}"), ToolCall("g", "{}")
    )
