"""stub"""
from __future__ import annotations
__all__ = ["serve"]
def serve() -> None:
    """Stub."""
