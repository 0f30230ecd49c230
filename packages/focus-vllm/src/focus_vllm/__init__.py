"""Exact generation through a vLLM server."""

from __future__ import annotations

__all__: list[str] = []
