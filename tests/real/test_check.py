"""`focus check` on the real servers: it tells each from the others and says what to change."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from servers import sglang, vllm

__all__: list[str] = []

MODELS: dict[str, Callable[[], list[str]]] = {
    # This server was started in a folder of its own and tells a path below it.
    "vllm": lambda: ["--model", str(vllm.model_folder("script"))],
    "sglang": lambda: ["--model", str(sglang.model_folder())],
    "pooling": list,
}


def check(capsys: pytest.CaptureFixture[str], url: str, backend: str, *options: str) -> tuple[int, Any]:
    """Exit status and JSON of one check; the readable form is printed."""
    command = [sys.executable, "-m", "focus_cli", "check", url, "--backend", backend, *MODELS[backend](), *options]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=240)
    with capsys.disabled():
        print(f"\n$ focus check {url} {' '.join(command[5:])}\n{shown.stdout}{shown.stderr}exit {shown.returncode}")
    found = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=240)
    assert found.returncode == shown.returncode
    return found.returncode, json.loads(found.stdout)


def test_vllm_raw(capsys: pytest.CaptureFixture[str]) -> None:
    with vllm.script("--logprobs-mode", "raw_logprobs") as server:
        status, found = check(capsys, server.url, "vllm")
        assert (status, found["status"], found["report"]["logprob_mode"]) == (3, "change", "raw")
        assert "--logprobs-mode processed_logprobs" in found["changes"][0]
        assert found["model"] == str(vllm.model_folder("script"))
        report = found["report"]
        assert report["served_models"] == ["focus-script"]
        assert (report["ids_confirmed"], report["prompt_confirmed"], report["text_agrees"]) == (True, True, True)
        assert (report["context_length"], report["stop_string_limit"]) == (4096, 4)
        status, found = check(capsys, server.url, "vllm", "--temperature", "1")
        assert (status, found["status"], found["changes"]) == (0, "ok", [])
        status, found = check(capsys, server.url, "sglang")
        assert (status, found["report"]) == (1, None)
        assert "is no SGLang server" in found["error"]
        status, found = check(capsys, server.url, "pooling")
        assert (status, found["report"]) == (1, None)
        assert "not for pooling: start it with --runner pooling" in found["error"]


def test_vllm_processed(capsys: pytest.CaptureFixture[str]) -> None:
    with vllm.script() as server:
        status, found = check(capsys, server.url, "vllm")
        assert (status, found["status"], found["report"]["logprob_mode"]) == (0, "ok", "behavior")
        status, found = check(capsys, server.url, "vllm", "--top-p", "0.9")
        assert (status, found["status"]) == (3, "change")
        assert "a trainer's full softmax has another support" in found["changes"][0]


def test_sglang(capsys: pytest.CaptureFixture[str]) -> None:
    with sglang.script() as server:
        status, found = check(capsys, server.url, "sglang")
        report = found["report"]
        assert (status, found["status"], report["logprob_mode"]) == (0, "ok", "tempered")
        assert (report["ids_confirmed"], report["text_agrees"]) == (True, True)
        status, found = check(capsys, server.url, "vllm")
        assert (status, found["report"]) == (1, None)
        assert "is an SGLang server: use --backend sglang" in found["error"]


@pytest.mark.parametrize(
    ("task", "note"), [("token_classify", "one value per token"), ("classify", "one value per context")]
)
def test_pooling(task: Any, note: str, capsys: pytest.CaptureFixture[str]) -> None:
    with vllm.pooling(task) as server:
        status, found = check(capsys, server.url, "pooling")
        assert (status, found["status"], found["report"]["served_models"]) == (0, "ok", ["focus-critic"])
        assert found["report"]["notes"][0].startswith(note)
        status, found = check(capsys, server.url, "vllm")
        assert (status, found["report"]) == (1, None)
        assert "is checked with --backend pooling" in found["error"]
