"""The critic: predict the remaining return of a context."""

from __future__ import annotations

from focus_critic import Critic, PredictFn, score

__all__ = ["Critic", "PredictFn", "score"]
