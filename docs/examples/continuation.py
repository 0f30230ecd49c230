"""Exact continuation over turns, and a conversation that cannot be continued exactly."""

from __future__ import annotations

import json
from typing import Any

from focus.backends import SamplingParams
from focus_testing import DEMO_TOOLS, EmbeddedPolicy


def main() -> None:
    policy = EmbeddedPolicy(default_params=SamplingParams(temperature=1.0, max_tokens=64, logprobs=0, seed=7))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Flip the coin."}]
    prompt = policy.prepare(messages, DEMO_TOOLS)
    trajectory = prompt.tokens

    for turn in range(4):
        result = policy.generate(prompt)
        trajectory += result.tokens
        policy.record_reply(result, messages)
        calls = policy.parse(result).tool_calls
        new = [{"role": "tool", "content": json.dumps("heads")} for _ in calls] or [
            {"role": "user", "content": "Sure?"}
        ]
        messages += new
        prompt = policy.extend(prompt, result, messages)
        # Everything that was sampled so far is in the next prompt, id for id.
        assert prompt.tokens[: len(trajectory)] == trajectory
        print(f"turn {turn}: {len(result.tokens)} sampled, exact={prompt.exact_continuation}, {len(prompt.tokens)} ids")
        trajectory = prompt.tokens

    # A compacted history holds other ids: the prompt is rendered again and says so.
    result = policy.generate(prompt)
    messages = [{"role": "user", "content": "Summary: heads."}, {"role": "assistant", "content": result.text}]
    following = policy.extend(prompt, result, [*messages, {"role": "user", "content": "Again."}])
    print(f"compacted: exact={following.exact_continuation}, {following.refusal}")


if __name__ == "__main__":
    main()
