"""Time of the parsers on 100 KB and 1 MB of every kind of text, over ``json.loads`` of a 1 MB call in the same run.

usage: uv run --group bench python tests/bench/parsers.py

A row for each kind and parser: the ratio at 1 MB, its bound, and how much longer 10 times the text takes. A text of
tens of thousands of calls may take 25 times what making that many ``ToolCall`` takes, if that is more. Exit status 1 if
a bound is missed. Where ``renderers`` is installed, its parsers read the two well-formed texts as well.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from focus_parsing import ActionParser, HermesToolCallParser, QwenXMLToolCallParser, tool_turn
from focus_types import GenerateResult, ToolCall, ToolTurn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.large_replies import HOSTILE, WELL_FORMED, WELL_FORMED_XML, Kind

__all__: list[str] = []

SIZE = 1_000_000
HERMES_BOUND, XML_BOUND, HOSTILE_BOUND, RECORD_BOUND, GROWTH_BOUND = 4.0, 14.0, 70.0, 25.0, 15.0
NOISE_MS = 5.0
"""Below this the growth says more about the cost of fresh memory than about the parser."""

type Work = Callable[[str], Callable[[], ToolTurn]]


def seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Processor time of the best run."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def parse_with(parser: ActionParser[ToolTurn]) -> Work:
    return lambda text: lambda: parser.parse(GenerateResult(text=text))


def decode(body: str) -> ToolCall:
    if not body.rstrip().endswith("}"):
        raise ValueError
    return ToolCall(name="f", arguments=body)


def rows() -> Iterator[tuple[str, Work, Kind, float]]:
    parsers: dict[str, Work] = {
        "hermes": parse_with(HermesToolCallParser()),
        "xml": parse_with(QwenXMLToolCallParser()),
        "tool_turn": lambda text: lambda: tool_turn(text, decode),
    }
    yield "hermes", parsers["hermes"], WELL_FORMED, HERMES_BOUND
    yield "xml", parsers["xml"], WELL_FORMED_XML, XML_BOUND
    for kind in HOSTILE:
        for name, work in parsers.items():
            yield name, work, kind, HOSTILE_BOUND


class Pieces:
    """The cheapest tokenizer there can be: pieces of four characters, tags whole."""

    def __init__(self, text: str, tags: tuple[str, ...]) -> None:
        self.table = list(tags)
        self.ids: list[int] = []
        rest = text
        for tag in (tags[0], tags[1]):
            before, _, rest = rest.partition(tag)
            self._add(before)
            self.ids.append(self.table.index(tag))
        self._add(rest)

    def _add(self, text: str) -> None:
        pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
        self.ids += range(len(self.table), len(self.table) + len(pieces))
        self.table += pieces

    def encode(self, text: str, **_: Any) -> list[int]:
        return [-1]

    def decode(self, ids: list[int], **_: Any) -> str:
        return "".join([self.table[i] for i in ids])


def peers() -> Iterator[tuple[str, Callable[[], Any]]]:
    if importlib.util.find_spec("renderers") is None:
        return
    parsing: Any = importlib.import_module("renderers.parsing")
    tags = ("<tool_call>", "</tool_call>", "<think>", "</think>")
    ids: dict[str, Any] = {"stop_ids": set(), "tool_call_id": 0, "tool_call_end_id": 1}
    hermes, xml = Pieces(WELL_FORMED.text(SIZE), tags), Pieces(WELL_FORMED_XML.text(SIZE), tags)
    yield "hermes", lambda: parsing.parse_qwen3(hermes, hermes.ids, reasoning_end_id=3, **ids)
    yield "xml", lambda: parsing.parse_qwen35(xml, xml.ids, think_id=2, think_end_id=3, **ids)


def main() -> int:
    call = WELL_FORMED.text(SIZE).removeprefix("<tool_call>").removesuffix("</tool_call>")
    unit = seconds(lambda: json.loads(call), runs=15)
    record = seconds(lambda: [ToolCall(name="f", arguments="{}") for _ in range(10_000)], runs=15) / 10_000
    print(f"json.loads of a 1 MB call: {unit * 1000:.2f} ms; ToolCall: {record * 1e6:.2f} us")
    missed = 0
    for name, work, kind, bound in rows():
        parse = work(kind.text(SIZE))
        small, large, calls = seconds(work(kind.text(SIZE // 10))), seconds(parse), len(parse().tool_calls)
        bound = max(bound, RECORD_BOUND * record * calls / unit)
        growth = large / small
        bad = large / unit > bound or (growth > GROWTH_BOUND and large * 1000 > NOISE_MS)
        missed += bad
        print(
            f"{name:10}{kind.name:36}{calls:6} calls {large / unit:6.1f}x (<= {bound:3.0f}x)   10x text: {growth:4.1f}x"
            f"{'   MISSED' if bad else ''}",
            flush=True,
        )
    for name, peer in peers():
        assert len(peer().tool_calls) == 1
        print(f"renderers {f'one call, {name}':36}{seconds(peer) / unit:6.1f}x   (ids given, tokenizing not counted)")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
