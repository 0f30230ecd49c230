"""The lines of `focus generate`: what it reads, what it writes, and how one becomes the other."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import msgspec

from focus_format import Policy
from focus_types import FocusError, GenerateMeta, GenerateResult, InvalidRequestError, SamplingParams, TokenId

__all__ = [
    "Action",
    "Conversation",
    "Done",
    "Record",
    "Settings",
    "digest",
    "encode",
    "make_record",
    "read_conversation",
]


class Conversation(msgspec.Struct, forbid_unknown_fields=True):
    """One line of input: a conversation, or the exact ids of a prompt."""

    id: str | int | None = None
    """Yours; comes back in the record."""
    messages: list[dict[str, Any]] | None = None
    """OpenAI-shaped."""
    tools: list[dict[str, Any]] = []
    """Schemas of the form ``{"type": "function", "function": {...}}``."""
    prompt_tokens: list[int] | None = None
    """Instead of messages: sent exactly so."""
    data: Any = None
    """Anything; comes back in the record."""


@dataclass(frozen=True)
class Settings:
    """What the replies of one file have in common, and what `--resume` must not mix."""

    backend: str
    model: str
    """Tokenizer and chat template."""
    served_model: str
    profile: str | None
    """The parser's, where it was named."""
    sampling: SamplingParams
    """As asked; what was in effect for one reply is in its ``meta``."""


class Action(msgspec.Struct):
    """What the parser read."""

    kind: str | None
    """"text", "tool" or "tokens"."""
    value: Any
    """A text, a turn, or a token chunk."""


class Done(msgspec.Struct):
    """The part of a record that tells whether a line has been answered."""

    line: int
    """Number of the input line, from 1."""
    input: str
    """`digest` of the input line."""
    settings: Settings


class Record(Done, kw_only=True):
    """One line of output: a reply with everything that is known about it."""

    id: str | int | None = None
    text: str
    tokens: tuple[TokenId, ...]
    """Every generated id; none from a chat API, which does not tell them."""
    logprobs: list[float]
    top_logprobs: list[dict[str, float]] | None
    prompt_tokens: tuple[TokenId, ...] | None
    """The ids that were sent; null for a chat API, which was sent messages."""
    stop_reason: str
    matched_stop: int | str | None
    entropy: float
    exact: bool
    """Whether ids, prompt and log-probabilities of this reply belong together."""
    action: Action | None
    action_error: str | None
    """Why there is no action."""
    native_output: tuple[dict[str, Any], ...]
    """What a chat API wants replayed."""
    meta: GenerateMeta | None
    data: Any = None


_encode = msgspec.json.Encoder().encode
_conversation = msgspec.json.Decoder(Conversation)


def digest(line: bytes) -> str:
    """64 bits that tell an input line from an edited one."""
    return hashlib.blake2b(line.strip(), digest_size=8).hexdigest()


def encode(record: Record) -> bytes:
    """The record as one line of JSON, its line break included."""
    return _encode(record) + b"\n"


def read_conversation(line: bytes) -> Conversation:
    """Decode and check one line of input.

    Raises:
        InvalidRequestError: No JSON, an unknown or mistyped field, or not one of messages and prompt_tokens.
    """
    try:
        conversation = _conversation.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        hint = "; what should only travel along goes into data" if "unknown field" in str(error) else ""
        raise InvalidRequestError(f"{error}{hint}") from error
    if (conversation.messages is None) == (conversation.prompt_tokens is None):
        raise InvalidRequestError("a line holds messages or prompt_tokens, one of them")
    if conversation.prompt_tokens is not None and conversation.tools:
        raise InvalidRequestError("tools belong to messages: prompt_tokens are sent exactly as they are")
    return conversation


def make_record(
    policy: Policy[Any], result: GenerateResult, conversation: Conversation, line: int, input: str, settings: Settings
) -> Record:
    """The record of one reply, with the action that the policy's parser reads out of it.

    Raises:
        AbortedError: The server aborted the reply.
    """
    action, problem = _action(policy, result)
    return Record(
        line=line,
        id=conversation.id,
        input=input,
        text=result.text,
        tokens=result.tokens,
        logprobs=result.logprobs,
        top_logprobs=result.top_logprobs,
        # The ids of a chat API's prompt are an estimate, and only their number means something.
        prompt_tokens=result.prefix_tokens if result.native_tool_calls is None else None,
        stop_reason=result.stop_reason,
        matched_stop=result.matched_stop,
        entropy=result.entropy,
        exact=policy.is_exact(result),
        action=action,
        action_error=problem,
        native_output=result.native_output,
        meta=result.meta,
        settings=settings,
        data=conversation.data,
    )


def _action(policy: Policy[Any], result: GenerateResult) -> tuple[Action | None, str | None]:
    try:
        value = policy.parse(result)
    except FocusError as error:
        if result.stop_reason == "abort":
            raise
        return None, str(error)
    plain: Any = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return Action(policy.format.parser.action, plain), None
