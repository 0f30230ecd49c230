"""Short ways to parse a text and to write the turn that is expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from focus_parsing import HermesToolCallParser, QwenXMLToolCallParser
from focus_types import GenerateResult, ToolCall, ToolTurn

__all__ = ["bad", "hermes", "turn", "xml", "xml_call"]


def hermes(text: str, *, prefix: Sequence[int] = (), reasoning_open: Sequence[int] = ()) -> ToolTurn:
    parser = HermesToolCallParser(reasoning_open=reasoning_open)
    return parser.parse(GenerateResult(text=text, prefix_tokens=tuple(prefix)))


def xml(text: str, *, tools: Sequence[Mapping[str, Any]] = ()) -> ToolTurn:
    return QwenXMLToolCallParser(tools=tools).parse(GenerateResult(text=text))


def xml_call(name: str, **parameters: str) -> str:
    """A call as the templates lay it out."""
    values = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in parameters.items())
    return f"<tool_call>\n<function={name}>\n{values}</function>\n</tool_call>"


def turn(text: str, *calls: ToolCall, reasoning: str = "") -> ToolTurn:
    return ToolTurn(text, calls, reasoning)


def bad(block: str) -> ToolCall:
    """A malformed attempt."""
    return ToolCall(name="", arguments=block)
