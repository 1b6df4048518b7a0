#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""cluster_cost.py [--bar]: what clusters cost in the simulator. GPREEMPT_BUILD says which build.

Scenario E's load on each GPU (share/clusters/thousand.ini), on 10, 100 and 1,000 GPUs: CPU time of each simulated GPU-second,
whose ratio must stay about 1. With --bar, a thousand GPUs for an hour besides, on two processes: the bar is 10 minutes on two
cores that do nothing else, which is 1,200 s of CPU time, and 4 GiB.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CLUSTERS = os.path.join(SOURCE, "share", "clusters")
GPREEMPT = os.path.join(os.environ.get("GPREEMPT_BUILD", os.path.join(SOURCE, "build")), "gpreempt")
SECONDS = 60
MOST_RATIO = 1.5
MOST_CPU_S = 1200
MOST_MIB = 4096


def memory_kib(parent):
    """Of the process and its children, what they share counted once."""
    pids = [parent]
    try:
        with open(f"/proc/{parent}/task/{parent}/children") as f:
            pids += map(int, f.read().split())
    except OSError:
        return 0
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as f:
                total += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
        except (OSError, ProcessLookupError):
            pass
    return total


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(gpus, duration_s, folder):
    """CPU seconds, wall seconds, MiB."""
    with open(os.path.join(CLUSTERS, "thousand.ini")) as f:
        text = f.read().replace("gpus = 1000", f"gpus = {gpus}").replace("trace = ", f"trace = {CLUSTERS}/")
    path = os.path.join(folder, f"{gpus}.ini")
    with open(path, "w") as f:
        f.write(text)
    before, begin, most = cpu_s(), time.monotonic(), 0
    command = [GPREEMPT, "sim", "--cluster", path, "--jobs", "2", "--duration", f"{duration_s}s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            most = max(most, memory_kib(process.pid))
            time.sleep(0.2)
        row = [line for line in process.stdout.read().splitlines() if line.startswith("auto")]
    if process.returncode or not row:
        sys.exit(f"cluster_cost: {gpus} GPUs failed")
    return cpu_s() - before, time.monotonic() - begin, most / 1024, row[0]


def main():
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        costs = []
        for gpus in (10, 100, 1000):
            cpu, _, mib, _ = run(gpus, SECONDS, folder)
            costs.append(cpu / gpus / SECONDS)
            print(f"{gpus:5} GPUs for {SECONDS} s: {costs[-1] * 1e6:6.0f} us of CPU time per simulated GPU-second, {mib:5.0f} MiB")
        ratio = max(costs[1:]) / costs[0]
        print(f"a GPU-second on 100 or 1,000 GPUs costs {ratio:.2f} times one on 10 (bar {MOST_RATIO})")
        missed |= ratio > MOST_RATIO
        if "--bar" in sys.argv[1:]:
            cpu, wall, mib, row = run(1000, 3600, folder)
            print(f"1,000 GPUs for an hour: {cpu:.0f} s of CPU time (bar {MOST_CPU_S}), {wall:.0f} s by the clock, {mib:.0f} MiB (bar {MOST_MIB})\n{row}")
            missed |= cpu > MOST_CPU_S or mib > MOST_MIB
    sys.exit(missed)


main()
