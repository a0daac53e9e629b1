#!/usr/bin/env python3
"""Writes what is generated of the bindings, from the public headers as SWIG reads them through ckpt.i:

    layouts/layouts.c             a C program that prints the layout of each public struct
    rust/ckpt-sys/src/raw.rs      extern "C"
    julia/src/raw.jl              ccall
    vectors/vectors.txt           known answers that all languages check

    generate.py                   writes them
    generate.py --check           compares them with what is there; status 1 if one differs
"""
import argparse
import difflib
import pathlib
import sys

sys.dont_write_bytecode = True

from generator import julia, layouts, model, rust, vectors

BINDINGS = pathlib.Path(__file__).resolve().parent
FILES = {
    "layouts/layouts.c": layouts.write,
    "rust/ckpt-sys/src/raw.rs": rust.write,
    "julia/src/raw.jl": julia.write,
    "vectors/vectors.txt": vectors.write,
}


def differences(path, text):
    there = path.read_text() if path.exists() else ""
    name = str(path.relative_to(BINDINGS))
    return list(difflib.unified_diff(there.splitlines(), text.splitlines(), f"committed {name}", f"generated {name}", lineterm="", n=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    args = parser.parse_args()
    headers = model.read()
    changed = 0
    for name, write in FILES.items():
        path, text = BINDINGS / name, write(headers)
        found = differences(path, text)
        changed += bool(found)
        if args.check:
            print("\n".join(found[:40]), end="\n" if found else "")
        elif found:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"written: {name}")
    if args.check and changed:
        raise SystemExit(f"{changed} file(s) are not what the headers say: run python3 bindings/generate.py")
    print(f"{len(headers.functions)} functions, {len(headers.structs)} structs, {len(headers.constants)} constants")


main()
