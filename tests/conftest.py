"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__: list[str] = []


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
