"""Exact generation through Slime's own transport."""

from __future__ import annotations

__all__: list[str] = []
