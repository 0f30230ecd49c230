"""Exact generation through a Tinker sampling client."""

from __future__ import annotations

__all__: list[str] = []
