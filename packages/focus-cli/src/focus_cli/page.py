"""Replies as one HTML page that needs nothing else: no script, no font, no image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

import msgspec

from focus_cli.pieces import Piece, cut, visible
from focus_cli.reading import action_text, alternatives, facts, least_likely, percent, probability_of, title
from focus_cli.records import Record
from focus_cli.style import STYLE
from focus_types import ChatCodec, TokenId

__all__ = ["write_page"]

_CLASSES = ((0.9, ""), (0.5, "p1"), (0.25, "p2"), (0.1, "p3"), (0.0, "p4"))
_NAMES = ("", "below 90%", "below 50%", "below 25%", "below 10%")
_MOST_ROWS = 30
_MOST_OTHERS = 5


def write_page(
    heading: str, replies: Iterable[tuple[Record, ChatCodec | None]], write: Callable[[str], object]
) -> None:
    """Write the page piece by piece.

    Args:
        heading: What is shown.
        replies: Records, each with what decodes its ids.
        write: Takes text.
    """
    write('<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n')
    write('<meta name="viewport" content="width=device-width, initial-scale=1">\n')
    write(f"<title>{escape(heading)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n")
    shades = zip(_CLASSES[1:], _NAMES[1:], strict=True)
    legend = "".join(f'<b class="{name}">{text}</b>' for (_, name), text in shades)
    write(f"<header><div><h1>{escape(heading)}</h1>")
    write(f'<span class="legend soft">probability of each token {legend}</span></div></header>\n<main>\n')
    for record, codec in replies:
        for part in _section(record, codec):
            write(part)
    write("</main>\n</body>\n</html>\n")


def _section(record: Record, codec: ChatCodec | None) -> Iterator[str]:
    yield f'<section>\n<div class="top"><h2>{_text(title(record))}</h2>'
    yield f'<span class="soft">{_text(" · ".join(facts(record)))}</span></div>\n'
    if record.meta is not None and record.meta.inexact_reason:
        yield f'<p class="warn">{_text(record.meta.inexact_reason)}</p>\n'
    if codec is None or not record.tokens:
        yield f'<p class="tokens">{_text(record.text)}</p>\n'
    else:
        pieces = cut(record.tokens, record.logprobs, codec.decode)
        yield f'<p class="tokens">{"".join(_span(record, piece, codec) for piece in pieces)}</p>\n'
        yield from _table(record, pieces, codec)
    lines = action_text(record)
    if lines:
        yield f"<pre>{'<br>'.join(_text(line) for line in lines)}</pre>\n"
    if codec is not None and record.prompt_tokens:
        yield from _prompt(record.prompt_tokens, codec)
    about = msgspec.json.format(msgspec.json.encode({"meta": record.meta, "settings": record.settings})).decode()
    yield f"<details><summary>meta and settings</summary><pre>{escape(about)}</pre></details>\n</section>\n"


def _prompt(tokens: Sequence[TokenId], codec: ChatCodec) -> Iterator[str]:
    yield f"<details><summary>prompt, {len(tokens)} tokens</summary>"
    spans = (f'<span title="{_hint(piece, [])}">{_label(piece)}</span>' for piece in cut(tokens, (), codec.decode))
    yield f'<p class="tokens prompt">{"".join(spans)}</p></details>\n'


def _span(record: Record, piece: Piece, codec: ChatCodec) -> str:
    shade = _shade(piece.probability)
    css = f' class="{shade}"' if shade else ""
    return f'<span{css} title="{_hint(piece, _others(record, piece, codec))}">{_label(piece)}</span>'


def _label(piece: Piece) -> str:
    if not piece.text:
        return f"<i>{piece.tokens[0]}</i>"
    count = f"<sup>{len(piece.tokens)}</sup>" if len(piece.tokens) > 1 else ""
    return _text(piece.text) + count


def _hint(piece: Piece, others: Sequence[str]) -> str:
    lines = [f"token {piece.start}"]
    for number, token in enumerate(piece.tokens):
        line = f"id {token}"
        if piece.logprobs:
            logprob = piece.logprobs[number]
            line += f"  {percent(probability_of(logprob))}  logprob {logprob:+.4f}"
        lines.append(line)
    return escape("\n".join([*lines, *(f"else {other}" for other in others)]))


def _others(record: Record, piece: Piece, codec: ChatCodec) -> list[str]:
    return [
        f'"{visible(codec.decode([token]), line_break="")}" {percent(probability_of(value))}'
        for token, value in alternatives(record, piece)[:_MOST_OTHERS]
    ]


def _table(record: Record, pieces: list[Piece], codec: ChatCodec) -> Iterator[str]:
    rows = least_likely(pieces, _MOST_ROWS)
    if not rows:
        return
    yield "<table><tr><th>token</th><th>id</th><th>text</th><th>probability</th><th>logprob</th><th>else</th></tr>\n"
    for piece in rows:
        probability = piece.probability or 0.0
        others = escape(", ".join(_others(record, piece, codec)))
        yield (
            f'<tr><td class="n">{piece.start}</td><td class="n">{"+".join(map(str, piece.tokens))}</td>'
            f'<td><code class="{_shade(probability)}">{_text(piece.text)}</code></td>'
            f'<td class="n">{percent(probability)}</td><td class="n">{sum(piece.logprobs):+.4f}</td>'
            f'<td class="soft">{others}</td></tr>\n'
        )
    yield "</table>\n"


def _shade(probability: float | None) -> str:
    return "" if probability is None else next(name for least, name in _CLASSES if probability >= least)


def _text(text: str) -> str:
    return escape(visible(text)).replace("\u23ce", "<i>\u23ce</i>")
