"""Policy backends for training language-model agents: exact token ids in, exact ids and log-probabilities out."""

from __future__ import annotations

__all__: list[str] = []
