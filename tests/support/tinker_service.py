"""A service on loopback that the real Tinker SDK talks to: one reply, what it refuses, and what it never answers."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import tinker
from tinker.proto import tinker_public_pb2 as public_pb

__all__ = ["API_KEY", "Service", "client_of", "sampled", "sampler_handle", "serving"]

API_KEY = "tml-secret0123456789"


@dataclass
class Service:
    """Answers by path: (status, body), or None for no answer as long as the service runs."""

    answers: dict[str, tuple[int, Any] | None]
    url: str = ""
    asked: list[str] = field(default_factory=list[str])
    closing: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(**answers: tuple[int, Any] | None) -> Iterator[Service]:
    """A service whose ``/api/v1/<name>`` answers as given; what is not named is accepted."""
    service = Service(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            name = self.path.rsplit("/", 1)[-1]
            service.asked.append(name)
            answer = service.answers.get(name, (200, {"status": "accepted"}))
            if answer is None:
                service.closing.wait(30)
                return
            status, body = answer
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            kind = "application/x-protobuf" if isinstance(body, bytes) else "application/json"
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.send_header("x-request-id", "req-1")
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Keep test output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def sampled(tokens: Sequence[int], logprobs: Sequence[float]) -> dict[str, tuple[int, Any]]:
    """The answers to one sampling request: a future, then one sequence that the model ended itself."""
    sequence = public_pb.SampledSequence(
        stop_reason=public_pb.STOP_REASON_STOP,
        tokens=np.array(tokens, np.int32).tobytes(),
        logprobs=np.array(logprobs, np.float32).tobytes(),
    )
    reply = public_pb.SampleResponse(sequences=[sequence]).SerializeToString()
    return {"asample": (200, {"request_id": "r1", "sample_sequence_ids": ["1:0"]}), "retrieve_future": (200, reply)}


def sampler_handle(url: str, base_model: str = "tiny") -> str:
    """What `SamplingClient.from_sampler_handle` makes a client of, on any machine."""
    holder = {
        "base_url": url,
        "default_headers_overrides": {},
        "client_config": {"sample_no_retries": False},
        "client_dynamic_config": {},
        "api_key": None,
    }
    state = {"session_id": "s", "sampling_session_id": "s:0", "base_model": base_model, "holder": holder}
    return base64.urlsafe_b64encode(json.dumps(state).encode()).decode()


@contextmanager
def client_of(url: str, base_model: str = "tiny") -> Iterator[tinker.SamplingClient]:
    """The SDK's own client of a sampler that was made elsewhere: nothing is sent until it samples."""
    client = tinker.SamplingClient.from_sampler_handle(sampler_handle(url, base_model), api_key=API_KEY)
    try:
        yield client
    finally:
        # Left to the garbage collector, its connections would be reported as unclosed in some later test.
        client.holder.run_coroutine_threadsafe(client.holder.aclose()).result(30)
