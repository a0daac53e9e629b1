"""Each public function has a comment: right before it, or before the group of declarations (no empty line between) that it is
in. Each header begins with a comment that says what it is about. What the Markdown files name exists: files that links and
`bash` lines lead to, CMake presets, public functions and constants."""
import json
import re

import api


def comment_only(text):
    """For each line: does it hold a comment and nothing else?"""
    bare = api.without_comments(text).splitlines()
    return [bool(full.strip()) and not code.strip() for full, code in zip(text.splitlines(), bare)]


def has_comment(lines, is_comment, first):
    """Is there a comment at the end of the declaration that starts at this line, or above its group?"""
    last = first
    while ";" not in lines[last]:
        last += 1
    if lines[last].rstrip().endswith("*/"):
        return True
    above = first - 1
    while above >= 0 and lines[above].strip() and not is_comment[above]:
        above -= 1
    return above >= 0 and is_comment[above]


def undocumented(header):
    text = header.read_text()
    lines, is_comment = text.splitlines(), comment_only(text)
    return [f"{header.name}:{number}: {name} has no comment, before it or at its end"
            for name, number in api.declared_functions(header) if not has_comment(lines, is_comment, number - 1)]


def public_names():
    """Every identifier of the public headers that begins with ckpt_ or CKPT_."""
    return {name for header in [*api.HEADERS, api.CURAND_HEADER] for name in re.findall(r"\b(?:ckpt|CKPT)_\w+", header.read_text())}


def build_names():
    """Options and targets of the build, libraries, and what the files of the tree are called."""
    text = "".join(path.read_text() for path in [*api.ROOT.glob("**/CMakeLists.txt"), *(api.ROOT / "pkgconfig").glob("*")]
                   if "build" not in path.relative_to(api.ROOT).parts)
    return set(re.findall(r"\b(?:ckpt|CKPT)_\w+", text))


def wrong_mentions(page, known, presets):
    text = page.read_text()
    name = page.relative_to(api.ROOT)
    problems = []
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target and not (page.parent / target).exists():
            problems.append(f"{name}: link to {target}, which does not exist")
    for script in re.findall(r"\bbash ([\w./-]+\.sh)", text):
        if not (api.ROOT / script).is_file():
            problems.append(f"{name}: bash {script}: no such file")
    for preset in re.findall(r"--preset[ =](\w+)", text):
        if preset not in presets:
            problems.append(f"{name}: no preset {preset}; there are {', '.join(sorted(presets))}")
    for word in set(re.findall(r"\b(?:ckpt|CKPT)_\w+", text)):
        if word not in known and not any(other.startswith(word) for other in known if word.endswith("_")):
            problems.append(f"{name}: {word} is in no public header and in no build file")
    return problems


def main():
    problems, count = [], 0
    for header in api.HEADERS:
        if not header.read_text().startswith("/* libckpt: "):
            problems.append(f"{header.name}: does not begin with a comment that says what it is about (/* libckpt: ...)")
        problems += undocumented(header)
        count += len(api.declared_functions(header))
    presets = {preset["name"] for preset in json.loads((api.ROOT / "CMakePresets.json").read_text())["configurePresets"]}
    known = public_names() | build_names()
    pages = sorted(api.ROOT.glob("*.md")) + sorted((api.ROOT / "docs").glob("**/*.md"))
    for page in pages:
        problems += wrong_mentions(page, known, presets)
    api.finish(problems, f"{count} functions in {len(api.HEADERS)} headers have a comment; {len(pages)} pages name what exists")


main()
