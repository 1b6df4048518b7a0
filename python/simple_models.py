# SPDX-License-Identifier: MIT
"""Two small models to try things with: in PyTorch where it is there, else as work of a stated length."""

import time
from typing import Any, Optional, Tuple

try:
    import torch as torch  # for ai_model_wrapper too
except ImportError:
    torch = None  # type: ignore

__all__ = ["HAS_TORCH", "SimpleCNN", "SimpleTransformer", "Simulated"]

HAS_TORCH = torch is not None
CLASSES = 10


def has_gpu() -> bool:
    """One that PyTorch can use, by CUDA or by ROCm."""
    return HAS_TORCH and torch.cuda.is_available()


def work_text(model: Any) -> Optional[Tuple[str, str]]:
    """What a model's time is of, in English and Chinese. None: it is none of PyTorch's or of ours."""
    if isinstance(model, Simulated):
        head = ("", "") if HAS_TORCH else ("no PyTorch: ", "没有 PyTorch，")
        return head[0] + "a wait of {:g} ms".format(model.latency_ms), head[1] + "仅等待 {:g} ms".format(model.latency_ms)
    place = next((one.device for one in model.parameters()), None) if HAS_TORCH and isinstance(model, torch.nn.Module) else None
    if place is None:
        return None
    if place.type != "cuda":
        return "PyTorch on the CPU", "CPU 上的 PyTorch"
    name = torch.cuda.get_device_name(place)
    return "PyTorch on {}".format(name), "{} 上的 PyTorch".format(name)


class Simulated:
    """Takes so many ms, and returns what it was given."""

    def __init__(self, latency_ms: float = 10) -> None:
        self.latency_ms = latency_ms
        self.is_told = False  # somebody has said that it is no model

    def __call__(self, x: Any = None) -> Any:
        time.sleep(self.latency_ms / 1e3)
        return x

    def example(self) -> Any:
        return None


if HAS_TORCH:
    class SimpleCNN(torch.nn.Module):
        """Images in, classes out. latency_ms counts only where there is no PyTorch."""

        def __init__(self, latency_ms: float = 10) -> None:
            super().__init__()
            nn = torch.nn
            self.layers = nn.Sequential(
                nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64 * 16, CLASSES))

        def forward(self, x: Any) -> Any:
            return self.layers(x)

        def example(self) -> Any:
            return torch.randn(8, 3, 64, 64, device=next(self.parameters()).device)

    class SimpleTransformer(torch.nn.Module):
        """Sequences of vectors in, classes out. latency_ms counts only where there is no PyTorch."""

        def __init__(self, latency_ms: float = 100, width: int = 128, depth: int = 2) -> None:
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(width, 4, 4 * width)
            self.encoder = torch.nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
            self.head = torch.nn.Linear(width, CLASSES)
            self.width = width

        def forward(self, x: Any) -> Any:
            return self.head(self.encoder(x).mean(0))

        def example(self) -> Any:
            return torch.randn(32, 8, self.width, device=next(self.parameters()).device)
else:
    class SimpleCNN(Simulated):  # type: ignore
        """Its length alone: there is no PyTorch."""

        def __init__(self, latency_ms: float = 10) -> None:
            super().__init__(latency_ms)

    class SimpleTransformer(Simulated):  # type: ignore
        """Its length alone: there is no PyTorch."""

        def __init__(self, latency_ms: float = 100) -> None:
            super().__init__(latency_ms)
