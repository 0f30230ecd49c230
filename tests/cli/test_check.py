"""`focus check` on loopback servers: findings, exit statuses, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import Result

from focus_testing import ByteTokenizer, Engine, Fault, NGramModel, Server, demo_engine, serve
from focus_testing.sampling import ReportedMode

type Focus = Callable[..., Result]

TEXT = "The cat sat on the mat. The cow sat on the moon. Then the hen ran to them. Hello there, you."


def engine(mode: ReportedMode) -> Engine:
    tokenizer = ByteTokenizer()
    return Engine(NGramModel(TEXT, tokenizer, order=3), tokenizer, logprob_mode=mode)


def found(focus: Focus, server: Server, backend: str, *options: object) -> tuple[int, Any]:
    done = focus("check", server.url, "--backend", backend, "--json", *options)
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.parametrize(
    ("wire", "mode", "options", "status"),
    [
        ("vllm", "raw", (), 3),
        ("vllm", "raw", ("--temperature", 1), 0),
        ("vllm", "raw", ("--temperature", 1, "--repetition-penalty", 1.1), 3),
        ("vllm", "behavior", (), 0),
        ("vllm", "behavior", ("--temperature", 0), 3),
        ("vllm", "behavior", ("--top-p", 0.9), 3),
        ("sglang", "tempered", (), 0),
        ("sglang", "tempered", ("--top-k", 20), 3),
        ("sglang", "raw", (), 3),
    ],
)
def test_what_log_probabilities_are_of(
    focus: Focus, wire: Any, mode: ReportedMode, options: tuple[object, ...], status: int
) -> None:
    with serve(engine(mode), wire=wire, model="byte") as server:
        code, verdict = found(focus, server, wire, *options)
    report = verdict["report"]
    assert (code, verdict["status"], report["logprob_mode"]) == (status, {0: "ok", 3: "change"}[status], mode)
    assert (report["ids_confirmed"], report["prompt_confirmed"], report["text_agrees"]) == (True, True, True)
    assert (report["served_models"], report["context_length"], verdict["model"]) == (["byte"], 4096, "byte")
    assert len(verdict["changes"]) == (status == 3)


def test_the_readable_report(focus: Focus) -> None:
    with serve(engine("raw"), wire="vllm", model="byte") as server:
        done = focus("check", server.url + "/v1", "--backend", "vllm")
    assert (done.exit_code, done.stderr) == (3, "")
    lines = {line[:10].strip(): line[11:] for line in done.stdout.splitlines() if line[:10].strip()}
    assert lines["server"] == f"vLLM vllm-0.32.0-focus-testing at {server.url}/v1"
    assert lines["token ids"] == "confirmed: replies carry them"
    assert lines["prompt"] == "confirmed: the server continues the ids it is sent"
    assert lines["tokenizer"] == "confirmed: the server's text is what byte decodes"
    assert lines["logprobs"].startswith("raw: of the model's own distribution at temperature 1")
    assert "they are not those of sampling with temperature=0.7, top_p=1.0" in done.stdout
    assert lines["stop"].endswith("at most 4 stop strings")
    assert lines["context"] == "4096 tokens, prompt and reply together"
    assert "Start the server with --logprobs-mode processed_logprobs" in lines["change"]
    assert lines["verdict"] == "usable, with something to change"


@pytest.mark.parametrize(
    ("task", "note"), [("token_classify", "one value per token"), ("classify", "one value per context")]
)
def test_a_pooling_server(focus: Focus, task: str, note: str) -> None:
    with serve(wire="pooling", model="value", task=task) as server:
        code, verdict = found(focus, server, "pooling")
        assert (code, verdict["status"], verdict["report"]["served_models"]) == (0, "ok", ["value"])
        assert verdict["report"]["notes"][0].startswith(note)
        done = focus("check", server.url, "--backend", "pooling")
    assert f"values     {note}" in done.stdout
    assert "token ids" not in done.stdout


def test_servers_of_another_kind(focus: Focus) -> None:
    with (
        serve(engine("raw"), wire="vllm", model="byte") as vllm,
        serve(engine("tempered"), wire="sglang", model="byte") as sglang,
        serve(wire="pooling", model="byte") as pooling,
    ):
        said = {
            (name, backend): found(focus, server, backend)
            for name, server in (("vllm", vllm), ("sglang", sglang), ("pooling", pooling))
            for backend in ("vllm", "sglang", "pooling")
            if backend != name
        }
    assert {code for code, _ in said.values()} == {1}
    assert {verdict["status"] for _, verdict in said.values()} == {"unusable"}
    errors = {key: verdict["error"] for key, (_, verdict) in said.items()}
    assert "start it with --runner pooling" in errors["vllm", "pooling"]
    assert "is no SGLang server" in errors["vllm", "sglang"]
    assert "use --backend sglang" in errors["sglang", "vllm"]
    assert "use --backend sglang" in errors["sglang", "pooling"]
    assert "is checked with --backend pooling" in errors["pooling", "vllm"]
    assert "is no SGLang server" in errors["pooling", "sglang"]


def test_a_model_that_is_certain_of_its_replies(focus: Focus) -> None:
    with serve(demo_engine(), wire="vllm", model="byte") as server:
        code, verdict = found(focus, server, "vllm")
        assert (code, verdict["report"]["logprob_mode"]) == (3, "unknown")
        assert "--prompt TEXT" in verdict["changes"][-1]
        again = "<|im_start|>assistant\n" * 2 + "The coin shows "
        code, verdict = found(focus, server, "vllm", "--prompt", again)
        assert (code, verdict["report"]["logprob_mode"]) == (0, "behavior")


def test_what_cannot_be_used(focus: Focus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOCUS_API_KEY", "wrong-key-in-env")
    with serve(engine("raw"), wire="vllm", model="byte", api_key="sesame-open") as server:
        code, verdict = found(focus, server, "vllm")
        assert (code, verdict["report"], verdict["error"].split(":")[0]) == (1, None, "AuthenticationError")
        assert "wrong-key-in-env" not in json.dumps(verdict)
        monkeypatch.setenv("FOCUS_API_KEY", "sesame-open")
        assert found(focus, server, "vllm")[1]["status"] == "change"
        code, verdict = found(focus, server, "vllm", "--served-model", "byte")
        assert code == 3
        server.set_fault(Fault("wrong_prompt"))
        code, verdict = found(focus, server, "vllm")
        assert (code, verdict["report"]["prompt_confirmed"]) == (1, False)
        assert "continues other prompt ids" in verdict["error"]
        server.set_fault(Fault("missing_ids"))
        code, verdict = found(focus, server, "vllm")
        assert (code, verdict["report"]) == (1, None)
    missing = focus("check", "http://127.0.0.1:9", "--backend", "vllm")
    assert missing.exit_code == 1
    assert missing.stdout.startswith("error      ServerUnavailableError: ")
    assert missing.stdout.endswith("verdict    not usable\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--backend", "openai-chat"), "a chat API tells neither token ids"),
        (("--backend", "openai-responses"), "tells neither token ids"),
        (("--backend", "tinker"), "TinkerPolicy(...).probe() asks it"),
        (("--backend", "slime"), "--backend sglang"),
        (("--backend", "embedded"), "there is no server to check"),
        (("--backend", "nope"), "there is no such backend. Choose one of vllm, sglang, pooling"),
        (("--backend", "vllm", "--temperature", "-1"), "temperature must be"),
        (("--backend", "vllm", "--api-key-env", "NOT_SET"), "no such environment variable"),
    ],
)
def test_what_makes_no_sense(focus: Focus, arguments: tuple[str, ...], message: str) -> None:
    done = focus("check", "http://127.0.0.1:9", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def test_the_wrong_served_name(focus: Focus) -> None:
    with serve(engine("raw"), wire="vllm", model="byte") as server:
        done = focus("check", server.url, "--backend", "vllm", "--served-model", "other")
    assert (done.exit_code, "serves byte, not 'other': change --served-model" in done.stderr) == (2, True)
