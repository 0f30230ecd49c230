#!/bin/sh
# usage: serve_tinker.sh FOLDER PORT
# Runs in the foreground; ready when GET /api/v1/healthz answers 200.  The first sample also waits for the engine
# process to load and for compilation: once per bin of prompt length, max_tokens and mix of features.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
state=state-$2
rm -rf "$state" && mkdir -p "$state"
export JAX_PLATFORMS=cpu HF_HUB_OFFLINE=1
# The base model's name is what clients pass as base_model; relative, so that it is short.
# Batches are padded to 4: unpadded, every batch size compiles anew.
exec server/bin/python "$here/serve_tinker.py" \
  --base-model tiny-qwen3 --backend jax \
  --backend-config '{"max_lora_adapters": 1, "max_lora_rank": 1, "sample_max_num_sequences": 4}' \
  --database-url "sqlite:///$(pwd)/$state/tinker.db" --checkpoints-base "$state/checkpoints" \
  --host 127.0.0.1 --port "$2"
