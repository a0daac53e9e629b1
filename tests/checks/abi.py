"""The ABI that the headers describe against the committed dump: functions and the types that they reach (abidiff), and the
values of all constants. What is incompatible fails; so does a mere addition, until the dump is written anew
(tests/abi/update_dump.sh) and committed with it, where a reviewer sees it.

The dump is not taken from the library itself but from a stand-in: every declared function, empty, in C. It has the same
types and no trace of what is behind the handles, so that only a change of the ABI changes it; exports.py holds the library
to the same headers.

    abi.py --library ckpt --cc gcc [--write]
"""
import argparse
import pathlib
import re
import subprocess
import tempfile

import api

DUMPS = api.ROOT / "tests/abi/dump"
# Of abidiff's exit status.
ERROR, USAGE, CHANGE, INCOMPATIBLE = 1, 2, 4, 8
UPDATE = "if every change above is an addition, run tests/abi/update_dump.sh and commit the dump; if not, it is a break"


def declarations(header):
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", api.without_comments(header.read_text()), flags=re.M)
    return [" ".join(match.split()) for match in re.findall(r"\bCKPT_API\b([^;{]*);", text)]


def constants(header):
    text = api.without_comments(header.read_text())
    return [name for body in re.findall(r"\benum\b[^;{]*\{([^}]*)\}", text) for name in re.findall(r"\b(CKPT_\w+)\s*=", body)]


def source(headers):
    lines = [f'#include "ckpt/{header.name}"' for header in headers] + ["int printf(const char *, ...);"]
    for header in headers:
        for text in declarations(header):
            value = "" if re.match(r"void \w", text) else "return 0;"
            lines.append(f"__attribute__((visibility(\"default\"))) {text} {{ {value} }}")
    lines.append("int main(void) {")
    for header in headers:
        lines += [f'  printf("{name} %lld\\n", (long long)({name}));' for name in constants(header)]
    return "\n".join(lines + ["  return 0;", "}"]) + "\n"


def stand_in(headers, library, cc, folder):
    """Compiles it as a library, whose types are compared, and as a program, that prints the constants."""
    code = folder / "stand_in.c"
    code.write_text(source(headers))
    options = ["-std=c99", "-g", "-fvisibility=hidden", "-I", str(api.INCLUDE), code.name]
    shared, program = folder / f"lib{library}.so", folder / "constants"
    # From inside the folder, so that its name does not get into the dump.
    subprocess.run([cc, *options, "-shared", "-fPIC", f"-Wl,-soname,lib{library}.so", "-o", str(shared)], check=True, cwd=folder)
    subprocess.run([cc, *options, "-o", str(program)], check=True, cwd=folder)
    return shared, subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout


def compare_constants(committed, now):
    before, after = (dict(line.split() for line in text.splitlines()) for text in (committed, now))
    problems = [f"{name}: was {value}, is {after.get(name, 'gone')}" for name, value in before.items() if after.get(name) != value]
    added = [f"{name} = {after[name]}: new" for name in after if name not in before]
    return problems, added


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    dump, values = DUMPS / f"lib{args.library}.abi", DUMPS / f"lib{args.library}.constants.txt"
    headers = [header for header in api.HEADERS if api.LIBRARY_OF_HEADER.get(header.name, "ckpt") == args.library]
    with tempfile.TemporaryDirectory() as folder:
        shared, constants_now = stand_in(headers, args.library, args.cc, pathlib.Path(folder))
        if args.write:
            DUMPS.mkdir(exist_ok=True)
            subprocess.run(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--out-file", str(dump), str(shared)],
                           check=True)
            values.write_text(constants_now)
            print(f"{dump.name}: {dump.stat().st_size} bytes; {values.name}: {len(constants_now.splitlines())} constants")
            return
        changed, added = compare_constants(values.read_text(), constants_now)
        print("".join(f"{line}\n" for line in changed + added), end="")
        done = subprocess.run(["abidiff", "--no-show-locs", str(dump), str(shared)], capture_output=True, text=True)
    print(done.stdout + done.stderr, end="")
    if done.returncode & (ERROR | USAGE):
        raise SystemExit("abidiff could not compare")
    if done.returncode & INCOMPATIBLE or changed:
        raise SystemExit("incompatible with the committed ABI")
    if done.returncode & CHANGE or added:
        raise SystemExit(f"the ABI changed: {UPDATE}")
    print(f"lib{args.library}: ABI and constants as committed")


main()
