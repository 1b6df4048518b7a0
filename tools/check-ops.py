#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check-ops.py [ROOT]: every function in an ops table (struct gp_NAME_ops) is called by something in src. Prints each that
is not, exits 1 if there is one."""

import os
import re
import sys

TABLE = re.compile(r"^struct (gp_\w+_ops) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
MEMBER = re.compile(r"\(\*(\w+)\)\(")
DECLARED = re.compile(r"\bstruct (gp_\w+_ops)\b[\s*]*(?:const\b[\s*]*)?(\w+)")  # a variable, a field, a function that returns it
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
CALL = re.compile(r"(?:\.|->)(\w+)\(")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def sources(root):
    """{path below src or include: text without comments}"""
    found = {}
    for top in ("include", "src"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith((".c", ".h")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        found[os.path.relpath(path, os.path.join(root, top))] = COMMENT.sub("", file.read())
    return found


def members(table):
    """The functions themselves, not their parameters that are functions."""
    depth_0 = [line for line in table.splitlines() if re.match(r"\t\w", line)]
    return [MEMBER.search(line)[1] for line in depth_0 if MEMBER.search(line)]


def with_headers(path, texts, seen):
    if path in texts and path not in seen:
        seen.add(path)
        for name in INCLUDE.findall(texts[path]):
            with_headers(name, texts, seen)
    return seen


def declared(path, texts):
    """{(table, name)} that the file can see."""
    return {pair for one in with_headers(path, texts, set()) for pair in DECLARED.findall(texts[one])}


def callee(text, end):
    """The name before the . or -> of a call: of a variable or field, or of the function whose result it is."""
    depth = 0
    while end and (depth or text[end - 1] in ")]"):
        depth += {")": 1, "]": 1, "(": -1, "[": -1}.get(text[end - 1], 0)
        end -= 1
    return re.search(r"\w*$", text[:end])[0]


def called(texts):
    """{(table, member)}"""
    found = set()
    for path, text in texts.items():
        visible = declared(path, texts)
        for call in CALL.finditer(text):
            name = callee(text, call.start())
            found |= {(table, call[1]) for table, known in visible if known == name}
    return found


def main():
    texts = sources(sys.argv[1] if len(sys.argv) > 1 else ".")
    tables = {name: members(body) for text in texts.values() for name, body in TABLE.findall(text)}
    calls = called(texts)
    wrong = [f"struct {table}: nobody calls {member}()"
             for table in sorted(tables) for member in tables[table] if (table, member) not in calls]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if not tables:
        print("no tables here")
    sys.exit(1 if wrong or not tables else 0)


main()
