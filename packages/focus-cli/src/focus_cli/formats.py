"""Model names to formats, the embedded engine's tokenizer included."""

from __future__ import annotations

import os
from typing import Any

from focus_format import PolicyFormat

__all__ = ["BYTE", "resolve"]

BYTE = "byte"
"""The name of the tokenizer of the embedded engine and of `focus serve`."""


def resolve(model: str, profile: str | None) -> PolicyFormat[Any]:
    """The format of a hub's model, of a folder, or of the byte tokenizer.

    Raises:
        InvalidRequestError: No tokenizer under that name, or nothing tells the dialect of its tool calls.
        ImportError: A tokenizer is to be loaded and transformers is not installed.
    """
    if model != BYTE:
        # Only tokenizers are needed, so advice to install a framework would mislead.
        os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
        return PolicyFormat.resolve(model, profile=profile)
    from focus_testing.tokenizer import ByteTokenizer

    return PolicyFormat.resolve(BYTE, tokenizer=ByteTokenizer(), profile=profile)
