"""How far a run is: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from focus_cli.failure import say

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

__all__ = ["Progress"]

_EVERY_S = 5.0


class Progress:
    """Counts replies and says so on the standard error stream.

    Args:
        total: Lines to answer; None if unknown.
    """

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.replies: int = 0
        self.failures: int = 0
        self.inexact: int = 0
        self.without_action: int = 0
        self._started = self._said = time.monotonic()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = _new_bar()
            self._task = self._bar.add_task("", total=self.total, failures=0)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def generated(self, *, exact: bool, acted: bool) -> None:
        """One more reply is written."""
        self.replies += 1
        self.inexact += not exact
        self.without_action += not acted
        self._advance()

    def failed(self, text: str) -> None:
        """One more line has no reply; say why."""
        self.failures += 1
        if self._bar is not None:
            self._bar.console.print(text, style="red", markup=False, highlight=False, soft_wrap=True)
        else:
            say(text)
        self._advance()

    def summary(self) -> str:
        """The whole run in one line."""
        parts = [f"{self.replies} replies"]
        parts += [f"{count} {what}" for count, what in ((self.failures, "lines failed"),) if count]
        parts += [f"{self.inexact} not exact"] if self.inexact else []
        parts += [f"{self.without_action} without an action"] if self.without_action else []
        return f"{', '.join(parts)} in {time.monotonic() - self._started:.1f} s"

    def _advance(self) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, failures=self.failures)
            return
        now = time.monotonic()
        if now - self._said >= _EVERY_S:
            self._said = now
            done = self.replies + self.failures
            of = "" if self.total is None else f" of {self.total}"
            say(f"{done}{of}, {self.failures} failed, {done / (now - self._started):.1f}/s")


def _new_bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failures]} failed"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        refresh_per_second=4,
    )
