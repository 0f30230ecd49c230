"""The callback that SlimePolicy sends through."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from focus_slime import PostFn

__all__ = ["PostFn"]

if not TYPE_CHECKING:
    from focus._lazy import installed, lazy_attributes

    _SOURCES = {"PostFn": "focus_slime"}
    __getattr__, __dir__ = lazy_attributes(__name__, __all__, _SOURCES)
    __all__ = installed(__all__, _SOURCES)
