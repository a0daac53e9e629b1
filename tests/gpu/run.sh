#!/usr/bin/env bash
# Everything that needs a GPU: builds the CUDA plugin for this machine's GPU, runs the conformance suite and the kernels' tests on it, then
# compute-sanitizer on the small cases, then the benchmarks. Installs nothing: it uses what is there, and names what it leaves out.
#
#   bash tests/gpu/run.sh [--out FOLDER] [--only build,tests,sanitize,bench]     results go to FOLDER (default build/gpu/results)
#
# CKPT_GPU_BUILD names another folder for the build than build/gpu.
#
# Needs nvcc and cuBLAS (CUDA 12.4 or later), CMake, Ninja, g++; GoogleTest, RapidCheck, CMocka, Google Benchmark, nlohmann-json and OpenBLAS,
# which are looked for first in the folder CKPT_PREFIX (default build/gpu_prefix, where tests/gpu/prefix.sh puts them on a machine that has
# them). PyTorch and compute-sanitizer where they are. Exit status 0 only if every test passed, on the GPU; 77 where there is none.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

usage="usage: bash tests/gpu/run.sh [--out FOLDER] [--only build,tests,sanitize,bench]"
build=${CKPT_GPU_BUILD:-build/gpu}
out=$build/results
only=build,tests,sanitize,bench
while [ $# -gt 0 ]; do
  case "$1" in
    --out) out=${2:?--out needs a folder}; shift 2 ;;
    --only) only=${2:?--only needs a list}; shift 2 ;;
    *) echo "unknown argument $1; $usage" >&2; exit 2 ;;
  esac
done
for part in ${only//,/ }; do
  case "$part" in build | tests | sanitize | bench) ;; *) echo "--only: there is no part $part; $usage" >&2; exit 2 ;; esac
done
mkdir -p "$out"
failed=()
does() { [[ ,$only, == *,$1,* ]]; }
left_out() { echo "left out: $1" | tee -a "$out/left_out.txt"; }
# run NAME command...: output to a file and here; a failure is remembered, also of a test program that ran no test. A kernel that hangs
# ends its program after `limit` seconds, not all.
limit=600
nothing_ran='^\[  PASSED  \] 0 tests|target[.]h:[0-9]+: Skipped'
run() {
  local name=$1 started=$SECONDS
  shift
  echo "== $name"
  if timeout -k 10 "$limit" "$@" >"$out/$name.txt" 2>&1 && ! grep -Eq "$nothing_ran" "$out/$name.txt"; then
    echo "   passed ($((SECONDS - started)) s)"
  else failed+=("$name"); echo "   FAILED ($((SECONDS - started)) s):"; tail -n 25 "$out/$name.txt"; fi
}

: >"$out/left_out.txt"
if ! command -v nvidia-smi >/dev/null || ! nvidia-smi >"$out/nvidia-smi.txt" 2>&1; then
  echo "no GPU: nvidia-smi is missing or fails; the same code runs on the CPU double in tests/run.sh" >&2
  exit 77
fi
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/gpu.txt"

# Where nvcc is, are the tools; the double, on whose build the kernels' tests hang, looks for headers in CUDA_PATH.
command -v nvcc >/dev/null || PATH=$PATH:${CUDA_PATH:-${CUDA_HOME:-/usr/local/cuda}}/bin
if command -v nvcc >/dev/null; then export CUDA_PATH=${CUDA_PATH:-$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")}; fi
prefix=${CKPT_PREFIX:-build/gpu_prefix}
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ')
[[ $capability =~ ^[0-9]+$ ]] || capability=native  # what CMake 3.24 finds out itself
# A compiler of another version may warn of other things: not what is looked for here.
options=(-DCKPT_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="$capability" -DCKPT_BUILD_TOOL=OFF -DCKPT_WERROR=OFF)
if [ -d "$prefix" ]; then
  prefix=$(realpath "$prefix")
  libraries=$prefix/lib:$prefix/lib/$(g++ -print-multiarch)
  options+=(-DCMAKE_PREFIX_PATH="$prefix")
  export CPATH=$prefix/include${CPATH:+:$CPATH} LIBRARY_PATH=$libraries${LIBRARY_PATH:+:$LIBRARY_PATH}
  export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
# Where the toolkit lacks cuBLAS, PyTorch's has it.
blas_of_python() {
  local file folder
  for file in "$CUDA_PATH"/{lib64,targets/x86_64-linux/lib}/libcublasLt.so; do [ ! -e "$file" ] || return 0; done
  file=$(python3 -c "import glob, nvidia; print(*[x for p in nvidia.__path__ for x in glob.glob(p + '/*/lib/libcublasLt.so.*')], sep='\n')" 2>/dev/null | head -n 1)
  [ -n "$file" ] || return 0
  echo "cuBLAS: $file"
  options+=(-DCUDA_cublasLt_LIBRARY="$file")
  folder=$(dirname "$file")
  export CPATH=${CPATH:+$CPATH:}$folder/../include LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
}
missing() {
  local name
  for name in nvcc cmake ninja g++; do command -v "$name" >/dev/null || echo "$name"; done
  for name in gtest/gtest.h rapidcheck.h cmocka.h benchmark/benchmark.h nlohmann/json.hpp; do
    case "$name" in cmocka.h) echo "#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>" ;; esac | cat - <(echo "#include <$name>") | g++ -std=c++20 -x c++ -fsyntax-only - >/dev/null 2>&1 || echo "$name"
  done
  echo "int main() {}" | g++ -x c++ - -o /dev/null -lopenblas >/dev/null 2>&1 || echo libopenblas.so
}

names_of() { for file in "tests/$1"/*.cpp; do basename "$file" .cpp; done; }
programs=()  # those that are about the device; what only the double can be asked for is left to it
for name in $(names_of conformance); do case "$name" in errors | faults) ;; *) programs+=("conformance/conformance_$name") ;; esac; done
for name in $(names_of cuda_ops); do case "$name" in *faults) ;; *) programs+=("cuda_ops/cuda_ops_$name") ;; esac; done
for name in laws layers_everywhere; do programs+=("ops_$name"); done

if does build; then
  lacks=$(missing)
  if [ -n "$lacks" ]; then
    echo "missing: ${lacks//$'\n'/, }; tests/gpu/prefix.sh takes libraries and headers along from a machine that has them" >&2
    exit 1
  fi
  blas_of_python
  limit=3600
  run configure cmake --preset release -B "$build" "${options[@]}"
  run build cmake --build "$build" -j "$(nproc)" --target ckpt_cuda train_gpt bench_cuda "${programs[@]##*/}" -- -k 0
  if command -v cuobjdump >/dev/null; then run resources cuobjdump --dump-resource-usage "$build/src/libckpt_cuda.so"; fi
  limit=600
fi
[ -e "$build/src/libckpt_cuda.so" ] || { echo "$build/src/libckpt_cuda.so is not there: the build failed" >&2; exit 1; }
plugin=$(realpath "$build")/src
export CKPT_PLUGIN_PATH=$plugin CKPT_TEST_TARGET=cuda CKPT_TEST_PLUGIN=$plugin/libckpt_cuda.so
small=(--layers 2 --sequence 48 --batch 2 --dropout 0.1)

if does tests; then
  for program in "${programs[@]}"; do run "${program##*/}" "$build/tests/$program"; done
  for dtype in float32 bfloat16 float16; do
    for attention in tiled plain; do
      run "compare_${dtype}_$attention" "$build/examples/train_gpt" --device cuda --dtype "$dtype" --attention "$attention" --compare --steps 4
    done
  done
  run graph "$build/examples/train_gpt" --device cuda --dtype bfloat16 --graph --steps 8 --dropout 0.1
fi

if does sanitize; then
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck initcheck synccheck; do
      sanitizer=(compute-sanitizer --tool "$tool" --error-exitcode 1 --target-processes all)
      # Heads of 32 and, whose rows are on no 16 bytes, of 20 channels: each attention, each type's kernels.
      run "sanitizer_${tool}_train" "${sanitizer[@]}" "$build/examples/train_gpt" --device cuda --dtype bfloat16 "${small[@]}" --channels 64 --heads 2 --steps 2
      run "sanitizer_${tool}_plain" "${sanitizer[@]}" "$build/examples/train_gpt" --device cuda --dtype float16 "${small[@]}" --channels 60 --heads 3 --steps 2 --attention plain
      run "sanitizer_${tool}_float32" "${sanitizer[@]}" "$build/examples/train_gpt" --device cuda --dtype float32 "${small[@]}" --channels 60 --heads 3 --steps 2
      run "sanitizer_${tool}_rows" "${sanitizer[@]}" "$build/tests/cuda_ops/cuda_ops_rows"
    done
  else
    left_out "compute-sanitizer: it is not installed"
  fi
fi

if does bench; then
  if python3 -c "import torch, sys; sys.exit(not torch.cuda.is_available())" 2>/dev/null; then
    for dtype in bfloat16 float32; do
      run "torch_$dtype" python3 tests/bench/compare_torch.py --train-gpt "$build/examples/train_gpt" --device cuda --dtype "$dtype" --layers 12 \
        --heads 12 --channels 768 --sequence 1024 --batch 8 --attention tiled --rounds 3 --steps 10 --json="$out/torch_$dtype.json"
    done
  else
    left_out "the comparison with PyTorch: python3 has no PyTorch that sees the GPU"
  fi
  # What recomputation costs, beside what the plan predicts; and the host's time: a captured step has none.
  run budgets "$build/examples/train_gpt" --device cuda --dtype bfloat16 --compare --layers 12 --heads 12 --channels 768 --sequence 1024 --batch 8 \
    --steps 12 --budget-count 10 --strategy every_segment --strategy auto --json="$out/budgets.json"
  for mode in "" --graph; do
    run "step${mode/--/_}" "$build/examples/train_gpt" --device cuda --dtype bfloat16 --layers 12 --heads 12 --channels 768 --sequence 1024 --batch 8 \
      --steps 20 --strategy every_segment $mode --json="$out/step${mode/--/_}.json"
  done
  run bandwidth "$build/tests/bench_cuda"
fi

echo
if [ ${#failed[@]} -eq 0 ]; then echo "all passed; results in $out"; else echo "failed: ${failed[*]}; results in $out"; exit 1; fi
