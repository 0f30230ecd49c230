"""Where the tags of a reply are, and where an XML value that starts at one of them ends."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

__all__ = [
    "EOF",
    "FUNCTION",
    "FUNCTION_END",
    "PARAMETER",
    "PARAMETER_END",
    "THINK",
    "THINK_END",
    "TOOL_CALL_END",
    "TOOL_CALL_OPEN",
    "Tags",
]

EOF: Final = 0
TOOL_CALL_OPEN: Final = 1
TOOL_CALL_END: Final = 2
FUNCTION: Final = 3
FUNCTION_END: Final = 4
PARAMETER: Final = 5
PARAMETER_END: Final = 6
THINK: Final = 7
THINK_END: Final = 8

# One group per kind, in the order of the numbers above.
_TAG = re.compile(
    r"<(?:(tool_call>)|(/tool_call>)|(function=[^<>\n]*+>?)|(/function>)|(parameter=[^<>\n]*+>?)|(/parameter>)"
    r"|(think>)|(/think>))"
)
_END_TAG = "</tool_call>"
_AFTER_PARAMETER = frozenset((PARAMETER, FUNCTION_END, TOOL_CALL_END, FUNCTION, TOOL_CALL_OPEN, EOF))
_AFTER_FUNCTION = frozenset((TOOL_CALL_END, FUNCTION, TOOL_CALL_OPEN, EOF))
_AFTER_TOOL_CALL = frozenset((TOOL_CALL_OPEN, EOF))


class Tags:
    """The tags of a text in order, closed by one of kind ``EOF``.

    ``EOF`` starts where a ``</tool_call>`` that is cut off by the end of the text starts, else at the end.

    Attributes:
        text: The whole text.
        kinds: What each tag is.
        starts: Index of each tag's first character.
        ends: Index past each tag's last character.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.kinds: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        for match in _TAG.finditer(text):
            self.kinds.append(match.lastindex or EOF)
            self.starts.append(match.start())
            self.ends.append(match.end())
        cut = next((size for size in range(len(_END_TAG) - 1, 0, -1) if text.endswith(_END_TAG[:size])), 0)
        self.kinds.append(EOF)
        self.starts.append(len(text) - cut)
        self.ends.append(len(text))

    def adjoins(self, at: int) -> bool:
        """Whether only white space lies between this tag and the next."""
        return self.blank(self.ends[at], self.starts[at + 1])

    def blank(self, start: int, end: int) -> bool:
        """Whether a stretch of the text is empty or white space."""
        return start == end or self.text[start:end].isspace()

    def name(self, at: int) -> str | None:
        """What follows ``=`` in a function or parameter tag, stripped; None if the ``>`` is missing."""
        tag = self.text[self.starts[at] : self.ends[at]]
        return tag[tag.index("=") + 1 : -1].strip() if tag.endswith(">") else None

    def starts_line(self, at: int) -> bool:
        """Whether nothing, or a line end, comes directly before this tag."""
        start = self.starts[at]
        return start == 0 or self.text[start - 1] == "\n"

    def value_end(self, at: int) -> int:
        """Index of the tag that ends an XML value open at this tag, -1 if none does."""
        return self._values[0][at]

    def next_call(self, at: int) -> int:
        """Index of the first tag from this one on that plainly opens an XML call, else of ``EOF``."""
        return self._values[1][at]

    @cached_property
    def _values(self) -> tuple[list[int], list[int]]:
        """``value_end`` and ``next_call`` of every tag, from right to left, so that no text is searched twice."""
        last = len(self.kinds) - 1
        value_ends, next_calls = [-1] * (last + 1), [last] * (last + 1)
        unmatched: list[int] = []
        for at in range(last - 1, -1, -1):
            end, call = value_ends[at + 1], next_calls[at + 1]
            kind = self.kinds[at]
            if self._opens_call(at):
                call = at
                # A whole call inside a value is quoted if the value ends after it; otherwise the value is unclosed.
                end = value_ends[unmatched.pop() + 1] if unmatched else -1
            elif self._ends_value(at):
                end = at
            if kind == TOOL_CALL_END:
                unmatched.append(at)
            value_ends[at], next_calls[at] = end, call
        return value_ends, next_calls

    def _ends_value(self, at: int) -> bool:
        kind, following = self.kinds[at], self.kinds[at + 1]
        if kind == PARAMETER_END:
            return following in _AFTER_PARAMETER and self.adjoins(at)
        if kind == PARAMETER:
            return self.starts_line(at) and self.text[self.ends[at] - 1] == ">"
        if kind == FUNCTION_END:
            return following in _AFTER_FUNCTION and self.adjoins(at)
        return kind == TOOL_CALL_END and following in _AFTER_TOOL_CALL and self.adjoins(at)

    def _opens_call(self, at: int) -> bool:
        return (
            self.kinds[at] == TOOL_CALL_OPEN
            and self.kinds[at + 1] == FUNCTION
            and self.kinds[at + 2] in (PARAMETER, FUNCTION_END)
            and self.starts_line(at)
            and self.adjoins(at)
            and self.adjoins(at + 1)
        )
