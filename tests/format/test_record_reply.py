"""The assistant message that a reply becomes."""

from __future__ import annotations

from typing import Any

from focus_format import ChatTemplateCodec, PolicyFormat
from focus_parsing import NativeToolCallParser
from focus_testing import ByteTokenizer
from focus_types import GenerateResult, Message, NativeToolCall

FORMAT = PolicyFormat("bytes", ChatTemplateCodec(ByteTokenizer()), NativeToolCallParser())
CALL = NativeToolCall("add", '{"a":  1}', "call_1")
SHAPED = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a":  1}'}}


def recorded(**fields: Any) -> Message:
    messages: list[Message] = [{"role": "user", "content": "hi"}]
    FORMAT.record_reply(GenerateResult(**fields), messages)
    assert messages[0] == {"role": "user", "content": "hi"}
    assert len(messages) == 2
    return messages[1]


def test_token_backends_give_raw_text() -> None:
    text = "<think>\nhm\n</think>\n\n <tool_call>{}</tool_call>\n"
    assert recorded(text=text, tokens=(1, 2)) == {"role": "assistant", "content": text}


def test_structured_calls_are_kept_as_received() -> None:
    message = recorded(text="Adding.", native_tool_calls=(CALL,))
    assert message == {"role": "assistant", "content": "Adding.", "tool_calls": [SHAPED]}


def test_a_chat_api_without_calls_gives_text() -> None:
    assert recorded(text="Hello", native_tool_calls=()) == {"role": "assistant", "content": "Hello"}


def test_a_chat_message_is_recorded_as_it_came() -> None:
    message = {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [SHAPED]}
    got = recorded(text="", native_tool_calls=(CALL,), native_output=(message,))
    assert got == message
    got["tool_calls"].clear()
    assert message["tool_calls"] == [SHAPED]


def test_the_items_of_a_responses_api_travel_along() -> None:
    items = (
        {"type": "reasoning", "id": "r", "encrypted_content": "x"},
        {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": '{"a":  1}'},
    )
    message = recorded(text="", native_tool_calls=(CALL,), native_output=items)
    assert message == {"role": "assistant", "content": "", "tool_calls": [SHAPED], "native_output": list(items)}


def test_a_single_message_item_of_a_responses_api_is_no_chat_message() -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
    assert recorded(text="Hi", native_output=(item,)) == {"role": "assistant", "content": "Hi", "native_output": [item]}


def test_recorded_native_replies_render() -> None:
    messages: list[Message] = [{"role": "user", "content": "hi"}]
    FORMAT.record_reply(GenerateResult(native_tool_calls=(CALL,), native_output=({"type": "reasoning"},)), messages)
    messages.append({"role": "tool", "tool_call_id": "call_1", "content": "2"})
    assert FORMAT.codec.decode(FORMAT.prepare(messages).tokens) == (
        "<|im_start|>user\nhi<|im_end|>\n"
        '<|im_start|>assistant\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\n2\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )
