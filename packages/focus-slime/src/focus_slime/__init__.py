"""Exact generation through Slime's own transport."""

from __future__ import annotations

from focus_slime.policy import PostFn, SlimePolicy

__all__ = ["PostFn", "SlimePolicy"]
