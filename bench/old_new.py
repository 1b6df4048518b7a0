#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=3000 memory=3G instruction_ns=1 param=cus=8 param=poll_us=100
"""old_new.py [--again] [DIR]: the design notes' old way against their new one, through their two libraries, in the bed.

Suspend, 10 ms of online work, resume, 100 times, 100 ms apart, with 1, 3 and 10 queues, on the stock driver and on the one with
kernel/series: gpreempt verify compare --full. DIR (results/bed) gets stock/compare.json and patched/compare.json, which gpreempt
report compares. --again: no run, from the files of an earlier one. Times are software cost under emulation: the bed's clock goes by
instructions. They say nothing of a card.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "tests"))
import amd
import tap

INSIDE = "inside"  # the argument in the machine
MARK = "result: "
DRIVERS = {"stock": [], "patched": ["--patched"]}
CALLS = {"old": ("suspend_ms", "resume_ms"), "new": ("batch_unmap_ms", "fast_remap_ms")}
FIGURES = ("mean", "p50", "p95", "p99", "max")


def measure():
    """In the machine."""
    print("1..1")
    with tempfile.TemporaryDirectory() as folder, amd.Machine(folder, "--lease", "60s") as machine:
        tap.run("verify", "compare", "--full", "--job", "target", "--out", ".", cwd=folder, env={**machine.environment(), "GPREEMPT_QUIET": "1"}, timeout=2900)
        found = json.loads(tap.read(folder, "compare.json"))
    print(MARK + json.dumps(found), flush=True)
    print(("ok" if found["status"] == "passed" else "not ok") + " 1 - measured")


def run_bed(driver):
    build = os.path.abspath(os.environ.get("GPREEMPT_BUILD", tap.BUILD))
    subprocess.run(["ninja", "-C", build], check=True, stdout=sys.stderr)
    done = subprocess.run([os.path.join(tap.SOURCE, "kernel", "bed", "run"), *DRIVERS[driver], "--build", build, f"{os.path.abspath(__file__)} {INSIDE}"],
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + "The bed did not get through.")
    return next(json.loads(line.partition(MARK)[2]) for line in done.stdout.splitlines() if MARK in line)


def number(values):
    return " ".join(f"{value:>6.2f}" for value in values)


def line(driver, found, row):
    """Of one library with so many queues."""
    figures = [found["figures"][f"{row['way']}_{row['queues']}_{name}"] for name in (*CALLS[row["way"]], "online_ms")]
    cells = [number(one[name] for name in FIGURES) for one in figures]
    return f"{row['queues']:>6} {driver:<8} {row['way']:<8} {', '.join(row['taken']):<8} | " + " | ".join(cells)


def table(results):
    print("Software cost under emulation, ms: mean, p50, p95, p99 and the longest of 100.")
    print(f"queues driver   library  way      | {'off the GPU':<34} | {'on again':<34} | online end to end, 10 ms of it its own")
    for queues in (1, 3, 10):
        for driver, found in results.items():
            for row in (row for row in found["raw"]["compared"] if row["queues"] == queues):
                print(line(driver, found, row))


def median(values):
    return sorted(values)[(len(values) - 1) // 2]


def parts(results):
    """Of the ways that the drivers have: both libraries take them."""
    print("\nWhere that time went, by gpreemptd's events, medians: asking, the driver's calls, the answer. The new library's.")
    print(f"queues driver   | {'off the GPU':<20} | on again")
    for queues in (1, 3, 10):
        for driver, found in results.items():
            told = [[one for one in found["raw"]["parts_ms"][f"new_{queues}_{name}"] if one] for name in CALLS["new"]]
            print(f"{queues:>6} {driver:<8} | " + " | ".join(number(median([one[i] for one in every]) for i in range(3)) for every in told))


def gain(results, queues, number_of_call):
    old, new = (results[driver]["figures"][f"{way}_{queues}_{CALLS[way][number_of_call]}"]["mean"] for driver, way in (("stock", "old"), ("patched", "new")))
    return f"{old / new:.1f} times as fast, {100 * (1 - new / old):.0f} % saved"


def gains(results):
    print("\nThe old library on the stock driver, then the new one on the driver with the series, by the means:")
    for queues in (1, 3, 10):
        print(f"{queues:>6} off the GPU {gain(results, queues, 0)}; on again {gain(results, queues, 1)}")


def main():
    if sys.argv[1:] == [INSIDE]:
        measure()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="no run: the files of DIR")
    parser.add_argument("folder", metavar="DIR", nargs="?", default=os.path.join(tap.SOURCE, "results", "bed"))
    options = parser.parse_args()
    results = {}
    for driver in DRIVERS:
        path = os.path.join(options.folder, driver, "compare.json")
        if not options.again:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            tap.write(path, json.dumps(run_bed(driver), sort_keys=True) + "\n")
        results[driver] = json.loads(tap.read(path))
    table(results)
    parts(results)
    gains(results)


main()
