#!/usr/bin/env bash
# tools/gpu_bundle.sh BUILD_DIR DIR: a folder that runs every GPU test on a machine with an NVIDIA
# GPU and its driver, and nothing else: the program, the libraries it needs beside glibc's, and the
# script `run`. Made without a GPU.
set -euo pipefail
build=$1 dir=$2
grep -q 'set(CUDA_FOUND\|SB_NVCC:FILEPATH=/' "$build/CMakeCache.txt" ||
  { echo "gpu_bundle: $build was configured without nvcc, so it holds no GPU code" >&2; exit 7; }
rm -rf "$dir"
mkdir -p "$dir/lib"
cp "$build/samebits" "$dir/"
strip "$dir/samebits"
ldd "$dir/samebits" | awk '$3 ~ /^\// {print $3}' |
  grep -vE '/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*)\.so' |
  while read -r lib; do cp -L "$lib" "$dir/lib/"; done
cp "$(dirname "$0")/gpu_run.sh" "$dir/run"
chmod +x "$dir/run"
echo "$dir: $(du -sh "$dir" | cut -f1); on a machine with a GPU: $dir/run OUT"
