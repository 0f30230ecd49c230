"""Wheels, built once, and clean environments that do not outlive their test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.wheels import Environment, Wheels

__all__: list[str] = []


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return Wheels.build(tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def installed(wheels: Wheels, tmp_path: Path) -> Iterator[Callable[[str], Environment]]:
    """Installs one requirement; up to 230 MB, so it is removed at once."""
    folder = tmp_path / "environment"
    yield lambda requirement: wheels.environment(folder, requirement)
    shutil.rmtree(folder)
