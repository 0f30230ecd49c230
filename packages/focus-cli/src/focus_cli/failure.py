"""Errors as one line on the standard error stream, and the exit statuses of every command."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn

import typer

from focus_types import FocusError, InvalidRequestError

__all__ = ["FAILED", "INTERRUPTED", "USAGE", "describe", "fail", "reported", "say"]

FAILED = 1
"""Something that was asked for could not be done."""
USAGE = 2
"""The command line, or a file it names, makes no sense; nothing was done."""
INTERRUPTED = 130


def say(text: str) -> None:
    """A line for the person at the terminal, apart from the command's output."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - a command speaks


def fail(text: str, status: int) -> NoReturn:
    """Say what is wrong and end."""
    say(f"error: {text}")
    raise typer.Exit(status)


def describe(error: BaseException) -> str:
    """Kind, message and notes of an error."""
    return f"{type(error).__name__}: {_with_notes(error)}"


def _with_notes(error: BaseException) -> str:
    return "; ".join([str(error) or "no message", *getattr(error, "__notes__", [])])


@contextmanager
def reported() -> Generator[None]:
    """Turn the errors that a user can do something about into a message and an exit status."""
    try:
        yield
    except InvalidRequestError as error:
        fail(_with_notes(error), USAGE)
    except (FocusError, ImportError, OSError) as error:
        fail(describe(error), FAILED)
    except KeyboardInterrupt:
        fail("interrupted", INTERRUPTED)
