#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests of all builds in one ctest run whose summary ends the output.
#
#   bash tests/run.sh            everything: release, AddressSanitizer + UBSan, ThreadSanitizer, clang, packaging
#   bash tests/run.sh --quick    the release build and its tests, without packaging
#
# Exit status 0 only if every build and every test passed. CKPT_JOBS: how many processes at once (default: all processors).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null
source tests/deps.sh

quick=0
for argument in "$@"; do
  case "$argument" in
    --quick) quick=1 ;;
    *) echo "unknown argument $argument; usage: bash tests/run.sh [--quick]" >&2; exit 2 ;;
  esac
done
jobs=${CKPT_JOBS:-$(nproc)}
builds=(release)
[ "$quick" -eq 1 ] || builds+=(asan tsan)

stage=0
stages=$((${#builds[@]} + 2))
stage() {
  stage=$((stage + 1))
  echo "== [$stage/$stages] $1 (${SECONDS} s so far)"
}

stage "dependencies"
ckpt_install build test bindings || exit 1
ckpt_install_julia
ckpt_install_python
ckpt_cuda_headers
if [ "$quick" -eq 0 ] && command -v clang++ >/dev/null; then
  builds+=(clang)
  stages=$((stages + 1))
fi
ckpt_left_out "benchmarks and the comparison with PyTorch (build/release/tests/bench_*, tests/bench/compare_torch.py): they measure"
[ "$quick" -eq 0 ] || ckpt_left_out "sanitizer builds, clang build, packaging tests: --quick"

# A build that fails does not end the run: what it did build is tested, and the test build/NAME fails below.
for build in "${builds[@]}"; do
  stage "build $build"
  log=build/$build.configure.log
  mkdir -p build
  if ! cmake --preset "$build" >"$log" 2>&1; then
    cat "$log"
    echo "could not configure $build"
    [ "$build" != release ] || exit 1
    continue
  fi
  if [ "$build" = release ] && grep -q '^CKPT_CURAND_[A-Z]*:.*NOTFOUND' build/release/CMakeCache.txt; then
    ckpt_left_out "Philox against cuRAND: no CUDA toolkit"
  fi
  if [ "$build" = release ]; then
    while IFS= read -r line; do ckpt_left_out "$line"; done < <(sed -n 's/^-- \(CUDA .*\): left out, /\1: /p' "$log")
  fi
  NINJA_STATUS="[$build %f/%t, %e s] " cmake --build "build/$build" -j "$jobs" -- -k 0 || echo "build $build failed"
done

# One ctest run over all build folders.
mkdir -p build/all
{
  for build in "${builds[@]}"; do
    echo "add_test([=[build/$build]=] cmake --build [=[$PWD/build/$build]=])"
    [ "$build" = clang ] || echo "subdirs([=[$PWD/build/$build]=])"
  done
} >build/all/CTestTestfile.cmake
select=()
[ "$quick" -eq 0 ] || select=(-LE packaging)

stage "tests"
for line in "${CKPT_LEFT_OUT[@]}"; do echo "left out: $line"; done
exec ctest --test-dir build/all --output-on-failure --no-tests=error --no-label-summary -j "$jobs" "${select[@]}"
