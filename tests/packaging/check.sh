#!/usr/bin/env bash
# check.sh NAME WORK: one packaging test. Needs CKPT_SOURCE, CKPT_BINARY (a finished build), CC, CXX.
set -euo pipefail
name=$1
work=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=$work/moved/to/prefix
libdir=$(sed -n 's/^CMAKE_INSTALL_LIBDIR:[A-Z]*=//p' "$CKPT_BINARY/CMakeCache.txt")
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
unset LD_LIBRARY_PATH DESTDIR

die() { echo "$*" >&2; exit 1; }
# Of a program: the shared libraries it needs. (Into a variable first: grep -q would leave readelf without a reader.)
needed() { local text; text=$(readelf -dW "$1") && sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' <<<"$text"; }
needs_ckpt() { grep -qE '^libckpt(_ops)?\.so\.0\.1$' <<<"$(needed "$1")"; }

make_c() { # folder, arguments of make
  local out=$work/$1
  shift
  rm -rf "$out" && mkdir -p "$out"
  make -C "$here/c99" OUT="$out" "$@"
}

run_shared_and_static() { # folder of a build with with_ckpt and with_ckpt_static
  "$1/with_ckpt"
  "$1/with_ckpt_static"
  needs_ckpt "$1/with_ckpt" || die "with_ckpt does not use the shared library"
  ! needs_ckpt "$1/with_ckpt_static" || die "with_ckpt_static uses the shared library"
}

build_cmake() { # project, arguments of cmake
  local project=$1
  shift
  rm -rf "${work:?}/$project"
  cmake -S "$here/$project" -B "$work/$project" -DCMAKE_BUILD_TYPE=Release "$@"
  cmake --build "$work/$project" -j "$(nproc)"
  run_shared_and_static "$work/$project"
}

subproject() {
  # As deep in the tree as the build it repeats, and in the end with its options: so a compiler cache has the objects already.
  local build=$CKPT_BINARY-subproject
  rm -rf "$build"
  cmake -S "$here/subproject" -B "$build" -G Ninja -DCKPT_SOURCE="$CKPT_SOURCE" -DCMAKE_BUILD_TYPE=RelWithDebInfo
  grep -q '^CKPT_WERROR:BOOL=OFF' "$build/CMakeCache.txt" || die "CKPT_WERROR is on in a build that only uses the library"
  local launcher
  launcher=$(command -v ccache || true)
  export CCACHE_BASEDIR=$CKPT_SOURCE CCACHE_NOHASHDIR=1
  cmake -S "$here/subproject" -B "$build" -DCKPT_WERROR=ON -DCMAKE_C_COMPILER_LAUNCHER="$launcher" -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher"
  cmake --build "$build" -j "$(nproc)"
  run_shared_and_static "$build"
  rm -rf "$build"
}

case "$name" in
  install)
    rm -rf "$work" && mkdir -p "$(dirname "$prefix")"
    cmake --install "$CKPT_BINARY" --prefix "$work/first"
    mv "$work/first" "$prefix"
    # Nothing names the place where it was first, or the one where it was built. Debug information may.
    if grep -rlF -e "$work/first" -e "$CKPT_BINARY" "$prefix" --include='*.cmake' --include='*.pc' --include='*.h'; then
      die "the files above hold a path that is gone after the move"
    fi
    for file in include/ckpt/ckpt.h "$libdir/libckpt.so" "$libdir/libckpt.so.0.1" "$libdir/libckpt.so.0.1.0" "$libdir/libckpt.a" \
      "$libdir/pkgconfig/ckpt.pc" "$libdir/cmake/ckpt/ckptConfig.cmake" "$libdir/cmake/ckpt/ckptConfigVersion.cmake"; do
      [ -e "$prefix/$file" ] || die "not installed: $file"
    done
    # The command finds the library where both are now.
    if grep -q '^CKPT_BUILD_TOOL:BOOL=ON' "$CKPT_BINARY/CMakeCache.txt"; then
      bindir=$(sed -n 's/^CMAKE_INSTALL_BINDIR:[A-Z]*=//p' "$CKPT_BINARY/CMakeCache.txt")
      [ "$("$prefix/$bindir/ckpt" version)" = "ckpt 0.1.0" ] || die "the installed command does not run"
    fi
    for header in "$CKPT_SOURCE"/include/ckpt/*.h; do
      [ "${header##*/}" = ops.h ] && [ ! -e "$prefix/$libdir/libckpt_ops.so" ] && continue
      cmp "$header" "$prefix/include/ckpt/$(basename "$header")"
    done
    ;;
  c_shared)
    make_c c_shared
    "$work/c_shared/main"
    needs_ckpt "$work/c_shared/main" || die "does not use the shared library"
    ;;
  c_static)
    make_c c_static STATIC=1
    "$work/c_static/main"
    [ -z "$(needed "$work/c_static/main")" ] || die "needs shared libraries"
    # A plugin would bring a second C library along.
    said=$(CKPT_PLUGIN_PATH=$prefix/$libdir LD_LIBRARY_PATH=$prefix/$libdir "$work/c_static/main" cuda) || die "opening a device ends a static program"
    grep -q 'linked statically' <<<"$said" || die "a static program that opens a device says: $said"
    ;;
  c_archive_only)
    # A prefix without the shared library, the rest of the system shared: what `pkg-config --static --libs` names must do.
    rm -rf "$work/archive_only" && cp -a "$prefix" "$work/archive_only" && rm "$work/archive_only/$libdir"/libckpt.so*
    export PKG_CONFIG_PATH=$work/archive_only/$libdir/pkgconfig
    make_c c_archive_only PKG_CONFIG="pkg-config --static"
    "$work/c_archive_only/main"
    ! needs_ckpt "$work/c_archive_only/main" || die "uses the shared library"
    ;;
  ops_shared)
    make_c ops_shared PACKAGE=ckpt_ops SOURCE=ops.c
    "$work/ops_shared/main"
    ;;
  ops_static)
    make_c ops_static PACKAGE=ckpt_ops SOURCE=ops.c STATIC=1
    "$work/ops_static/main"
    [ -z "$(needed "$work/ops_static/main")" ] || die "needs shared libraries"
    ;;
  cmake_ops) build_cmake ops_cmake -DCMAKE_PREFIX_PATH="$prefix" ;;
  cmake_cpp) build_cmake cpp20 -DCMAKE_PREFIX_PATH="$prefix" ;;
  cmake_c)
    build_cmake c_cmake -DCMAKE_PREFIX_PATH="$prefix"
    said=$(cmake -S "$here/c_cmake" -B "$work/c_cmake_foo" -DCMAKE_PREFIX_PATH="$prefix" -DCOMPONENT=foo 2>&1) && die "there is a component foo"
    grep -q 'there is no component foo' <<<"$said" || die "an unknown component gives: $said"
    ;;
  subproject) subproject ;;
  *) die "unknown test $name" ;;
esac
