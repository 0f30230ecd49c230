"""Defaults of the sampling parameters."""

from __future__ import annotations

from focus_types import DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE, DEFAULT_TOP_P

__all__ = ["DEFAULT_MAX_TOKENS", "DEFAULT_TEMPERATURE", "DEFAULT_TOP_P"]
