"""Exact token ids as the action."""

from __future__ import annotations

from dataclasses import dataclass, field

from focus_parsing.action import ActionParser
from focus_types import ActionKind, GenerateResult, ParseError, TokenChunk

__all__ = ["TokenChunkParser"]


@dataclass(frozen=True)
class TokenChunkParser(ActionParser[TokenChunk]):
    """Takes the generated ids, the stop token included and the prompt left out."""

    action: ActionKind | None = field(default="tokens", init=False, repr=False, compare=False)

    def parse(self, result: GenerateResult) -> TokenChunk:
        """Return the segment.

        Returns:
            The ids; ``finished`` is True after "stop" and False after "length".

        Raises:
            ParseError: Any other stop reason, which it names: such a segment can neither be continued nor
                taken as an answer.
        """
        if result.stop_reason not in ("stop", "length"):
            raise ParseError(
                f'a segment must end by "stop" or "length", this one ended by {result.stop_reason!r}:'
                " discard it and generate it again"
            )
        return TokenChunk(tokens=tuple(result.tokens), finished=result.stop_reason == "stop")
