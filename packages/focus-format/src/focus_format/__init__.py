"""Messages to tokens and back, exactly: PolicyFormat, PreparedPrompt, Policy and the chat-template codec."""

from __future__ import annotations

from focus_format.codec import ChatTemplateCodec
from focus_format.format import PolicyFormat, PreparedPrompt
from focus_format.policy import Policy

__all__ = ["ChatTemplateCodec", "Policy", "PolicyFormat", "PreparedPrompt"]
