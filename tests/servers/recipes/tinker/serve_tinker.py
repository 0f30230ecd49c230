"""Start skyrl's Tinker-compatible API on JAX for the CPU, without torch, peft or `uv run`.

skyrl 0.4.0 imports torch only to annotate image inputs and peft only to write LoRA adapters; sampling from the base
model reaches neither, so empty stand-ins do. It also insists on being a child of `uv run`: the engine is started with
this interpreter instead. Its replies to /asample lack `sample_sequence_ids`, without which tinker >= 0.27 fails an
assertion, so that one field is added.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import json
import runpy
import sys
import types
from typing import Any


def stand_in(name: str, **attributes: Any) -> None:
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, loader=None)
    module.__dict__.update(attributes)
    sys.modules[name] = module


def serve() -> None:
    import skyrl.tinker.api as api
    import uvicorn
    from skyrl.tinker.config import EngineConfig, add_model, config_to_argv

    parser = argparse.ArgumentParser()
    add_model(parser, EngineConfig)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    fields = {name: value for name, value in vars(arguments).items() if name in EngineConfig.model_fields}

    def engine_command(_parent: list[str], config: EngineConfig) -> list[str]:
        return [sys.executable, __file__, "engine", *config_to_argv(config)]

    api._build_uv_run_cmd_engine = engine_command
    add_sequence_ids(api.app)
    api.app.state.engine_config = EngineConfig.model_validate(fields)
    uvicorn.run(api.app, host=arguments.host, port=arguments.port, log_level="warning")


def add_sequence_ids(app: Any) -> None:
    """One `sample_sequence_ids` entry per sample in every /asample promise."""
    from starlette.requests import Request
    from starlette.responses import JSONResponse

    @app.middleware("http")
    async def middleware(request: Request, call_next: Any) -> Any:
        if request.url.path != "/api/v1/asample":
            return await call_next(request)
        count = json.loads(await request.body()).get("num_samples", 1)
        response = await call_next(request)
        if response.status_code != 200:
            return response
        body = json.loads(b"".join([chunk async for chunk in response.body_iterator]))
        body["sample_sequence_ids"] = [f"{body['request_id']}:{i}" for i in range(count)]
        return JSONResponse(body)


def main() -> None:
    import transformers  # noqa: F401  (looks for the real torch before the stand-in exists)

    stand_in("torch", Tensor=type("Tensor", (), {}))
    stand_in("peft", LoraConfig=type("LoraConfig", (), {}))
    if sys.argv[1:2] == ["engine"]:
        sys.argv = [sys.argv[0], *sys.argv[2:]]
        runpy.run_module("skyrl.tinker.engine", run_name="__main__")
    else:
        serve()


if __name__ == "__main__":
    main()
