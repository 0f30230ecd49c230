"""A pytest fixture: ``pytest_plugins = ["focus_testing.fixtures"]`` in the ``conftest.py`` of a test suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from focus_testing.engine import Engine
from focus_testing.server import Server, serve

__all__ = ["focus_server"]


@pytest.fixture
def focus_server() -> Iterator[Callable[..., Server]]:
    """Starts servers with the arguments of `serve`; they stop when the test ends."""
    with ExitStack() as stack:

        def start(engine: Engine | None = None, **options: Any) -> Server:
            return stack.enter_context(serve(engine, **options))

        yield start
