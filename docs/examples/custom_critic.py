"""A critic of your own: state that training updates, and a text of its own for each checkpoint."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from focus import Critic
from focus.critic import score
from focus.extend import AnyRollout, Message


@dataclass
class Rollout:
    messages: list[Message]


class TurnCritic(Critic):
    """The mean return that was seen from conversations with as many tool results."""

    timeout = 5.0

    def __init__(self) -> None:
        self._returns: defaultdict[str, list[float]] = defaultdict(list)

    def context(self, rollout: AnyRollout) -> str:
        # The same text is scored and trained on: it must be the same for the same conversation.
        return f"{sum(message['role'] == 'tool' for message in rollout.messages)} tool results"

    async def predict(self, contexts: Sequence[str]) -> list[float]:
        return [sum(seen) / len(seen) if (seen := self._returns.get(one)) else 0.0 for one in contexts]

    def train(self, rollout: AnyRollout, remaining_return: float) -> None:
        self._returns[self.context(rollout)].append(remaining_return)


async def main() -> None:
    start = Rollout([{"role": "user", "content": "What is in a.txt?"}])
    later = Rollout([*start.messages, {"role": "tool", "content": "forty-two"}])
    critic = TurnCritic()
    for rollout, value in ((start, 0.0), (start, 1.0), (later, 1.0)):
        critic.train(rollout, value)
    contexts = [critic.context(one) for one in (start, later)]
    print(contexts)
    print(await score(critic, contexts))


if __name__ == "__main__":
    asyncio.run(main())
