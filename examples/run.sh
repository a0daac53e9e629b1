#!/usr/bin/env bash
# Installs what is missing, builds, and trains a small GPT under many strategies and a few budgets: one table, in which every
# row must be bitwise equal to store_all and every measured peak must equal its prediction (else the exit status is 1).
# Two to eight minutes, most of it building.
#
#   bash examples/run.sh [arguments of train_gpt, in place of the ones below]
#
# comparison.json and timeline.svg (memory over one step of each row) are written to build/examples-output/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null
source tests/deps.sh

output=build/examples-output
arguments=("$@")
[ $# -gt 0 ] || arguments=(--layers 8 --channels 192 --heads 6 --sequence 256 --batch 4 --dropout 0.1 --steps 8 --learning-rate 3e-4)

echo "== [1/5] dependencies"
ckpt_install build || exit 1

echo "== [2/5] build (${SECONDS} s so far)"
mkdir -p "$output"
cmake --preset release -B build/examples -DCKPT_BUILD_TESTS=OFF -DCKPT_BUILD_BENCH=OFF >"$output/configure.log" 2>&1 ||
  { cat "$output/configure.log"; exit 1; }
NINJA_STATUS="[build %f/%t, %e s] " cmake --build build/examples -j "${CKPT_JOBS:-$(nproc)}" --target minimal plan train_gpt

echo "== [3/5] minimal: an MLP on bare libckpt (${SECONDS} s so far)"
build/examples/examples/minimal

echo "== [4/5] plan: time over budget of a chain on paper (${SECONDS} s so far)"
build/examples/examples/plan

echo "== [5/5] train_gpt --compare ${arguments[*]} (${SECONDS} s so far)"
build/examples/examples/train_gpt --compare --json="$output/comparison.json" --svg "$output" "${arguments[@]}"
echo "written: $output/comparison.json, $output/timeline.svg (${SECONDS} s)"
