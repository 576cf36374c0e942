#!/usr/bin/env bash
# Runs compare.py where torch and transformers are installed already, on the CPU and on the GPU.
# INPUTS is a folder made by prepare.sh elsewhere; nothing is compiled or fetched.
#   tools/reference/run_on_gpu_machine.sh OUT [INPUTS]      (default: build/reference)
# OUT gets reference.json and reference.txt. Exit 1 if a bar is missed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1
inputs=${2:-$here/../../build/reference}
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 TOKENIZERS_PARALLELISM=false
# Reproducible products on the GPU; the figures are of one run.
export CUBLAS_WORKSPACE_CONFIG=:4096:8
exec python3 "$here/compare.py" "$inputs" "$out" --cuda
