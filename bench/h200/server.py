# SPDX-License-Identifier: MIT
"""Requests by the clock, one after the other, with hints: what the programs that serve have in common.

Lines on standard input: "serve RATE COUNT SEED" or "end". Prints "ready", and for each serve a line of JSON: latencies in us
from the intended arrival, the service times, and how many requests had to queue.
"""

import json
import queue
import random
import sys
import threading
import time

import gpreempt


def arrivals(rate, count, seed):
    chance, at = random.Random(seed), 0.0
    for _ in range(count):
        at += chance.expovariate(rate)
        yield at


def come(line, rate, count, seed):
    """Hints go out when a request comes, whoever is served then."""
    begin = time.perf_counter() + 0.05
    for at in arrivals(rate, count, seed):
        while (wait := begin + at - time.perf_counter()) > 0:
            time.sleep(wait if wait < 0.0005 else wait - 0.0003) if wait > 0.0002 else None
        request = gpreempt.online()
        request.__enter__()
        line.put((begin + at, request))
    line.put(None)


def serve(server, rate, count, seed):
    line, latencies, services, queued, last = queue.SimpleQueue(), [], [], 0, 0.0
    threading.Thread(target=come, args=(line, rate, count, seed), daemon=True).start()
    while (one := line.get()) is not None:
        at, request = one
        server.request()
        now = time.perf_counter()
        request.__exit__(None, None, None)
        latencies.append((now - at) * 1e6)
        services.append((now - max(at, last)) * 1e6)
        queued += at < last
        last = now
    return {"rate": rate, "latency_us": [round(x) for x in latencies], "service_us": [round(x) for x in services], "queued": queued}


def main(server, warm):
    """server.request() serves one; so many do not count."""
    for _ in range(warm):
        server.request()
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "end":
            break
        print(json.dumps(serve(server, float(rest[0]), int(rest[1]), int(rest[2]))), flush=True)
