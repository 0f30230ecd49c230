"""Chat Completions and Responses as policies."""

from __future__ import annotations

from focus_openai.chat import OpenAIChatPolicy
from focus_openai.native import NativePolicy
from focus_openai.responses import OpenAIResponsesPolicy

__all__ = ["NativePolicy", "OpenAIChatPolicy", "OpenAIResponsesPolicy"]
