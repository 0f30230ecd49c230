"""Work that grows with the text and not with its square."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from focus_parsing import ActionParser, HermesToolCallParser, QwenXMLToolCallParser
from focus_types import GenerateResult, ToolTurn
from support.large_replies import HOSTILE, WELL_FORMED, WELL_FORMED_XML, Kind

__all__: list[str] = []

KINDS = (WELL_FORMED, WELL_FORMED_XML, *HOSTILE)


def calls_of(work: Callable[[], object]) -> int:
    """How many functions, built-in ones included, the work calls."""
    count = 0

    def step(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(step)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
@pytest.mark.parametrize("parser", [HermesToolCallParser(), QwenXMLToolCallParser()])
def test_ten_times_the_text_is_ten_times_the_calls(parser: ActionParser[ToolTurn], kind: Kind) -> None:
    small, large = (GenerateResult(text=kind.text(size)) for size in (2_000, 20_000))
    assert calls_of(lambda: parser.parse(large)) <= 12 * calls_of(lambda: parser.parse(small))
