"""Installed size and import time of each choice of packages, from wheels in clean environments.

usage: uv run python tests/bench/install.py

A row for each choice: distributions, MB with compiled bytecode left out, and the processor time of an import above that
of a bare interpreter, the best of several runs. Downloads what is in no cache yet.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.wheels import Environment, Wheels

__all__: list[str] = []

RUNS = 5
CHOICES = {
    "focus": ["import focus", "import focus.backends"],
    "focus[vllm]": ["from focus.backends import VLLMPolicy"],
    "focus[sglang]": ["from focus.backends import SGLangPolicy"],
    "focus[slime]": ["from focus.backends import SlimePolicy"],
    "focus[critic]": ["from focus.backends import VLLMCritic"],
    "focus[openai]": ["from focus.backends import OpenAIChatPolicy", "import openai"],
    "focus[tinker]": ["from focus.backends import TinkerPolicy", "import tinker"],
    "focus[testing]": ["import focus_testing"],
    "focus[all]": ["import focus.backends"],
}
_CLOCK = "import time; print(time.process_time())"


def processor_time(environment: Environment, statement: str) -> float:
    """Seconds of the best run; the first one, which compiles bytecode, is not counted."""
    command = [str(environment.python), "-I", "-c", f"{statement}\n{_CLOCK}"]
    return min(float(subprocess.check_output(command, text=True)) for _ in range(RUNS + 1))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        wheels = Wheels.build(Path(folder) / "wheels")
        print(f"{'choice':16} {'dists':>5} {'MB':>7}   CPU ms above a bare interpreter")
        for choice, statements in CHOICES.items():
            environment = wheels.environment(Path(folder) / choice, choice)
            size, count = environment.size() / 1e6, len(environment.distributions())
            bare = processor_time(environment, "pass")
            times = [
                f"{statement}: {1000 * (processor_time(environment, statement) - bare):.0f}" for statement in statements
            ]
            print(f"{choice:16} {count:5} {size:7.1f}   {'; '.join(times)}", flush=True)


if __name__ == "__main__":
    main()
