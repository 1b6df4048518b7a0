#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check-clock.py [ROOT]: nothing in src is timed by the wall clock, which jumps. Prints each use that is not only shown,
exits 1 if there is one."""

import os
import re
import sys

WALL = re.compile(
    r"\b(?:CLOCK_REALTIME\w*|CLOCK_TAI\b|TIME_UTC\b"
    r"|(?:time|ftime|gettimeofday|timespec_get|pthread_\w+_timed\w+|sem_timedwait|mtx_timedlock|cnd_timedwait|mq_timed\w+)\s*\()"
)
COMMENT_OR_TEXT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
# What people read, or ask for: when something happened. One use in each.
SHOWN = {"src/cli/clock.c", "src/cli/cmd_list.c", "src/daemon/events.c", "src/daemon/log.c"}


def blank(found):
    return re.sub(r"[^\n]", " ", found[0])


def uses(root, path):
    """(line, word) of each"""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = COMMENT_OR_TEXT.sub(blank, file.read())
    return [(text.count("\n", 0, found.start()) + 1, found[0]) for found in WALL.finditer(text)]


def sources(root):
    for folder, _, names in os.walk(os.path.join(root, "src")):
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(folder, name), root)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    found = {path: uses(root, path) for path in sources(root)}
    wrong = [f"{path}:{line}: {word.rstrip('(')} is the wall clock, which jumps; take CLOCK_MONOTONIC"
             for path, all_uses in sorted(found.items()) for line, word in all_uses[1 if path in SHOWN else 0:]]
    wrong += [f"{path}:1: shows no time any more; tools/check-clock.py need not know it" for path in sorted(SHOWN) if not found.get(path)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


main()
