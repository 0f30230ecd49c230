#!/bin/sh
# usage: serve_sglang.sh FOLDER PORT [more SGLang flags]
# Runs in the foreground; ready when GET /health answers 200 (1-2.5 minutes on two busy cores).
# SGLANG_RETURN_ORIGINAL_LOGPROB=1 in the environment: log-probabilities before temperature.
set -eu
cd "$1"; port=$2
shift 2
export SGLANG_USE_CPU_ENGINE=1 CUDA_VISIBLE_DEVICES= HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
# sleep-on-idle: otherwise an idle server keeps one core busy.
exec venv/bin/python -m sglang.launch_server --model-path models/script --served-model-name focus-script \
  --device cpu --dtype float32 --attention-backend torch_native --sampling-backend pytorch --grammar-backend none \
  --disable-overlap-schedule --sleep-on-idle --context-length 4096 --max-total-tokens 16384 --max-running-requests 8 \
  --mem-fraction-static 0.5 --host 127.0.0.1 --port "$port" "$@"
