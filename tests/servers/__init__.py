"""Real servers on loopback, each from a recipe in ``recipes/``."""

from __future__ import annotations

__all__: list[str] = []
