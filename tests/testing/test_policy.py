"""EmbeddedPolicy: the engine behind the interface of every policy."""

from __future__ import annotations

import asyncio
import math
import pickle
from dataclasses import replace
from typing import Any

import pytest

from focus_format import PolicyFormat
from focus_testing import DEMO_TOOLS, ByteTokenizer, EmbeddedPolicy, Engine, ScriptModel, demo_engine
from focus_types import ContextLengthError, InvalidRequestError, SamplingParams, ToolCall

FLIP = [{"role": "user", "content": "Flip the coin."}]
SAMPLED = SamplingParams(temperature=1, logprobs=1, seed=3)


def test_a_whole_dialogue_with_a_tool_is_one_exact_sequence() -> None:
    policy = EmbeddedPolicy()
    messages: list[dict[str, Any]] = [dict(FLIP[0])]
    prompt = policy.prepare(messages, DEMO_TOOLS)
    first = policy.generate(prompt)
    assert policy.parse(first).tool_calls[0] == ToolCall("flip_coin", '{"times": 1}')
    assert (first.stop_reason, first.matched_stop, first.tokens[-1]) == ("stop", 258, 258)
    policy.record_reply(first, messages)
    messages.append({"role": "tool", "content": "heads"})
    again = policy.extend(prompt, first, messages)
    assert again.exact_continuation
    assert again.tokens[: len(prompt.tokens) + len(first.tokens)] == prompt.tokens + first.tokens
    second = policy.generate(again, SAMPLED)
    assert second.text in ("The coin shows heads.", "The coin shows tails.")
    share = {"The coin shows heads.": 0.75, "The coin shows tails.": 0.25}[second.text]
    assert sum(second.logprobs) == pytest.approx(math.log(share))
    assert second.entropy == pytest.approx(-math.log(share) / len(second.tokens))
    assert policy.is_exact(second)
    assert policy.trainable


def test_the_result_says_what_was_in_effect() -> None:
    policy = EmbeddedPolicy(demo_engine(), default_params=SamplingParams(temperature=0, max_tokens=4))
    result = policy.generate(policy.prepare(FLIP), SamplingParams(temperature=None, max_tokens=None, logprobs=0))
    assert (len(result.tokens), result.stop_reason) == (4, "length")
    assert result.meta is not None
    assert (result.meta.logprob_mode, result.meta.logprobs_match_sampling) == ("behavior", False)
    assert result.meta.sampling == SamplingParams(temperature=0, max_tokens=4, logprobs=0)
    assert result.top_logprobs is None
    assert not result.meta.context_full


def test_logprobs_of_reply_and_prompt_are_keyed_by_id() -> None:
    tokenizer = ByteTokenizer()
    engine = Engine(ScriptModel.texts({"a": {"x": 0.75, "y": 0.25}}, tokenizer), tokenizer, logprob_mode="raw")
    policy = EmbeddedPolicy(engine)
    result = policy.generate_tokens([ord("b"), ord("a")], SamplingParams(1, 1, logprobs=2, prompt_logprobs=1, seed=1))
    assert result.top_logprobs is not None
    assert rounded(result.top_logprobs[0]) == {"token_id:120": -0.287682, "token_id:121": -1.386294}
    assert result.prompt_logprobs == [None, pytest.approx(-40.0)]
    assert result.prompt_top_logprobs is not None
    assert result.prompt_top_logprobs[0] is None
    assert rounded(result.prompt_top_logprobs[1]) == {"token_id:97": -40.0, "token_id:258": 0.0}


def rounded(values: dict[str, float] | None) -> dict[str, float]:
    return {key: round(value, 6) + 0.0 for key, value in (values or {}).items()}


def test_stop_strings_and_the_edge_of_the_context() -> None:
    tokenizer = ByteTokenizer()
    model = ScriptModel.texts({"na ": "na "}, tokenizer)
    policy = EmbeddedPolicy(Engine(model, tokenizer, context_length=40))
    prompt = tokenizer.encode("na na ")
    stopped = policy.generate_tokens(prompt, SamplingParams(max_tokens=30, stop=["a n"]))
    assert (stopped.text, stopped.matched_stop, tokenizer.decode(stopped.tokens)) == ("n", "a n", "na n")
    full = policy.generate_tokens(prompt, SamplingParams(max_tokens=100, seed=1))
    assert full.meta is not None
    assert (full.meta.context_full, len(full.tokens)) == (True, 34)
    with pytest.raises(ContextLengthError, match="no room"):
        policy.generate_tokens([97] * 40)


@pytest.mark.parametrize("tokens", [[], [265], [-1], [True], ["a"]])
def test_bad_ids_are_refused(tokens: list[Any]) -> None:
    with pytest.raises(InvalidRequestError):
        EmbeddedPolicy().generate_tokens(tokens)


def test_bad_arguments_are_refused() -> None:
    engine = demo_engine()
    format = PolicyFormat.resolve("x", tokenizer=engine.tokenizer)
    with pytest.raises(InvalidRequestError, match="not both"):
        EmbeddedPolicy(engine, format=format, profile="hermes")
    with pytest.raises(InvalidRequestError, match="temperature"):
        EmbeddedPolicy(default_params=SamplingParams(temperature=-1))


@pytest.mark.anyio
async def test_two_thousand_conversations_at_once_repeat_by_their_seeds() -> None:
    policy = EmbeddedPolicy(default_params=SAMPLED)
    prompt = policy.prepare(FLIP, DEMO_TOOLS)
    first = await policy.agenerate(prompt)
    messages = list(FLIP)
    policy.record_reply(first, messages)
    again = policy.extend(prompt, first, [*messages, {"role": "tool", "content": "heads"}])
    calls = (policy.agenerate(again, replace(SAMPLED, seed=i % 1000)) for i in range(2000))
    texts = [result.text for result in await asyncio.gather(*calls)]
    assert texts[:1000] == texts[1000:]
    assert 700 < texts[:1000].count("The coin shows heads.") < 800


@pytest.mark.anyio
async def test_a_long_reply_leaves_the_loop_room_and_can_be_cancelled() -> None:
    tokenizer = ByteTokenizer()
    model = ScriptModel.texts({"na ": "na "}, tokenizer)
    policy = EmbeddedPolicy(Engine(model, tokenizer, context_length=2_000_000))
    call = asyncio.ensure_future(
        policy.agenerate_tokens(tokenizer.encode("na na "), SamplingParams(max_tokens=1_000_000))
    )
    await asyncio.sleep(0.01)
    assert not call.done()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


def test_a_policy_pickles_whole_and_goes_on_as_before() -> None:
    policy = EmbeddedPolicy(demo_engine(), default_params=SAMPLED)
    prompt = policy.prepare(FLIP, DEMO_TOOLS)
    here = policy.generate(prompt)
    there = pickle.loads(pickle.dumps(policy)).generate(prompt)
    assert (there.tokens, there.logprobs) == (here.tokens, here.logprobs)


def test_a_script_of_long_replies_pickles() -> None:
    tokenizer = ByteTokenizer()
    model = pickle.loads(pickle.dumps(ScriptModel.replies(["x" * 2000], tokenizer)))
    prompt = tokenizer.apply_chat_template(FLIP, add_generation_prompt=True)
    assert Engine(model, tokenizer, context_length=3000).generate(prompt, SamplingParams(0, 3000)).text == "x" * 2000
