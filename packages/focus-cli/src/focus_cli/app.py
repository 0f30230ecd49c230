"""The application: its commands, each in a module of its own."""

from __future__ import annotations

import typer

from focus_cli.commands.check import check
from focus_cli.commands.demo import demo
from focus_cli.commands.generate import generate
from focus_cli.commands.serve import serve
from focus_cli.commands.show import show

__all__ = ["app", "main"]

app: typer.Typer = typer.Typer(
    help="Exact token ids, log-probabilities and the truth about them, from the command line.",
    no_args_is_help=True,
    add_completion=False,
    # Plain text everywhere, so that help and errors read the same in a log as on a terminal.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for _command in (demo, generate, check, show, serve):
    app.command()(_command)


def main() -> None:
    """Run the command line."""
    app()
