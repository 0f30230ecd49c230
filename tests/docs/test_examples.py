"""Every example runs, warns of nothing and prints what its page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.public_api import ROOT

FOLDER = ROOT / "docs" / "examples"
BY_COMMAND = {"ray_actors"}
"""Need something that is not installed; their pages give the command."""

LINES: dict[str, list[str]] = {
    "continuation": [
        "turn 0: 53 sampled, exact=True, 511 ids",
        "turn 3: 22 sampled, exact=True, 652 ids",
        "compacted: exact=False, the earlier messages are not those of the prompt: they were edited or compacted",
    ],
    "critic": [
        'call 1: add({"x": 2, "y": 3})',
        "from a function:    [-0.21, -0.87, -1.09]",
        "the server gives    one value per token: every reduce and values_at",
        "from a value model: [-3.1, 2.2, 1.5]",
        "at every byte of 🦜: [2.0, 0.2, 0.9, -0.1]",
        "context 1 is bad, the others are (-0.10000000149011612, None)",
    ],
    "custom_codec": [
        "1 turn ends in the prompt",
        "'Hello!'",
        "exact=True, equal to a full render=True",
        "'Goodbye!'",
    ],
    "custom_critic": ["['0 tool results', '1 tool results']", "[0.5, 1.0]"],
    "custom_parser": [
        "Move(square='b2')",
        "'I add.'",
        """ToolCall(name='add', arguments='{"x": 2, "y": 3}', call_id='')""",
        "ToolCall(name='', arguments='add(2', call_id='')",
    ],
    "custom_policy": [
        "'No.' 4 tokens, logprob -1.3863",
        "trainable=True exact=True",
        "continues what was sent: True",
        "top_k=20: this engine takes temperature and max_tokens alone",
        "the engine does not answer: the engine is gone",
    ],
    "exactness": [
        "raw       top_k -1 'h' -0.2877 False",
        "raw       top_k  1 'h' -0.2877 False",
        "tempered  top_k -1 'h' -0.1891 True",
        "tempered  top_k  1 'h' -0.1891 False",
        "behavior  top_k -1 'h' -0.1891 True",
        "behavior  top_k  1 'h' +0.0000 True",
        "cut character: 4 ids were sampled, their text has 5",
        "spelled out: 10 ids were sampled, their text has 1",
        "rendered again, the sampled ids are kept: False",
        "extended, the sampled ids are kept: True",
        "missing_logprobs: exact=False, 0 logprobs",
        "  inexact_reason: log-probabilities were asked for and none came",
        "wrong_prompt: exact=False, 53 logprobs",
        "  inexact_reason: the server continued other prompt ids than the ones sent",
        "filler: exact=False, 0 logprobs",
        "  inexact_reason: a sampled token's log-probability is a filler for minus infinity",
    ],
    "math_answer": [
        "'6 * 7 is 48.' reward 0 advantage -0.50 logprob -1.3863 ids 33 + 13",
        "'6 * 7 is 42.' reward 1 advantage +0.50 logprob -0.2877 ids 33 + 13",
    ],
    "parsers": [
        """  call read({"path": "007", "lines": 20})""",
        "  text '' reasoning 'I need the file.'",
        """  call read({"lines": 1.0})""",
        """  could not be read: '{"name": "read",}'""",
        """  could not be read: '{"name": "read", "argum'""",
        "  text 'Calls stand between <tool_call> and an end tag.' reasoning ''",
    ],
    "process_pool": [
        "prompt of 427 ids, under 10 kB as a pickle: True",
        "flip_coin True",
        "6 requests, 0 connections left open",
    ],
    "quickstart": [
        "    id 104  'h'           logprob -0.2877",
        '  parsed tool call: flip_coin({"times": 1})',
        "prompt of 539 ids -> 'The coin shows heads.'",
    ],
    "segments": [
        "[1.0, 1.0, -1.0, 1.0] -> 1.0 '1+2=3'",
        "[0.0, 2.0, 2.0, 2.0] -> 2.0 '1+2=3, 3+3=6, 6'",
        "[3.0, 3.0, 3.0, 3.0] -> 3.0 '1+2=3, 3+3=6, 6+4=10'",
        "21 tokens, logprob -1.6094, off by at most 0.000000 in one piece",
    ],
}
"""Name of an example to some lines of its output."""


def test_every_example_is_run() -> None:
    assert {path.stem for path in FOLDER.iterdir() if path.suffix == ".py"} == LINES.keys() | BY_COMMAND


def test_no_example_hides_a_module_of_python() -> None:
    """`python docs/examples/x.py` puts the folder before the standard library."""
    assert {path.stem for path in FOLDER.iterdir()}.isdisjoint(sys.stdlib_module_names)


@pytest.mark.parametrize("name", sorted(LINES))
def test_example(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(FOLDER / f"{name}.py")]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in LINES[name] if line not in done.stdout.splitlines()] == []
    assert list(tmp_path.iterdir()) == []


def test_the_page_of_exactness_prints_what_its_program_prints() -> None:
    page = (ROOT / "docs" / "exactness.md").read_text(encoding="utf-8")
    [output] = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert output.splitlines() == LINES["exactness"][:10]


@pytest.mark.parametrize("name", sorted(BY_COMMAND))
def test_an_example_with_a_command_of_its_own_compiles(name: str) -> None:
    compile((FOLDER / f"{name}.py").read_text(encoding="utf-8"), name, "exec")
