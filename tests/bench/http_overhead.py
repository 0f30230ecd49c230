"""Client CPU per call of VLLMPolicy, the openai SDK and raw aiohttp + orjson, moving the same bytes.

4,000 prompt ids out and echoed, 512 tokens with log-probabilities back, 50 ms on the server. Each row is a process of
its own, on one core; the ratio is over raw aiohttp at the same number of requests in flight.

usage: uv run --group bench python tests/bench/http_overhead.py
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.canned_server import PROMPT, TOKENS

__all__: list[str] = []

IN_FLIGHT = (64, 512, 2048)
CLIENTS = ("aiohttp", "focus", "openai")
CALLS = 4096


async def _aiohttp(url: str) -> tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[Any]]]:
    import aiohttp
    import orjson

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    body = {"model": "m", "prompt": PROMPT, "max_tokens": 512, "temperature": 0.7, "top_p": 1.0, "logprobs": 0}
    headers = {"content-type": "application/json", "authorization": "Bearer EMPTY"}

    async def call() -> None:
        async with session.post(f"{url}/completions", data=orjson.dumps(body), headers=headers) as reply:
            assert len(orjson.loads(await reply.read())["choices"][0]["token_ids"]) == len(TOKENS)

    return call, session.close


async def _focus(url: str) -> tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[Any]]]:
    from focus.backends import PolicyFormat, SamplingParams, TextActionParser, VLLMPolicy
    from focus_testing import ByteTokenizer

    codec = PolicyFormat.resolve("byte", tokenizer=ByteTokenizer(), profile="text").codec

    class Wide:
        """Ids beyond the byte tokenizer, so that decoding costs what a table look-up costs."""

        vocab_size = 8192
        stop_tokens = codec.stop_tokens
        encode, render, extend = codec.encode, codec.render, codec.extend
        words = tuple(f"w{n} " for n in range(8192))

        def decode(self, tokens: Any, *, skip_special_tokens: bool = False) -> str:
            return "".join(map(self.words.__getitem__, tokens))

    policy = VLLMPolicy(
        model="m", format=PolicyFormat("wide", Wide(), TextActionParser()), base_url=url, api_key="EMPTY"
    )
    params = SamplingParams(logprobs=0)
    prompt = tuple(PROMPT)

    async def call() -> None:
        result = await policy.agenerate_tokens(prompt, params)
        assert len(result.tokens) == len(TOKENS)
        assert result.exact_generation

    return call, policy.aclose


async def _openai(url: str) -> tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[Any]]]:
    import openai

    client = openai.AsyncOpenAI(base_url=url, api_key="EMPTY", max_retries=0, timeout=600)

    async def call() -> None:
        reply = await client.completions.create(
            model="m", prompt=PROMPT, max_tokens=512, logprobs=0, extra_body={"return_token_ids": True}
        )
        assert len(reply.choices[0].token_ids) == len(TOKENS)  # type: ignore[attr-defined] # vLLM's extra field

    return call, client.close


async def _measure(client: str, in_flight: int, calls: int, url: str) -> None:
    call, close = await {"aiohttp": _aiohttp, "focus": _focus, "openai": _openai}[client](url)
    gate = asyncio.Semaphore(in_flight)

    async def one() -> None:
        async with gate:
            await call()

    await asyncio.gather(*[one() for _ in range(min(in_flight, 64))])
    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*[one() for _ in range(calls)])
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    await close()
    print(f"{1000 * cpu / calls:.3f} {calls / wall:.0f}")


def _row(client: str, in_flight: int, url: str) -> tuple[float, float]:
    calls = CALLS if client != "openai" else max(256, in_flight)
    command = [sys.executable, __file__, client, str(in_flight), str(calls), url]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(output[0]), float(output[1])


def main() -> None:
    from servers.process import free_port

    port = free_port()
    canned = Path(__file__).with_name("canned_server.py")
    server = subprocess.Popen([sys.executable, str(canned), str(port)])
    url = f"http://127.0.0.1:{port}/v1"
    time.sleep(1)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(server.pid, {cores[-1]})
    os.sched_setaffinity(0, {cores[0]})
    try:
        print("in flight  client   CPU ms/call  calls/s  over raw aiohttp")
        for in_flight in IN_FLIGHT:
            floor = 0.0
            for client in CLIENTS:
                cpu, rate = min(_row(client, in_flight, url) for _ in range(3 if client != "openai" else 1))
                floor = floor or cpu
                print(f"{in_flight:9d}  {client:8s} {cpu:10.2f}  {rate:7.0f}  {cpu / floor:.2f}x", flush=True)
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    if len(sys.argv) == 5:
        asyncio.run(_measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
    else:
        main()
