#!/bin/sh
# usage: serve_router.sh FOLDER ROUTER PORT METRICS_PORT POLICY WORKER_URL...
# ROUTER: sglang_router (POLICY manual keeps a routing key on one worker) or smg (manual or consistent_hashing do).
# Runs in the foreground; ready when GET /readiness answers 200, which it never does without a worker.
set -eu
folder=$1 router=$2 port=$3 metrics=$4 policy=$5
shift 5
exec "$folder/venv/bin/python" -m "$router.launch_router" --host 127.0.0.1 --port "$port" --prometheus-port "$metrics" \
  --policy "$policy" --worker-urls "$@"
