"""A critic of its own: the more guesses a conversation holds, the less is left to gain."""

from __future__ import annotations

from collections.abc import Sequence

from focus import Critic
from focus.extend import AnyRollout

__all__ = ["GuessCritic"]


class GuessCritic(Critic):
    """Reads the number of guesses from its input text."""

    async def predict(self, contexts: Sequence[str]) -> list[float]:
        return [1.0 / (1 + int(context)) for context in contexts]

    def context(self, rollout: AnyRollout) -> str:
        return str(sum(message["role"] == "assistant" for message in rollout.messages))
