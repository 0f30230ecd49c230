"""Fixtures that every test may use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

__all__: list[str] = []

REAL_TOKENIZERS = ("qwen2.5", "qwen3", "qwen3-coder", "qwen3.5")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded traffic, cases and recipes: FOCUS_SHARED, else ``shared`` beside the checkout."""
    given = os.environ.get("FOCUS_SHARED")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        reason = f"{folder} is missing: set FOCUS_SHARED to the folder of recorded traffic and cases"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def tokenizers(request: pytest.FixtureRequest) -> Path:
    """The folder of the real tokenizers qwen2.5, qwen3, qwen3-coder and qwen3.5, each with its chat template.

    It is FOCUS_TOKENIZERS, else a folder of the user's cache, which is filled once by the recipe in ``shared``.
    """
    given = os.environ.get("FOCUS_TOKENIZERS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(given) if given else cache / "focus-servers" / "tokenizers"
    if given or all((folder / name / "tokenizer_config.json").is_file() for name in REAL_TOKENIZERS):
        return folder
    shared: Path = request.getfixturevalue("shared")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        # The recipe wants a Python with pip, which a virtual environment need not have.
        path = [part for part in os.environ["PATH"].split(os.pathsep) if not part.startswith(sys.prefix)]
        command = ["sh", str(shared / "assets" / "get_assets.sh"), made]
        subprocess.run(command, check=True, env={**os.environ, "PATH": os.pathsep.join(path)})
        shutil.copytree(made, folder, dirs_exist_ok=True)
    return folder
