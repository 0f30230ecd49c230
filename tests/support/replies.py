"""Random replies and calls, for the property tests and the fuzz run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

__all__ = [
    "CUT_TAGS",
    "JSON_PIECES",
    "MARKERS",
    "TAGS",
    "XML_PIECES",
    "hermes_calls",
    "json_values",
    "marked_replies",
    "names",
    "replies",
    "xml_strings",
]

TAGS = (
    "<tool_call>",
    "</tool_call>",
    "<function=f>",
    "<function= >",
    "<function=",
    "</function>",
    "<parameter=a>",
    "<parameter=b>",
    "<parameter=",
    "</parameter>",
    "<think>",
    "</think>",
    "<|im_end|>",
    "<|endoftext|>",
)
JSON_PIECES = ('{"name": "f"}', '{"name": "f", "arguments": {"a": "', '"}}', '"', "\\", "{", "}", "[", "]", ",", ":")
XML_PIECES = ("<tool_call>\n<function=f>\n<parameter=a>\n", "\n</parameter>\n", "</function>\n</tool_call>", "\n")
CUT_TAGS = tuple(tag[:size] for tag in ("<tool_call>", "</tool_call>", "</function>") for size in range(1, len(tag)))
MARKERS = "".join(map(chr, range(0x4E00, 0x4E00 + 400)))
"""Characters that stand in no tag, each used once at most."""

pieces = st.one_of(
    st.sampled_from(TAGS),
    st.sampled_from(TAGS),
    st.sampled_from(JSON_PIECES),
    st.sampled_from(XML_PIECES),
    st.sampled_from(CUT_TAGS),
    st.sampled_from((" ", "\n", "\r\n", "x", "1")),
)
replies = st.one_of(st.text(), st.lists(st.one_of(pieces, st.text(max_size=3)), max_size=30).map("".join))

names = st.text(min_size=1).filter(lambda name: name.strip() == name)
_characters = st.characters(codec="utf-8")
_texts = st.one_of(
    st.text(_characters), st.lists(st.one_of(pieces, st.text(_characters, max_size=3)), max_size=8).map("".join)
)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), _texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_texts, inner, max_size=4)),
    max_leaves=8,
)
xml_strings = _texts


@st.composite
def marked_replies(draw: st.DrawFn) -> str:
    """A reply in which every second piece is a marker."""
    parts = draw(st.lists(pieces, max_size=40))
    return "".join(part + marker for part, marker in zip(parts, MARKERS, strict=False))


@st.composite
def hermes_calls(draw: st.DrawFn, write: Callable[[Any], str] = json.dumps) -> tuple[str, dict[str, Any], str]:
    """A name, arguments, and the call as the Hermes templates write it."""
    name, arguments = draw(names), draw(st.dictionaries(_texts, json_values, max_size=4))
    return name, arguments, f"<tool_call>\n{write({'name': name, 'arguments': arguments})}\n</tool_call>"
