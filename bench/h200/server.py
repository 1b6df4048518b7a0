# SPDX-License-Identifier: MIT
"""Requests by the clock: what the programs that serve have in common.

Lines on standard input: "serve" and what to serve, as JSON: shape, rate, count and seed as load.py takes them; warm: so many come before, and do
not count; hints: at arrival and at completion; is_async: a request is sent to the GPU when it comes, whatever is there still, else one is served
after the other. Or "repeat SECONDS": one after the other, without a clock and without hints. Prints "ready", and for each line one of JSON:
latencies in us from the intended arrival, and service times: from the end of the one before, or the arrival where that is later; or how many were served
in how many seconds. begin_s and end_s: the first arrival that counts and the end of the last one, of the clock that all processes share.
"""

import contextlib
import json
import os
import queue
import struct
import subprocess
import sys
import threading
import time

import gpreempt

LOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.py")
STARTS = 0.2  # s that load.py needs


def come(line, spec):
    """Hints go out when a request comes, whoever is served then."""
    words = [spec["shape"], spec["rate"], spec["warm"] + spec["count"], spec["seed"], time.perf_counter() + STARTS]
    with subprocess.Popen([sys.executable, "-S", LOAD, *map(str, words)], stdout=subprocess.PIPE, bufsize=0,
                          env={key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}) as load:
        while packed := load.stdout.read(8):
            request = gpreempt.online() if spec["hints"] else contextlib.nullcontext()
            request.__enter__()
            line.put((struct.unpack("d", packed)[0], request))
    line.put(None)


class Times:
    def __init__(self):
        self.latencies, self.services, self.came, self.last = [], [], [], 0.0

    def end(self, at, request):
        now = time.perf_counter()
        request.__exit__(None, None, None)
        self.came.append(at)
        self.latencies.append((now - at) * 1e6)
        self.services.append((now - max(at, self.last)) * 1e6)
        self.last = now


def serve_each(server, line, times):
    while (one := line.get()) is not None:
        server.request()
        times.end(*one)


def wait_for_each(sent, times):
    while (one := sent.get()) is not None:
        one[0].synchronize()
        times.end(*one[1:])


def serve_async(server, line, times):
    sent = queue.SimpleQueue()
    waits = threading.Thread(target=wait_for_each, args=(sent, times), daemon=True)
    waits.start()
    while (one := line.get()) is not None:
        sent.put((server.send(), *one))
    sent.put(None)
    waits.join()


def serve(server, spec):
    line, times = queue.SimpleQueue(), Times()
    threading.Thread(target=come, args=(line, spec), daemon=True).start()
    (serve_async if spec["is_async"] else serve_each)(server, line, times)
    warm = spec["warm"]
    return {"latency_us": [round(x) for x in times.latencies[warm:]], "service_us": [round(x) for x in times.services[warm:]],
            "begin_s": times.came[warm], "end_s": times.last}


def repeat(server, seconds):
    served, begin = 0, time.perf_counter()
    while (passed := time.perf_counter() - begin) < seconds:
        server.request()
        served += 1
    return {"served": served, "seconds": passed}


def main(server, warm):
    """server.request() serves one; server.send() sends one and returns an event; so many do not count."""
    for _ in range(warm):
        server.request()
    print("ready", flush=True)
    for line in sys.stdin:
        word, rest = line.split(maxsplit=1)
        print(json.dumps(serve(server, json.loads(rest)) if word == "serve" else repeat(server, float(rest))), flush=True)
