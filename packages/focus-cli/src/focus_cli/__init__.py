"""The focus command."""

from __future__ import annotations

from focus_cli.app import app, main

__all__ = ["app", "main"]
