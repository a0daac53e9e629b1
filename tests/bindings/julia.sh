#!/usr/bin/env bash
# Finds a Julia for the tests, or fetches one: prints the command, status 1 if there is none.
#
#   julia.sh            one that is there: CKPT_JULIA, on the path, or fetched before
#   julia.sh --fetch    and if there is none, on Debian 12 (x86-64), Debian 11's 1.5.3 into the cache folder (60 MB to load, 300 MB
#                       on disk), without a change to the system
#
# Debian 12 has no Julia. Debian 11's runs there with those of its libraries that Debian 12 has no more, each found through
# LD_LIBRARY_PATH by that one process; libunwind8 is among them, as compiled code that throws crashes with Debian 12's.
set -euo pipefail

triplet=x86_64-linux-gnu
cache=${CKPT_CACHE:-${HOME:-/nonexistent}/.cache/ckpt}
mkdir -p "$cache" 2>/dev/null || cache=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/cache
folder=$cache/julia-1.5.3
packages=(julia libjulia1 julia-common libdsfmt-19937-1 libffi7 libgit2-1.1 libhttp-parser2.9 libllvm9 libmbedcrypto3 libmbedtls12
  libmbedx509-0 libopenlibm3 libutf8proc2 libunwind8)

works() { "$1" --startup-file=no -e 'try; error("thrown"); catch; end; exit(VERSION >= v"1.5" ? 0 : 1)' >/dev/null 2>&1; }

# The mirror that this system uses.
mirror() {
  { sed -n 's/^deb\(-src\)\{0,1\} *\(\[[^]]*\] *\)\{0,1\}//p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list
    sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources; } 2>/dev/null | awk '$1 ~ /\/debian\/?$/ { print $1; exit }'
}

fetch() {
  [ "$(uname -m)" = x86_64 ] && command -v apt-get >/dev/null && grep -q '^VERSION_ID="12"' /etc/os-release || return 1
  local source work
  source=$(mirror)
  [ -n "$source" ] || return 1
  work=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$work"' RETURN
  mkdir -p "$work"/apt/lists/partial "$work"/apt/cache/archives/partial "$work"/packages "$work"/julia
  echo "deb $source bullseye main" >"$work/apt/sources.list"
  : >"$work/apt/status"
  local apt=(-qq "-oDir::Etc::sourcelist=$work/apt/sources.list" -oDir::Etc::sourceparts=/dev/null "-oDir::State=$work/apt"
    "-oDir::State::lists=$work/apt/lists" "-oDir::State::status=$work/apt/status" "-oDir::Cache=$work/apt/cache" -oAPT::Sandbox::User=root)
  apt-get "${apt[@]}" update >&2 && (cd "$work/packages" && apt-get "${apt[@]}" download "${packages[@]}" >&2) || return 1
  local each name
  for each in "$work"/packages/*.deb; do dpkg -x "$each" "$work/julia"; done
  # Links to libraries that the system itself has.
  find "$work/julia/usr/lib/$triplet/julia" -xtype l | while IFS= read -r each; do
    name=$(basename "$(readlink "$each")")
    [ ! -e "/usr/lib/$triplet/$name" ] || ln -sf "/usr/lib/$triplet/$name" "$each"
  done
  cat >"$work/julia/julia" <<END
#!/bin/sh
here=\$(dirname "\$(readlink -f "\$0")")/usr
LD_LIBRARY_PATH=\$here/lib/$triplet:\$here/lib/$triplet/julia\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "\$here/bin/julia" "\$@"
END
  chmod +x "$work/julia/julia"
  works "$work/julia/julia" || return 1
  rm -rf "$folder"
  mv "$work/julia" "$folder"
}

for candidate in "${CKPT_JULIA:-}" "$(command -v julia || true)" "$folder/julia"; do
  if [ -n "$candidate" ] && [ -x "$candidate" ] && works "$candidate"; then
    echo "$candidate"
    exit 0
  fi
done
[ "${1:-}" = --fetch ] && fetch || exit 1
echo "$folder/julia"
