"""The pieces that tool-call parsers are built from."""

from __future__ import annotations

from focus_parsing import TOOL_CALL, tool_turn

__all__ = ["TOOL_CALL", "tool_turn"]
