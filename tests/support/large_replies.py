"""Replies of any size, well-formed and hostile: for every scan of the parsers the text that could make it slow."""

from __future__ import annotations

import json
from typing import NamedTuple

__all__ = ["HOSTILE", "WELL_FORMED", "WELL_FORMED_XML", "Kind"]


class Kind(NamedTuple):
    """A text of any size: ``head``, ``unit`` over and over, ``tail``."""

    name: str
    head: str
    unit: str
    tail: str = ""

    def text(self, size: int) -> str:
        repeats = max(1, (size - len(self.head) - len(self.tail)) // len(self.unit))
        return self.head + self.unit * repeats + self.tail


CODE = 'if a < b: print("<x>")\n'
WRITE = '<tool_call>\n{"name": "write", "arguments": {"body": "'
WRITE_XML = "<tool_call>\n<function=write>\n<parameter=body>\n"
END_XML = "\n</parameter>\n</function>\n</tool_call>"
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>\n'
CALL_XML = "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>\n"

WELL_FORMED = Kind("one call", WRITE, json.dumps(CODE)[1:-1], '"}}\n</tool_call>')
WELL_FORMED_XML = Kind("one XML call", WRITE_XML, CODE, END_XML)

HOSTILE = (
    Kind("unclosed call", WRITE, json.dumps(CODE)[1:-1]),
    Kind("unclosed XML call", WRITE_XML, CODE),
    Kind("openings", "", "<tool_call>\n"),
    Kind("openings before prose", "", "<tool_call>", "x"),
    Kind("openings in prose", "", "<tool_call> x "),
    Kind("openings in a string", WRITE, "<tool_call>{"),
    Kind("openings with a broken name", "", '<tool_call>\n{"name": "', CALL),
    Kind("ends", "", "</tool_call>"),
    Kind("ends in a string", WRITE, "</tool_call>", '"}}</tool_call>'),
    Kind("ends in a list of strings", '<tool_call>{"name": "f", "arguments": {"a": [', '"</tool_call>",', '""]}}'),
    Kind("ends in a broken list of strings", '<tool_call>{"a": [', '"</tool_call>",', "]}</tool_call>"),
    Kind("escaped quotes", '<tool_call>{"', '\\"'),
    Kind("escaped quotes in many blocks", '<tool_call>{"', '<tool_call>{\\"</tool_call>'),
    Kind("quotes in many blocks", "", '<tool_call>{"</tool_call>'),
    Kind("brackets", "<tool_call>", "["),
    Kind("braces", "<tool_call>", '{"a":'),
    Kind("nested openings", "", '<tool_call>[{"a":"'),
    Kind("parameters without >", "<tool_call>\n<function=f>\n", "<parameter=a\n", "</function>\n</tool_call>"),
    Kind("parameters without end", "<tool_call>\n<function=f>\n", "<parameter=a>\n"),
    Kind("parameter names", "<tool_call>\n<function=f>\n<parameter=", "a"),
    Kind("nested calls in values", "", "<tool_call>\n<function=f>\n<parameter=a>\n"),
    Kind("nested calls that end wrong", "", "<tool_call>\n<function=f>\n<parameter=a>\n</tool_call>x\n"),
    Kind("bare functions", "", "<function=f>\n<parameter=a>\n"),
    Kind("bare functions on one line", "", "<function=f><parameter=a>"),
    Kind("bare functions that end in a block", "", "<function=f>\n<parameter=a>\n</parameter>\n", "</tool_call>"),
    Kind("parameter ends", WRITE_XML, "</parameter>\n"),
    Kind("function ends", WRITE_XML, "</function> "),
    Kind("thoughts", "", "<think>a</think>\n"),
    Kind("thought ends", "", "</think>"),
    Kind("thought openings", "", "<think>"),
    Kind("broken blocks around thoughts", "", "<tool_call>{</think>\n<think>"),
    Kind("one bad call over thoughts", "", "x<tool_call><function=f><parameter=a></think><think>", END_XML),
    Kind("end tokens", "", "<|im_end|> "),
    Kind("white space", "", " \n", "x"),
    Kind("white space after an opening", "<tool_call>", " \n", "x"),
    Kind("angle brackets", "", "<"),
    Kind("many calls", "", CALL),
    Kind("many XML calls", "", CALL_XML),
    Kind("many calls in one block", "<tool_call>", '{"name": "f", "arguments": {}}\n', "</tool_call>"),
    Kind("many functions in one block", "<tool_call>", "<function=f>\n</function>\n", "</tool_call>"),
    Kind("openings with a brace", "", "<tool_call>{"),
    Kind("functions without end", "", "<tool_call>\n<function=f>\n"),
    Kind("drafts in a thought", "<think>", "Maybe\n" + CALL + "or not.\n", "</think>"),
    Kind("drafts in an open thought", "<think>", CALL),
)
