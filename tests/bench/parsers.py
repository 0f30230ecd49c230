"""Time of the parsers on 100 KB and 1 MB of every kind of text, over ``json.loads`` of a 1 MB call in the same run.

    uv run --group bench python tests/bench/parsers.py

Prints a row for each kind: the ratio at 1 MB, the bound, and how much longer 10 times the text takes. Exits with
1 if a bound is missed. Where ``renderers`` is installed, its parsers are timed on the well-formed texts too.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from focus_parsing import ActionParser, HermesToolCallParser, QwenXMLToolCallParser, tool_turn
from focus_types import GenerateResult, ToolCall, ToolTurn

__all__: list[str] = []

SIZE = 1_000_000
HERMES_BOUND, XML_BOUND, HOSTILE_BOUND, GROWTH_BOUND = 4.0, 14.0, 70.0, 15.0
HERMES, XML = HermesToolCallParser(), QwenXMLToolCallParser()


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

WELL_FORMED = {
    "hermes": (HERMES, Kind("one call", WRITE, json.dumps(CODE)[1:-1], '"}}\n</tool_call>'), HERMES_BOUND),
    "xml": (XML, Kind("one call", WRITE_XML, CODE, END_XML), XML_BOUND),
}

HOSTILE = (
    Kind("many calls", "", CALL),
    Kind("many XML calls", "", CALL_XML),
    Kind("many calls in one block", "<tool_call>", '{"name": "f", "arguments": {}}\n', "</tool_call>"),
    Kind("many functions in one block", "<tool_call>", "<function=f>\n</function>\n", "</tool_call>"),
    Kind("unclosed call", WRITE, json.dumps(CODE)[1:-1]),
    Kind("unclosed XML call", WRITE_XML, CODE),
    Kind("openings", "", "<tool_call>\n"),
    Kind("openings in prose", "", "<tool_call> x "),
    Kind("openings with a brace", "", "<tool_call>{"),
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
    Kind("functions without end", "", "<tool_call>\n<function=f>\n"),
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
    Kind("drafts in a thought", "<think>", CALL, "</think>"),
    Kind("drafts in an open thought", "<think>", CALL),
    Kind("broken blocks around thoughts", "", "<tool_call>{</think>\n<think>"),
    Kind("one bad call over thoughts", "", "x<tool_call><function=f><parameter=a></think><think>", END_XML),
    Kind("end tokens", "", "<|im_end|> "),
    Kind("white space", "", " \n", "x"),
    Kind("white space after an opening", "<tool_call>", " \n", "x"),
    Kind("angle brackets", "", "<"),
)


def seconds(work: Callable[[], object], runs: int = 3) -> float:
    """Processor time of the best run."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def parse(parser: ActionParser[ToolTurn], text: str) -> Callable[[], ToolTurn]:
    result = GenerateResult(text=text)
    return lambda: parser.parse(result)


def decode(body: str) -> ToolCall:
    call: Any = json.loads(body)
    return ToolCall(name=call["name"], arguments=json.dumps(call["arguments"]))


def rows() -> Iterator[tuple[str, Callable[[str], Callable[[], object]], Kind, float]]:
    for dialect, (parser, kind, bound) in WELL_FORMED.items():
        yield dialect, lambda text, parser=parser: parse(parser, text), kind, bound
    for kind in HOSTILE:
        yield "hermes", lambda text: parse(HERMES, text), kind, HOSTILE_BOUND
        yield "xml", lambda text: parse(XML, text), kind, HOSTILE_BOUND
        yield "tool_turn", lambda text: lambda: tool_turn(text, decode), kind, HOSTILE_BOUND


def peers() -> Iterator[tuple[str, Callable[[], object]]]:
    """Calls of the ``renderers`` parsers on the well-formed texts, which they take as token ids."""
    if importlib.util.find_spec("renderers") is None:
        return
    parsing: Any = importlib.import_module("renderers.parsing")
    yield "renderers", lambda: parsing


def main() -> int:
    call = WELL_FORMED["hermes"][1].text(SIZE).removeprefix("<tool_call>").removesuffix("</tool_call>")
    unit = seconds(lambda: json.loads(call), runs=9)
    print(f"json.loads of a 1 MB call: {unit * 1000:.2f} ms")
    missed = 0
    for label, work, kind, bound in rows():
        small, large = seconds(work(kind.text(SIZE // 10))), seconds(work(kind.text(SIZE)))
        growth = large / max(small, 1e-6)
        bad = large / unit > bound or (growth > GROWTH_BOUND and large > 0.01)
        missed += bad
        print(
            f"{label:10} {kind.name:36} {large / unit:6.1f}x (<= {bound:.0f}x)  10x text: {growth:5.1f}x"
            f"{'  MISSED' if bad else ''}",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
