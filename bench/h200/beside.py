# SPDX-License-Identifier: MIT
"""An online server and offline trainings on an NVIDIA GPU, and gpreemptd between them. What the measurements share; not one itself."""

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
# What stands in gpreemptd.conf; None: training rests
EXCLUSIVE, YIELD, PARKING = None, "park = 0\n", "park = 2\n"


class Program:
    def __init__(self, prefix, name, client_class, folder, weight=100):
        env = dict(os.environ, LD_PRELOAD=f"{prefix}/lib/libgpreempt-agent.so", GPREEMPT_SOCKET=f"{folder}/gpreemptd.sock", GPREEMPT_CLASS=client_class,
                   GPREEMPT_WEIGHT=str(weight), PYTHONPATH=f"{prefix}/share/gpreempt/python", GPREEMPT_LIBRARY=f"{prefix}/lib/libgpreempt.so.0")
        self.name, self.weight = name, weight
        self.process = subprocess.Popen([sys.executable, f"{HERE}/{name}.py"], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def ready(self):
        for line in self.process.stdout:
            if line.strip() == "ready":
                return
        sys.exit(f"{self.name}.py did not start")

    def tell(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()


class Training(Program):
    def __init__(self, prefix, folder, weight=100):
        super().__init__(prefix, "train", "offline", folder, weight)
        self.seen, self.pauses = [(0.0, 0)], []

    def follow(self):
        for line in self.process.stdout:
            word, number, _, at = line.split()
            if word == "layers":
                self.seen.append((float(at), int(number)))
            else:
                self.pauses.append((float(at), float(number)))

    def ready(self):
        super().ready()
        threading.Thread(target=self.follow, daemon=True).start()

    def rate(self, begin, end):
        inside = [(at, layers) for at, layers in self.seen if begin <= at <= end]
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0]) if len(inside) > 1 else 0.0


class Bench:
    """The server stands still between rows; trainings rest or go."""

    def __init__(self, prefix, server="serve", weights=(100,)):
        self.prefix, self.folder = prefix, tempfile.mkdtemp()
        self.rows, self.alones, self.trains, self.daemon = [], [], [], None
        self.conf = f"{self.folder}/gpreemptd.conf"
        self.serves = Program(prefix, server, "online", self.folder)
        self.add_trainings(*weights)
        self.serves.ready()

    def add_trainings(self, *weights):
        new = [Training(self.prefix, self.folder, weight) for weight in weights]
        for one in new:
            one.ready()
        self.trains += new

    def gpreempt(self, *words):
        return subprocess.run([f"{self.prefix}/bin/gpreempt", *words], env=dict(os.environ, GPREEMPT_SOCKET=f"{self.folder}/gpreemptd.sock"), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout

    def start_daemon(self, *options):
        self.daemon = subprocess.Popen([f"{self.prefix}/bin/gpreemptd", "--config", self.conf, "--socket", f"{self.folder}/gpreemptd.sock", *options])
        time.sleep(4)  # the agents look for it every now and then
        print(self.gpreempt("ps"), flush=True)

    def configure(self, text):
        with open(self.conf, "w", encoding="utf-8") as file:
            file.write("[scheduler]\n" + text)
        if self.daemon is None:
            self.start_daemon()
        else:
            self.daemon.send_signal(signal.SIGHUP)
        time.sleep(0.3)

    def train(self, does):
        for one in self.trains:
            one.tell("go" if does else "rest")

    def row(self, name, rate, count, seed, trains=True):
        self.train(trains)
        time.sleep(0.7)
        begin = time.monotonic()
        self.serves.tell(f"serve {rate} {count} {seed}")
        found = json.loads(self.serves.process.stdout.readline())
        end = time.monotonic()
        clock = gpu("clocks.sm,power.draw,clocks_event_reasons.active")
        service = statistics.mean(found.pop("service_us"))
        each = [one.rate(begin, end) for one in self.trains]
        found.update(row=name, seed=seed, service_mean_us=service, layers_per_s=sum(each), gpu=clock)
        if len(each) > 1:
            found.update(layers_per_s_of=each, pauses=[[list(p) for p in one.pauses if begin <= p[0] <= end] for one in self.trains])
        self.rows.append(found)
        print(f"# {name} {rate}/s seed {seed}: p50 {at(found, 50):.0f} p99 {at(found, 99):.0f} queued {found['queued']}"
              f" layers/s {[round(x) for x in each]} ({clock})", flush=True)

    def alone(self, seconds=4):
        self.train(True)
        time.sleep(1)
        begin = time.monotonic()
        time.sleep(seconds)
        self.alones.append(sum(one.rate(begin, time.monotonic()) for one in self.trains))
        print(f"# training alone: {self.alones[-1]:.0f} layers/s", flush=True)

    def end(self):
        for program in (self.serves, *self.trains):
            program.process.kill()
        if self.daemon:
            self.daemon.terminate()

    def found(self):
        return {"machine": gpu("name,driver_version"), "alone_layers_per_s": self.alones, "rows": self.rows}


def gpu(what):
    """By nvidia-smi, or nothing."""
    return subprocess.run(["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader"], text=True, stdout=subprocess.PIPE, check=False).stdout.strip()


def at(row, percent):
    values = sorted(row["latency_us"])
    return values[min(len(values) - 1, int(len(values) * percent / 100))]


def some(rows, name):
    return [row for row in rows if row["row"] == name]


def p(rows, percent):
    return statistics.median(at(row, percent) for row in rows)


def run(measure, table, usage):
    """measure() returns what was found; its table comes last, from the same dictionary that --again reads."""
    if len(sys.argv) == 3 and sys.argv[1] == "--again":
        with open(sys.argv[2], encoding="utf-8") as kept:
            table(json.load(kept))
        return
    if len(sys.argv) not in (2, 3):
        sys.exit(usage)
    found = measure(os.path.abspath(sys.argv[1]))
    if len(sys.argv) == 3:
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            json.dump(found, file, separators=(",", ":"))
    table(found)
