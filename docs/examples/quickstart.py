"""A question, a tool call, its result, the answer: exact tokens and log-probabilities, nothing downloaded."""

from __future__ import annotations

import json
from typing import Any

from focus.backends import GenerateResult, Policy, SamplingParams, ToolTurn
from focus_testing import DEMO_TOOLS, EmbeddedPolicy


def show(policy: Policy[Any], result: GenerateResult) -> None:
    """Print each token with its id and log-probability, as few lines as the reply allows."""
    print(f"  {len(result.tokens)} tokens, stop={result.stop_reason!r} matched={result.matched_stop!r}", end="")
    print(f", exact={policy.is_exact(result)}, entropy={result.entropy:.4f} nats/token")
    for token, logprob in zip(result.tokens, result.logprobs, strict=True):
        if logprob < -1e-6 or token == result.matched_stop:
            print(f"    id {token:3d}  {policy.decode([token])!r:12}  logprob {logprob:+.4f}")
    print(f"    ids {list(result.tokens)[:12]} ...")


def flip_coin(times: int) -> str:
    return json.dumps(["heads"] * times)


policy = EmbeddedPolicy(default_params=SamplingParams(temperature=1.0, max_tokens=128, logprobs=0, seed=7))
messages: list[dict[str, Any]] = [{"role": "user", "content": "Flip the coin and tell me what it shows."}]

prompt = policy.prepare(messages, DEMO_TOOLS)
result = policy.generate(prompt)
print(f"prompt of {len(prompt.tokens)} ids -> {result.text!r}")
show(policy, result)

turn: ToolTurn = policy.parse(result)
call = turn.tool_calls[0]
print(f"  parsed tool call: {call.name}({call.arguments})")

policy.record_reply(result, messages)
messages.append({"role": "tool", "name": call.name, "content": flip_coin(**json.loads(call.arguments))})

# The next prompt starts with exactly the ids that were sent and sampled; nothing is rendered or tokenised again.
following = policy.extend(prompt, result, messages)
assert following.exact_continuation
assert following.tokens[: len(prompt.tokens + result.tokens)] == prompt.tokens + result.tokens

answer = policy.generate(following)
print(f"\nprompt of {len(following.tokens)} ids -> {answer.text!r}")
show(policy, answer)
