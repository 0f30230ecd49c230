"""Client CPU per conversation of `focus generate` and of the policy called directly.

1,000 conversations at 256 in flight against `focus serve` in a process of its own, replies of 64 and of 512 tokens.
Each figure is of a process of its own; start-up and imports are left out by taking away a run over one conversation.

usage: uv run python tests/bench/cli.py
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

__all__: list[str] = []

CONVERSATIONS = 1000
IN_FLIGHT = 256
LENGTHS = (64, 512)
REPEATS = 3


def _conversation(number: int) -> dict[str, Any]:
    content = f"Conversation {number}. " + "What does the coin show, and what did it show before? " * 8
    return {"id": number, "messages": [{"role": "user", "content": content}]}


async def _direct(url: str, lines: list[str], length: int) -> None:
    """What a user writes without the command: the same calls on the same conversations."""
    from focus_cli.formats import resolve
    from focus_types import SamplingParams
    from focus_vllm import VLLMPolicy

    params = SamplingParams(max_tokens=length, logprobs=0)
    policy = VLLMPolicy(
        model="byte", format=resolve("byte", None), base_url=url + "/v1", api_key="EMPTY", default_params=params
    )
    gate = asyncio.Semaphore(IN_FLIGHT)

    async def one(conversation: dict[str, Any]) -> None:
        async with gate:
            result = await policy.agenerate(policy.prepare(conversation["messages"]))
            policy.parse(result)
            assert result.exact_generation

    await asyncio.gather(*[one(json.loads(line)) for line in lines])
    await policy.aclose()


def _cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _measure(kind: str, url: str, folder: Path, length: int) -> tuple[float, float]:
    """CPU milliseconds per conversation without and with start-up."""
    spent: list[float] = []
    for count in (1, CONVERSATIONS):
        source, out = folder / f"{count}.jsonl", folder / "out.jsonl"
        source.write_text("".join(json.dumps(_conversation(n)) + "\n" for n in range(count)), encoding="utf-8")
        if kind == "direct":
            spent.append(_cpu([sys.executable, __file__, url, str(source), str(length)]))
            continue
        out.unlink(missing_ok=True)
        options = ["--backend", "vllm", "--url", url, "--concurrency", str(IN_FLIGHT), "--max-tokens", str(length)]
        spent.append(_cpu([sys.executable, "-m", "focus_cli", "generate", str(source), "-o", str(out), *options]))
        assert out.read_bytes().count(b"\n") == count
    return 1000 * (spent[1] - spent[0]) / (CONVERSATIONS - 1), 1000 * spent[1] / CONVERSATIONS


def main() -> None:
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        text = folder / "text.txt"
        text.write_text("on and on and " * 2000, encoding="utf-8")
        serve = [sys.executable, "-m", "focus_cli", "serve", "--port", "0", "--text", str(text)]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = server.stdout.readline().partition(" ")[0]
            os.sched_setaffinity(server.pid, {cores[-1]})
            os.sched_setaffinity(0, {cores[0]})
            try:
                print("reply   direct ms  command ms  ratio   with start-up: direct  command  ratio")
                for length in LENGTHS:
                    rows = [
                        [_measure(kind, url, folder, length) for kind in ("direct", "command")] for _ in range(REPEATS)
                    ]
                    (direct, direct_all), (command, command_all) = (
                        (min(row[k][0] for row in rows), min(row[k][1] for row in rows)) for k in (0, 1)
                    )
                    print(
                        f"{length:5d}  {direct:9.2f}  {command:9.2f}  {command / direct:5.2f}x"
                        f"  {direct_all:21.2f}  {command_all:7.2f}  {command_all / direct_all:5.2f}x",
                        flush=True,
                    )
            finally:
                server.terminate()
                server.communicate()


if __name__ == "__main__":
    if len(sys.argv) == 4:
        asyncio.run(_direct(sys.argv[1], Path(sys.argv[2]).read_text().splitlines(), int(sys.argv[3])))
    else:
        main()
