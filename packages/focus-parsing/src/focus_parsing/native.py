"""Structured tool calls of a chat API as the action."""

from __future__ import annotations

from dataclasses import dataclass, field

from focus_parsing.action import ActionParser
from focus_types import ActionKind, GenerateResult, ToolCall, ToolTurn

__all__ = ["NativeToolCallParser"]


@dataclass(frozen=True)
class NativeToolCallParser(ActionParser[ToolTurn]):
    """Takes the calls that the backend returned in structured fields.

    Name, id and arguments are copied, the arguments byte for byte even where they are not JSON: the API wants
    an answer to every id, and the arguments return in the history. Blank arguments become ``{}``. The text is
    not searched for markup. Not trainable: the server read the calls out of tokens that it may not show.
    """

    trainable = False
    requires_native_channel = True
    action: ActionKind | None = field(default="tool", init=False, repr=False, compare=False)

    def parse(self, result: GenerateResult) -> ToolTurn:
        """Return the stripped text and the calls in order."""
        calls = tuple(
            ToolCall(name=call.name, arguments=call.arguments if call.arguments.strip() else "{}", call_id=call.call_id)
            for call in result.native_tool_calls or ()
        )
        return ToolTurn(text=result.text.strip(), tool_calls=calls)
