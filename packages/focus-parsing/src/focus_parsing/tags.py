"""Where the tags of a reply are, and where an XML value that starts at one of them ends."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

__all__ = [
    "ENDS_BLOCK",
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

ENDS_BLOCK = frozenset((EOF, TOOL_CALL_OPEN, TOOL_CALL_END))
"""What ends a block whose content is at an end."""

# One group per kind, in the order of the numbers above.
_TAG = re.compile(
    r"<(?=[tfp/])(?:(tool_call>)|(/tool_call>)|(function=[^<>\n]*+>?)|(/function>)|(parameter=[^<>\n]*+>?)|(/parameter>)"
    r"|(think>)|(/think>))"
)
_SPACE = re.compile(r"\s*")
_END_TAG = "</tool_call>"
# What must follow an end tag in an XML value, white space apart, if it is to end the value.
_FOLLOWS = {
    PARAMETER_END: frozenset((PARAMETER, FUNCTION_END, TOOL_CALL_END, FUNCTION, TOOL_CALL_OPEN, EOF)),
    FUNCTION_END: frozenset((TOOL_CALL_END, FUNCTION, TOOL_CALL_OPEN, EOF)),
    TOOL_CALL_END: frozenset((TOOL_CALL_OPEN, EOF)),
    FUNCTION: frozenset[int](),
    THINK: frozenset[int](),
    THINK_END: frozenset[int](),
}


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
        kinds, starts, ends = self.kinds, self.starts, self.ends
        for match in _TAG.finditer(text):
            start, end = match.span()
            kinds.append(match.lastindex or EOF)
            starts.append(start)
            ends.append(end)
        cut = next((size for size in range(len(_END_TAG) - 1, 0, -1) if text.endswith(_END_TAG[:size])), 0)
        kinds.append(EOF)
        starts.append(len(text) - cut)
        ends.append(len(text))

    def adjoins(self, at: int) -> bool:
        """Whether only white space lies between this tag and the next."""
        return self.blank(self.ends[at], self.starts[at + 1])

    def blank(self, start: int, end: int) -> bool:
        """Whether a stretch of the text is empty or white space."""
        return start == end or self.text[start:end].isspace()

    def past_space(self, start: int) -> int:
        """Index of the first character from ``start`` on that is not white space."""
        if self.text[start : start + 1].isspace():
            space = _SPACE.match(self.text, start)
            start = space.end() if space else start
        return start

    def is_closed(self, at: int) -> bool:
        """Whether a function or parameter tag has its ``>``."""
        return self.text[self.ends[at] - 1] == ">"

    def name(self, at: int) -> str:
        """What a function or parameter tag names, stripped; empty if its ``>`` is missing."""
        if not self.is_closed(at):
            return ""
        return self.text[self.text.index("=", self.starts[at]) + 1 : self.ends[at] - 1].strip()

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

    def past_value(self, at: int) -> tuple[int, int]:
        """The next tag, and where the text goes on, after the value that this tag ends."""
        return (at + 1, self.ends[at]) if self.kinds[at] == PARAMETER_END else (at, self.starts[at])

    def function_end(self, at: int) -> int:
        """Index of the end tag of the function whose content starts at this tag, -1 if it has none."""
        return self._function_ends[at]

    @cached_property
    def _values(self) -> tuple[list[int], list[int]]:
        """``value_end`` and ``next_call`` of every tag, from right to left, so that no text is searched twice."""
        text, kinds, starts, ends = self.text, self.kinds, self.starts, self.ends
        last = len(kinds) - 1
        value_ends, next_calls = [-1] * (last + 1), [last] * (last + 1)
        unmatched: list[int] = []
        end, call, following, after = -1, last, EOF, starts[last]
        for at in range(last - 1, -1, -1):
            kind, gap = kinds[at], text[ends[at] : after]
            if kind == TOOL_CALL_OPEN:
                if following == FUNCTION and self._opens_call(at):
                    call = at
                    # A whole call in a value is quoted if the value ends after it, else the value is unclosed.
                    end = value_ends[unmatched.pop() + 1] if unmatched else -1
            elif kind == PARAMETER:
                if self.starts_line(at) and self.is_closed(at):
                    end = at
            elif following in _FOLLOWS[kind] and (not gap or gap.isspace()):
                end = at
            if kind == TOOL_CALL_END:
                unmatched.append(at)
            value_ends[at], next_calls[at] = end, call
            following, after = kind, starts[at]
        return value_ends, next_calls

    @cached_property
    def _function_ends(self) -> list[int]:
        """``function_end`` of every tag, from right to left as well."""
        function_ends = [-1] * len(self.kinds)
        for at in range(len(self.kinds) - 2, -1, -1):
            kind = self.kinds[at]
            if kind == FUNCTION_END:
                function_ends[at] = at
            elif kind == PARAMETER and self.is_closed(at):
                end = self.value_end(at + 1)
                function_ends[at] = function_ends[self.past_value(end)[0]] if end >= 0 else -1
            elif kind not in ENDS_BLOCK and kind != FUNCTION:
                function_ends[at] = function_ends[at + 1]
        return function_ends

    def _opens_call(self, at: int) -> bool:
        return (
            self.kinds[at + 2] in (PARAMETER, FUNCTION_END)
            and self.starts_line(at)
            and self.adjoins(at)
            and self.adjoins(at + 1)
        )
