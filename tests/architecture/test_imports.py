"""What an import loads, in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "openai",
    "tinker",
    "transformers",
    "tokenizers",
    "httpcore",
    "httpx",
    "httpx2",
    "aiohttp",
    "msgspec",
    "numpy",
    "pydantic",
    "torch",
    "starlette",
    "rich",
)


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sorted(sys.modules))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return {name.partition(".")[0] for name in output.split()}


@pytest.mark.parametrize(
    "statement",
    [
        "import focus.backends",
        "from focus import Critic",
        "import focus, focus.backends, focus.critic, focus.errors, focus.extend, focus.generation.parsing.base",
        "import focus.generation.policy, focus.generation.types, focus.generation.slime",
        "from focus.generation.slime import PostFn",
        "from focus.backends import SlimePolicy",
    ],
)
def test_nothing_heavy_is_loaded(statement: str) -> None:
    assert loaded_after(statement).isdisjoint(HEAVY)


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("from focus.backends import VLLMPolicy", {"msgspec", "aiohttp", "httpcore"}),
        ("from focus.backends import SGLangPolicy", {"msgspec", "aiohttp", "httpcore"}),
        ("from focus.backends import OpenAIChatPolicy, OpenAIResponsesPolicy", {"msgspec"}),
        ("from focus.backends import TinkerPolicy", set[str]()),
        ("from focus.generation._openai_shared import NativePolicy", {"msgspec"}),
    ],
)
def test_a_backend_loads_no_sdk_until_it_is_used(statement: str, allowed: set[str]) -> None:
    assert loaded_after(statement) & set(HEAVY) <= allowed


def test_a_missing_backend_names_its_distribution() -> None:
    code = """
import sys
sys.path = [entry for entry in sys.path if "focus-tinker" not in entry]
import focus.backends
try:
    focus.backends.TinkerPolicy
except ImportError as error:
    print(error.name, "|", error)
try:
    focus.backends.Nope
except AttributeError as error:
    print(error)
print("TinkerPolicy" in dir(focus.backends), "VLLMPolicy" in dir(focus.backends))
from focus.backends import *
"""
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second, third = output.stdout.splitlines()
    assert first.startswith("focus_tinker | focus.backends.TinkerPolicy needs the distribution 'focus-tinker'")
    assert third == "False True"
    assert second == "module 'focus.backends' has no attribute 'Nope'"
