"""What runs in another process: it must be importable there."""

from __future__ import annotations

import asyncio
from typing import Any

from focus.backends import Policy, PreparedPrompt

__all__ = ["generate_elsewhere"]


def generate_elsewhere(policy: Policy[Any], prompt: PreparedPrompt) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The reply's ids, made by the blocking and by the async call."""
    try:
        return policy.generate(prompt).tokens, asyncio.run(policy.agenerate(prompt)).tokens
    finally:
        policy.close()
