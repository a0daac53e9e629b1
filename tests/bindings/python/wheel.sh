#!/usr/bin/env bash
# pip install ./bindings/python into a fresh virtual environment, and the package as its user finds it there.
#   wheel.sh SOURCE FOLDER PYTHON
set -euo pipefail
source=$1 folder=$2 python=$3
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$source} CCACHE_NOHASHDIR=1
rm -rf "$folder"
mkdir -p "$folder"
"$python" -m venv "$folder/venv" || { echo "skipped: $python has no venv"; exit 77; }
if ! "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "scikit-build-core>=0.9" >"$folder/pip.log" 2>&1; then
  cat "$folder/pip.log"
  echo "skipped: no package index for scikit-build-core"
  exit 77
fi
# Without the CUDA plugin, which takes its time to compile and is built by the library's own build.
# Compilers and options as in the library's own build, so that the compiler cache has most of it.
CC=cc CXX=c++ "$folder/venv/bin/pip" install --quiet --disable-pip-version-check -C cmake.define.CKPT_CUDA=OFF -C cmake.define.CKPT_WERROR=ON \
  "$source/bindings/python"
cd "$folder"
unset PYTHONPATH LD_LIBRARY_PATH
"$folder/venv/bin/python" -c "import ckpt; ckpt.demo(); print(ckpt.__file__)"
"$folder/venv/bin/python" -m ckpt version
"$folder/venv/bin/ckpt" revolve --steps 10 --snapshots 3
"$folder/venv/bin/python" - <<'PYTHON'
import pathlib
import ckpt
assert "venv" in ckpt.__file__
folder = pathlib.Path(ckpt.__file__).parent
assert (folder / "py.typed").exists() and (folder / "torch" / "__init__.py").exists()
assert ckpt.Device().info.kind == 0
import ckpt.ops
with ckpt.ops.Ops(threads=1) as ops:
    print("layers:", ops.info.isa, ops.info.blas)
PYTHON
echo "wheel: 1 passed"
