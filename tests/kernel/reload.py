#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=240 vm=own kmemleak=yes stock-leaks-in=kfd_parse_crat_table
"""The driver comes and goes ten times, with work in between; the bed looks for what it leaves behind."""
import json
import os
import subprocess
import time

TIMES = 10
GONE = 60.0  # s; a process's queues go in a work item, after its last task is gone

numbers = iter(range(1, 1000))


def ok(condition, text):
    print(f"{'ok' if condition else 'not ok'} {next(numbers)} - {text}", flush=True)


def unload():
    end = time.monotonic() + GONE
    while subprocess.run(["/sbin/rmmod", "amdgpu"], capture_output=True, check=False).returncode:
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return not os.path.exists("/dev/kfd") and not os.path.exists("/sys/kernel/debug/softgpu")


with open("/run/bed/job.json", encoding="utf-8") as file:
    job = json.load(file)
aql = os.path.join(os.environ["GPREEMPT_BUILD"], "tests", "kernel", "aql")

for i in range(TIMES):
    ok(unload(), f"the driver goes, and nothing of it is left ({i + 1})")
    loaded = subprocess.run(["/sbin/insmod", job["module"], *job["params"]], check=False).returncode == 0
    ok(loaded and os.path.exists("/dev/kfd"), "it comes again")
    if i in (0, TIMES - 1):
        done = subprocess.run([aql], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        said = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
        print("".join(f"# {line}\n" for line in said), end="")
        ok(done.returncode == 0, f"and works ({done.returncode})" if done.returncode else "and works")
print(f"1..{next(numbers) - 1}")
