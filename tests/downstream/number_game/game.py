"""The game: an agent asks a policy for numbers until one is right."""

from __future__ import annotations

from dataclasses import dataclass, field

from focus.backends import Policy, PreparedPrompt
from focus.critic import Critic, score
from focus.extend import Message

__all__ = ["Game", "play"]


@dataclass
class Game:
    """One conversation, as a critic and a trainer read it."""

    messages: list[Message] = field(default_factory=list[Message])
    guesses: list[int] = field(default_factory=list[int])
    values: list[float] = field(default_factory=list[float])
    prompts: list[PreparedPrompt] = field(default_factory=list[PreparedPrompt])


async def play(policy: Policy[int], critic: Critic, secret: int, turns: int = 8) -> Game:
    """Generates with any policy whose action is a number; gives up after some turns."""
    game = Game(messages=[{"role": "user", "content": "Guess my number."}])
    prompt = policy.prepare(game.messages)
    for _ in range(turns):
        result = await policy.agenerate(prompt)
        policy.record_reply(result, game.messages)
        game.prompts.append(prompt)
        game.guesses.append(policy.parse(result))
        game.values.extend(await score(critic, [critic.context(game)]))
        if game.guesses[-1] == secret:
            break
        hint = "higher" if game.guesses[-1] < secret else "lower"
        game.messages.append({"role": "user", "content": hint})
        prompt = policy.extend(prompt, result, game.messages)
    return game
