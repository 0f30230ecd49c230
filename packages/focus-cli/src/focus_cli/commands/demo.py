"""stub"""
from __future__ import annotations
__all__ = ["demo"]
def demo() -> None:
    """Stub."""
