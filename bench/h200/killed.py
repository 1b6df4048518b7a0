#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""killed.py PREFIX [OUT]: whether a CUDA program loses or repeats anything while gpreemptd is killed and started again, beside a server.
killed.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. Prints a table last; OUT: a file for all of it as JSON.
"""

import json
import os
import random
import subprocess
import threading
import time

import beside

KERNELS, ITERATIONS = os.environ.get("KERNELS", "8000"), "60000"
RATE, COUNT = 300, int(os.environ.get("COUNT", "7500"))
LEASE = "500ms"


class Work:
    """work.cu, to its end: its sum, and the longest time without a kernel that ended."""

    def __init__(self, program, env=None):
        self.sum, self.longest, self.done, self.begun = None, 0.0, "0", time.monotonic()
        self.process = subprocess.Popen([program, KERNELS, ITERATIONS], env=env, text=True, stdout=subprocess.PIPE)
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        last = None
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "sum":
                self.sum = words[1]
                continue
            self.done, at = words[1], float(words[3])
            self.longest, last = max(self.longest, at - (last or at)), at

    def end(self):
        self.process.wait(300)
        self.thread.join()
        return {"sum": self.sum, "seconds": time.monotonic() - self.begun, "longest_s": self.longest}


def kill_at_random(bench, work):
    chance, kills = random.Random(1), 0
    while work.process.poll() is None:
        time.sleep(chance.uniform(0.3, 3.0))
        bench.daemon.kill()
        bench.daemon.wait()
        kills += 1
        print(f"# killed at {time.monotonic() - work.begun:.1f} s, {work.done} kernels done", flush=True)
        time.sleep(chance.uniform(0.0, 1.0))
        bench.daemon = subprocess.Popen([f"{bench.prefix}/bin/gpreemptd", "--config", bench.conf, "--socket", f"{bench.folder}/gpreemptd.sock", "--lease", LEASE],
                                        stderr=subprocess.DEVNULL)
    return kills


def measure(prefix):
    bench = beside.Bench(prefix, weights=())
    program = f"{bench.folder}/work"
    try:
        subprocess.run(["nvcc", "-O2", "-arch=native", "-o", program, f"{beside.HERE}/work.cu"], check=True)
        alone = Work(program).end()
        print(f"# alone {alone}", flush=True)
        bench.configure(beside.PARKING)
        env = dict(os.environ, LD_PRELOAD=f"{prefix}/lib/libgpreempt-agent.so", GPREEMPT_SOCKET=f"{bench.folder}/gpreemptd.sock", GPREEMPT_CLASS="offline")
        bench.serves.tell(f"serve {RATE} {COUNT} 1")
        work = Work(program, env)
        kills = kill_at_random(bench, work)
        beside_it = work.end()
        served = json.loads(bench.serves.process.stdout.readline())
        print(bench.gpreempt("stats"))
    finally:
        bench.end()
    return {"machine": beside.gpu("name,driver_version"), "kills": kills, "alone": alone, "beside": beside_it, "served": len(served["latency_us"])}


def table(found):
    print(f"Measured on {found['machine']}. A CUDA program beside a server at {RATE}/s, gpreemptd killed at random.")
    same = found["alone"]["sum"] == found["beside"]["sum"] and found["alone"]["sum"] is not None
    print(f"gpreemptd killed -9        {found['kills']} times")
    print(f"sum, alone and then        {found['alone']['sum']} {found['beside']['sum']}: {'the same' if same else 'NOT THE SAME'}")
    print(f"seconds, alone and then    {found['alone']['seconds']:.1f} {found['beside']['seconds']:.1f}")
    print(f"longest without a kernel   {found['beside']['longest_s'] * 1e3:.0f} ms")
    print(f"requests served            {found['served']} of {COUNT}")


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
