"""stub"""
from __future__ import annotations
__all__ = ["check"]
def check() -> None:
    """Stub."""
