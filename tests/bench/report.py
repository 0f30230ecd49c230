"""Every benchmark of this folder in one run, as the page ``docs/benchmarks.md``.

usage: uv run --locked --group bench python tests/bench/report.py > docs/benchmarks.md

Runs for some minutes on two quiet cores. Exit status 1 if a benchmark fails or misses a bound.
"""

from __future__ import annotations

import ast
import datetime
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["BENCHMARKS", "COMMAND"]

COMMAND = "uv run --locked --group bench python tests/bench/report.py > docs/benchmarks.md"
BENCHMARKS = {
    "http_overhead": "HTTP client",
    "openai_clients": "Chat completions",
    "codec": "Rendering and continuing prompts",
    "parsers": "Parsers",
    "cli": "The command",
    "install": "Installing and importing",
}
"""Module of this folder to the title of its section."""
PEERS = ("aiohttp", "orjson", "openai", "httpx", "transformers", "tokenizers", "renderers", "tinker")

_FOLDER = Path(__file__).resolve().parent


def machine() -> Iterator[str]:
    """What the figures depend on."""
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "unknown"
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    yield f"{len(os.sched_getaffinity(0))} cores of {model}, {memory:.0f} GiB"
    yield f"{platform.system()} {platform.release().partition('-')[0]}"
    yield f"{platform.python_implementation()} {platform.python_version()}"
    yield f"load average before the run: {os.getloadavg()[0]:.1f}"
    yield ", ".join(f"{name} {version(name)}" for name in PEERS if _installed(name))


def summary(name: str) -> str:
    """A benchmark's docstring up to its usage."""
    text = ast.get_docstring(ast.parse((_FOLDER / f"{name}.py").read_text(encoding="utf-8"))) or ""
    paragraphs = text.split("\n\n")
    usage = next(at for at, one in enumerate(paragraphs) if f"tests/bench/{name}.py" in one)
    return "\n\n".join(paragraphs[:usage]).replace("``", "`")


def main() -> int:
    """Print the page."""
    print("# Benchmarks\n")
    print("Written by one command, from a checkout; ratios are of runs side by side:\n")
    print(f"```\n{COMMAND}\n```\n")
    print(f"This run, of {datetime.datetime.now(datetime.UTC):%Y-%m-%d}:\n")
    print("\n".join(f"- {fact}" for fact in machine()))
    failed = 0
    for name, title in BENCHMARKS.items():
        print(f"running {name}", file=sys.stderr, flush=True)
        done = subprocess.run([sys.executable, str(_FOLDER / f"{name}.py")], stdout=subprocess.PIPE, text=True)
        failed += done.returncode != 0
        print(f"\n## {title}\n\n{summary(name)}\n\n`tests/bench/{name}.py`", end="")
        print("" if done.returncode == 0 else f" ended with status {done.returncode}: a bound was missed in this run.")
        print(f"\n```text\n{done.stdout.rstrip()}\n```", flush=True)
    return int(failed > 0)


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []


def _installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
