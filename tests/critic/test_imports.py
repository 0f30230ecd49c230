"""What the import loads, and what it says when a part is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import focus_critic

__all__: list[str] = []


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_critic_loads_no_http_library() -> None:
    code = """
import sys
from focus_critic import Critic, PredictFn, score
print([name for name in ("focus_http", "aiohttp", "httpx", "msgspec", "numpy", "torch") if name in sys.modules])
from focus_critic import VLLMCritic
print([name for name in ("focus_http", "msgspec", "numpy", "torch") if name in sys.modules])
"""
    assert run(code).splitlines() == ["[]", "['focus_http', 'msgspec']"]


@pytest.mark.parametrize("missing", ["focus_http", "msgspec"])
def test_without_the_http_client_the_message_names_the_extra(missing: str) -> None:
    code = f"""
import sys
sys.modules["{missing}"] = None
from focus_critic import Critic
try:
    from focus_critic import VLLMCritic
except ImportError as error:
    print(error.name, "|", error)
"""
    assert run(code) == f"{missing} | VLLMCritic needs the HTTP client: install focus-critic[vllm]"


def test_a_broken_dependency_of_the_client_is_not_hidden() -> None:
    code = """
import sys
sys.modules["tenacity"] = None
try:
    from focus_critic import VLLMCritic
except ImportError as error:
    print(type(error).__name__, error.name)
"""
    assert run(code) == "ModuleNotFoundError tenacity"


def test_a_misspelt_name() -> None:
    with pytest.raises(AttributeError, match="module 'focus_critic' has no attribute 'VllmCritic'"):
        getattr(focus_critic, "VllmCritic")  # noqa: B009 - what an import statement does


def test_every_exported_name_is_there() -> None:
    assert focus_critic.__all__ == ["Critic", "PredictFn", "VLLMCritic", "score"]
    assert all(getattr(focus_critic, name) is not None for name in focus_critic.__all__)
