#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""held.py LIBRARY LEVEL KIND STEPS: program.py's KIND, on the default stream, while LIBRARY (held.c) suspends and resumes that stream at LEVEL (1 throttle, 2 gate).

Prints what program.py does, and "held N" last: how often it was suspended.
"""

import ctypes
import sys

import program


def main(library, level, kind, steps):
    holder = ctypes.CDLL(library)
    if holder.held_start(int(level)):
        sys.exit("held.py: no thread")
    program.main(kind, steps)
    print(f"held {holder.held_stop()}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
