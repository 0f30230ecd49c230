"""A parser whose action is a number."""

from __future__ import annotations

import re

from focus.backends import GenerateResult
from focus.errors import ParseError
from focus.generation.parsing import ActionParser

__all__ = ["NumberParser"]


class NumberParser(ActionParser[int]):
    """Takes the last integer of the reply."""

    def parse(self, result: GenerateResult) -> int:
        numbers: list[str] = re.findall(r"-?\d+", result.text)
        if not numbers:
            raise ParseError(f"no number in {result.text!r}")
        return int(numbers[-1])
