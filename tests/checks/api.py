"""What the public headers declare, read as text: used by the other checks of this folder."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
# A C++ header for those who have cuRAND: inline functions alone, nothing of the ABI.
CURAND_HEADER = INCLUDE / "ckpt" / "curand.h"
HEADERS = sorted(path for path in (INCLUDE / "ckpt").glob("*.h") if path != CURAND_HEADER)
# Headers of a library of their own; all others are the core's.
LIBRARY_OF_HEADER = {"ops.h": "ckpt_ops"}


def without_comments(text):
    """Comments become spaces, line breaks stay, so that line numbers hold."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*', blank, text, flags=re.S)


def without_strings(text):
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def declared_functions(header):
    """Names of the functions that a header declares with CKPT_API, with their line numbers, in order."""
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", without_comments(header.read_text()), flags=re.M)
    found = []
    for match in re.finditer(r"\bCKPT_API\b([^;{]*)", text):
        name = re.search(r"\b(ckpt_\w+)\s*\(", match.group(1))
        if name is None:
            raise SystemExit(f"{header}: CKPT_API without a function: {match.group(0).strip()[:80]}")
        found.append((name.group(1), text.count("\n", 0, match.start()) + 1))
    return found


def functions_of(library):
    return sorted(name for header in HEADERS if LIBRARY_OF_HEADER.get(header.name, "ckpt") == library
                  for name, _ in declared_functions(header))


def finish(problems, passed):
    for problem in problems:
        print(problem)
    if problems:
        raise SystemExit(f"{len(problems)} problem(s)")
    print(passed)
