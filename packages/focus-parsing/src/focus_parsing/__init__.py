"""Parsers that turn model replies into actions."""

from __future__ import annotations

from focus_parsing.action import ActionParser, OpensReasoning
from focus_parsing.hermes import HermesToolCallParser
from focus_parsing.native import NativeToolCallParser
from focus_parsing.qwen_xml import QwenXMLToolCallParser
from focus_parsing.text import TextActionParser
from focus_parsing.token_chunk import TokenChunkParser
from focus_parsing.turn import TOOL_CALL, tool_turn

__all__ = [
    "TOOL_CALL",
    "ActionParser",
    "HermesToolCallParser",
    "NativeToolCallParser",
    "OpensReasoning",
    "QwenXMLToolCallParser",
    "TextActionParser",
    "TokenChunkParser",
    "tool_turn",
]
