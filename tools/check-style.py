#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check-style.py [--format] [ROOT]: licence lines, long functions, words that may not stay, emoji, files no build lists.

With --format only what clang-format has to say; exits 77 if it is not installed.
Prints each breach as FILE:LINE: WHAT, exits 1 if there is one.
"""

import os
import re
import shutil
import subprocess
import sys

MAX_LINES = 60  # of a function
SPDX = "SPDX-" + "License-Identifier:"  # in two parts: this file has one such line too
SPDX_WITHIN = 5  # lines from the top

SOURCE_NAMES = ("Makefile", "meson.build", "meson_options.txt", ".ci/run")
SOURCE_ENDS = (".c", ".h", ".S", ".py", ".sh", ".map", ".ini", ".html", ".js", ".css", ".1", ".3", ".5", ".7", ".8")

LICENCES = (("kernel/series/", None), ("kernel/", "GPL-2.0"), ("src/model/", "MIT OR GPL-2.0"), ("", "MIT"))

# Unfinished work, what a merge left, and paths of the machine it was written on.
FORBIDDEN = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b|^(?:<{7}|>{7}) |(?<![\w.])/wo" r"rk/|\.\./sha" r"red\b")

# As they are, and as C, Python and HTML write them. A test may feed them to a program.
EMOJI = re.compile(
    "[\u231a\u231b\u23e9-\u23f3\u2600-\u27bf\u2b00-\u2bff\u20e3\ufe0f\U0001f000-\U0001faff]"
    r"|(?i:\\U0001f[0-9a-f]{3}|\\u2[67][0-9a-f]{2}|\\xf0\\x9f|\\xe2\\x9[8-9a-e]|&#x1f[0-9a-f]{3};|&#x2[67][0-9a-f]{2};)|\\N\{"
)
MAY_FEED_EMOJI = ("tests/", "tools/check-style.py")

# Files that nobody would miss if meson.build forgot them.
MUST_BE_LISTED = re.compile(
    r"(src/.*|tests/(unit|fuzz|kernel)/[^/]*)\.c|tests/integration/[^/]*\.(sh|py)|man/.*|share/.*\.ini"
    r"|include/gpreempt/[^/]*\.h|python/.*"
)


def tracked(root):
    """Files of the project: git's, with those not yet added; without git all but hidden and build."""
    git = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=False,
    ) if shutil.which("git") and os.path.exists(os.path.join(root, ".git")) else None
    if git and git.returncode == 0:
        names = git.stdout.decode().split("\0")
    else:
        names = []
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if name not in ("build", "__pycache__", ".git")]
            names += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return sorted(name for name in set(names) if name and os.path.isfile(os.path.join(root, name)))


def read(root, path):
    """The text, or None if it is not text."""
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        return None


def is_source(path):
    return os.path.basename(path) in SOURCE_NAMES or path in SOURCE_NAMES or path.endswith(SOURCE_ENDS)


def check_licence(path, lines):
    want = next(licence for prefix, licence in LICENCES if path.startswith(prefix))
    found = [(number, line) for number, line in enumerate(lines, 1) if SPDX in line]
    if not want:
        return
    if not found or found[0][0] > SPDX_WITHIN:
        yield f"{path}:1: no {SPDX} {want} in the first {SPDX_WITHIN} lines"
        return
    number, line = found[0]
    have = re.sub(r"\s*(\*/|-->)?\s*$", "", line.split(SPDX)[1]).strip()
    if have != want:
        yield f"{path}:{number}: licence is {have}, should be {want}"
    for number, _ in found[1:]:
        yield f"{path}:{number}: a second licence line"


def check_words(path, lines):
    for number, line in enumerate(lines, 1):
        match = FORBIDDEN.search(line)
        if match:
            yield f"{path}:{number}: '{match[0]}' may not stay"


def check_emoji(path, lines):
    if not path.startswith(MAY_FEED_EMOJI):
        yield from (f"{path}:{number}: an emoji" for number, line in enumerate(lines, 1) if EMOJI.search(line))


def signature_start(lines, brace):
    """Index of the first line of a function whose { is line brace."""
    start = brace
    while start > 0 and lines[start - 1] and not lines[start - 1].endswith((";", "}", "*/")):
        if lines[start - 1].startswith("#"):
            break
        start -= 1
    return start


def comment_above(lines, start):
    """The comment that ends directly above a line, as text."""
    end = start
    if not start or not lines[start - 1].endswith("*/"):
        return ""
    while start > 0:
        start -= 1
        if lines[start].lstrip().startswith("/*"):
            break
    return "\n".join(lines[start:end])


def check_functions(path, lines):
    brace = None
    for index, line in enumerate(lines):
        if line == "{":
            brace = index
        elif line.startswith("}") and brace is not None:
            start = signature_start(lines, brace)
            length = index - start + 1
            brace = None
            if length > MAX_LINES and "long:" not in comment_above(lines, start):
                yield f"{path}:{start + 1}: function of {length} lines; {MAX_LINES} at most, or 'long:' and why above it"


def check_listed(root, paths):
    """Every file that the build should know is named in a meson.build: its path, or its name without the end."""
    lists = "".join(read(root, path) for path in paths if os.path.basename(path) == "meson.build")
    words = set(re.findall(r"'([^'\n]+)'", lists))
    for path in paths:
        if not MUST_BE_LISTED.fullmatch(path) or os.path.islink(os.path.join(root, path)):
            continue
        name = os.path.basename(path)
        stem = re.sub(r"^(test|fuzz)_", "", os.path.splitext(name)[0]) if path.startswith("tests/") else name
        stem = os.path.splitext(name)[0] if path.startswith("share/") else stem
        if not words & {path, name, stem}:
            yield f"{path}:1: no meson.build lists it"


def check_format(root, paths):
    sources = [path for path in paths if path.endswith((".c", ".h")) and not path.startswith("kernel/")]
    tool = subprocess.run(
        ["clang-format", "--dry-run", "-Werror", "--style=file", *sources],
        cwd=root, capture_output=True, text=True, check=False,
    )
    for line in tool.stderr.splitlines():
        match = re.match(r"(.*?):(\d+):\d+: error: ", line)
        if match:
            yield f"{match[1]}:{match[2]}: not as clang-format writes it"
    if tool.returncode and "error:" not in tool.stderr:
        yield tool.stderr.strip()


def check_all(root, paths):
    for path in paths:
        text = read(root, path)
        if text is None:
            continue
        lines = text.split("\n")
        yield from check_words(path, lines)
        yield from check_emoji(path, lines)
        if is_source(path):
            yield from check_licence(path, lines)
        if path.startswith(("src/", "include/")) and path.endswith((".c", ".h")):
            yield from check_functions(path, lines)
    yield from check_listed(root, paths)


def main():
    args = sys.argv[1:]
    only_format = "--format" in args
    root = next((arg for arg in args if arg != "--format"), ".")
    if only_format and not shutil.which("clang-format"):
        print("clang-format is not installed")
        sys.exit(77)
    paths = tracked(root)
    wrong = list(check_format(root, paths) if only_format else check_all(root, paths))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if not paths:
        print(f"{root}: no files here")
    sys.exit(1 if wrong or not paths else 0)


main()
