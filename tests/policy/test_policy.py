"""Policy over a plain async function: what it sends, what it refuses, what it says of replies."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from focus.backends import (
    GenerateMeta,
    GenerateResult,
    NativeToolCallParser,
    Policy,
    PolicyFormat,
    SamplingParams,
)
from focus.errors import AbortedError, ContextLengthError, InvalidRequestError, ProtocolError
from support.formats import byte_format


class Recorder:
    """A completion that remembers what it was given."""

    def __init__(self, **reply: Any) -> None:
        self.calls: list[tuple[Sequence[int], SamplingParams | None]] = []
        self.threads: set[str] = set()
        self.reply: dict[str, Any] = {"tokens": (104, 105), "text": "hi", **reply}

    async def __call__(self, tokens: Sequence[int], params: SamplingParams | None) -> GenerateResult:
        self.calls.append((tokens, params))
        self.threads.add(threading.current_thread().name)
        await asyncio.sleep(0)
        return GenerateResult(**self.reply)


def policy_over(complete: Any, **arguments: Any) -> Policy[Any]:
    return Policy(format=byte_format(arguments.pop("profile", "text")), complete=complete, **arguments)


def test_the_reply_belongs_to_the_ids_that_were_sent() -> None:
    recorder = Recorder()
    policy = policy_over(recorder)
    prompt = policy.prepare([{"role": "user", "content": "hello"}])
    result = policy.generate(prompt)
    assert recorder.calls == [(prompt.tokens, None)]
    assert result.prefix_tokens is prompt.tokens
    assert result.exact_generation
    assert policy.is_exact(result)
    assert policy.parse(result) == "hi"


def test_other_prefix_tokens_are_not_exact() -> None:
    policy = policy_over(Recorder(prefix_tokens=(1, 2)))
    result = policy.generate_tokens([1, 3])
    assert not result.exact_generation
    assert not policy.is_exact(result)
    assert result.meta == GenerateMeta(inexact_reason="complete() reports other prefix_tokens than it was given")
    assert policy.is_exact(policy_over(Recorder(prefix_tokens=[1, 3])).generate_tokens([1, 3]))


def test_something_else_than_a_result_is_a_protocol_error() -> None:
    async def complete(tokens: Sequence[int], params: SamplingParams | None) -> Any:
        return "text"

    with pytest.raises(ProtocolError, match="must return a GenerateResult, got str"):
        policy_over(complete).generate_tokens([1])


def test_a_completion_that_is_not_async_is_named() -> None:
    def complete(tokens: Sequence[int], params: SamplingParams | None) -> Any:
        return GenerateResult(tokens=(1,))

    with pytest.raises(InvalidRequestError, match=r"complete must be an async function: it returned GenerateResult"):
        policy_over(complete).generate_tokens([1])


def test_log_probabilities_that_do_not_belong_to_the_tokens_are_dropped() -> None:
    policy = policy_over(Recorder(logprobs=[-0.5]))
    result = policy.generate_tokens([1])
    assert (result.exact_generation, result.logprobs, result.prefix_tokens) == (False, [], (1,))
    assert result.meta == GenerateMeta(inexact_reason="complete() returned 1 log-probabilities for 2 tokens")
    aligned = policy_over(Recorder(logprobs=[-0.5, -0.25])).generate_tokens([1])
    assert (aligned.exact_generation, aligned.logprobs) == (True, [-0.5, -0.25])
    native = policy_over(Recorder(tokens=(), logprobs=[-0.5]), native=True)
    assert native.generate(native.prepare([{"role": "user", "content": "x"}])).logprobs == [-0.5]


@pytest.mark.parametrize("bad", ["hermes", None, byte_format().codec])
def test_something_else_than_a_format_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidRequestError, match="format must be a PolicyFormat, got"):
        Policy(format=bad)


@pytest.mark.parametrize(
    ("call", "defaults", "given"),
    [
        (None, None, None),
        (SamplingParams(max_tokens=3), None, SamplingParams(max_tokens=3)),
        (None, SamplingParams(temperature=None, top_p=None), SamplingParams(temperature=None, top_p=None)),
        (
            SamplingParams(temperature=None, max_tokens=3),
            SamplingParams(temperature=0.1, seed=4),
            SamplingParams(temperature=0.1, max_tokens=3, seed=4),
        ),
    ],
)
def test_complete_gets_the_call_over_the_policys_defaults_and_nothing_else(
    call: SamplingParams | None, defaults: SamplingParams | None, given: SamplingParams | None
) -> None:
    recorder = Recorder()
    policy_over(recorder, default_params=defaults).generate_tokens([1], call)
    assert recorder.calls == [((1,), given)]


def test_default_params_are_a_copy() -> None:
    defaults = SamplingParams(max_tokens=5, stop=["x"])
    policy = policy_over(Recorder(), default_params=defaults)
    defaults.max_tokens = 99
    assert policy.default_params == SamplingParams(max_tokens=5, stop=["x"])
    policy.default_params.max_tokens = 1
    assert policy.default_params.max_tokens == 5
    assert policy_over(Recorder()).default_params == SamplingParams()
    with pytest.raises(AttributeError):
        policy.default_params = SamplingParams()  # type: ignore[misc] # the point of the test


BAD_IDS: list[Any] = [(), "text", [1.5], [True], [-1], [266], [2**31]]


@pytest.mark.parametrize("tokens", BAD_IDS, ids=repr)
def test_bad_ids_are_refused_with_nothing_sent(tokens: Any) -> None:
    recorder = Recorder()
    with pytest.raises(InvalidRequestError):
        policy_over(recorder).generate_tokens(tokens)
    assert recorder.calls == []


def test_ids_that_the_model_sampled_become_legal() -> None:
    recorder = Recorder(tokens=(300,))
    policy = policy_over(recorder)
    with pytest.raises(InvalidRequestError, match=r"outside 0\.\."):
        policy.generate_tokens([300])
    policy.generate_tokens([1])
    assert policy.generate_tokens([1, 300]).prefix_tokens == (1, 300)


def test_bad_params_are_refused_with_nothing_sent() -> None:
    recorder = Recorder()
    with pytest.raises(InvalidRequestError, match="max_tokens must be an integer >= 1, got 0"):
        policy_over(recorder).generate_tokens([1], SamplingParams(max_tokens=0))
    with pytest.raises(InvalidRequestError, match="top_p"):
        policy_over(recorder, default_params=SamplingParams(top_p=2.0))
    assert recorder.calls == []


def test_a_known_context_refuses_a_prompt_without_room() -> None:
    recorder = Recorder()
    policy = policy_over(recorder)
    policy.context_length = 4
    with pytest.raises(ContextLengthError, match="4 tokens leaves no room for a reply in a context of 4; nothing was"):
        policy.generate_tokens([1, 2, 3, 4])
    assert recorder.calls == []
    policy.generate_tokens([1, 2, 3])
    for bad in (1, 0, True, "8"):
        with pytest.raises(InvalidRequestError, match="context_length"):
            policy.context_length = bad  # type: ignore[assignment] # the point of the test


def test_without_complete_nothing_can_be_generated() -> None:
    policy = policy_over(None)
    with pytest.raises(InvalidRequestError, match="pass complete=, an async function"):
        policy.generate_tokens([1])


def test_messages_instead_of_a_prompt_are_refused() -> None:
    messages: Any = [{"role": "user", "content": "hi"}]
    with pytest.raises(InvalidRequestError, match=r"call policy\.prepare\(messages\)"):
        policy_over(Recorder()).generate(messages)


def test_an_aborted_reply_is_no_action() -> None:
    policy = policy_over(Recorder(stop_reason="abort"))
    result = policy.generate_tokens([1])
    with pytest.raises(AbortedError) as caught:
        policy.parse(result)
    assert caught.value.result is result
    assert policy.is_exact(result)


@pytest.mark.parametrize(
    ("exact", "native", "profile", "trainable"),
    [
        (True, False, "text", True),
        (False, False, "text", False),
        (True, True, "text", False),
        (True, True, "native", False),
    ],
)
def test_trainable(exact: bool, native: bool, profile: str, trainable: bool) -> None:
    policy = policy_over(Recorder(), exact=exact, native=native, profile=profile)
    assert policy.trainable is trainable
    assert policy.is_exact(GenerateResult()) is (exact and not native)


def test_a_parser_that_needs_a_channel_is_refused_where_there_is_none() -> None:
    codec_format = byte_format()
    native: PolicyFormat[Any] = PolicyFormat("x", codec_format.codec, NativeToolCallParser())
    with pytest.raises(InvalidRequestError, match="NativeToolCallParser reads structured tool calls"):
        Policy(format=native)


def test_names() -> None:
    policy = policy_over(None)
    assert (policy.model, policy.served_model) == ("custom", "custom")
    named = policy_over(None, model="m", served_model="s")
    assert (named.model, named.served_model) == ("m", "s")
    assert named.decode([104, 105]) == "hi"


def test_native_policies_take_messages_only() -> None:
    recorder = Recorder(tokens=())
    policy = policy_over(recorder, native=True)
    with pytest.raises(InvalidRequestError, match="sends messages, not token ids"):
        policy.generate_tokens([1])
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
    ]
    policy.validate_context(messages)
    with pytest.raises(InvalidRequestError, match="message 1 has unanswered tool calls: c1"):
        policy.generate(policy.prepare(messages))
    assert recorder.calls == []
    policy.generate(policy.prepare([*messages, {"role": "tool", "tool_call_id": "c1", "content": "1"}]))
    assert len(recorder.calls) == 1


def test_token_policies_leave_the_order_of_messages_alone() -> None:
    policy_over(None).validate_context([{"role": "tool", "tool_call_id": "nobody", "content": ""}])


def test_sync_calls_work_where_a_loop_runs_and_share_one_thread() -> None:
    recorder = Recorder()
    policy = policy_over(recorder)

    async def main() -> None:
        policy.generate_tokens([1])
        await policy.agenerate_tokens([2])

    asyncio.run(main())
    policy.generate_tokens([3])
    assert [tokens for tokens, _ in recorder.calls] == [(1,), (2,), (3,)]
    assert recorder.threads == {"focus-sync", "MainThread"}


def test_a_sync_call_inside_a_completion_does_not_wait_for_itself() -> None:
    inner = policy_over(Recorder())

    async def complete(tokens: Sequence[int], params: SamplingParams | None) -> GenerateResult:
        return inner.generate_tokens(tokens, params)

    assert policy_over(complete).generate_tokens([1]).tokens == (104, 105)


def test_several_event_loops_in_a_row() -> None:
    policy = policy_over(Recorder())
    for _ in range(3):
        assert asyncio.run(policy.agenerate_tokens([1])).tokens == (104, 105)
    policy.close()
    policy.close()
    asyncio.run(policy.aclose())


def test_an_error_of_complete_reaches_the_caller() -> None:
    async def complete(tokens: Sequence[int], params: SamplingParams | None) -> GenerateResult:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        policy_over(complete).generate_tokens([1])


async def echo(tokens: Sequence[int], params: SamplingParams | None) -> GenerateResult:
    return GenerateResult(tokens=tuple(tokens))


def test_a_policy_pickles() -> None:
    policy = pickle.loads(pickle.dumps(policy_over(echo, default_params=SamplingParams(max_tokens=3), model="m")))
    assert policy.generate_tokens([7]).tokens == (7,)
    assert (policy.model, policy.default_params.max_tokens) == ("m", 3)


def test_record_reply_and_extend_delegate_to_the_format() -> None:
    policy = policy_over(Recorder())
    messages: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]
    prompt = policy.prepare(messages)
    result = policy.generate(prompt)
    policy.record_reply(result, messages)
    assert messages[1] == {"role": "assistant", "content": "hi"}
    messages.append({"role": "user", "content": "more"})
    following = policy.extend(prompt, result, messages)
    assert following.exact_continuation
    assert following.tokens[: len(prompt.tokens) + 2] == (*prompt.tokens, 104, 105)
