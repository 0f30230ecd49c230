"""A codec for models whose tokenizer nobody has: it counts, roughly, and never invents ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from focus_format import PolicyFormat
from focus_parsing import NativeToolCallParser
from focus_types import InvalidRequestError, Message, TokenId, ToolTurn

__all__ = ["PLACEHOLDER", "EstimatingCodec", "native_format"]

PLACEHOLDER: TokenId = -1
"""Stands for one estimated prompt token. No id is negative, so every token backend refuses it."""

_BYTES_PER_TOKEN = 4


@dataclass(frozen=True)
class EstimatingCodec:
    """Estimates how many tokens a text has: one per four bytes of UTF-8.

    Its ids are all `PLACEHOLDER`. Only their number means something; they cannot be decoded, continued or sent.
    """

    @property
    def stop_tokens(self) -> frozenset[TokenId]:
        """None are known."""
        return frozenset()

    @property
    def vocab_size(self) -> int | None:
        """Unknown."""
        return None

    def encode(self, text: str) -> tuple[TokenId, ...]:
        """As many placeholders as the text is estimated to have tokens."""
        return (PLACEHOLDER,) * -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)

    def decode(self, tokens: Sequence[TokenId], *, skip_special_tokens: bool = False) -> str:
        """Refuses: placeholders stand for no text.

        Raises:
            InvalidRequestError: Always.
        """
        raise InvalidRequestError(
            "this format estimates token counts and has no tokenizer to decode with: read result.text, or give the"
            " policy a format of the model's tokenizer"
        )

    def render(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()) -> tuple[TokenId, ...]:
        """Placeholders for the conversation and the tool schemas as JSON.

        Raises:
            InvalidRequestError: Something in them is not JSON.
        """
        # Output items say again what the message beside them says.
        said = [{name: value for name, value in one.items() if name != "native_output"} for one in messages]
        try:
            text = json.dumps([*said, *tools], ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidRequestError(f"messages and tools must be plain JSON data: {error}") from None
        return self.encode(text)

    def extend(
        self, tokens: Sequence[TokenId], messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()
    ) -> tuple[TokenId, ...] | None:
        """None: an estimate cannot be continued exactly."""
        return None


def native_format(model: str) -> PolicyFormat[ToolTurn]:
    """The format of a chat API policy that was given none."""
    return PolicyFormat(model, EstimatingCodec(), NativeToolCallParser())
