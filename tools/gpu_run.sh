#!/usr/bin/env bash
# run OUT [accept|gates|full]: every GPU test and gate of the bundle this script lies in. `accept`:
# every operator against the oracle, about 10 minutes; `gates`: verify, score files, traces, faults.
# Writes one log a step and OUT/summary.json; ends with 0 only if every step passed, and with 7
# without a GPU.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: run OUT [accept|gates|full]}
mode=${2:-full}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
sb="$here/samebits"
steps=() failed=0 not_run=""

# step NAME WANTED_EXIT COMMAND…
step() {
  local name=$1 want=$2 start end code verdict
  shift 2
  start=$(date +%s.%N)
  "$@" >"$out/$name.log" 2>&1
  code=$?
  end=$(date +%s.%N)
  verdict=true
  [ "$code" -eq "$want" ] || { verdict=false failed=1; }
  steps+=("{\"step\": \"$name\", \"exit\": $code, \"wanted\": $want, \"passed\": $verdict, \"seconds\": $(awk "BEGIN{printf \"%.2f\", $end-$start}")}")
  printf '%-36s exit %-3s %s %s s\n' "$name" "$code" "$([ $verdict = true ] && echo ok || echo FAILED)" \
    "$(awk "BEGIN{printf \"%.1f\", $end-$start}")"
  [ $verdict = true ] || tail -5 "$out/$name.log"
}
same() { [ -s "$1" ] && cmp "$1" "$2"; }  # nothing is not the same as nothing
finish() {
  { echo "{\"samebits\": \"gpu-run/1\", \"mode\": \"$mode\", \"passed\": $([ $failed -eq 0 ] && echo true || echo false), \"steps\": ["
    local sep=""
    for s in "${steps[@]}"; do echo "$sep$s"; sep=","; done
    echo "], \"not_run\": [$not_run]}"; } >"$out/summary.json"
  exit $failed
}

"$sb" doctor --backend cuda --shapes tiny --rows 1 >"$out/device.log" 2>&1
if [ $? -eq 7 ]; then
  cat "$out/device.log"
  echo '{"samebits": "gpu-run/1", "passed": false, "steps": [], "why": "no usable GPU"}' >"$out/summary.json"
  exit 7
fi
head -8 "$out/device.log"

if [ "$mode" != gates ]; then
  for profile in sm90 ieee; do
    step accept-tiny-$profile 0 "$sb" doctor --backend cuda --profile $profile --shapes tiny \
      --rows 1,2,8,16,17,64,255,256,257,1024 --repeats 20 --grid-caps 0,13,132 --json
    step accept-mini-$profile 0 "$sb" doctor --backend cuda --profile $profile --shapes mini \
      --rows 1,2,8,16,17,64,255,256,257 --repeats 20 --grid-caps 0,13,132 --json
  done
  step accept-31b-sm90 0 "$sb" doctor --backend cuda --shapes gemma4-31b \
    --rows 1,2,8,16,17,64,255,256,257,1024,4096 --repeats 2 --head-rows 257 --json
  step accept-31b-caps 0 "$sb" doctor --backend cuda --shapes gemma4-31b --seed 1 \
    --rows 1,17,257 --repeats 20 --grid-caps 0,13,66,132 --head-rows 17 --json
  step accept-31b-one-block 0 "$sb" doctor --backend cuda --shapes gemma4-31b --seed 2 \
    --rows 1,17 --repeats 1 --grid-caps 1 --head-rows 1 --json
  step accept-31b-ieee 0 "$sb" doctor --backend cuda --profile ieee --shapes gemma4-31b \
    --rows 1,17,64 --repeats 2 --json
fi
[ "$mode" != accept ] || finish

rows=$work/rows.jsonl
awk 'BEGIN{n=split("5 33 64 65 200",len," ");for(i=1;i<=n;i++){printf "{\"id\": \"r%d\", \"prompt_len\": 2, \"tokens\": [",len[i];for(j=0;j<len[i];j++)printf "%s%d",j?", ":"",(j*7919+i*104729)%2500;print "]}"}}' >"$rows"
for model in tiny mini; do
  step new-$model 0 "$sb" model new "$work/$model" --preset $model
  for profile in sm90 ieee; do
    step verify-$model-$profile 0 "$sb" verify "$work/$model" --backend cuda --profile $profile
    for schedule in train prefill chunked:7 decode; do
      f=$work/$model-$profile-${schedule/:/}
      for backend in cpu cuda; do
        step score-$model-$profile-${schedule/:/}-$backend 0 "$sb" score "$work/$model" --tokens "$rows" \
          --backend $backend --profile $profile --schedule $schedule --trace "$f-$backend.sbt" --out "$f-$backend.jsonl"
      done
      step bytes-$model-$profile-${schedule/:/} 0 same "$f-cpu.jsonl" "$f-cuda.jsonl"
      step traces-$model-$profile-${schedule/:/} 0 "$sb" compare "$f-cpu.sbt" "$f-cuda.sbt"
    done
  done
done
# Every planted fault on both backends, eight runs at a time: red, and at the same place.
code_of() { return "$(cat "$work/$1.code")"; }
place_of() { grep -oE '(embed|layers\.|final_norm|head\.|logp)[^ ]* row [^ ]* position [0-9]+' "$out/$1.log"; }
faults=$("$sb" inject list --json | grep -o '"name": *"[^"]*"' | cut -d'"' -f4)
[ -n "$faults" ] || { echo "inject list names no fault"; failed=1; }
for fault in $faults; do
  for backend in cpu cuda; do
    while [ "$(jobs -rp | wc -l)" -ge 8 ]; do wait -n; done
    { "$sb" verify "$work/tiny" --backend $backend --inject "$fault" --threads 4 \
        >"$out/fault-$fault-$backend.log" 2>&1
      echo $? >"$work/fault-$fault-$backend.code"; } &
  done
done
wait
for fault in $faults; do
  for backend in cpu cuda; do
    cp "$out/fault-$fault-$backend.log" "$work/log"
    step fault-$fault-$backend 1 code_of fault-$fault-$backend
    mv "$work/log" "$out/fault-$fault-$backend.log"
    place_of fault-$fault-$backend >"$work/place-$backend"
  done
  step fault-$fault-same-place 0 same "$work/place-cpu" "$work/place-cuda"
done

# Memory, synchronisation, races and uninitialised reads, where the toolkit's checker is found.
checker=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if [ -n "$checker" ]; then
  for tool in memcheck synccheck racecheck initcheck; do
    step sanitizer-$tool 0 timeout 150 "$checker" --tool $tool --error-exitcode 9 "$sb" doctor \
      --backend cuda --shapes tiny --rows 1,17 --repeats 1 --head-rows 3
  done
else
  not_run='"memcheck", "synccheck", "racecheck", "initcheck"'
  echo "compute-sanitizer not found: NOT run: $not_run"
fi
finish
