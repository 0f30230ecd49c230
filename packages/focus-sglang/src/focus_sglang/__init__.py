"""Exact generation through an SGLang server."""

from __future__ import annotations

__all__: list[str] = []
