"""`focus generate --resume`: nothing is lost and nothing is repeated, however the last run ended."""

from __future__ import annotations

import fcntl
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

type Focus = Callable[..., Result]
type Write = Callable[[Sequence[Any]], Path]

LINES = [{"id": n, "messages": [{"role": "user", "content": f"Flip coin {n}"}]} for n in range(20)]
CONVERSATIONS = 2000


def lines_of(path: Path) -> list[int]:
    return [json.loads(line)["line"] for line in path.read_bytes().splitlines()]


def finished(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_midway(command: Sequence[str], out: Path, at: int) -> int:
    """Kill the process with a signal that it cannot see once it has written so many records."""
    with subprocess.Popen([*command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while finished(out) < at and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    return finished(out)


def test_two_thousand_conversations_killed_three_times(write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    messages = [[{"role": "user", "content": f"Flip coin {n}"}] for n in range(CONVERSATIONS)]
    source = write([{"id": f"c{n}", "messages": one} for n, one in enumerate(messages)])
    command = [sys.executable, "-m", "focus_cli", "generate", str(source), "-o", str(out), "--max-tokens", "8"]
    written = [kill_midway([*command, "--resume"], out, at) for at in (300, 900, 1500)]
    assert 300 <= written[0] < written[1] < written[2] < CONVERSATIONS
    subprocess.run([*command, "--resume"], check=True, capture_output=True)
    assert sorted(lines_of(out)) == list(range(1, CONVERSATIONS + 1))
    found = {record["id"]: record for record in map(json.loads, out.read_bytes().splitlines())}
    assert len(found) == CONVERSATIONS
    for n in range(CONVERSATIONS):
        prompt = bytes(token for token in found[f"c{n}"]["prompt_tokens"] if token < 256)
        assert f"Flip coin {n}\n".encode() in prompt.replace(b"assistant", b"\n")
        assert found[f"c{n}"]["exact"]


@pytest.mark.parametrize("left", [1, 40, 900])
def test_a_torn_last_line_is_cut_and_generated_again(focus: Focus, write: Write, tmp_path: Path, left: int) -> None:
    out = tmp_path / "out.jsonl"
    source = write(LINES)
    assert focus("generate", source, "-o", out).exit_code == 0
    whole = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(whole[:7]) + whole[7][:left])
    done = focus("generate", source, "-o", out, "--resume")
    assert done.exit_code == 0
    assert f"the last line was not finished ({left} bytes) and is cut off" in done.stderr
    assert "13 replies in " in done.stderr
    assert done.stderr.rstrip().endswith("7 were there before")
    assert sorted(lines_of(out)) == list(range(1, 21))
    assert out.read_bytes().splitlines(keepends=True)[:7] == whole[:7]


def test_a_finished_file_stays_as_it_is(focus: Focus, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    source = write(LINES)
    focus("generate", source, "-o", out)
    before = out.read_bytes()
    assert focus("generate", source, "-o", out, "--resume").exit_code == 0
    assert out.read_bytes() == before


def test_longer_input_and_failed_lines_go_on(focus: Focus, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert focus("generate", write([*LINES[:3], "bad"]), "-o", out).exit_code == 1
    assert focus("generate", write([*LINES[:3], *LINES[3:5]]), "-o", out, "--resume").exit_code == 0
    assert sorted(lines_of(out)) == [1, 2, 3, 4, 5]


def test_a_file_is_never_overwritten_or_mixed(focus: Focus, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    source = write(LINES)
    focus("generate", source, "-o", out)
    before = out.read_bytes()

    def refusal(*arguments: object) -> str:
        done = focus("generate", source, "-o", out, *arguments)
        assert done.exit_code == 2
        return done.stderr

    assert "is there already: --resume goes on with it" in refusal()
    assert "was made otherwise: temperature was 0.7 and is 0.5" in refusal("--resume", "--temperature", "0.5")
    assert "was made otherwise: profile was None and is 'text'" in refusal("--resume", "--profile", "text")
    write([LINES[1], LINES[0], *LINES[2:]])
    assert "line 1 of the input is not the one that" in refusal("--resume")
    with out.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert "another focus generate is writing" in refusal("--resume")
    assert out.read_bytes() == before
    out.write_bytes(before + before.splitlines(keepends=True)[0])
    assert re.search(r"answers line \d+ twice", refusal("--resume"))
    out.write_text('{"some": "other file"}\n')
    assert "line 1 of" in refusal("--resume")
    assert "is no record" in refusal("--resume")
    assert out.read_text() == '{"some": "other file"}\n'
