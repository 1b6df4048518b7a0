#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check-deps.py [ROOT]: a folder includes only what it may. Prints each breach, exits 1 if there is one."""

import os
import re
import sys

POLICY_H = "include/gpreempt/policy.h"
OWNED_H = "src/base/owned.h"  # a program that cannot load a policy runs another that can
LEVEL_API_H = "src/level/api.h"  # how it reaches an engine that is loaded beside it
POLICIES_H = "src/policy/registry.h"  # the core begins with one of them, and files name them

# What each folder may include, beside itself: folders, or single headers.
MAY = {
    "include": [],
    "src/base": [],
    "src/model": [],
    "src/wire": ["include", "src/base"],
    "src/ini": ["src/base", POLICIES_H],
    "src/policy": [POLICY_H, OWNED_H],
    "src/core": ["include", "src/base", POLICIES_H],
    "src/discover": ["include", "src/base"],
    "src/backend": ["include", "src/base", "src/model", "src/discover"],
    "src/machine": ["include", "src/base", "src/model", "src/core", "src/policy", "src/backend"],
    "src/cluster": ["src/base", "src/model", "src/machine"],
    "src/simgpu": ["include", "src/base", "src/wire", "src/model", "src/backend", "src/machine"],
    "src/level": ["include", "src/base", "src/wire", "src/backend", "src/agent"],
    "src/agent": ["include", "src/base", "src/wire", "src/backend"],
    "src/daemon": ["include", "src/base", "src/wire", "src/ini", "src/core", "src/policy", "src/discover", "src/backend"],
    "src/lib": ["include", "src/base", "src/wire", LEVEL_API_H, "src/model", "src/core", "src/policy", "src/backend", "src/discover", "src/machine"],
    "src/study": ["src/base", "src/ini", "src/model", "src/policy", "src/machine", "src/cluster"],
    "src/metrics": ["include", "src/base"],
    "src/slurm": ["include", "src/base", "src/discover"],
    "src/cli": ["include", "src/base", "src/ini", "src/backend", "src/discover", "src/simgpu", "src/slurm", "src/study"],
}

# Freestanding: the compiler's integers and nothing else from outside, all in one header.
FREESTANDING = "src/model"
FREESTANDING_DOOR = "src/model/types.h"

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layer_of(path):
    parts = path.split("/")
    return parts[0] if parts[0] == "include" else "/".join(parts[:2])


def resolve(root, source, bracket, name):
    """The file of ours that an include means, or None for one of the system's."""
    places = ["src", "include"]
    if bracket == '"':
        places.insert(0, os.path.dirname(source))
    for place in places:
        path = os.path.normpath(os.path.join(place, name))
        if os.path.exists(os.path.join(root, path)):
            return path
    return None


def allowed(source, target):
    layer = layer_of(source)
    may = MAY[layer] + [layer]
    return layer_of(target) in may or target in may


def breach(root, source, bracket, name):
    """What is wrong with one include, or None."""
    layer = layer_of(source)
    target = resolve(root, source, bracket, name)
    if target:
        if allowed(source, target):
            return None
        shown = target if layer_of(target) == "include" else layer_of(target)
        return f"{layer} may not use {shown}"
    if layer == FREESTANDING and source != FREESTANDING_DOOR:
        return f"{layer} may not use <{name}>; only {FREESTANDING_DOOR} includes system headers"
    if bracket == '"':
        return f'"{name}" is no file of src or include'
    return None


def sources(root):
    for top in ("include", "src"):
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def check(root):
    """(number of files, breaches)"""
    count = 0
    wrong = []
    for source in sources(root):
        count += 1
        if layer_of(source) not in MAY:
            wrong.append(f"{source}:1: tools/check-deps.py does not say what {layer_of(source)} may use")
            continue
        with open(os.path.join(root, source), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                match = INCLUDE.match(line)
                why = match and breach(root, source, match[1], match[2])
                if why:
                    wrong.append(f"{source}:{number}: {why}")
    return count, wrong


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    count, wrong = check(root)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if not count:
        print(f"{root}: no sources here")
    sys.exit(1 if wrong or not count else 0)


main()
