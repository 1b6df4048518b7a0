#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""cluster_cost.py [--bar] [--out FILE] [--again FILE]: what clusters cost in the simulator. GPREEMPT_BUILD says which build.

Scenario E's load on each GPU (share/clusters/thousand.ini), on 10, 100 and 1,000 GPUs: CPU time of each simulated GPU-second, whose ratio must stay about 1.
With --bar, a thousand GPUs for an hour besides, by as many processes as the bar has cores: it must be done in 10 minutes by the clock, in 4 GiB. That is said
of a machine with two cores and nothing else to do: what others had of its cores meanwhile is told. --again: from a file that --out wrote. Exits with 1 if a bar
is missed.
"""

import argparse
import json
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
HOUR = 3600
CORES = 2
MOST_RATIO = 1.5
MOST_WALL_S = 600
MOST_MIB = 4096
LOOK_S = 0.2  # between two looks at its memory


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


def busy_s():
    """Of all cores, since the machine began, with what its host took from it"""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, soft, steal = map(int, f.readline().split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def machine():
    with open("/proc/cpuinfo") as f:
        names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return {"cpu": names[0] if names else "unknown", "cores": len(os.sched_getaffinity(0))}


def run(gpus, duration_s, folder):
    """What it cost; and what it came to, in words"""
    with open(os.path.join(CLUSTERS, "thousand.ini")) as f:
        text = f.read().replace("gpus = 1000", f"gpus = {gpus}").replace("trace = ", f"trace = {CLUSTERS}/")
    path = os.path.join(folder, f"{gpus}.ini")
    with open(path, "w") as f:
        f.write(text)
    before, busy, begin, most = cpu_s(), busy_s(), time.monotonic(), 0
    command = [GPREEMPT, "sim", "--cluster", path, "--jobs", str(CORES), "--duration", f"{duration_s}s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            most = max(most, memory_kib(process.pid))
            time.sleep(LOOK_S)
        row = [line for line in process.stdout.read().splitlines() if line.startswith("auto")]
    if process.returncode or not row:
        sys.exit(f"cluster_cost: {gpus} GPUs failed")
    cpu = cpu_s() - before
    return {"gpus": gpus, "simulated_s": duration_s, "cpu_s": round(cpu, 2), "wall_s": round(time.monotonic() - begin, 2), "mib": round(most / 1024, 1),
            "others_cpu_s": round(max(busy_s() - busy - cpu, 0), 2), "result": row[0]}


def measure(is_bar):
    with tempfile.TemporaryDirectory() as folder:
        rows = [run(gpus, SECONDS, folder) for gpus in (10, 100, 1000)]
        return {"schema": "gpreempt-cluster-cost-1", "machine": machine(), "rows": rows, "bar": run(1000, HOUR, folder) if is_bar else None}


def each(row):
    """CPU time of a simulated GPU-second, in us"""
    return row["cpu_s"] / row["gpus"] / row["simulated_s"] * 1e6


def judge_bar(row, cores):
    print(f"1,000 GPUs for an hour, on {cores} cores: {row['wall_s']:.0f} s by the clock (bar {MOST_WALL_S}), {row['cpu_s']:.0f} s of CPU time, "
          f"{row['mib']:.0f} MiB (bar {MOST_MIB}); others had {row['others_cpu_s']:.0f} s of the cores")
    print(row["result"])
    if cores != CORES:
        print(f"That is said of {CORES} cores: taskset -c 0,1 gives it so many.")
    return cores == CORES and row["wall_s"] <= MOST_WALL_S and row["mib"] <= MOST_MIB


def judge(said):
    for row in said["rows"]:
        memory = f"{row['mib']:.0f} MiB" if row["wall_s"] > 2 * LOOK_S else "over before its memory was seen"
        print(f"{row['gpus']:5} GPUs for {row['simulated_s']} s: {each(row):6.0f} us of CPU time per simulated GPU-second, {memory}")
    ratio = max(each(row) for row in said["rows"][1:]) / each(said["rows"][0])
    print(f"a GPU-second on 100 or 1,000 GPUs costs {ratio:.2f} times one on 10 (bar {MOST_RATIO})")
    is_met = ratio <= MOST_RATIO
    if said["bar"]:
        is_met &= judge_bar(said["bar"], said["machine"]["cores"])
    return is_met


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bar", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--again")
    options = parser.parse_args()
    if options.again:
        with open(options.again, encoding="utf-8") as file:
            said = json.load(file)
    else:
        said = measure(options.bar)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(said, file, indent=1)
            file.write("\n")
    sys.exit(not judge(said))


main()
