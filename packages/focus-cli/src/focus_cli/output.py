"""The output file: only ever appended to, one whole line at a time, so that a killed run can go on."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from focus_cli.records import Done, Settings, digest
from focus_types import InvalidRequestError

__all__ = ["Output"]

_CHUNK = 2**20
_done = msgspec.json.Decoder(Done)


class Output:
    """Appends records to a file and knows which input lines it answers.

    A record is handed to the operating system whole when its reply is there, so a killed process loses none. Only
    `close` waits for the disk: a machine that fails may lose the last seconds, which `--resume` generates again.

    Args:
        path: The file.
        settings: Those of this run.
        resume: Go on with what the file holds.

    Raises:
        InvalidRequestError: The file holds something and ``resume`` is off, another run has it open, or what it
            holds was not written by this command with these settings.
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path, settings: Settings, *, resume: bool) -> None:
        self.path = path
        self.done: dict[int, str] = {}
        """Answered input lines and their digests."""
        self.cut: int = 0
        """Bytes of an unfinished last line that were cut off."""
        self._settings = settings
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            found = os.fstat(self._file)
            if not stat.S_ISREG(found.st_mode):
                raise InvalidRequestError(f"{path} is no regular file, so no run could go on with it")
            self._lock()
            if found.st_size and not resume:
                raise InvalidRequestError(f"{path} is there already: --resume goes on with it")
            self._read()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            os.fsync(self._file)
        finally:
            os.close(self._file)

    def answered(self, line: int, text: bytes) -> bool:
        """Whether the file holds the record of this input line.

        Raises:
            InvalidRequestError: It holds that of another text.
        """
        known = self.done.get(line)
        if known is not None and known != digest(text):
            raise InvalidRequestError(
                f"line {line} of the input is not the one that {self.path} answers: the input was changed"
            )
        return known is not None

    def append(self, record: bytes) -> None:
        """Write one encoded line.

        Raises:
            OSError: It cannot be written; a part of it may have been.
        """
        rest = memoryview(record)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidRequestError(f"another focus generate is writing {self.path}") from None

    def _read(self) -> None:
        end = 0
        for number, line in enumerate(_lines(self._file), 1):
            if not line.endswith(b"\n"):
                self.cut = len(line)
                os.ftruncate(self._file, end)
                return
            end += len(line)
            try:
                found = _done.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InvalidRequestError(f"line {number} of {self.path} is no record: {error}") from error
            if found.settings != self._settings:
                raise InvalidRequestError(
                    f"{self.path} was made otherwise: {_difference(found.settings, self._settings)}"
                )
            if found.line in self.done:
                raise InvalidRequestError(f"{self.path} answers line {found.line} twice")
            self.done[found.line] = found.input


def _lines(file: int) -> Iterator[bytes]:
    with os.fdopen(os.dup(file), "rb", buffering=_CHUNK) as stream:
        yield from stream


def _difference(before: Settings, now: Settings) -> str:
    old, new = (msgspec.to_builtins(one) for one in (before, now))
    pairs = [(name, old[name], new[name]) for name in old if name != "sampling"]
    pairs += [(name, old["sampling"][name], new["sampling"][name]) for name in old["sampling"]]
    return ", ".join(f"{name} was {one!r} and is {other!r}" for name, one, other in pairs if one != other)
