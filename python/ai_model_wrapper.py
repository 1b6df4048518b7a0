# SPDX-License-Identifier: MIT
"""The design notes' OnlineAIModel and OfflineAIModel, over gpreempt.

A model is anything that can be called, or a torch.nn.Module. Without one it is a small PyTorch model where PyTorch is there,
on the GPU if that has one, else work of the stated length.

A program that brings a model to the GPU itself calls mark_online() or mark_offline() before: the runtime makes its queue at the
first transfer, and the agent reads tag and priority at that moment.
"""

import os
import threading
import time
from typing import Any, Callable, Optional

import gpreempt
from gpreempt.notes import say
from simple_models import SimpleCNN, SimpleTransformer, Simulated, has_gpu, torch, work_text

__all__ = ["OfflineAIModel", "OnlineAIModel", "mark_offline", "mark_online"]


def _is_module(model: Any) -> bool:
    return torch is not None and isinstance(model, torch.nn.Module)


def _wait_for_gpu() -> None:
    """PyTorch returns when work is queued."""
    if has_gpu():
        torch.cuda.synchronize()


def _on_gpu(model: Any) -> Any:
    """A model of ours, when the queues of this process are marked."""
    return model.cuda() if _is_module(model) and has_gpu() else model


def _say_if_simulated(model: Any, english: str, chinese: str) -> None:
    """At once, and once: who measures its latency shall not take it for a model's."""
    if isinstance(model, Simulated) and not model.is_told:
        model.is_told = True
        say(english, chinese, work_text(model))


def _mark(tag: str, priority: int) -> None:
    os.environ["AMD_QUEUE_TAG"] = tag
    os.environ["AMD_QUEUE_PRIORITY"] = str(priority)


def mark_online(priority: int = 15) -> None:
    """Queues that this process creates from now on, as OnlineAIModel does."""
    _mark("ONLINE_AI", priority)


def mark_offline(priority: int = 2) -> None:
    """The same, as OfflineAIModel does."""
    _mark("OFFLINE_AI", priority)


class OnlineAIModel:
    """inference() returns the model's result; last_latency_ms is what it took, with the way to a free GPU.

    scheduler: a GPreemptScheduler or SmartQueueScheduler; without one gpreemptd is told by hints, which on a machine with
    several devices name one. Where nobody can be told, the request is served all the same, and last_error says why.
    """

    def __init__(self, model: Optional[Callable[[Any], Any]] = None, scheduler: Any = None, latency_ms: float = 10, priority: int = 15,
                 device: Optional[int] = None) -> None:
        mark_online(priority)
        self.model = model if model is not None else _on_gpu(SimpleCNN(latency_ms))  # type: Any
        self.scheduler = scheduler
        self.last_error = None  # type: Optional[gpreempt.Error]
        self.last_latency_ms = 0.0
        self.requests = 0
        _say_if_simulated(self.model, "Online model: simulated", "在线模型：模拟")
        if _is_module(self.model):
            self.model.eval()
        self._request = gpreempt.online(device=device)
        if scheduler is None:
            with self._request:  # gpreemptd hears the tag of this moment, whatever model comes after
                pass

    def inference(self, x: Any = None) -> Any:
        began = time.perf_counter()
        result = self._scheduled(self.model.example() if x is None and hasattr(self.model, "example") else x)
        self.last_latency_ms = (time.perf_counter() - began) * 1e3
        self.requests += 1
        return result

    def _scheduled(self, x: Any) -> Any:
        if self.scheduler is None:
            with self._request:
                return self._run(x)
        is_announced = self._announce()
        try:
            return self._run(x)
        finally:
            if is_announced:
                self._complete()

    def _announce(self) -> bool:
        """Whether the scheduler must be told of the end."""
        has_end = hasattr(self.scheduler, "online_task_complete")
        try:
            (self.scheduler.notify_online_task if has_end else self.scheduler.handle_online_request)()
        except gpreempt.Error as wrong:
            self.last_error = wrong
            return False
        return has_end

    def _complete(self) -> None:
        """The request is served, whatever becomes of gpreemptd."""
        try:
            self.scheduler.online_task_complete()
        except gpreempt.Error as wrong:
            self.last_error = wrong

    def _run(self, x: Any) -> Any:
        if not _is_module(self.model):
            return self.model(x)
        with torch.no_grad():
            result = self.model(x)
        _wait_for_gpu()
        return result


class OfflineAIModel:
    """train_step() is one step, train_loop(n) many; stop() from another thread ends the loop after its step.

    loss: takes the model's result; without one it is the mean of the squares. optimizer: without one SGD.
    """

    def __init__(self, model: Optional[Callable[[Any], Any]] = None, step_ms: float = 100, priority: int = 2, optimizer: Any = None,
                 loss: Optional[Callable[[Any], Any]] = None) -> None:
        mark_offline(priority)
        self.model = model if model is not None else _on_gpu(SimpleTransformer(step_ms))  # type: Any
        self.optimizer, self.loss = optimizer, loss
        self.steps = 0
        self.last_step_ms = 0.0
        self._stopping = threading.Event()
        _say_if_simulated(self.model, "Offline model: simulated", "离线模型：模拟")
        if _is_module(self.model) and optimizer is None:
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001)

    def train_step(self, batch: Any = None) -> Any:
        """The loss, of a PyTorch model; else what the model returns."""
        began = time.perf_counter()
        batch = self.model.example() if batch is None and hasattr(self.model, "example") else batch
        result = self._learned(batch) if _is_module(self.model) else self.model(batch)
        self.last_step_ms = (time.perf_counter() - began) * 1e3
        self.steps += 1
        return result

    def train_loop(self, n: int, batch: Any = None) -> int:
        """How many steps were done."""
        self._stopping.clear()
        before = self.steps
        began = time.perf_counter()
        while self.steps - before < n and not self._stopping.is_set():
            self.train_step(batch)
        done, took = self.steps - before, time.perf_counter() - began
        say("Training: {} steps, {:.2f} per second".format(done, done / took if took else 0.0),
            "训练：{} 步，每秒 {:.2f} 步".format(done, done / took if took else 0.0), work_text(self.model))
        return done

    def stop(self) -> None:
        self._stopping.set()

    def _learned(self, batch: Any) -> float:
        result = self.model(batch)
        loss = self.loss(result) if self.loss else result.float().pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        value = loss.item()  # waits for the GPU
        _wait_for_gpu()
        return value
