"""Throw random replies at the parsers.

usage: uv run python tests/bench/fuzz_parsers.py [MINUTES] [SEED]

Short ones must lose nothing and raise nothing; a few repeat a random unit to 200 KB and must not take more than 15
times the time of 20 KB. Prints the text at fault and exits with 1, else says how many were tried.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.parser_invariants import PARSERS, check_accounting, check_turn, parse
from support.replies import CUT_TAGS, JSON_PIECES, MARKERS, TAGS, XML_PIECES

__all__: list[str] = []

SPACES = (" ", "\n", "\r\n", "x", "1", "")
GROWTH, SLOW_S = 15.0, 0.2


def unit(dice: random.Random, size: int) -> list[str]:
    groups = (TAGS, TAGS, JSON_PIECES, XML_PIECES, CUT_TAGS, SPACES)
    return [dice.choice(dice.choice(groups)) for _ in range(dice.randint(1, size))]


def lose_nothing(dice: random.Random) -> str | None:
    marks = iter(MARKERS)
    text = "".join(part + (next(marks) if dice.random() < 0.6 else "") for part in unit(dice, 60))
    for parser in PARSERS:
        try:
            turn = parse(parser, text)
            check_turn(turn)
            check_accounting(text, turn)
            assert parse(parser, text) == turn
        except Exception as error:
            return f"{parser}: {type(error).__name__}: {error}\n{text!r}"
    return None


def seconds(parser_at: int, text: str) -> float:
    start = time.process_time()
    parse(PARSERS[parser_at], text)
    return time.process_time() - start


def stay_linear(dice: random.Random) -> str | None:
    head, body, tail = ("".join(unit(dice, size)) for size in (4, 6, 4))
    if not body:
        return None
    small, large = (head + body * (size // len(body)) + tail for size in (20_000, 200_000))
    at = dice.randrange(len(PARSERS))
    spent = seconds(at, large)
    if spent > SLOW_S and spent > GROWTH * max(seconds(at, small) for _ in range(3)):
        spent = min(seconds(at, large) for _ in range(3))
        if spent > GROWTH * max(seconds(at, small) for _ in range(3)):
            return f"{PARSERS[at]}: {spent:.2f} s for 200 KB of {head!r} + {body!r} * n + {tail!r}"
    return None


def main() -> int:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    dice, end, tried = random.Random(seed), time.monotonic() + 60 * minutes, 0
    while time.monotonic() < end:
        for check in (*[lose_nothing] * 200, *[stay_linear] * 4):
            fault = check(dice)
            tried += 1
            if fault:
                print(f"seed {seed}, text {tried}: {fault}")
                return 1
    print(f"seed {seed}: {tried} texts, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
