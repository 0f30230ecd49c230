"""One command a module: its options, and what they set going."""

from __future__ import annotations

__all__: list[str] = []
