#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=120
"""The series' own KUnit tests, which the module runs when it is loaded."""

import os
import re
import sys

RESULTS = "/sys/kernel/debug/kunit/kfd_sched/results"
SESSIONS = "/sys/class/kfd/kfd/sched_version"


def main():
    if not os.path.exists(SESSIONS):
        print("1..0 # SKIP this driver has no scheduling sessions (kernel/bed/run --patched)")
        return 0
    with open(RESULTS, encoding="utf-8") as file:
        text = file.read()
    cases = re.findall(r"^ +(not ok|ok) \d+ (\w+)$", text, re.MULTILINE)
    for number, (result, name) in enumerate(cases, 1):
        print(f"{result} {number} - {name.replace('_', ' ')}")
    planned = re.search(r"^ +1\.\.(\d+)$", text, re.MULTILINE)
    print(f"1..{planned[1] if planned else 0}")
    if not cases or any(result != "ok" for result, _ in cases):
        print("\n".join("# " + line for line in text.splitlines()))
        return 1
    return 0


sys.exit(main())
