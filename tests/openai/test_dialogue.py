"""Dialogues through both APIs of the loopback server, which renders what it is sent and really samples."""

from __future__ import annotations

import math
from typing import Any

import pytest

from focus.backends import GenerateResult, OpenAIChatPolicy, OpenAIResponsesPolicy, SamplingParams
from focus.errors import BackendError, ContextLengthError, InvalidRequestError
from focus.generation import NativeToolCall
from focus_testing import DEMO_TOOLS, ByteTokenizer, Engine, Fault, ScriptModel, Server, serve

type Policies = type[OpenAIChatPolicy] | type[OpenAIResponsesPolicy]

KEY = "sk-test-12345678"
CALL = '<tool_call>\n{"name": "flip_coin", "arguments": {"times": 1}}\n</tool_call>'
BOTH = pytest.mark.parametrize("kind", [OpenAIChatPolicy, OpenAIResponsesPolicy])
GREEDY = SamplingParams(temperature=0.0, max_tokens=120)


def engine(*replies: str) -> Engine:
    tokenizer = ByteTokenizer()
    return Engine(ScriptModel.replies(replies, tokenizer), tokenizer)


def make(kind: Policies, server: Server, **changed: Any) -> OpenAIChatPolicy | OpenAIResponsesPolicy:
    arguments: dict[str, Any] = {"api_key": KEY, "base_url": f"{server.url}/v1", "default_params": GREEDY}
    return kind(model="focus", **{**arguments, **changed})


def dialogue(policy: OpenAIChatPolicy | OpenAIResponsesPolicy, turns: int) -> list[dict[str, Any]]:
    """User, call, tool result, told; again and again."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Flip."}]
    for _ in range(turns):
        result = policy.generate(policy.prepare(messages, DEMO_TOOLS))
        policy.record_reply(result, messages)
        turn = policy.parse(result)
        messages += [{"role": "tool", "tool_call_id": call.call_id, "content": "heads"} for call in turn.tool_calls]
        if not turn.tool_calls:
            messages.append({"role": "user", "content": "Again."})
    return messages


@BOTH
def test_three_turns(kind: Policies) -> None:
    with serve(engine(CALL, "It shows heads.", CALL), wire="openai", api_key=KEY) as server:
        policy = make(kind, server)
        messages = dialogue(policy, 3)
        policy.close()
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
        "tool",
    ]
    assert messages[3]["content"] == "It shows heads."
    for message in (messages[1], messages[5]):
        assert message["tool_calls"][0]["function"] == {"name": "flip_coin", "arguments": '{"times": 1}'}
    assert messages[2]["tool_call_id"] == messages[1]["tool_calls"][0]["id"]


def test_responses_replay_every_item_in_order_with_its_reasoning() -> None:
    replies = (f"<think>\nOne flip.\n</think>\n\nLet me see.\n{CALL}", "Heads.")
    with serve(engine(*replies), wire="openai", api_key=KEY) as server:
        policy = make(OpenAIResponsesPolicy, server, reasoning_effort="low", system_prompt="Be brief.")
        messages = dialogue(policy, 2)
        policy.close()
    first, second = (exchange.body for exchange in server.requests)
    assert first["store"] is False
    assert first["include"] == ["reasoning.encrypted_content"]
    assert first["reasoning"] == {"effort": "low"}
    assert first["instructions"] == "Be brief."
    assert first["tools"] == [{"type": "function", "strict": False, **DEMO_TOOLS[0]["function"]}]
    items = messages[1]["native_output"]
    assert [item["type"] for item in items] == ["reasoning", "message", "function_call"]
    assert second["input"] == [
        {"role": "user", "content": "Flip."},
        *items,
        {"type": "function_call_output", "call_id": items[2]["call_id"], "output": "heads"},
    ]
    assert messages[1]["content"] == "Let me see."
    assert messages[3]["content"] == "Heads."


def test_a_server_without_encrypted_reasoning_is_asked_without_it() -> None:
    with serve(engine("Hello."), wire="openai", encrypted_reasoning=False) as server:
        policy = make(OpenAIResponsesPolicy, server)
        prompt = policy.prepare([{"role": "user", "content": "Hi"}])
        assert [policy.generate(prompt).text for _ in range(2)] == ["Hello.", "Hello."]
        policy.close()
    assert [exchange.status for exchange in server.requests] == [400, 200, 200]
    assert ["include" in exchange.body for exchange in server.requests] == [True, False, False]


def test_another_refusal_keeps_asking_for_encrypted_reasoning() -> None:
    with serve(engine("Hello."), wire="openai", fault=Fault("status", calls={0}, status=400)) as server:
        policy = make(OpenAIResponsesPolicy, server)
        prompt = policy.prepare([{"role": "user", "content": "Hi"}])
        with pytest.raises(BackendError, match="400"):
            policy.generate(prompt)
        policy.generate(prompt)
        policy.close()
    assert ["include" in exchange.body for exchange in server.requests] == [True, True]


def test_chat_sends_the_system_prompt_first() -> None:
    with serve(engine("Hello."), wire="openai") as server:
        policy = make(OpenAIChatPolicy, server, system_prompt="Be brief.")
        policy.generate(policy.prepare([{"role": "user", "content": "Hi"}]))
        policy.close()
    assert server.requests[0].body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
    ]


@BOTH
def test_locked_sampling(kind: Policies) -> None:
    with serve(engine("Hello."), wire="openai", locked_sampling=True) as server:
        unlocked = make(kind, server)
        prompt = unlocked.prepare([{"role": "user", "content": "Hi"}])
        with pytest.raises(BackendError, match="pass locked_sampling=True"):
            unlocked.generate(prompt)
        unlocked.close()
        locked = make(kind, server, locked_sampling=True)
        result = locked.generate(prompt)
        assert result.text == "Hello."
        assert result.meta is not None
        assert result.meta.sampling is not None
        assert (result.meta.sampling.temperature, result.meta.sampling.top_p) == (None, None)
        assert not {"temperature", "top_p"} & set(server.requests[-1].body)
        for params in (SamplingParams(seed=3), SamplingParams(stop=["x"])):
            with pytest.raises(InvalidRequestError, match=r"seed|stop"):
                locked.generate(prompt, params)
        locked.generate(prompt, SamplingParams(stop=[], top_k=-1, repetition_penalty=1.0))
        locked.close()
        assert len(server.requests) == 3


@BOTH
def test_logprobs(kind: Policies) -> None:
    tokenizer = ByteTokenizer()
    model = ScriptModel.replies([{"heads": 0.75, "tails": 0.25}], tokenizer)
    with serve(Engine(model, tokenizer), wire="openai") as server:
        policy = make(kind, server)
        prompt = policy.prepare([{"role": "user", "content": "Hi"}])
        result = policy.generate(prompt, SamplingParams(temperature=1.0, logprobs=2))
        plain = policy.generate(prompt, SamplingParams(temperature=1.0, logprobs=0))
        policy.close()
    chosen, other = ("h", "t") if result.text == "heads" else ("t", "h")
    known = {"h": math.log(0.75), "t": math.log(0.25)}
    assert len(result.logprobs) == 6
    assert result.logprobs[0] == pytest.approx(known[chosen])
    assert result.top_logprobs is not None
    assert result.top_logprobs[0] == pytest.approx({chosen: known[chosen], other: known[other]})
    assert result.entropy == pytest.approx(-known[chosen] / 6, abs=1e-6)
    assert plain.top_logprobs is None
    assert len(plain.logprobs) == 6


@BOTH
@pytest.mark.parametrize(
    ("fault", "note"),
    [
        ("missing_logprobs", "log-probabilities were asked for and none came"),
        ("filler", "a sampled token's log-probability is a filler for minus infinity"),
    ],
)
def test_logprobs_that_cannot_be_used(kind: Policies, fault: Any, note: str) -> None:
    with serve(engine("Hello."), wire="openai", fault=Fault(fault)) as server:
        policy = make(kind, server)
        result = policy.generate(policy.prepare([{"role": "user", "content": "Hi"}]), SamplingParams(logprobs=1))
        policy.close()
    assert (result.logprobs, result.top_logprobs, result.entropy) == ([], None, 0.0)
    assert result.meta is not None
    assert note in str(result.meta.inexact_reason)


@BOTH
def test_a_cut_reply(kind: Policies) -> None:
    with serve(engine("Hello."), wire="openai") as server:
        policy = make(kind, server)
        result = policy.generate(policy.prepare([{"role": "user", "content": "Hi"}]), SamplingParams(max_tokens=3))
        policy.close()
    assert (result.text, result.stop_reason) == ("Hel", "length")


@BOTH
def test_a_conversation_that_does_not_fit(kind: Policies) -> None:
    with serve(engine("Hello."), wire="openai") as server:
        policy = make(kind, server)
        with pytest.raises(ContextLengthError, match="maximum context length"):
            policy.generate(policy.prepare([{"role": "user", "content": "x" * 5000}]))
        policy.close()


def ask(kind: Policies, fault: Any) -> tuple[GenerateResult, list[dict[str, Any]]]:
    """The result of one spoiled turn, and what the next request sends."""
    with serve(engine(CALL, "Heads."), wire="openai", fault=Fault(fault, calls={0})) as server:
        policy = make(kind, server)
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Flip."}]
        result = policy.generate(policy.prepare(messages, DEMO_TOOLS))
        policy.record_reply(result, messages)
        calls = result.native_tool_calls or ()
        messages += [{"role": "tool", "tool_call_id": call.call_id, "content": "heads"} for call in calls]
        if not calls:
            messages.append({"role": "user", "content": "Again."})
        policy.generate(policy.prepare(messages, DEMO_TOOLS))
        policy.close()
    body = server.requests[1].body
    return result, body["messages"] if "messages" in body else body["input"]


@BOTH
@pytest.mark.parametrize(
    ("fault", "arguments"),
    [("arguments_object", '{"times": 1}'), ("arguments_null", "{}"), ("arguments_cut", '{"times": ')],
)
def test_arguments_of_any_shape_return_as_text(kind: Policies, fault: Any, arguments: str) -> None:
    result, sent = ask(kind, fault)
    assert [call.arguments for call in result.native_tool_calls or ()] == [arguments]
    assert (sent[1]["tool_calls"][0]["function"] if kind is OpenAIChatPolicy else sent[1])["arguments"] == arguments


@BOTH
def test_a_call_without_an_id_gets_a_stable_one(kind: Policies) -> None:
    for _ in range(2):
        result, sent = ask(kind, "no_call_id")
        assert result.native_tool_calls == (NativeToolCall("flip_coin", '{"times": 1}', "call_1_0"),)
        if kind is OpenAIChatPolicy:
            assert (sent[1]["tool_calls"][0]["id"], sent[1]["tool_calls"][0]["type"]) == ("call_1_0", "function")
            assert sent[2]["tool_call_id"] == "call_1_0"
        else:
            assert (sent[1]["call_id"], sent[2]["call_id"]) == ("call_1_0", "call_1_0")


@BOTH
def test_a_refusal_is_carried_marked_and_sent_back(kind: Policies) -> None:
    result, sent = ask(kind, "refusal")
    assert (result.text, result.stop_reason) == ("I cannot help with that.", "refusal")
    if kind is OpenAIChatPolicy:
        assert sent[1] == {
            "role": "assistant",
            "content": None,
            "refusal": "I cannot help with that.",
            "annotations": [],
        }
    else:
        assert sent[1]["content"] == [{"type": "refusal", "refusal": "I cannot help with that."}]


@pytest.mark.parametrize(
    ("fault", "fields"),
    [
        (
            "reasoning",
            {
                "reasoning": "Let me think.",
                "reasoning_details": [{"type": "reasoning.text", "text": "Let me think."}],
            },
        ),
        ("reasoning_content", {"reasoning_content": "Let me think."}),
    ],
)
def test_reasoning_of_compatible_chat_servers_is_kept_under_its_name(fault: Any, fields: dict[str, Any]) -> None:
    with serve(engine("Hello."), wire="openai", fault=Fault(fault)) as server:
        policy = make(OpenAIChatPolicy, server)
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]
        result = policy.generate(policy.prepare(messages))
        policy.record_reply(result, messages)
        policy.close()
    assert result.text == "Hello."
    assert messages[1] == {"role": "assistant", "content": "Hello.", "annotations": [], **fields}


@BOTH
def test_empty_and_split_content(kind: Policies) -> None:
    for fault, text in (("no_content", ""), ("content_parts", "Hello.")):
        with serve(engine("Hello."), wire="openai", fault=Fault(fault)) as server:  # type: ignore[arg-type] # literals
            policy = make(kind, server)
            messages: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]
            result = policy.generate(policy.prepare(messages))
            policy.record_reply(result, messages)
            policy.generate(policy.prepare([*messages, {"role": "user", "content": "Go on."}]))
            policy.close()
        assert (result.text, result.native_tool_calls) == (text, ())
