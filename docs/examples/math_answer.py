"""A question, a policy, a text action, a graded answer: one step of training on verifiable rewards."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass

from focus.backends import GenerateResult, Policy, SamplingParams
from focus_testing import ByteTokenizer, EmbeddedPolicy, Engine, ScriptModel

GROUP = 8
NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True)
class Question:
    """A task whose answers a program can grade."""

    text: str
    answer: str

    def grade(self, action: str) -> float:
        """1.0 if the last number of the action is the answer."""
        numbers = NUMBER.findall(action)
        return float(bool(numbers) and numbers[-1] == self.answer)


@dataclass(frozen=True)
class Sample:
    """What a trainer needs of one reply."""

    tokens: tuple[int, ...]
    """The prompt's ids, then the sampled ones."""
    trained: slice
    """Where the sampled ones are."""
    logprobs: tuple[float, ...]
    """Of the sampled ones, under the distribution that they were sampled from."""
    reward: float


def rollout(policy: Policy[str], question: Question, seed: int) -> tuple[str, Sample]:
    prompt = policy.prepare([{"role": "user", "content": question.text}])
    result = policy.generate(prompt, dataclasses.replace(policy.default_params, seed=seed))
    action = policy.parse(result)
    return action, sample(policy, result, question.grade(action))


def sample(policy: Policy[str], result: GenerateResult, reward: float) -> Sample:
    if not policy.is_exact(result) or result.meta is None or result.meta.logprobs_match_sampling is not True:
        raise ValueError(f"not to be trained on: {result.meta}")
    tokens = result.prefix_tokens + result.tokens
    return Sample(tokens, slice(len(result.prefix_tokens), len(tokens)), tuple(result.logprobs), reward)


def advantages(rewards: Sequence[float]) -> list[float]:
    """The reward of each reply over the mean of its group."""
    mean = sum(rewards) / len(rewards)
    return [reward - mean for reward in rewards]


def main() -> None:
    tokenizer = ByteTokenizer()
    replies = {"6 * 7 is 42.": 0.75, "6 * 7 is 48.": 0.25}
    engine = Engine(ScriptModel.replies([replies], tokenizer), tokenizer)
    defaults = SamplingParams(temperature=1.0, max_tokens=64, logprobs=0)
    policy: Policy[str] = EmbeddedPolicy(engine, profile="text", default_params=defaults)
    assert policy.trainable

    question = Question("What is 6 * 7?", "42")
    group = [rollout(policy, question, seed) for seed in range(GROUP)]
    for (action, one), advantage in zip(group, advantages([one.reward for _, one in group]), strict=True):
        start, logprob = one.trained.start, sum(one.logprobs)
        print(f"{action!r} reward {one.reward:.0f} advantage {advantage:+.2f} logprob {logprob:+.4f}", end="")
        print(f" ids {start} + {len(one.tokens) - start}")
        assert len(one.tokens[one.trained]) == len(one.logprobs)


if __name__ == "__main__":
    main()
