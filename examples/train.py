#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training loop: train.py [SECONDS]. Nothing in it knows of gpreempt: gpreempt run --offline -- ./train.py makes it give way.

Without PyTorch, or a GPU for it, it is a training job on the simulated GPU instead, which is a client of gpreemptd by itself."""

import os
import sys
import time

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
try:
    import torch
    has_gpu = torch.cuda.is_available()
except ImportError:
    has_gpu = False

if not has_gpu:
    os.execvp("gpreempt", ["gpreempt", "sim-client", "--offline", "--work", "train", "--name", "train.py", "--duration", f"{seconds:g}s"])

model = torch.nn.TransformerEncoderLayer(d_model=1024, nhead=16, batch_first=True).cuda()
optimizer = torch.optim.AdamW(model.parameters())
batch = torch.randn(32, 256, 1024, device="cuda")
steps, end = 0, time.monotonic() + seconds
while time.monotonic() < end:
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    torch.cuda.synchronize()
    steps += 1
print(f"{steps} steps in {seconds:g} s")
