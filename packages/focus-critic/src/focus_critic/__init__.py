"""The critic: predict the remaining return of a context."""

from __future__ import annotations

__all__: list[str] = []
