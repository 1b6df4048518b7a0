#!/bin/sh
# SPDX-License-Identifier: MIT
# PyTorch training beside serving: train.py gives way to each of 40 requests to serve.py.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
port=${PORT:-8000}
# The package, as it is installed and in the source tree.
export PYTHONPATH="${PYTHONPATH:-$here/../../../gpreempt/python:$here/../python}"

gpreempt run --offline --quiet -- python3 "$here/train.py" "${SECONDS_OF_TRAINING:-8}" &
train=$!
gpreempt run --online --quiet -- python3 "$here/serve.py" "$port" >/dev/null &
serve=$!
trap 'kill $serve $train 2>/dev/null || :' EXIT

python3 - "$port" <<'END'
import sys, time, urllib.request

def ask():
    return urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}", data=b"how long is this?", timeout=10).read()

for _ in range(300):  # until it listens
    try:
        ask()
        break
    except OSError:
        time.sleep(0.1)
for _ in range(40):
    ask()
    time.sleep(0.05)
END
gpreempt ps
gpreempt stats
wait $train
