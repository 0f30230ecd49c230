"""Formats and settings that the tests on real servers share."""

from __future__ import annotations

from typing import Any

import pytest

from focus.backends import PolicyFormat
from servers import sglang, vllm

__all__: list[str] = []

pytest.register_assert_rewrite("real.sglang_checks")


@pytest.fixture(scope="session")
def qwen3() -> PolicyFormat[Any]:
    """The format of the served models: the real Qwen3 tokenizer, template and padded vocabulary."""
    return PolicyFormat.resolve(str(vllm.model_folder("script")), profile="hermes")


@pytest.fixture(scope="session")
def script_format() -> PolicyFormat[Any]:
    """The format of the model that SGLang serves: the same one, installed with that server."""
    return PolicyFormat.resolve(str(sglang.model_folder()), profile="hermes")
