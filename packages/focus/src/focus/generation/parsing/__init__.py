"""The parser interface and the record of a parsed call."""

from __future__ import annotations

from focus_parsing import ActionParser
from focus_types import ToolCall

__all__ = ["ActionParser", "ToolCall"]
