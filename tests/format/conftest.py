from __future__ import annotations

from pathlib import Path

import pytest

from support.templates import REAL, RealTemplate, load_real

__all__: list[str] = []


@pytest.fixture(scope="session", params=sorted(REAL))
def real(request: pytest.FixtureRequest, tokenizers: Path) -> RealTemplate:
    """Each of the four real tokenizers in turn."""
    return load_real(tokenizers, request.param)
