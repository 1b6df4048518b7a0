#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""latency.py PREFIX [OUT]: how long the first kernel of an online program waits for offline kernels of 0.1 ms to endless on an NVIDIA GPU.
latency.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. native: no gpreemptd. yield: offline has slices of 1 us. suspend: offline is stopped first, by its
channels, and the time that takes counts. Prints a table last; OUT: a file for all of it as JSON.
"""

import os
import subprocess
import tempfile
import time

import beside
from beside import quantile

COUNT = int(os.environ.get("COUNT", "1000"))
LENGTHS = {"0.1 ms": 100_000, "0.5 ms": 500_000, "1 ms": 1_000_000, "2 ms": 2_000_000, "10 ms": 10_000_000, "endless": 0}
MECHANISMS = ("native", "yield", "suspend")


class Bench(beside.Bench):
    def __init__(self, prefix):
        self.found_us, self.kernels = {}, beside.compiled("kernels", tempfile.mkdtemp())  # before anything runs: it may fail
        super().__init__(prefix, servers=("probe",), weights=(), with_bare=False)

    def probe(self, mechanism, length, count=COUNT, pid=0):
        self.servers[0].tell(f"probe {count} {pid}")
        found = self.servers[0].answer()
        self.found_us.setdefault(mechanism, {})[length] = found
        print(f"# {mechanism}, {length}: p50 {quantile(found, 50):.0f} p99 {quantile(found, 99):.0f} us", flush=True)

    def beside_kernels(self, length, *mechanisms):
        env = dict(os.environ, **self.environment("offline"))
        offline = subprocess.Popen([self.kernels, str(LENGTHS[length])], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            offline.stdout.readline()
            time.sleep(1.0)
            for mechanism in mechanisms:
                self.probe(mechanism, length, pid=offline.pid if mechanism == "suspend" else 0)
        finally:
            offline.stdin.close()
            try:
                offline.wait(10)
            except subprocess.TimeoutExpired:
                offline.kill()
                offline.wait()


def measure(prefix):
    with Bench(prefix) as bench:
        bench.probe("exclusive", "none")
        for length in LENGTHS:
            bench.beside_kernels(length, "native")
        bench.configure(beside.YIELD)
        for length in LENGTHS:
            bench.beside_kernels(length, "yield", "suspend")
        print(bench.gpreempt("stats"))
    return dict(bench.how(), latency_us=bench.found_us)


def table(found):
    alone = found["latency_us"]["exclusive"]["none"]
    print(f"Measured on {found['machine']}. us from the launch of an empty kernel until its end is known; {len(alone)} for each field: p50, p99.")
    print(f"Alone: {quantile(alone, 50):.0f}, {quantile(alone, 99):.0f}.")
    print(f"{'offline kernels':16}" + "".join(f"{name:>18}" for name in MECHANISMS))
    for length in LENGTHS:
        fields = (found["latency_us"].get(name, {}).get(length) for name in MECHANISMS)
        print(f"{length:16}" + "".join(f"{quantile(us, 50):9.0f}{quantile(us, 99):9.0f}" if us else f"{'-':>18}" for us in fields))


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
