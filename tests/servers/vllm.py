"""A real vLLM server on the CPU, with the tiny models of its recipe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from servers.process import RECIPES, Server, cache_folder, free_port, install, interpreter, running

__all__ = ["API_KEY", "model_folder", "pooling", "script"]

API_KEY = "EMPTY"
_RECIPE = RECIPES / "vllm"


def _folder() -> Path:
    return install("vllm", ["sh", str(_RECIPE / "setup.sh"), str(cache_folder("vllm")), interpreter("3.11")])


def model_folder(name: Literal["script", "random", "critic"] = "script") -> Path:
    """Tokenizer, chat template and config of a served model."""
    return _folder() / "models" / name


@contextmanager
def script(*flags: str, model: Literal["script", "random"] = "script") -> Iterator[Server]:
    """A generating server; the recipe's flags first, then ``flags``."""
    port = free_port()
    root = f"http://127.0.0.1:{port}"
    command = ["sh", str(_RECIPE / "serve_vllm.sh"), str(_folder()), model, str(port), *flags]
    log = cache_folder("logs") / f"vllm-{port}.log"
    with running(command, url=f"{root}/v1", health=f"{root}/health", log=log) as server:
        yield server


@contextmanager
def pooling(task: Literal["token_classify", "classify"] = "token_classify") -> Iterator[Server]:
    """A pooling server with the value model."""
    port = free_port()
    root = f"http://127.0.0.1:{port}"
    command = ["sh", str(_RECIPE / "serve_pooling.sh"), str(_folder()), str(port), task]
    log = cache_folder("logs") / f"pooling-{port}.log"
    with running(command, url=root, health=f"{root}/health", log=log) as server:
        yield server
