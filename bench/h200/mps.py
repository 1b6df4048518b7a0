#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""mps.py PREFIX [OUT]: one online server and one offline training as clients of NVIDIA's MPS, where the machine has its control program.
mps.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed, of which nothing but its Python package is used. The same programs and arrivals as of rows.py. Prints a table last;
OUT: a file for all of it as JSON.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time

import beside

REQUESTS = {50: 500, 300: 3000}  # 10 s of each; at 300/s it falls behind without end
WARM = 50


@contextlib.contextmanager
def control():
    """The control program with folders of its own, and the environment of its clients."""
    folder = tempfile.mkdtemp()
    env = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    subprocess.run(["nvidia-cuda-mps-control", "-d"], env=dict(os.environ, **env), check=True)
    try:
        yield env
    finally:
        time.sleep(1)
        subprocess.run(["nvidia-cuda-mps-control"], env=dict(os.environ, **env), input="quit\n", text=True, check=False, timeout=20)
        shutil.rmtree(folder, ignore_errors=True)


def measure(prefix):
    if not shutil.which("nvidia-cuda-mps-control"):
        return {"machine": beside.machine(), "skipped": "there is no nvidia-cuda-mps-control here"}
    with control() as env:
        with beside.Bench(prefix, env=env, with_bare=False) as bench:
            bench.alone(2)
            for rate, count in REQUESTS.items():
                bench.row("exclusive", rate, count, 1, trains=False, warm=WARM, hints=False)
                bench.row("MPS", rate, count, 1, warm=WARM, hints=False)
    return bench.found()


def table(found):
    print(f"Measured on {found['machine']}. ResNet-50, batches of 8, beside the training of a transformer, both by MPS; us from intended arrival.")
    if "skipped" in found:
        print(f"Skipped: {found['skipped']}")
        return
    print(f"{'row':20} {'rate':>5} {'n':>6} {'p50':>8} {'p95':>8} {'p99':>8} {'of excl.':>8} {'offline':>8}")
    for rate in REQUESTS:
        base = beside.some(found["rows"], "exclusive", rate)
        for name in ("exclusive", "MPS"):
            these = beside.some(found["rows"], name, rate)
            if not these:
                continue
            print(f"{name:20} {rate:5} {len(these[0]['latency_us']):6} {beside.p(these, 50):8.0f} {beside.p(these, 95):8.0f} {beside.p(these, 99):8.0f}"
                  f" {beside.p(these, 99) / beside.p(base, 99):8.2f} {these[0]['layers_per_s'] / beside.alone(found):8.2f}")
    beside.clocks(found)


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
