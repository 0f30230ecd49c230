"""What a parser is: a reply in, an action out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, Self, runtime_checkable

from focus_types import ActionKind, GenerateResult, TokenId

__all__ = ["ActionParser", "OpensReasoning"]


class ActionParser[A](ABC):
    """Decodes a reply into the action that an environment's ``step`` takes.

    Implement ``parse`` and state the three attributes where they differ.
    """

    trainable: bool = True
    """Whether the action is read from the generated tokens alone, so that training on them is sound."""
    requires_native_channel: bool = False
    """Whether the action comes from structured fields of a chat API instead of the text."""
    action: ActionKind | None = None
    """The kind of action; None if it is the task's own."""

    @abstractmethod
    def parse(self, result: GenerateResult) -> A:
        """Return the action that ``result`` expresses, or a malformed one as the task defines it."""


@runtime_checkable
class OpensReasoning(Protocol):
    """A parser that can be told which prompt ending opens a thought."""

    @property
    def reasoning_open(self) -> tuple[TokenId, ...]:
        """A reply to a prompt that ends in these ids starts inside a thought; empty: none does."""
        ...

    def with_reasoning_open(self, tokens: Sequence[TokenId]) -> Self:
        """An equal parser with another ``reasoning_open``."""
        ...
