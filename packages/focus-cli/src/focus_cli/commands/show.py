"""``focus show``: replies token by token, on the terminal or as one HTML page."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from focus_cli.failure import reported, say
from focus_cli.formats import resolve
from focus_cli.reading import read_records
from focus_cli.records import Record
from focus_format import PolicyFormat
from focus_types import ChatCodec, InvalidRequestError

__all__ = ["show"]


def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What focus generate wrote.")],
    line: Annotated[
        list[int] | None, typer.Option(help="The reply to this input line; may be repeated.", show_default=False)
    ] = None,
    id: Annotated[
        list[str] | None, typer.Option(help="The reply with this id; may be repeated.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most replies to show.")] = 10,
    html: Annotated[
        Path | None, typer.Option(metavar="PAGE.html", help="Write a page instead; an old one is replaced.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Tokenizer that decodes the ids, if not the one that the file names.", show_default=False),
    ] = None,
) -> None:
    """Show replies token by token, coloured by probability.

    A character that is split over tokens is shown once, with their number.
    """
    with reported():
        chosen = _chosen(file, set(line or ()), set(id or ()))
        replies = list(itertools.islice(chosen, limit))
        if not replies:
            raise InvalidRequestError(f"{file} holds no such reply")
        left = sum(1 for _ in chosen)
        codecs = _Codecs(model)
        pairs = [(record, codecs.of(record)) for record in replies]
        if html is None:
            _print(pairs)
        else:
            _write(html, file.name, pairs)
        if left:
            say(f"{left} more replies: --limit, --line or --id shows them")


def _print(replies: list[tuple[Record, ChatCodec | None]]) -> None:
    # rich takes longer to load than most commands take to run.
    from focus_cli.terminal import new_console, show_legend, show_reply

    console = new_console()
    show_legend(console)
    for record, codec in replies:
        show_reply(console, record, codec)
        console.print()


def _write(html: Path, heading: str, replies: list[tuple[Record, ChatCodec | None]]) -> None:
    from focus_cli.page import write_page

    with html.open("w", encoding="utf-8") as page:
        write_page(heading, replies, page.write)
    say(f"{html}: {len(replies)} replies")


def _chosen(file: Path, lines: set[int], ids: set[str]) -> Iterator[Record]:
    for record in read_records(file):
        if not (lines or ids) or record.line in lines or (record.id is not None and str(record.id) in ids):
            yield record


class _Codecs:
    """One tokenizer per model, loaded when the first reply needs it."""

    def __init__(self, model: str | None) -> None:
        self._model = model
        self._known: dict[str, ChatCodec] = {}

    def of(self, record: Record) -> ChatCodec | None:
        if not record.tokens:
            return None
        name = self._model or record.settings.model
        if name not in self._known:
            self._known[name] = self._load(name).codec
        return self._known[name]

    def _load(self, name: str) -> PolicyFormat[object]:
        try:
            return resolve(name, "text")
        except InvalidRequestError as error:
            error.add_note("--model names another tokenizer to decode with")
            raise
