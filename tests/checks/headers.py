"""Each public header compiles alone, as C99 and as C++20, without a warning and without implicit padding, and includes only
stddef.h, stdint.h and other public headers. Each CKPT_X_INIT initialises the struct it is named after. ckpt/curand.h is C++ alone,
and is compiled where the folder of cuRAND's headers is given.

    headers.py --cc gcc --cxx g++ [--curand /usr/local/cuda/include]
"""
import argparse
import pathlib
import re
import subprocess
import tempfile

import api

WARNINGS = ["-pedantic", "-Wall", "-Wextra", "-Wpadded", "-Werror", "-fsyntax-only", "-I", str(api.INCLUDE)]


def program(header, language):
    """A source file that includes the header alone, and uses each of its initialisers."""
    lines = [f'#include "ckpt/{header.name}"']
    begin, end = ('extern "C" { ', " }") if language == "C++" else ("", "")
    for name in re.findall(r"^#define CKPT_(\w+)_INIT\b", header.read_text(), flags=re.M):
        kind = f"ckpt_{name.lower()}"
        lines += [f"{begin}extern const {kind} check_{kind};{end}", f"const {kind} check_{kind} = CKPT_{name}_INIT;"]
    return "\n".join(lines) + "\n"


def compile_alone(header, compiler, standard, language, folder):
    source = folder / ("alone.c" if language == "C" else "alone.cpp")
    source.write_text(program(header, language))
    done = subprocess.run([compiler, f"-std={standard}", *WARNINGS, str(source)], capture_output=True, text=True)
    if done.returncode == 0:
        return []
    return [f"{header.name} as {standard} with {compiler}:\n{done.stderr}"]


def compile_with_curand(compiler, curand, folder):
    source = folder / "curand.cpp"
    source.write_text('#include "ckpt/curand.h"\nckpt_philox used(const curandStatePhilox4_32_10_t *state) { return ckpt_philox_from_curand(state); }\n')
    # Inline functions that a program does not use are no mistake, nor is what cuRAND's headers do.
    done = subprocess.run([compiler, "-std=c++20", *WARNINGS, "-Wno-unused-function", "-isystem", curand, str(source)], capture_output=True, text=True)
    return [] if done.returncode == 0 else [f"curand.h as c++20 with {compiler}:\n{done.stderr}"]


def wrong_includes(header, also=()):
    problems = []
    for number, line in enumerate(api.without_comments(header.read_text()).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"][^>"]*[>"])', line)
        if match is None:
            continue
        name = match.group(1)
        public = name[0] == '"' and name[1:-1].startswith("ckpt/") and (api.INCLUDE / name[1:-1]).is_file()
        if not public and name not in ("<stddef.h>", "<stdint.h>", *also):
            problems.append(f"{header.name}:{number}: includes {name}; allowed: <stddef.h>, <stdint.h>, \"ckpt/...\"")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", required=True)
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--curand", help="folder of curand_kernel.h")
    args = parser.parse_args()
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for header in api.HEADERS:
            problems += wrong_includes(header)
            problems += compile_alone(header, args.cc, "c99", "C", pathlib.Path(folder))
            problems += compile_alone(header, args.cxx, "c++20", "C++", pathlib.Path(folder))
        problems += wrong_includes(api.CURAND_HEADER, ("<curand_kernel.h>",))
        if args.curand:
            problems += compile_with_curand(args.cxx, args.curand, pathlib.Path(folder))
    api.finish(problems, f"{len(api.HEADERS)} headers: C99 with {args.cc}, C++20 with {args.cxx}; curand.h: "
               f"{'C++20' if args.curand else 'not compiled, no cuRAND'}")


main()
