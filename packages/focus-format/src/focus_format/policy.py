"""Policy: a format and a way to generate, behind one interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import Any

from focus_format.channel import TokenChannel
from focus_format.format import PolicyFormat, PreparedPrompt
from focus_format.sync import run_sync
from focus_format.tool_order import check_tool_order
from focus_types import (
    AbortedError,
    Completion,
    GenerateMeta,
    GenerateResult,
    InvalidRequestError,
    Message,
    ProtocolError,
    SamplingParams,
    TokenId,
)
from focus_types.sampling import merge_params, validate_params

__all__ = ["Policy"]


class Policy[A]:
    """Generate replies through a backend, or through any async function.

    Args:
        format: Codec and default parser.
        model: The model's name.
        served_model: The server's name for it; ``model`` if None.
        default_params: Sampling parameters where a call gives none; copied.
        complete: ``await complete(tokens, params)`` returns a GenerateResult. It gets the call's parameters over
            ``default_params`` and nothing else (None if both are absent), so its own defaults survive.
        exact: The backend preserves token ids.
        native: The backend takes messages and returns structured tool calls, not token ids.

    Raises:
        InvalidRequestError: ``format`` is none, its parser needs structured tool calls and the policy is not native,
            or ``default_params`` hold a value that no backend can mean.
    """

    def __init__(
        self,
        *,
        format: PolicyFormat[A],
        model: str = "custom",
        served_model: str | None = None,
        default_params: SamplingParams | None = None,
        complete: Completion | None = None,
        exact: bool = True,
        native: bool = False,
    ) -> None:
        if not isinstance(format, PolicyFormat):
            raise InvalidRequestError(
                f"format must be a PolicyFormat, got {type(format).__name__}: PolicyFormat.resolve(model) makes one,"
                " and a dialect's name goes into its profile="
            )
        if format.parser.requires_native_channel and not native:
            raise InvalidRequestError(
                f"{type(format.parser).__name__} reads structured tool calls, which {type(self).__name__} does not"
                " return: choose a text dialect (profile='hermes' or 'qwen_xml') or a chat API policy"
            )
        if default_params is not None:
            validate_params(default_params)
        self._format = format
        self._model = model
        self._served_model = served_model
        self._default_params = merge_params(None, default_params)
        self._complete = complete
        self._exact = exact
        self._native = native
        self._channel = TokenChannel(format.codec, type(self).__name__)

    @property
    def format(self) -> PolicyFormat[A]:
        """Codec and default parser."""
        return self._format

    @property
    def model(self) -> str:
        """The model's name."""
        return self._model

    @property
    def served_model(self) -> str:
        """The server's name for the model."""
        return self._served_model if self._served_model is not None else self._model

    @property
    def default_params(self) -> SamplingParams:
        """A copy of the parameters that apply where a call gives none."""
        given = merge_params(None, self._default_params)
        return SamplingParams() if given is None else given

    @property
    def context_length(self) -> int | None:
        """Most tokens of prompt and reply together; None if unknown. A probe finds it, or you set it.

        When it is known, a prompt without room for a reply is refused before it is sent, and ``max_tokens`` is
        fitted to the room that is left.
        """
        return self._channel.context_length

    @context_length.setter
    def context_length(self, value: int | None) -> None:
        if value is not None and (type(value) is not int or value < 2):
            raise InvalidRequestError(f"context_length must be an integer >= 2 or None, got {value!r}")
        self._channel.context_length = value

    @property
    def trainable(self) -> bool:
        """Whether replies can be trained on token by token: exact, not native, and a parser that allows it."""
        return self._exact and not self._native and self._format.parser.trainable

    def prepare(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()) -> PreparedPrompt:
        """Render a conversation and tool schemas into a prompt snapshot."""
        return self._format.prepare(messages, tools)

    def extend(self, prompt: PreparedPrompt, result: GenerateResult, messages: Sequence[Message]) -> PreparedPrompt:
        """The next prompt, starting with exactly the ids of ``prompt`` and ``result`` where that is possible.

        See `PolicyFormat.extend`.
        """
        return self._format.extend(prompt, result, messages)

    def validate_context(self, messages: Sequence[Message]) -> None:
        """Check an edited conversation before committing it; no request is made.

        Native policies check that tool calls and tool messages pair up; calls may still be open at the end.

        Raises:
            InvalidRequestError: Naming the index of the message at fault.
        """
        if self._native:
            check_tool_order(messages, finished=False)

    async def agenerate(self, prompt: PreparedPrompt, sampling_params: SamplingParams | None = None) -> GenerateResult:
        """Generate one reply to a prepared prompt.

        Raises:
            InvalidRequestError: Bad input; nothing was sent.
            BackendError: The backend failed; see `focus_types.errors`.
        """
        self._require_prompt(prompt)
        if not self._native:
            return await self.agenerate_tokens(prompt.tokens, sampling_params)
        check_tool_order(prompt.messages, finished=True)
        return await self._run_complete(prompt.tokens, sampling_params)

    def generate(self, prompt: PreparedPrompt, sampling_params: SamplingParams | None = None) -> GenerateResult:
        """`agenerate` for ordinary code; works where an event loop is running, too."""
        return run_sync(self.agenerate(prompt, sampling_params))

    async def agenerate_tokens(
        self, tokens: Sequence[TokenId], sampling_params: SamplingParams | None = None
    ) -> GenerateResult:
        """Generate one reply to exactly these ids.

        Subclasses name the parameter ``prefix_tokens``: pass it by position.

        Raises:
            InvalidRequestError: Bad input, a native policy, or no ``complete``; nothing was sent.
            BackendError: The backend failed; see `focus_types.errors`.
        """
        if self._native:
            raise InvalidRequestError(
                f"{type(self).__name__} sends messages, not token ids: call generate(policy.prepare(messages))"
            )
        return await self._run_complete(self._channel.check_tokens(tokens), sampling_params)

    def generate_tokens(
        self, tokens: Sequence[TokenId], sampling_params: SamplingParams | None = None
    ) -> GenerateResult:
        """`agenerate_tokens` for ordinary code; works where an event loop is running, too."""
        return run_sync(self.agenerate_tokens(tokens, sampling_params))

    def decode(self, tokens: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """The text of ids."""
        return self._format.codec.decode(tokens, skip_special_tokens=skip_special_tokens)

    def parse(self, result: GenerateResult) -> A:
        """The action that a reply expresses.

        Raises:
            AbortedError: The server aborted the reply; half a reply is no action.
            ParseError: The parser cannot read the reply.
        """
        if result.stop_reason == "abort":
            raise AbortedError("the server aborted this reply, so it expresses no action", result)
        return self._format.parser.parse(result)

    def is_exact(self, result: GenerateResult) -> bool:
        """Whether this reply's token provenance is exact; `trainable` speaks of the policy, this of one call."""
        return self._exact and not self._native and result.exact_generation

    def record_reply(self, result: GenerateResult, messages: list[Message]) -> None:
        """Append the reply to ``messages`` as an assistant message that `extend` recognises."""
        self._format.record_reply(result, messages)

    def startup_check(self) -> None:
        """Check that the policy is ready to serve requests. Backends contact their server here."""

    def close(self) -> None:
        """Release what the policy owns. May be called more than once."""

    async def aclose(self) -> None:
        """Release what the policy owns, from async code. May be called more than once."""
        self.close()

    def _require_prompt(self, prompt: PreparedPrompt) -> None:
        if not isinstance(prompt, PreparedPrompt):
            raise InvalidRequestError(
                f"generate() takes a PreparedPrompt, got {type(prompt).__name__}: call policy.prepare(messages),"
                " or generate_tokens() for ids"
            )

    def _probe_prompt(self, prompt: Sequence[TokenId] | None) -> tuple[TokenId, ...]:
        if prompt is None:
            return self.prepare([{"role": "user", "content": "Hello"}]).tokens
        return tuple(prompt)

    async def _run_complete(
        self, tokens: tuple[TokenId, ...], sampling_params: SamplingParams | None
    ) -> GenerateResult:
        if self._complete is None:
            raise InvalidRequestError(
                f"{type(self).__name__} has no way to generate: pass complete=, an async function of token ids and"
                " sampling parameters"
            )
        reply: Any = self._complete(tokens, merge_params(sampling_params, self._default_params))
        if not isawaitable(reply):
            raise InvalidRequestError(f"complete must be an async function: it returned {type(reply).__name__} at once")
        result: GenerateResult = await reply
        if not isinstance(result, GenerateResult):
            raise ProtocolError(f"complete() must return a GenerateResult, got {type(result).__name__}")
        self._channel.saw(result.tokens)
        if not result.prefix_tokens:
            result = replace(result, prefix_tokens=tokens)
        elif tuple(result.prefix_tokens) != tokens:
            result = _inexact(result, "complete() reports other prefix_tokens than it was given")
        if not self._native and result.logprobs and len(result.logprobs) != len(result.tokens):
            reason = f"complete() returned {len(result.logprobs)} log-probabilities for {len(result.tokens)} tokens"
            result = replace(_inexact(result, reason), logprobs=[])
        return result


def _inexact(result: GenerateResult, reason: str) -> GenerateResult:
    meta = replace(result.meta or GenerateMeta(), inexact_reason=reason)
    return replace(result, exact_generation=False, meta=meta)
