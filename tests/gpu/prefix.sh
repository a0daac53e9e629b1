#!/usr/bin/env bash
# What tests/gpu/run.sh needs beside CUDA, CMake, Ninja and g++, taken from this machine (Debian or Ubuntu, its packages installed, as
# tests/run.sh leaves it) into a folder that goes along to a machine with a GPU where nothing can be installed: headers, libraries, CMake's
# files. 50 MB, most of it OpenBLAS.
#
#   bash tests/gpu/prefix.sh [FOLDER]      default build/gpu_prefix, where run.sh looks for it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=${1:-build/gpu_prefix}
packages=(libgtest-dev librapidcheck-dev libcmocka-dev libbenchmark-dev nlohmann-json3-dev)
command -v dpkg >/dev/null || { echo "prefix.sh: there is no dpkg; expected Debian or Ubuntu" >&2; exit 1; }
for package in "${packages[@]}"; do
  dpkg -L "$package" >/dev/null 2>&1 || { echo "prefix.sh: $package is not installed" >&2; exit 1; }
done
libraries=lib/$(g++ -print-multiarch)
mkdir -p "$folder/$libraries"

# library FILE NAME...: the file itself, and links to it under its other names
library() {
  local file=$1 name
  shift
  cp "$file" "$folder/$libraries/"
  for name in "$@"; do [ "$name" = "$(basename "$file")" ] || ln -sf "$(basename "$file")" "$folder/$libraries/$name"; done
}
soname() { readelf -d "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p'; }

dpkg -L "${packages[@]}" | while read -r file; do
  case "$file" in /usr/share/doc/* | /usr/share/man/*) continue ;; esac
  if [[ $file == *.so && -f $file ]]; then
    real=$(readlink -f "$file")
    library "$real" "$(soname "$real")" "$(basename "$file")"
  elif [ -f "$file" ]; then
    mkdir -p "$folder/$(dirname "${file#/usr/}")"
    cp -L "$file" "$folder/${file#/usr/}"
  fi
done

# OpenBLAS is behind alternatives, and brings Fortran's run-time along.
blas=$(readlink -f "$(g++ -print-file-name=libopenblas.so)")
[ -f "$blas" ] || { echo "prefix.sh: there is no libopenblas.so" >&2; exit 1; }
library "$blas" "$(soname "$blas")" libopenblas.so
ldd "$blas" | awk '/libgfortran|libquadmath/ {print $1, $3}' | while read -r name file; do library "$(readlink -f "$file")" "$name"; done
du -sh "$folder"
