"""The reply's text as the action."""

from __future__ import annotations

from dataclasses import dataclass, field

from focus_parsing.action import ActionParser
from focus_types import ActionKind, GenerateResult

__all__ = ["TextActionParser"]


@dataclass(frozen=True)
class TextActionParser(ActionParser[str]):
    """Takes the completion text, stripped of white space at both ends and otherwise as it is."""

    action: ActionKind | None = field(default="text", init=False, repr=False, compare=False)

    def parse(self, result: GenerateResult) -> str:
        """Return ``result.text.strip()``; markup and thoughts stay."""
        return result.text.strip()
