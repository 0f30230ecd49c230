"""Policy backends, the format, the parsers and the records they exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focus_format import Policy, PolicyFormat, PreparedPrompt
from focus_parsing import (
    HermesToolCallParser,
    NativeToolCallParser,
    QwenXMLToolCallParser,
    TextActionParser,
    TokenChunkParser,
)
from focus_types import (
    GenerateMeta,
    GenerateResult,
    SamplingParams,
    ServerReport,
    TokenChunk,
    TokenId,
    ToolTurn,
)

if TYPE_CHECKING:
    from focus_critic import VLLMCritic
    from focus_openai import OpenAIChatPolicy, OpenAIResponsesPolicy
    from focus_sglang import SGLangPolicy
    from focus_slime import SlimePolicy
    from focus_tinker import TinkerPolicy
    from focus_vllm import VLLMPolicy

__all__ = [
    "GenerateMeta",
    "GenerateResult",
    "HermesToolCallParser",
    "NativeToolCallParser",
    "OpenAIChatPolicy",
    "OpenAIResponsesPolicy",
    "Policy",
    "PolicyFormat",
    "PreparedPrompt",
    "QwenXMLToolCallParser",
    "SGLangPolicy",
    "SamplingParams",
    "ServerReport",
    "SlimePolicy",
    "TextActionParser",
    "TinkerPolicy",
    "TokenChunk",
    "TokenChunkParser",
    "TokenId",
    "ToolTurn",
    "VLLMCritic",
    "VLLMPolicy",
]

if not TYPE_CHECKING:
    from focus._lazy import installed, lazy_attributes

    _SOURCES = {
        "OpenAIChatPolicy": "focus_openai",
        "OpenAIResponsesPolicy": "focus_openai",
        "SGLangPolicy": "focus_sglang",
        "SlimePolicy": "focus_slime",
        "TinkerPolicy": "focus_tinker",
        "VLLMCritic": "focus_critic",
        "VLLMPolicy": "focus_vllm",
    }
    __getattr__, __dir__ = lazy_attributes(__name__, __all__, _SOURCES)
    # focus_critic is always there; its client needs more.
    __all__ = installed(__all__, {**_SOURCES, "VLLMCritic": "focus_http"})
