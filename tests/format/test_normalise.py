"""Messages in the shapes that users have, brought to the one that templates know."""

from __future__ import annotations

from collections import UserDict
from copy import deepcopy
from typing import Any

import pytest

from focus_format import ChatTemplateCodec
from focus_testing import ByteTokenizer
from focus_types import InvalidRequestError, Message
from support.templates import RealTemplate

USER: Message = {"role": "user", "content": "hi"}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "add", "description": "d", "parameters": {"type": "object"}}}
]


def called(arguments: Any, content: Any = "") -> list[Message]:
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": arguments}}
    return [
        USER,
        {"role": "assistant", "content": content, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "3"},
    ]


class Model:
    """As a pydantic message of a chat API's SDK."""

    def model_dump(self, *, exclude_none: bool) -> dict[str, Any]:
        assert exclude_none
        return {"role": "user", "content": "hi"}


SAME: dict[str, tuple[list[Any], list[Message]]] = {
    "arguments as JSON": (called('{"a": 1, "b": "\\u00e9"}'), called({"a": 1, "b": "é"})),
    "blank arguments": (called(" "), called({})),
    "no arguments": (called(None), called({})),
    "content None": (called({"a": 1}, None), called({"a": 1}, "")),
    "content missing": ([USER, {"role": "assistant"}, USER], [USER, {"role": "assistant", "content": ""}, USER]),
    "text parts": (
        [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}, "c"]}],
        [{"role": "user", "content": "abc"}],
    ),
    "parts as a tuple": ([{"role": "user", "content": ({"text": "hi"},)}], [USER]),
    "developer": ([{"role": "developer", "content": "s"}, USER], [{"role": "system", "content": "s"}, USER]),
    "keys without a value": ([{**USER, "tool_calls": None, "name": None}], [USER]),
    "no calls": ([USER, {"role": "assistant", "content": "a", "tool_calls": []}, USER],
                 [USER, {"role": "assistant", "content": "a"}, USER]),
    "a Responses API's items": (
        [USER, {"role": "assistant", "content": "a", "native_output": [{"type": "reasoning"}]}, USER],
        [USER, {"role": "assistant", "content": "a"}, USER],
    ),
    "mappings": ([UserDict(USER)], [USER]),
    "pydantic models": ([Model()], [USER]),
    "a flat call": (
        [USER, {"role": "assistant", "content": "", "tool_calls": [{"name": "add", "arguments": '{"a": 1}'}]}, USER],
        [USER, {"role": "assistant", "content": "", "tool_calls": [{"name": "add", "arguments": {"a": 1}}]}, USER],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_every_shape_renders_as_the_plain_one(real: RealTemplate, name: str) -> None:
    given, plain = SAME[name]
    before = deepcopy(given)
    assert real.format.prepare(given, TOOLS).tokens == real.reference(plain, TOOLS)
    if name not in ("mappings", "pydantic models"):
        assert given == before


@pytest.mark.parametrize("key", ["reasoning", "thinking", "reasoning_content"])
def test_reasoning_goes_by_three_names(real: RealTemplate, key: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": {}}}
    reply = {"role": "assistant", "content": "x", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c", "content": "3"}
    tokens = real.format.prepare([USER, {**reply, key: "Step 1"}, result], TOOLS).tokens
    assert tokens == real.reference([USER, {**reply, "reasoning_content": "Step 1"}, result], TOOLS)


def test_a_tuple_of_messages_and_tools_is_fine(real: RealTemplate) -> None:
    assert real.format.prepare((USER,), tuple(TOOLS)).tokens == real.reference([USER], TOOLS)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (called("{'a': 1}"), "message 1 has tool call arguments that are not JSON"),
        (called("[1]"), "message 1 has tool call arguments that are no JSON object"),
        (called(7), "message 1 has tool call arguments that are no JSON object: 7"),
        ([USER, {"role": "assistant", "tool_calls": [{"id": "c"}]}], "message 1 has a tool call that is not"),
        ([USER, {"role": "assistant", "tool_calls": ["add"]}], "message 1 has a tool call that is not"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}],
         "message 0 has a content part that is not text: {'type': 'image_url'"),
        ([{"role": "user", "content": None}], r"message 0 \(user\) must have text .* got None"),
        ([USER, {"role": "tool", "content": 3}], r"message 1 \(tool\) must have text .* got 3"),
        ([{"content": "hi"}], "message 0 has no role"),
        ([{"role": "", "content": "hi"}], "message 0 has no role"),
        (["hi"], "message 0 must be a dict with a role and content, got str"),
        ([], "no messages"),
        ([USER, {"role": "assistant", "tool_calls": 7}], "message 1 has tool_calls that are no list: 7"),
        ([USER, {"role": "assistant", "tool_calls": {"id": "c"}}], "message 1 has tool_calls that are no list"),
        ([USER, {"role": "assistant", "tool_calls": [{"name": 5}]}], "message 1 has a tool call that is not"),
        ([USER, {"role": "assistant", "reasoning": ["a"]}], r"message 1 has reasoning that is not text: \['a'\]"),
        (None, "messages must be a sequence, got NoneType"),
    ],
)  # fmt: skip
def test_what_has_no_shape_is_refused(real: RealTemplate, messages: Any, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        real.format.prepare(messages)


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "add"},
        {"type": "function"},
        {"type": "function", "function": {}},
        {"type": "function", "function": {"name": 5}},
        "add",
    ],
)
def test_a_tool_of_another_shape_is_refused(real: RealTemplate, tool: Any) -> None:
    with pytest.raises(InvalidRequestError, match=r"tool 1 must be (a dict|\{\"type\": \"function\")"):
        real.format.prepare([USER], [*TOOLS, tool])


def test_no_tools_are_an_empty_sequence(real: RealTemplate) -> None:
    nothing: Any = None
    with pytest.raises(InvalidRequestError, match="tools must be a sequence, got NoneType"):
        real.format.prepare([USER], nothing)


@pytest.mark.parametrize("role", ["user", "tool", "assistant"])
def test_half_a_character_is_refused(real: RealTemplate, role: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"half of a surrogate pair.*b\\udc80d"):
        real.format.prepare([USER, {"role": role, "content": "b\udc80d", "tool_call_id": "c"}])
    with pytest.raises(InvalidRequestError, match="half of a surrogate pair"):
        real.format.codec.encode("\ud800")


def test_new_messages_are_named_as_such(real: RealTemplate) -> None:
    with pytest.raises(InvalidRequestError, match=r"new message 0 \(user\) must have text"):
        real.format.codec.extend((1,), [{"role": "user", "content": None}])


def test_the_templates_own_words_reach_the_reader(tokenizers: Any) -> None:
    from support.templates import load_real

    format = load_real(tokenizers, "qwen3.5").format
    with pytest.raises(InvalidRequestError, match="refuses this conversation: No user query found in messages"):
        format.prepare([{"role": "system", "content": "s"}])
    with pytest.raises(InvalidRequestError, match="System message must be at the beginning"):
        format.prepare([USER, {"role": "system", "content": "s"}])


USER_ONLY = "{% for m in messages if m.role in roles %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"


@pytest.mark.parametrize("role", ["system", "developer", "tool", "critic"])
def test_a_message_that_the_template_would_drop_is_refused(role: str) -> None:
    template = USER_ONLY.replace("roles", "['user', 'assistant']")
    codec = ChatTemplateCodec(ByteTokenizer(chat_template=template))
    said = "system" if role == "developer" else role
    with pytest.raises(InvalidRequestError, match=f"message 1 has the role '{said}', whose text this chat template"):
        codec.render([USER, {"role": role, "content": "lost"}])
    with pytest.raises(InvalidRequestError, match=f"new message 0 has the role '{said}'"):
        codec.extend((1,), [{"role": role, "content": "lost"}])


def test_a_role_that_the_template_writes_is_the_templates_to_judge() -> None:
    template = USER_ONLY.replace("roles", "['user', 'assistant', 'critic']")
    codec = ChatTemplateCodec(ByteTokenizer(chat_template=template))
    critic: Message = {"role": "critic", "content": "kept"}
    assert codec.decode(codec.render([USER, critic])) == "<|im_start|>hi<|im_end|><|im_start|>kept<|im_end|>"
    picky = ChatTemplateCodec(
        ByteTokenizer(chat_template="{% if messages[1:] %}{{ raise_exception('one') }}{% endif %}")
    )
    with pytest.raises(InvalidRequestError, match="refuses this conversation: one"):
        picky.render([USER, critic])
