"""What the output items of a Responses API say: text, refusal, calls, log-probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from focus_format.narrow import is_list, is_mapping
from focus_openai.calls import call_from
from focus_types import NativeToolCall

__all__ = ["Items", "read_items"]


@dataclass(slots=True)
class Items:
    """The readable part of a list of output items."""

    text: str = ""
    refusal: str = ""
    calls: list[NativeToolCall] = field(default_factory=list[NativeToolCall])
    logprobs: list[Any] = field(default_factory=list[Any])


def read_items(items: Iterable[Mapping[str, Any]]) -> Items:
    """Messages and function calls in order; reasoning, and items of kinds to come, are for replaying only.

    Raises:
        ProtocolError: A call without a name that is text.
    """
    found = Items()
    for item in items:
        match item.get("type"):
            case "message":
                _read_parts(item.get("content"), found)
            case "function_call":
                found.calls.append(call_from(item, str(item.get("call_id") or "")))
            case _:
                pass
    return found


def _read_parts(parts: Any, found: Items) -> None:
    if isinstance(parts, str):
        found.text += parts
    for part in parts if is_list(parts) else ():
        if not is_mapping(part):
            continue
        match part:
            case {"type": "output_text", "text": str(text)}:
                found.text += text
                logprobs: Any = part.get("logprobs")
                found.logprobs.extend(logprobs if is_list(logprobs) else ())
            case {"type": "refusal", "refusal": str(refusal)}:
                found.refusal += refusal
            case _:
                pass
