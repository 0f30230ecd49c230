"""A transport with the manners of Slime's: retries everything, returns text where there is no JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx

__all__ = ["SlimeTransport"]


class SlimeTransport:
    """Holds one client, as Slime's module does; its `post` has the shape of Slime's.

    Args:
        wait: Seconds between tries; Slime waits one.
    """

    def __init__(self, wait: float = 0.01) -> None:
        self._wait = wait
        self._client = httpx.AsyncClient(timeout=None, trust_env=False)
        self.calls = 0
        """How often the policy called."""
        self.sent: list[dict[str, Any]] = []
        """Every payload that was sent, tries included."""
        self.headers: list[Mapping[str, str] | None] = []
        """The ``headers`` of every call."""

    async def post(
        self, url: str, payload: dict[str, Any], max_retries: int = 60, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Send until it works or ``max_retries`` tries have failed."""
        self.calls += 1
        self.headers.append(headers)
        for tries_left in range(max_retries - 1, -1, -1):
            self.sent.append(payload)
            try:
                response = await self._client.post(url, json=payload, headers=headers)
                response.raise_for_status()
            except Exception:
                if not tries_left:
                    raise
                await asyncio.sleep(self._wait)
                continue
            try:
                return response.json()
            except json.JSONDecodeError:
                return response.text
        raise AssertionError("max_retries must be at least 1")

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()
