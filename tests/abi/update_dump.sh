#!/usr/bin/env bash
# Writes the committed ABI dump anew from a fresh build. Do this in the same commit as the change of a public header.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cmake --preset release -B build/abi-dump -DCKPT_BUILD_TESTS=OFF -DCKPT_BUILD_BENCH=OFF -DCKPT_BUILD_EXAMPLES=OFF -DCKPT_BUILD_OPS=OFF >/dev/null
cmake --build build/abi-dump --target ckpt
python3 -B tests/checks/abi.py --write --shared build/abi-dump/src/libckpt.so --dump tests/abi/dump/libckpt.abi
