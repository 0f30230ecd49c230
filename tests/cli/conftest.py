"""What the tests of the command line share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from focus_cli import app

__all__: list[str] = []


@pytest.fixture
def focus(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs one command in this process."""
    for name in ("OPENAI_API_KEY", "FOCUS_API_KEY", "OPENAI_BASE_URL", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    runner = CliRunner()

    def run(*arguments: object) -> Result:
        return runner.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Sequence[Any]], Path]:
    """Writes values as JSONL, texts as they are."""

    def writer(lines: Sequence[Any]) -> Path:
        path = tmp_path / "in.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        return path

    return writer
