"""A PreparedPrompt is a snapshot: nothing that happens later reaches it, and prompts share what they hold."""

from __future__ import annotations

from typing import Any

import pytest

from focus_format import ChatTemplateCodec, PolicyFormat, PreparedPrompt
from focus_format.snapshot import freeze, freeze_tools
from focus_parsing import TextActionParser
from focus_testing import ByteTokenizer
from focus_types import GenerateResult, InvalidRequestError, Message

FORMAT = PolicyFormat("bytes", ChatTemplateCodec(ByteTokenizer()), TextActionParser())


def conversation() -> tuple[list[Message], list[dict[str, Any]]]:
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": {"a": [1]}}}
    messages: list[Message] = [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "1"},
    ]
    tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
    return messages, tools


def test_later_changes_do_not_reach_it() -> None:
    messages, tools = conversation()
    prompt = FORMAT.prepare(messages, tools)
    messages[1]["tool_calls"][0]["function"]["arguments"]["a"].append(2)
    messages[0]["content"][0]["text"] = "bye"
    messages.append({"role": "user", "content": "more"})
    tools[0]["function"]["name"] = "other"
    assert (prompt.messages, prompt.tools) == conversation()


def test_iterators_are_read_once() -> None:
    messages, tools = conversation()
    given: Any = (iter(messages), iter(tools))
    prompt = FORMAT.prepare(*given)
    assert (prompt.messages, prompt.tools) == conversation()
    assert prompt.tokens == FORMAT.prepare(*conversation()).tokens


def test_what_comes_out_is_a_fresh_copy() -> None:
    prompt = FORMAT.prepare(*conversation())
    prompt.messages[1]["tool_calls"][0]["function"]["arguments"]["a"].append(2)
    prompt.tools[0]["function"]["name"] = "other"
    assert (prompt.messages, prompt.tools) == conversation()
    assert type(prompt.messages[0]) is dict


def test_one_built_by_hand_is_detached_too() -> None:
    messages, tools = conversation()
    prompt = PreparedPrompt((1, 2), FORMAT, tuple(messages), tuple(tools))
    messages[0]["content"] = "bye"
    tools[0]["type"] = "other"
    assert (prompt.messages, prompt.tools) == conversation()
    assert (prompt.exact_continuation, prompt.refusal) == (False, None)


def test_extended_prompts_share_what_the_earlier_ones_hold() -> None:
    messages, tools = conversation()
    prompt = FORMAT.prepare(messages, tools)
    result = GenerateResult(tokens=(65, 258), prefix_tokens=prompt.tokens, text="A")
    FORMAT.record_reply(result, messages)
    new: Message = {"role": "user", "content": [{"text": "more"}]}
    messages.append(new)
    extended = FORMAT.extend(prompt, result, messages)
    new["content"][0]["text"] = "changed"
    assert extended.exact_continuation
    assert all(a is b for a, b in zip(prompt._messages, extended._messages, strict=False))
    assert extended._tools[0] is prompt._tools[0]
    assert extended.messages[3:] == [
        {"role": "assistant", "content": "A"},
        {"role": "user", "content": [{"text": "more"}]},
    ]
    assert len(prompt.messages) == 3


@pytest.mark.parametrize("depth", [999, 5000])
def test_what_is_nested_too_deeply_is_refused(depth: int) -> None:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    with pytest.raises(InvalidRequestError, match="message 3 is nested too deeply to be copied"):
        freeze([{"role": "user", "content": "x", "data": value}], 3)
    with pytest.raises(InvalidRequestError, match="tool 0 is nested too deeply to be copied"):
        freeze_tools([{"type": "function", "function": {"name": "f", "parameters": {"default": value}}}])
