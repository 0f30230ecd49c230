"""The base of the two OpenAI policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from focus_openai import NativePolicy

__all__ = ["NativePolicy"]

if not TYPE_CHECKING:
    from focus._lazy import installed, lazy_attributes

    _SOURCES = {"NativePolicy": "focus_openai"}
    __getattr__, __dir__ = lazy_attributes(__name__, __all__, _SOURCES)
    __all__ = installed(__all__, _SOURCES)
