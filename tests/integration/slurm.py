#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Jobs of Slurm under gpreempt, on four nodes with a simulated GPU each; slurmctld, slurmd and munged are Debian's own."""

import atexit
import ctypes.util
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import threading
import time

import tap
from cluster import AGENT, NODES, SHARE, TRAIN, USER, Cluster, as_user, cluster, end, free_ports, serving, why_not
from gpreemptd import until

SOON = 60.0
NOBODY = 65534
OTHER = ctypes.util.find_library("dl") or "libm.so.6"  # any library, for LD_PRELOAD
_cluster = []


def shared():
    """One for all tests here, from the first that needs it on."""
    if not _cluster:
        one = Cluster()
        _cluster.append(one)
        atexit.register(one.stop)
        one.start()
    return _cluster[0]


def only(node):
    """The one client there"""
    until(lambda: len(node.clients()) == 1, f"one client is on {node.name}: {node.clients()}", SOON)
    return next(iter(node.clients().values()))


def is_quiet(c, *names):
    for name in names or NODES:
        until(c.nodes[name].is_quiet, f"nothing is left on {name}: {c.nodes[name].jobs()} {c.nodes[name].clients()}", SOON)


class Running(subprocess.Popen):
    """srun, in the background, of a user; it ends with the block."""

    def __init__(self, c, *command, env=None):
        super().__init__([*as_user(USER), "srun", *command], env=dict(c.env, **(env or {})), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, cwd="/tmp", preexec_fn=tap.die_with_parent)

    def interrupt(self):
        """What it said on stderr; twice, as srun wants it"""
        self.send_signal(signal.SIGINT)
        time.sleep(0.1)
        self.send_signal(signal.SIGINT)
        return self.communicate(timeout=SOON)[1]

    def __exit__(self, *why):
        self.kill()
        super().__exit__(*why)


@tap.test("srun, sbatch and salloc have the options, and what is wrong with one is said before anything starts")
def _(folder):
    c = shared()
    for program in ("srun", "sbatch", "salloc"):
        said = c.good(program, "--help")
        tap.true(all(f"--{name}=" in said for name in ("gpreempt", "gpreempt-slo", "gpreempt-weight")), f"{program} --help: {said}")
    for option, why in (("--gpreempt=fast", "write online or offline"), ("--gpreempt-slo=20", "write a number with ns, us, ms, s, min, m or h"),
                        ("--gpreempt-requeue-after=10", '"10" is no time; write a number with ns, us, ms, s, min, m or h, as in: 10m'),
                        ("--gpreempt-weight=0", "a number from 1 to 10000"), ("--gpreempt-requeue-below=5x", "as in: 5%"),
                        ("--gpreempt-weight=50", "write --gpreempt=online or offline, too")):
        done = c.run("srun", option, "true", user=USER)
        tap.true(done.status != 0 and why in done.err, f"{option}: {done.err}")
    tap.same(c.good("squeue", "-h"), "", "jobs")


@tap.test("a user's job is online in the services' partition, with its objective and weight, and its processes alone")
def _(folder):
    c = shared()
    with Running(c, "-p", "services", "-w", "n1", "--gres=shard:1", "--gpreempt=online", "--gpreempt-slo=20ms", "--gpreempt-weight=50", "sh", "-c", serving(600)) as job:
        client = only(c.nodes["n1"])
        tap.same((client["class"], client["uid"], client["weight"], client["slo_ns"]), ("online", NOBODY, 50, 20_000_000), "the client")
        tap.true(re.fullmatch(r"job slurm \d+\.0", client["rule"]), client["rule"])
        tap.same(c.nodes["n1"].jobs(), [client["rule"][4:]], "jobs")
        job.interrupt()
    is_quiet(c, "n1")


class Shell:
    """Of a user, on a terminal, by salloc; it ends with the block, and the allocation with it."""

    def __init__(self, c, *command, env=None):
        self.said = ""
        ours, theirs = pty.openpty()
        self.terminal, tty = ours, os.ttyname(theirs)

        def begin():
            tap.die_with_parent()
            os.setsid()
            os.close(os.open(tty, os.O_RDWR))  # the terminal of its session
        self.process = subprocess.Popen([*as_user(USER), "salloc", *command], env={**c.env, "SHELL": "/bin/sh", **(env or {})}, stdin=theirs,
                                        stdout=theirs, stderr=theirs, cwd="/tmp", preexec_fn=begin)
        os.close(theirs)

    def hears(self, pattern):
        finish = time.monotonic() + SOON
        while not re.search(pattern, self.said) and select.select([self.terminal], [], [], max(0, finish - time.monotonic()))[0]:
            try:
                self.said += os.read(self.terminal, 4096).decode()
            except OSError:  # who was there has left
                break
        found = re.search(pattern, self.said)
        tap.true(found, f"{pattern} is not in {self.said!r}")
        return found

    def type(self, line):
        os.write(self.terminal, f"{line}\n".encode())

    def __enter__(self):
        return self

    def __exit__(self, *why):
        end(self.process)
        os.close(self.terminal)


@tap.test("in a shell that salloc gives, each step has the class that was asked for, and an entry; the shell itself is where it was, and nobody's")
def _(folder):
    c = shared()
    node = c.nodes["n2"]
    with Shell(c, "-p", "services", "-w", "n2", "--gres=shard:1", "--gpreempt=online", "--gpreempt-slo=1s", "--gpreempt-weight=50", "sh", "-i") as shell:
        job = int(shell.hears(r"Granted job allocation (\d+)")[1])
        # -i none: srun would read what is typed for the shell
        shell.type("echo here: ${GPREEMPT_CLASS:-none}; srun -i none sh -c 'echo there: $GPREEMPT_CLASS, $(hostname)'")
        shell.hears("here: none")
        shell.hears("there: online, n2")
        shell.type(f"srun -i none {serving(600)}")
        client = only(node)
        tap.same([client[key] for key in ("class", "weight", "slo_ns", "rule", "uid")], ["online", 50, 10**9, f"job slurm {job}.1", NOBODY], "the step's program")
        os.kill(client["pid"], signal.SIGTERM)
        in_comment(c, job, "1", "n2", r"online, (\d+ requests, p50 |ran )")
        until(lambda: not node.clients(), "it is gone", SOON)
        shell.type("srun -i none --gpreempt=offline " + TRAIN)
        client = only(node)
        tap.same([client[key] for key in ("class", "rule")], ["offline", f"job slurm {job}.2"], "a step that asks for less")
        os.kill(client["pid"], signal.SIGTERM)
        shell.type("exit")
        shell.process.wait(SOON)
    c.ends(job)
    is_quiet(c, "n2")


@tap.test("a shell that salloc starts on the node is a step too, and what is typed there is of the job")
def _(folder):
    c = shared()
    conf = tap.write(f"{c.folder}/login.conf", tap.read(f"{c.folder}/slurm.conf") + "LaunchParameters=use_interactive_step\n")
    with Shell(c, "-w", "n3", "--gres=shard:1", "--gpreempt=offline", env=dict(SLURM_CONF=conf)) as shell:
        job = int(shell.hears(r"Granted job allocation (\d+)")[1])
        shell.type("echo here: $GPREEMPT_CLASS, $(hostname)")
        shell.hears("here: offline, n3")
        shell.type(f"exec {serving(600)}")
        client = only(c.nodes["n3"])
        tap.same([client[key] for key in ("class", "rule")], ["offline", f"job slurm {job}.interactive"], "the program")
        os.kill(client["pid"], signal.SIGTERM)
        in_comment(c, job, "interactive", "n3", "offline, ")
        shell.process.wait(SOON)
    c.ends(job)
    is_quiet(c, "n3")


@tap.test("who asks to be online in another partition, and says so in its environment and to gpreemptd, is offline, and is told so once")
def _(folder):
    c = shared()
    lies = "SLURM_JOB_PARTITION=services GPREEMPT_CLASS=online"
    said_weight = ("--weight", "9000")  # to gpreemptd, as the agent says GPREEMPT_WEIGHT
    with Running(c, "-p", "harvest", "-w", "n2", "-n", "2", "--gpreempt=online", "--gres=shard:1", "sh", "-c", f"{lies} exec {serving(600, 20, *said_weight)}",
                 env=dict(SLURM_JOB_PARTITION="services", GPREEMPT_CLASS="online", SLURMD_NODENAME="n1")) as job:
        node = c.nodes["n2"]
        until(lambda: len(node.clients()) == 2, "both tasks are there", SOON)
        tap.same({(one["class"], one["weight"]) for one in node.clients().values()}, {("offline", 100)}, "what they are")
        said = job.interrupt()
    tap.same(said.count("n2: it is offline: partition harvest is not for online jobs"), 1, said)
    is_quiet(c, "n2")


@tap.test("the environment has the agent once, before what is there, and what gpreempt run sets")
def _(folder):
    c = shared()
    for before, after in ((AGENT, AGENT), (OTHER, f"{AGENT}:{OTHER}"), ("", AGENT)):
        said = c.good("srun", "-w", "n3", "--gpreempt=offline", "--gpreempt-weight=40", "--gpreempt-slo=3ms", "env", user=USER, env=dict(LD_PRELOAD=before))
        has = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        tap.same([has.get(name) for name in ("LD_PRELOAD", "GPREEMPT_CLASS", "GPREEMPT_WEIGHT", "GPREEMPT_SLO")], [after, "offline", "40", "3000000"], said)
    done = c.run("srun", "-w", "n3", "--gpreempt=offline", "true", user=USER, env=dict(LD_PRELOAD=":".join([OTHER] * 1000)))
    tap.true(done.status == 0 and "LD_PRELOAD has no room for the agent: it runs unscheduled" in done.err, done.err)
    said = c.good("srun", "-w", "n3", "env", user=USER)
    tap.true("GPREEMPT" not in said and "LD_PRELOAD" not in said, said)
    is_quiet(c, "n3")


@tap.test("what the administrator sets counts: the class of who does not ask, the most weight, the socket; and where the agent is not, a job is told so")
def _(folder):
    c = shared()
    try:
        c.set_plugin("default=offline max_weight=30 socket=/run/gpreempt/gpreemptd.sock")
        with Running(c, "-w", "n2", "--gres=shard:1", "--gpreempt-weight=9000", "sh", "-c", TRAIN) as job:
            client = only(c.nodes["n2"])
            tap.same((client["class"], client["weight"], client["rule"][:10]), ("offline", 30, "job slurm "), f"{client}")
            said = job.interrupt()
        tap.same(said.count("n2: its weight is 30: plugstack.conf allows no more"), 1, said)
        is_quiet(c, "n2")
        with Running(c, "-w", "n2", "--gres=shard:1", "sh", "-c", f"{TRAIN} --weight 9000") as job:
            tap.same(only(c.nodes["n2"])["weight"], 30, "of who asks for no weight, and says one to gpreemptd")
            job.interrupt()
        tap.same(c.good("srun", "-w", "n2", "printenv", "GPREEMPT_CLASS", "GPREEMPT_SOCKET", user=USER), "offline\n/run/gpreempt/gpreemptd.sock\n", "environment")
        c.set_plugin("default=online agent=/nowhere.so")
        for partition, name in (("services", "online"), ("harvest", "offline")):
            done = c.run("srun", "-p", partition, "-w", "n2", "printenv", "GPREEMPT_CLASS", user=USER)
            tap.same((done.status, done.out), (0, f"{name}\n"), f"{partition}: {done.err}")
            tap.true("n2: there is no agent at /nowhere.so: it runs unscheduled" in done.err and "it is offline" not in done.err, done.err)
    finally:
        c.set_plugin()
    is_quiet(c, "n2")


@tap.test("a job whose GPU gpreemptd does not know is told so")
def _(folder):
    c = shared()
    node = c.nodes["n2"]
    end(node.gpu)
    try:
        done = c.run("srun", "-w", "n2", "--gres=shard:1", "--gpreempt=offline", "true", user=USER)
        tap.true(done.status == 0 and "n2: Slurm gave it GPU 0, and gpreemptd knows 0" in done.err, done.err)
    finally:
        node.start_gpu()
    is_quiet(c, "n2")


@tap.test("the GPUs of a report are those that Slurm gave, not those that the environment says it did")
def _(folder):
    c = shared()
    lies = dict(SLURM_JOB_GPUS="9", SLURM_STEP_GPUS="9")
    for asks, has in ((), 0), (("--gres=shard:1",), 1):
        job = int(c.good("srun", "-w", "n3", "--gpreempt=offline", *asks, "printenv", "SLURM_JOB_ID", user=USER, env=lies))
        batch = c.batch("true", "-w", "n3", "--gpreempt=offline", *asks, "--export=ALL,SLURM_JOB_GPUS=9,SLURM_STEP_GPUS=9", user=USER)
        for number, step in ((job, "0"), (batch, "batch")):
            tap.same([gpu["slurm"] for gpu in c.report(number, step, "n3")["gpus"]], [0] * has, f"{step}, {asks}")
    is_quiet(c, "n3")


def in_comment(c, job, step, node, pattern):
    return c.comment(job, rf"gpreempt {step}@{node}: {pattern}")


@tap.test("a step's end has how often and how long it was stopped, a service's its latency and how many were in time: in the comment, behind the user's, and as JSON")
def _(folder):
    c = shared()
    train = c.batch(f"exec {TRAIN} --duration 10s", "-p", "harvest", "-w", "n1", "--gres=shard:1", "--gpreempt=offline", "--comment=mine; too", user=USER)
    only(c.nodes["n1"])
    serve = c.batch(f"srun {serving(4)}", "-p", "services", "-w", "n1", "--gres=shard:1", "--gpreempt=online", "--gpreempt-slo=1s", user=USER, name="serve")
    c.ends(serve, "COMPLETED")
    found = in_comment(c, serve, "0", "n1", r"online, (\d+) requests, p50 ([\d.]+) ms, p99 ([\d.]+) ms, ([\d.]+)% in time")
    had = c.report(serve, "0", "n1")
    tap.same((had["class"], had["requests"], had["with_slo"], had["slo_ns"], had["partial"]), ("online", int(found[1]), int(found[1]), 10**9, False), f"{had}")
    tap.true(70 <= had["requests"] <= 80 and 0 < had["p50_ns"] <= had["p99_ns"] <= had["max_ns"] and had["within_slo"] > 0, f"{had}")
    tap.same(had["gpus"], [{"slurm": 0, "device": 0, "name": "mi308x", "pci": ""}], "GPUs")
    c.ends(train, "COMPLETED")
    found = in_comment(c, train, "batch", "n1", r"offline, ran ([\d.]+) s, stopped (\d+) times, ([\d.]+) s\s*$")
    tap.true(c.job(train)["Comment"].startswith("mine; too; gpreempt "), c.job(train)["Comment"])
    had = c.report(train, "batch", "n1")
    tap.same((had["class"], had["waits"], had["requests"]), ("offline", int(found[2]), 0), f"{had}")
    tap.true(had["waits"] > 10 and had["waited_ns"] > had["waits"] * 10**6 and had["ran_ns"] > 0, f"{had}")
    is_quiet(c, "n1")


@tap.test("a job of srun's own has its entry too, however long gpreemptd takes to say what it had")
def _(folder):
    c = shared()
    node = c.nodes["n1"]
    with Running(c, "-w", "n1", "--gpreempt=offline", "sleep", "1"):
        until(node.jobs, "it is declared", SOON)
        job = int(re.search(r"slurm (\d+)", node.jobs()[0])[1])
        node.daemon.send_signal(signal.SIGSTOP)
        time.sleep(3)
        node.daemon.send_signal(signal.SIGCONT)
        in_comment(c, job, "0", "n1", "offline, ran 0 s")
    is_quiet(c, "n1")


@tap.test("a step has ended when the last of its tasks has: what that had is in the entry")
def _(folder):
    c = shared()
    said = c.good("srun", "-w", "n2", "-n", "2", "--gres=shard:1", "--gpreempt=offline", "sh", "-c",
                  f"[ $SLURM_PROCID = 1 ] && exec {TRAIN} --duration 2s >/dev/null; echo $SLURM_JOB_ID", user=USER)
    tap.true(float(in_comment(c, int(said), "0", "n2", r"offline, ran ([\d.]+) s")[1]) > 0.5, c.job(int(said)))
    is_quiet(c, "n2")


@tap.test("four nodes that end two steps at once write eight entries into one comment")
def _(folder):
    c = shared()
    job = c.batch("srun -N4 --overlap sleep 1 & srun -N4 --overlap sleep 1 & wait; sleep 2", "-N4", "--gpreempt=offline", user=USER)
    until(lambda: len(re.findall("gpreempt [01]@", c.job(job).get("Comment", ""))) == 8, f"all are there: {c.job(job)}", SOON)
    for name in NODES:
        for step in "01":
            in_comment(c, job, step, name, "offline, ran 0 s, stopped 0 times, 0 s")
    c.good("scancel", str(job))
    is_quiet(c)


@tap.test("where there is no gpreemptd a job runs, and is told so once; where the administrator requires one it does not start")
def _(folder):
    c = shared()
    node = c.nodes["n4"]
    node.kill_daemon()
    try:
        done = c.run("srun", "-w", "n4", "-n", "3", "--gpreempt=offline", "echo", "ran", user=USER)
        tap.same((done.status, done.out), (0, "ran\n" * 3), done.err)
        tap.same(len(re.findall("n4: nobody schedules it: .*no gpreemptd at /run/gpreempt", done.err)), 1, done.err)
        c.set_plugin("require")
        done = c.run("srun", "-w", "n4", "--gpreempt=offline", "echo", "ran", user=USER)
        tap.true(done.status != 0 and not done.out, f"nothing ran: {done.status} {done.out}")
        tap.true(re.search("n4: it does not start here: .*no gpreemptd at", done.err), done.err)
        c.ends(c.batch("true", "-w", "n4", "--gpreempt=offline", user=USER), "FAILED")
        tap.same(c.good("srun", "-w", "n4", "echo", "ran", user=USER), "ran\n", "who does not ask")
        tap.same(c.good("srun", "-w", "n3", "--gpreempt=offline", "echo", "ran", user=USER), "ran\n", "elsewhere")
    finally:
        c.set_plugin()
        node.start_daemon()
    until(lambda: "n4" not in c.good("sinfo", "-h", "-R", "-o", "%n"), "the node is not drained")


@tap.test("a mistake in a node's plugstack.conf drains no node and ends no job unstarted: who asks is told, and does not start where one is required")
def _(folder):
    c = shared()
    good, conf = tap.read(f"{c.folder}/plugstack.conf"), f"{c.folder}/submit.conf"
    tap.write(f"{c.folder}/submit.plugstack", good)  # where jobs are submitted there is none
    tap.write(conf, tap.read(f"{c.folder}/slurm.conf").replace("/plugstack.conf", "/submit.plugstack"))

    def run(*options):
        done = c.run("srun", "-w", "n4", *options, "echo", "ran", user=USER, env=dict(SLURM_CONF=conf))
        return done.status, done.out, done.err
    wrong = 'plugstack.conf there: max_weight: "0" is no weight'
    try:
        c.set_plugin("max_weight=0")
        for class_ in ("offline", "online"):
            status, out, err = run("-p", "services", "-n", "2", f"--gpreempt={class_}")
            tap.same((status, out, err.count(f"n4: nobody schedules it: {wrong}")), (0, "ran\n" * 2, 1), err)
        tap.same(run()[:2], (0, "ran\n"), "who does not ask")
        c.set_plugin("max_weight=0 require")
        status, out, err = run("--gpreempt=offline")
        tap.true(status != 0 and not out and f"n4: it does not start here: {wrong}" in err, f"{status} {out} {err}")
        tap.write(f"{c.folder}/true.sh", "#!/bin/sh\ntrue\n")
        job = int(c.good("sbatch", "--parsable", "-o", "/dev/null", "-w", "n4", "--gpreempt=offline", f"{c.folder}/true.sh", env=dict(SLURM_CONF=conf)))
        c.ends(job, "FAILED")
        tap.same(run()[:2], (0, "ran\n"), "who does not ask")
        c.set_plugin("max_weight=0 require default=offline")
        status, out, err = run()
        tap.true(status != 0 and not out and f"n4: it does not start here: {wrong}" in err, f"who is offline by default: {status} {out} {err}")
    finally:
        c.set_plugin()
    until(lambda: "n4" not in c.good("sinfo", "-h", "-R", "-o", "%n"), "the node is not drained")


@tap.test("a gpreemptd that hangs keeps no job from its start, and none from its end")
def _(folder):
    c = shared()
    node = c.nodes["n4"]
    job = c.batch("exec sleep 600", "-w", "n4", "--gpreempt=offline", user=USER)
    until(node.jobs, "it is declared", SOON)
    node.daemon.send_signal(signal.SIGSTOP)
    try:
        begun = time.monotonic()
        done = c.run("srun", "-w", "n4", "--gpreempt=offline", "echo", "ran", user=USER)
        tap.true(time.monotonic() - begun < 15, "it is waited for, five seconds at the most")
        tap.same((done.status, done.out), (0, "ran\n"), done.err)
        tap.true(re.search("n4: nobody schedules it: gpreemptd at .* does not answer", done.err), done.err)
        c.good("scancel", str(job))
        c.ends(job, "CANCELLED")
    finally:
        node.daemon.send_signal(signal.SIGCONT)
    is_quiet(c, "n4")


class Hung:
    """In the place of a node's gpreemptd: it passes on what the first who comes says and hears, and does not answer the others; or it leaves then."""

    def __init__(self, node, leaves=False):
        self.leaves, self.path, self.real = leaves, node.socket, f"{node.socket}.real"
        os.rename(self.path, self.real)
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.door.bind(self.path)
        os.chmod(self.path, 0o666)
        self.door.listen()
        threading.Thread(target=self.pass_on, daemon=True).start()

    def pass_on(self):
        with self.door.accept()[0] as one, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as real:
            real.connect(self.real)
            if self.leaves:
                self.door.close()
            while True:
                for ready in select.select([one, real], [], [])[0]:
                    said = ready.recv(65536)
                    if not said:
                        return
                    (real if ready is one else one).send(said)

    def end(self):
        self.door.close()
        os.rename(self.real, self.path)


@tap.test("a gpreemptd that begins to hang while a step is started is waited for once, not for each task")
def _(folder):
    c = shared()
    hung = Hung(c.nodes["n4"])
    try:
        begun = time.monotonic()
        done = c.run("srun", "-w", "n4", "-n", "6", "--gpreempt=offline", "echo", "ran", user=USER)
        took = time.monotonic() - begun
    finally:
        hung.end()
    tap.same((done.status, done.out), (0, "ran\n" * 6), done.err)
    tap.same(len(re.findall("n4: nobody schedules it: gpreemptd at .* does not answer", done.err)), 1, done.err)
    tap.true(5 <= took < 25, f"it took {took:.1f} s")
    is_quiet(c, "n4")


@tap.test("a gpreemptd that leaves while a step is started: the step runs and is told, or does not start where the administrator requires one")
def _(folder):
    def run(settings, *command):
        c.set_plugin(settings)
        hung = Hung(c.nodes["n4"], leaves=True)
        try:
            return command[0](*command[1:])
        finally:
            hung.end()
            c.set_plugin()

    def batch():
        c.ends(c.batch(f"touch {folder}/ran", "-w", "n4", "--gpreempt=offline"), "FAILED")
    c = shared()
    step = ("srun", "-w", "n4", "-n", "2", "--gpreempt=offline")
    before = tap.write(f"{folder}/before.sh", f"#!/bin/sh\ntouch {folder}/ran\n")
    os.chmod(before, 0o755)
    done = run("", c.run, *step, "echo", "ran")
    tap.same((done.status, done.out), (0, "ran\n" * 2), done.err)
    tap.same(len(re.findall("n4: nobody schedules it: .*no gpreemptd at", done.err)), 1, done.err)
    done = run("require", c.run, *step, f"--task-prolog={before}", "echo", "ran")
    tap.true(done.status != 0 and not done.out, f"nothing ran: {done.status} {done.out}")
    tap.same(len(re.findall("n4: it does not start here: .*no gpreemptd at", done.err)), 1, done.err)
    run("require", batch)
    tap.same(sorted(os.listdir(folder)), ["before.sh"], "files: nothing ran")
    until(lambda: "n4" not in c.good("sinfo", "-h", "-R", "-o", "%n"), "the node is not drained")
    is_quiet(c, "n4")


@tap.test("all tasks of a step, and what they start, are of its job; with the step's end nothing is left")
def _(folder):
    c = shared()
    with Running(c, "-w", "n3", "-n", "3", "--gres=shard:1", "--gpreempt=offline", "sh", "-c", f"{TRAIN} & {TRAIN} & wait") as job:
        node = c.nodes["n3"]
        until(lambda: len(node.clients()) == 6, "six programs are there", SOON)
        tap.same(len({one["rule"] for one in node.clients().values()}), 1, "one job")
        tap.same(len(node.jobs()), 1, "jobs")
        job.interrupt()
    is_quiet(c, "n3")


@tap.test("a job that is cancelled while it stands still ends, and its report has what it had")
def _(folder):
    c = shared()
    node = c.nodes["n2"]
    with Running(c, "-p", "services", "-w", "n2", "--gres=shard:1", "--gpreempt=online", "sh", "-c", serving(600, 60)):
        only(node)
        job = c.batch(f"exec {TRAIN}", "-w", "n2", "--gres=shard:1", "--gpreempt=offline", user=USER)
        until(lambda: any(one["class"] == "offline" and one["state"] == "waiting" for one in node.clients().values()), "it is made to wait", SOON)
        c.good("scancel", str(job))
        c.ends(job, "CANCELLED")
        tap.true(c.report(job, "batch", "n2")["waits"] > 0, "stops")
        until(lambda: len(node.clients()) == 1, "it is gone", SOON)
    is_quiet(c, "n2")


@tap.test("a service that is told to end, by scancel --signal, has its entry")
def _(folder):
    c = shared()
    node = c.nodes["n3"]
    job = c.batch(f"exec {serving(600)}", "-p", "services", "-w", "n3", "--gres=shard:1", "--gpreempt=online", "--gpreempt-slo=1s", user=USER)
    only(node)
    c.good("scancel", "--full", "--signal=TERM", str(job))
    in_comment(c, job, "batch", "n3", r"online, (\d+ requests, p50 |ran )")  # it may not have had time for one
    is_quiet(c, "n3")


@tap.test("each task of an array is a job of its own, with an entry in its own comment")
def _(folder):
    c = shared()
    first = c.batch("sleep 0.$SLURM_ARRAY_TASK_ID", "--array=1-3", "-w", "n1", "--gpreempt=offline", user=USER)
    until(lambda: c.good("scontrol", "show", "job", "-o", str(first)).count("Comment=gpreempt batch@n1: offline") == 3, "all three have one", SOON)
    first = c.batch(f"exec {TRAIN}", "--array=1-6", "-w", "n1", "--gres=shard:1", "--gpreempt=offline", user=USER)
    node = c.nodes["n1"]
    until(lambda: len(node.clients()) == 6, "six programs are there", SOON)
    tap.same(len({one["rule"] for one in node.clients().values()}), 6, "jobs")
    c.good("scancel", str(first))
    is_quiet(c, "n1")


@tap.test("a daemon that a job leaves behind runs on as anybody's: it is not online any more")
def _(folder):
    c = shared()
    node = c.nodes["n1"]
    left = f"setsid sh -c '{serving(600)} &' </dev/null >/dev/null 2>&1"
    job = c.batch(f"{serving(600)} & {left}; sleep 600", "-p", "services", "-w", "n1", "--gres=shard:1", "--gpreempt=online", user=USER)
    until(lambda: sorted(one["class"] for one in node.clients().values()) == ["offline", "online"], f"both are there: {node.clients()}", SOON)
    c.good("scancel", str(job))
    c.ends(job)
    until(lambda: not node.jobs(), "the job is gone", SOON)
    until(lambda: [one["class"] for one in node.clients().values()] == ["offline"], "what is left", SOON)
    for pid in node.clients():
        os.kill(pid, signal.SIGKILL)
    is_quiet(c, "n1")


@tap.test("slurmd killed and started again: the job goes on under gpreempt, and ends as it would")
def _(folder):
    c = shared()
    node = c.nodes["n3"]
    job = c.batch(f"exec {TRAIN}", "-w", "n3", "--gres=shard:1", "--gpreempt=offline", user=USER)
    before = only(node)
    node.kill_slurmd()
    tap.same([only(node)[key] for key in ("pid", "class", "rule")], [before[key] for key in ("pid", "class", "rule")], "the client")
    node.start_slurmd()
    until(lambda: c.good("sinfo", "-h", "-n", "n3", "-o", "%t", "-p", "harvest").strip() in ("mix", "alloc"), "the node is back", SOON)
    tap.same((c.state(job), only(node)["rule"]), ("RUNNING", before["rule"]), "the job")
    c.good("scancel", str(job))
    tap.true(c.report(job, "batch", "n3")["ran_ns"] > 0, "ran")
    is_quiet(c, "n3")


@tap.test("gpreemptd killed and started again: jobs are what they were, and the comment says that it is not all")
def _(folder):
    c = shared()
    node = c.nodes["n4"]
    with Running(c, "-p", "services", "-w", "n4", "--gres=shard:1", "--gpreempt=online", "--gpreempt-slo=1s", "sh", "-c", serving(600)) as serve:
        rule = only(node)["rule"]
        node.kill_daemon()
        node.start_daemon()
        client = only(node)
        tap.same((client["class"], client["rule"], client["slo_ns"]), ("online", rule, 10**9), "the client")
        serve.interrupt()
    job = int(re.search(r"slurm (\d+)", rule)[1])
    in_comment(c, job, "0", "n4", ".*, since gpreemptd was started again")
    tap.same(c.report(job, "0", "n4")["partial"], True, "partial")
    is_quiet(c, "n4")


def resources(c):
    """What each gpreemptd has open"""
    return {name: len(os.listdir(f"/proc/{node.daemon.pid}/fd")) for name, node in c.nodes.items()}


@tap.test("a service on each node and sixteen offline jobs: with gpreempt about as many requests are in time as without the jobs, which have most of what is left")
def _(folder):
    def in_time(name):
        services = found[name]["services"]
        return sum(one["slo_met"] for one in services) / sum(one["submitted"] for one in services)

    def steps(name):
        return sum(one["per_second"] for one in found[name]["training"]) / len(NODES) / found["training_alone"]["per_second"]
    bench = os.path.join(tap.SOURCE, "bench", "slurm_table.py")
    done = tap.run("--rounds", "1", "--seconds", "8", "--out", f"{folder}/table.json", program=bench, timeout=600, preexec_fn=tap.die_with_parent)
    tap.true(os.path.exists(f"{folder}/table.json"), f"{done.stdout}{done.stderr}")
    found = json.loads(tap.read(folder, "table.json"))["rounds"][0]
    again = tap.run("--again", f"{folder}/table.json", program=bench)
    tap.same((again.returncode, again.stdout), (done.returncode, done.stdout), "from the file")
    tap.say(done.stdout.rstrip())  # its bars are of a machine with nothing else to do
    alone, with_it, without = map(in_time, ("alone", "gpreempt", "without"))
    tap.true(with_it > 0.75 * alone and with_it > 2 * without + 0.2, f"in time: {alone}, {with_it}, {without}")
    tap.true(steps("gpreempt") > 0.6, f"steps: {steps('gpreempt')} of what the GPUs do alone")


@tap.test("a job that is over its time ends, and its report has what it had")
def _(folder):
    c = shared()
    job = c.batch(f"exec {TRAIN}", "-w", "n4", "--gres=shard:1", "--gpreempt=offline", user=USER)
    only(c.nodes["n4"])
    c.good("scontrol", "update", f"JobId={job}", "EndTime=now+1")  # slurmctld looks every 30 s
    c.ends(job, "TIMEOUT")
    tap.true(c.report(job, "batch", "n4")["ran_ns"] > 0, "ran")
    is_quiet(c, "n4")


@tap.test("a node's weight follows what online work uses of its GPU, unless that is not to be done")
def _(folder):
    def weigh(*options):
        return json.loads(c.good(tap.PROGRAM, "slurm-weights", "--simulated", "--json", "--socket", c.nodes["n1"].socket, "--name", "n1", *options))

    def weight():
        return int(re.search(r" Weight=(\d+)", c.good("scontrol", "show", "node", "-o", "n1"))[1])
    c = shared()
    with Running(c, "-w", "n1", "--gres=shard:1", "--gpreempt=offline", "sh", "-c", TRAIN):
        until(lambda: only(c.nodes["n1"])["share_permille"] > 100, "offline work is seen", SOON)
        tap.same((weigh()["weight"], weigh()["changed"], weight()), (1, False, 1), "offline work does not count")
    is_quiet(c, "n1")
    with Running(c, "-p", "services", "-w", "n1", "--gres=shard:1", "--gpreempt=online", "sh", "-c", serving(600, 60)):
        until(lambda: weigh("--dry-run")["weight"] > 150, "the service is seen", SOON)
        tap.same((weigh("--dry-run")["changed"], weight()), (False, 1), "it is not to be done")
        said = weigh()
        tap.same((said["changed"], weight()), (True, said["weight"]), f"{said}")
        other = c.run(tap.PROGRAM, "slurm-weights", "--simulated", "--socket", c.nodes["n1"].socket, "--name", "n9")
        tap.true(other.status == 1 and "knows no node n9; --name names another" in other.err, other.err)
        nobody = tap.write(f"{folder}/slurm.conf", re.sub(r"SlurmctldPort=\d+", f"SlurmctldPort={free_ports(1)}", tap.read(f"{c.folder}/slurm.conf")))
        away = c.run(tap.PROGRAM, "slurm-weights", "--simulated", "--dry-run", "--socket", c.nodes["n1"].socket, "--name", "n1", env=dict(SLURM_CONF=nobody))
        tap.true(away.status == 1 and "Unable to contact slurm controller" in away.err and "scontrol cannot ask slurmctld" in away.err, away.err)
        real = c.run(tap.PROGRAM, "slurm-weights", "--dry-run", "--socket", c.nodes["n1"].socket, "--name", "n1")
        tap.true(real.status == 1 and "knows no GPU here; --simulated counts simulated ones" in real.err, f"of simulated ones alone: {real.out}{real.err}")
    is_quiet(c, "n1")
    until(lambda: weigh()["weight"] < 50 and weight() < 50, "it is idle again", SOON)
    until(lambda: weigh("--dry-run")["used_permille"] == 0, "nothing is left of it", SOON)
    for has, will in (49, 49), (51, 1):
        c.good("scontrol", "update", "NodeName=n1", f"Weight={has}")
        tap.same((weigh()["changed"], weight()), (has != will, will), f"from {has}")


def where(c, number):
    """The node that Slurm chose for it"""
    until(lambda: c.state(number) == "RUNNING", f"it runs: {c.job(number)}", SOON)
    return c.job(number)["NodeList"]


@tap.test("Slurm sends jobs that name no node where the weights say that most is left, though all nodes look the same to it")
def _(folder):
    def weigh():
        for name in NODES:
            c.good(tap.PROGRAM, "slurm-weights", "--simulated", "--socket", c.nodes[name].socket, "--name", name)
        return dict(re.findall(r"NodeName=(\w+) .* Weight=(\d+)", c.good("scontrol", "show", "node", "-o")))

    def put_one():
        return c.batch(f"exec {TRAIN}", "--gres=shard:1", "--gpreempt=offline", user=USER)

    def serve(name, rate):
        return c.batch(f"exec {serving(600, rate)}", "-p", "services", "-w", name, "--gres=shard:1", "--gpreempt=online", user=USER)
    c = shared()
    is_quiet(c)
    try:
        services = {name: serve(name, 1 if name == "n3" else 40) for name in NODES}
        for name in NODES:
            only(c.nodes[name])
        first = put_one()
        tap.same(where(c, first), "n1", "all weigh the same: the first")
        c.good("scancel", str(first))
        until(lambda: min(int(value) for name, value in weigh().items() if name != "n3") > 150, f"the services are seen: {weigh()}", SOON)
        tap.same(weigh()["n3"], "1", "of the node whose service has next to nothing to do")
        jobs = [put_one() for _ in range(2)]
        tap.same([where(c, number) for number in jobs], ["n3"] * 2, f"where they are, by {weigh()}")
        c.good("scancel", str(services["n2"]))
        serve("n3", 80)
        until(lambda: weigh()["n2"] == "1" and int(weigh()["n3"]) > 150, f"the load has moved: {weigh()}", SOON)
        tap.same(where(c, put_one()), "n2", f"where the next is, by {weigh()}")
    finally:
        c.good("scancel", "-u", USER)
        is_quiet(c)
        c.good("scontrol", "update", "NodeName=n[1-4]", "Weight=1")


@tap.test("a job that gets less of a GPU than it asks for is requeued, with the reason in its comment; the others run on")
def _(folder):
    c = shared()
    node = c.nodes["n2"]
    with Running(c, "-p", "services", "-w", "n2", "--gres=shard:1", "--gpreempt=online", "sh", "-c", serving(600, 90)):
        only(node)
        asks = ("-w", "n2", "--gres=shard:1", "--gpreempt=offline")
        job = c.batch(f"exec {TRAIN}", *asks, "--comment=mine", "--gpreempt-requeue-below=90%", "--gpreempt-requeue-after=0.04m", user=USER)
        other = c.batch(f"exec {TRAIN}", *asks, user=USER)
        until(lambda: str(job) in c.good(tap.PROGRAM, "slurm-requeue", "--dry-run", "--socket", node.socket), "it starves", SOON)
        tap.same((c.job(job)["Restarts"], c.state(job)), ("0", "RUNNING"), "it was not to be done")
        said = json.loads(c.good(tap.PROGRAM, "slurm-requeue", "--json", "--socket", node.socket))["jobs"]
        tap.same([(one["job"], one["requeued"]) for one in said], [(str(job), True)], "requeued")
        until(lambda: c.job(job)["Restarts"] == "1", "Slurm has requeued it", SOON)
        found = re.search(r"mine; .*gpreempt requeued@\S+: too little of a GPU for \S+", c.job(job)["Comment"])
        tap.true(found, c.job(job)["Comment"])
        tap.same(c.state(other), "RUNNING", "the other")
        c.good("scancel", str(job), str(other))
    is_quiet(c, "n2")


@tap.test("of an array the task that starves is requeued, also the one that has the array's number; of what cannot be requeued the comment stays")
def _(folder):
    def starved():
        return {one["job"] for one in json.loads(c.good(*tell, "--dry-run"))["jobs"]}
    c = shared()
    tell = (tap.PROGRAM, "slurm-requeue", "--json", "--socket", c.nodes["n3"].socket)
    asks = ("--gpreempt=offline", "--gpreempt-requeue-below=90%", "--gpreempt-requeue-after=1s", "--comment=mine")
    first = c.batch(f"[ $SLURM_ARRAY_TASK_ID = 3 ] || exec sleep 600; srun --overlap {TRAIN} & srun --overlap {TRAIN} & wait", "--array=1-3", "-w", "n3", *asks, user=USER)
    other = c.batch(f"exec {TRAIN}", "--no-requeue", "-w", "n3", *asks, user=USER)
    with Running(c, "-p", "services", "-w", "n3", "--gres=shard:1", "--gpreempt=online", "sh", "-c", serving(600, 90)):
        until(lambda: starved() == {str(first), str(other)}, f"both starve: {starved()}", SOON)
        done = c.run(*tell)
        said = [(one["job"], one["requeued"]) for one in json.loads(done.out)["jobs"]]
        tap.same((done.status, len(said), dict(said)), (1, 2, {str(first): True, str(other): False}), f"once each, however many steps it has: {done.err}")
        until(lambda: c.good("squeue", "-h", "-t", "pending,completing", "-o", "%i") == f"{first}_3\n", "that task alone is requeued", SOON)
        restarts = dict(re.findall(r"ArrayTaskId=(\d) .*? Restarts=(\d+)", c.good("scontrol", "show", "job", "-o", str(first))))
        tap.same(restarts, {"1": "0", "2": "0", "3": "1"}, "restarts")
        tap.same(c.job(other)["Comment"].strip(), "mine", "of what runs on")
        tap.same(c.good("squeue", "-h", "-j", f"{first}_1", "-o", "%k").strip(), "mine", "of another task")
        c.good("scancel", str(first), str(other))
    is_quiet(c, "n3")


@tap.test("what a job has had so far is put into its comment, where a cancelled one keeps it; at a step's end the whole takes its place")
def _(folder):
    def tell(*options, **more):
        return c.run("nsenter", "-t", str(node.slurmd.pid), "-m", "-u", tap.PROGRAM, "slurm-comment", *options, **more)

    def put_one(*options):
        return c.batch(f"exec {TRAIN} {' '.join(options)}", "-w", "n3", "--gres=shard:1", "--gpreempt=offline", "--comment=mine", user=USER)

    def comment(number):
        return c.job(number)["Comment"].strip()
    c = shared()
    node = c.nodes["n3"]
    job = put_one()
    until(lambda: only(node)["share_permille"] > 0, "it runs", SOON)
    done = tell("--dry-run", "--json")
    said = json.loads(done.out)["jobs"]
    tap.same(([(one["job"], one["written"]) for one in said], comment(job)), ([(str(job), False)], "mine"), f"it was not to be done: {done.err}")
    os.chmod(tap.write(f"{folder}/squeue", '#!/bin/sh\ncase "$*" in *%k*) exit 1;; esac\nPATH=${PATH#*:} exec squeue "$@"\n'), 0o755)
    tap.same((tell(env=dict(PATH=f"{folder}:{os.environ['PATH']}")).status, comment(job)), (1, "mine"), "where it cannot be read it stays")
    entry = r"mine; gpreempt batch@n3: offline, ran ([\d.]+) s, stopped \d+ times, [\d.]+ s, so far"
    tap.same(tell().status, 0, "done")
    first = re.fullmatch(entry, comment(job))
    tap.true(first, comment(job))
    until(lambda: tell().status == 0 and float(re.fullmatch(entry, comment(job))[1]) > float(first[1]), "it is more, and one entry still", SOON)
    c.good("scancel", str(job))
    c.ends(job, "CANCELLED")
    tap.true(re.fullmatch(entry, comment(job)), comment(job))
    is_quiet(c, "n3")
    job = put_one()
    only(node)
    until(lambda: tell().status == 0 and comment(job).endswith(", so far"), "it is there", SOON)
    c.good("scancel", "--full", "--signal=TERM", str(job))
    until(lambda: re.fullmatch(entry.replace(", so far", ""), comment(job)), f"the whole is there, alone: {comment(job)}", SOON)
    is_quiet(c, "n3")


@tap.test("share/slurm/health.sh is a HealthCheckProgram: it weighs the node, requeues who starves on it, and says what jobs have had so far")
def _(folder):
    def weights():
        return dict(re.findall(r"NodeName=(\w+) .* Weight=(\d+)", c.good("scontrol", "show", "node", "-o")))
    c = shared()
    conf, before = f"{c.folder}/slurm.conf", tap.read(f"{c.folder}/slurm.conf")
    # What an administrator writes into it, where neither is in its usual place.
    health = tap.read(SHARE, "health.sh").replace("export PATH\n", f"export PATH={os.path.dirname(tap.PROGRAM)}:$PATH SLURM_CONF={conf}\n")
    health = health.replace("gpreempt slurm-weights", "gpreempt slurm-weights --simulated")
    os.chmod(tap.write(f"{c.folder}/health.sh", health), 0o755)
    with Running(c, "-p", "services", "-w", "n4", "--gres=shard:1", "--gpreempt=online", "sh", "-c", serving(600, 90)):
        only(c.nodes["n4"])
        job = c.batch(f"exec {TRAIN}", "-w", "n4", "--gpreempt=offline", "--gpreempt-requeue-below=90%", "--gpreempt-requeue-after=1s", user=USER)
        try:
            tap.write(conf, f"{before}HealthCheckProgram={c.folder}/health.sh\nHealthCheckInterval=1\n")
            c.good("scontrol", "reconfigure")
            until(lambda: c.job(job)["Restarts"] != "0" and int(weights()["n4"]) > 150, f"it is done: {c.job(job)}, {weights()}", SOON)
            tap.true("gpreempt requeued@n4: too little of a GPU" in c.job(job)["Comment"], c.job(job)["Comment"])
            tap.same(weights()["n2"], "1", "of an idle node")
            until(lambda: re.search(r"^gpreempt 0@n4: online, .*, so far$", c.good("squeue", "-h", "-p", "services", "-w", "n4", "-o", "%k"), re.M), "what it has had so far", SOON)
        finally:
            tap.write(conf, before)
            c.good("scontrol", "reconfigure")
        c.good("scancel", str(job))  # now: Slurm requeues what is on its way out too
    is_quiet(c, "n4")


@tap.test("where Slurm has cgroups a job is known by its own: a daemon that has left its parents is of it, and ends with it")
def _(folder):
    if not os.access("/sys/fs/cgroup/freezer/cgroup.procs", os.W_OK):
        raise tap.Skip("there is no freezer cgroup that Slurm could use")
    left = f"setsid sh -c '{serving(600)} &' </dev/null >/dev/null 2>&1"
    with cluster(proctrack="cgroup") as c:
        node = c.nodes["n1"]
        job = c.batch(f"{left}; exec sleep 600", "-p", "services", "-w", "n1", "--gres=shard:1", "--gpreempt=online", user=USER)
        client = only(node)
        tap.same((client["class"], client["rule"]), ("online", f"job slurm {job}.batch"), "the client")
        tap.true(tap.read(f"{node.socket}.jobs").strip().endswith(f"/uid_{NOBODY}/job_{job}/step_batch"), tap.read(f"{node.socket}.jobs"))
        c.good("scancel", str(job))
        is_quiet(c, "n1")


@tap.test("on a node of two GPUs a job has the GPU that Slurm gave it: those beside a service are stopped, who is on the other never; the node's weight is of both, and a job may have both")
def _(folder):
    def put_one(program, *options):
        return c.batch(f"exec {program} --device $SLURM_JOB_GPUS", "-w", "n1", "--gres=shard:1", *options, user=USER)

    def is_there(number):
        until(lambda: f"slurm {number}.batch" in {one["rule"][4:] for one in node.clients().values()}, f"{number} is there: {node.clients()}", SOON)
        return number

    def weigh():
        return json.loads(c.good(tap.PROGRAM, "slurm-weights", "--simulated", "--json", "--socket", node.socket, "--name", "n1"))
    def is_half():
        """Of what the service has of its GPU: averages, read one after the other, so not while both still rise."""
        share = next(one["share_permille"] for one in node.clients().values() if one["class"] == "online")
        return 0.25 * share < weigh()["used_permille"] < 0.75 * share
    with cluster(gpus=2) as c:
        node = c.nodes["n1"]
        serve = is_there(put_one(serving(600, 60), "-p", "services", "--gpreempt=online"))
        jobs = [is_there(put_one(TRAIN, "--gpreempt=offline")) for _ in range(4)]  # four shards of each GPU: the last has the other
        tap.same(sorted((one["device"], one["class"]) for one in node.clients().values()), [(0, "offline")] * 3 + [(0, "online"), (1, "offline")], "where they are")
        until(lambda: weigh()["used_permille"] > 100, f"the service is seen: {weigh()}", SOON)
        tap.same(weigh()["devices"], 2, "devices")
        until(is_half, "half of the service's share", SOON)
        c.good("scancel", "--full", "--signal=TERM", *map(str, [serve, *jobs]))
        had = [c.report(number, "batch", "n1") for number in (serve, *jobs)]
        tap.same([[(gpu["slurm"], gpu["device"]) for gpu in one["gpus"]] for one in had], [[(0, 0)]] * 4 + [[(1, 1)]], "GPUs")
        tap.same([one["waits"] > 0 for one in had[1:]], [True] * 3 + [False], f"who was stopped: {had}")
        is_quiet(c, "n1")
        # One job on both: what runs on either is of it, and its report has both.
        node = c.nodes["n2"]
        job = c.batch(f"{TRAIN} --device 0 & exec {TRAIN} --device 1", "-w", "n2", "--gres=gpu:2", "--gpreempt=offline", user=USER)
        until(lambda: len(node.clients()) == 2, f"both are there: {node.clients()}", SOON)
        tap.same(sorted((one["device"], one["rule"]) for one in node.clients().values()), [(0, f"job slurm {job}.batch"), (1, f"job slurm {job}.batch")], "where they are")
        until(lambda: all(one["share_permille"] > 100 for one in node.clients().values()), f"both run: {node.clients()}", SOON)
        c.good("scancel", "--full", "--signal=TERM", str(job))
        had = c.report(job, "batch", "n2")
        tap.same([(gpu["slurm"], gpu["device"]) for gpu in had["gpus"]], [(0, 0), (1, 1)], f"{had}")
        in_comment(c, job, "batch", "n2", r"offline, ran [\d.]+ s, stopped 0 times")
        is_quiet(c, "n2")


@tap.test("two hundred short jobs leave nothing behind: no process, no job, no client, no descriptor")
def _(folder):
    c = shared()
    is_quiet(c)
    before, processes = resources(c), sorted(c.strays())
    job = c.batch(f"exec {TRAIN} --duration 50ms", "--array=1-200", "--gres=shard:1", "--gpreempt=offline", user=USER)
    until(c.is_idle, "all have ended", 120)
    is_quiet(c)
    until(lambda: sorted(c.strays()) == processes, f"processes are left: {set(c.strays()) - set(processes)}", SOON)
    until(lambda: all(now <= before[name] for name, now in resources(c).items()), f"descriptors: {resources(c)}, {before} before", SOON)
    ended = [name for name in os.listdir(c.reports) if re.match(r"\d+\.batch\.", name)]
    tap.true(len(ended) >= 200, f"reports: {len(ended)}")
    tap.same(c.good("scontrol", "show", "job", "-o", str(job)).count("JobState=COMPLETED"), 200, "completed")


if why_not():
    tap.skip_all(why_not())
tap.main()
