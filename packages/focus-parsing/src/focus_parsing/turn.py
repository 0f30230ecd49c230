"""Reading a reply as a tool-calling turn: thoughts, visible text and call blocks apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from focus_parsing.blocks import Block, bare_function, block_at
from focus_parsing.tags import EOF, FUNCTION, THINK, THINK_END, TOOL_CALL_OPEN, Tags
from focus_types import ToolCall, ToolTurn

__all__ = ["TOOL_CALL", "read_turn", "tool_turn"]

TOOL_CALL = re.compile("<tool_call>(.*?)</tool_call>", re.DOTALL)
"""A serialized call block. Its time grows with the square of the openings that have no end: the parsers do not
run it, and a text from a model should not be searched with it unless its length is bounded."""

_END_TOKENS = ("<|im_end|>", "<|endoftext|>")
_THINK_OPENINGS = re.compile(r"(?:\s*+<think>)*+")


def tool_turn(text: str, decode: Callable[[str], ToolCall]) -> ToolTurn:
    """Read a reply whose call blocks are in a syntax of your own.

    Args:
        text: The whole reply.
        decode: Turns what stands between ``<tool_call>`` and ``</tool_call>`` into a call. ``ValueError``,
            ``LookupError`` and ``TypeError`` (and ``RecursionError``, which ``json`` raises for deep nesting)
            say that the block is malformed: it becomes ``ToolCall(name="", arguments=<block>)``.

    Returns:
        The turn. A body in JSON or XML that the text cuts off is malformed without a call of ``decode``.
    """

    def decoded(block: Block) -> Sequence[ToolCall] | None:
        try:
            return (decode(block.body),)
        except (ValueError, LookupError, TypeError, RecursionError):
            return None

    return read_turn(text, decoded)


def read_turn(
    text: str,
    decode: Callable[[Block], Sequence[ToolCall] | None],
    *,
    in_thought: bool = False,
    bare_functions: bool = False,
) -> ToolTurn:
    """Read a reply.

    Args:
        text: The whole reply.
        decode: The calls of a complete block, in order; None if it is malformed. Called once for each block
            that is not in a thought.
        in_thought: The prompt has opened a thought.
        bare_functions: A complete XML function without a block around it is a block.
    """
    return _Reader(Tags(_without_end_tokens(text)), decode, bare_functions).read(in_thought)


def _without_end_tokens(text: str) -> str:
    end = len(text.rstrip())
    while token := next((token for token in _END_TOKENS if text.endswith(token, 0, end)), None):
        end -= len(token)
        while end and text[end - 1].isspace():
            end -= 1
    return text[:end]


class _Reader:
    def __init__(self, tags: Tags, decode: Callable[[Block], Sequence[ToolCall] | None], bare: bool) -> None:
        self.tags = tags
        self.decode = decode
        self.bare = bare
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[ToolCall] = []
        self.decoded: dict[int, Sequence[ToolCall] | None] = {}

    def read(self, in_thought: bool) -> ToolTurn:
        tags, begin = self.tags, 0
        thinks = THINK_END in tags.kinds
        blocks, opening, close = self.blocks(0, 0, to_thought=thinks)
        thought = 0 if in_thought or opening < 0 else tags.starts[opening]
        if close >= 0:
            self.keep(begin, thought, [block for block in blocks if block.start < thought])
            at, begin, in_thought = self.thoughts(thought, close)
            blocks, thought = self.blocks(at, begin, to_thought=False)[0], begin
        elif opening >= 0 and not in_thought:
            in_thought = tags.starts_line(opening) or not tags.text[:thought].strip()
        if in_thought:
            self.keep(begin, thought, [block for block in blocks if block.start < thought])
            blocks = self.last_run([block for block in blocks if block.start >= thought])
            begin = blocks[0].start if blocks else len(tags.text)
            self.reason(thought, begin)
        self.keep(begin, len(tags.text), blocks)
        return ToolTurn("".join(self.text).strip(), tuple(self.calls), "\n".join(self.reasoning))

    def blocks(self, at: int, begin: int, *, to_thought: bool) -> tuple[list[Block], int, int]:
        """The blocks from a tag on, the first ``<think>`` and the first ``</think>`` outside well-formed calls.

        Args:
            at: Index of the first tag.
            begin: Where the stretch to read starts in the text.
            to_thought: Stop at the first ``</think>``.

        Returns:
            The blocks, and the indices of the two tags, -1 where there is none.
        """
        tags, opening = self.tags, -1
        found: list[Block] = []
        first = at
        while (kind := tags.kinds[at]) != EOF:
            block = None
            if kind == TOOL_CALL_OPEN:
                block = block_at(tags, at)
            elif kind == FUNCTION:
                fresh = at == first and tags.blank(begin, tags.starts[at])
                if self.bare and (fresh or tags.starts_line(at)):
                    block = bare_function(tags, at)
            elif kind == THINK_END and to_thought:
                return found, opening, at
            elif kind == THINK and opening < 0:
                opening = at
            if block is None:
                at += 1
                continue
            found.append(block)
            if to_thought:
                close = next((i for i in range(at, block.next) if tags.kinds[i] == THINK_END), -1)
                if close >= 0:
                    self.decoded[block.start] = calls = self.calls_of(block)
                    if not calls:
                        return found, opening, close
            at, begin = block.next, block.stop
            first = at
        return found, opening, -1

    def thoughts(self, start: int, close: int) -> tuple[int, int, bool]:
        """Take the thought that ends at ``close`` and those that follow it with nothing between.

        Returns:
            Index of the next tag, where the text goes on, and whether it goes on inside a thought.
        """
        tags = self.tags
        while True:
            self.reason(start, tags.starts[close])
            while tags.kinds[close + 1] == THINK_END and tags.adjoins(close):
                close += 1
            start = tags.ends[close]
            if tags.kinds[close + 1] != THINK or not tags.adjoins(close):
                return close + 1, start, False
            following = next((i for i in range(close + 1, len(tags.kinds)) if tags.kinds[i] == THINK_END), -1)
            if following < 0:
                return close + 1, start, True
            close = following

    def last_run(self, blocks: list[Block]) -> list[Block]:
        """The blocks at the very end, with only white space between and after them."""
        end, first = len(self.tags.text), len(blocks)
        while first and self.tags.blank(blocks[first - 1].stop, end):
            first -= 1
            end = blocks[first].start
        return blocks[first:]

    def reason(self, start: int, end: int) -> None:
        openings = _THINK_OPENINGS.match(self.tags.text, start, end)
        thought = self.tags.text[openings.end() if openings else start : end].strip()
        if thought:
            self.reasoning.append(thought)

    def keep(self, start: int, end: int, blocks: list[Block]) -> None:
        """Take a visible stretch: its blocks as calls, the rest as text."""
        for block in blocks:
            self.text.append(self.tags.text[start : block.start])
            self.calls.extend(self.calls_of(block) or (ToolCall(name="", arguments=block.body.strip()),))
            start = block.stop
        self.text.append(self.tags.text[start:end])

    def calls_of(self, block: Block) -> Sequence[ToolCall] | None:
        if block.start in self.decoded:
            return self.decoded[block.start]
        return self.decode(block) if block.complete else None
