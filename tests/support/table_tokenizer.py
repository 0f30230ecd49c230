"""A tokenizer with a table of a few ids, for exchanges that were recorded with a real vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["TableTokenizer"]


class TableTokenizer:
    """Decodes the ids of its table and encodes the whole texts that it was given.

    Args:
        table: Id to the bytes that it stands for.
        special: Ids that ``skip_special_tokens`` leaves out; the first one ends a reply.
        texts: Text to its ids.
        length: The length of the vocabulary.
    """

    chat_template = None

    def __init__(
        self,
        table: Mapping[int, bytes],
        *,
        special: tuple[int, ...],
        texts: Mapping[str, list[int]] | None = None,
        length: int = 151669,
    ) -> None:
        self._table = table
        self._special = special
        self._texts = texts or {}
        self._length = length

    @property
    def eos_token_id(self) -> int:
        return self._special[0]

    def __len__(self) -> int:
        return self._length

    def get_added_vocab(self) -> dict[str, int]:
        return {self._table[token].decode(): token for token in self._special}

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        return self._texts[text] if text else []

    def decode(self, token_ids: list[int], skip_special_tokens: bool = False) -> str:
        kept = [token for token in token_ids if not (skip_special_tokens and token in self._special)]
        return b"".join(self._table.get(token, b"?") for token in kept).decode(errors="replace")

    def convert_tokens_to_ids(self, tokens: str) -> int:
        return self.get_added_vocab()[tokens]

    def apply_chat_template(self, conversation: Any, tools: Any = None, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("a table has no chat template")
