"""Wrong uses that a checker must refuse.

``# E:`` names the error codes of mypy on that line, ``# P:`` the rules of pyright. A missing error fails the check as
an unexpected one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import focus.backends
from focus.backends import (
    GenerateResult,
    Policy,
    PolicyFormat,
    PreparedPrompt,
    SamplingParams,
    SlimePolicy,
    TextActionParser,
    TinkerPolicy,
    TokenChunk,
    VLLMCritic,
    VLLMPolicy,
)
from focus.critic import Critic, score
from focus.errors import BackendError, ScoringError
from focus.extend import ActionKind, ChatCodec
from focus.generation.parsing import ActionParser
from focus.generation.policy import Completion

URL = "http://127.0.0.1:8000"


def names() -> None:
    focus.backends.VLLMPolcy  # E: attr-defined  # P: reportAttributeAccessIssue, reportUnknownMemberType


def constructors(format: PolicyFormat[int], codec: ChatCodec, text: TextActionParser) -> None:
    VLLMPolicy(model="model", base_url=URL)  # E: call-arg  # P: reportCallIssue
    VLLMPolicy("model", base_url=URL, api_key="EMPTY")  # E: call-arg  # P: reportCallIssue
    VLLMPolicy(model="model", base_url=URL, api_key=None)  # E: arg-type  # P: reportArgumentType
    VLLMPolicy(model="model", base_url=URL, api_key="EMPTY", retries=3)  # E: call-arg  # P: reportCallIssue
    SlimePolicy(print, URL, model="model")  # E: arg-type  # P: reportArgumentType
    TinkerPolicy(object(), model="model")  # E: arg-type  # P: reportArgumentType
    Policy(format)  # E: call-arg  # P: reportCallIssue
    PolicyFormat("name", codec)  # E: call-arg  # P: reportCallIssue
    PolicyFormat("name", object(), text)  # E: arg-type  # P: reportArgumentType
    VLLMCritic(base_url=URL, model="critic", http_timeout="60")  # E: arg-type  # P: reportArgumentType
    ActionParser[int]()  # E: abstract  # P: reportAbstractUsage
    Critic()  # E: abstract  # P: reportAbstractUsage


def parameters(params: SamplingParams) -> None:
    SamplingParams(temprature=1.0)  # E: call-arg  # P: reportCallIssue
    SamplingParams(temperature="hot")  # E: arg-type  # P: reportArgumentType
    SamplingParams(stop="\n\n")  # E: arg-type  # P: reportArgumentType
    params.max_tokens = 0.5  # E: assignment  # P: reportAttributeAccessIssue


def records(result: GenerateResult, chunk: TokenChunk, prompt: PreparedPrompt) -> None:
    GenerateResult(tokens=["one"])  # E: arg-type  # P: reportArgumentType
    result.token  # E: attr-defined  # P: reportAttributeAccessIssue, reportUnknownMemberType
    len(result.top_logprobs)  # E: arg-type  # P: reportArgumentType
    chunk.finished = True  # E: misc  # P: reportAttributeAccessIssue
    prompt.tokens.append(1)  # E: attr-defined  # P: reportAttributeAccessIssue, reportUnknownMemberType
    prompt.messages = []  # E: misc  # P: reportAttributeAccessIssue


async def calls(policy: Policy[int], vllm: VLLMPolicy, prompt: PreparedPrompt, result: GenerateResult) -> None:
    policy.generate("text")  # E: arg-type  # P: reportArgumentType
    policy.generate_tokens("text")  # E: arg-type  # P: reportArgumentType
    policy.agenerate(prompt).tokens  # E: attr-defined  # P: reportAttributeAccessIssue, reportUnknownMemberType
    policy.model = "other"  # E: misc  # P: reportAttributeAccessIssue
    policy.context_length = "4096"  # E: assignment  # P: reportAttributeAccessIssue
    policy.record_reply(result, ({"role": "user"},))  # E: arg-type  # P: reportArgumentType
    policy.parse(result).upper()  # E: attr-defined  # P: reportAttributeAccessIssue, reportUnknownMemberType
    vllm.generate_tokens(tokens=[1])  # E: call-arg  # P: reportCallIssue
    await policy.agenerate_tokens(prefix_tokens=[1])  # E: call-arg  # P: reportCallIssue


def variance(policy: Policy[object], format: PolicyFormat[int]) -> tuple[object, ...]:
    narrowed: Policy[int] = policy  # E: assignment  # P: reportAssignmentType
    renamed: PolicyFormat[str] = format  # E: assignment  # P: reportAssignmentType
    kind: ActionKind = "words"  # E: assignment  # P: reportAssignmentType
    return (narrowed, renamed, kind)


def callbacks(format: PolicyFormat[int]) -> Completion:
    def blocking(tokens: Sequence[int], params: SamplingParams | None) -> GenerateResult:
        return GenerateResult()

    async def textual(tokens: Sequence[str], params: SamplingParams | None) -> GenerateResult:
        return GenerateResult()

    completion: Completion = blocking  # E: assignment  # P: reportAssignmentType
    Policy(format=format, complete=textual)  # E: arg-type  # P: reportArgumentType
    Critic.from_fn(lambda contexts: "high")  # E: arg-type, return-value  # P: reportArgumentType
    Critic.constant("high")  # E: arg-type  # P: reportArgumentType
    return completion


async def failures(critic: Critic, error: BackendError) -> None:
    critic.predict(["context"])  # E: unused-coroutine  # P: reportUnusedCoroutine
    await score(critic, 1)  # E: arg-type  # P: reportArgumentType
    ScoringError("message", 0)  # E: call-arg  # P: reportCallIssue
    error.status.bit_length()  # E: union-attr  # P: reportOptionalMemberAccess


class WrongParser(ActionParser[int]):
    trainable = "yes"  # E: assignment  # P: reportAssignmentType

    def parse(self, result: GenerateResult) -> str:  # E: override  # P: reportIncompatibleMethodOverride
        return result.text


class WrongPolicy(Policy[Any]):
    async def agenerate(self, prompt: str) -> GenerateResult:  # E: override  # P: reportIncompatibleMethodOverride
        return GenerateResult(text=prompt)

    def close(self) -> int:  # E: override  # P: reportIncompatibleMethodOverride
        return 0


class WrongCritic(Critic):
    def predict(self, contexts: Sequence[str]) -> list[float]:  # E: override  # P: reportIncompatibleMethodOverride
        return [0.0 for _ in contexts]


class WrongCodec:
    @property
    def stop_tokens(self) -> list[int]:
        return []


def protocols(codec: WrongCodec, text: TextActionParser) -> None:
    PolicyFormat("name", codec, text)  # E: arg-type  # P: reportArgumentType
