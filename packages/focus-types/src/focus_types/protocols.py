"""Protocols: what focus asks of a tokenizer, a codec and a rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from focus_types.aliases import Message, TokenId

__all__ = ["AnyRollout", "ChatCodec", "HFTokenizer"]


@runtime_checkable
class HFTokenizer(Protocol):
    """The part of a Hugging Face tokenizer that focus calls; a real one satisfies it as it is."""

    @property
    def eos_token_id(self) -> Any:
        """The id, or ids, that end a text; None if there is none."""
        ...

    @property
    def chat_template(self) -> Any:
        """Anything true: the template itself is only used through `apply_chat_template`."""
        ...

    def __len__(self) -> int:
        """How many ids there are, added tokens included."""
        ...

    def get_added_vocab(self) -> Mapping[str, int]:
        """The text and id of each added token, which `encode` recognises wherever its text stands."""
        ...

    def encode(self, text: str, *, add_special_tokens: bool = ...) -> list[int]:
        """The ids of a text; it is always called with ``add_special_tokens=False``."""
        ...

    def decode(self, token_ids: list[int], skip_special_tokens: bool = ...) -> str | list[str]:
        """The text of ids; an id without text is no error."""
        ...

    def convert_tokens_to_ids(self, tokens: str) -> int | list[int]:
        """The id of one token."""
        ...

    def apply_chat_template(
        self,
        conversation: Any,
        tools: Any = ...,
        *,
        add_generation_prompt: bool = ...,
        tokenize: bool = ...,
        **kwargs: Any,
    ) -> Any:
        """The text of a conversation, as it is always called with ``tokenize=False``."""
        ...


@runtime_checkable
class ChatCodec(Protocol):
    """Messages to token ids and back, for one tokenizer and one chat template."""

    @property
    def stop_tokens(self) -> frozenset[TokenId]:
        """The ids that end a reply."""
        ...

    @property
    def vocab_size(self) -> int | None:
        """How many ids the model accepts, padding included; None if only the tokenizer is known."""
        ...

    def encode(self, text: str) -> tuple[TokenId, ...]:
        """The ids of a text, control tokens recognised, nothing added."""
        ...

    def decode(self, tokens: Sequence[TokenId], *, skip_special_tokens: bool = False) -> str:
        """The text of ids; never an error for an id that the model can produce."""
        ...

    def render(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()) -> tuple[TokenId, ...]:
        """A whole prompt, the generation prompt included."""
        ...

    def extend(
        self,
        tokens: Sequence[TokenId],
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]] = (),
    ) -> tuple[TokenId, ...] | None:
        """``tokens`` followed by what the template writes for new messages, or None if that cannot be exact."""
        ...


class AnyRollout(Protocol):
    """Whatever holds a conversation."""

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation, OpenAI-shaped."""
        ...
