"""How exactness gets lost, in figures, and how focus denies it where it is."""

from __future__ import annotations

import logging
import sys
from typing import Any, Literal

from focus.backends import PolicyFormat, SamplingParams, VLLMPolicy
from focus_testing import DEMO_TOOLS, ByteTokenizer, EmbeddedPolicy, Engine, Fault, ScriptModel, demo_engine, serve

TOKENIZER = ByteTokenizer()
COIN = ScriptModel.texts({"coin": {"heads<|im_end|>": 0.75, "tails<|im_end|>": 0.25}}, TOKENIZER)
FAULTS: tuple[Literal["missing_logprobs", "wrong_prompt", "filler"], ...] = (
    "missing_logprobs",
    "wrong_prompt",
    "filler",
)
MODES: tuple[Literal["raw", "tempered", "behavior"], ...] = ("raw", "tempered", "behavior")


def other_distributions() -> None:
    """One token, one temperature, three servers: each says another log-probability, or the same by luck."""
    for mode in MODES:
        policy = EmbeddedPolicy(Engine(COIN, TOKENIZER, logprob_mode=mode))
        for top_k in (-1, 1):
            params = SamplingParams(temperature=0.7, top_k=top_k, max_tokens=1, logprobs=0, seed=1)
            result = policy.generate_tokens(TOKENIZER.encode("coin"), params)
            assert result.meta is not None
            matches = result.meta.logprobs_match_sampling
            print(f"{mode:9} top_k {top_k:2} {policy.decode(result.tokens)!r} {result.logprobs[0]:+.4f} {matches}")


def text_instead_of_ids() -> None:
    """A reply that was stopped inside a character, or that spells a control token out, is other ids as text."""
    for name, ids in {"cut character": [72, 105, 0xF0, 0x9F], "spelled out": list(b"<|im_end|>")}.items():
        again = TOKENIZER.encode(TOKENIZER.decode(ids))
        print(f"{name}: {len(ids)} ids were sampled, their text has {len(again)}")


def history_rendered_again() -> None:
    """A template writes JSON in its own way, and so other ids than the model sampled."""
    reply = '<tool_call>\n{"name":"flip_coin","arguments":{"times":1}}\n</tool_call>'
    policy = EmbeddedPolicy(Engine(ScriptModel.replies([reply], TOKENIZER), TOKENIZER))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Flip the coin."}]
    prompt = policy.prepare(messages, DEMO_TOOLS)
    result = policy.generate(prompt)
    call = policy.parse(result).tool_calls[0]
    chat = {"id": "0", "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
    answer = {"role": "tool", "tool_call_id": "0", "content": "heads"}
    again = policy.prepare([*messages, {"role": "assistant", "tool_calls": [chat]}, answer], DEMO_TOOLS).tokens
    policy.record_reply(result, messages)
    following = policy.extend(prompt, result, [*messages, answer])
    sampled = prompt.tokens + result.tokens
    print(f"rendered again, the sampled ids are kept: {again[: len(sampled)] == sampled}")
    print(f"extended, the sampled ids are kept: {following.tokens[: len(sampled)] == sampled}")


def servers_that_cannot_be_trusted() -> None:
    """What a server leaves out or changes is found in the reply, and said."""
    engine = demo_engine()
    with serve(engine, wire="vllm", model="demo") as server:
        policy = VLLMPolicy(
            model="demo",
            format=PolicyFormat.resolve("demo", tokenizer=engine.tokenizer),
            base_url=f"{server.url}/v1",
            api_key="EMPTY",
            default_params=SamplingParams(temperature=1.0, max_tokens=64, logprobs=0),
        )
        prompt = policy.prepare([{"role": "user", "content": "Flip the coin."}], DEMO_TOOLS)
        for kind in FAULTS:
            server.set_fault(Fault(kind))
            result = policy.generate(prompt)
            assert result.meta is not None
            print(f"{kind}: exact={policy.is_exact(result)}, {len(result.logprobs)} logprobs")
            print(f"  inexact_reason: {result.meta.inexact_reason}")
        policy.close()


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stdout, format="  logged once: %(message)s")
    other_distributions()
    text_instead_of_ids()
    history_rendered_again()
    servers_that_cannot_be_trusted()
