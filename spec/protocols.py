"""What a downstream author types against, stated apart from the library, and who satisfies it.

A policy, parser, codec or critic of your own needs these members and no base class of ours; subclass `Policy`,
`ActionParser` or `Critic` where you want their behaviour, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from focus.backends import (
    GenerateResult,
    HermesToolCallParser,
    NativeToolCallParser,
    OpenAIChatPolicy,
    OpenAIResponsesPolicy,
    Policy,
    PolicyFormat,
    PreparedPrompt,
    QwenXMLToolCallParser,
    SamplingParams,
    ServerReport,
    SGLangPolicy,
    SlimePolicy,
    TextActionParser,
    TinkerPolicy,
    TokenChunk,
    TokenChunkParser,
    TokenId,
    ToolTurn,
    VLLMCritic,
    VLLMPolicy,
)
from focus.critic import Critic
from focus.extend import ActionKind, AnyRollout, ChatCodec, Message
from focus.generation._openai_shared import NativePolicy
from focus.generation.parsing import ActionParser
from focus.generation.policy import Completion
from focus.generation.slime import PostFn
from focus_format import ChatTemplateCodec
from focus_testing import EmbeddedPolicy

__all__ = ["CodecLike", "CompletionLike", "CriticLike", "ParserLike", "PolicyLike", "PostLike", "ProbingPolicyLike"]


class PolicyLike[A](Protocol):
    """What an agent calls. Token ids go by position: backends name that parameter ``prefix_tokens``."""

    @property
    def format(self) -> PolicyFormat[A]: ...
    @property
    def model(self) -> str: ...
    @property
    def served_model(self) -> str: ...
    @property
    def default_params(self) -> SamplingParams: ...
    @property
    def context_length(self) -> int | None: ...
    @property
    def trainable(self) -> bool: ...
    def prepare(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()) -> PreparedPrompt: ...
    def extend(self, prompt: PreparedPrompt, result: GenerateResult, messages: Sequence[Message]) -> PreparedPrompt: ...
    def validate_context(self, messages: Sequence[Message]) -> None: ...
    async def agenerate(
        self, prompt: PreparedPrompt, sampling_params: SamplingParams | None = None
    ) -> GenerateResult: ...
    def generate(self, prompt: PreparedPrompt, sampling_params: SamplingParams | None = None) -> GenerateResult: ...
    async def agenerate_tokens(
        self, tokens: Sequence[TokenId], /, sampling_params: SamplingParams | None = None
    ) -> GenerateResult: ...
    def generate_tokens(
        self, tokens: Sequence[TokenId], /, sampling_params: SamplingParams | None = None
    ) -> GenerateResult: ...
    def decode(self, tokens: Sequence[int], *, skip_special_tokens: bool = False) -> str: ...
    def parse(self, result: GenerateResult) -> A: ...
    def is_exact(self, result: GenerateResult) -> bool: ...
    def record_reply(self, result: GenerateResult, messages: list[Message]) -> None: ...
    def startup_check(self) -> None: ...
    def close(self) -> None: ...
    async def aclose(self) -> None: ...


class ProbingPolicyLike[A](PolicyLike[A], Protocol):
    """A policy that can find out what its server is."""

    def probe(self, prompt: Sequence[TokenId] | None = None) -> ServerReport: ...
    async def aprobe(self, prompt: Sequence[TokenId] | None = None) -> ServerReport: ...


class ParserLike[A](Protocol):
    """What a policy asks of a parser."""

    @property
    def trainable(self) -> bool: ...
    @property
    def requires_native_channel(self) -> bool: ...
    @property
    def action(self) -> ActionKind | None: ...
    def parse(self, result: GenerateResult) -> A: ...


class CodecLike(Protocol):
    """What a format asks of a codec: `focus.extend.ChatCodec`, stated again."""

    @property
    def stop_tokens(self) -> frozenset[TokenId]: ...
    @property
    def vocab_size(self) -> int | None: ...
    def encode(self, text: str) -> tuple[TokenId, ...]: ...
    def decode(self, tokens: Sequence[TokenId], *, skip_special_tokens: bool = False) -> str: ...
    def render(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()) -> tuple[TokenId, ...]: ...
    def extend(
        self, tokens: Sequence[TokenId], messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()
    ) -> tuple[TokenId, ...] | None: ...


class CriticLike(Protocol):
    """What a search asks of a critic."""

    @property
    def timeout(self) -> float | None: ...
    async def predict(self, contexts: Sequence[str]) -> Sequence[float]: ...
    def context(self, rollout: AnyRollout) -> str: ...
    async def aclose(self) -> None: ...


class CompletionLike(Protocol):
    """What a custom policy generates through."""

    async def __call__(
        self, tokens: Sequence[TokenId], sampling_params: SamplingParams | None, /
    ) -> GenerateResult: ...


class PostLike(Protocol):
    """What Slime's policy sends through; ``headers=`` comes only if the policy was given some."""

    async def __call__(self, url: str, payload: dict[str, Any], /, **options: Any) -> Mapping[str, Any]: ...


def policies[A](
    custom: Policy[A],
    vllm: VLLMPolicy,
    sglang: SGLangPolicy,
    slime: SlimePolicy,
    tinker: TinkerPolicy,
    embedded: EmbeddedPolicy,
    native: NativePolicy,
    chat: OpenAIChatPolicy,
    responses: OpenAIResponsesPolicy,
) -> tuple[PolicyLike[A], list[PolicyLike[Any]], list[ProbingPolicyLike[Any]]]:
    return (custom, [embedded, native, chat, responses], [vllm, sglang, slime, tinker])


def parsers[A](
    custom: ActionParser[A],
    hermes: HermesToolCallParser,
    qwen_xml: QwenXMLToolCallParser,
    native: NativeToolCallParser,
    text: TextActionParser,
    token_chunk: TokenChunkParser,
) -> tuple[ParserLike[A], list[ParserLike[ToolTurn]], ParserLike[str], ParserLike[TokenChunk]]:
    return (custom, [hermes, qwen_xml, native], text, token_chunk)


def codecs(ours: ChatTemplateCodec, theirs: CodecLike, protocol: ChatCodec) -> tuple[list[CodecLike], list[ChatCodec]]:
    return ([ours, protocol], [ours, theirs])


def critics(custom: Critic, vllm: VLLMCritic) -> list[CriticLike]:
    return [custom, vllm]


def callbacks(complete: CompletionLike, completion: Completion, post: PostLike) -> tuple[list[Completion], PostFn]:
    return ([complete, completion], post)
