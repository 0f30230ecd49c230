"""Client CPU per chat completion: the openai SDK with its default client, with its aiohttp client, and the policy.

A conversation of 16 kB out, 512 tokens and a tool call back, 50 ms on the server. Each row is a process of its own; the
ratio is over the SDK's default client at the same number of requests in flight.

usage: uv run python tests/bench/openai_clients.py
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

__all__: list[str] = []

IN_FLIGHT = (64, 256)
CLIENTS = ("default", "aiohttp", "policy")
MESSAGES: list[dict[str, Any]] = [{"role": "user", "content": "word " * 3200}]

type Pair = tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[Any]]]


def _sdk(url: str, kind: str) -> Pair:
    import openai

    http = openai.DefaultAioHttpClient() if kind == "aiohttp" else openai.DefaultAsyncHttpxClient()
    client = openai.AsyncOpenAI(base_url=url, api_key="EMPTY", max_retries=0, http_client=http)
    messages: Any = MESSAGES

    async def call() -> None:
        reply = await client.chat.completions.create(model="m", messages=messages, max_completion_tokens=512)
        assert reply.choices[0].message.tool_calls

    return call, client.close


def _policy(url: str) -> Pair:
    from focus.backends import OpenAIChatPolicy

    policy = OpenAIChatPolicy(model="m", base_url=url, api_key="EMPTY")
    prompt = policy.prepare(MESSAGES)

    async def call() -> None:
        assert (await policy.agenerate(prompt)).native_tool_calls

    return call, policy.aclose


async def _measure(client: str, in_flight: int, url: str) -> None:
    call, close = _policy(url) if client == "policy" else _sdk(url, client)
    gate, calls = asyncio.Semaphore(in_flight), max(1024, 2 * in_flight)

    async def one() -> None:
        async with gate:
            await call()

    await asyncio.gather(*[one() for _ in range(in_flight)])
    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*[one() for _ in range(calls)])
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    await close()
    print(f"{1000 * cpu / calls:.3f} {calls / wall:.0f}")


def main() -> None:
    from servers.process import free_port

    port = free_port()
    server = subprocess.Popen([sys.executable, str(Path(__file__).with_name("canned_server.py")), str(port), "chat"])
    url = f"http://127.0.0.1:{port}/v1"
    try:
        time.sleep(1)
        print("in flight  client   CPU ms/call  calls/s  over default")
        for in_flight in IN_FLIGHT:
            default = 0.0
            for client in CLIENTS:
                command = [sys.executable, __file__, client, str(in_flight), url]
                output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
                spent, rate = float(output[0]), float(output[1])
                default = default or spent
                print(f"{in_flight:9d}  {client:7s}  {spent:11.2f}  {rate:7.0f}  {spent / default:.2f}x")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    if len(sys.argv) == 4:
        asyncio.run(_measure(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
    else:
        main()
