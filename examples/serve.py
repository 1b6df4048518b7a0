#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server that says when a request comes: serve.py [[ADDRESS:]PORT]. POST a text, and the answer is a number.

Offline work leaves the GPU while the request is prepared, and goes on when it is answered."""

import http.server
import sys
import time

import gpreempt

try:
    import torch
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layer = torch.nn.Linear(1024, 1024).to(device)
except ImportError:
    torch = None


def infer(text):
    """A model of one layer where there is PyTorch; else 10 ms of nothing."""
    if torch is None:
        time.sleep(0.01)
        return len(text)
    with torch.no_grad():
        return layer(torch.full((1, 1024), float(len(text)), device=device)).sum().item()  # waits for the GPU


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        with gpreempt.online():  # before the request is read: there is more time to make room
            text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = f"{infer(text)}\n".encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    address, _, port = (sys.argv[1] if len(sys.argv) > 1 else "8000").rpartition(":")
    with http.server.HTTPServer((address or "127.0.0.1", int(port)), Handler) as server:
        print("ready" if torch else "ready; no PyTorch: an answer is a wait of 10 ms", flush=True)
        server.serve_forever()
