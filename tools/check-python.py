#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check-python.py ROOT: what the build runs is for Python 3.6, which EL8 has."""

import ast
import os
import re
import sys

OLDEST = (3, 6)
# What later ones have brought and a script like ours might use: modules, functions and arguments.
NEWER = {
    "dataclasses", "contextvars", "graphlib", "zoneinfo", "tomllib", "capture_output", "text", "removeprefix", "removesuffix",
    "fromisoformat", "cached_property", "pairwise", "batched", "missing_ok", "dirs_exist_ok", "is_relative_to", "breakpoint",
    "prod", "isqrt", "comb", "unparse", "nullcontext", "reconfigure",
}


def build_scripts(root):
    with open(os.path.join(root, "meson.build"), encoding="utf-8") as file:
        return sorted(set(re.findall(r"'(tools/[\w-]+\.py)'", file.read())))


def names(node):
    """What of other modules or of an object this node asks for."""
    if isinstance(node, ast.Import):
        return [alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module.split(".")[0], *(alias.name for alias in node.names)]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.Call):
        called = [node.func.id] if isinstance(node.func, ast.Name) else []
        return called + [keyword.arg for keyword in node.keywords]
    return []


def wrong(path, name):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        tree = ast.parse(text, name, feature_version=OLDEST)
    except SyntaxError as error:
        return [f"{name}:{error.lineno}: {error.msg}"]
    return [
        f"{name}:{node.lineno}: {newer} is not in Python {OLDEST[0]}.{OLDEST[1]}"
        for node in ast.walk(tree) for newer in names(node) if newer in NEWER
    ]


def main():
    root = sys.argv[1]
    scripts = build_scripts(root)
    found = [line for name in scripts for line in wrong(os.path.join(root, name), name)]
    print(*found or [f"{len(scripts)} scripts"], sep="\n")
    sys.exit(1 if found or not scripts else 0)


main()
