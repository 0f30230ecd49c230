"""Every tool call answered once, by id, before the next turn; errors name the message."""

from __future__ import annotations

from typing import Any

import pytest

from focus.errors import InvalidRequestError
from focus_format.tool_order import check_tool_order

USER = {"role": "user", "content": "x"}


def calls(*ids: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": call_id} for call_id in ids]}


def answer(call_id: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "1"}


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([USER, answer("a")], "message 1: tool message answers 'a', which is not an open call"),
        ([USER, calls("a"), answer("b")], "message 2: tool message answers 'b'"),
        ([USER, calls("a"), answer("a"), answer("a")], "message 3: tool message answers 'a'"),
        ([USER, calls("a"), USER], "message 2: a user message follows, but message 1 has unanswered tool calls: a"),
        ([calls("a", "b"), answer("b"), calls("c")], "message 2: a assistant message follows, but message 0"),
        ([USER, calls("a", "a")], "message 1: tool call id 'a' occurs twice"),
        ([USER, calls("")], "message 1: every tool call needs a non-empty string id"),
        ([USER, calls(None)], "message 1: every tool call needs a non-empty string id"),
        ([{"role": "assistant", "tool_calls": "x"}], "message 0: tool_calls must be a list"),
        ([{"role": "robot"}], "message 0: role must be one of system, developer, user, assistant, tool, got 'robot'"),
        ([{"content": "x"}], "message 0: role must be one of"),
    ],
)
def test_refused(messages: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_tool_order(messages, finished=False)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [USER],
        [USER, calls("a", "b"), answer("b"), answer("a"), USER],
        [USER, calls("a"), answer("a"), calls("a"), answer("a")],
        [{"role": "system"}, {"role": "developer"}, {"role": "assistant", "tool_calls": None}],
    ],
)
def test_allowed(messages: list[dict[str, Any]]) -> None:
    check_tool_order(messages, finished=True)


@pytest.mark.parametrize("messages", [[USER, calls("a")], [USER, calls("a", "b"), answer("a")]])
def test_open_calls_are_allowed_while_editing_only(messages: list[dict[str, Any]]) -> None:
    check_tool_order(messages, finished=False)
    with pytest.raises(InvalidRequestError, match="message 1 has unanswered tool calls"):
        check_tool_order(messages, finished=True)


def test_what_is_no_message_is_named() -> None:
    with pytest.raises(InvalidRequestError, match="message 1 must be a dict"):
        check_tool_order([{"role": "user", "content": ""}, "hi"], finished=False)  # type: ignore[list-item] # wrong on purpose
