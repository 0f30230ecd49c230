"""Policy backends for training language-model agents: exact token ids in, exact ids and log-probabilities out."""

from __future__ import annotations

from focus_critic import Critic

__all__ = ["Critic"]
