"""A reply on a terminal: token boundaries and probabilities at a glance, readable without colour too."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.text import Text

from focus_cli.pieces import Piece, cut, visible
from focus_cli.reading import action_text, alternatives, facts, least_likely, percent, probability_of, title
from focus_cli.records import Record
from focus_types import ChatCodec

__all__ = ["new_console", "show_legend", "show_reply", "show_text"]

_EDGE = "\u2502"
_STYLES = ((0.9, ""), (0.5, "black on #ffe9b0"), (0.1, "black on #ffb866"), (0.0, "black on #ff7a5c bold"))
_MOST_ROWS = 12


def new_console() -> Console:
    """The standard output; never wrapped where a program reads it."""
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)


def show_legend(console: Console) -> None:
    """What the colours mean, where there are any."""
    if console.color_system is None:
        return
    names = ("90% and more", "50% and more", "10% and more", "less")
    parts = [Text(f" {name} ", style) for (_, style), name in zip(_STYLES, names, strict=True)]
    console.print(Text("probability of each token: ", "dim"), *parts)


def show_reply(console: Console, record: Record, codec: ChatCodec | None, *, heading: str | None = None) -> None:
    """Facts, tokens, the least likely ones with what else could have come, and the action.

    Args:
        console: Where to.
        record: The reply.
        codec: Decodes its ids; None if it has none.
        heading: Instead of the record's line and id.
    """
    console.print(Text(heading or title(record), "bold"), Text(" · ".join(facts(record)), "dim"))
    if record.meta is not None and record.meta.inexact_reason:
        console.print(Text(record.meta.inexact_reason, "yellow"))
    if codec is None or not record.tokens:
        show_text(console, "text", record.text)
    else:
        pieces = cut(record.tokens, record.logprobs, codec.decode)
        console.print(_tokens(pieces))
        for piece in least_likely(pieces, _MOST_ROWS):
            console.print(_row(record, piece, codec))
    for line in action_text(record):
        show_text(console, *line.split(": ", 1))


def show_text(console: Console, name: str, text: str = "") -> None:
    """A named text of a person, a model or a tool, made harmless."""
    console.print(Text(f"{name}: " if text else name, "cyan").append(visible(text), "default"))


def _tokens(pieces: list[Piece]) -> Text:
    line = Text()
    for number, piece in enumerate(pieces):
        if number:
            line.append(_EDGE, "dim")
        line.append(_label(piece), _style(piece.probability))
        if piece.text.endswith("\n"):
            line.append("\n")
    return line


def _label(piece: Piece) -> str:
    """The text, its token count behind it where they are several; an id where there is no text."""
    text = visible(piece.text.removesuffix("\n"))
    text += "\u23ce" if piece.text.endswith("\n") else ""
    if not text:
        return f"<{piece.tokens[0]}>"
    return f"{text}[{len(piece.tokens)}]" if len(piece.tokens) > 1 else text


def _style(probability: float | None) -> str:
    if probability is None:
        return ""
    return next(style for least, style in _STYLES if probability >= least)


def _row(record: Record, piece: Piece, codec: ChatCodec) -> Text:
    probability = piece.probability or 0.0
    ids = "+".join(map(str, piece.tokens))
    logprob = sum(piece.logprobs)
    row = Text(f"  at {piece.start:<5d} id {ids:<8} {_quoted(piece.text):<16} ")
    row.append(f"{percent(probability):>7}", _style(probability))
    row.append(f"  logprob {logprob:+.4f}")
    others = [
        f"{_quoted(codec.decode([token]))} {percent(probability_of(value))}"
        for token, value in alternatives(record, piece)
    ]
    return row.append(f"  else {', '.join(others)}" if others else "", "dim")


def _quoted(text: str) -> str:
    return f'"{visible(text, line_break="")}"'
