#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""levels.py PREFIX [OUT]: throttle, gate, yield and interrupt on an NVIDIA GPU: how long each takes to have an offline kernel off it, and what each costs.
levels.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. Throttle and gate: two streams of one process (two_priorities.c). Yield and interrupt: two processes, since the streams
of one share a channel group. First of all: how many launches may wait at a gate.
What fails or stands still is said, and the rest goes on; it ends in seven minutes. Prints a table last; OUT: a file for all of it as JSON.
"""

import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import beside
import latency
from beside import HERE, quantile

BUDGET_S, PART_S = 380, {"torch": 180}  # in all, and for a part if not two minutes
TIMES = int(os.environ.get("TIMES", "150"))
LENGTHS_US = {"0.1 ms": 100, "0.5 ms": 500, "1 ms": 1000, "2 ms": 2000}
SLACK_US, MOST_OVERHEAD, LEAST_RATIO = 20, 1.02, 3
STREAMS = ((2, 1, "1"), (3, 1, "8"), (8, 4, "8"), (14, 8, ""), (40, 8, ""), (64, 8, ""))  # so many, more of a higher priority, connections; one more has launched, and rests
NODES, DEEP, MOST_NEIGHBOUR_US = (0, 64), 128, 10000  # DEEP: as in src/level/cuda.c
LEVELS = {"throttle": 1, "gate": 2}
RATIO_US, RATIO_TIMES = 1000, 200
KINDS, STEPS = ("eager training", "graph training"), 200
CUPTI_PLACES = ("/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so.*", "/usr/local/cuda*/lib64/libcupti.so.*", "/usr/local/cuda*/lib/libcupti.so.*",
                f"{sys.prefix}/lib*/python3*/site-packages/nvidia/*/lib/libcupti.so.*")


class Side(beside.Program):
    """two_priorities as a process of its own."""

    def __init__(self, words, env):
        self.name, self.words = "two_priorities", words
        self.process = subprocess.Popen([*map(str, words)], env=dict(os.environ, **env), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def ready(self):
        """What stands behind the word."""
        word, *more = self.process.stdout.readline().split() or ("",)
        if word != "ready":
            raise RuntimeError(f"two_priorities {self.words[1:]} did not start: {self.process.wait()}")
        return more[0] if more else None

    def since_last(self):
        """What the low one did since it was asked before."""
        self.tell("")
        return self.answer()


class Levels:
    def __init__(self, prefix):
        self.prefix, self.folder, self.end = prefix, tempfile.mkdtemp(), time.monotonic() + BUDGET_S
        self.found = {"machine": beside.machine(), "failed": {}, "rows": [], "latency_us": {}, "ratios": {}, "sums": {}, "door": ""}

    def left(self):
        return max(1.0, self.end - time.monotonic())

    def compiled(self, source, name, *options):
        library = f"{self.prefix}/lib"
        subprocess.run(["nvcc", "-O2", f"-I{self.prefix}/include", "-o", f"{self.folder}/{name}", f"{HERE}/{source}", *options, f"-L{library}", "-l:libgpreempt.so.0",
                        "-lcuda", "-lpthread", "-Xlinker", f"-rpath={library}"], check=True, timeout=100)
        return f"{self.folder}/{name}"

    def door(self, is_torch=False):
        """A PyTorch has a CUPTI of its own, which is loaded by then."""
        cupti = os.environ.get("GPREEMPT_CUPTI") or max((path for pattern in CUPTI_PLACES for path in glob.glob(pattern)), default="")
        return {"CUDA_INJECTION64_PATH": f"{self.prefix}/lib/libgpreempt-level.so", "GPREEMPT_CUPTI": "" if is_torch else cupti}

    def two(self, *words, limit=60, **env):
        """What two_priorities found; also what it had when its time was over."""
        process = subprocess.Popen([f"{self.folder}/two_priorities", *map(str, words)], env=dict(os.environ, **self.door(), **env), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, error = process.communicate(timeout=min(limit, self.left()))
        except subprocess.TimeoutExpired:
            process.kill()
            out, error = process.communicate()
            error = f"it stood still\n{error}"
        finally:  # the part's own time may be over too
            process.kill()
            process.wait()
        rows = [json.loads(line) for line in out.splitlines() if line.startswith("{") and line.endswith("}")]
        self.found["rows"] += rows
        if process.returncode:
            raise RuntimeError(f"two_priorities {words}: {process.returncode}: {error.strip()}")
        missing = [row["level"] for row in rows if row["what"] == "missing"]
        if missing:
            raise RuntimeError(f"two_priorities {words}: there is no {', '.join(missing)} here: the door is shut")

    # The parts

    def part_build(self):
        self.compiled("two_priorities.c", "two_priorities")

    def part_door(self):
        said = subprocess.run([f"{self.prefix}/bin/gpreempt", "doctor", "--json"], env=dict(os.environ, **self.door()), text=True, stdout=subprocess.PIPE, check=False)
        self.found["door"] = next((f"{one['state']}: {one['detail'].split(': CUDA_INJECTION64_PATH')[0]}" for one in json.loads(said.stdout)["checks"] if one["what"] == "CUDA levels"), "")

    def part_throttle_and_gate(self):
        for us in LENGTHS_US.values():
            self.two("levels", us, TIMES)

    def part_alone(self):
        self.two("alone", 100, 2000)

    def part_streams(self):
        for streams, above, connections in STREAMS:
            self.two("streams", streams, above, limit=20, **({"CUDA_DEVICE_MAX_CONNECTIONS": connections} if connections else {}))

    def part_deep(self):
        for nodes in NODES:
            self.two("deep", nodes, limit=20)

    def part_torch(self):
        self.compiled("held.c", "libheld.so", "-shared", "-Xcompiler", "-fPIC")
        for kind in KINDS:
            self.run_program(kind, "none")
            for level in LEVELS:
                self.run_program(kind, level)

    def run_program(self, kind, level):
        """Its sum, and how often it was held."""
        words = ["program.py"] if level == "none" else ["held.py", f"{self.folder}/libheld.so", str(LEVELS[level])]
        env = {} if level == "none" else self.door(is_torch=True)
        said, error = {}, None
        try:
            done = subprocess.run([sys.executable, f"{HERE}/{words[0]}", *words[1:], kind, str(STEPS)], env=dict(os.environ, **env), input="go\n", text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=min(60, self.left()), check=False)
            said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith(("sum ", "held ")))
            error = None if done.returncode == 0 else f"{done.returncode}: {(done.stderr.splitlines() or [''])[-1]}"
        except subprocess.TimeoutExpired:
            error = "it stood still"
        self.found["sums"].setdefault(kind, {})[level] = dict(said, error=error)
        print(f"# {kind}, {level}: {said}", flush=True)

    def part_latency(self):
        bench = latency.Bench(self.prefix)
        try:
            bench.configure(beside.YIELD)
            for length in LENGTHS_US:
                if self.left() > 60:
                    bench.beside_kernels(length, "yield", "suspend")
        finally:
            self.found["latency_us"] = bench.found_us
            bench.end()

    def part_ratios(self):
        bench = beside.Bench(self.prefix, servers=(), weights=())
        try:
            bench.configure(beside.YIELD)
            for name in ("yield", "interrupt"):
                self.ratio(bench, name)
        finally:
            bench.end()

    def ratio(self, bench, name):
        """Tasks of two processes, with hints or with the other suspended, both over the time in which the high one has them."""
        program = f"{self.folder}/two_priorities"
        low = Side((program, "low", RATIO_US), bench.environment("offline"))
        bench.trains = [low]
        try:
            turns = low.ready()
            bench.wait_until_known()
            high = Side((program, "high", RATIO_US, RATIO_TIMES, low.pid if name == "interrupt" else 0, turns), bench.environment("online"))
            bench.servers = [high]
            high.ready()
            bench.wait_until_known()
            low.since_last()
            high.tell("")
            high_us = high.answer()["high_us"]
            self.found["ratios"][name] = {"high_us": high_us, "low_us": low.since_last()["low_us"]}
        finally:
            bench.end_programs()


PARTS = ("build", "door", "deep", "throttle_and_gate", "alone", "ratios", "torch", "latency")


def give_up(_number, _frame):
    raise TimeoutError("it stood still")


def measure(prefix, parts=PARTS):
    """As it grows: whatever happens later, what there is is kept."""
    levels = Levels(prefix)
    signal.signal(signal.SIGALRM, give_up)
    for name in parts:
        begin = time.monotonic()
        try:
            if levels.left() <= 10:
                raise TimeoutError("no time was left")
            signal.alarm(int(min(levels.left(), PART_S.get(name, 120))))
            getattr(levels, f"part_{name}")()
        except (Exception, SystemExit) as why:  # pylint: disable=broad-except
            levels.found["failed"][name] = f"{type(why).__name__}: {why}"
            traceback.print_exc()
        signal.alarm(0)
        print(f"# {name}: {time.monotonic() - begin:.0f} s{', FAILED' if name in levels.found['failed'] else ''}", flush=True)
        yield levels.found


def rows_of(found, what, **more):
    return [row for row in found["rows"] if row["what"] == what and all(row[key] == value for key, value in more.items())]


def verdict(holds):
    return "" if holds else "  NOT KEPT"


def preempted(found, mechanism, us):
    """(us of each, and what they may be at the most; None: no such bar)"""
    if mechanism in LEVELS:
        rows = rows_of(found, "off", level=mechanism, kernel_us=us)
        return ([x for row in rows for x in row["us"]], rows[0]["in_flight"] * rows[0]["unheld_us"] + SLACK_US) if rows else ([], None)
    name = next(length for length, one in LENGTHS_US.items() if one == us)
    return found["latency_us"].get({"yield": "yield", "interrupt": "suspend"}[mechanism], {}).get(name, []), None


def measured_of(found, mechanism, us):
    """Columns: how long such a kernel took, in a chain that nobody held, and how many ended at the most after a suspend."""
    rows = rows_of(found, "off", level=mechanism, kernel_us=us)
    return f"{rows[0]['unheld_us']:9.1f} {max(row['most_ended'] for row in rows):6}" if rows else f"{'-':>9} {'-':>6}"


def latencies(found):
    print("Preemption, us: throttle and gate from the suspend until the last offline kernel has ended; yield and interrupt until an empty online kernel has.")
    print("kernel: as long as one takes in a chain that is not held, just before; bar: one of them at the gate, as many as may be in flight at the throttle, and"
          f" {SLACK_US} us; ended: offline kernels after a suspend, at the most")
    print(f"{'offline kernels':16} {'level':10} {'kernel':>9} {'ended':>6} {'n':>5} {'p50':>8} {'p99':>8} {'bar':>8}")
    for length, us in LENGTHS_US.items():
        for mechanism in (*LEVELS, "yield", "interrupt"):
            values, bar = preempted(found, mechanism, us)
            columns = f"{length:16} {mechanism:10} {measured_of(found, mechanism, us)} {len(values):5}"
            if values:
                p99 = quantile(values, 99)
                print(f"{columns} {quantile(values, 50):8.0f} {p99:8.0f} {'-' if bar is None else f'{bar:.0f}':>8}{verdict(bar is None or p99 <= bar)}")
            else:
                print(f"{columns} {'-':>8} {'-':>8}")


def ratios(found):
    print("Tasks of four kernels, of a high and a low priority, over the time in which the high one has nine tenths of it: 1 where nobody is preferred, 10 where preemption is for nothing.")
    print(f"{'tasks':16} {'level':10} {'high us':>9} {'low us':>9} {'low/high':>9}")
    for row in rows_of(found, "tasks"):
        print(f"{row['kernel_us'] / 1000:13g} ms {row['level']:10} {row['high_us']:9.0f} {row['low_us']:9.0f} {row['ratio']:9.2f}")
    for name, row in found["ratios"].items():
        ratio = row["low_us"] / row["high_us"]
        print(f"{RATIO_US / 1000:13g} ms {name:10} {row['high_us']:9.0f} {row['low_us']:9.0f} {ratio:9.2f}{verdict(ratio > LEAST_RATIO)}  (two processes: the streams"
              " of one share a channel group)")


def costs(found):
    for level in LEVELS:
        rows = rows_of(found, "alone", level=level)
        if rows:  # the least of each: what else the machine does makes it longer
            ratio = min(row["ours_us"] for row in rows) / min(row["plain_us"] for row in rows)
            print(f"{level}, with nobody to preempt, kernels of 0.1 ms: {ratio:.4f} times as long{verdict(ratio <= MOST_OVERHEAD)}")


def deep(found):
    for row in rows_of(found, "deep"):
        what = f"graphs of {row['nodes']} kernels" if row["nodes"] else "kernels"
        holds = row["went_in"] == DEEP and row["neighbour_us"] <= MOST_NEIGHBOUR_US
        print(f"A closed gate lets {row['went_in']} {what} wait; then a launch of another stream takes {row['neighbour_us']:.0f} us at the most{verdict(holds)}")


def sameness(level, said, by_level):
    if said.get("sum") is None or said["sum"] != by_level.get("none", {}).get("sum") or said["error"]:
        return "DIFFERS"
    return "the same" if level == "none" or int(said.get("held", 0)) > 0 else "NOT SHOWN"


def correct(found):
    for kind, by_level in found["sums"].items():
        for level, said in by_level.items():
            print(f"PyTorch, {kind}, {level:10} held {said.get('held', '-'):>5} times: {sameness(level, said, by_level)}{'  ' + said['error'] if said['error'] else ''}")


def table(found, parts=(deep, latencies, ratios, costs, correct)):
    print(f"Measured on {found['machine']}. CUDA's door: {found['door'] or 'unknown'}")
    for part in parts:
        try:
            part(found)
        except Exception as why:  # pylint: disable=broad-except
            print(f"FAILED: {part.__name__}: {type(why).__name__}: {why}")
    for name, why in found["failed"].items():
        print(f"FAILED: {name}: {why}")


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
