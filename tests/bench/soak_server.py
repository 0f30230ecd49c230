"""The soak's server: 5 % faults, and an outage on command.

Reads "up PORT", "down", "report" from stdin and answers each with one JSON line.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections import Counter
from typing import Any

from focus_testing import ByteTokenizer, Exchange, Fault, Server, demo_engine, serve

__all__ = ["REQUEST"]

REQUEST = "request {}."
FAULTS = [
    Fault("drop_before", rate=0.0125, seed=1),
    Fault("drop_after", rate=0.0125, seed=2),
    Fault("malformed", rate=0.0125, seed=3),
    Fault("status", status=503, rate=0.0125, seed=4),
]
_ID = re.compile(re.escape(REQUEST).replace(r"\{\}", r"(\d+)"))


def may_have_run(exchange: Exchange) -> bool:
    return exchange.method == "POST" and exchange.fault_kind != "status"


def request_id(exchange: Exchange) -> str:
    found = _ID.search(ByteTokenizer().decode(exchange.body["prompt"]))
    assert found is not None
    return found[1]


def main() -> None:
    stack = contextlib.ExitStack()
    servers: list[Server] = []
    for line in sys.stdin:
        answer: dict[str, Any] = {}
        match line.split():
            case ["up", port]:
                served = serve(demo_engine(), wire="vllm", fault=FAULTS, port=int(port), token_delay=0.02)
                servers.append(stack.enter_context(served))
                answer = {"url": servers[-1].url, "port": servers[-1].url.rpartition(":")[2]}
            case ["down"]:
                stack.close()
            case _:
                arrived = [exchange for server in servers for exchange in server.requests]
                answer = {
                    "arrived": len(arrived),
                    "refused": sum(not may_have_run(exchange) for exchange in arrived),
                    "ran": Counter(request_id(exchange) for exchange in arrived if may_have_run(exchange)),
                    "open": servers[-1].open_connections,
                }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
