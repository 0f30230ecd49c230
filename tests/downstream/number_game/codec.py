"""A codec without a tokenizer: one token per byte, and two tokens that open and close a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from focus.backends import TokenId
from focus.extend import Message

__all__ = ["CLOSE", "OPEN", "ByteCodec"]

_BYTES = 256
OPEN: TokenId = 257
CLOSE: TokenId = 258
_TEXTS = {OPEN: "<|im_start|>", CLOSE: "<|im_end|>"}


class ByteCodec:
    """Satisfies `focus.extend.ChatCodec` by its members alone."""

    @property
    def stop_tokens(self) -> frozenset[TokenId]:
        return frozenset((CLOSE,))

    @property
    def vocab_size(self) -> int | None:
        return 265

    def encode(self, text: str) -> tuple[TokenId, ...]:
        return tuple(text.encode())

    def decode(self, tokens: Sequence[TokenId], *, skip_special_tokens: bool = False) -> str:
        special = {} if skip_special_tokens else _TEXTS
        pieces = [bytes((one,)) if one < _BYTES else special.get(one, "").encode() for one in tokens]
        return b"".join(pieces).decode(errors="replace")

    def render(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()) -> tuple[TokenId, ...]:
        turns = [self._turn(message) for message in messages]
        return (*sum(turns, ()), OPEN, *self.encode("assistant\n"))

    def extend(
        self, tokens: Sequence[TokenId], messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()
    ) -> tuple[TokenId, ...] | None:
        if not tokens or tokens[-1] != CLOSE:
            return None
        return (*tokens, *self.encode("\n"), *self.render(messages, tools))

    def _turn(self, message: Message) -> tuple[TokenId, ...]:
        return (OPEN, *self.encode(f"{message['role']}\n{message['content']}"), CLOSE, *self.encode("\n"))
