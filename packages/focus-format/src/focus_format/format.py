"""PolicyFormat and PreparedPrompt: what a policy needs to turn messages into tokens and replies into actions."""

# The two classes share a module because they share the fields of the snapshot.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from focus_format.codec import ChatTemplateCodec
from focus_format.profiles import parser_for, select_profile
from focus_format.replies import reply_message
from focus_format.resolve import codec_for
from focus_format.snapshot import as_message, freeze, freeze_tools, join, starts_with, thaw
from focus_parsing import ActionParser, OpensReasoning
from focus_types import ChatCodec, GenerateResult, HFTokenizer, InvalidRequestError, Message, TokenId

__all__ = ["PolicyFormat", "PreparedPrompt"]


@dataclass(frozen=True)
class PolicyFormat[A]:
    """A codec for the model's input, bound to a parser for its output."""

    name: str
    """The model, or whatever the format is called."""
    codec: ChatCodec
    """Messages to token ids and back."""
    parser: ActionParser[A]
    """Replies to actions; the agent's default."""

    def prepare(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()) -> PreparedPrompt:
        """Render the conversation and the tool schemas into a prompt snapshot.

        The tokens equal the chat template's text, encoded, generation prompt included; except that strings of
        control tokens inside user, system and tool messages and tool schemas stay text.

        Args:
            messages: The whole conversation, OpenAI-shaped; never changed.
            tools: Schemas of the form ``{"type": "function", "function": {...}}``.

        Raises:
            InvalidRequestError: A message or tool that cannot be rendered, by its index.
        """
        snapshot, schemas = freeze(messages), freeze_tools(tools)
        return PreparedPrompt(self.codec.render(snapshot, schemas), self, snapshot, schemas)

    def extend(self, prompt: PreparedPrompt, result: GenerateResult, messages: Sequence[Message]) -> PreparedPrompt:
        """The next prompt: exactly the ids of prompt and reply, then what the template writes for new messages.

        Where that cannot be proven, the conversation is rendered again as `prepare` does, and the prompt says so:
        ``exact_continuation`` is False and ``refusal`` holds the reason.

        Args:
            prompt: What the reply answers.
            result: The reply.
            messages: The whole conversation: the prompt's messages, the recorded reply, then the new ones. Of the
                recorded reply only the role is looked at: the sampled ids count, not their text.

        Raises:
            InvalidRequestError: A message that cannot be rendered, by its index.
        """
        refusal = _foreign(prompt, self) or _mismatch(prompt, result, messages)
        if refusal is None:
            sampled = prompt.tokens + tuple(result.tokens)
            new = messages[len(prompt._messages) + 1 :]
            tokens = self.codec.extend(sampled, new, prompt._tools)
            if tokens is not None:
                snapshot = join(prompt._messages, freeze(messages[len(prompt._messages) :], len(prompt._messages)))
                return PreparedPrompt(tokens, self, snapshot, prompt._tools, exact_continuation=True)
            refusal = _codec_refusal(self.codec, sampled, new, prompt._tools)
        return replace(self.prepare(messages, prompt._tools), refusal=refusal)

    def record_reply(self, result: GenerateResult, messages: list[Message]) -> None:
        """Append the reply as an assistant message that `extend` recognises.

        Token backends: ``content`` is the reply's text, raw. Chat APIs: the message's fields as received, tool calls
        included. Responses APIs: also the output items, under ``native_output``.
        """
        messages.append(reply_message(result))

    def with_parser[B](self, parser: ActionParser[B]) -> PolicyFormat[B]:
        """A copy with another parser, whatever kind of action it produces.

        A parser that reads reasoning is told how the generation prompt opens a thought, if it does.
        """
        return PolicyFormat(self.name, self.codec, _tell_reasoning(parser, self.codec))

    def with_template(self, **kwargs: Any) -> PolicyFormat[A]:
        """A copy whose chat template gets these variables, over those it had: ``enable_thinking=False``.

        Raises:
            InvalidRequestError: The codec has no chat template, or a name is not the template's to take.
        """
        if not isinstance(self.codec, ChatTemplateCodec):
            raise InvalidRequestError(f"{type(self.codec).__name__} has no chat template to give variables to")
        codec = self.codec.with_template(**kwargs)
        return PolicyFormat(self.name, codec, _tell_reasoning(self.parser, codec))

    @classmethod
    def resolve(
        cls, model: str, *, tokenizer: HFTokenizer | None = None, profile: str | None = None
    ) -> PolicyFormat[Any]:
        """The tokenizer, chat template, and parser for a known model family.

        Args:
            model: A model hub's name or a local folder.
            tokenizer: The model's tokenizer. Without one it is loaded through transformers, never running code that
                came with it; with one neither a network nor transformers is needed.
            profile: The parser: "qwen_xml" or "hermes" (tool calls in text), "native" (tool calls in fields of a chat
                API), "text", or "token_chunk" (exact segments). Without one, the chat template shows the dialect of
                its tool calls, else the model's name does.

        Raises:
            InvalidRequestError: Nothing tells the dialect, an unknown profile, no chat template, or no tokenizer
                under that name.
            ImportError: The tokenizer is to be loaded and transformers is not installed.
        """
        codec = codec_for(model, tokenizer)
        parser = parser_for(select_profile(model, codec) if profile is None else profile)
        return PolicyFormat(model, codec, _tell_reasoning(parser, codec))


@dataclass(frozen=True)
class PreparedPrompt:
    """Messages, tool schemas and tokens of one generation request; a snapshot that later changes do not reach."""

    tokens: tuple[TokenId, ...]
    """The ids to send."""
    format: PolicyFormat[Any]
    """What rendered them."""
    _messages: tuple[Message, ...]
    _tools: tuple[dict[str, Any], ...]
    exact_continuation: bool = False
    """The tokens start with exactly those of the last prompt and its reply."""
    refusal: str | None = None
    """Why `PolicyFormat.extend` rendered the conversation again; None if it did not."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", tuple(self.tokens))
        object.__setattr__(self, "_messages", freeze(self._messages))
        object.__setattr__(self, "_tools", freeze_tools(self._tools))

    @property
    def messages(self) -> list[Message]:
        """The conversation, as fresh copies."""
        return [thaw(message) for message in self._messages]

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tool schemas, as fresh copies."""
        return [thaw(tool) for tool in self._tools]


@runtime_checkable
class _Explains(Protocol):
    """A codec that says why it cannot continue exactly."""

    def refusal(
        self, tokens: Sequence[TokenId], messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()
    ) -> str | None: ...


def _tell_reasoning[A](parser: ActionParser[A], codec: ChatCodec) -> ActionParser[A]:
    if isinstance(codec, ChatTemplateCodec) and isinstance(parser, OpensReasoning):
        return parser.with_reasoning_open(codec.reasoning_open)
    return parser


def _codec_refusal(
    codec: ChatCodec, tokens: Sequence[TokenId], messages: Sequence[Message], tools: Sequence[dict[str, Any]]
) -> str:
    reason = codec.refusal(tokens, messages, tools) if isinstance(codec, _Explains) else None
    return reason or f"{type(codec).__name__} cannot continue these messages exactly"


def _foreign(prompt: PreparedPrompt, format: PolicyFormat[Any]) -> str | None:
    """Why the prompt's ids are not this format's, or None if they can be."""
    # A format that was pickled around its tokenizer comes back with a codec of its own, under the same name.
    if prompt.format.codec is format.codec or prompt.format.name == format.name:
        return None
    return f"the prompt was prepared by another format, {prompt.format.name!r}"


def _mismatch(prompt: PreparedPrompt, result: GenerateResult, messages: Sequence[Message]) -> str | None:
    """Why prompt, reply and conversation do not belong together, or None if they do."""
    if not result.exact_generation:
        return "the reply's token ids are not exact"
    if not result.prefix_tokens:
        return "the reply does not say which ids it continues (prefix_tokens is empty)"
    if result.prefix_tokens is not prompt.tokens and tuple(result.prefix_tokens) != prompt.tokens:
        return "the reply answers other ids than this prompt's"
    count = len(prompt._messages)
    if not starts_with(messages, prompt._messages):
        return "the earlier messages are not those of the prompt: they were edited or compacted"
    if len(messages) == count:
        return "the reply is not in the messages: call record_reply first"
    role = as_message(messages[count], f"message {count}").get("role")
    if role != "assistant":
        return f"message {count} must be the recorded reply, with role 'assistant', and has role {role!r}"
    return None
