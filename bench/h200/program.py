#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""program.py KIND STEPS: a PyTorch program as people write them, which knows nothing of gpreempt. 0 steps: without end.

Prints "ready", goes on when a line comes, prints "done N at SECONDS" after each step, and "sum X" in the end: of all parameters or outputs, the same for the same steps.
"""

import hashlib
import os
import queue
import sys
import threading
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402

WIDTH, PAUSE = 512, 0.005


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.LayerNorm(4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)).cuda()


def data():
    return torch.randn(4096, WIDTH, generator=torch.Generator().manual_seed(2)).cuda()


def said(done):
    print(f"done {done} at {time.monotonic():.6f}", flush=True)


def summed(tensors):
    together = hashlib.sha256()
    for one in tensors:
        together.update(one.detach().float().cpu().numpy().tobytes())
    return together.hexdigest()[:16]


def wait_for_go():
    print("ready", flush=True)
    sys.stdin.readline()


def repeat(steps, step):
    wait_for_go()
    done = 0
    while not steps or done < steps:
        step()
        torch.cuda.synchronize()
        done += 1
        said(done)
        time.sleep(PAUSE)


def train(net, steps):
    optimizer, inputs = torch.optim.SGD(net.parameters(), lr=1e-3), data()

    def step():
        optimizer.zero_grad(set_to_none=False)
        for _ in range(4):
            net(inputs).square().mean().backward()
        optimizer.step()

    return optimizer, step


def eager_training(steps):
    net = model()
    repeat(steps, train(net, steps)[1])
    return net.parameters()


def compiled_training(steps):
    net = model()
    step = train(torch.compile(net), steps)[1]
    step()
    repeat(steps, step)
    return net.parameters()


def graph_training(steps):
    net = model()
    step = train(net, steps)[1]
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        step()
    repeat(steps, graph.replay)
    return net.parameters()


def inference(steps, prepare=lambda net: net):
    net, inputs, total = prepare(model().eval()), data(), torch.zeros(4096, WIDTH, device="cuda")

    def step():
        for _ in range(8):
            total.add_(net(inputs + total))

    with torch.no_grad():
        net(inputs)
        repeat(steps, step)
    return [total]


def eager_inference(steps):
    return inference(steps)


def compiled_inference(steps):
    return inference(steps, torch.compile)


def sync_server(steps):
    """A thread takes requests, another one serves each and waits for it."""
    line, net, inputs, total = queue.SimpleQueue(), model().eval(), data(), torch.zeros(4096, WIDTH, device="cuda")

    def come():
        for i in range(steps):
            line.put(i)
            time.sleep(2 * PAUSE)

    wait_for_go()
    threading.Thread(target=come, daemon=True).start()
    with torch.no_grad():
        for i in range(steps):
            total.add_(net(inputs + line.get()))
            torch.cuda.current_stream().synchronize()
            said(i + 1)
    return [total]


def async_server(steps):
    """Requests are sent to the GPU as they come; another thread waits for their events."""
    sent, net, inputs, total = queue.SimpleQueue(), model().eval(), data(), torch.zeros(4096, WIDTH, device="cuda")

    def wait():
        for i in range(steps):
            sent.get().synchronize()
            said(i + 1)

    wait_for_go()
    waits = threading.Thread(target=wait)
    waits.start()
    with torch.no_grad():
        for i in range(steps):
            total.add_(net(inputs + i))
            event = torch.cuda.Event()
            event.record()
            sent.put(event)
            time.sleep(2 * PAUSE)
    waits.join()
    return [total]


def loss_training(steps):
    """A small network of convolutions; the result is the loss of each step, too."""
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, 2, 1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3, 2, 1), torch.nn.ReLU(),
                              torch.nn.Flatten(), torch.nn.Linear(64 * 16 * 16, 10)).cuda()
    chance = torch.Generator().manual_seed(2)
    images, kinds = torch.randn(256, 3, 64, 64, generator=chance).cuda(), torch.randint(0, 10, (256,), generator=chance).cuda()
    optimizer, losses = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9), []

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(net(images), kinds)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    repeat(steps, step)
    return [torch.stack(losses), *net.parameters()]


def pulse(steps):
    """Online, with hints, two of them open now and then."""
    import gpreempt  # pylint: disable=import-outside-toplevel
    net, inputs = model().eval(), data()
    hints = [gpreempt.online(), gpreempt.online()]

    def step():
        for hint in hints:
            hint.begin()
        for hint in hints:
            net(inputs)
            torch.cuda.synchronize()
            hint.end()

    with torch.no_grad():
        repeat(steps, step)
    return []


KINDS = {"eager training": eager_training, "compiled training": compiled_training, "graph training": graph_training, "eager inference": eager_inference,
         "compiled inference": compiled_inference, "sync server": sync_server, "async server": async_server, "loss training": loss_training, "pulse": pulse}


def fork_server(steps):
    """The parent never uses the GPU; each child has a context of its own."""
    child = os.fork()
    if child == 0:
        print(f"sum {summed(eager_training(steps))}", flush=True)
        os._exit(0)
    print(f"pid {child}", flush=True)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def main(kind, steps):
    torch.use_deterministic_algorithms(True)
    if kind == "fork server":
        fork_server(int(steps))
    print(f"sum {summed(KINDS[kind](int(steps)))}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
