"""stub"""
from __future__ import annotations
__all__ = ["show"]
def show() -> None:
    """Stub."""
