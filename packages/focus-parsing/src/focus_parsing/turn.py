"""Reading a reply as a tool-calling turn: thoughts, visible text and call blocks apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from focus_parsing.blocks import Block, bare_function, block_at, last_opening
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

    def decoded(block: Block) -> Sequence[ToolCall]:
        try:
            return (decode(block.body),)
        except (ValueError, LookupError, TypeError, RecursionError):
            return ()

    return read_turn(text, decoded)


def read_turn(
    text: str,
    decode: Callable[[Block], Sequence[ToolCall]],
    *,
    in_thought: bool = False,
    bare_functions: bool = False,
) -> ToolTurn:
    """Read a reply.

    Args:
        text: The whole reply.
        decode: The calls of a complete block, in order; none if it is malformed. Called once for each block
            that is not in a thought, and for those in a thought that hold a ``</think>``.
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
    def __init__(self, tags: Tags, decode: Callable[[Block], Sequence[ToolCall]], bare: bool) -> None:
        self.tags = tags
        self.decode = decode
        self.bare = bare
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[ToolCall] = []
        self.decoded: dict[int, Sequence[ToolCall]] = {}

    def read(self, in_thought: bool) -> ToolTurn:
        tags, end = self.tags, len(self.tags.text)
        if in_thought or THINK in tags.kinds or THINK_END in tags.kinds:
            blocks, opening, close = self.find_thought()
            if in_thought:
                start = 0
            elif close >= 0:
                start = 0 if opening < 0 else tags.starts[opening]
            else:  # a <think> without end that is not on a line of its own is a mention
                start = tags.starts[opening] if opening >= 0 and self.begins_line(opening) else end
            self.keep(0, start, (block for block in blocks if block.start < start))
            if close < 0:
                self.keep_open(start, [block for block in blocks if block.start >= start])
            else:
                self.keep_thoughts(start, close)
        else:
            self.keep(0, end, self.blocks(0, 0))
        return ToolTurn("".join(self.text).strip(), tuple(self.calls), "\n".join(self.reasoning))

    def find_thought(self) -> tuple[list[Block], int, int]:
        """The blocks up to the first ``</think>`` outside well-formed calls, and the indices of two tags.

        Returns:
            The blocks, the first ``<think>`` outside blocks and that ``</think>``; -1 where there is none.
        """
        kinds, opening = self.tags.kinds, -1
        blocks: list[Block] = []
        for at, block in self.items(0, 0):
            if block is None:
                if kinds[at] == THINK_END:
                    return blocks, opening, at
                opening = at if opening < 0 else opening
                continue
            blocks.append(block)
            if THINK_END in kinds[at : block.next]:
                self.decoded[block.start] = self.calls_of(block)
                if not self.decoded[block.start]:
                    return blocks, opening, kinds.index(THINK_END, at)
        return blocks, opening, -1

    def items(self, at: int, begin: int) -> Iterator[tuple[int, Block | None]]:
        """Blocks, and thought tags outside them (with None), each with the index of its first tag.

        Args:
            at: Index of the first tag to read.
            begin: Where the stretch to read begins in the text.
        """
        tags, kinds, first = self.tags, self.tags.kinds, at
        while (kind := kinds[at]) != EOF:
            block, last = None, at
            if kind == TOOL_CALL_OPEN:
                if kinds[at + 1] == TOOL_CALL_OPEN:
                    last = last_opening(tags, at)
                block = block_at(tags, at, last)
            elif kind == FUNCTION and self.bare:
                if tags.starts_line(at) or (at == first and tags.blank(begin, tags.starts[at])):
                    block = bare_function(tags, at)
            elif kind in (THINK, THINK_END):
                yield at, None
            if block is None:
                at = last + 1
            else:
                yield at, block
                first = at = block.next
                begin = block.stop

    def blocks(self, at: int, begin: int) -> Iterator[Block]:
        return (block for _, block in self.items(at, begin) if block is not None)

    def begins_line(self, at: int) -> bool:
        return self.tags.starts_line(at) or not self.tags.text[: self.tags.starts[at]].strip()

    def keep(self, start: int, end: int, blocks: Iterable[Block]) -> None:
        """Take a visible stretch: its blocks as calls, the rest as text."""
        for block in blocks:
            if start != block.start:
                self.text.append(self.tags.text[start : block.start])
            self.calls.extend(self.calls_of(block) or (ToolCall("", block.body.strip()),))
            start = block.stop
        self.text.append(self.tags.text[start:end])

    def keep_open(self, start: int, blocks: Sequence[Block]) -> None:
        """Take a thought without end: the blocks at the very end of the reply, if any, end it."""
        tags = self.tags
        first, end = len(blocks), len(tags.text)
        while first and tags.blank(blocks[first - 1].stop, end):
            first -= 1
            end = blocks[first].start
        self.reason(start, end)
        self.keep(end, len(tags.text), blocks[first:])

    def keep_thoughts(self, start: int, close: int) -> None:
        """Take the thought from ``start`` to the tag ``close``, those that directly follow it, and the rest."""
        tags = self.tags
        while True:
            self.reason(start, tags.starts[close])
            while tags.kinds[close + 1] == THINK_END and tags.adjoins(close):
                close += 1
            start, after = tags.ends[close], close + 1
            if tags.kinds[after] != THINK or not tags.adjoins(close):
                return self.keep(start, len(tags.text), self.blocks(after, start))
            try:
                close = tags.kinds.index(THINK_END, after)
            except ValueError:
                return self.keep_open(start, list(self.blocks(after, start)))

    def reason(self, start: int, end: int) -> None:
        openings = _THINK_OPENINGS.match(self.tags.text, start, end)
        thought = self.tags.text[openings.end() if openings else start : end].strip()
        if thought:
            self.reasoning.append(thought)

    def calls_of(self, block: Block) -> Sequence[ToolCall]:
        if block.start in self.decoded:
            return self.decoded[block.start]
        return self.decode(block) if block.complete else ()
