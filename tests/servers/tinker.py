"""A real Tinker-compatible server (skyrl on JAX) with the tiny random model of its recipe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.process import RECIPES, Server, cache_folder, free_port, install, interpreter, running

__all__ = ["API_KEY", "BASE_MODEL", "model_folder", "serve"]

API_KEY = "tml-local"
BASE_MODEL = "tiny-qwen3"
_RECIPE = RECIPES / "tinker"


def _folder() -> Path:
    return install("tinker", ["sh", str(_RECIPE / "setup.sh"), str(cache_folder("tinker")), interpreter("3.12")])


def model_folder() -> Path:
    """Tokenizer, chat template and config of the served model."""
    return _folder() / BASE_MODEL


@contextmanager
def serve() -> Iterator[Server]:
    """The server; the engine is a process of the same group."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["sh", str(_RECIPE / "serve_tinker.sh"), str(_folder()), str(port)]
    log = cache_folder("logs") / f"tinker-{port}.log"
    with running(command, url=url, health=f"{url}/api/v1/healthz", log=log) as server:
        yield server
