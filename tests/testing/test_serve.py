"""The loopback server: connections, records and faults."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from focus_testing import DEMO_TOOLS, ByteTokenizer, Engine, Fault, ScriptModel, Server, demo_engine, serve
from focus_testing.wires.faults import FaultKind
from focus_types import InvalidRequestError
from support.raw_http import ask, post

TOKENIZER = ByteTokenizer()
PROMPT = TOKENIZER.apply_chat_template([{"role": "user", "content": "Flip"}], DEMO_TOOLS, add_generation_prompt=True)
BODY = {"prompt": PROMPT, "max_tokens": 5, "temperature": 0, "logprobs": 1, "return_token_ids": True}
NA = ScriptModel.texts({"na ": "na "}, TOKENIZER)
ENDLESS = Engine(NA, TOKENIZER)


def completion(server: Server, **changes: Any) -> Any:
    return post(server.url, "/v1/completions", {**BODY, **changes}).body["choices"][0]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def raw(server: Server, *pieces: bytes) -> bytes:
    """Bytes in, everything that comes back out."""
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port), timeout=20) as client:
        for piece in pieces:
            client.sendall(piece)
            time.sleep(0.05)
        answer = b""
        while part := client.recv(65536):
            answer += part
    return answer


def test_requests_are_recorded_in_order() -> None:
    with serve(model="m") as server:
        post(server.url, "/v1/completions", {**BODY, "model": "m"}, {"X-Extra": "1"})
        ask(server.url, "GET", "/v1/models?x=1")
        ask(server.url, "POST", "/v1/completions", "no json")
        assert [(one.method, one.path, one.status) for one in server.requests] == [
            ("POST", "/v1/completions", 200),
            ("GET", "/v1/models", 200),
            ("POST", "/v1/completions", 400),
        ]
        assert server.requests[0].headers["x-extra"] == "1"
        assert server.requests[0].body["max_tokens"] == 5
        assert server.requests[2].body == b"no json"
        assert not any(one.disconnected for one in server.requests)


def test_a_connection_is_kept_and_nothing_listens_afterwards() -> None:
    with serve() as server:
        place = urlsplit(server.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port)
        for _ in range(3):
            connection.request("GET", "/v1/models")
            assert connection.getresponse().read()
        assert len({one.client for one in server.requests}) == 1
        assert server.open_connections == 1
        connection.close()
        until(lambda: server.open_connections == 0)
    with pytest.raises(ConnectionRefusedError):
        ask(server.url, "GET", "/health")


def test_bodies_come_in_chunks_pieces_or_after_a_go_ahead() -> None:
    body = json.dumps({"tokens": [104, 105]}).encode()
    head = b"POST /detokenize HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n"
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:7], body[7:])) + b"0\r\n\r\n"
    with serve() as server:
        for pieces in (
            (head + b"transfer-encoding: chunked\r\n\r\n", chunks[:11], chunks[11:]),
            (head + b"content-length: %d\r\n\r\n%s" % (len(body), body[:3]), body[3:]),
        ):
            assert raw(server, *pieces).endswith(b'{"prompt": "hi"}')
        length = b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(body)
        answer = raw(server, head + length, body)
        assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
        assert raw(server, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_the_key_guards_v1_only() -> None:
    with serve(api_key="secret") as server:
        assert post(server.url, "/v1/completions", BODY).status == 401
        assert post(server.url, "/v1/completions", BODY, {"Authorization": "Bearer wrong"}).status == 401
        assert post(server.url, "/v1/completions", BODY, {"Authorization": "Bearer secret"}).status == 200
        assert ask(server.url, "GET", "/health").status == 200


def test_omitted_fields_come_from_the_servers_defaults() -> None:
    with serve() as server:
        assert len(completion(server, max_tokens=None)["token_ids"]) == 16
    with serve(Engine(NA, TOKENIZER, context_length=20)) as server:
        clamped = completion(server, prompt=TOKENIZER.encode("na na na na "), max_tokens=100, temperature=1)
        assert (len(clamped["token_ids"]), clamped["finish_reason"]) == (8, "length")


def test_an_engines_bug_is_a_500() -> None:
    class Broken:
        vocab_size = 265

        def next_logits(self, context: object) -> Any:
            raise RuntimeError("no model")

    with serve(Engine(Broken(), TOKENIZER)) as server:
        answer = post(server.url, "/v1/completions", BODY)
        assert (answer.status, answer.body["error"]["message"]) == (500, "Internal Server Error")


def test_unknown_wires_and_faults_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="unknown wire 'smoke'; there are vllm, pooling"), serve(wire="smoke"):  # type: ignore[arg-type] # the refusal is the point
        pass
    with pytest.raises(InvalidRequestError, match="has no fault 'failed'"), serve(fault=Fault("failed")):
        pass
    with serve() as server, pytest.raises(InvalidRequestError, match="has no fault 'wrong_ids'"):
        server.set_fault(Fault("wrong_ids"))


def test_a_client_that_leaves_stops_its_request() -> None:
    with serve(ENDLESS, token_delay=0.01) as server:
        place = urlsplit(server.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port)
        body = json.dumps({**BODY, "prompt": TOKENIZER.encode("na "), "max_tokens": 4000})
        connection.request("POST", "/v1/completions", body, {"content-type": "application/json"})
        until(lambda: len(server.wire.running) == 1)
        connection.close()
        until(lambda: not server.wire.running)
        until(lambda: server.requests[0].disconnected)
        assert server.requests[0].status is None


def test_two_requests_run_side_by_side() -> None:
    with serve(ENDLESS, token_delay=0.005) as server:
        results: list[Any] = []

        def run() -> None:
            results.append(completion(server, prompt=TOKENIZER.encode("na "), max_tokens=4000))

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        until(lambda: len(server.wire.running) == 2)
        for running in list(server.wire.running.values()):
            running.abort()
        for thread in threads:
            thread.join()
        assert [one["finish_reason"] for one in results] == ["abort", "abort"]


def test_faults_cut_the_connection() -> None:
    with serve() as server:
        server.set_fault(Fault("drop_before"))
        with pytest.raises(http.client.RemoteDisconnected):
            completion(server)
        server.set_fault(Fault("drop_after"))
        with pytest.raises(http.client.IncompleteRead):
            completion(server)
        assert [one.status for one in server.requests] == [None, 200]


def test_faults_change_the_whole_reply() -> None:
    with serve() as server:
        server.set_fault(Fault("status", status=429, retry_after=2.5))
        answer = post(server.url, "/v1/completions", BODY)
        assert (answer.status, answer.headers["retry-after"]) == (429, "2.5")
        assert answer.body["error"]["code"] == 429
        for status, body in ((401, {"error": "Unauthorized"}), (500, None), (503, None)):
            server.set_fault(Fault("status", status=status))
            answer = post(server.url, "/v1/completions", BODY)
            assert answer.status == status
            assert body is None or answer.body == body
        server.set_fault(Fault("redirect"))
        answer = post(server.url, "/v1/completions", BODY)
        assert (answer.status, answer.headers["location"]) == (
            307,
            server.url.replace("127.0.0.1", "localhost") + "/v1/completions",
        )
        server.set_fault(Fault("html", status=502))
        answer = post(server.url, "/v1/completions", BODY)
        assert (answer.status, answer.headers["content-type"]) == (502, "text/html")
        for kind, wanted in (("malformed", b"{'this': is no JSON"), ("empty", b"")):
            server.set_fault(Fault(kind))  # type: ignore[arg-type] # literals through a loop
            answer = post(server.url, "/v1/completions", BODY)
            assert (answer.status, answer.headers["content-type"], answer.body) == (200, "application/json", wanted)
        server.set_fault(Fault("truncated"))
        truncated = post(server.url, "/v1/completions", BODY).body
        assert truncated.startswith(b'{"id": "cmpl-')
        server.set_fault(Fault("list"))
        assert isinstance(post(server.url, "/v1/completions", BODY).body, list)
        server.set_fault(Fault("huge", size=100_000))
        assert int(post(server.url, "/v1/completions", BODY).headers["content-length"]) > 100_000


def test_a_slow_reply_is_still_on_its_way_when_the_client_leaves() -> None:
    with serve(fault=Fault("slow", seconds=600)) as server:
        place = urlsplit(server.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port)
        connection.request("POST", "/v1/completions", json.dumps(BODY), {"content-type": "application/json"})
        until(lambda: len(server.requests) == 1)
        connection.close()
        until(lambda: server.requests[0].disconnected)
        server.set_fault(Fault("slow", seconds=0.01))
        assert completion(server)["finish_reason"] == "length"


def test_faults_change_what_a_completion_says() -> None:
    with serve() as server:
        plain = completion(server)

        def spoiled(kind: FaultKind) -> Any:
            server.set_fault(Fault(kind))
            return completion(server)

        assert "token_ids" not in spoiled("missing_ids")
        assert spoiled("wrong_prompt")["prompt_token_ids"] == [0, *PROMPT]
        assert spoiled("wrong_types")["token_ids"] == [str(token) for token in plain["token_ids"]]
        assert spoiled("missing_logprobs")["logprobs"] is None
        assert len(spoiled("fewer_logprobs")["logprobs"]["token_logprobs"]) == 4
        first = spoiled("nan")["logprobs"]["token_logprobs"][0]
        assert first != first
        assert spoiled("filler")["logprobs"]["token_logprobs"][0] == -9999.0
        aborted = spoiled("abort")
        assert (aborted["finish_reason"], aborted["token_ids"]) == ("abort", plain["token_ids"][:1])
        server.set_fault(Fault("two_choices"))
        assert len(post(server.url, "/v1/completions", BODY).body["choices"]) == 2
        server.set_fault(Fault("no_choice"))
        assert post(server.url, "/v1/completions", BODY).body["choices"] == []
        server.set_fault()
        assert completion(server) == plain


def statuses(server: Server, count: int) -> list[int]:
    return [post(server.url, "/v1/completions", BODY).status for _ in range(count)]


def test_faults_strike_chosen_calls_counted_from_when_they_were_set() -> None:
    with serve(fault=Fault("status", status=503, calls={1, 2})) as server:
        assert statuses(server, 4) == [200, 503, 503, 200]
        server.set_fault(Fault("status", status=500, calls={0}), Fault("status", status=429, calls={0, 1}))
        assert statuses(server, 3) == [500, 429, 200]
        assert [one.fault_kind for one in server.requests[-3:]] == ["status", "status", None]


def test_faults_strike_at_a_rate_that_a_seed_repeats() -> None:
    patterns: list[list[int]] = []
    for seed in (1, 1, 2):
        with serve(fault=Fault("status", status=503, rate=0.3, seed=seed)) as server:
            patterns.append(statuses(server, 60))
    assert patterns[0] == patterns[1] != patterns[2]
    assert 8 <= patterns[0].count(503) <= 28


def test_a_fault_may_be_for_one_path() -> None:
    with serve(fault=Fault("status", status=503, path="/v1/models")) as server:
        assert ask(server.url, "GET", "/v1/models").status == 503
        assert statuses(server, 1) == [200]
        server.set_fault(Fault("status", status=503))
        assert ask(server.url, "GET", "/v1/models").status == 200


def test_pooling_per_token_and_its_faults() -> None:
    engine = demo_engine()
    with serve(engine, wire="pooling", task="token_classify") as server:
        body = {"input": ["ab", [99]], "use_activation": False}
        values = [one["data"] for one in post(server.url, "/pooling", body).body["data"]]
        assert values == [[[pytest.approx(0.3)], [pytest.approx(0.4)]], [[pytest.approx(0.5)]]]
        assert post(server.url, "/pooling", {"input": "a", "task": "classify"}).status == 400
        assert post(server.url, "/pooling", {"input": [99] * 4097}).status == 400
        assert post(server.url, "/pooling", {"input": [265]}).body["error"]["message"].endswith("out of vocabulary")
        server.set_fault(Fault("no_choice"))
        assert len(post(server.url, "/pooling", body).body["data"]) == 1
        server.set_fault(Fault("wrong_types"))
        assert post(server.url, "/pooling", body).body["data"][0]["data"] == ["high"]
