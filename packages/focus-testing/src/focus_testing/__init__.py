"""An engine on the desk: exactly known models, real sampling, the servers' wires on loopback."""

from __future__ import annotations

__all__: list[str] = []
