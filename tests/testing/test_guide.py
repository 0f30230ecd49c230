"""The examples of docs/testing.md run as they are printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from focus_testing import Server
from focus_testing.fixtures import focus_server
from support.raw_http import ask

__all__ = ["focus_server"]

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def test_there_are_three_examples() -> None:
    assert len(BLOCKS) == 3


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_example(number: int) -> None:
    namespace: dict[str, Any] = {}
    exec(compile(BLOCKS[number], f"{GUIDE.name} example {number}", "exec"), namespace)
    tests = [value for name, value in namespace.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test()


def test_the_fixture_starts_servers(focus_server: Callable[..., Server]) -> None:
    servers = [focus_server(), focus_server(wire="sglang", model="m")]
    assert ask(servers[0].url, "GET", "/version").status == 200
    assert ask(servers[1].url, "GET", "/v1/models").body["data"][0]["id"] == "m"
