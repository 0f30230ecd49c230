"""``python -m focus_cli``."""

from __future__ import annotations

from focus_cli.app import main

__all__: list[str] = []

main()
