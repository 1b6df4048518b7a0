#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Asks serve.py 40 times, 50 ms apart, once it listens: ask.py [PORT]."""

import sys
import time
import urllib.request

PATIENCE = 60  # s, until it listens


def ask():
    port = sys.argv[1] if len(sys.argv) > 1 else "8000"
    return urllib.request.urlopen(f"http://127.0.0.1:{port}", data=b"how long is this?", timeout=10).read()


end = time.monotonic() + PATIENCE
while True:
    try:
        ask()
        break
    except OSError as why:
        if time.monotonic() > end:
            sys.exit(f"{sys.argv[0]}: nobody answers: {why}")
        time.sleep(0.1)
for _ in range(40):
    ask()
    time.sleep(0.05)
