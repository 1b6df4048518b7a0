#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""serve.py: ResNet-50 in batches of 8 as a CUDA graph, as server.py serves."""

import torch

import server


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


class ResNet50:
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

    def send(self):
        self.graph.replay()
        sent = torch.cuda.Event()
        sent.record()
        return sent


if __name__ == "__main__":
    server.main(ResNet50(), 50)
