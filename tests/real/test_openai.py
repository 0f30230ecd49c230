"""OpenAIChatPolicy and OpenAIResponsesPolicy on a real vLLM server with ``--tool-call-parser hermes``.

The script model: an assistant turn is the call add(x=2), and once a tool result was seen " Done.".
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from focus.backends import GenerateResult, OpenAIChatPolicy, OpenAIResponsesPolicy, SamplingParams
from focus.errors import AuthenticationError, BackendError, ContextLengthError
from servers import vllm
from servers.process import Server
from support.recording_proxy import Recorded, recording

type Policies = type[OpenAIChatPolicy] | type[OpenAIResponsesPolicy]

GREEDY = SamplingParams(temperature=0.0, max_tokens=60)
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add one.",
        "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
    },
}
BOTH = pytest.mark.parametrize("kind", [OpenAIChatPolicy, OpenAIResponsesPolicy])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with vllm.script() as running:
        yield running


def make(kind: Policies, url: str, **changed: Any) -> OpenAIChatPolicy | OpenAIResponsesPolicy:
    arguments = {"model": "focus-script", "api_key": vllm.API_KEY, "base_url": url, "default_params": GREEDY}
    return kind(**{**arguments, **changed})


def three_turns(kind: Policies, recorded: Recorded) -> tuple[list[GenerateResult], list[dict[str, Any]]]:
    policy = make(kind, recorded.url + "/v1", system_prompt="Be brief.")
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Add."}]
    results: list[GenerateResult] = []
    for turn in range(3):
        result = policy.generate(policy.prepare(messages, [ADD]))
        results.append(result)
        policy.record_reply(result, messages)
        policy.validate_context(messages)
        calls = policy.parse(result).tool_calls
        messages += [{"role": "tool", "tool_call_id": call.call_id, "content": "3"} for call in calls]
        if turn == 1:
            messages.append({"role": "user", "content": "Add again."})
    policy.close()
    return results, messages


def expect_turns(results: list[GenerateResult]) -> None:
    assert [result.text.strip() for result in results] == ["", "Done.", "Done."]
    assert [result.stop_reason for result in results] == ["stop", "stop", "stop"]
    called = [[(call.name, call.arguments) for call in result.native_tool_calls or ()] for result in results]
    assert called == [[("add", '{"x": 2}')], [], []]
    assert not any(result.exact_generation for result in results)


def test_chat_tool_dialogue_replays_every_message(server: Server) -> None:
    with recording(server.url.removesuffix("/v1")) as recorded:
        results, messages = three_turns(OpenAIChatPolicy, recorded)
    expect_turns(results)
    came = [body["choices"][0]["message"] for body in recorded.came]
    sent = recorded.sent[2]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert sent[0] == {"role": "system", "content": "Be brief."}
    assert sent[1:] == messages[: len(sent) - 1]
    assert sent[2] == {"role": "assistant", "content": None, "tool_calls": came[0]["tool_calls"]}
    assert sent[3] == {"role": "tool", "tool_call_id": came[0]["tool_calls"][0]["id"], "content": "3"}
    assert sent[4] == {"role": "assistant", "content": came[1]["content"]}


def test_responses_tool_dialogue_replays_every_item(server: Server) -> None:
    with recording(server.url.removesuffix("/v1")) as recorded:
        results, _ = three_turns(OpenAIResponsesPolicy, recorded)
    expect_turns(results)
    calls, said = recorded.came[0]["output"], recorded.came[1]["output"]
    assert list(results[0].native_output) == calls
    assert recorded.sent[2]["input"] == [
        {"role": "user", "content": "Add."},
        *({key: value for key, value in item.items() if value is not None} for item in calls),
        {"type": "function_call_output", "call_id": calls[-1]["call_id"], "output": "3"},
        *({key: value for key, value in item.items() if value is not None} for item in said),
        {"role": "user", "content": "Add again."},
    ]
    assert recorded.sent[2]["instructions"] == "Be brief."


@BOTH
def test_logprobs_belong_to_the_servers_tokens(kind: Policies, server: Server) -> None:
    policy = make(kind, server.url)
    prompt = policy.prepare([{"role": "user", "content": "Add."}])
    result = policy.generate(prompt, SamplingParams(temperature=0.0, max_tokens=20, logprobs=2))
    assert result.text == '<tool_call>{"name":"add","arguments":{"x":2}}</tool_call>'
    assert result.tokens == ()
    # vLLM's chat shows the end token's entry, its responses do not.
    assert len(result.logprobs) in (13, 14)
    assert result.logprobs[0] == pytest.approx(0.0, abs=1e-3)
    assert result.top_logprobs is not None
    assert result.top_logprobs[0]["<tool_call>"] == result.logprobs[0]
    policy.close()


@BOTH
def test_cut_reply(kind: Policies, server: Server) -> None:
    policy = make(kind, server.url)
    result = policy.generate(
        policy.prepare([{"role": "user", "content": "Add."}], [ADD]), SamplingParams(temperature=0.0, max_tokens=5)
    )
    assert (result.stop_reason, result.text) == ("length", '<tool_call>{"name":"add')
    assert result.native_tool_calls == ()
    policy.close()


def test_matched_stop_string(server: Server) -> None:
    policy = make(OpenAIChatPolicy, server.url)
    params = SamplingParams(temperature=0.0, max_tokens=20, stop=["arguments"])
    result = policy.generate(policy.prepare([{"role": "user", "content": "Add."}]), params)
    assert (result.stop_reason, result.matched_stop) == ("stop", "arguments")
    assert result.text == '<tool_call>{"name":"add","'
    policy.close()


@BOTH
def test_wrong_key(kind: Policies, server: Server) -> None:
    policy = make(kind, server.url, api_key="sk-wrong-123456")
    with pytest.raises(AuthenticationError, match="api_key") as caught:
        policy.generate(policy.prepare([{"role": "user", "content": "Add."}]))
    assert "sk-wrong-123456" not in str(caught.value)
    policy.close()


@BOTH
def test_conversation_that_does_not_fit(kind: Policies, server: Server) -> None:
    policy = make(kind, server.url)
    with pytest.raises(ContextLengthError) as caught:
        policy.generate(policy.prepare([{"role": "user", "content": "word " * 5000}]))
    assert caught.value.status == 400
    policy.close()


@BOTH
def test_unknown_model(kind: Policies, server: Server) -> None:
    policy = kind(model="nobody", api_key=vllm.API_KEY, base_url=server.url)
    with pytest.raises(BackendError, match="nobody") as caught:
        policy.generate(policy.prepare([{"role": "user", "content": "Add."}]))
    assert caught.value.status == 404
    policy.close()


@BOTH
def test_startup_check(kind: Policies, server: Server) -> None:
    policy = make(kind, server.url)
    policy.startup_check()
    policy.close()
    for changed, advice in (
        ({"api_key": "sk-wrong-123456"}, "The key is api_key="),
        ({"model": "nobody"}, "The server serves focus-script, not nobody: pass its name as model="),
        ({"base_url": server.url.removesuffix("/v1")}, "most end in /v1"),
    ):
        wrong = make(kind, server.url, **changed)
        with pytest.raises(BackendError, match=advice):
            wrong.startup_check()
        wrong.close()


@BOTH
def test_three_loops_one_after_the_other_and_many_at_once(kind: Policies, server: Server) -> None:
    policy = make(kind, server.url)
    prompt = policy.prepare([{"role": "user", "content": "Add."}], [ADD])

    async def many(count: int) -> list[GenerateResult]:
        return await asyncio.gather(*(policy.agenerate(prompt) for _ in range(count)))

    for count in (1, 50, 1):
        results = asyncio.run(many(count))
        assert all(len(result.native_tool_calls or ()) == 1 for result in results)
    policy.close()
