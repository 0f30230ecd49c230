"""Wheels, built once."""

from __future__ import annotations

import pytest

from support.wheels import Wheels

__all__: list[str] = []


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return Wheels.build(tmp_path_factory.mktemp("wheels"))
