"""An engine that plays a small conversation with a tool: what examples, the command line and `serve` start with."""

from __future__ import annotations

from typing import Any

from focus_testing.engine import Engine
from focus_testing.models.script import ScriptModel
from focus_testing.tokenizer import ByteTokenizer

__all__ = ["DEMO_TOOLS", "demo_engine"]

DEMO_TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "flip_coin",
            "description": "Flip a coin that may be loaded.",
            "parameters": {"type": "object", "properties": {"times": {"type": "integer"}}, "required": ["times"]},
        },
    }
]
"""The tool that the demo engine calls."""


def demo_engine() -> Engine:
    """Calls ``flip_coin`` in its first turn and tells the result from then on.

    The coin is in the words: "heads" has probability 0.75 and "tails" 0.25 at the byte where they part.
    """
    tokenizer = ByteTokenizer()
    call = '<tool_call>\n{"name": "flip_coin", "arguments": {"times": 1}}\n</tool_call>'
    told = {"The coin shows heads.": 0.75, "The coin shows tails.": 0.25}
    return Engine(ScriptModel.replies([call, told], tokenizer), tokenizer)
