"""What a real SGLang server answered to recorded requests, the loopback wire answers too."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from focus_testing import Engine, Fault, ScriptModel, Server, demo_engine, serve
from support.raw_http import Answer, ask, post
from support.table_tokenizer import TableTokenizer

END = 151645
PROMPT = (9707, 1879, 11, 1246, 525, 498)
GREEDY = (148798, 19776, 38658, 136003, 107729, 17347)
WORDS = {
    9707: "Hello", 1879: " world", 11: ",", 1246: " how", 525: " are", 498: " you", 148798: "⇊", 19776: "Depth",
    38658: "Comparator", 136003: " trú", 107729: "书中", 17347: "resize", END: "<|im_end|>",
}  # fmt: skip
TOKENIZER = TableTokenizer({token: word.encode() for token, word in WORDS.items()}, special=(END,))
RULES: dict[tuple[int, ...], dict[tuple[int, ...], float]] = {PROMPT: {(*GREEDY, END): 1.0}, (1879,): {(0, END): 1.0}}
ENGINE = Engine(ScriptModel(RULES, vocab_size=151936, default=END, floor=-30.0), TOKENIZER, logprob_mode="tempered")

LEFT_OUT = {
    "05_generate_token_ids_logprob": "token_ids_logprob is refused",
    "10_eos_kept_in_text": "logit_bias is refused",
    "12_temperature_t0": "token_ids_logprob is refused",
    "12_temperature_t07": "token_ids_logprob is refused",
    "12_temperature_t1": "token_ids_logprob is refused",
    "13_sampling_mask": "return_sampling_mask is refused",
    "22_err_prompt_too_long": "its ids were shortened when it was recorded",
    "23_err_prompt_plus_max_new": "its ids were shortened when it was recorded",
    "24_err_context_edge": "its ids were shortened when it was recorded",
    "28_err_token_ids_logprob": "token_ids_logprob is refused",
    "30_aborted": "needs a second client: test_an_abort_ends_a_running_reply",
    "31_two_weight_versions": "needs a second client: test_each_stretch_has_its_weight_version",
    "33_queue_full": "there is no queue",
    "34_aborted_in_queue": "there is no queue",
    "44_v1_loads": "/v1/loads is not served",
    "50_stream": "streams are refused",
    "61_smg_unknown_param_dropped": "one router is imitated, sglang_router",
    "62_sglang_router_bad_types": "the router's own parser",
    "62_smg_bad_types": "the router's own parser",
    "63_sglang_router_model_info": "the router's empty 404",
    "63_smg_model_info": "one router is imitated, sglang_router",
    "65_sglang_router_abort_request": "the router's empty 404",
    "66_sglang_router_no_worker": "there is always a worker",
    "66_smg_no_worker": "there is always a worker",
}
UNTOLD = {"dp_rank", "cached_tokens_details", "cached_tokens", "e2e_latency", "response_sent_to_client_ts", "id"}


def recorded(shared: Path) -> dict[str, dict[str, Any]]:
    found = {path.stem: json.loads(path.read_text()) for path in sorted((shared / "wire" / "sglang").glob("*.json"))}
    return {name: one for name, one in found.items() if name not in LEFT_OUT}


def answer(name: str, request: dict[str, Any]) -> Answer:
    key = "sekret" if "auth" in name else None
    options: dict[str, Any] = {"model": "tiny", "api_key": key, "weight_version": "v1", "router": "router" in name}
    with serve(ENGINE, wire="sglang", **options) as server:
        headers = request.get("headers")
        return ask(server.url, request["method"], request["path"], request.get("body"), headers)


def test_every_exchange_has_the_recorded_status_and_keys(shared: Path) -> None:
    exchanges = recorded(shared)
    assert len(exchanges) >= 26
    for name, exchange in exchanges.items():
        found, wanted = answer(name, exchange["request"]), exchange["response"]
        body = "" if found.body == b"" else found.body
        assert (name, found.status) == (name, wanted["status"])
        assert (name, found.headers.get("content-type")) == (name, wanted["headers"].get("content-type"))
        for ours, theirs in zip(items(body), items(wanted["body"]), strict=True):
            if "get_model_info" in name:
                assert ours.keys() <= theirs.keys()
                assert ours["served_model_name"] == theirs["served_model_name"]
            else:
                assert (name, set(ours)) == (name, set(theirs))


def items(body: Any) -> list[dict[str, Any]]:
    return [one for one in (body if isinstance(body, list) else [body]) if isinstance(one, dict)]


def test_ids_text_and_meta_info_are_the_recorded_ones(shared: Path) -> None:
    compared = 0
    for name, exchange in recorded(shared).items():
        theirs = exchange["response"]["body"]
        if not isinstance(theirs, dict) or "meta_info" not in theirs:
            continue
        ours = answer(name, exchange["request"]).body
        for key in ("output_ids", "text", "prompt_token_ids"):
            assert (name, key, ours.get(key)) == (name, key, theirs.get(key))
        for key, value in theirs["meta_info"].items():
            mine = ours["meta_info"][key]
            if key not in UNTOLD:
                assert (name, key, structure(key, mine)) == (name, key, structure(key, value))
        compared += 1
    assert compared >= 10


def structure(key: str, value: Any) -> Any:
    """A value without what only the real model knows: log-probabilities, and which candidates are the best."""
    if key.endswith("_top_logprobs"):
        return [one and len(one) for one in value]
    if key.endswith("_token_logprobs"):
        return [[type(logprob).__name__, token, text] for logprob, token, text in value]
    return value


def test_errors_are_worded_as_recorded(shared: Path) -> None:
    compared = 0
    for name, exchange in recorded(shared).items():
        wanted = exchange["response"]["body"]
        if exchange["response"]["status"] != 400:
            continue
        found = answer(name, exchange["request"]).body
        assert (name, message(found).split(", 'input'")[0][:80]) == (name, message(wanted).split(", 'input'")[0][:80])
        compared += 1
    assert compared >= 4


def message(body: Any) -> str:
    error = body.get("error", body)
    return str(error if isinstance(error, str) else error["message"])


@pytest.mark.parametrize(
    ("count", "asked", "words"),
    [
        (4097, 1, "The input (4097 tokens) is longer than the model's context length (4096 tokens)."),
        (4000, 500, "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested"),
        (4090, 1, "Input length (4090 tokens) exceeds the maximum allowed length (4090 tokens)."),
    ],
)
def test_the_context_is_refused_as_recorded(count: int, asked: int, words: str) -> None:
    with serve(ENGINE, wire="sglang") as server:
        body = {"input_ids": [11] * count, "sampling_params": {"max_new_tokens": asked}}
        found = post(server.url, "/generate", body)
        assert (found.status, found.body["error"]["message"].startswith(words)) == (400, True)


def test_an_id_out_of_range_gets_no_answer() -> None:
    with serve(ENGINE, wire="sglang") as server, pytest.raises(ConnectionError):
        post(server.url, "/generate", {"input_ids": [151936]})


def test_max_new_tokens_omitted_is_128_and_null_is_to_the_end() -> None:
    endless = ScriptModel({(11,): {(11,): 1.0}}, vocab_size=151936, default=11)
    with serve(Engine(endless, TOKENIZER, context_length=300), wire="sglang") as server:
        sizes: list[int] = []
        params: dict[str, Any]
        for params in ({}, {"max_new_tokens": None}):
            reply = post(server.url, "/generate", {"input_ids": [11] * 10, "sampling_params": params}).body
            sizes.append(len(reply["output_ids"]))
        assert sizes == [128, 290]


def test_tempered_values_ignore_truncation_and_the_penalty_ignores_the_prompt() -> None:
    model = ScriptModel({(5,): {(6,): 0.75, (7,): 0.25}}, vocab_size=20, default=6)
    engine = Engine(model, TOKENIZER, logprob_mode="tempered")
    sampling = {"temperature": 0.7, "top_k": 1, "repetition_penalty": 2.0, "max_new_tokens": 1}
    with serve(engine, wire="sglang") as server:
        body = {"input_ids": [6, 5], "sampling_params": sampling, "return_logprob": True}
        meta = post(server.url, "/generate", body).body["meta_info"]
    assert meta["output_token_logprobs"] == [[pytest.approx(-0.189099, abs=1e-6), 6, None]]


class Running:
    """A request that runs until it is aborted."""

    def __init__(self, server: Server, body: dict[str, Any]) -> None:
        self._server = server
        self._found: list[Answer] = []
        self._thread = threading.Thread(target=lambda: self._found.append(post(server.url, "/generate", body)))
        self._thread.start()

    def wait(self, tokens: int) -> None:
        """Until so many tokens have been generated."""
        deadline = time.monotonic() + 30
        while sum(map(len, list(self._server.wire.running.values()))) < tokens:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def abort(self) -> dict[str, Any]:
        """The meta_info of what there is."""
        assert post(self._server.url, "/abort_request", {"rid": "r-1"}).status == 200
        self._thread.join()
        meta: dict[str, Any] = self._found[0].body["meta_info"]
        return meta


ENDLESS = Engine(ScriptModel({(11,): {(11,): 1.0}}, vocab_size=151936, default=11), TOKENIZER)
LONG = {"rid": "r-1", "input_ids": [11], "sampling_params": {"max_new_tokens": 4000}, "return_logprob": True}


def test_an_abort_ends_a_running_reply() -> None:
    with serve(ENDLESS, wire="sglang", token_delay=0.01) as server:
        running = Running(server, LONG)
        running.wait(3)
        assert post(server.url, "/generate", LONG).body["error"]["message"].startswith("Duplicate request ID")
        meta = running.abort()
        assert meta["finish_reason"] == {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}
        assert len(meta["output_token_logprobs"]) == meta["completion_tokens"] >= 3


def test_each_stretch_has_its_weight_version() -> None:
    with serve(ENDLESS, wire="sglang", token_delay=0.01, weight_version="v1") as server:
        running = Running(server, LONG)
        running.wait(3)
        post(server.url, "/update_weight_version", {"new_version": "v2"})
        running.wait(sum(map(len, list(server.wire.running.values()))) + 3)
        meta = running.abort()
        first, second = meta["weight_versions"]
        assert (meta["weight_version"], first["version"], second["version"]) == ("v2", "v1", "v2")
        assert (first["start"], first["end"], second["end"]) == (0, second["start"], meta["completion_tokens"])


def test_faults_change_what_a_reply_says() -> None:
    body = {"input_ids": list(PROMPT), "sampling_params": {"max_new_tokens": 2}, "return_logprob": True}
    with serve(ENGINE, wire="sglang") as server:

        def spoiled(fault: Fault) -> Any:
            server.set_fault(fault)
            return post(server.url, "/generate", body).body

        assert "output_ids" not in spoiled(Fault("missing_ids"))
        assert spoiled(Fault("wrong_prompt"))["meta_info"]["prompt_tokens"] == 7
        assert spoiled(Fault("wrong_ids"))["meta_info"]["output_token_logprobs"][0][1] == 148799
        assert spoiled(Fault("wrong_types"))["output_ids"] == ["148798", "19776"]
        assert len(spoiled(Fault("fewer_logprobs"))["meta_info"]["output_token_logprobs"]) == 1
        assert "output_token_logprobs" not in spoiled(Fault("missing_logprobs"))["meta_info"]
        assert spoiled(Fault("filler"))["meta_info"]["output_token_logprobs"][0][0] < -3.4e38
        first = spoiled(Fault("nan"))["meta_info"]["output_token_logprobs"][0][0]
        assert first != first
        assert spoiled(Fault("abort"))["meta_info"]["finish_reason"]["type"] == "abort"
        assert spoiled(Fault("status", status=503))["message"] == "a fault that was asked for"


def test_behind_a_router_unknown_parameters_vanish() -> None:
    body = {"input_ids": [104], "sampling_params": {"seed": 1, "max_new_tokens": 1}}
    for router, status in ((False, 400), (True, 200)):
        with serve(demo_engine(), wire="sglang", router=router) as server:
            assert post(server.url, "/generate", body).status == status
            assert ask(server.url, "GET", "/get_model_info").status == 200
            assert ask(server.url, "GET", "/model_info").status == (404 if router else 200)
