"""``focus demo``: a conversation with a tool, played by the embedded engine and shown token by token."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from focus_cli.failure import reported
from focus_cli.formats import BYTE
from focus_cli.records import Conversation, Record, Settings, make_record
from focus_format import Policy, PreparedPrompt
from focus_types import GenerateResult, SamplingParams

__all__ = ["demo"]


def demo(
    seed: Annotated[int, typer.Option(help="Another one may flip another side.")] = 7,
    temperature: Annotated[float, typer.Option(help="Sampling temperature; 0 is greedy.")] = 1.0,
) -> None:
    """Show a conversation with a tool, token by token: no server, no download, known probabilities."""
    with reported():
        from focus_cli.terminal import new_console, show_legend, show_reply, show_text
        from focus_testing import DEMO_TOOLS, EmbeddedPolicy

        params = SamplingParams(temperature=temperature, max_tokens=128, logprobs=2, seed=seed)
        policy = EmbeddedPolicy(model=BYTE, default_params=params)
        console = new_console()
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Flip the coin and tell me what it shows."}]

        show_text(console, "user", messages[0]["content"])
        prompt = policy.prepare(messages, DEMO_TOOLS)
        result = policy.generate(prompt)
        show_legend(console)
        show_reply(console, _record(policy, result, params), policy.format.codec, heading="assistant")

        policy.record_reply(result, messages)
        call = policy.parse(result).tool_calls[0]
        told = json.dumps(["heads"] * json.loads(call.arguments)["times"])
        messages.append({"role": "tool", "name": call.name, "content": told})
        show_text(console, "\ntool", told)

        following = policy.extend(prompt, result, messages)
        answer = policy.generate(following)
        show_reply(console, _record(policy, answer, params), policy.format.codec, heading="assistant")
        show_text(console, "\ntokens", _continuation(prompt, result, following))


def _record(policy: Policy[Any], result: GenerateResult, params: SamplingParams) -> Record:
    settings = Settings("embedded", BYTE, BYTE, None, params)
    return make_record(policy, result, Conversation(), 1, "", settings)


def _continuation(prompt: PreparedPrompt, result: GenerateResult, following: PreparedPrompt) -> str:
    kept = len(prompt.tokens) + len(result.tokens)
    exact = following.tokens[:kept] == prompt.tokens + result.tokens
    return (
        f"the second prompt has {len(following.tokens)} ids; the first {kept} are those of the first prompt and its"
        f" reply: {'every one the same' if exact else 'not the same'}"
    )
