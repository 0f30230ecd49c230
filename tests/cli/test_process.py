"""`focus generate` as a process: a terminal, a live pipe, an interrupt."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

type Write = Callable[[Sequence[Any]], Path]

COMMAND = [sys.executable, "-m", "focus_cli", "generate"]
LINE = json.dumps({"messages": [{"role": "user", "content": "Flip the coin"}]}) + "\n"


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def records(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_bar_on_a_terminal(write: Write, tmp_path: Path) -> None:
    source = write([json.loads(LINE)] * 3 + ["nonsense"])
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    command = [*COMMAND, str(source), "-o", str(tmp_path / "out.jsonl")]
    with subprocess.Popen(command, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 2**16):
                shown += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
    assert process.returncode == 1
    text = shown.decode()
    assert "\x1b[" in text
    assert "4/4" in text
    assert "1 failed" in text
    assert "line 4: InvalidRequestError: JSON is malformed" in text


def test_replies_come_before_the_input_ends(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with subprocess.Popen([*COMMAND, "-", "-o", str(out)], stdin=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        for count in (1, 2):
            process.stdin.write(LINE)
            process.stdin.flush()
            wait_for(lambda count=count: records(out) == count)  # type: ignore[misc] # bound early
    assert process.returncode == 0


def test_an_interrupt_keeps_what_is_there(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    command = [*COMMAND, "-", "-o", str(out)]

    def interruptible() -> None:
        # A shell starts background jobs with interrupts ignored, and the tests may run in one.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=interruptible
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(LINE)
        process.stdin.flush()
        wait_for(lambda: records(out) == 1)
        # The input is still open: nothing else would end this.
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert (process.returncode, said) == (130, "error: interrupted\n")
    assert json.loads(out.read_text())["exact"] is True


def test_a_full_disk_ends_the_run_and_is_gone_on_from(write: Write, tmp_path: Path) -> None:
    source, out = write([json.loads(LINE)] * 20), tmp_path / "out.jsonl"
    command = [*COMMAND, str(source), "-o", str(out)]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    full = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
    assert full.returncode == 1
    assert full.stderr.splitlines()[-1] == "error: OSError: [Errno 27] File too large"
    assert out.stat().st_size == 10_000
    again = subprocess.run([*command, "--resume"], capture_output=True, text=True)
    assert again.returncode == 0
    assert "the last line was not finished" in again.stderr
    assert sorted(json.loads(line)["line"] for line in out.read_bytes().splitlines()) == list(range(1, 21))
