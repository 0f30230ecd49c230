"""`focus generate`: records, bad lines, exit statuses, backends."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from focus_testing import DEMO_TOOLS, ByteTokenizer, Engine, Fault, NGramModel, demo_engine, serve

type Focus = Callable[..., Result]
type Write = Callable[[Sequence[Any]], Path]

USER = {"role": "user", "content": "Flip the coin"}
CALL = {"role": "assistant", "content": '<tool_call>\n{"name": "flip_coin", "arguments": {"times": 1}}\n</tool_call>'}
TOOL = {"role": "tool", "content": '["heads"]'}
END = 258


def records(path: Path) -> list[dict[str, Any]]:
    return sorted((json.loads(line) for line in path.read_text().splitlines()), key=lambda one: one["line"])


def test_a_record_holds_everything_about_its_reply(focus: Focus, write: Write, tmp_path: Path) -> None:
    tokenizer = ByteTokenizer()
    line: dict[str, Any] = {"id": "a-1", "messages": [USER, CALL, TOOL], "data": {"answer": 42}}
    out = tmp_path / "out.jsonl"
    done = focus("generate", write([line]), "-o", out, "--temperature", 1, "--seed", 7, "--logprobs", 2)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith(f"{out}: 1 replies in ")
    [record] = records(out)
    assert record["text"] == "The coin shows heads."
    assert record["tokens"] == [*b"The coin shows heads.", END]
    prompt = tokenizer.apply_chat_template(line["messages"], add_generation_prompt=True)
    assert record["prompt_tokens"] == prompt
    assert record["logprobs"][15] == pytest.approx(math.log(0.75))
    assert record["top_logprobs"][15] == pytest.approx({"token_id:104": math.log(0.75), "token_id:116": math.log(0.25)})
    assert record["entropy"] == pytest.approx(-math.log(0.75) / 22)
    assert (record["stop_reason"], record["matched_stop"], record["exact"]) == ("stop", END, True)
    assert record["action"] == {
        "kind": "tool",
        "value": {"text": "The coin shows heads.", "tool_calls": [], "reasoning": ""},
    }
    assert (record["id"], record["line"], record["data"]) == ("a-1", 1, {"answer": 42})
    meta, settings = record["meta"], record["settings"]
    assert (meta["logprob_mode"], meta["logprobs_match_sampling"], meta["attempts"]) == ("behavior", True, 1)
    assert meta["sampling"]["max_tokens"] == 512
    assert (settings["backend"], settings["model"], settings["sampling"]["seed"]) == ("embedded", "byte", 7)


def test_the_parsed_call(focus: Focus, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert focus("generate", write([{"messages": [USER], "tools": DEMO_TOOLS}]), "-o", out).exit_code == 0
    [record] = records(out)
    assert record["action"]["value"]["tool_calls"] == [
        {"name": "flip_coin", "arguments": '{"times": 1}', "call_id": ""},
    ]
    assert b"flip_coin" in bytes(token for token in record["prompt_tokens"] if token < 256)


def test_exact_ids_as_a_prompt(focus: Focus, write: Write, tmp_path: Path) -> None:
    ids = [*b"anything", 257, *b"assistant\n"]
    out = tmp_path / "out.jsonl"
    chosen = ("--profile", "token_chunk", "--logprobs", -1)
    assert focus("generate", write([{"prompt_tokens": ids}]), "-o", out, *chosen).exit_code == 0
    [record] = records(out)
    assert record["prompt_tokens"] == ids
    assert record["action"] == {"kind": "tokens", "value": {"tokens": record["tokens"], "finished": True}}
    assert (record["logprobs"], record["top_logprobs"]) == ([], None)


def test_bad_lines_are_reported_and_the_rest_goes_on(focus: Focus, write: Write, tmp_path: Path) -> None:
    lines = [
        {"messages": [USER]},
        "nonsense",
        {"mesages": [USER]},
        "",
        {"messages": [USER], "prompt_tokens": [1]},
        {"id": "neither"},
        {"prompt_tokens": [1, True]},
        {"prompt_tokens": [1, 999]},
        {"prompt_tokens": [1], "tools": DEMO_TOOLS},
        {"messages": [{"role": "nobody", "content": "x"}]},
        {"prompt_tokens": [65] * 4096},
        {"messages": [USER], "id": 12},
    ]
    out = tmp_path / "out.jsonl"
    done = focus("generate", write(lines), "-o", out)
    assert done.exit_code == 1
    assert [record["line"] for record in records(out)] == [1, 12]
    said = {line.partition(":")[0]: line for line in done.stderr.splitlines()}
    assert sorted(said) == sorted([str(out), *(f"line {number}" for number in (2, 3, 5, 6, 7, 8, 9, 10, 11))])
    assert "JSON is malformed" in said["line 2"]
    assert "unknown field `mesages`; what should only travel along goes into data" in said["line 3"]
    assert "a line holds messages or prompt_tokens, one of them" in said["line 5"]
    assert "Expected `int`, got `bool` - at `$.prompt_tokens[1]`" in said["line 7"]
    assert "token 1 of 2 is 999" in said["line 8"]
    assert "tools belong to messages" in said["line 9"]
    assert "unknown role nobody" in said["line 10"]
    assert "line 11: ContextLengthError" in said["line 11"]
    assert ": 2 replies, 9 lines failed in " in said[str(out)]


def test_standard_input_and_a_last_line_without_end(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    lines = json.dumps({"messages": [USER]}) + "\r\n\r\n" + json.dumps({"prompt_tokens": [65]})
    command = [sys.executable, "-m", "focus_cli", "generate", "-", "-o", str(out)]
    subprocess.run(command, input=lines.encode(), check=True, capture_output=True)
    assert [record["line"] for record in records(out)] == [1, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--backend", "tinker"), "it generates through a sampling client that your training script makes"),
        (("--backend", "slime"), "through the transport of a Slime run"),
        (("--backend", "pooling"), "gives values, not replies"),
        (("--backend", "nope"), "there is no such backend. Choose one of embedded, vllm, sglang"),
        (("--backend", "vllm"), "--backend vllm needs --url"),
        (("--backend", "openai-chat"), "needs --model"),
        (("--backend", "openai-chat", "--model", "m"), "OPENAI_API_KEY is not set"),
        (("--backend", "openai-chat", "--model", "m", "--api-key-env", "NOT_SET"), "no such environment variable"),
        (("--model", "other"), "the embedded engine has no server and one model"),
        (("--profile", "nope"), "unknown profile 'nope'"),
        (("--temperature", "-1"), "temperature must be a finite number >= 0"),
    ],
)
def test_what_makes_no_sense(
    focus: Focus, write: Write, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    out = tmp_path / "out.jsonl"
    done = focus("generate", write([{"messages": [USER]}]), "-o", out, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert not out.exists()


def test_files_that_cannot_be_used(focus: Focus, write: Write, tmp_path: Path) -> None:
    missing = focus("generate", tmp_path / "missing.jsonl", "-o", tmp_path / "out.jsonl")
    assert (missing.exit_code, "No such file" in missing.stderr) == (2, True)
    nowhere = focus("generate", write([{"messages": [USER]}]), "-o", tmp_path / "no" / "out.jsonl")
    assert (nowhere.exit_code, "No such file" in nowhere.stderr) == (1, True)
    device = focus("generate", write([{"messages": [USER]}]), "-o", "/dev/null")
    assert (device.exit_code, "is no regular file" in device.stderr) == (2, True)
    assert focus("generate").exit_code == 2


def test_vllm_with_a_key_from_the_environment(
    focus: Focus, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    monkeypatch.setenv("MY_KEY", "sesame-open")
    with serve(demo_engine(), wire="vllm", model="byte", api_key="sesame-open") as server:
        chosen = ("--backend", "vllm", "--url", server.url, "--api-key-env", "MY_KEY", "--temperature", 1)
        done = focus("generate", write([{"messages": [USER, CALL, TOOL]}]), "-o", out, *chosen)
        wrong = focus("generate", write([{"messages": [USER]}]), "-o", tmp_path / "x", "--backend", "vllm", "--url",
                      server.url + "/v1")  # fmt: skip
    assert done.exit_code == 0
    [record] = records(out)
    assert (record["exact"], record["meta"]["logprob_mode"]) == (True, "unknown")
    assert record["text"] in ("The coin shows heads.", "The coin shows tails.")
    assert wrong.exit_code == 1
    assert "AuthenticationError" in wrong.stderr
    assert "sesame-open" not in done.output + wrong.output + out.read_text()


def test_the_probe_goes_before_and_its_warning_is_passed_on(focus: Focus, write: Write, tmp_path: Path) -> None:
    tokenizer = ByteTokenizer()
    out = tmp_path / "out.jsonl"
    engine = Engine(NGramModel("to be or not to be", tokenizer, order=2), tokenizer, logprob_mode="raw")
    with serve(engine, wire="vllm", model="byte") as server:
        done = focus(
            "generate", write([{"messages": [USER]}] * 3), "-o", out, "--backend", "vllm", "--url", server.url,
            "--max-tokens", 4,
        )  # fmt: skip
    assert done.exit_code == 0
    assert "warning: " in done.stderr
    assert "returns 'raw' log-probabilities" in done.stderr
    assert [record["meta"]["logprob_mode"] for record in records(out)] == ["raw"] * 3
    assert [record["meta"]["logprobs_match_sampling"] for record in records(out)] == [False] * 3


def test_sglang(focus: Focus, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with serve(demo_engine(), wire="sglang", model="byte") as server:
        chosen = ("--backend", "sglang", "--url", server.url)
        assert focus("generate", write([{"messages": [USER]}]), "-o", out, *chosen).exit_code == 0
        refused = focus("generate", write([]), "-o", tmp_path / "x", *chosen, "--served-model", "m")
    [record] = records(out)
    assert record["exact"]
    assert record["settings"]["served_model"] == "byte"
    assert (refused.exit_code, "leave --served-model out" in refused.stderr) == (2, True)


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_openai(focus: Focus, write: Write, tmp_path: Path, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.jsonl"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")
    lines = [{"messages": [USER], "tools": DEMO_TOOLS}, {"prompt_tokens": [1]}]
    with serve(demo_engine(), wire="openai", model="m", api_key="sk-loopback") as server:
        chosen = ("--backend", f"openai-{api}", "--url", server.url + "/v1", "--model", "m")
        done = focus("generate", write(lines), "-o", out, *chosen)
    assert done.exit_code == 1
    assert "line 2: InvalidRequestError: " in done.stderr
    assert "1 not exact" in done.stderr
    [record] = records(out)
    assert record["action"]["value"]["tool_calls"][0]["name"] == "flip_coin"
    assert (record["tokens"], record["prompt_tokens"], record["exact"]) == ([], None, False)
    assert record["meta"]["inexact_reason"].startswith("a chat API takes messages")
    assert record["native_output"]
    assert "sk-loopback" not in done.output + out.read_text()


def test_failures_of_a_server(focus: Focus, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    lines = [{"messages": [USER], "id": n} for n in range(20)]
    with serve(demo_engine(), wire="vllm", model="byte") as server:
        # The requests of the probe come first.
        server.set_fault(Fault("status", calls={5, 7}, status=500), Fault("abort", calls={9}))
        chosen = ("--backend", "vllm", "--url", server.url, "--concurrency", 1)
        done = focus("generate", write(lines), "-o", out, *chosen)
        assert done.exit_code == 1
        assert len(records(out)) == 17
        kinds = [line.split(": ")[1] for line in done.stderr.splitlines() if line.startswith("line ")]
        assert sorted(kinds) == ["AbortedError", "ServerUnavailableError", "ServerUnavailableError"]
        server.set_fault()
        again = focus("generate", write(lines), "-o", out, *chosen, "--resume")
    assert again.exit_code == 0
    assert [record["id"] for record in records(out)] == list(range(20))


def test_a_missing_server(focus: Focus, write: Write, tmp_path: Path) -> None:
    chosen = ("--backend", "vllm", "--url", "http://127.0.0.1:9")
    done = focus("generate", write([{"messages": [USER]}]), "-o", tmp_path / "out", *chosen)
    assert (done.exit_code, "ServerUnavailableError" in done.stderr) == (1, True)


def test_a_key_that_is_refused_ends_the_run(
    focus: Focus, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
    lines = [{"messages": [USER]}] * 500
    with serve(demo_engine(), wire="openai", model="m", api_key="sk-loopback") as server:
        chosen = ("--backend", "openai-chat", "--url", server.url + "/v1", "--model", "m", "--concurrency", 4)
        done = focus("generate", write(lines), "-o", tmp_path / "out", *chosen)
        assert len(server.requests) <= 8
        deadline = time.monotonic() + 10
        while server.open_connections and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.open_connections == 0
    assert done.exit_code == 1
    assert done.stderr.startswith("error: AuthenticationError: ")
    assert done.stderr.count("\n") == 1
    assert "sk-wrong" not in done.stderr


def test_nothing_heavy_is_loaded_before_it_is_chosen() -> None:
    code = "import sys, focus_cli\nprint(*sorted(sys.modules))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = {
        "rich",
        "numpy",
        "jinja2",
        "transformers",
        "openai",
        "tinker",
        "aiohttp",
        "httpcore",
        "httpx",
        "focus_testing",
    }
    assert heavy & {name.partition(".")[0] for name in output.split()} == set()
