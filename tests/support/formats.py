"""Formats over the byte tokenizer: nothing to download, every id known."""

from __future__ import annotations

from typing import Any

from focus_format import PolicyFormat
from focus_testing import ByteTokenizer

__all__ = ["byte_format"]


def byte_format(profile: str = "text") -> PolicyFormat[Any]:
    return PolicyFormat.resolve("byte", tokenizer=ByteTokenizer(), profile=profile)
