"""The records, aliases, protocols and errors that every focus package speaks."""

from __future__ import annotations

from focus_types.aliases import ActionKind, Message, TokenId
from focus_types.completion import Completion
from focus_types.errors import (
    AbortedError,
    AuthenticationError,
    BackendError,
    ContextLengthError,
    FocusError,
    InvalidRequestError,
    LogprobWarning,
    ParseError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ScoringError,
    ServerUnavailableError,
)
from focus_types.meta import GenerateMeta, LogprobMode, ServerReport
from focus_types.protocols import AnyRollout, ChatCodec, HFTokenizer
from focus_types.records import GenerateResult, NativeToolCall, TokenChunk, ToolCall, ToolTurn
from focus_types.sampling import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_TEMPERATURE,
    DEFAULT_TOP_P,
    SamplingParams,
)

__all__ = [
    "DEFAULT_MAX_TOKENS",
    "DEFAULT_TEMPERATURE",
    "DEFAULT_TOP_P",
    "AbortedError",
    "ActionKind",
    "AnyRollout",
    "AuthenticationError",
    "BackendError",
    "ChatCodec",
    "Completion",
    "ContextLengthError",
    "FocusError",
    "GenerateMeta",
    "GenerateResult",
    "HFTokenizer",
    "InvalidRequestError",
    "LogprobMode",
    "LogprobWarning",
    "Message",
    "NativeToolCall",
    "ParseError",
    "ProtocolError",
    "RateLimitError",
    "RequestTimeoutError",
    "SamplingParams",
    "ScoringError",
    "ServerReport",
    "ServerUnavailableError",
    "TokenChunk",
    "TokenId",
    "ToolCall",
    "ToolTurn",
]
