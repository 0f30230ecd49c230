"""JSON text that any consumer can encode."""

from __future__ import annotations

import json
import re

__all__ = ["encodable", "string_json"]

_ENCODER = json.JSONEncoder(ensure_ascii=False)
_SURROGATE = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    r"""The same JSON text with lone surrogates, which UTF-8 cannot carry, written as ``\uXXXX``."""
    return text if text.isascii() else _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def string_json(value: str) -> str:
    """A string as encodable JSON text."""
    return encodable(_ENCODER.encode(value))
