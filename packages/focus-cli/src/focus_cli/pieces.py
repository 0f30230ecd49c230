"""Tokens as readable pieces: a character that is split over tokens stays whole."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from focus_types import TokenId

__all__ = ["Piece", "cut", "visible"]

_UNFINISHED = "\ufffd"
_MOST_TOKENS = 6
"""A character has at most four bytes; chains of tokens that each hold parts of two are longer, and rare."""
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True)
class Piece:
    """The text of one token, or of the few that share a character."""

    text: str
    start: int
    """Index of its first token."""
    tokens: tuple[TokenId, ...]
    logprobs: tuple[float, ...]
    """One per token; empty if there are none."""

    @property
    def probability(self) -> float | None:
        """That of all its tokens, one after the other."""
        return math.exp(min(math.fsum(self.logprobs), 0.0)) if self.logprobs else None


def cut(
    tokens: Sequence[TokenId], logprobs: Sequence[float], decode: Callable[[Sequence[TokenId]], str]
) -> list[Piece]:
    """Pieces in order, every token in exactly one.

    Args:
        tokens: The ids.
        logprobs: One per token, or none.
        decode: Ids to text, U+FFFD where a character is unfinished.
    """
    pieces: list[Piece] = []
    start = 0
    before: Sequence[TokenId] = ()
    while start < len(tokens):
        size, text = _next(tokens, start, before, decode)
        end = start + size
        pieces.append(Piece(text, start, tuple(tokens[start:end]), tuple(logprobs[start:end])))
        before = () if _UNFINISHED in text else tokens[start:end]
        start = end
    return pieces


def _next(
    tokens: Sequence[TokenId], start: int, before: Sequence[TokenId], decode: Callable[[Sequence[TokenId]], str]
) -> tuple[int, str]:
    for size in range(1, min(_MOST_TOKENS, len(tokens) - start) + 1):
        text = _text(tokens[start : start + size], before, decode)
        if _UNFINISHED not in text:
            return size, text
    return 1, _text(tokens[start : start + 1], before, decode)


def _text(tokens: Sequence[TokenId], before: Sequence[TokenId], decode: Callable[[Sequence[TokenId]], str]) -> str:
    """What the tokens add: some tokenizers drop the blank before a text's first word."""
    whole, known = decode([*before, *tokens]), decode(before) if before else ""
    return whole[len(known) :] if whole.startswith(known) else decode(tokens)


def visible(text: str, *, line_break: str = "\n") -> str:
    """A model's text, harmless to show: control characters, also those that turn writing around, as escapes.

    Args:
        text: Anything.
        line_break: What follows the mark of a line break.
    """
    return "".join(_visible(one, line_break) for one in text)


def _visible(one: str, line_break: str) -> str:
    if one == "\n":
        return f"\u23ce{line_break}"
    if one == "\t":
        return "\u21e5"
    if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") and one not in _JOINERS:
        return f"\\x{ord(one):02x}" if ord(one) < 256 else f"\\u{ord(one):04x}"
    return one
