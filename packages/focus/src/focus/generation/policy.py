"""The policy and the callback that a custom one generates through."""

from __future__ import annotations

from focus_format import Policy
from focus_types import Completion

__all__ = ["Completion", "Policy"]
