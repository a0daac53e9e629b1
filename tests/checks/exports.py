"""The exported symbols of a shared library are exactly the functions of its headers, and exactly the names in its export
map; it needs no library beyond those allowed, and has the soname that its version says.

    exports.py --library ckpt --map src/abi/ckpt.map --shared build/release/src/libckpt.so --needs stdc++ c m ...
    exports.py --library ckpt --map src/abi/ckpt.map --write      writes the map anew from the headers
"""
import argparse
import pathlib
import re
import subprocess

import api

VERSION = "0.1"


def map_text(node, functions):
    names = "".join(f"    {name};\n" for name in functions)
    return ("/* Every exported name, none by pattern: written by tests/checks/exports.py --write, compared with headers and library by\n"
            f"   the tests. */\n{node} {{\n  global:\n{names}  local:\n    *;\n}};\n")


def names_in_map(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    match = re.fullmatch(r"\s*(\S+)\s*\{\s*global:(.*?)local:\s*\*;\s*\};\s*", text, flags=re.S)
    if match is None:
        raise SystemExit(f"{path}: expected one node with explicit global names and `local: *;`")
    return match.group(1), sorted(name.strip() for name in match.group(2).split(";") if name.strip())


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def difference(left, right, left_name, right_name):
    only_left, only_right = sorted(set(left) - set(right)), sorted(set(right) - set(left))
    return ([f"{name}: in {left_name}, not in {right_name}" for name in only_left]
            + [f"{name}: in {right_name}, not in {left_name}" for name in only_right])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--map", required=True, type=pathlib.Path)
    parser.add_argument("--shared", type=pathlib.Path)
    parser.add_argument("--needs", nargs="*", default=[], help="libraries it may need: soname without lib and .so")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    declared = api.functions_of(args.library)
    wanted_node = f"{args.library.upper()}_{VERSION}"
    if args.write:
        args.map.write_text(map_text(wanted_node, declared))
        print(f"{args.map}: {len(declared)} names")
        return
    node, mapped = names_in_map(args.map)
    problems = difference(declared, mapped, "the headers", args.map.name)
    if node != wanted_node:
        problems.append(f"{args.map}: node {node}, expected {wanted_node}")
    exported = []
    for line in run("nm", "-D", "--defined-only", str(args.shared)).splitlines():
        kind, name = line.split()[-2:]
        if kind == "A" and name.startswith(wanted_node):
            continue
        plain, _, version = name.partition("@@")
        exported.append(plain)
        if version != wanted_node:
            problems.append(f"{name}: exported as version {version or 'none'}, expected {wanted_node}")
    problems += difference(declared, exported, "the headers", args.shared.name)
    dynamic = run("readelf", "-dW", str(args.shared))
    soname = re.search(r"\(SONAME\).*\[(.*)\]", dynamic)
    wanted = f"lib{args.library}.so.{VERSION}"
    if soname is None or soname.group(1) != wanted:
        problems.append(f"soname {soname and soname.group(1)}, expected {wanted}")
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    for name in needed:
        if re.sub(r"^lib|\.so.*$|-linux-.*$", "", name) not in args.needs:
            problems.append(f"needs {name}, allowed: {' '.join(args.needs)}")
    api.finish(problems, f"{args.shared.name}: {len(exported)} symbols as declared; needs {' '.join(needed)}")


main()
