"""Messages to tokens and back, exactly: PolicyFormat, PreparedPrompt, Policy and the chat-template codec."""

from __future__ import annotations

__all__: list[str] = []
