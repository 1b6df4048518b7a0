#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check-docs.py ROOT: documents lead to files that are there, and say the same in both languages.

NAME.zh-CN.md is NAME.md in Chinese. Of each heading, paragraph, list item and row of a table the two have the same links,
names in code type and numbers, of a row cell by cell; of a block of code, all but its comments. Prints each difference, exits 1 if
there is one.
"""

import os
import re
import sys
from itertools import zip_longest

CHINESE = ".zh-CN.md"
SKIPPED = ("build", "subprojects")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
CELL = re.compile(r"(?<!\\)\|")
FENCE = "```"


def documents(root):
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        found += [os.path.relpath(os.path.join(folder, name), root) for name in sorted(files) if name.endswith(".md")]
    return found


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def kind(line):
    """What a block that begins with this line is."""
    found = re.match(r"(#+) |([*-]) |\d+\. |(\|)", line)
    return (found.group(1) or found.group(2) or found.group(3) or "1.") if found else "text"


def blocks(text):
    """(number of its first line, kind, text) of each."""
    found, is_code = [], False
    for number, line in enumerate(text.split("\n"), 1):
        if is_code:
            found[-1][2] += line + "\n"
            is_code = not line.startswith(FENCE)
        elif line.startswith(FENCE):
            found.append([number, line, ""])
            is_code = True
        elif not line.strip():
            found.append([number, "", ""])
        elif kind(line) == "text" and found and found[-1][1] in ("text", "*", "-", "1."):
            found[-1][2] += line + "\n"
        else:
            found.append([number, kind(line), line + "\n"])
    return [block for block in found if block[1]]


def without_comments(code):
    return re.sub(r"(?m)(?:^|\s+)# .*$", "", code)


def links(text):
    """What they lead to, whichever language that is in."""
    return sorted(link.replace(CHINESE, ".md") for link in LINK.findall(text))


def told(block):
    """What must be the same in both languages, by what it is called."""
    _, what, text = block
    if what.startswith(FENCE):
        return {"code": without_comments(text)}
    parts = CELL.split(text) if what == "|" else [text]
    plain = [LINK.sub("]", CODE.sub("`", part)) for part in parts]
    return {"cells": len(parts), "names": [sorted(CODE.findall(part)) for part in parts], "links": [links(part) for part in parts],
            "numbers": [sorted(NUMBER.findall(part)) for part in plain]}


def differences(root, chinese):
    english = chinese.replace(CHINESE, ".md")
    if not os.path.exists(os.path.join(root, english)):
        return [f"{chinese}: there is no {english}"]
    found = []
    for ours, theirs in zip_longest(blocks(read(root, english)), blocks(read(root, chinese)), fillvalue=("end", "", "")):
        where = f"{english}:{ours[0]} and {chinese}:{theirs[0]}"
        if ours[1] != theirs[1]:
            return [*found, f"{where}: another kind of block; is one missing before?"]
        one, other = told(ours), told(theirs)
        found += [f"{where}: other {what}: {one[what]!r}, {other[what]!r}" for what in one if one[what] != other[what]]
    return found


def dead_links(root, path):
    text = re.sub(r"(?ms)^```.*?^```$", "", read(root, path))
    for link in LINK.findall(CODE.sub("", text)):
        if re.match(r"\w+:|#", link):
            continue
        if not os.path.exists(os.path.join(root, os.path.dirname(path), link.split("#")[0])):
            yield f"{path}: {link} is not there"


def main():
    root = sys.argv[1]
    names = documents(root)
    wrong = [line for name in names for line in dead_links(root, name)]
    wrong += [line for name in names if name.endswith(CHINESE) for line in differences(root, name)]
    print(*wrong or [f"{len(names)} documents"], sep="\n")
    sys.exit(1 if wrong or not names else 0)


main()
