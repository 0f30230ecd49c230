"""Score the checkpoints of a rollout: with a function, then with a value model behind vLLM's wire on loopback."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from focus import Critic
from focus.backends import VLLMCritic
from focus.critic import score
from focus.errors import ScoringError
from focus_testing import ByteTokenizer, serve


@dataclass
class Checkpoint:
    messages: list[dict[str, Any]]


MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "What is 2 + 3?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_x7", "function": {"name": "add", "arguments": '{"x": 2, "y": 3}'}}],
    },
    {"role": "tool", "tool_call_id": "call_x7", "content": "5"},
    {"role": "assistant", "content": "It is 5."},
]
CHECKPOINTS = [Checkpoint(MESSAGES[:count]) for count in (1, 3, 4)]


async def main() -> None:
    wordy = Critic.from_fn(lambda contexts: [-len(context) / 100 for context in contexts], timeout=5.0)
    contexts = [wordy.context(checkpoint) for checkpoint in CHECKPOINTS]
    print(contexts[-1])
    print("\nfrom a function:   ", await score(wordy, contexts))

    # The loopback server's value of a token depends on the token alone: (t % 63 - 31) / 10.
    with serve(wire="pooling", task="token_classify") as server:
        critic = VLLMCritic(base_url=server.url, model="focus", reduce="last", timeout=30.0)
        print("the server gives   ", (await critic.startup_check()).notes[0])
        print("from a value model:", [round(value, 4) for value in await score(critic, contexts)])

        tokens = ByteTokenizer().encode("A reply 🦜")
        print("at every byte of 🦜:", [round(v, 4) for v in await critic.values_at(tokens, [8, 9, 10, 11])])
        try:
            await critic.predict_tokens([tokens, [10_000]])
        except ScoringError as error:
            print(f"context {error.index} is bad, the others are {error.values}")
        await critic.aclose()


if __name__ == "__main__":
    asyncio.run(main())
