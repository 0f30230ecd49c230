"""Chat Completions and Responses as policies."""

from __future__ import annotations

__all__: list[str] = []
