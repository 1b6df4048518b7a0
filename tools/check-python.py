#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check-python.py ROOT: what the build runs and what is installed is for Python 3.6, which EL8 has."""

import ast
import os
import re
import sys

OLDEST = (3, 6)
# What later ones have brought and a script like ours might use: modules, functions and arguments.
NEWER = {
    "dataclasses", "contextvars", "graphlib", "zoneinfo", "tomllib", "capture_output", "text", "removeprefix", "removesuffix",
    "fromisoformat", "cached_property", "pairwise", "batched", "missing_ok", "dirs_exist_ok", "is_relative_to", "breakpoint",
    "prod", "isqrt", "comb", "unparse", "nullcontext", "reconfigure", "annotations", "get_running_loop", "create_task", "to_thread",
    "TaskGroup", "asynccontextmanager", "AsyncExitStack", "aclosing", "monotonic_ns", "perf_counter_ns", "time_ns", "process_time_ns",
    "Protocol", "Final", "Literal", "TypedDict", "Annotated", "ParamSpec", "Self", "singledispatchmethod", "quantiles", "fmean",
    "raise_signal", "posix_spawn", "waitstatus_to_exitcode", "register_at_fork", "excepthook", "randbytes", "StrEnum", "KEEP",
}
NEWER_CALLS = {("asyncio", "run"), ("shlex", "join"), ("functools", "cache"), ("math", "dist"), ("importlib", "resources"), ("importlib", "metadata")}
PLAIN = {"list", "dict", "set", "frozenset", "tuple", "type"}  # not to be subscripted


def build_scripts(root):
    with open(os.path.join(root, "meson.build"), encoding="utf-8") as file:
        return sorted(set(re.findall(r"'(tools/[\w-]+\.py)'", file.read())))


def packaged(root):
    """What is installed for others' programs, and makes their package."""
    found = [name for name in ("tools/wheel.py",) if os.path.exists(os.path.join(root, name))]
    for place in ("examples", "python", os.path.join("share", "notes")):
        for folder, _, files in os.walk(os.path.join(root, place)):
            found += [os.path.relpath(os.path.join(folder, name), root) for name in files if name.endswith(".py")]
    return sorted(found)


def annotations(node):
    arguments = getattr(node, "args", None) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
    if arguments:
        every = arguments.args + arguments.kwonlyargs + [arguments.vararg, arguments.kwarg]
        return [one.annotation for one in every if one is not None] + [node.returns]
    return [node.annotation] if isinstance(node, ast.AnnAssign) else []


def late_syntax(node):
    """What feature_version lets pass, everywhere or in Python 3.9."""
    if isinstance(node, ast.NamedExpr):
        return [":="]
    if isinstance(node, ast.arguments) and node.posonlyargs:
        return ["/ among parameters"]
    if any(isinstance(part, ast.BinOp) for one in annotations(node) if one is not None for part in ast.walk(one)):
        return ["a type with |"]
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in PLAIN:
        return [node.value.id + "[...]"]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and (node.value.id, node.attr) in NEWER_CALLS:
        return [node.value.id + "." + node.attr]
    return []


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
        f"{name}:{getattr(node, 'lineno', 1)}: {newer} is not in Python {OLDEST[0]}.{OLDEST[1]}"
        for node in ast.walk(tree) for newer in [name for name in names(node) if name in NEWER] + late_syntax(node)
    ]


def main():
    root = sys.argv[1]
    scripts = build_scripts(root) + packaged(root)
    found = [line for name in scripts for line in wrong(os.path.join(root, name), name)]
    print(*found or [f"{len(scripts)} scripts"], sep="\n")
    sys.exit(1 if found or not scripts else 0)


main()
