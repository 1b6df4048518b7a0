#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Real models, in PyTorch on the CPU, beside jobs on a simulated GPU: make check-models. Not a part of make check."""

import json
import math
import os
import re
import socket
import subprocess
import sys
import urllib.request

import tap

PACKAGE = os.path.join(tap.SOURCE, "python")
EXAMPLES = os.path.join(tap.SOURCE, "examples")
PATIENCE = 500  # s; a busy machine
RESNET18 = 11689512  # parameters, of the paper's network with 1000 classes

sys.path.insert(0, PACKAGE)
os.environ["GPREEMPT_LIBRARY"] = os.path.join(os.path.abspath(tap.BUILD), "libgpreempt.so.0")

try:
    import torch
except ImportError:
    tap.skip_all("no PyTorch: make check-models installs it")

import real_models  # noqa: E402
from ai_model_wrapper import OfflineAIModel, OnlineAIModel  # noqa: E402
from simple_models import SimpleCNN, SimpleTransformer  # noqa: E402


def environment():
    """With the Python that has PyTorch first."""
    return {**os.environ, "GPREEMPT_SOCKET": "", "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}


def untrue(check):
    return [fact["what"] for fact in check["facts"] if not fact["is_so"]]


@tap.test("ResNet-18 has the paper's number of parameters, halves an image five times, and gives a class for each image")
def _(folder):
    model = real_models.ResNet18().eval()
    tap.same(sum(one.numel() for one in model.parameters()), RESNET18, "parameters")
    seen = []
    model.layers[-3].register_forward_hook(lambda layer, taken, given: seen.append(tuple(taken[0].shape)))
    tap.same((tuple(model(torch.randn(2, 3, 224, 224)).shape), seen), ((2, 1000), [(2, 512, 7, 7)]), "shapes")


@tap.test("the BERT learns: of the tokens that are masked it guesses more after a hundred steps than at first")
def _(folder):
    torch.manual_seed(1)
    model = real_models.BertLike(tokens=50)
    offline = OfflineAIModel(model, loss=model.loss, optimizer=torch.optim.Adam(model.parameters(), lr=0.001))
    losses = [offline.train_step() for _ in range(100)]
    tap.true(abs(losses[0] - math.log(50)) < 1, f"it begins with a guess among 50: {losses[0]}")
    tap.true(sum(losses[-10:]) < 0.8 * sum(losses[:10]), f"{losses}")


@tap.test("models in PyTorch are served without a gradient, whether or not anybody schedules")
def _(folder):
    for model, shape in ((SimpleCNN(), (8, 10)), (SimpleTransformer(), (8, 10)), (real_models.ResNet18(), (1, 1000))):
        online = OnlineAIModel(model)
        result = online.inference()
        tap.same((tuple(result.shape), result.requires_grad, model.training, online.last_latency_ms > 0), (shape, False, False, True), type(model).__name__)


@tap.test("20 requests 0.5 s apart of a CNN, a transformer, and of ResNet-18 beside the training of a BERT: all are served, the training learns, nothing is lost", alone=True)
def _(folder):
    done = tap.run("verify", "models", "--full", "--json", env=environment(), timeout=PATIENCE, preexec_fn=tap.die_with_parent)
    check = json.loads(done.stdout)["checks"][0]
    tap.same((done.returncode, check["status"], check["reason"], untrue(check)), (0, "passed", "", []), done.stderr)
    tap.same((check["parameters"]["requests"], check["parameters"]["pause_s"]), (20, 0.5), "parameters")
    tap.same({name: row["count"] for name, row in check["figures"].items()},
             {f"case_{name}_ms": 20 for name in ("a", "b", "c_alone", "c_unscheduled", "c")}, "requests")
    tap.same([job["stops"] for job in check["raw"]["jobs"]], [20, 20, 20], "stops")
    tap.true("PyTorch" in check["did"] and "no PyTorch" not in check["did"] and "ResNet-18" in check["did"], check["did"])
    tap.say("\n".join([*check["saw"], *(f"{name}: p50 {row['p50']:.1f}, p95 {row['p95']:.1f}, max {row['max']:.1f}" for name, row in check["figures"].items())]))


@tap.test("the notes' BERT training trains a BERT, in PyTorch")
def _(folder):
    done = tap.good("--epochs", "2", program=os.path.join(tap.SOURCE, "share", "notes", "models", "bert_training.py"), env=environment())
    tap.same(len(re.findall(r"^Training: 10 steps, .* \(PyTorch on ", done.stdout, re.M)), 2, done.stdout)


# For a program that wants a GPU: the CPU in its place, and the first two of each batch.
ON_CPU = """
import runpy, sys, torch
torch.cuda.is_available = lambda: True
torch.cuda.synchronize = lambda: None
torch.nn.Module.cuda = lambda self: self
randn = torch.randn
torch.randn = lambda size, *more, device: randn(min(size, 2), *more)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@tap.test("the example of training trains its model in PyTorch")
def _(folder):
    done = tap.good(tap.write(f"{folder}/on_cpu.py", ON_CPU), os.path.join(EXAMPLES, "train.py"), "0.1", program=sys.executable, env=environment(), timeout=PATIENCE)
    steps = re.fullmatch(r"(\d+) steps in 0\.1 s\n", done.stdout)
    tap.true(steps and int(steps[1]) > 0, done)


def with_package():
    """Where PyTorch was found it is found still."""
    return dict(environment(), PYTHONPATH=os.pathsep.join(filter(None, (PACKAGE, os.environ.get("PYTHONPATH", "")))))


@tap.test("the example of a server answers with its model in PyTorch: the same to the same, and another to another")
def _(folder):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with subprocess.Popen([sys.executable, os.path.join(EXAMPLES, "serve.py"), str(port)], env=with_package(), stdout=subprocess.PIPE, text=True,
                          preexec_fn=tap.die_with_parent) as serve:
        tap.same(serve.stdout.readline(), "ready\n", "it serves")
        answers = []
        for text in (b"hello", b"world", b"x"):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}", data=text, timeout=PATIENCE) as answer:
                answers.append(float(answer.read()))
        serve.terminate()
    tap.same([one == answers[0] for one in answers], [True, True, False], answers)
    tap.true(answers[0] != len(b"hello"), "that is what it answers without PyTorch")


tap.main()
