"""What is checked and estimated before anything is sent, and what the Responses API gets of a chat conversation."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from focus.backends import (
    GenerateResult,
    OpenAIChatPolicy,
    OpenAIResponsesPolicy,
    Policy,
    PolicyFormat,
    PreparedPrompt,
    TextActionParser,
)
from focus.errors import InvalidRequestError
from focus_openai import NativePolicy
from focus_openai.responses_input import input_items, response_tools
from focus_testing import ByteTokenizer, serve

CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
BOTH = pytest.mark.parametrize("kind", [OpenAIChatPolicy, OpenAIResponsesPolicy])

type Policies = type[OpenAIChatPolicy] | type[OpenAIResponsesPolicy]


def user(text: str = "Hi") -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def answer(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "1"}


BAD: list[tuple[list[dict[str, Any]], str]] = [
    ([user(), assistant(CALL), user()], "message 2: a user message follows"),
    ([user(), answer("call_1")], "message 1: tool message answers 'call_1'"),
    ([user(), assistant(CALL), answer("call_1"), answer("call_1")], "message 3: tool message answers 'call_1'"),
    ([user(), assistant(CALL), answer("other")], "message 2: tool message answers 'other'"),
    ([user(), assistant(CALL, CALL)], "message 1: tool call id 'call_1' occurs twice"),
    ([user(), assistant({"function": {"name": "f"}})], "message 1: every tool call needs a non-empty string id"),
    ([user(), {"role": "robot", "content": ""}], "message 1: role must be one of"),
]


@BOTH
@pytest.mark.parametrize(("messages", "problem"), BAD)
def test_a_misplaced_message_is_named_and_nothing_is_sent(
    kind: Policies, messages: list[dict[str, Any]], problem: str
) -> None:
    with serve(wire="openai") as server:
        policy = kind(model="focus", api_key="EMPTY", base_url=f"{server.url}/v1")
        with pytest.raises(InvalidRequestError, match=problem):
            policy.validate_context(messages)
        with pytest.raises(InvalidRequestError, match=problem):
            policy.generate(policy.prepare(messages))
        assert server.requests == []


@BOTH
def test_open_calls_may_be_edited_but_not_sent(kind: Policies) -> None:
    policy = kind(model="focus", api_key="EMPTY", base_url="http://localhost:1")
    policy.validate_context([user(), assistant(CALL)])
    with pytest.raises(InvalidRequestError, match="message 1 has unanswered tool calls: call_1"):
        policy.generate(policy.prepare([user(), assistant(CALL)]))


@BOTH
@pytest.mark.parametrize(
    ("messages", "tools", "problem"),
    [
        ([], [], "the conversation is empty"),
        ([{"role": "user", "content": None}], [], r"message 0 \(user\) must have text"),
        ([user()], [{"type": "web_search"}], "tool 0 must be"),
        ([user()], [{"type": "function", "name": "f"}], "tool 0 must be"),
        ([user()], [{"type": "function", "function": {"name": 3}}], "tool 0 must be"),
        ([user(), assistant({"id": "a"}), answer("a")], [], "message 1: every tool call needs a 'function'"),
        ([user(), assistant({"id": "a", "function": {}}), answer("a")], [], "message 1: every tool call needs a 'fun"),
        ([user("half a character: \ud83d")], [], "half of a surrogate pair"),
        ([user()], [{"type": "function", "function": {"name": "f", "description": "\ud83d"}}], "half of a surrogate"),
    ],
)
def test_what_cannot_be_sent_is_refused(
    kind: Policies, messages: list[dict[str, Any]], tools: list[dict[str, Any]], problem: str
) -> None:
    policy = kind(model="focus", api_key="EMPTY", base_url="http://localhost:1")
    with pytest.raises(InvalidRequestError, match=problem):
        policy.generate(policy.prepare(messages, tools))


@BOTH
def test_a_native_policy_is_not_trainable_and_takes_no_ids(kind: Policies) -> None:
    policy = kind(model="m")
    assert isinstance(policy, NativePolicy)
    assert not policy.trainable
    assert not policy.is_exact(GenerateResult())
    with pytest.raises(InvalidRequestError, match="sends messages, not token ids"):
        policy.generate_tokens([1])
    with pytest.raises(InvalidRequestError, match="takes a PreparedPrompt"):
        policy.generate("hi")  # type: ignore[arg-type] # wrong on purpose


def test_without_a_format_prompt_ids_are_placeholders() -> None:
    policy = OpenAIChatPolicy(model="m")
    prompt = policy.prepare([user("x" * 400)])
    assert set(prompt.tokens) == {-1}
    assert 100 <= len(prompt.tokens) <= 120
    assert policy.format.codec.encode("héllo wörld") == (-1,) * 4
    assert policy.format.codec.encode("") == ()
    with pytest.raises(InvalidRequestError, match="no tokenizer to decode with"):
        policy.decode(prompt.tokens)
    with pytest.raises(InvalidRequestError, match="plain JSON data"):
        policy.prepare([user("x"), {"role": "user", "content": object()}])


def test_a_recorded_response_is_counted_once() -> None:
    policy = OpenAIResponsesPolicy(model="m")
    said = {"role": "assistant", "content": "x" * 40}
    items = [{"type": "message", "content": [{"type": "output_text", "text": "x" * 40}]}]
    recorded = policy.prepare([user(), {**said, "native_output": items}, user()])
    assert len(recorded.tokens) == len(policy.prepare([user(), said, user()]).tokens)


def test_a_token_backend_refuses_placeholders() -> None:
    async def complete(tokens: object, params: object) -> GenerateResult:
        raise AssertionError("must not be asked")

    exact = Policy(format=PolicyFormat.resolve("bytes", tokenizer=ByteTokenizer(), profile="hermes"), complete=complete)
    with pytest.raises(InvalidRequestError, match="is -1"):
        exact.generate(OpenAIChatPolicy(model="m").prepare([user()]))


def test_continuing_an_estimate_renders_again() -> None:
    policy = OpenAIChatPolicy(model="m")
    messages = [user()]
    prompt = policy.prepare(messages)
    result = GenerateResult(prefix_tokens=prompt.tokens, text="Hello.", exact_generation=False)
    policy.record_reply(result, messages)
    following = policy.extend(prompt, result, [*messages, user()])
    assert not following.exact_continuation
    assert len(following.tokens) > len(prompt.tokens)


def test_a_given_format_renders_and_parses() -> None:
    format = PolicyFormat.resolve("bytes", tokenizer=ByteTokenizer(), profile="hermes").with_parser(TextActionParser())
    policy = OpenAIChatPolicy(model="m", format=format)
    assert policy.decode(policy.prepare([user()]).tokens).endswith("<|im_start|>assistant\n")
    assert policy.parse(GenerateResult(text=" Hello. ")) == "Hello."


def test_a_prompt_pickles_with_its_format() -> None:
    prompt = OpenAIChatPolicy(model="m").prepare([user()])
    copied: PreparedPrompt = pickle.loads(pickle.dumps(prompt))
    assert (copied.tokens, copied.messages) == (prompt.tokens, prompt.messages)


def test_a_chat_conversation_as_input_items() -> None:
    image = {"url": "data:image/png;base64,AA==", "detail": "low"}
    messages: list[dict[str, Any]] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": image}]},
        {**assistant({**CALL, "function": {"name": "f", "arguments": {"x": 1}}}), "reasoning": "hm"},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "1"}]},
        {"role": "assistant", "content": "Done."},
        {"role": "assistant", "content": None, "refusal": "No."},
    ]
    assert input_items(messages) == [
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Hi"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
            ],
        },
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"x": 1}'},
        {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "1"}]},
        {"role": "assistant", "content": "Done."},
        {"role": "assistant", "content": "No."},
    ]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"role": "user", "name": "Ann", "content": "Hi"}, "message 0: the Responses API has no 'name'"),
        ({"role": "user", "content": [{"type": "input_audio"}]}, "message 0 has a content part"),
        ({"role": "assistant", "content": 3}, r"message 0 \(assistant\) must have text"),
        ({"role": "assistant", "content": "", "native_output": ["x"]}, "message 0: native_output must be the list"),
    ],
)
def test_what_the_responses_api_has_no_place_for_is_refused(message: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        input_items([message])


def test_an_edited_reply_is_not_sent_as_it_was() -> None:
    items = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One."}]},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
    ]
    recorded = {"role": "assistant", "content": "One.", "tool_calls": [CALL], "native_output": items}
    assert input_items([recorded]) == items
    edits: list[dict[str, Any]] = [{"content": "Two."}, {"tool_calls": []}]
    for edit in edits:
        with pytest.raises(InvalidRequestError, match="message 0 was edited"):
            input_items([{**recorded, **edit}])
    edited = {"role": "assistant", "content": "Two.", "tool_calls": [CALL]}
    assert input_items([edited]) == [{"role": "assistant", "content": "Two."}, items[1]]


def test_tools_are_not_strict_unless_asked() -> None:
    parameters = {"type": "object", "properties": {"x": {"type": "integer"}}}
    plain = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    strict = {"type": "function", "function": {"name": "g", "description": "G.", "strict": True}}
    assert response_tools([plain, strict]) == [
        {"type": "function", "name": "f", "parameters": parameters, "strict": False},
        {
            "type": "function",
            "name": "g",
            "description": "G.",
            "parameters": {"type": "object", "properties": {}},
            "strict": True,
        },
    ]
