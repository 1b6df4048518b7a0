#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""train.py: a transformer is trained for as long as it is told, on CUDA.

Lines on standard input: "go", "rest" (ends the step under way), "end". Prints "ready", a line "layers N at SECONDS" every
tenth of a second: layers whose forward or backward pass the GPU has ended; and "pause LENGTH at SECONDS" after none had for
longer than PAUSE s, though there was work.
"""

import collections
import sys
import threading
import time

import torch

LAYERS, WIDTH, LENGTH, BATCH = 12, 1024, 512, 16
PAUSE = 0.05


class Trainer:
    def __init__(self):
        torch.manual_seed(1)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, batch_first=True, dropout=0.0)
        self.model = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).cuda().bfloat16()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.data = torch.randn(BATCH, LENGTH, WIDTH, device="cuda", dtype=torch.bfloat16)
        self.marks = collections.deque()
        self.layers, self.last = 0, time.monotonic()
        for one in self.model.layers:
            one.register_forward_hook(lambda *_: self.mark())
            one.register_full_backward_hook(lambda *_: self.mark())

    def mark(self):
        event = torch.cuda.Event()
        event.record()
        self.marks.append(event)

    def count(self):
        before, now = self.layers, time.monotonic()
        while self.marks and self.marks[0].query():
            self.marks.popleft()
            self.layers += 1
        if self.layers > before and now > self.last + PAUSE:
            print(f"pause {now - self.last:.4f} at {now:.4f}", flush=True)
        if self.layers > before or not self.marks:
            self.last = now

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.model(self.data).float().square().mean().backward()
        self.optimizer.step()
        while len(self.marks) > 4 * LAYERS:  # two steps ahead of the GPU, no more
            time.sleep(0.0005)
            self.count()


def main():
    trainer = Trainer()
    for _ in range(3):
        trainer.step()
    torch.cuda.synchronize()
    trainer.count()
    works, ends = threading.Event(), threading.Event()

    def obey():
        for line in sys.stdin:
            word = line.strip()
            if word == "go":
                works.set()
            elif word == "rest":
                works.clear()
            elif word == "end":
                break
        ends.set()

    threading.Thread(target=obey, daemon=True).start()
    print("ready", flush=True)
    said = 0.0
    while not ends.is_set():
        if works.is_set():
            trainer.step()
        else:
            time.sleep(0.002)
        trainer.count()
        if time.monotonic() > said + 0.1:
            said = time.monotonic()
            print(f"layers {trainer.layers} at {said:.4f}", flush=True)


main()
