# Installs what is missing; sourced by tests/run.sh and examples/run.sh.
#
#   ckpt_install build          compiler, CMake, Ninja, CBLAS
#   ckpt_install build test     and what the tests need
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
      echo "optional|command:clang++|clang|build and header checks with clang: clang++ is not installed"
      echo "optional|command:abidiff|abigail-tools|comparison with the committed ABI dump: abidiff is not installed"
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
