# SPDX-License-Identifier: MIT
"""ResNet-18 and a small BERT, in plain PyTorch, which must be there.

As a program, real_models.py cpu|cuda: trains the BERT there until it is ended, a line for each step's loss, the same ones each time.
"""

import os
import sys
from typing import Any

import torch
from torch import nn

__all__ = ["BertLike", "ResNet18"]

MASKED = 0.15  # of a sentence's tokens, as BERT has it
MASK = 0  # the token in their place


def _convolution(inside: int, outside: int, size: int, stride: int) -> Any:
    return nn.Sequential(nn.Conv2d(inside, outside, size, stride, size // 2, bias=False), nn.BatchNorm2d(outside))


class _Block(nn.Module):
    """Two convolutions, and a way around them."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(_convolution(inside, outside, 3, stride), nn.ReLU(), _convolution(outside, outside, 3, 1))
        self.around = nn.Identity() if stride == 1 and inside == outside else _convolution(inside, outside, 1, stride)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.layers(x) + self.around(x))


class ResNet18(nn.Module):
    """Images in, classes out: He et al., Deep Residual Learning for Image Recognition, 2015, table 1."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        blocks = [_Block(inside, outside, stride) for first, outside in ((64, 64), (64, 128), (128, 256), (256, 512))
                  for inside, stride in ((first, 1 if first == outside else 2), (outside, 1))]
        self.layers = nn.Sequential(_convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                    nn.Linear(512, classes))

    def forward(self, x: Any) -> Any:
        return self.layers(x)

    def example(self) -> Any:
        return torch.randn(1, 3, 224, 224, device=next(self.parameters()).device)


class BertLike(nn.Module):
    """Sentences with masked tokens in, a guess for each token out. loss() is of the masked ones of the last example()."""

    def __init__(self, tokens: int = 1000, length: int = 64, width: int = 128, depth: int = 2, batch: int = 8) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4, 4 * width, activation="gelu"), depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, tokens)
        self.register_buffer("sentences", torch.randint(1, tokens, (length, batch)))
        self.register_buffer("hidden", torch.rand(length, batch) < MASKED)

    def forward(self, x: Any) -> Any:
        where = torch.arange(len(x), device=x.device).unsqueeze(1)
        return self.head(self.encoder(self.words(x) + self.places(where)))

    def example(self) -> Any:
        """The same sentences each time, with other tokens masked: there is something to learn."""
        self.hidden = torch.rand(self.sentences.shape, device=self.sentences.device) < MASKED
        return self.sentences.masked_fill(self.hidden, MASK)

    def loss(self, guesses: Any) -> Any:
        return nn.functional.cross_entropy(guesses[self.hidden], self.sentences[self.hidden])


def _be_deterministic() -> None:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is so with that alone
    torch.use_deterministic_algorithms(True, warn_only=True)
    for kind in ("flash", "mem_efficient", "cudnn"):  # attention whose gradients are not
        getattr(torch.backends.cuda, "enable_{}_sdp".format(kind), lambda is_on: None)(False)
    torch.manual_seed(1)


def _train(device: str) -> None:
    from ai_model_wrapper import OfflineAIModel, mark_offline

    _be_deterministic()
    mark_offline()  # before the first transfer, at which the runtime makes its queue
    model = BertLike().to(device)
    offline = OfflineAIModel(model, loss=model.loss, optimizer=torch.optim.Adam(model.parameters(), lr=0.001))
    while True:
        print("{:.9g}".format(offline.train_step()), flush=True)


if __name__ == "__main__":
    _train(sys.argv[1])
