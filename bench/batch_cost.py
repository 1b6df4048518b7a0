#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""batch_cost.py [--times N] [--out FILE] [--again FILE]: stopping many queues at once, three ways, and through gpreemptd, on the driver with the series.

Runs bench/batch_cost.c and session_daemon_cost.py in the bed's machine and says what their rows come to; --again: from the rows of a file that --out wrote. Times
are software cost: an emulated processor whose clock counts instructions, and a kernel with all checkers on. Exits with 1 if a bar is missed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")
BUILD = os.path.abspath(os.environ.get("GPREEMPT_BUILD", os.path.join(ROOT, "build")))
MARK = "row: "
# (queues, what a session's stop may take of UPDATE_QUEUE's, all of them busy in one process)
BARS = [(12, 1 / 5), (24, 1 / 10)]
DAEMON_BAR = 1.5  # round trips that gpreemptd may add to a call


def measure(times):
    programs = ["bench/relay_cost", "gpreemptd", *(f"tests/kernel/{name}" for name in ("batch_cost", "session_cost", "target", "way_cost"))]
    subprocess.run(["ninja", "-C", BUILD, *programs], check=True, stdout=sys.stderr)
    command = [os.path.join(ROOT, "kernel", "bed", "run"), "--patched", "--build", BUILD,
               f"batch_cost {times}", os.path.join(ROOT, "bench", f"session_daemon_cost.py {times}")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + "The bed did not get through.")
    return [json.loads(line.partition(MARK)[2]) for line in done.stdout.splitlines() if MARK in line]


def find(rows, **wanted):
    return next(row for row in rows if all(row[key] == value for key, value in wanted.items()))


WAYS = [("update", "UPDATE_QUEUE"), ("debugger", "DBG_TRAP"), ("session", "session")]


def cell(row, what, packets, has_waves):
    """What one way takes, for a stop or for the way back: times in us, device cycles, all packets, waves saved."""
    sent = row[packets]
    words = [f"{row[what]['p50_ns'] / 1000:>6.0f}", f"{row[what]['p99_ns'] / 1000:>6.0f}", f"{sent['unmap']:>3.0f}",
             f"{sent['unmap'] + sent['query'] + sent['runlist']:>4.0f}"]
    return " ".join(words + [f"{sent['waves_saved']:>5.0f}"] * has_waves)


def part(rows, title, what, packets, has_waves):
    shapes = sorted({(row["busy"], row["processes"], row["queues"]) for row in rows if row["way"] == "session"})
    head = "   p50    p99 cyc pkts" + " waves" * has_waves
    print(f"{title:<21}" + "".join(f" | {name:<{len(head)}}" for _, name in WAYS).rstrip())
    print("queues processes     " + f" | {head}" * len(WAYS))
    for busy, processes, queues in shapes:
        cells = [cell(find(rows, way=way, busy=busy, processes=processes, queues=queues), what, packets, has_waves) for way, _ in WAYS]
        print(f"{queues:>6} {processes:>9} {'busy' if busy else 'idle'} | " + " | ".join(cells))


def table(rows):
    print("Software cost under emulation, us; device cycles, packets to the device and waves saved, of each call's mean.")
    part(rows, "off the GPU", "stop", "stop_packets", True)
    part(rows, "on again", "run", "run_packets", False)


def through_daemon(rows):
    """For each bare call of a session: (it, the same through gpreemptd, what that adds in round trips of a message)."""
    trip = statistics.median(row["round_trip"]["p50_ns"] for row in rows if "round_trip" in row)
    for bare in (row for row in rows if row["way"] == "ioctl"):
        row = find(rows, way="gpreemptd", queues=bare["queues"], processes=bare["processes"])
        yield bare, row, (row["stop"]["p50_ns"] - bare["stop"]["p50_ns"]) / trip


def daemon_table(rows):
    print("\nThe same stop through gpreemptd, p50 in us, and what it adds in round trips of a message")
    print(f"{'queues':>6} {'processes':>9} {'call':>8} {'gpreemptd':>9} {'trip':>6} {'adds':>5}")
    for bare, row, added in through_daemon(rows):
        print(f"{bare['queues']:>6} {bare['processes']:>9} {bare['stop']['p50_ns'] / 1000:>8.0f} {row['stop']['p50_ns'] / 1000:>9.0f}"
              f" {bare['round_trip']['p50_ns'] / 1000:>6.0f} {added:>5.2f}")


def judge(rows):
    """Whether all bars are met; says each."""
    results = []
    for queues, bar in BARS:
        at = {"queues": queues, "processes": 1, "busy": True}
        ratio = find(rows, way="session", **at)["stop"]["p50_ns"] / find(rows, way="update", **at)["stop"]["p50_ns"]
        results.append((ratio <= bar, f"{queues} busy queues: a session's stop is {ratio:.3f} of UPDATE_QUEUE's (bar {bar:g})"))
    many = [row for row in rows if row["way"] == "session"]
    results.append((all(row["stop_packets"]["unmap"] == 1 for row in many), "a session's stop is one cycle, for any queues and processes"))
    results.append((all(row["run_packets"]["query"] == 0 for row in many), "to run all again from an empty run list waits for no fence"))
    added = max(added for _, _, added in through_daemon(rows))
    results.append((added <= DAEMON_BAR, f"gpreemptd adds {added:.2f} round trips of a message at most (bar {DAEMON_BAR:g})"))
    for is_met, text in results:
        print(("met     " if is_met else "MISSED  ") + text)
    return all(is_met for is_met, _ in results)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--out")
    parser.add_argument("--again")
    options = parser.parse_args()
    if options.again:
        with open(options.again, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
    else:
        rows = measure(options.times)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"what": "software cost under emulation", "times": options.times, "rows": rows}, file, indent=1)
            file.write("\n")
    table(rows)
    daemon_table(rows)
    sys.exit(not judge(rows))


main()
