"""The Qwen XML dialect: functions and parameters in ``<tool_call>`` blocks (Qwen3-Coder, Qwen3.5)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from focus_parsing.action import ActionParser
from focus_parsing.blocks import Block
from focus_parsing.functions import Function
from focus_parsing.json_text import encodable, string_json
from focus_parsing.schema import UNKNOWN, Types, parameter_types
from focus_parsing.turn import read_turn
from focus_parsing.values import value_json
from focus_types import ActionKind, GenerateResult, TokenId, ToolCall, ToolTurn
from focus_types.tokens import check_token_ids

__all__ = ["QwenXMLToolCallParser"]


@dataclass(frozen=True, init=False)
class QwenXMLToolCallParser(ActionParser[ToolTurn]):
    """Reads ``<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>``.

    One line end on each side of a value is layout, all else is data. Quoted tags in a value are data, forgotten
    end tags are tolerated, several functions in a block are several calls, and a complete function at the start
    of a line needs no block. A block with anything out of place, a repeated parameter included, is reported as
    ``ToolCall(name="", arguments=<block>)``.

    Args:
        reasoning_open: Ids that open a thought: a reply to a prompt that ends in them starts inside the
            thought, and one without ``</think>`` is reasoning.
        tools: OpenAI-shaped tools. Values of the parameters they declare are read by their types: a string is
            the text itself, another type what fits it, and what fits none stays text. Without a declared type
            only the literals that templates write are decoded, and only if they print back as written.

    Raises:
        InvalidRequestError: ``tools`` is not a sequence, or an id is not one.
    """

    reasoning_open: tuple[TokenId, ...]
    """The ids at the end of a prompt that open a thought; empty: the text alone tells."""
    _types: dict[tuple[str, str], Types] = field(hash=False)

    action: ActionKind | None = field(default="tool", init=False, repr=False, compare=False)

    def __init__(self, *, reasoning_open: Sequence[TokenId] = (), tools: Sequence[Mapping[str, Any]] = ()) -> None:
        object.__setattr__(self, "reasoning_open", check_token_ids(reasoning_open) if reasoning_open else ())
        object.__setattr__(self, "_types", parameter_types(tools))

    def with_reasoning_open(self, tokens: Sequence[TokenId]) -> Self:
        """An equal parser with another ``reasoning_open``."""
        parser = copy.copy(self)
        object.__setattr__(parser, "reasoning_open", check_token_ids(tokens) if tokens else ())
        return parser

    def parse(self, result: GenerateResult) -> ToolTurn:
        """Return the turn that the reply's text expresses; never raises for a text."""
        opened = self.reasoning_open
        in_thought = bool(opened) and tuple(result.prefix_tokens[-len(opened) :]) == opened
        return read_turn(result.text, self._decode, in_thought=in_thought, bare_functions=True)

    def _decode(self, block: Block) -> Sequence[ToolCall]:
        if any(encodable(function.name) != function.name for function in block.functions):
            return ()
        return [self._call(function) for function in block.functions]

    def _call(self, function: Function) -> ToolCall:
        members: list[str] = []
        for key, raw in function.parameters.items():
            types = self._types.get((function.name, key), UNKNOWN)
            members.append(f"{string_json(key)}: {value_json(raw, types)}")
        return ToolCall(name=function.name, arguments="{" + ", ".join(members) + "}")
