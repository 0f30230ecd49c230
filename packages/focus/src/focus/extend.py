"""What an author of policies, parsers, codecs and environments types against."""

from __future__ import annotations

from focus_types import ActionKind, AnyRollout, ChatCodec, HFTokenizer, Message

__all__ = ["ActionKind", "AnyRollout", "ChatCodec", "HFTokenizer", "Message"]
