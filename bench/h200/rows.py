#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""rows.py PREFIX [OUT]: one online server and one offline training on an NVIDIA GPU: exclusive, native, yield, yield with parking.
rows.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. Both programs stay up; every row of a repeat sees the same arrivals, and rows take turns.
Prints a table last; OUT: a file for all of it as JSON.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PREFIX = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else sys.exit(__doc__)
REPEATS = int(os.environ.get("REPEATS", "4"))
REQUESTS = {50: 400, 300: 2000, 500: 2000}
NATIVE_S = 8
ALONE_S = 4
# name: what stands in gpreemptd.conf, or None: training rests
ROWS = {
    "exclusive": None,
    "yield": "park = 0\n",
    "yield with parking": "park = 2\n",
}


class Program:
    def __init__(self, name, client_class, folder):
        env = dict(os.environ, LD_PRELOAD=f"{PREFIX}/lib/libgpreempt-agent.so", GPREEMPT_SOCKET=f"{folder}/gpreemptd.sock", GPREEMPT_CLASS=client_class,
                   PYTHONPATH=f"{PREFIX}/share/gpreempt/python", GPREEMPT_LIBRARY=f"{PREFIX}/lib/libgpreempt.so.0")
        self.process = subprocess.Popen([sys.executable, f"{HERE}/{name}.py"], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def ready(self):
        if self.process.stdout.readline().strip() != "ready":
            sys.exit("rows: a program did not start")

    def tell(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()


class Training(Program):
    def __init__(self, folder):
        super().__init__("train", "offline", folder)
        self.seen = [(0.0, 0)]

    def follow(self):
        for line in self.process.stdout:
            _, layers, _, at = line.split()
            self.seen.append((float(at), int(layers)))

    def rate(self, begin, end):
        inside = [(at, layers) for at, layers in self.seen if begin <= at <= end]
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0]) if len(inside) > 1 else 0.0


class Bench:
    def __init__(self, folder):
        self.folder, self.rows, self.alones = folder, [], []
        self.conf = f"{folder}/gpreemptd.conf"
        self.serves, self.trains = Program("serve", "online", folder), Training(folder)
        self.serves.ready()
        self.trains.ready()
        threading.Thread(target=self.trains.follow, daemon=True).start()
        self.daemon = None

    def gpreempt(self, *words):
        return subprocess.run([f"{PREFIX}/bin/gpreempt", *words], env=dict(os.environ, GPREEMPT_SOCKET=f"{self.folder}/gpreemptd.sock"), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout

    def configure(self, text):
        with open(self.conf, "w", encoding="utf-8") as file:
            file.write("[scheduler]\n" + text)
        if self.daemon is None:
            self.daemon = subprocess.Popen([f"{PREFIX}/bin/gpreemptd", "--config", self.conf, "--socket", f"{self.folder}/gpreemptd.sock"])
            time.sleep(4)  # the agents look for it every now and then
            print(self.gpreempt("ps"))
        else:
            self.daemon.send_signal(signal.SIGHUP)
        time.sleep(0.3)

    def row(self, name, rate, count, seed, trains=True):
        self.trains.tell("go" if trains else "rest")
        time.sleep(0.7)
        begin = time.monotonic()
        self.serves.tell(f"serve {rate} {count} {seed}")
        found = json.loads(self.serves.process.stdout.readline())
        end = time.monotonic()
        clock = gpu("clocks.sm,power.draw,clocks_event_reasons.active")
        service = statistics.mean(found.pop("service_us"))
        found.update(row=name, seed=seed, service_mean_us=service, layers_per_s=self.trains.rate(begin, end), gpu=clock)
        self.rows.append(found)
        print(f"# {name} {rate}/s seed {seed}: p50 {at(found, 50):.0f} p99 {at(found, 99):.0f} queued {found['queued']}"
              f" layers/s {found['layers_per_s']:.0f} ({clock})", flush=True)

    def alone(self):
        self.trains.tell("go")
        time.sleep(1)
        begin = time.monotonic()
        time.sleep(ALONE_S)
        self.alones.append(self.trains.rate(begin, time.monotonic()))
        print(f"# training alone: {self.alones[-1]:.0f} layers/s", flush=True)


def gpu(what):
    """By nvidia-smi, or nothing."""
    return subprocess.run(["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader"], text=True, stdout=subprocess.PIPE, check=False).stdout.strip()


def at(row, percent):
    values = sorted(row["latency_us"])
    return values[min(len(values) - 1, int(len(values) * percent / 100))]


def measure(bench):
    bench.alone()
    bench.alones.clear()  # its kernels were being chosen
    for rate in (50, 300):
        bench.row("native", rate, rate * NATIVE_S, 1)
    bench.configure(ROWS["yield"])
    for rate, count in REQUESTS.items():
        for seed in range(1, REPEATS + 1):
            bench.alone()
            for name, conf in ROWS.items():
                if conf is not None:
                    bench.configure(conf)
                bench.row(name, rate, count, seed, trains=conf is not None)
    print(bench.gpreempt("stats"), bench.gpreempt("ps"))


def table(found):
    rows, alone = found["rows"], statistics.median(found["alone_layers_per_s"])
    print(f"Measured on {found['machine']}. ResNet-50, batches of 8, beside the training of a transformer; us from intended arrival; medians of repeats.")
    print(f"Training alone: {min(found['alone_layers_per_s']):.0f} to {max(found['alone_layers_per_s']):.0f} layers/s, median {alone:.0f}.")
    print(f"{'row':20} {'rate':>5} {'n':>6} {'p50':>7} {'p95':>7} {'p99':>7} {'max':>8} {'of excl.':>8} {'offline':>8} {'harvest':>8}")
    for rate in sorted({row["rate"] for row in rows}):
        exclusive = [row for row in rows if row["row"] == "exclusive" and row["rate"] == rate]
        base = statistics.median(at(row, 99) for row in exclusive)
        busy = statistics.median(rate * row["service_mean_us"] / 1e6 for row in exclusive)
        for name in ("native", *ROWS):
            some = [row for row in rows if row["row"] == name and row["rate"] == rate]
            if not some:
                continue
            p = {q: statistics.median(at(row, q) for row in some) for q in (50, 95, 99, 100)}
            got = statistics.median(row["layers_per_s"] for row in some) / alone
            n = sum(len(row["latency_us"]) for row in some)
            print(f"{name:20} {rate:5.0f} {n:6} {p[50]:7.0f} {p[95]:7.0f} {p[99]:7.0f} {p[100]:8.0f} {p[99] / base:8.2f} {got:8.2f} {got / (1 - busy):8.2f}")


def main():
    folder = tempfile.mkdtemp()
    bench = Bench(folder)
    try:
        measure(bench)
    finally:
        for program in (bench.serves, bench.trains):
            program.process.kill()
        if bench.daemon:
            bench.daemon.terminate()
    found = {"machine": gpu("name,driver_version"), "alone_layers_per_s": bench.alones, "rows": bench.rows}
    table(found)
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            json.dump(found, file, separators=(",", ":"))


if sys.argv[1] == "--again":
    with open(sys.argv[2], encoding="utf-8") as kept:
        table(json.load(kept))
else:
    main()
