#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""serve.py: ResNet-50 in batches of 8 as a CUDA graph, requests by the clock, one after the other, with hints.

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
import torch


def resnet50():
    """As torchvision's; without it, which not every machine has."""
    def block(inner, width, stride, grows):
        layers = [torch.nn.Conv2d(inner, width, 1, bias=False), torch.nn.BatchNorm2d(width), torch.nn.ReLU(),
                  torch.nn.Conv2d(width, width, 3, stride, 1, bias=False), torch.nn.BatchNorm2d(width), torch.nn.ReLU(),
                  torch.nn.Conv2d(width, 4 * width, 1, bias=False), torch.nn.BatchNorm2d(4 * width)]
        return Block(torch.nn.Sequential(*layers), torch.nn.Sequential(
            torch.nn.Conv2d(inner, 4 * width, 1, stride, bias=False), torch.nn.BatchNorm2d(4 * width)) if grows else None)

    class Block(torch.nn.Module):
        def __init__(self, body, short):
            super().__init__()
            self.body, self.short = body, short

        def forward(self, x):
            return torch.relu(self.body(x) + (self.short(x) if self.short else x))

    parts = [torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False), torch.nn.BatchNorm2d(64), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1)]
    inner = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            parts.append(block(inner, width, stride if i == 0 else 1, i == 0))
            inner = 4 * width
    return torch.nn.Sequential(*parts, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(2048, 1000))


class Server:
    def __init__(self):
        torch.manual_seed(1)
        self.model = resnet50().cuda().half().eval().to(memory_format=torch.channels_last)
        self.input = torch.randn(8, 3, 224, 224, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)
        self.graph = torch.cuda.CUDAGraph()
        side = torch.cuda.Stream()
        with torch.no_grad(), torch.cuda.stream(side):
            for _ in range(5):
                self.model(self.input)
        torch.cuda.synchronize()
        with torch.no_grad(), torch.cuda.graph(self.graph):
            self.output = self.model(self.input)

    def request(self):
        self.graph.replay()
        torch.cuda.current_stream().synchronize()


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


def main():
    server = Server()
    for _ in range(50):
        server.request()
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "end":
            break
        print(json.dumps(serve(server, float(rest[0]), int(rest[1]), int(rest[2]))), flush=True)


main()
