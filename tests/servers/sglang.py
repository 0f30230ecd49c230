"""A real SGLang server on the CPU with the tiny models of its recipe, and the routers that go before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from servers.process import RECIPES, Server, cache_folder, free_port, install, interpreter, running

__all__ = ["POLICIES", "RouterName", "model_folder", "router", "script"]

type RouterName = Literal["sglang_router", "smg"]

POLICIES: dict[RouterName, str] = {"sglang_router": "manual", "smg": "consistent_hashing"}
"""For each router, a policy that keeps one routing key on one worker."""

_RECIPE = RECIPES / "sglang"


def _folder() -> Path:
    return install("sglang", ["sh", str(_RECIPE / "setup.sh"), str(cache_folder("sglang")), interpreter("3.11")])


def model_folder() -> Path:
    """Tokenizer, chat template and config of the served model."""
    return _folder() / "models" / "script"


@contextmanager
def script(*flags: str, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A generating server; the recipe's flags first, then ``flags``."""
    port = free_port()
    root = f"http://127.0.0.1:{port}"
    settings = [f"{name}={value}" for name, value in (env or {}).items()]
    command = ["env", *settings, "sh", str(_RECIPE / "serve_sglang.sh"), str(_folder()), str(port), *flags]
    log = cache_folder("logs") / f"sglang-{port}.log"
    with running(command, url=root, health=f"{root}/health", log=log) as server:
        yield server


@contextmanager
def router(name: RouterName, *workers: str) -> Iterator[Server]:
    """A router before ``workers``; without one it is never ready, and only waited for until it answers."""
    port, metrics = free_port(), free_port()
    root = f"http://127.0.0.1:{port}"
    serve = ["sh", str(_RECIPE / "serve_router.sh"), str(_folder()), name, str(port), str(metrics), POLICIES[name]]
    health = f"{root}/readiness" if workers else f"{root}/liveness"
    log = cache_folder("logs") / f"{name}-{port}.log"
    with running([*serve, *workers], url=root, health=health, log=log) as server:
        yield server
