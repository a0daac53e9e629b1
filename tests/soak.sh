#!/usr/bin/env bash
# Runs the random tests of a build with many seeds, for what the one seed of tests/run.sh does not meet. Ends at the first failure, with its seed.
#
#   bash tests/soak.sh FIRST LAST [BUILD] [ctest options]     BUILD: build/release by default; -R NAME: some tests only
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! [[ "${1:-}" =~ ^[0-9]+$ && "${2:-}" =~ ^[0-9]+$ ]] || [ "$1" -gt "$2" ]; then
  echo "usage: bash tests/soak.sh FIRST LAST [BUILD] [ctest options], expected seeds FIRST <= LAST, got '${1:-}' '${2:-}'" >&2
  exit 2
fi
first=$1 last=$2 build=${3:-build/release}
[ -e "$build/CTestTestfile.cmake" ] || { echo "$build: no tests are built there" >&2; exit 2; }
for ((seed = first; seed <= last; ++seed)); do
  if ! RC_PARAMS="seed=$seed" ctest --test-dir "$build" -L '^(property|unit)$' -j "${CKPT_JOBS:-$(nproc)}" --output-on-failure --no-tests=error \
      "${@:4}" >"$build/soak.log" 2>&1; then
    tail -n 100 "$build/soak.log"
    echo "seed $seed failed; the whole output: $build/soak.log"
    exit 1
  fi
  echo "seed $seed: $(grep -o '[0-9]*% tests passed.*' "$build/soak.log")"
done
