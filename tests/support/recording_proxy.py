"""A proxy on loopback that forwards JSON requests to a real server and keeps what was sent and what came."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Recorded", "recording"]


@dataclass
class Recorded:
    """The proxy's address and its exchanges, in order."""

    url: str
    sent: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    came: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@contextlib.contextmanager
def recording(upstream: str) -> Iterator[Recorded]:
    """Forward every POST to ``upstream``, a URL without a path."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name: self.headers[name] for name in ("authorization", "content-type")}
            request = urllib.request.Request(upstream + self.path, body, headers)
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    status, content = answer.status, answer.read()
            except urllib.error.HTTPError as error:
                status, content = error.code, error.read()
            recorded.sent.append(json.loads(body))
            recorded.came.append(json.loads(content))
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    recorded = Recorded(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield recorded
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
