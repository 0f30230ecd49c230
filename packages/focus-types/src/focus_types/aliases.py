"""Plain names for plain types."""

from __future__ import annotations

from typing import Any, Literal

__all__ = ["ActionKind", "Message", "TokenId"]

TokenId = int
"""A token's id in the vocabulary of the tokenizer bound to the policy."""

Message = dict[str, Any]
"""One OpenAI-shaped chat message."""

type ActionKind = Literal["text", "tool", "tokens"]
"""What an action is: the reply's text, a tool-calling turn, or an exact token chunk."""
