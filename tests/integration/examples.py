#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each of examples/ runs as it stands, on a simulated GPU, and shows what its README says."""

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import urllib.request

import tap

import yaml
from preload import need_preload

EXAMPLES = os.path.join(tap.SOURCE, "examples")
BUILD = os.path.abspath(tap.BUILD)
PATIENCE = 60  # s


def env(**more):
    """As after the README's first lines, in a source tree."""
    there = dict(os.environ, PATH=f"{BUILD}:{os.environ['PATH']}", GPREEMPT_LIBRARY=f"{BUILD}/libgpreempt.so.0", LD_LIBRARY_PATH=BUILD,
                 PYTHONDONTWRITEBYTECODE="1", **more)
    for name in ("GPREEMPT_SOCKET", "XDG_RUNTIME_DIR", "PYTHONPATH"):
        there.pop(name, None)
    return there


def run(*command, **more):
    """What it prints, run by sim.sh; nothing may be left of it."""
    folder = more.pop("folder")
    done = subprocess.run([f"{EXAMPLES}/sim.sh", *command], env=env(TMPDIR=folder, **more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    tap.same(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")
    tap.same([name for name in os.listdir(folder) if name.startswith("tmp.")], [], "left behind")
    return done.stdout


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def tables(text):
    """{name: {heading: figure}} of what sim-client prints"""
    return {name: dict(zip(re.split(r"  +", head.strip()), re.split(r"  +", line.strip()))) for name, head, line in
            re.findall(r"^(\S+): o\w+line .*\n(.*)\n(.*)$", text, re.M)}


@tap.test("two shells: online is served beside offline work, which is stopped for it and goes on")
def _(folder):
    sim = subprocess.Popen([f"{EXAMPLES}/sim.sh"], env=env(TMPDIR=folder), stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        shown = dict(re.findall(r"(\w+)=(\S+)", sim.stdout.readline()))
        tap.same(sorted(shown), ["GPREEMPT_SOCKET", "XDG_RUNTIME_DIR"], "what to export")
        both = {}
        for name, seconds in (("offline", "6s"), ("online", "3s")):
            both[name] = subprocess.Popen([f"{EXAMPLES}/{name}.sh"], env=dict(env(DURATION=seconds), **shown), stdout=subprocess.PIPE, text=True)
        told = {name: tables(one.communicate(timeout=PATIENCE)[0]) for name, one in both.items()}
    finally:
        os.killpg(sim.pid, signal.SIGINT)
        sim.wait(PATIENCE)
    tap.same(int(told["online"]["infer-10ms"]["requests"]), 60, f"requests: {told}")
    tap.true(int(told["offline"]["train"]["times"]) > 10 and int(told["offline"]["train"]["steps"]) > 0, f"stopped: {told}")
    tap.same([name for name in os.listdir(folder) if name.startswith("tmp.")], [], "left behind by Ctrl-C")


@tap.test("with a command both shells run it under gpreempt, as what they say")
def _(folder):
    need_preload()
    for name in ("online", "offline"):
        said = subprocess.run([f"{EXAMPLES}/{name}.sh", "sh", "-c", "echo $GPREEMPT_CLASS"], env=env(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        tap.same(said.stdout, f"{name}\n", name)


@tap.test("the server in C says when a request comes: training is stopped for each, and the answers are right; without gpreemptd too")
def _(folder):
    need_preload()
    program, port = f"{folder}/serve", free_port()
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", f"-I{tap.SOURCE}/include", f"{EXAMPLES}/serve.c", "-o", program, f"-L{BUILD}", "-lgpreempt"], check=True)
    for word in ("abc", "0", "65536", "80x", ""):
        done = tap.run(word, program=program, env=env())
        tap.same((done.returncode, done.stderr), (2, f'serve: "{word}" is no port from 1 to 65535\n'), "a port that is none")
    asks = tap.write(f"{folder}/ask.py", """import json, socket, subprocess, sys, time
train = subprocess.Popen(["gpreempt", "sim-client", "--offline", "--work", "train", "--json"], stdout=subprocess.DEVNULL)
serve = subprocess.Popen(["gpreempt", "run", "--online", "--", sys.argv[1], sys.argv[2]], stdout=subprocess.PIPE, text=True)
assert serve.stdout.readline() == "ready\\n"
while not json.loads(subprocess.check_output(["gpreempt", "list", "--json"]))["queues"]:
    time.sleep(0.05)
with socket.create_connection(("127.0.0.1", int(sys.argv[2]))) as one, one.makefile("rw") as lines:
    for n in range(10):
        print("x" * n, file=lines, flush=True)
        assert lines.readline() == f"{n}\\n", n
        time.sleep(0.05)
print(subprocess.check_output(["gpreempt", "stats", "--json"], text=True))
serve.kill(), train.terminate(), train.wait()
""")
    device = json.loads(run("python3", asks, program, port, folder=folder))["devices"][0]
    # On a busy machine one request begins before the end of the last is known: they are one then.
    tap.true(5 <= device["hints"] <= 10 and device["preemptions"] >= 5 and device["failures"] == 0, f"hints and preemptions: {device}")
    with subprocess.Popen([program, port], env=env(GPREEMPT_BACKEND="kfd"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as alone:
        tap.same(alone.stdout.readline(), "ready\n", "without gpreemptd")
        with socket.create_connection(("127.0.0.1", int(port))) as one, one.makefile("rw") as lines:
            print("four", file=lines, flush=True)
            tap.same(lines.readline(), "4\n", "answer")
        with socket.create_connection(("127.0.0.1", int(port))) as one:  # who goes before its answers come ends nothing
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.sendall(b"x\n" * 5)
        with socket.create_connection(("127.0.0.1", int(port))) as one, one.makefile("rw") as lines:
            print("still", file=lines, flush=True)
            tap.same(lines.readline(), "5\n", "the next one's answer")
        alone.kill()


@tap.test("training beside the server in Python: both are there as what they are, and training was stopped for requests")
def _(folder):
    need_preload()
    said = run(f"{EXAMPLES}/beside.sh", folder=folder, PORT=free_port(), SECONDS_OF_TRAINING="8")
    rows = {line.split()[2]: line.split()[3] for line in said.splitlines() if "--o" in line}
    tap.same(rows, {"train.py": "offline", "python3": "online"}, said)
    hints, preemptions = (int(re.search(rf"^  {name} +(\d+)", said, re.M).group(1)) for name in ("hints", "preemptions"))
    tap.true(hints >= 20 and preemptions >= 20, said)
    tap.true(int(tables(said)["train.py"]["steps"]) > 0, said)


# What both examples use of PyTorch, with a GPU: it is as strict about shapes, places and the order of a step's calls, and says what was called.
TORCH = """
import atexit, contextlib, os, types
log, learns = [], [True]
atexit.register(lambda: open(os.environ["CALLS"], "w").write(" ".join(log)))

class Tensor:
    def __init__(self, shape, value, place):
        self.shape, self.value, self.place = shape, value, place
    def square(self):
        return Tensor(self.shape, self.value ** 2, self.place)
    def mean(self):
        return Tensor((), self.value, self.place)
    def sum(self):
        size = 1
        for one in self.shape:
            size *= one
        return Tensor((), self.value * size, self.place)
    def item(self):
        assert self.shape == ()
        log.append("item")
        return self.value
    def backward(self):
        assert self.shape == () and learns[0]
        log.append("backward")

class Layer:
    def __init__(self, width):
        self.width, self.place = width, "cpu"
    def to(self, place):
        self.place = place
        return self
    def cuda(self):
        return self.to("cuda")
    def parameters(self):
        yield self
    def __call__(self, x):
        assert x.shape[-1] == self.width and x.place == self.place == "cuda", (x.shape, x.place, self.place)
        log.append("forward" if learns[0] else "infer")
        return x

def linear(taken, given):
    assert taken == given
    return Layer(taken)

def encoder(d_model, nhead, batch_first):
    assert d_model % nhead == 0 and batch_first
    return Layer(d_model)

class AdamW:
    def __init__(self, parameters):
        assert [one.place for one in parameters] == ["cuda"]  # those of the model where it trains
    def zero_grad(self):
        log.append("zero")
    def step(self):
        log.append("step")

@contextlib.contextmanager
def no_grad():
    learns[0] = False
    yield
    learns[0] = True

full = lambda shape, value, device: Tensor(shape, value, device)
randn = lambda *shape, device: Tensor(shape, 2.0, device)
nn = types.SimpleNamespace(Linear=linear, TransformerEncoderLayer=encoder)
optim = types.SimpleNamespace(AdamW=AdamW)
cuda = types.SimpleNamespace(is_available=lambda: True, synchronize=lambda: log.append("synchronize"))
"""


def with_torch(folder):
    tap.write(f"{folder}/torch.py", TORCH)
    return dict(env(), PYTHONPATH=f"{tap.SOURCE}/python:{folder}", CALLS=f"{folder}/calls")


@tap.test("where PyTorch has a GPU, the training in Python trains on it step by step, and waits for the end of each")
def _(folder):
    done = subprocess.run([f"{EXAMPLES}/train.py", "0.2"], env=with_torch(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    found = re.fullmatch(r"(\d+) steps in 0\.2 s\n", done.stdout)
    tap.true(found and done.stderr == "", f"{done}")
    steps = tap.read(folder, "calls").split()
    tap.same(steps, "zero forward backward step synchronize".split() * int(found[1]), "calls")
    tap.true(steps, "not one step")


@tap.test("where PyTorch has a GPU, the server in Python learns nothing, and waits for the answer within the request")
def _(folder):
    need_preload()  # Python loads the library
    port = free_port()
    with subprocess.Popen([f"{EXAMPLES}/serve.py", port], env=with_torch(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as serve:
        tap.same(serve.stdout.readline(), "ready\n", "it serves")
        for text in (b"hello", b"x"):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}", data=text, timeout=PATIENCE) as answer:
                tap.same(answer.read(), f"{1024.0 * len(text)}\n".encode(), text)
        serve.send_signal(signal.SIGINT)
        serve.wait(PATIENCE)
    tap.same(tap.read(folder, "calls").split(), ["infer", "item"] * 2, "calls")


@tap.test("three offline jobs have shares and steps by their weights")
def _(folder):
    said = run(f"{EXAMPLES}/weights.sh", folder=folder, DURATION="14s", LOOK="10")
    shares = {name: float(share) for name, share in re.findall(r" (job\d+) .* ([\d.]+)% ", said)}
    steps = {name: int(table["steps"]) for name, table in tables(said).items()}
    for figures in (shares, steps):
        tap.same(sorted(figures), ["job100", "job200", "job400"], said)
        tap.true(1.4 < figures["job200"] / figures["job100"] < 2.8 and 1.4 < figures["job400"] / figures["job200"] < 2.8, said)


@tap.test("by deadlines, who promises less time is served in less, and who has more leaves it to others")
def _(folder):
    told = tables(run(f"{EXAMPLES}/deadlines.sh", folder=folder, DURATION="6s"))
    tap.same(sorted(told), ["chat", "mail"], "who tells")
    tap.true(2 * float(told["chat"]["p50 ms"]) < float(told["mail"]["p50 ms"]), f"{told}")


def services(name):
    return yaml.safe_load(re.sub(r"\$\{(\w+):[-?]([^}]*)\}", lambda found: found[2], tap.read(EXAMPLES, name)))["services"]


@tap.test("compose.yaml mounts and sets what gpreempt cdi says to Docker, of each class, and each kind of GPU has an image for both")
def _(folder):
    for name, service in services("compose.yaml").items():
        words = tap.good("cdi", "--docker-args", {"server": "online", "trainer": "offline"}[name]).stdout.replace(f"{BUILD}/", "/usr/local/lib/").split()
        pairs = list(zip(words[::2], words[1::2]))
        tap.same([value for option, value in pairs if option == "-v" and value not in service["volumes"]], [], f"mounts that {name} lacks")
        have = {f"{key}={value}" for key, value in service["environment"].items()}
        tap.same([value for option, value in pairs if option == "-e" and value not in have], [], f"environment that {name} lacks")
    for kind in ("amd", "nvidia", "sim"):
        tap.same({name: bool(service["image"]) for name, service in services(f"compose.{kind}.yaml").items()}, {"server": True, "trainer": True}, kind)
    tap.same([service["devices"] for service in services("compose.amd.yaml").values()], [["/dev/kfd", "/dev/dri"]] * 2, "AMD's devices")


@tap.test("without Compose compose.sh says so, and what to do, and nothing else")
def _(folder):
    os.symlink(shutil.which("dirname"), f"{folder}/dirname")  # and no docker
    for how in ({}, {"COMPOSE": "podman-compose"}):
        name = how.get("COMPOSE", "docker compose")
        done = tap.run(f"{EXAMPLES}/compose.sh", "amd", program="/bin/sh", env=dict(how, PATH=folder))
        tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)
        tap.true(f"{name} does not run: install" in done.stderr and "COMPOSE=podman-compose" in done.stderr, done.stderr)


@tap.test("the README of the examples names every file, and nothing that is not there")
def _(folder):
    text = tap.read(EXAMPLES, "README.md")
    named = set(re.findall(r"\b([a-z]+(?:\.[a-z]+)?\.(?:sh|py|c|yaml))\b", text))
    tap.same(named, set(os.listdir(EXAMPLES)) - {"README.md"}, "files")


@tap.test("after the README's first lines a source tree has the command, the library and the Python package")
def _(folder):
    export = re.search(r"^\$ (export .*)$", tap.read(EXAMPLES, "README.md"), re.M).group(1).replace("$PWD/build", BUILD)
    bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH", "GPREEMPT_LIBRARY")}
    use = 'gpreempt version && cc "$0/serve.c" -o "$1/serve" -I"$0/../include" -L"$2" -lgpreempt && ldd "$1/serve" && python3 -c "import gpreempt"'
    done = subprocess.run(["sh", "-c", f"{export}; {use}", EXAMPLES, folder, BUILD], cwd=tap.SOURCE, env=dict(bare, PYTHONDONTWRITEBYTECODE="1"),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False)
    tap.same((done.returncode, "not found" in done.stdout), (0, False), done.stdout)


tap.main(jobs=2)
