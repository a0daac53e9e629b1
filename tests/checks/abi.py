"""The ABI of a built library against the committed dump. What is incompatible fails; so does a mere addition, until the dump
is written anew (tests/abi/update_dump.sh) and committed with it, where a reviewer sees it.

    abi.py --shared build/release/src/libckpt.so --dump tests/abi/dump/libckpt.abi [--write]
"""
import argparse
import pathlib
import subprocess

import api

# Of abidiff's exit status.
ERROR, USAGE, CHANGE, INCOMPATIBLE = 1, 2, 4, 8


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", required=True, type=pathlib.Path)
    parser.add_argument("--dump", required=True, type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    if args.write:
        subprocess.run(["abidw", "--headers-dir", str(api.INCLUDE), "--drop-private-types", "--no-corpus-path", "--no-comp-dir-path",
                        "--no-show-locs", "--no-architecture", "--out-file", str(args.dump), str(args.shared)], check=True)
        print(f"{args.dump}: {args.dump.stat().st_size} bytes")
        return
    done = subprocess.run(["abidiff", "--no-show-locs", "--headers-dir2", str(api.INCLUDE), "--drop-private-types", "--no-architecture",
                           str(args.dump), str(args.shared)], capture_output=True, text=True)
    print(done.stdout + done.stderr, end="")
    if done.returncode & (ERROR | USAGE):
        raise SystemExit("abidiff could not compare")
    if done.returncode & INCOMPATIBLE:
        raise SystemExit("incompatible with the committed ABI")
    if done.returncode & CHANGE:
        raise SystemExit("the ABI changed: if every change above is an addition, run tests/abi/update_dump.sh and commit the dump;"
                         " if not, it is a break")
    print("ABI as committed")


main()
