"""Each public function has a comment: right before it, or before the group of declarations (no empty line between) that it is
in. Each header begins with a comment that says what it is about."""
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


def main():
    problems, count = [], 0
    for header in api.HEADERS:
        if not header.read_text().startswith("/* libckpt: "):
            problems.append(f"{header.name}: does not begin with a comment that says what it is about (/* libckpt: ...)")
        problems += undocumented(header)
        count += len(api.declared_functions(header))
    api.finish(problems, f"{count} functions in {len(api.HEADERS)} headers have a comment")


main()
