"""The type of everything documented, as a user's checker sees it. Checked by mypy and pyright, run by nobody."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, assert_type

import focus
from focus.backends import (
    GenerateMeta,
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
from focus.critic import Critic, PredictFn, score
from focus.errors import (
    AbortedError,
    AuthenticationError,
    BackendError,
    ContextLengthError,
    FocusError,
    InvalidRequestError,
    LogprobWarning,
    ParseError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ScoringError,
    ServerUnavailableError,
)
from focus.extend import ActionKind, AnyRollout, ChatCodec, HFTokenizer, Message
from focus.generation import NativeToolCall
from focus.generation._openai_shared import NativePolicy
from focus.generation.parsing import ActionParser, ToolCall
from focus.generation.parsing.base import TOOL_CALL, tool_turn
from focus.generation.policy import Completion
from focus.generation.slime import PostFn
from focus.generation.types import DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE, DEFAULT_TOP_P

if TYPE_CHECKING:
    import tinker

    from focus_types import LogprobMode


def constants() -> None:
    assert_type([DEFAULT_MAX_TOKENS], list[int])
    assert_type(DEFAULT_TEMPERATURE, float)
    assert_type(DEFAULT_TOP_P, float)
    assert_type(TOOL_CALL, re.Pattern[str])


def aliases(
    token: TokenId,
    message: Message,
    kind: ActionKind,
    mode: LogprobMode,
    completion: Completion,
    post: PostFn,
    predict: PredictFn,
) -> None:
    assert_type(token, int)
    assert_type(message, dict[str, Any])
    kinds: Literal["text", "tool", "tokens"] = kind
    assert_type(kinds, Literal["text", "tool", "tokens"])
    modes: Literal["raw", "tempered", "behavior", "unknown"] = mode
    assert_type(modes, Literal["raw", "tempered", "behavior", "unknown"])
    assert_type(completion, Callable[[Sequence[int], SamplingParams | None], Awaitable[GenerateResult]])
    assert_type(post, Callable[..., Awaitable[Mapping[str, Any]]])
    assert_type(predict(["context"]), Sequence[float] | Awaitable[Sequence[float]])


def generate_result(result: GenerateResult) -> None:
    assert_type(GenerateResult(), GenerateResult)
    assert_type(result.tokens, tuple[TokenId, ...])
    assert_type(result.prefix_tokens, tuple[TokenId, ...])
    assert_type(result.text, str)
    assert_type(result.stop_reason, str)
    assert_type(result.matched_stop, int | str | None)
    assert_type(result.logprobs, list[float])
    assert_type(result.top_logprobs, list[dict[str, float]] | None)
    assert_type(result.prompt_logprobs, list[float | None])
    assert_type(result.prompt_top_logprobs, list[dict[str, float] | None] | None)
    assert_type(result.entropy, float)
    assert_type(result.exact_generation, bool)
    assert_type(result.native_tool_calls, tuple[NativeToolCall, ...] | None)
    assert_type(result.native_output, tuple[dict[str, Any], ...])
    assert_type(result.meta, GenerateMeta | None)


def generate_meta(meta: GenerateMeta) -> None:
    assert_type(GenerateMeta(), GenerateMeta)
    assert_type(meta.inexact_reason, str | None)
    assert_type(meta.logprob_mode, Literal["raw", "tempered", "behavior", "unknown"])
    assert_type(meta.logprobs_match_sampling, bool | None)
    assert_type(meta.weight_versions, tuple[tuple[str, int, int], ...])
    assert_type(meta.cached_tokens, int | None)
    assert_type(meta.context_full, bool)
    assert_type(meta.request_id, str | None)
    assert_type(meta.server, str | None)
    assert_type(meta.attempts, int)
    assert_type(meta.latency_s, float)
    assert_type(meta.sampling, SamplingParams | None)


def server_report(report: ServerReport) -> None:
    assert_type(ServerReport(backend="vllm"), ServerReport)
    assert_type(report.backend, str)
    assert_type(report.url, str)
    assert_type(report.served_models, tuple[str, ...])
    assert_type(report.version, str | None)
    assert_type(report.context_length, int | None)
    assert_type(report.ids_confirmed, bool)
    assert_type(report.prompt_confirmed, bool | None)
    assert_type(report.text_agrees, bool | None)
    assert_type(report.logprob_mode, Literal["raw", "tempered", "behavior", "unknown"])
    assert_type(report.stop_token_kept, bool | None)
    assert_type(report.stop_string_limit, int | None)
    assert_type(report.notes, tuple[str, ...])


def sampling_params(params: SamplingParams) -> None:
    assert_type(SamplingParams(temperature=0.7, max_tokens=512, logprobs=0), SamplingParams)
    assert_type(params.temperature, float | None)
    assert_type(params.max_tokens, int | None)
    assert_type(params.top_p, float | None)
    assert_type(params.top_k, int | None)
    assert_type(params.stop, list[str] | None)
    assert_type(params.logprobs, int | None)
    assert_type(params.prompt_logprobs, int | None)
    assert_type(params.repetition_penalty, float | None)
    assert_type(params.seed, int | None)


def calls(native: NativeToolCall, call: ToolCall) -> None:
    assert_type(NativeToolCall("name", "{}", "id"), NativeToolCall)
    assert_type(native.name, str)
    assert_type(native.arguments, str)
    assert_type(native.call_id, str)
    assert_type(ToolCall("name", "{}", "id"), ToolCall)
    assert_type(call.name, str)
    assert_type(call.arguments, str)
    assert_type(call.call_id, str)


def actions(turn: ToolTurn, chunk: TokenChunk, decode: Callable[[str], ToolCall]) -> None:
    assert_type(ToolTurn("text"), ToolTurn)
    assert_type(turn.text, str)
    assert_type(turn.tool_calls, tuple[ToolCall, ...])
    assert_type(turn.reasoning, str)
    assert_type(TokenChunk(tokens=(10, 20), finished=False), TokenChunk)
    assert_type(chunk.tokens, tuple[TokenId, ...])
    assert_type(chunk.finished, bool)
    assert_type(tool_turn("text", decode), ToolTurn)


def parser(parser: ActionParser[bytes], result: GenerateResult) -> None:
    assert_type(parser.trainable, bool)
    assert_type(parser.requires_native_channel, bool)
    assert_type(parser.action, Literal["text", "tool", "tokens"] | None)
    assert_type(parser.parse(result), bytes)


def parsers(
    hermes: HermesToolCallParser,
    qwen_xml: QwenXMLToolCallParser,
    native: NativeToolCallParser,
    text: TextActionParser,
    token_chunk: TokenChunkParser,
    result: GenerateResult,
) -> None:
    assert_type(HermesToolCallParser(reasoning_open=[1]), HermesToolCallParser)
    assert_type(hermes.parse(result), ToolTurn)
    assert_type(hermes.reasoning_open, tuple[TokenId, ...])
    assert_type(hermes.with_reasoning_open([1]), HermesToolCallParser)
    assert_type(hermes.action, Literal["text", "tool", "tokens"] | None)
    assert_type(QwenXMLToolCallParser(reasoning_open=[1], tools=[{}]), QwenXMLToolCallParser)
    assert_type(qwen_xml.parse(result), ToolTurn)
    assert_type(qwen_xml.reasoning_open, tuple[TokenId, ...])
    assert_type(qwen_xml.with_reasoning_open([1]), QwenXMLToolCallParser)
    assert_type(qwen_xml.action, Literal["text", "tool", "tokens"] | None)
    assert_type(NativeToolCallParser(), NativeToolCallParser)
    assert_type(native.parse(result), ToolTurn)
    assert_type(native.trainable, bool)
    assert_type(native.requires_native_channel, bool)
    assert_type(native.action, Literal["text", "tool", "tokens"] | None)
    assert_type(TextActionParser(), TextActionParser)
    assert_type(text.parse(result), str)
    assert_type(text.action, Literal["text", "tool", "tokens"] | None)
    assert_type(TokenChunkParser(), TokenChunkParser)
    assert_type(token_chunk.parse(result), TokenChunk)
    assert_type(token_chunk.action, Literal["text", "tool", "tokens"] | None)


def codec(codec: ChatCodec, messages: list[Message]) -> None:
    assert_type(codec.stop_tokens, frozenset[TokenId])
    assert_type(codec.vocab_size, int | None)
    assert_type(codec.encode("text"), tuple[TokenId, ...])
    assert_type(codec.decode([1], skip_special_tokens=True), str)
    assert_type(codec.render(messages, [{}]), tuple[TokenId, ...])
    assert_type(codec.extend([1], messages, [{}]), tuple[TokenId, ...] | None)


def tokenizer(tokenizer: HFTokenizer, rollout: AnyRollout) -> None:
    assert_type(tokenizer.eos_token_id, Any)
    assert_type(tokenizer.chat_template, Any)
    assert_type(tokenizer.get_added_vocab(), Mapping[str, int])
    assert_type(tokenizer.encode("text", add_special_tokens=False), list[int])
    assert_type(tokenizer.decode([1], skip_special_tokens=False), str | list[str])
    assert_type(tokenizer.convert_tokens_to_ids("</s>"), int | list[int])
    assert_type(tokenizer.apply_chat_template([], None, add_generation_prompt=True, tokenize=False), Any)
    assert_type(rollout.messages, Sequence[Message])


def policy_format(
    format: PolicyFormat[int],
    codec: ChatCodec,
    parser: ActionParser[int],
    text: TextActionParser,
    tokenizer: HFTokenizer,
) -> None:
    assert_type(PolicyFormat("name", codec, parser), PolicyFormat[int])
    assert_type(PolicyFormat.resolve("model", tokenizer=tokenizer, profile="token_chunk"), PolicyFormat[Any])
    assert_type(format.name, str)
    assert_type(format.codec, ChatCodec)
    assert_type(format.parser, ActionParser[int])
    prompt = format.prepare([{"role": "user", "content": "hi"}], tools=[{}])
    assert_type(prompt, PreparedPrompt)
    messages = [{"role": "user", "content": "hi"}]
    assert_type(format.extend(prompt, GenerateResult(), messages), PreparedPrompt)
    format.record_reply(GenerateResult(), [{"role": "user", "content": "hi"}])
    assert_type(format.with_parser(text), PolicyFormat[str])
    assert_type(format.with_template(enable_thinking=False), PolicyFormat[int])


def prepared_prompt(prompt: PreparedPrompt, format: PolicyFormat[int]) -> None:
    assert_type(PreparedPrompt((1,), format, (), ()), PreparedPrompt)
    assert_type(prompt.tokens, tuple[TokenId, ...])
    assert_type(prompt.format, PolicyFormat[Any])
    assert_type(prompt.exact_continuation, bool)
    assert_type(prompt.refusal, str | None)
    assert_type(prompt.messages, list[Message])
    assert_type(prompt.tools, list[dict[str, Any]])


async def policy(policy: Policy[int], format: PolicyFormat[int], complete: Completion, result: GenerateResult) -> None:
    made = Policy(
        format=format,
        model="custom",
        served_model=None,
        default_params=SamplingParams(),
        complete=complete,
        exact=True,
        native=False,
    )
    assert_type(made, Policy[int])
    assert_type(policy.format, PolicyFormat[int])
    assert_type(policy.model, str)
    assert_type(policy.served_model, str)
    assert_type(policy.default_params, SamplingParams)
    assert_type(policy.context_length, int | None)
    policy.context_length = 4096
    assert_type(policy.trainable, bool)
    messages = [{"role": "user", "content": "hi"}]
    prompt = policy.prepare(messages, tools=[{}])
    assert_type(prompt, PreparedPrompt)
    assert_type(policy.extend(prompt, result, messages), PreparedPrompt)
    policy.validate_context(messages)
    assert_type(await policy.agenerate(prompt, SamplingParams()), GenerateResult)
    assert_type(policy.generate(prompt, sampling_params=SamplingParams()), GenerateResult)
    assert_type(await policy.agenerate_tokens(tokens=[1], sampling_params=None), GenerateResult)
    assert_type(policy.generate_tokens([1]), GenerateResult)
    assert_type(policy.decode([1], skip_special_tokens=True), str)
    assert_type(policy.parse(result), int)
    assert_type(policy.is_exact(result), bool)
    policy.record_reply(result, [{"role": "user", "content": "hi"}])
    policy.startup_check()
    policy.close()
    await policy.aclose()


def what_may_be_left_out(
    format: PolicyFormat[int],
    post: PostFn,
    client: tinker.SamplingClient,
    codec: ChatCodec,
    policy: Policy[int],
    messages: list[Message],
) -> None:
    assert_type(Policy(format=format), Policy[int])
    VLLMPolicy(model="model", base_url="http://localhost:8000/v1", api_key="EMPTY")
    SGLangPolicy(model="model", base_url="http://localhost:30000")
    SlimePolicy(post, "http://router/generate", model="model")
    TinkerPolicy(client, model="model")
    NativePolicy(model="model")
    OpenAIChatPolicy(model="model")
    OpenAIResponsesPolicy(model="model")
    VLLMCritic(base_url="http://127.0.0.1:8001", model="critic")
    HermesToolCallParser()
    QwenXMLToolCallParser()
    assert_type(PolicyFormat.resolve("model"), PolicyFormat[Any])
    assert_type(format.prepare(messages), PreparedPrompt)
    assert_type(policy.prepare(messages), PreparedPrompt)
    assert_type(policy.generate(policy.prepare(messages)), GenerateResult)
    assert_type(policy.decode([1]), str)
    assert_type(codec.decode([1]), str)
    assert_type(codec.render(messages), tuple[TokenId, ...])
    assert_type(codec.extend([1], messages), tuple[TokenId, ...] | None)


def covariance(
    policy: Policy[int], format: PolicyFormat[int], parser: ActionParser[int]
) -> tuple[Policy[object], PolicyFormat[object], ActionParser[object]]:
    return (policy, format, parser)


async def vllm(policy: VLLMPolicy, prompt: PreparedPrompt) -> None:
    VLLMPolicy(
        model="model",
        format=None,
        profile="hermes",
        served_model="served",
        base_url="http://localhost:8000/v1",
        api_key="EMPTY",
        default_params=SamplingParams(max_tokens=512, logprobs=0),
        timeout=60.0,
    )
    policy.startup_check()
    assert_type(policy.probe([1]), ServerReport)
    assert_type(await policy.aprobe(), ServerReport)
    assert_type(policy.generate(prompt), GenerateResult)
    assert_type(policy.generate_tokens(prefix_tokens=[1]), GenerateResult)
    assert_type(await policy.agenerate_tokens(prefix_tokens=[1]), GenerateResult)
    policy.close()
    await policy.aclose()


async def sglang(policy: SGLangPolicy, prompt: PreparedPrompt) -> None:
    SGLangPolicy(
        model="model",
        base_url="http://localhost:30000",
        format=None,
        profile="hermes",
        default_params=None,
        api_key=None,
        headers={"X-Routing-Key": "1"},
        timeout=60.0,
    )
    policy.startup_check()
    assert_type(policy.probe([1]), ServerReport)
    assert_type(await policy.aprobe(), ServerReport)
    assert_type(policy.generate(prompt), GenerateResult)
    assert_type(policy.generate_tokens(prefix_tokens=[1]), GenerateResult)
    assert_type(await policy.agenerate_tokens(prefix_tokens=[1]), GenerateResult)
    policy.close()
    await policy.aclose()


async def slime(policy: SlimePolicy, post: PostFn) -> None:
    SlimePolicy(
        post, "http://router/generate", model="model", format=None, profile="hermes", default_params=None, headers={}
    )
    policy.startup_check()
    assert_type(policy.probe([1]), ServerReport)
    assert_type(await policy.aprobe(), ServerReport)
    assert_type(await policy.agenerate_tokens(prefix_tokens=[1]), GenerateResult)


async def tinker_policy(policy: TinkerPolicy, client: tinker.SamplingClient) -> None:
    TinkerPolicy(client, model="model", format=None, profile="hermes", default_params=None)
    policy.startup_check()
    assert_type(policy.probe([1]), ServerReport)
    assert_type(await policy.aprobe(), ServerReport)
    assert_type(await policy.agenerate_tokens(prefix_tokens=[1]), GenerateResult)
    policy.close()
    with policy as entered:
        assert_type(entered, TinkerPolicy)


async def openai(
    native: NativePolicy, chat: OpenAIChatPolicy, responses: OpenAIResponsesPolicy, prompt: PreparedPrompt
) -> None:
    NativePolicy(
        model="model",
        format=None,
        default_params=None,
        api_key=None,
        base_url=None,
        system_prompt=None,
        locked_sampling=False,
    )
    native.validate_context([{"role": "user", "content": "hi"}])
    native.startup_check()
    native.close()
    await native.aclose()
    OpenAIChatPolicy(
        model="model",
        format=None,
        default_params=None,
        api_key=None,
        base_url=None,
        system_prompt=None,
        locked_sampling=False,
    )
    assert_type(await chat.agenerate(prompt, SamplingParams()), GenerateResult)
    OpenAIResponsesPolicy(
        model="model",
        format=None,
        default_params=None,
        api_key=None,
        base_url=None,
        system_prompt=None,
        locked_sampling=False,
        reasoning_effort="low",
    )
    assert_type(await responses.agenerate(prompt, SamplingParams()), GenerateResult)


async def critic(critic: Critic, rollout: AnyRollout, vllm: VLLMCritic, render: Callable[[AnyRollout], str]) -> None:
    assert_type(focus.Critic.constant(0.5, context=render, timeout=30.0), Critic)
    assert_type(Critic.constant(0.5), Critic)
    assert_type(Critic.from_fn(lambda contexts: [0.5 for _ in contexts], timeout=30.0), Critic)
    assert_type(critic.timeout, float | None)
    assert_type(critic.render, Callable[[AnyRollout], str] | None)
    assert_type(await critic.predict(["context"]), Sequence[float])
    assert_type(critic.context(rollout), str)
    await critic.aclose()
    assert_type(await score(critic, ["context"]), list[float])
    VLLMCritic(
        base_url="http://127.0.0.1:8001",
        model="focus-critic",
        api_key="EMPTY",
        reduce="last",
        http_timeout=60.0,
        timeout=None,
        context=render,
        client=None,
    )
    assert_type(vllm.base_url, str)
    assert_type(vllm.model, str)
    assert_type(vllm.reduce, str)
    assert_type(vllm.timeout, float | None)
    assert_type(vllm.render, Callable[[AnyRollout], str] | None)
    assert_type(vllm.batch_tokens, int)
    assert_type(vllm.in_flight, int)
    assert_type(await vllm.predict(["context"]), list[float])
    assert_type(await vllm.predict_tokens([[1, 2]]), list[float])
    assert_type(await vllm.values_at([1, 2], positions=[0]), list[float])
    assert_type(await vllm.startup_check(), ServerReport)
    await vllm.aclose()


def errors(backend: BackendError, scoring: ScoringError, aborted: AbortedError) -> Iterator[Exception]:
    assert_type(backend.status, int | None)
    assert_type(backend.request_id, str | None)
    assert_type(backend.body, str | None)
    assert_type(backend.attempts, int)
    assert_type(scoring.index, int | None)
    assert_type(scoring.values, tuple[float | None, ...] | None)
    assert_type(aborted.result, GenerateResult | None)
    ours: list[FocusError] = [
        BackendError("message", status=500, request_id="1", body="{}", attempts=2),
        AbortedError("message", GenerateResult()),
        ScoringError("message", index=0, values=[None, 0.5]),
    ]
    yield from ours
    of_backends: list[BackendError] = [
        AuthenticationError("401"),
        ContextLengthError("400"),
        RateLimitError("429"),
        ServerUnavailableError("503"),
        RequestTimeoutError("deadline"),
        ProtocolError("html"),
    ]
    yield from of_backends
    of_values: list[ValueError] = [InvalidRequestError("model"), ParseError("reply")]
    yield from of_values
    timeout: TimeoutError = RequestTimeoutError("deadline")
    yield timeout
    warning: UserWarning = LogprobWarning("raw")
    yield warning
