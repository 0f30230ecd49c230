"""Files of `focus generate`, read back for people: records and the words that describe them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from focus_cli.pieces import Piece
from focus_cli.records import Record
from focus_types import InvalidRequestError

__all__ = ["action_text", "alternatives", "facts", "least_likely", "percent", "probability_of", "read_records", "title"]

_record = msgspec.json.Decoder(Record)
_CERTAIN = 0.9
_KEY = "token_id:"


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file, in its order.

    Raises:
        InvalidRequestError: A line is no record, by its number.
        OSError: The file cannot be read.
    """
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                yield _record.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InvalidRequestError(f"{path}, line {number}: no record of focus generate: {error}") from error


def title(record: Record) -> str:
    """Which line this answers."""
    return f"line {record.line}" if record.id is None else f"line {record.line}, id {record.id}"


def facts(record: Record) -> list[str]:
    """Length, end, exactness and meaning of a reply, each in a few words."""
    parts = [f"{len(record.tokens)} tokens" if record.tokens else "no token ids"]
    stop = record.stop_reason
    if record.matched_stop is not None:
        stop += (
            f" at id {record.matched_stop}" if isinstance(record.matched_stop, int) else f" at {record.matched_stop!r}"
        )
    elif record.meta is not None and record.meta.context_full:
        stop += " at the end of the context"
    parts += [stop, "exact" if record.exact else "not exact"]
    if record.logprobs:
        parts.append(f"{record.entropy:.4f} nats/token")
        parts.append(f"{_mode(record)} log-probabilities")
    return parts


def probability_of(logprob: float) -> float:
    """Of a log-probability, which rounding may have put above zero."""
    return math.exp(min(logprob, 0.0))


def _mode(record: Record) -> str:
    return "unknown" if record.meta is None else record.meta.logprob_mode


def least_likely(pieces: list[Piece], most: int) -> list[Piece]:
    """The pieces below 0.9, the least likely of them if there are too many, in order."""
    rated = [(one.probability, one) for one in pieces]
    unsure = sorted(((p, one) for p, one in rated if p is not None and p < _CERTAIN), key=lambda pair: pair[0])
    return sorted((one for _, one in unsure[:most]), key=lambda one: one.start)


def alternatives(record: Record, piece: Piece) -> list[tuple[int, float]]:
    """Ids and log-probabilities of what else could have come instead of a piece of one token, likeliest first."""
    if record.top_logprobs is None or len(piece.tokens) != 1:
        return []
    entry: Mapping[str, float] = record.top_logprobs[piece.start]
    others = [(int(key.removeprefix(_KEY)), value) for key, value in entry.items() if key.startswith(_KEY)]
    return sorted((one for one in others if one[0] != piece.tokens[0]), key=lambda one: -one[1])


def percent(probability: float) -> str:
    """A probability for reading."""
    return f"{100 * probability:.1f}%" if probability >= 0.001 else "<0.1%"


def action_text(record: Record) -> list[str]:
    """The action in a few lines; empty if it only repeats the reply's text."""
    if record.action is None:
        return [f"no action: {record.action_error}"]
    value: Any = record.action.value
    if record.action.kind == "tokens":
        return [f"chunk of {len(value['tokens'])} tokens, {'finished' if value['finished'] else 'unfinished'}"]
    if record.action.kind != "tool" or not (value["reasoning"] or value["tool_calls"]):
        return []
    parts = [f"reasoning: {value['reasoning']}"] if value["reasoning"] else []
    parts += [f"text: {value['text']}"] if value["text"] else []
    for call in value["tool_calls"]:
        if call["name"]:
            parts.append(f"call: {call['name']}({call['arguments']})")
        else:
            parts.append(f"malformed call: {json.dumps(call['arguments'])}")
    return parts
