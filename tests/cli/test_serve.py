"""`focus serve` as a process of its own, and faults as its options write them."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from typer.testing import Result

from focus_cli.commands.serve import parse_fault
from focus_testing import Fault
from focus_types import InvalidRequestError
from support.raw_http import post

type Focus = Callable[..., Result]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("drop_after", Fault("drop_after")),
        (
            "status:status=429,retry_after=1.5,rate=0.1,seed=7",
            Fault("status", status=429, retry_after=1.5, rate=0.1, seed=7),
        ),
        ("slow:seconds=2,calls=0+3", Fault("slow", seconds=2.0, calls=frozenset({0, 3}))),
        ("html:path=/v1/models,status=502", Fault("html", path="/v1/models", status=502)),
    ],
)
def test_faults(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize("text", ["slow:secs=1", "slow:seconds=x", "slow:calls=", "status:kind=slow"])
def test_faults_that_make_no_sense(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=re.escape(f"--fault {text}: ")):
        parse_fault(text)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_until_it_is_ended(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "focus_cli", "serve", "--port", "0", "--fault", "status:status=503,calls=1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.partition(" ")[0]
        assert line == f"{url} speaks vllm's wire and serves byte\n"
        try:
            body = {"model": "byte", "prompt": [65], "max_tokens": 1}
            statuses = [post(url, "/v1/completions", body).status for _ in range(3)]
        finally:
            process.send_signal(number)
        rest = process.stdout.read()
    assert statuses == [200, 503, 200]
    assert (rest, process.returncode) == ("3 requests\n", 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--wire", "nope"), "unknown wire 'nope'"),
        (("--logprobs", "nope"), "choose one of raw, tempered, behavior"),
        (("--fault", "nope"), "this wire has no fault 'nope'"),
        (("--fault", "slow:nope=1"), "there is no 'nope'"),
    ],
)
def test_what_makes_no_sense(focus: Focus, arguments: tuple[str, ...], message: str) -> None:
    done = focus("serve", "--port", 0, *arguments)
    assert (done.exit_code, message in done.stderr) == (2, True)
