"""What must hold for the turn that a parser reads out of any text."""

from __future__ import annotations

import json

from focus_parsing import ActionParser, HermesToolCallParser, QwenXMLToolCallParser
from focus_types import GenerateResult, ToolTurn
from support.replies import MARKERS

__all__ = ["PARSERS", "check_accounting", "check_turn", "parse"]

_TOOL = {"name": "f", "parameters": {"properties": {"a": {"type": "array"}}}}
PARSERS: tuple[ActionParser[ToolTurn], ...] = (
    HermesToolCallParser(),
    HermesToolCallParser(reasoning_open=[9]),
    QwenXMLToolCallParser(),
    QwenXMLToolCallParser(reasoning_open=[9], tools=[_TOOL]),
)


def parse(parser: ActionParser[ToolTurn], text: str) -> ToolTurn:
    """Parse a reply to a prompt that opens a thought for those parsers that know."""
    return parser.parse(GenerateResult(text=text, prefix_tokens=(9,)))


def check_turn(turn: ToolTurn) -> None:
    """Text and reasoning are stripped; a named call has an object for arguments and can be sent."""
    assert (turn.text, turn.reasoning) == (turn.text.strip(), turn.reasoning.strip())
    for call in turn.tool_calls:
        assert call.call_id == ""
        if call.name:
            assert isinstance(json.loads(call.arguments), dict)
            call.name.encode()
            call.arguments.encode()


def check_accounting(text: str, turn: ToolTurn) -> None:
    """Every marker of the text is in the turn once, and those of each part are in the order of the text."""
    calls = "".join(call.name + call.arguments for call in turn.tool_calls)
    marks = [[mark for mark in part if mark in MARKERS] for part in (turn.text, turn.reasoning, calls)]
    assert sorted(mark for part in marks for mark in part) == [mark for mark in text if mark in MARKERS]
    assert all(part == sorted(part) for part in marks)
