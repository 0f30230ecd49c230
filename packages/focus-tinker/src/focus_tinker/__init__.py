"""Exact generation through a Tinker sampling client."""

from __future__ import annotations

from focus_tinker.policy import TinkerPolicy

__all__ = ["TinkerPolicy"]
