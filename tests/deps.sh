# Installs what is missing; sourced by tests/run.sh and examples/run.sh.
#
#   ckpt_install build          compiler, CMake, Ninja, CBLAS
#   ckpt_install build test     and what the tests need
#   ckpt_install bindings       and what the bindings' tests need
#   ckpt_cuda_headers           the headers of a CUDA toolkit for tests/cuda_sim, where there is no toolkit
#
# Looks for the thing itself (a command, a header, a library), not for a package, so that nothing is installed over what is there. With
# apt-get and root (or sudo without a password) it installs; without, what is missing and required is named, and that ends
# the run. What is optional and not to be had is added to CKPT_LEFT_OUT, one sentence each.

CKPT_LEFT_OUT=()

ckpt_left_out() { CKPT_LEFT_OUT+=("$1"); }

# required or optional | command:NAME, header:NAME or library:NAME | Debian package | what is left out without it
ckpt_needs_of() {
  case "$1" in
    build)
      echo "required|command:g++|g++|"
      echo "required|command:cmake|cmake|"
      echo "required|command:ninja|ninja-build|"
      echo "required|library:openblas|libopenblas-pthread-dev|"
      echo "required|header:nlohmann/json.hpp|nlohmann-json3-dev|"
      echo "required|header:CLI/CLI.hpp|libcli11-dev|"
      echo "optional|command:ccache|ccache|compiler cache: ccache is not installed"
      ;;
    test)
      echo "required|command:make|make|"
      echo "required|command:pkg-config|pkg-config|"
      echo "required|command:python3|python3|"
      echo "required|header:cmocka.h|libcmocka-dev|"
      echo "required|header:gtest/gtest.h|libgtest-dev|"
      echo "required|header:rapidcheck.h|librapidcheck-dev|"
      echo "required|header:benchmark/benchmark.h|libbenchmark-dev|"
      echo "optional|command:clang++|clang|build, header checks and fuzz targets with clang: clang++ is not installed"
      echo "optional|command:abidiff|abigail-tools|comparison with the committed ABI dump: abidiff is not installed"
      ;;
    bindings)
      echo "optional|command:swig|swig|the Python package, and the comparison of the generated bindings with the headers: swig is not installed"
      echo "optional|command:python3-config|python3-dev|the Python package: Python's headers are not installed"
      echo "optional|command:cargo|cargo|the Rust crates' tests: cargo is not installed"
      ;;
  esac
}

ckpt_has() {
  case "$1" in
    command:*) command -v "${1#command:}" >/dev/null 2>&1 ;;
    library:*) echo "int main() {}" | g++ -x c++ - -o /dev/null "-l${1#library:}" >/dev/null 2>&1 ;;
    header:*) echo "#include <${1#header:}>" | g++ -x c++ -E - >/dev/null 2>&1 ;;
  esac
}

ckpt_apt_get() {
  local sudo=()
  [ "$(id -u)" -eq 0 ] || sudo=(sudo -n)
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null
}

ckpt_may_install() {
  command -v apt-get >/dev/null 2>&1 && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }
}

# From NVIDIA's wheels, of which the headers alone are kept, in build/cuda_headers: tests/cuda_sim/CMakeLists.txt finds them there.
CKPT_CUDA_WHEELS=(nvidia-cuda-runtime==13.0.* nvidia-cuda-crt==13.0.* nvidia-cuda-cccl==13.0.* nvidia-cublas==13.1.0.*)

ckpt_cuda_headers() {
  local folder to=build/cuda_headers text="the CUDA double and the tests that run on it: no CUDA toolkit, and its headers could not be fetched"
  for folder in ${CUDA_PATH:+"$CUDA_PATH/include"} ${CUDA_HOME:+"$CUDA_HOME/include"} /usr/local/cuda/include /opt/cuda/include; do
    [ ! -e "$folder/cublasLt.h" ] || return 0
  done
  [ ! -e "$to/complete" ] || return 0
  if ! python3 -m pip --version >/dev/null 2>&1; then
    if ckpt_may_install; then ckpt_apt_get install --no-install-recommends python3-pip >/dev/null || true; fi
    python3 -m pip --version >/dev/null 2>&1 || { ckpt_left_out "$text (python3 has no pip)"; return 0; }
  fi
  echo "fetching the headers of CUDA: ${CKPT_CUDA_WHEELS[*]}"
  rm -rf "$to"
  mkdir -p "$to/wheels"
  if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --platform manylinux_2_27_x86_64 \
      --platform manylinux2014_x86_64 --dest "$to/wheels" "${CKPT_CUDA_WHEELS[@]}" || ! python3 - "$to" <<'END'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
for wheel in sorted((folder / "wheels").glob("*.whl")):
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder, [name for name in files.namelist() if "/include/" in name or name.endswith("License.txt")])
    wheel.unlink()
(folder / "complete").touch()
END
  then
    rm -rf "$to"
    ckpt_left_out "$text"
  fi
}

ckpt_install() {
  local needs=() required=() optional=() group kind probe package text line
  for group in "$@"; do
    while IFS= read -r line; do needs+=("$line"); done < <(ckpt_needs_of "$group")
  done
  for line in "${needs[@]}"; do
    IFS='|' read -r kind probe package text <<<"$line"
    ckpt_has "$probe" && continue
    if [ "$kind" = required ]; then required+=("$package"); else optional+=("$package"); fi
  done
  if [ ${#required[@]} -gt 0 ] || [ ${#optional[@]} -gt 0 ]; then
    if ckpt_may_install; then
      echo "installing: ${required[*]} ${optional[*]}"
      ckpt_apt_get update || echo "apt-get update failed; going on with the lists that are there"
      if [ ${#required[@]} -gt 0 ]; then
        ckpt_apt_get install --no-install-recommends "${required[@]}" >/dev/null ||
          { echo "could not install: ${required[*]}" >&2; return 1; }
      fi
      for package in "${optional[@]}"; do
        ckpt_apt_get install --no-install-recommends "$package" >/dev/null || echo "could not install $package (optional)"
      done
    else
      echo "not installing anything: neither root nor sudo without a password, or no apt-get"
    fi
  fi
  local missing=()
  for line in "${needs[@]}"; do
    IFS='|' read -r kind probe package text <<<"$line"
    ckpt_has "$probe" && continue
    if [ "$kind" = required ]; then missing+=("${probe#*:} (Debian: $package)"); else ckpt_left_out "$text"; fi
  done
  if [ ${#missing[@]} -gt 0 ]; then
    printf 'missing: %s\n' "${missing[@]}" >&2
    return 1
  fi
  # Another clone of the same files may be served from the cache; a home that cannot be written must not stop the compiler.
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  [ -n "${CCACHE_DIR:-}" ] || [ -w "${HOME:-/nonexistent}" ] || export CCACHE_DIR=$PWD/build/ccache
}

# A Julia for the bindings' tests: one that is there, else Debian 11's, fetched into the cache folder.
ckpt_install_julia() {
  bash tests/bindings/julia.sh >/dev/null || echo "looking for a Julia to fetch"
  bash tests/bindings/julia.sh --fetch >/dev/null || ckpt_left_out "the Julia package's tests: no Julia, and none could be fetched"
}

# A Python for the bindings' tests: a virtual environment in the cache folder, with NumPy, and with PyTorch and JAX where they install (some
# 3 GB, once). Else Debian's packages, where they come with the python3 that is first on the path.
ckpt_install_python() {
  local folder=${HOME:-/nonexistent}/.cache/ckpt/venv package
  [ -f "$folder/complete" ] && return
  if command -v python3 >/dev/null && mkdir -p "${folder%/*}" 2>/dev/null && { [ -x "$folder/bin/python" ] || python3 -m venv "$folder" >/dev/null 2>&1; }; then
    for package in numpy torch jax; do
      "$folder/bin/python" -c "import $package" 2>/dev/null && continue
      # With the GPU libraries that it brings along PyTorch takes 6 GiB.
      if [ "$package" = torch ] && [ "$(df --output=avail -B1G "$folder" | tail -n 1)" -lt 12 ]; then
        echo "not installing Python's torch: less than 12 GiB are free for it in $folder"
        continue
      fi
      echo "installing: Python's $package"
      timeout 1200 "$folder/bin/pip" install --quiet --disable-pip-version-check "$package" >/dev/null 2>&1 || echo "could not install Python's $package (optional)"
    done
    "$folder/bin/python" -c "import numpy, torch, jax" 2>/dev/null && touch "$folder/complete"
    "$folder/bin/python" -c "import numpy" 2>/dev/null || rm -rf "$folder"
  fi
  if [ ! -x "$folder/bin/python" ] && ckpt_may_install; then
    ckpt_apt_get install --no-install-recommends python3-numpy python3-torch >/dev/null || echo "could not install python3-numpy, python3-torch (optional)"
  fi
  local python=python3
  [ ! -x "$folder/bin/python" ] || python=$folder/bin/python
  for package in numpy torch jax; do
    "$python" -c "import $package" 2>/dev/null || ckpt_left_out "the Python package's tests that need $package: it is not installed"
  done
}
