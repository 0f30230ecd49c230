"""The parts of the generation API by module."""

from __future__ import annotations

from focus_types import NativeToolCall

__all__ = ["NativeToolCall"]
