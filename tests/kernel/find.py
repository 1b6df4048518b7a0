#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=240 param=cus=4
"""The queues of a process as the driver's files tell them are those that the process itself knows."""

import contextlib
import json
import os
import signal
import subprocess

import amd
import tap

NOBODY = 65534


class Bare(amd.Target):
    """A target without an agent, and nobody who could tell of it but the driver."""

    def __init__(self, queues):
        self.process = subprocess.Popen([amd.TARGET, str(queues)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.rings = self.hear_ready()


@contextlib.contextmanager
def target(queues):
    one = Bare(queues)
    try:
        yield one
    finally:
        one.kill()


def config(folder, pid):
    scope = {}
    exec(tap.read(folder, f"queue_config_pid_{pid}.py"), scope)  # what the notes do with it
    return scope["queues"]


@tap.test("find shows the ids and addresses that the process knows, and writes them")
def _(folder):
    with target(3) as one:
        text = tap.good("find", str(one.pid), cwd=folder).stdout
        for number, (id, ring) in enumerate(sorted(one.rings.items()), 1):
            block = text.split(f"Queue #{number}:")[1].split("Queue #")[0]
            tap.true(f"address:  0x{ring:016x}" in block, block)
            tap.true(f"queue id: {id}" in block, block)
            tap.true(f"pid:      {one.pid}" in block and "active:   yes" in block, block)
        tap.true("Total: 3 queues" in text and f"Wrote queue_config_pid_{one.pid}.py" in text, text)
        want = [{"addr": ring, "queue_id": id, "pid": one.pid, "is_active": True} for id, ring in sorted(one.rings.items())]
        tap.same(config(folder, one.pid), want, "the file")


@tap.test("by the notes' name it is the same")
def _(folder):
    os.symlink(tap.PROGRAM, f"{folder}/queue_finder")
    with target(1) as one:
        done = tap.run(str(one.pid), program=f"{folder}/queue_finder", cwd=folder)
        tap.same(done.returncode, 0, done.stderr)
        tap.same([queue["addr"] for queue in config(folder, one.pid)], list(one.rings.values()), "the file")


@tap.test("a queue that its process stops is not active any more")
def _(folder):
    with target(2) as one:
        stopped = max(one.rings)
        one.tell(f"update {stopped} 0 7")
        tap.good("find", str(one.pid), cwd=folder)
        tap.same({queue["queue_id"]: queue["is_active"] for queue in config(folder, one.pid)},
                 {id: id != stopped for id in one.rings}, "active")
        one.tell(f"update {stopped} 100 7")


@tap.test("a user who may not read debugfs gets the ids, and is told why the rest is unknown")
def _(folder):
    os.chmod(folder, 0o777)
    with target(2) as one:
        done = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", tap.PROGRAM, "find",
                               str(one.pid)], capture_output=True, text=True, cwd=folder, check=False)
        tap.same(done.returncode, 0, done.stderr)
        tap.true("address:  unknown" in done.stdout and "root" in done.stdout, done.stdout)
        tap.same({queue["queue_id"]: queue["addr"] for queue in config(folder, one.pid)}, dict.fromkeys(one.rings), "the file")


@tap.test("a log adds the runtime's number to the queue whose ring it names")
def _(folder):
    with target(2) as one:
        id, ring = max(one.rings.items())
        log = tap.write(f"{folder}/hip.log", f":4:rocvirtual.cpp :906 : 0123456789 us: [pid:{one.pid} tid:0x7f] "
                        f"SWq=0x7f0000001000, HWq=0x{ring:x}, id=41, Dispatch Header = 0xb02\n")
        found = json.loads(tap.good("find", str(one.pid), log, "--json", cwd=folder).stdout)["queues"]
        tap.same({queue["queue_id"]: queue["runtime_id"] for queue in found},
                 {other: 41 if other == id else None for other in one.rings}, "the runtime's numbers")


@tap.test("a process without the driver, and one that is none, are told apart")
def _(folder):
    done = tap.run("find", "1", cwd=folder)
    tap.same(done.returncode, tap.FAILED, done.stdout)
    tap.true("does not use an AMD GPU" in done.stderr, done.stderr)
    done = tap.run("find", "4000000", cwd=folder)
    tap.same(done.returncode, tap.FAILED, done.stdout)
    tap.true("there is no process 4000000" in done.stderr, done.stderr)
    tap.same(os.listdir(folder), [], "files written")


@tap.test("list shows the device and the queues of all processes, and that nobody can stop them")
def _(folder):
    with target(2) as one, target(1) as other:
        listed = json.loads(tap.good("list", "--json").stdout)
        tap.same([device["backend"] for device in listed["devices"]], ["kfd"], "devices")
        tap.same({(queue["pid"], queue["queue_id"]): int(queue["ring"], 16) for queue in listed["queues"]},
                 {(each.pid, id): ring for each in (one, other) for id, ring in each.rings.items()}, "queues")
        tap.same({(queue["priority"], queue["way"], queue["state"]) for queue in listed["queues"]}, {(7, "", "running")}, "queues")
        text = tap.good("list").stdout
        tap.true("no gpreemptd at" in text, text)
        for id in one.rings:
            tap.true(f"\n{one.pid}:{id} " in text, text)


@tap.test("a search for priorities that ROCm does not give says so")
def _(folder):
    with target(1):
        text = tap.good("list", "--priority", "0-5").stdout
        tap.true("no queues" in text and "0, 7 or 11" in text, text)
        tap.same(len(json.loads(tap.good("list", "--priority", "7-7", "--json").stdout)["queues"]), 1, "queues of 7")


@tap.test("a rule on the command line gives a class, and says that it did")
def _(folder):
    with target(1) as one, target(1) as other:
        listed = json.loads(tap.good("list", "--rule", f"online:pid={one.pid}", "--json").stdout)["queues"]
        tap.same({queue["pid"]: queue["class"] for queue in listed}, {one.pid: "online", other.pid: "offline"}, str(listed))


@contextlib.contextmanager
def watch():
    program = subprocess.Popen([tap.PROGRAM, "list", "--watch", "100ms", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        program.stdout.readline()  # what is there
        yield program
    finally:
        program.kill()
        program.wait()


@tap.test("list --watch tells of a queue that comes and of one that goes, and of nothing else")
def _(folder):
    with target(2) as one, watch() as program:
        one.ask("create")
        came = json.loads(program.stdout.readline())
        tap.same((came["change"], came["queue"]["pid"]), ("came", one.pid), str(came))
        tap.true(came["queue"]["queue_id"] not in one.rings, str(came))
        one.tell(f"destroy {came['queue']['queue_id']}")
        went = json.loads(program.stdout.readline())
        tap.same((went["change"], went["queue"]["queue"]), ("went", came["queue"]["queue"]), f"{came} {went}")
        program.send_signal(signal.SIGINT)
        tap.same(program.wait(amd.PATIENCE), 0, "exit status after Ctrl-C")
        tap.same(program.stdout.read(), "", "more")


@tap.test("without gpreemptd nothing can be suspended, and the error says to start it")
def _(folder):
    with target(1) as one:
        done = tap.run("suspend", str(one.pid))
        tap.same(done.returncode, tap.FAILED, done.stdout)
        tap.true("start" in done.stderr and "gpreemptd" in done.stderr, done.stderr)
        one.goes_on()


tap.main()
