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

python3 "$here/ask.py" "$port"
gpreempt ps
gpreempt stats
wait $train
