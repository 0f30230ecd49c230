"""The records that travel between backends, parsers and environments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from focus_types.aliases import TokenId
from focus_types.meta import GenerateMeta

__all__ = ["GenerateResult", "NativeToolCall", "TokenChunk", "ToolCall", "ToolTurn"]


@dataclass(frozen=True)
class NativeToolCall:
    """A structured tool call as a backend returned it, apart from the completion text."""

    name: str
    arguments: str
    """JSON text, byte for byte as received."""
    call_id: str = ""


@dataclass(frozen=True)
class ToolCall:
    """A parsed tool call. ``name == ""`` marks a malformed attempt whose raw text is in ``arguments``."""

    name: str
    arguments: str
    """JSON text of an object; the raw block of a malformed attempt."""
    call_id: str = ""


@dataclass(frozen=True)
class ToolTurn:
    """A parsed assistant turn: visible text, reasoning, tool calls in order."""

    text: str
    tool_calls: tuple[ToolCall, ...] = field(default_factory=tuple)
    reasoning: str = ""


@dataclass(frozen=True)
class TokenChunk:
    """One generated segment as exact token ids."""

    tokens: tuple[TokenId, ...]
    finished: bool
    """False: generation can go on from here. True: the model ended its reply."""


@dataclass
class GenerateResult:
    """One reply of the model.

    ``logprobs[i]`` belongs to ``tokens[i]``. ``text`` is for reading, ``tokens`` for training: a reply that
    matched a stop string keeps the tokens past it, while its text is cut where the string begins.
    """

    tokens: tuple[TokenId, ...] = field(default_factory=tuple)
    """Every generated id, the stop token included."""
    prefix_tokens: tuple[TokenId, ...] = field(default_factory=tuple)
    """The ids that were sent."""
    text: str = ""
    """Decoded from the tokens without the final stop token, special tokens kept."""
    stop_reason: str = "stop"
    """"stop", "length", "abort", or the server's own word."""
    matched_stop: int | str | None = None
    """The stop token's id or the stop string."""
    logprobs: list[float] = field(default_factory=list[float])
    """Natural log, one per token; empty when not asked or not usable."""
    top_logprobs: list[dict[str, float]] | None = None
    """Per token, the asked alternatives and the sampled token; keys are ``"token_id:<id>"`` on token backends."""
    prompt_logprobs: list[float | None] = field(default_factory=list[float | None])
    """One per prompt token, the first ``None``; empty when not asked."""
    prompt_top_logprobs: list[dict[str, float] | None] | None = None
    """Per prompt token, the asked alternatives and the token itself, the first ``None``; None when not asked."""
    entropy: float = 0.0
    """Mean of -logprob over the tokens, nats per token: a one-sample estimate of the entropy of whatever
    distribution the log-probabilities are of; 0.0 without usable ones."""
    exact_generation: bool = True
    """Ids came as integers for exactly these prompt ids, and log-probabilities, when asked, match them."""
    native_tool_calls: tuple[NativeToolCall, ...] | None = None
    """Calls that a chat API returned in structured fields."""
    native_output: tuple[dict[str, Any], ...] = ()
    """Output items of a Responses API, in order, as they must be replayed."""
    meta: GenerateMeta | None = None
    """What is known about this reply beyond its content."""
