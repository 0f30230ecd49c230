"""A reply generated in token chunks: a critic scores every checkpoint, the best one is continued exactly."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass

from focus import Critic
from focus.backends import Policy, SamplingParams, TokenChunk
from focus.critic import score
from focus.extend import Message
from focus_testing import ByteTokenizer, EmbeddedPolicy, Engine, ScriptModel

BRANCHES = 4
CHUNK = 5
QUESTION = "Add 1, 2, 3 and 4, one after the other."
REPLIES = {
    "1+2=3, 3+3=6, 6+4=10": 0.2,
    "1+2=3, 3+3=6, 6+4=11": 0.2,
    "1+2=3, 3+3=7, 7+4=11": 0.3,
    "1+2=4, 4+3=7, 7+4=11": 0.3,
}
STEP = re.compile(r"(\d+)\+(\d+)=(\d+)(?=,|$)")


@dataclass(frozen=True)
class Checkpoint:
    """A reply up to some token."""

    messages: Sequence[Message]
    """The conversation with the reply as far as it goes, for the critic to read."""
    tokens: tuple[int, ...]
    """The prompt's ids and the sampled ones: what the next chunk continues."""
    logprobs: tuple[float, ...] = ()
    finished: bool = False


def correct_steps(contexts: Sequence[str]) -> list[float]:
    """A value model of our own: right additions count one, wrong ones minus one."""
    return [
        sum(1.0 if int(a) + int(b) == int(c) else -1.0 for a, b, c in STEP.findall(context)) for context in contexts
    ]


async def grow(policy: Policy[TokenChunk], start: Checkpoint, prompt_length: int, seed: int) -> Checkpoint:
    """One more chunk. Each branch has a seed of its own: with one seed, all would be equal."""
    params = dataclasses.replace(policy.default_params, seed=seed)
    result = await policy.agenerate_tokens(start.tokens, params)
    assert policy.is_exact(result)
    chunk = policy.parse(result)
    tokens = start.tokens + chunk.tokens
    reply = policy.decode(tokens[prompt_length:], skip_special_tokens=True)
    messages = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": reply}]
    return Checkpoint(messages, tokens, start.logprobs + tuple(result.logprobs), chunk.finished)


async def search(policy: Policy[TokenChunk], critic: Critic) -> Checkpoint:
    messages = [{"role": "user", "content": QUESTION}]
    prompt = policy.prepare(messages)
    best = Checkpoint(messages, prompt.tokens)
    seed = 0
    while not best.finished:
        seeds = range(seed, seed + BRANCHES)
        checkpoints = await asyncio.gather(*[grow(policy, best, len(prompt.tokens), one) for one in seeds])
        values = await score(critic, [critic.context(checkpoint) for checkpoint in checkpoints])
        value, at = max(zip(values, range(BRANCHES), strict=True), key=lambda pair: pair[0])
        best, seed = checkpoints[at], seed + BRANCHES
        print(f"{values} -> {value} {best.messages[-1]['content']!r}")
    return best


async def main() -> None:
    tokenizer = ByteTokenizer()
    engine = Engine(ScriptModel.replies([REPLIES], tokenizer), tokenizer)
    defaults = SamplingParams(temperature=1.0, max_tokens=CHUNK, logprobs=0)
    policy: Policy[TokenChunk] = EmbeddedPolicy(engine, profile="token_chunk", default_params=defaults)
    best = await search(policy, Critic.from_fn(correct_steps, timeout=10.0))

    # The chunks together are one reply: scored in one piece it has the log-probabilities of its chunks.
    whole = dataclasses.replace(defaults, max_tokens=1, prompt_logprobs=0)
    scored = (await policy.agenerate_tokens(best.tokens, whole)).prompt_logprobs[-len(best.logprobs) :]
    worst = max(abs(one - (two or 0.0)) for one, two in zip(best.logprobs, scored, strict=True))
    print(f"{len(best.logprobs)} tokens, logprob {sum(best.logprobs):+.4f}, off by at most {worst:.6f} in one piece")


if __name__ == "__main__":
    asyncio.run(main())
