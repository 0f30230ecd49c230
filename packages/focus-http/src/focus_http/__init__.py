"""The JSON-over-HTTP client of the focus backends: exact errors, deadlines, safe retries."""

from __future__ import annotations

__all__: list[str] = []
