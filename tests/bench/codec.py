"""CPU time of rendering and continuing prompts, over transformers, over encoding alone, and over ``renderers``.

    uv run --group bench python tests/bench/codec.py [FOLDER]

``FOLDER`` holds a Qwen3 tokenizer; without it, FOCUS_TOKENIZERS or the cache that the tests fill is looked in. Prints
one row for each bound and exits with 1 if one is missed. Peers take turns in every round, and the median over rounds
counts, so that other load on the machine matters little. ``renderers`` is timed where it is installed.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ |= {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "error"}

from focus_format import PolicyFormat, PreparedPrompt
from focus_types import GenerateResult, Message

__all__: list[str] = []

RENDER_BOUND, FLOOR_BOUND, HF_BOUND, BRIDGE_BOUND, GROWTH_BOUND = 1.15, 2.5, 30.0, 1.0, 1.6
TURNS = 64
CLOSE = "<|im_end|>"
LINE = "The quick brown fox, 12 jumps over 7 lazy dogs; naïve café 中文 `x = f(a[i]) + 1`.\n"
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name}: does one thing and returns text.",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "A path."},
                    "query": {"type": "string", "description": "What to look for."},
                    "limit": {"type": "integer", "description": "At most this many."},
                },
                "required": ["path"],
            },
        },
    }
    for name in ("read_file", "search_code", "run_tests", "edit_file", "list_dir")
]


def conversation() -> list[Message]:
    """TURNS times user, call, result, answer: about 32,000 tokens."""
    messages: list[Message] = [{"role": "system", "content": "You are a careful coding agent."}]
    for turn in range(TURNS):
        function = {"name": "read_file", "arguments": {"path": f"src/m{turn}.py", "limit": turn}}
        call = {"id": f"c{turn}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": f"Step {turn}. " + LINE * 2},
            {"role": "assistant", "content": "I will look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "name": "read_file", "content": LINE * 10},
            {"role": "assistant", "content": f"Done with step {turn}. " + LINE * 2},
        ]
    return messages


def reply_text(message: Message) -> str:
    """What the model wrote for an assistant message."""
    text = str(message["content"])
    for call in message.get("tool_calls", ()):
        function = call["function"]
        arguments = json.dumps(function["arguments"], ensure_ascii=False)
        text += f'\n<tool_call>\n{{"name": "{function["name"]}", "arguments": {arguments}}}\n</tool_call>'
    return text + CLOSE


class Bench:
    """One conversation, and the ways to prepare all its prompts."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.format = PolicyFormat.resolve("Qwen/Qwen3-8B", tokenizer=tokenizer)
        self.messages = conversation()
        self.ends = [at for at, message in enumerate(self.messages) if message["role"] == "assistant"]
        self.replies = [self.format.codec.encode(reply_text(self.messages[end])) for end in self.ends]
        texts = [self.text(self.messages[:end]) for end in self.ends]
        written = [len(reply_text(self.messages[end])) for end in self.ends]
        self.new_texts = [texts[0]] + [
            after[len(before) + reply :] for before, after, reply in zip(texts, texts[1:], written, strict=False)
        ]

    def text(self, messages: Sequence[Message]) -> str:
        rendered = self.tokenizer.apply_chat_template(messages, tools=TOOLS, add_generation_prompt=True, tokenize=False)
        return str(rendered)

    def hf(self, messages: Sequence[Message]) -> int:
        """Text and ids as transformers' users get them."""
        return len(self.tokenizer.encode(self.text(messages), add_special_tokens=False))

    def hf_growing(self) -> int:
        return [self.hf(self.messages[:end]) for end in self.ends][-1]

    def floor(self) -> int:
        """Nothing but encoding each turn's new text."""
        return sum(len(self.tokenizer.encode(text, add_special_tokens=False)) for text in self.new_texts)

    def prepare(self) -> int:
        return len(self.format.prepare(self.messages, TOOLS).tokens)

    def extend(self, prompt: PreparedPrompt, first: int, last: int) -> PreparedPrompt:
        """Carry the prompt of reply ``first`` on to that of reply ``last``."""
        for at in range(first, last):
            result = GenerateResult(tokens=self.replies[at], prefix_tokens=prompt.tokens)
            prompt = self.format.extend(prompt, result, self.messages[: self.ends[at + 1]])
            assert prompt.exact_continuation, prompt.refusal
        return prompt

    def growing(self) -> int:
        first = self.format.prepare(self.messages[: self.ends[0]], TOOLS)
        return len(self.extend(first, 0, len(self.ends) - 1).tokens)


def bridge(bench: Bench) -> Callable[[], int] | None:
    """All prompts through the continuation of ``renderers``, if it is installed."""
    if importlib.util.find_spec("renderers") is None:
        return None
    config = importlib.import_module("renderers.configs").Qwen3RendererConfig(thinking_retention="all")
    renderer: Any = importlib.import_module("renderers.qwen3").Qwen3Renderer(bench.tokenizer, config)

    def grow() -> int:
        messages, ends = bench.messages, bench.ends
        ids = list(renderer.render_ids(messages[: ends[0]], tools=TOOLS, add_generation_prompt=True))
        for reply, (end, following) in zip(bench.replies, itertools.pairwise(ends), strict=False):
            ids = renderer.bridge_to_next_turn(ids, list(reply), messages[end + 1 : following], tools=TOOLS).token_ids
        return len(ids)

    return grow


def measure(jobs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median CPU milliseconds of each job."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            gc.collect()
            start = time.process_time()
            job()
            times[name].append(1e3 * (time.process_time() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def folder() -> Path:
    if len(sys.argv) > 1:
        return Path(sys.argv[1])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "focus-servers" / "tokenizers"
    return Path(os.environ.get("FOCUS_TOKENIZERS") or cache) / "qwen3"


def main() -> int:
    from transformers import AutoTokenizer

    bench = Bench(AutoTokenizer.from_pretrained(str(folder()), trust_remote_code=False))
    middle = len(bench.ends) // 2
    half = bench.extend(bench.format.prepare(bench.messages[: bench.ends[0]], TOOLS), 0, middle)
    assert bench.prepare() == bench.hf(bench.messages)
    assert bench.growing() == bench.hf(bench.messages[: bench.ends[-1]])
    print(f"{TURNS} turns, {bench.prepare():,} tokens; median CPU ms")

    one = measure({"prepare": bench.prepare, "transformers": lambda: bench.hf(bench.messages)}, 15)
    first = bench.format.prepare(bench.messages[: bench.ends[0]], TOOLS)
    jobs: dict[str, Callable[[], Any]] = {
        "extend": bench.growing,
        "encoding alone": bench.floor,
        "first half": lambda: bench.extend(first, 0, middle),
        "second half": lambda: bench.extend(half, middle, len(bench.ends) - 1),
    }
    grow = bridge(bench)
    if grow is not None:
        assert grow() == bench.growing()
        jobs["renderers bridge"] = grow
    many = measure(jobs, 9) | measure({"transformers": bench.hf_growing}, 1)
    for title, row in (("one prompt", one), ("all prompts", many)):
        print(f"  {title}: " + ", ".join(f"{name} {ms:.1f}" for name, ms in row.items()))

    rows = [
        ("prepare over transformers", one["prepare"] / one["transformers"], RENDER_BOUND),
        ("extend over encoding the new text", many["extend"] / many["encoding alone"], FLOOR_BOUND),
        ("extend over transformers, times 30", HF_BOUND * many["extend"] / many["transformers"], 1.0),
        ("turns 33-64 over turns 1-32", many["second half"] / many["first half"], GROWTH_BOUND),
    ]
    if grow is not None:
        rows.append(("extend over the renderers bridge", many["extend"] / many["renderers bridge"], BRIDGE_BOUND))
    for name, ratio, bound in rows:
        print(f"{name:36} {ratio:6.2f}   bound {bound:5.2f}   {'ok' if ratio <= bound else 'MISSED'}")
    print(f"transformers renders all prompts in {many['transformers'] / many['extend']:.0f} times the CPU of extend")
    return int(any(ratio > bound for _, ratio, bound in rows))


if __name__ == "__main__":
    sys.exit(main())
