#!/usr/bin/env bash
# Writes the committed ABI dumps anew. Do this in the same commit as the change of a public header.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
libraries=(ckpt)
[ ! -e include/ckpt/ops.h ] || libraries+=(ckpt_ops)
for library in "${libraries[@]}"; do
  python3 -B tests/checks/abi.py --write --library "$library" --cc "${CC:-gcc}"
done
