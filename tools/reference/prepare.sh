#!/usr/bin/env bash
# Prepares the inputs of compare.py in DIR: checkpoints, token rows, and our traces with values. What
# it makes needs no build where it is used: about 53 MiB, with the logits of the rows' later tokens.
# With --all the logits of every token, a trace for each planted fault, and two more shapes: one of two
# layers, where errors have not grown yet, and one whose window is the real one.
#   tools/reference/prepare.sh DIR [--all]
# SAMEBITS names the program (default: build/release/samebits).
set -euo pipefail
dir=$1
all=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
samebits=${SAMEBITS:-$here/../../build/release/samebits}
values='embed,layers.*.out,final_norm,head.softcap'
mkdir -p "$dir"

# Every fault that deviates the arithmetic of a packed run, whatever the schedule.
names=(softcap-missing window-minus-1 window-plus-1 layer-scalar-dropped rope-swap p-rope-exponent
       p-rope-pairing v-after-k-norm norm-one-plus-w)

# shape NAME ROWS LENGTH PROMPT, then options of `samebits model new`. Rows are longer than the window.
shape() {
  local to=$dir/$1 rows=$2 length=$3 prompt=$4
  shift 4
  mkdir -p "$to"
  "$samebits" model new "$to/model" --seed 1 --prefix model. --force "$@"
  python3 "$here/make_rows.py" "$to" --rows "$rows" --length "$length" --prompt "$prompt"
  "$samebits" score "$to/model" --tokens "$to/rows.jsonl" --out "$to/ours.jsonl" --force \
    --trace "$to/ours.sbt" --trace-values "$values"
  rm -f "$to"/*.run.json
  [ "$all" = --all ] || return 0
  mkdir -p "$to/faults"
  for name in "${names[@]}"; do
    "$samebits" score "$to/model" --tokens "$to/rows.jsonl" --out "$to/faults/$name.jsonl" --force \
      --trace "$to/faults/$name.sbt" --trace-values "$values" --inject "$name"
    rm -f "$to/faults/$name.jsonl"*
  done
}

if [ "$all" = --all ]; then
  shape tiny 4 160 1 --preset tiny
  shape heads 3 256 1 --preset mini --window 64  # head dims 256 and 512
  shape short 3 256 1 --preset mini --window 64 --layers sliding,global
  shape window 1 1152 1 --preset mini
else
  shape tiny 4 160 65 --preset tiny
  shape heads 3 256 193 --preset mini --window 64
fi
