#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A simulated GPU in real time, programs on it, and gpreemptd: the whole of gpreempt without a GPU."""

import contextlib
import json
import os
import re
import signal
import socket
import struct
import time

import tap

import preload
from gpreemptd import NOBODY, AsUser, daemon, foreign, until
from protocol import ACTIVITY, DEVICE, FEATURES, GONE, HINT, QUEUE, WELCOME, text
from simulated import LEASE_S, SOON, Client, gpu, handles, infer, said, suspended, train

INFER_MS = 10.6  # infer-10ms alone on an MI308X
SLOW_MS = 60  # more than that: somebody is in its way
FAST_MS = 40  # a busy host may delay a request by that much, not most of them
MOST_CLIENTS = 64
SIZE, HELLO, SUBMIT, APPLY = 280, 1, 3, 5  # of a packet; its types


def p50_ms(figures):
    return figures["latency_ns"]["p50"] / 1e6


def step_s():
    """What one step of training takes, by the device's file and docs/BENCH.md: 270 kernels of 200 us, 30 of 2 ms."""
    dispatch = re.search(r"^dispatch_ns *= *([0-9]+)", tap.read(tap.SOURCE, "share/devices/mi308x.ini"), re.M)[1]
    return 270 * 200e-6 + 30 * 2e-3 + 300 * float(dispatch) * 1e-9


@tap.test("an offline client alone does as many steps as the model predicts", alone=True)
def _(folder):
    took = []
    with gpu(folder):
        while len(took) < 5:  # the shortest is judged: a busy host only makes them longer
            with train(folder, "--requests", "8") as client:
                done = client.figures()
            tap.same((done["completed"], done["submitted"]), (8, 8), "steps")
            took.append(done["elapsed_ns"] / 1e9 / 8)
        tap.true(0.9 * step_s() < min(took) < 1.1 * step_s(), f"a step took {took} s, not {step_s():g}")
        tap.same((done["simulated"], done["scheduled"], done["stops"], done["latency_ns"]), (True, False, 0, None), "figures")


@tap.test("inference beside training that nobody schedules is slow, and alone again it is not", alone=True)
def _(folder):
    with gpu(folder):
        with train(folder):
            beside = infer(folder, "--requests", "20").figures()
        until(lambda: "gone" in said(folder), "the training is gone")
        alone = infer(folder, "--requests", "20", "--slo", f"{FAST_MS}ms").figures()
        tap.true(p50_ms(beside) > SLOW_MS, f"beside: {p50_ms(beside)} ms")
        tap.true(0.9 * INFER_MS < p50_ms(alone) < FAST_MS, f"alone: {p50_ms(alone)} ms")
        tap.true(10 < alone["slo_met"] <= 20, f"{alone}")


@tap.test("training that gpreemptd keeps off the GPU does not slow inference, and has lost nothing when it goes on", alone=True)
def _(folder):
    with gpu(folder), daemon(folder) as d, train(folder, "--queues", "2", socket=d.path) as client:
        handles(d, client.pid, 2)
        with suspended(d, str(client.pid)) as line:
            tap.true("2 simulated queues of 1 process" in line, line)
            beside = infer(folder, "--requests", "20").figures()
        tap.true(p50_ms(beside) < FAST_MS, f"beside: {p50_ms(beside)} ms")
        done = client.figures(signal.SIGTERM)
        tap.same((done["submitted"] - done["completed"], done["stops"], done["scheduled"]), (4, 2, True), f"{done}")
        tap.true(0 < done["stopped_share"] < 1, f"{done}")


@tap.test("a client whose only queue is stopped makes no step until it is resumed, and then all of them, each once", alone=True)
def _(folder):
    steps = 8
    with gpu(folder), daemon(folder) as d, train(folder, "--requests", str(steps), socket=d.path) as client:
        handles(d, client.pid)
        with suspended(d, f"{client.pid}:0"):
            time.sleep(2 * steps * step_s())
            tap.same(client.poll(), None, "it has ended")
        done = client.figures()
        tap.same((done["completed"], done["submitted"], done["stops"]), (steps, steps, 1), f"{done}")
        tap.true(done["elapsed_ns"] / 1e9 > 2.5 * steps * step_s(), f"{done}")


@tap.test("a gpreemptd that is killed while it holds queues leaves them running")
def _(folder):
    with gpu(folder), daemon(folder) as d, train(folder, "--queues", "2", "--requests", "20", socket=d.path) as client:
        handles(d, client.pid, 2)
        tap.good("suspend", str(client.pid), "--lease", "1000s", "--socket", d.path)
        d.process.kill()
        done = client.figures()
        tap.same((done["completed"], done["stops"]), (20, 2), f"{done}")
        tap.true(done["stopped_share"] * done["elapsed_ns"] / 1e9 < LEASE_S, f"{done}")


@tap.test("a client finds the gpreemptd that comes after the one it had, or after none")
def _(folder):
    with gpu(folder), train(folder, "--queues", "2", socket=f"{folder}/gpreemptd.sock") as client:
        for round in range(2):
            with daemon(folder) as d:
                handles(d, client.pid, 2)
                with suspended(d, str(client.pid)):
                    pass
                if round == 0:
                    d.process.kill()
        done = client.figures(signal.SIGINT)
        tap.same((done["stops"], done["scheduled"]), (4, True), f"{done}")


def devices(d):
    """Numbers and names of the simulated ones that gpreemptd has."""
    listed = json.loads(tap.good("list", "--json", "--socket", d.path).stdout)["devices"]
    return [(device["device"], device["name"]) for device in listed if device["backend"] == "sim"]


@tap.test("a simulated GPU is a device of gpreemptd before any program is on it and until it ends, also if gpreemptd comes later")
def _(folder):
    both = [(1, "mi308x"), (2, "mi308x")]
    with daemon(folder) as d:
        with gpu(folder, "--devices", "2", socket=d.path):
            until(lambda: devices(d) == both, "both are known")
            tap.true("schedules it" in tap.good("policy", "2", "fair", "--socket", d.path).stdout, "policy")
            with train(folder, "--device", "1", socket=d.path) as client:
                handles(d, client.pid)
                tap.same(devices(d), both, "no third")
                queues = json.loads(tap.good("list", "--json", "--socket", d.path).stdout)["queues"]
                tap.same([queue["device"] for queue in queues], [2], "the second")
            tap.same(json.loads(tap.good("ps", "--json", "--socket", d.path).stdout)["clients"], [], "it is no client")
        until(lambda: not devices(d), "they go")
    with gpu(folder, "--devices", "2", socket=f"{folder}/gpreemptd.sock"), daemon(folder) as d:
        until(lambda: devices(d) == both, "it finds one that comes later")


@tap.test("beside a real GPU, what is on a simulated one is simulated to every verb, and what is on the real one is not")
def _(folder):
    foreign(folder, 1, 7)
    with daemon(folder) as d, gpu(folder, socket=d.path), train(folder, socket=d.path) as client:
        handles(d, client.pid)
        to = "--socket", d.path
        tap.same([(queue["pid"], queue["simulated"], queue["kind"]) for queue in json.loads(tap.good("list", "--json", *to).stdout)["queues"]],
                 [(1, False, "compute"), (client.pid, True, "compute")], "JSON")
        kinds = [line.split()[:3] for line in tap.good("list", *to).stdout.splitlines() if ":" in line.split(" ")[0]]
        tap.same(kinds, [["1:7", "0", "compute"], [f"{client.pid}:0", "1", "simulated"]], "KIND")
        with suspended(d, str(client.pid)) as line:
            tap.same(line, "Suspended 1 simulated queue of 1 process; Ctrl-C resumes.\n")
        for words, said_of in ((("0", "fair"), "Device 0:"), (("1", "fair"), "Device 1 (simulated):"), (("fair",), "All devices:")):
            tap.true(tap.good("policy", *words, *to).stdout.startswith(said_of), said_of)
        with infer(folder, "--name", "serve", socket=d.path) as serve:
            handles(d, serve.pid)
            hint = "hint", "begin", "--client", str(serve.pid), *to
            tap.true(tap.good(*hint).stdout.startswith(f"serve (simulated) {serve.pid}: "), "hint")
            tap.same(json.loads(tap.good(*hint, "--json").stdout)["simulated"], True, "hint, JSON")


@tap.test("a client that gpreemptd takes for another class than it says is told so once, and why")
def _(folder):
    def warned(d, *words):
        client = Client(folder, *words, "--requests", "2", socket=d.path)
        _out, errors = client.communicate(timeout=SOON)
        tap.same(client.returncode, 0, errors)
        return errors

    online, offline = ("--online", "--work", "infer-1ms", "--rate", "5"), ("--offline", "--work", "train")
    with gpu(folder), daemon(folder) as d:
        tap.same((warned(d, *online), warned(d, *offline)), ("", ""), "as they say")
    with gpu(folder), daemon(folder, "--rule", f"offline:uid={os.getuid()}") as d:
        said_of = warned(d, *online)
        tap.true(said_of.startswith("gpreempt: gpreemptd takes it for offline: ") and f"uid={os.getuid()}" in said_of and said_of.count("\n") == 1, said_of)
    with gpu(folder), daemon(folder, "--rule", f"online:uid={os.getuid()}") as d:
        tap.true("takes it for online: " in warned(d, *offline), "online")


@tap.test("of more simulated devices than a user may have, gpreemptd knows the first, and sim-gpu says so")
def _(folder):
    with daemon(folder) as d, gpu(folder, "--devices", "9", socket=d.path):
        until(lambda: "gpreemptd does not know device 8: " in said(folder), "it is told")
        tap.same(len(devices(d)), 8, "devices")


@tap.test("a gpreemptd that hangs while it holds a queue: the client resumes it when the lease ends")
def _(folder):
    with gpu(folder), daemon(folder, "--lease", "500ms") as d, train(folder, "--requests", "20", socket=d.path) as client:
        handles(d, client.pid)
        tap.good("suspend", str(client.pid), "--lease", "1000s", "--socket", d.path)
        d.process.send_signal(signal.SIGSTOP)
        try:
            done = client.figures()
        finally:
            d.process.send_signal(signal.SIGCONT)
        tap.same((done["completed"], done["stops"]), (20, 1), f"{done}")


@tap.test("a drain stops an idle queue at once, and one that never runs empty after its time")
def _(folder):
    with gpu(folder), daemon(folder) as d, train(folder, socket=d.path) as busy, \
            Client(folder, "--online", "--work", "infer-1ms", "--rate", "0.001", socket=d.path).runs() as idle:
        for client in (busy, idle):
            handles(d, client.pid)
        for client, note in ((idle, False), (busy, True)):
            out = tap.good("suspend", str(client.pid), "--type", "drain", "--timeout", "50ms", "--lease", "1s", "--socket", d.path).stdout
            tap.same("did not run empty" in out, note, out)


@tap.test("gpreemptd is told whether a queue is busy, if it asks")
def _(folder):
    with gpu(folder), daemon(folder, "--sample") as d, train(folder, "--name", "busy", socket=d.path) as busy, \
            Client(folder, "--online", "--work", "infer-1ms", "--rate", "0.001", "--name", "idle", socket=d.path).runs() as idle:
        for client in (busy, idle):
            handles(d, client.pid)

        def activities():
            queues = json.loads(tap.good("list", "--json", "--socket", d.path).stdout)["queues"]
            return {queue["client_name"]: (queue["activity"], queue["class"]) for queue in queues}

        until(lambda: activities() == {"busy": ("busy", "offline"), "idle": ("idle", "online")}, "both are told")


@tap.test("a client says who it is, of its device before its queues, and each request with --hints")
def _(folder):
    with gpu(folder), preload.Daemon(f"{folder}/gpreemptd.sock") as d:
        with Client(folder, "--online", "--work", "infer-1ms", "--rate", "100", "--requests", "3", "--queues", "2", "--hints", "--slo", "20ms",
                    "--weight", "250", "--name", "serve", socket=d.path) as client:
            hello = d.accept()
            role, _, pid, seen, name, _, features, weight, slo = struct.unpack_from("<IIII32s64sIIQ", hello, 16)
            tap.same((role, pid, seen, text(name), features, weight, slo), (1, client.pid, 2, "serve", FEATURES, 250, 20 * 10**6), "HELLO")
            d.peer.send(preload.packet(WELCOME, struct.pack("<QIII", 10**10, 0, 1, 0)))
            heard = list(messages(d.peer))
            tap.same(client.figures()["completed"], 3, "requests")
    name, backend, _, device, _, units, slots = struct.unpack_from("<32s32s32sIIII", heard[0][1])
    tap.same((heard[0][0], text(name), text(backend), units, slots), (DEVICE, "mi308x", "sim", 80, 24), "DEVICE")
    queues = [struct.unpack_from("<QQQIIIIII", body) for kind, body in heard if kind == QUEUE]
    tap.same([(number, queue, gpu_id, stopped) for number, _, _, queue, gpu_id, *_, stopped in queues], [(1, 0, device, 0), (2, 1, device, 0)], "QUEUE")
    hints = [struct.unpack_from("<QQQII", body) for kind, body in heard if kind == HINT]
    tap.true(2 <= len(hints) <= 6, f"{hints}")  # the first may have come before the welcome
    for number in {hint[1] for hint in hints}:
        tap.same([hint for hint in hints if hint[1] == number], [(0, number, 0, what, 0xFFFFFFFF) for what in (1, 2)], "HINT")
    tap.same([struct.unpack("<Q", body)[0] for kind, body in heard if kind == GONE], [1, 2], "GONE")
    tap.true(ACTIVITY in [kind for kind, _ in heard], f"{heard}")


def messages(peer):
    """(type, body) until it goes"""
    while data := peer.recv(65536):
        yield struct.unpack_from("<H", data, 4)[0], data[16:]


@tap.test("a client that is killed takes its queues off the GPU, and those beside it go on", alone=True)
def _(folder):
    with gpu(folder), train(folder, "--queues", "4") as killed, train(folder, "--requests", "1000") as other:
        killed.kill()
        until(lambda: f"(process {killed.pid}): gone" in said(folder), "it is gone")
        before = time.monotonic()
        other.send_signal(signal.SIGTERM)
        tap.same(other.wait(SOON), 0, "exit status of the other")
        tap.true(time.monotonic() - before < SOON, "the other does not end")
        until(lambda: f"(process {other.pid}): gone" in said(folder), "the other is gone")
        tap.true(p50_ms(infer(folder, "--requests", "20").figures()) < FAST_MS, "they are still there")


@tap.test("a client that does not read for a while is told everything later, once, and nobody waits for it")
def _(folder):
    options = ("--online", "--work", "infer-1ms", "--queues", "4")
    with gpu(folder), Client(folder, *options, "--rate", "100000", "--requests", "3000").runs() as slow:
        time.sleep(0.3)  # as much as its queues take, which is more than a socket holds the answers to
        slow.send_signal(signal.SIGSTOP)
        other = Client(folder, *options, "--rate", "100", "--requests", "200").figures()
        tap.same((other["completed"], other["submitted"]), (200, 200), "of the other")
        slow.send_signal(signal.SIGCONT)
        done = slow.figures()
        tap.same((done["completed"], done["submitted"]), (3000, 3000), "of the slow one")


@tap.test("when the GPU is killed its clients end with an error that says so, and with what they measured")
def _(folder):
    with gpu(folder) as server, train(folder) as offline, infer(folder) as online:
        server.kill()
        for client in (offline, online):
            out, errors = client.communicate(timeout=SOON)
            tap.same(client.returncode, tap.FAILED, "exit status")
            tap.true("sim-gpu ended" in errors and errors.count("\n") == 1, errors)
            tap.true("submitted" in json.loads(out), out)
        server.wait()


@tap.test("a second GPU at the same place is refused, and what a killed one left is no hindrance")
def _(folder):
    with gpu(folder) as first:
        done = tap.run("sim-gpu", "--socket", f"{folder}/gpu/sock")
        tap.same(done.returncode, tap.FAILED, "exit status")
        tap.true("another sim-gpu" in done.stderr and "--socket" in done.stderr, done.stderr)
        first.kill()
        first.wait()
    with gpu(folder), train(folder, "--requests", "2") as client:
        tap.same(client.figures()["completed"], 2, "steps")


@tap.test("without a GPU a client says how to start one, and a device that the GPU has not is an error")
def _(folder):
    done = tap.run("sim-client", "--offline", "--work", "train", "--gpu", f"{folder}/none")
    tap.same((done.returncode, done.stdout), (tap.FAILED, ""), "no GPU")
    tap.true("gpreempt sim-gpu" in done.stderr, done.stderr)
    with gpu(folder, "--devices", "2", "--device", "h200"):
        until(lambda: "Unlike on a real NVIDIA GPU" in tap.read(folder, "gpu.log"), "it says that the card does otherwise")
        done = Client(folder, "--offline", "--work", "train", "--device", "1", "--requests", "2").figures()
        tap.same((done["completed"], done["device"]), (2, "h200"), "on the second device")
        done = tap.run("sim-client", "--offline", "--work", "train", "--device", "2", "--gpu", f"{folder}/gpu/sock")
        tap.same(done.returncode, tap.FAILED, "exit status")
        tap.true("no device 2" in done.stderr, done.stderr)


@tap.test("another user's program is refused, and told why")
def _(folder):
    os.chmod(folder, 0o755)

    def try_it():
        done = tap.run("sim-client", "--offline", "--work", "train", "--gpu", f"{folder}/gpu/sock", timeout=SOON)
        tap.same(done.returncode, tap.FAILED, "exit status")
        tap.true("another user's" in done.stderr, done.stderr)

    with gpu(folder), train(folder, "--requests", "2") as client:
        AsUser(NOBODY, try_it).end()
        tap.same(client.figures()["completed"], 2, "of the user's own")


def packet(kind, body=b"", queue=0):
    """As src/simgpu/proto.h has it."""
    return struct.pack("<IIIi", 1, kind, queue, 0) + body.ljust(SIZE - 16, b"\0")


def hello(device=0, client_class=1, queues=1):
    return packet(HELLO, struct.pack("<IIII32s", device, client_class, queues, 0, b"bad"))


def submit(kernels=60, length=20000, share=500, every=0, interval=0, queue=0):
    return packet(SUBMIT, struct.pack("<Q32sQQQQQQ", 1, b"work", kernels, length, share, 1, every, interval), queue)


def apply(*wants):
    return packet(APPLY, struct.pack("<II", 1, len(wants)) + b"".join(struct.pack("<II", *want) for want in wants))


def connection(folder):
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.connect(f"{folder}/gpu/sock")
    one.settimeout(SOON)
    return one


def ends(one):
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        while one.recv(4096):
            pass


@tap.test("what is no message, or means nothing, ends its connection alone")
def _(folder):
    before = (b"x", os.urandom(SIZE), os.urandom(70000), b"\2" + hello()[1:], packet(0), packet(7), submit(), apply((0, 2)),
              hello(queues=0), hello(queues=33), hello(client_class=3), hello(device=1))
    after = (hello(), submit(queue=1), submit(kernels=0), submit(kernels=1 << 40), submit(length=0), submit(length=1 << 60),
             submit(share=0), submit(share=1001), submit(every=1 << 60), submit(interval=1 << 60), apply((1, 2)), apply((0, 3)),
             apply((0, 2), (0, 2)), *[[submit(1, 10**10)] * 257])
    with gpu(folder), train(folder, "--requests", "10") as client:
        for one in before:
            with connection(folder) as peer:
                peer.send(one)
                ends(peer)
        for messages in after:
            with connection(folder) as peer:
                peer.send(hello())
                tap.same(len(peer.recv(4096)), SIZE, "DEVICE")
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    for one in messages if isinstance(messages, list) else [messages]:
                        peer.send(one)
                ends(peer)
        tap.same(client.figures()["completed"], 10, "of who was there before")
        tap.same(said(folder).count("bad "), 2 * len(after), f"lines; {said(folder)}")


@tap.test("more connections than there are places are refused, until some have gone")
def _(folder):
    with gpu(folder), train(folder, "--requests", "10") as client:
        crowd = [connection(folder) for _ in range(MOST_CLIENTS)]
        done = tap.run("sim-client", "--offline", "--work", "long", "--gpu", f"{folder}/gpu/sock", "--requests", "1")
        tap.same(done.returncode, tap.FAILED, "exit status")
        tap.true("as many clients" in done.stderr, done.stderr)
        for one in crowd:
            one.close()
        tap.same(client.figures()["completed"], 10, "of who was there before")
        tap.same(train(folder, "--requests", "1").figures()["completed"], 1, "of who comes after")


@tap.test("a command line that says too little, too much or nonsense is refused with what to write")
def _(folder):
    for args, word in (((), "--online"), (("--online", "--offline"), "either"), (("--online",), "infer-10ms"),
                       (("--online", "--work", "x"), "infer-1ms"), (("--offline", "--work", "train", "--rate", "5"), "--online"),
                       (("--offline", "--work", "train", "--device", "x"), "--device"), (("--online", "--work", "train", "--queues", "33"), "32")):
        done = tap.run("sim-client", *args, "--gpu", f"{folder}/none")
        tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (tap.BAD_INPUT, "", 1), f"{args}: {done.stderr}")
        tap.true(word in done.stderr, f"{args}: {done.stderr}")
    done = tap.run("sim-gpu", "--device", "mi999", "--socket", f"{folder}/gpu/sock")
    tap.same(done.returncode, tap.BAD_INPUT, "an unknown device")
    tap.true("mi308x" in done.stderr, done.stderr)


@tap.test("the table says that it is simulated time on the real clock, and that nobody scheduled it")
def _(folder):
    with gpu(folder):
        for args, words in ((("--offline", "--work", "train", "--requests", "1"), ("steps/s", "stopped")),
                            (("--online", "--work", "infer-1ms", "--requests", "5", "--rate", "100"), ("p99.9 ms", "mean ms"))):
            out = tap.good("sim-client", "--gpu", f"{folder}/gpu/sock", *args, env=dict(os.environ, GPREEMPT_SOCKET=f"{folder}/none"))
            for word in ("simulated mi308x", "simulated time on the real clock", "nobody scheduled it", *words):
                tap.true(word in out.stdout, out.stdout)
            tap.same(out.stderr, "gpreempt: no gpreemptd: it runs unscheduled\n", "stderr")


def table(text):
    """The last table of a text, by its headings: two spaces or more are between columns."""
    heads, values = (re.split(r" {2,}", line.strip()) for line in text.splitlines()[1:3])
    return dict(zip(heads, values))


ONE_MS = ("sim-client", "--online", "--work", "infer-1ms", "--socket", "/nowhere")


@tap.test("a percentile of too few requests is not told, as in gpreempt sim, and of no request nothing is")
def _(folder):
    with gpu(folder):
        some = table(tap.good(*ONE_MS, "--gpu", f"{folder}/gpu/sock", "--requests", "5", "--rate", "100").stdout)
        tap.same((some["requests"], some["p99 ms"], some["p99.9 ms"]), ("5", "-", "-"), f"{some}")
        tap.true(float(some["p50 ms"]) > 1 and float(some["max ms"]) > 1, f"{some}")
        none = table(tap.good(*ONE_MS, "--gpu", f"{folder}/gpu/sock", "--duration", "10ms", "--rate", "0.001").stdout)
        tap.same(none, dict(none, **{"requests": "0", "p50 ms": "-", "max ms": "-", "mean ms": "-"}), "of none")
        told = Client(folder, *ONE_MS[1:4], "--requests", "1000", "--rate", "2000").figures()["latency_ns"]
        tap.true(told["p99"] > 10**6 and told["p999"] is None, f"{told}")


@tap.test("how late the host woke the client is told, that its noise can be told from queueing")
def _(folder):
    with gpu(folder):
        out = tap.good(*ONE_MS, "--gpu", f"{folder}/gpu/sock", "--requests", "20", "--rate", "100").stdout
        late = re.search(r"^Host: woke it late, p50 ([0-9.]+) ms, at most ([0-9.]+) ms, of ([0-9]+) sleeps", out, re.M)
        tap.true(late and 0 < float(late[1]) <= float(late[2]) and int(late[3]) >= 10, out)
        with Client(folder, *ONE_MS[1:4], "--requests", "20", "--rate", "20").runs() as client:
            while client.poll() is None:
                client.send_signal(signal.SIGSTOP)
                time.sleep(0.2)
                client.send_signal(signal.SIGCONT)
                time.sleep(0.1)
            told = client.figures()["late_ns"]
        tap.true(told["max"] > 0.1 * 10**9, f"{told}")


def shape(text):
    """A printed table without its numbers."""
    return [re.sub(r"[0-9][0-9.]*|(?<= )-(?= )", "N", " ".join(line.split())) for line in text.splitlines()]


@tap.test("the README's third shell shows what the client prints there, but for the numbers", alone=True)
def _(folder):
    command, shown = re.search(r"^\$ gpreempt (sim-client --online .*)\n((?:.+\n)*?)```", tap.read(tap.SOURCE, "README.md"), re.M).groups()
    with gpu(folder), daemon(folder) as d, train(folder, socket=d.path) as client:
        handles(d, client.pid)
        done = tap.good(*command.split(), "--duration", "1s", "--gpu", f"{folder}/gpu/sock", "--socket", d.path)
        tap.same((shape(done.stdout), done.stderr), (shape(shown), ""), "output")
        tap.true(float(table(shown)["p50 ms"]) < FAST_MS and float(table(done.stdout)["p50 ms"]) < FAST_MS, done.stdout)


tap.main(jobs=2)
