"""What real servers speak, on loopback: one module per wire."""

from __future__ import annotations

__all__: list[str] = []
