"""20,000 requests at 512 in flight against a server that fails one in twenty and is gone for a minute.

usage: uv run python tests/bench/soak.py [--sync] [--requests N] [--in-flight N] [--outage SECONDS]

``--sync`` makes the blocking calls from as many threads. Prints what became of every request and exits with 1 if one
is unaccounted for, was run twice by the server, or was given up although it never started (1 in 100 may be), or if a
connection, a task, a thread, a file or memory is left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.soak_server import REQUEST
from focus.backends import SamplingParams, VLLMPolicy
from focus.errors import BackendError
from support.formats import byte_format
from support.waiting import until

__all__: list[str] = []

PARAMS = SamplingParams(temperature=1.0, max_tokens=8, logprobs=0)
# Shares of the requests: when the server goes away, and when memory is taken. The second half must hold it level.
OUTAGE_AT = 0.4
MEMORY_AT = (0.25, 0.5, 0.75, 1.0)
GROWTH = 1.1


class Process:
    """The server's process."""

    def __init__(self) -> None:
        program = [sys.executable, str(Path(__file__).with_name("soak_server.py"))]
        self._process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, command: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(command, file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


@dataclass
class Tally:
    """What became of the requests."""

    ended: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    """Number to outcome and attempts."""
    given_up: set[int] = field(default_factory=set[int])
    """Ended with an error that says that nothing was run."""
    memory: list[int] = field(default_factory=list[int])
    """Resident KiB at `MEMORY_AT`."""


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def one(policy: VLLMPolicy, pool: ThreadPoolExecutor | None, number: int, tally: Tally) -> None:
    prompt = policy.prepare([{"role": "user", "content": REQUEST.format(number)}])
    try:
        if pool is None:
            result = await policy.agenerate(prompt)
        else:
            result = await asyncio.get_running_loop().run_in_executor(pool, policy.generate, prompt)
    except BackendError as error:
        tally.ended[number] = f"{type(error).__name__} {error.status or ''}".rstrip(), error.attempts
        if error.status == 503 or "nothing was sent" in str(error):
            tally.given_up.add(number)
    else:
        assert result.exact_generation
        assert result.meta is not None
        tally.ended[number] = "result", result.meta.attempts


async def soak(args: argparse.Namespace, server: Process, port: str, tally: Tally) -> None:
    policy = VLLMPolicy(
        model="focus",
        format=byte_format(),
        base_url=f"http://127.0.0.1:{port}/v1",
        api_key="EMPTY",
        default_params=PARAMS,
    )
    numbers = iter(range(args.requests))
    pool = ThreadPoolExecutor(args.in_flight) if args.sync else None

    async def work() -> None:
        for number in numbers:
            await one(policy, pool, number, tally)

    async def reached(share: float) -> None:
        await until(lambda: len(tally.ended) >= share * args.requests, seconds=3600)

    async def fail() -> None:
        await reached(OUTAGE_AT)
        await asyncio.to_thread(server.tell, "down")
        print(f"{len(tally.ended)} requests have ended; the server is gone", flush=True)
        await asyncio.sleep(args.outage)
        await asyncio.to_thread(server.tell, f"up {port}")
        print(f"{len(tally.ended)} requests have ended; the server is back", flush=True)

    async def weigh() -> None:
        for share in MEMORY_AT:
            await reached(share)
            tally.memory.append(resident())

    async with asyncio.TaskGroup() as group:
        group.create_task(weigh())
        group.create_task(fail())
        for _ in range(args.in_flight):
            group.create_task(work())
    if pool is not None:
        pool.shutdown()
    await policy.aclose()
    await asyncio.sleep(0)
    print(f"tasks besides this one: {len(asyncio.all_tasks()) - 1}")
    assert len(asyncio.all_tasks()) == 1


def judge(args: argparse.Namespace, tally: Tally, report: dict[str, Any], before: tuple[int, int]) -> list[str]:
    ran = {int(number): count for number, count in report["ran"].items()}
    for (outcome, attempts), count in sorted(Counter((o, a > 1) for o, a in tally.ended.values()).items()):
        print(f"{count:6} {outcome}{', sent more than once' if attempts else ''}")
    refused = {number for number, (_, attempts) in tally.ended.items() if attempts > 1} | tally.given_up
    recovered = 1 - len(tally.given_up) / max(1, len(refused))
    growth = tally.memory[-1] / tally.memory[MEMORY_AT.index(0.5)]
    after = threading.active_count(), files()
    print(f"the server saw {report['arrived']} requests, refused {report['refused']}, ran {sum(ran.values())}")
    print(f"{len(refused)} requests met a refusal, {recovered:.2%} of them were run in the end")
    print(f"most attempts of one request: {max(attempts for _, attempts in tally.ended.values())}")
    weights = ", ".join(f"{kib} KiB at {share:.0%}" for share, kib in zip(MEMORY_AT, tally.memory, strict=True))
    print(f"memory: {weights}; the second half grew to {growth:.2f} x")
    print(f"threads and files: {before} before, {after} after; connections: {report['open']}")
    results = {number for number, (outcome, _) in tally.ended.items() if outcome == "result"}
    checks = {
        "a request is unaccounted for": len(tally.ended) == args.requests,
        "a request was run twice": max(ran.values()) == 1,
        "a result that nobody made": results <= set(ran),
        "a request was given up that ran": not tally.given_up & set(ran),
        "requests that never started were given up": recovered >= 0.99,
        "threads, files or connections are left": after == before and report["open"] == 0,
        "memory grows": growth <= GROWTH,
    }
    return [complaint for complaint, good in checks.items() if not good]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--in-flight", type=int, default=512)
    parser.add_argument("--outage", type=float, default=60.0)
    args = parser.parse_args()
    server, tally, start = Process(), Tally(), time.monotonic()
    try:
        port = server.tell("up 0")["port"]
        before = threading.active_count(), files()
        asyncio.run(soak(args, server, port, tally))
        complaints = judge(args, tally, server.tell("report"), before)
    finally:
        server.stop()
    print(f"{time.monotonic() - start:.0f} s; {', '.join(complaints) or 'all is well'}")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
