"""The Hermes dialect: JSON objects in ``<tool_call>`` blocks (Qwen2.5, Qwen3)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from focus_parsing.action import ActionParser
from focus_parsing.blocks import Block
from focus_parsing.json_text import encodable
from focus_parsing.objects import Member, read_json
from focus_parsing.turn import read_turn
from focus_types import ActionKind, GenerateResult, TokenId, ToolCall, ToolTurn
from focus_types.tokens import check_token_ids

__all__ = ["HermesToolCallParser"]


@dataclass(frozen=True, init=False)
class HermesToolCallParser(ActionParser[ToolTurn]):
    """Reads ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``.

    JSON is strict, its arguments keep the text they were written in. ``parameters`` stands for ``arguments``,
    a string for the object it holds, nothing for ``{}``; several objects or a list of them are several calls.
    Any other block is reported as ``ToolCall(name="", arguments=<block>)``.

    Args:
        reasoning_open: Ids that open a thought: a reply to a prompt that ends in them starts inside the
            thought, and one without ``</think>`` is reasoning.
    """

    reasoning_open: tuple[TokenId, ...]
    """The ids at the end of a prompt that open a thought; empty: the text alone tells."""

    action: ActionKind | None = field(default="tool", init=False, repr=False, compare=False)

    def __init__(self, *, reasoning_open: Sequence[TokenId] = ()) -> None:
        object.__setattr__(self, "reasoning_open", check_token_ids(reasoning_open) if reasoning_open else ())

    def with_reasoning_open(self, tokens: Sequence[TokenId]) -> Self:
        """An equal parser with another ``reasoning_open``."""
        parser = copy.copy(self)
        object.__setattr__(parser, "reasoning_open", check_token_ids(tokens) if tokens else ())
        return parser

    def parse(self, result: GenerateResult) -> ToolTurn:
        """Return the turn that the reply's text expresses; never raises for a text."""
        opened = self.reasoning_open
        in_thought = bool(opened) and tuple(result.prefix_tokens[-len(opened) :]) == opened
        return read_turn(result.text, _decode, in_thought=in_thought)


def _decode(block: Block) -> Sequence[ToolCall]:
    calls: list[ToolCall] = []
    for members in block.objects:
        call = _call(members)
        if call is None:
            return ()
        calls.append(call)
    return calls


def _call(members: dict[str, Member]) -> ToolCall | None:
    name = members["name"].value if "name" in members else None
    if not isinstance(name, str) or not name or encodable(name) != name:
        return None
    given = members.get("arguments")
    if given is None:  # then nothing but the other word for it may be there
        given = members.get("parameters")
        if len(members) != (1 if given is None else 2):
            return None
    elif "parameters" in members:
        return None
    arguments = _arguments(given)
    return None if arguments is None else ToolCall(name=name, arguments=encodable(arguments))


def _arguments(member: Member | None) -> str | None:
    """The text of an object: itself, or held by a string; ``{}`` for nothing; None for anything else."""
    if member is None or member.value is None or member.value == "":
        return "{}"
    value, text = member
    if isinstance(value, str):
        try:
            value, text = read_json(value), value.strip()
        except (ValueError, RecursionError):
            return None
    return text if isinstance(value, dict) else None
