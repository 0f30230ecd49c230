"""Text that must stay text: strings of control tokens written by users and tools.

A tokenizer turns ``<|im_end|>`` into the control token wherever it stands, so a tool result that holds it could end its
turn and begin another. Here each such string gets an invisible cut before the template sees it; after rendering, the
text is encoded in the pieces between the cuts, none of which holds the whole string.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import Any

from focus_format.narrow import is_list, is_mapping
from focus_types import HFTokenizer, InvalidRequestError, Message, TokenId

__all__ = ["LiteralText"]

# Letters and digits alone survive whatever a template does to text (JSON, trimming, escaping); nobody can guess it; and
# as "q" occurs once, it cannot be found at a second place that overlaps the first.
_CUT = f"q{uuid.uuid4().hex}"
_SURROGATE = re.compile("[\ud800-\udfff]")
# Surroundings in which tokenizers join characters differently.
_BEFORE = ("", " ", "x", "\n")
_AFTER = ("", " ", "x", "\n", ",")


class LiteralText:
    """Keeps the control tokens' strings in text from outside from becoming control tokens."""

    def __init__(self, tokenizer: HFTokenizer) -> None:
        self._tokenizer = tokenizer
        # Some vocabularies add runs of spaces, which control nothing; and nothing of length 1 can be cut.
        self.control: dict[str, TokenId] = {
            text: token for text, token in tokenizer.get_added_vocab().items() if len(text) > 1 and not text.isspace()
        }
        longest_first = sorted(self.control, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self._offsets: dict[str, int] = {}

    def protect(self, messages: Sequence[Message]) -> list[Message]:
        """Messages with cuts in all but the assistant's, whose text is the model's own."""
        return [
            message
            if message["role"] == "assistant"
            else {key: value if key == "role" else self.cut(value) for key, value in message.items()}
            for message in messages
        ]

    def cut(self, value: Any) -> Any:
        """Any JSON-like value with a cut in each control token's string, keys included."""
        if isinstance(value, str):
            return self._cut_text(value) if self._pattern.search(value) else value
        if is_mapping(value):
            return {self.cut(key): self.cut(item) for key, item in value.items()}
        if is_list(value):
            return [self.cut(item) for item in value]
        return value

    def encode(self, text: str) -> tuple[TokenId, ...]:
        """The ids of a rendered text, its cuts honoured and gone."""
        if _CUT not in text:
            return tuple(self._encode(text))
        return tuple(token for piece in text.split(_CUT) for token in self._encode(piece))

    def _cut_text(self, text: str) -> str:
        pieces: list[str] = []
        done = 0
        while match := self._pattern.search(text, done):
            # On from the cut, not from the end of the match: strings may overlap.
            end = match.start() + self._offset(match.group())
            pieces.append(text[done:end])
            done = end
        return _CUT.join([*pieces, text[done:]])

    def _offset(self, control: str) -> int:
        """Where to cut: the place that costs fewest tokens is where the tokenizer cuts plain text, too."""
        if control not in self._offsets:
            places = [at for at in range(1, len(control)) if self._stays_text(control[:at], control[at:])]
            if not places:
                raise InvalidRequestError(f"this tokenizer cannot encode {control!r} as plain text: remove it")
            self._offsets[control] = min(places, key=lambda at: self._cost(control[:at], control[at:]))
        return self._offsets[control]

    def _stays_text(self, left: str, right: str) -> bool:
        if self._pattern.search(left) or self._pattern.search(right):
            return False
        ids = self._encode(left) + self._encode(right)
        text = self._tokenizer.decode(ids, skip_special_tokens=False)
        return text == left + right and not any(token in ids for token in self.control.values())

    def _cost(self, left: str, right: str) -> int:
        """Tokens of both sides, summed over what may stand around them."""
        before = sum(len(self._encode(outside + left)) for outside in _BEFORE)
        return before + sum(len(self._encode(right + outside)) for outside in _AFTER)

    def _encode(self, text: str) -> list[TokenId]:
        try:
            return self._tokenizer.encode(text, add_special_tokens=False)
        except (TypeError, UnicodeEncodeError) as error:
            lone = _SURROGATE.search(text)
            if lone is None:
                raise
            around = text[max(0, lone.start() - 20) : lone.end() + 20]
            raise InvalidRequestError(
                f"the text holds half of a surrogate pair, which no tokenizer can encode, at {around!r}: decode it"
                " with errors='replace' where it comes from"
            ) from error
