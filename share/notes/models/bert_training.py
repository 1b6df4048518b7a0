#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The design notes' models/bert_training.py: training of a transformer, as offline work. In PyTorch where it is there."""

import argparse
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
PLACES = [os.path.normpath(os.path.join(HERE, *up)) for up in (("..", "..", "python"), ("..", "..", "..", "python"))]  # installed, and not
sys.path[:0] = [path for path in PLACES if os.path.exists(os.path.join(path, "ai_model_wrapper.py"))]

from ai_model_wrapper import OfflineAIModel, mark_offline  # noqa: E402
from simple_models import HAS_TORCH, SimpleTransformer, has_gpu  # noqa: E402

if HAS_TORCH:
    from real_models import BertLike  # noqa: E402

STEPS_PER_EPOCH = 10


def epochs(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError("{}: there must be one at least".format(text))
    return int(text)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=epochs, default=1)
parser.add_argument("--priority", type=int, default=2, choices=range(16), metavar="0-15", help="of its GPU queues")
asked = parser.parse_args()

mark_offline(asked.priority)  # before the first transfer, at which the runtime makes its queue
model = BertLike() if HAS_TORCH else SimpleTransformer(100)
if has_gpu():
    model = model.cuda()
offline = OfflineAIModel(model, priority=asked.priority, loss=getattr(model, "loss", None))
for epoch in range(asked.epochs):
    offline.train_loop(STEPS_PER_EPOCH)
