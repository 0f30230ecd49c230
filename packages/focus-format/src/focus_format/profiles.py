"""Which parser reads a model's replies: by name, or from how its chat template writes a tool call."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

from focus_format.codec import ChatTemplateCodec
from focus_parsing import (
    ActionParser,
    HermesToolCallParser,
    NativeToolCallParser,
    QwenXMLToolCallParser,
    TextActionParser,
    TokenChunkParser,
)
from focus_types import InvalidRequestError

__all__ = ["PROFILES", "parser_for", "select_profile"]

_PARSERS: dict[str, type[ActionParser[Any]]] = {
    "qwen_xml": QwenXMLToolCallParser,
    "hermes": HermesToolCallParser,
    "native": NativeToolCallParser,
    "text": TextActionParser,
    "token_chunk": TokenChunkParser,
}
PROFILES = tuple(_PARSERS)
"""The names that `PolicyFormat.resolve` takes."""

# The last part of a hub name, most specific first.
_NAMES = (
    (re.compile(r"qwen3-coder|qwen3\.[568]"), "qwen_xml"),
    (re.compile(r"qwen2\.5|qwen3(-|$)|qwq|(nous-)?hermes-2-pro|hermes-3"), "hermes"),
)
_RARELY_CALLS = re.compile(r"qwen2\.5-coder")

_FUNCTION = "marker_function"
_CALL = {"id": "call00000", "type": "function", "function": {"name": _FUNCTION, "arguments": {"q": "a"}}}
_PROBE: list[dict[str, Any]] = [
    {"role": "user", "content": "u"},
    {"role": "assistant", "content": "", "tool_calls": [_CALL]},
]
# Named otherwise than the call, which is looked for.
_PROBE_TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {"name": "other", "description": "d", "parameters": {"type": "object", "properties": {}}},
    }
]
_DIALECTS = (
    (re.compile(r'<tool_call>\s*\{\s*"name":\s*"$'), "hermes"),
    (re.compile(r"<tool_call>\s*<function=$"), "qwen_xml"),
)


def parser_for(profile: str) -> ActionParser[Any]:
    """The parser of a profile.

    Raises:
        InvalidRequestError: No such profile.
    """
    if profile not in _PARSERS:
        raise InvalidRequestError(f"unknown profile {profile!r}: choose one of {', '.join(PROFILES)}")
    return _PARSERS[profile]()


def select_profile(model: str, codec: ChatTemplateCodec) -> str:
    """The dialect of the model's tool calls: what its template writes, else what its name says.

    Raises:
        InvalidRequestError: Neither tells.
    """
    by_name = _by_name(model)
    by_template = _by_template(codec)
    if by_template is not None and by_name not in (None, by_template):
        warnings.warn(
            f"{model} sounds like the {by_name} dialect, but its chat template writes {by_template} calls: reading"
            f" {by_template}. Pass profile= if that is wrong.",
            stacklevel=3,
        )
    profile = by_template or by_name
    if profile is None:
        raise InvalidRequestError(
            f"neither the chat template nor the name of {model!r} tells how it writes tool calls: pass profile=, one"
            f" of {', '.join(PROFILES)}"
        )
    if _RARELY_CALLS.match(_last_part(model)):
        warnings.warn(
            f"{model} is reported to write tool calls as bare JSON more often than in <tool_call> blocks, which alone"
            " are read as calls",
            stacklevel=3,
        )
    return profile


def _last_part(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2].lower()


def _by_name(model: str) -> str | None:
    # What a local folder is called says nothing.
    if model.startswith((".", "/", "~")) or Path(model).is_dir():
        return None
    return next((profile for pattern, profile in _NAMES if pattern.match(_last_part(model))), None)


def _by_template(codec: ChatTemplateCodec) -> str | None:
    try:
        before, found, _ = codec.template.render(_PROBE, _PROBE_TOOLS).partition(_FUNCTION)
    except InvalidRequestError:
        return None
    if not found:
        return None
    return next((profile for pattern, profile in _DIALECTS if pattern.search(before)), None)
