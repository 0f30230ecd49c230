"""Parsers that turn model replies into actions."""

from __future__ import annotations

__all__: list[str] = []
