#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gpreemptd.conf(5): what it may say, what is wrong with it, and reading it again while clients are connected."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

import tap
from gpreemptd import DAEMON, NOBODY, AsUser, Process, daemon, foreign, fork_agent, listens, put, tree, until
from protocol import Agent, Gone, Items, Tool, held, HOLD, PING, SOON, STOP, SUSPENDED

SAMPLE = os.path.join(tap.SOURCE, "share", "gpreemptd.conf")
AGAIN, STAYS = "the configuration was read again", "the configuration stays as it was"

# Each setting as it is not without a file.
OTHERWISE = """[daemon]
socket = /run/other/sock
class_sockets = /run/other-class
ways = dbg?,update
lease = 500ms
scan = 0s
patience = 1.5s
sample = no
root = /other
old_kernel = yes

[scheduler]
load = none
policy = fair
linger = 2ms
hint_expiry = 2s
max_starve = never
starve_slice = 100us
quantum = 1s
stall = 20ms
max_stops_per_s = 1
park = 3
sdma = no
driver_watches = yes

[limits]
peers = 4096
processes = 1
queues = 65536
holds = 2
requests = 3
items = 4
debuggers = 5
followers = 6
unread = 67108864
places = 4096

[classes]
include = {folder}/classes.ini

[device 3]
policy = deadline

[device 0]
policy = fifo
"""


def gpreemptd(*args, **more):
    return tap.run(*args, program=DAEMON, **more)


def config(folder, text):
    """A file whose settings must be good, or bad, at what the caller looks."""
    return tap.write(f"{folder}/gpreemptd.conf", text)


def printed(*args, **more):
    done = gpreemptd("--print-config", *args, **more)
    tap.same((done.returncode, done.stderr), (0, ""), " ".join(args))
    return done.stdout


def reload(d, says):
    """SIGHUP, until it says so, once more than before."""
    before = d.log().count(says)
    d.process.send_signal(signal.SIGHUP)
    until(lambda: d.log().count(says) > before, says)


# What it says


@tap.test("the sample has every setting with its default, and no other")
def _(folder):
    text = re.sub(r"(?m)^;(?=\S)", "", tap.read(SAMPLE))
    where = "--socket", "/x", "--class-sockets", "/y"
    tap.same(printed("--config", config(folder, text), *where), printed("--config", "/dev/null", *where) + "\n[device 0]\npolicy = priority\n", "as files")
    tap.same(re.findall(r"(?m)^(\[.*\]|\w+ =)", text), re.findall(r"(?m)^(\[.*\]|\w+ =)", printed("--config", config(folder, "[device 0]\n"))), "keys, in order")
    if os.getuid() == 0:
        for name in ("socket", "class_sockets"):
            tap.true(f"{name} = {re.search(rf'(?m)^;{name} = (.*)', tap.read(SAMPLE))[1]}\n" in printed("--config", "/dev/null"), name)
    tap.true("class_sockets = none\n" in printed("--config", "/dev/null", "--socket", "/x"), "one that listens elsewhere has none")
    tap.same(printed("--config", SAMPLE), printed("--config", "/dev/null"), "as it is, it says nothing")


@tap.test("every setting can be another, and what is printed is read back as the same")
def _(folder):
    tap.write(f"{folder}/classes.ini", "")
    text = OTHERWISE.format(folder=folder)
    usual = printed("--config", "/dev/null").splitlines()
    tap.same([line for line in text.splitlines() if "=" in line and line in usual and line != "load = none"], [], "settings that are as usual")
    tap.same(printed("--config", config(folder, text)), text, "settings")


@tap.test("options go before the file, wherever --config stands")
def _(folder):
    tap.write(f"{folder}/classes.ini", "")
    path = config(folder, OTHERWISE.format(folder=folder))
    options = ("--lease", "7s", "--ways", "private", "--scan", "8s", "--patience", "9s", "--socket", "/mine", "--root", "/r", "--classes", "/dev/null")
    for args in ((*options, "--config", path), ("--config", path, *options)):
        text = printed(*args)
        for line in ("lease = 7s", "ways = private", "scan = 8s", "patience = 9s", "socket = /mine", "root = /r", "include = /dev/null", "sample = no", "policy = fair"):
            tap.true(f"{line}\n" in text, f"{line}: {text}")
    text = printed("--config", "/dev/null", "--sample", "--old-kernel")
    tap.true("sample = yes\n" in text and "old_kernel = yes\n" in text, text)


@tap.test("a device without a policy has that of the scheduler, wherever that stands")
def _(folder):
    tap.true("[device 2]\npolicy = fair\n" in printed("--config", config(folder, "[device 2]\n[scheduler]\npolicy = fair\n")), "policy")


@tap.test("a user's gpreemptd listens in XDG_RUNTIME_DIR, which must be set, and short enough")
def _(folder):
    del folder
    if os.getuid() != 0:
        raise tap.Skip("only root can be another user")

    def started(**env):
        return gpreemptd("--print-config", user=NOBODY, env=env)

    for runtime in ("/run/user/65534", "/" + 82 * "x"):
        done = started(XDG_RUNTIME_DIR=runtime)
        tap.true(f"socket = {runtime}/gpreempt/gpreemptd.sock\n" in done.stdout, done.stdout + done.stderr)
    for env, said in (({}, "is not set"), ({"XDG_RUNTIME_DIR": ""}, "is not set"), ({"XDG_RUNTIME_DIR": "/" + 83 * "x"}, "is too long")):
        done = started(**env)
        tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), f"{env}")
        tap.true(f"XDG_RUNTIME_DIR {said}: say where to listen, as in --socket PATH" in done.stderr, done.stderr)


# What is wrong with it

BAD = (
    ("[daemon]\nlease = 3", 2, "has no unit"), ("[daemon]\nlease = 1ms", 2, "write a time from 30ms to 3600s"), ("[daemon]\nlaese = 3s", 2, "did you mean lease?"),
    ("[daemon]\nlease = 3s\nlease = 4s", 3, "lease is here twice"), ("[daemon]\nways = up", 2, "known are: session, update, park, dbg, private"),
    ("[daemon]\nsocket = /" + 120 * "x", 2, "write a path of less than 108 bytes"), ("[daemon]\nsocket =", 2, "empty"), ("[daemon]\nsample = maybe", 2, "write yes or no"),
    ("\n[deamon]\nlease = 3s", 2, "did you mean daemon?"), ("lease = 3s", 1, "before any section"), ("[daemon]\nlease", 2, "write it as: key = value"),
    ("[scheduler]\npolicy = best", 2, "known are: fifo priority fair deadline"), ("[scheduler]\nmax_starve = always", 2, "max_starve = 1s"),
    ("[scheduler]\nmax_stops_per_s = 0", 2, "from 1 to 1000000"), ("[scheduler]\nlease = 3s", 2, "unknown setting"), ("[scheduler]\nbackground = no", 2, "is called driver_watches now"), ("[limits]\npeers = 4097", 2, "from 1 to 4096"),
    ("[limits]\nunread = 67108865", 2, "to 67108864"), ("[limits]\nplaces = 0", 2, "from 1 to 4096"), ("[device]\npolicy = fair", 1, "[device 0]"),
    ("[device 64]", 1, "[device 0]"), ("[device x]", 1, "[device 0]"), ("[device 1]\n[device 1]", 2, "[device 1] is here twice"), ("[device 1]\nlease = 3s", 2, "known are: policy"),
    ("[device 1]\npolicy = fair\npolicy = fifo", 3, "twice"), ("[classes]\nrule = x", 2, "known are: include"),
)


@tap.test("each thing that is wrong has a line with its place and what to do, and --check exits 1")
def _(folder):
    for text, line, said in BAD:
        path = config(folder, text)
        done = gpreemptd("--check", "--config", path)
        tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), f"{text!r}: {done.stderr}")
        tap.true(done.stderr.startswith(f"gpreemptd: {path}:{line}: ") and said in done.stderr, f"{text!r}: {done.stderr}")
    tap.write(f"{folder}/classes.ini", "\n[online]\nsense = none\npid = 7\nuid = x\n[nowhere]\nsense = none\n[settings]\nonline_priority = 99\n")
    path = config(folder, f"[daemon]\nscan = x\nlease = y\n[nothing]\nz = 1\n[classes]\ninclude = {folder}/classes.ini\n")
    done = gpreemptd("--check", "--config", path)
    places = [line.split(": ")[1] for line in done.stderr.splitlines()]
    tap.same((done.returncode, places), (1, [f"{path}:2", f"{path}:3", f"{path}:4", *(f"{folder}/classes.ini:{line}" for line in (3, 5, 6, 9))]), "all at once")


def checked(*args):
    done = gpreemptd("--check", *args)
    tap.same((done.returncode, done.stderr), (0, ""), f"{args}")
    return done.stdout.splitlines()


@tap.test("--check says which files it read and exits 0 if all is well, and listens nowhere")
def _(folder):
    path = config(folder, f"[daemon]\nsocket = {folder}/sock\n")
    tap.same(checked("--config", path)[0], f"settings: {path}", "a file that was named")
    tap.same(os.listdir(folder), ["gpreemptd.conf"], "files")
    rules = tap.write(f"{folder}/rules.ini", "")
    tap.same(checked("--config", path, "--classes", rules)[1:], [f"rules: {rules}"], "rules")
    for usual, first, number in (("/etc/gpreempt/gpreemptd.conf", "settings: the defaults; there is no ", 0), ("/etc/gpreempt/classes.ini", "rules: none; there is no ", 1)):
        if os.getuid() == 0 and not os.path.exists(usual):
            tap.same(checked()[number], first + usual, "by default")


@tap.test("without a GPU one line of the log says where it was looked for")
def _(folder):
    os.makedirs(f"{folder}/none")
    looked = "none/sys/class/kfd/kfd/topology/nodes"
    with daemon(folder, "--root", f"{folder}/none", "--scan", "50ms") as d:
        until(lambda: f"no GPU is in {folder}/{looked}, " in d.log() and f" or in {folder}/none/proc/driver/nvidia/gpus;" in d.log(), "it says so")
        put(folder, f"{looked}/0/gpu_id", "0\n")
        put(folder, f"{looked}/1/gpu_id", "7\n")
        put(folder, f"{looked}/1/properties", "simd_count 320\n")
        tool = d.tool()
        until(lambda: len(tool.list()[0]) == 1, "there is one")
        tap.same(d.log().count("no GPU"), 1, d.log())
        shutil.rmtree(f"{folder}/{looked}/1")
        until(lambda: d.log().count("no GPU") == 2, "it has gone")


@tap.test("a file that is named must be there and be text; gpreemptd does not start with a bad one")
def _(folder):
    for path, said in ((f"{folder}/none", "No such file or directory"), (folder, "Is a directory"), (tap.write(f"{folder}/zero", "[daemon]\n\0"), "not text"),
                       (tap.write(f"{folder}/long", "\n" * 300000), "too long"), (config(folder, "[daemon]\nlease = x\n"), "gpreemptd.conf:2:")):
        for args, status in (((), 2), (("--check",), 1), (("--print-config",), 2)):
            done = gpreemptd("--config", path, "--socket", f"{folder}/sock", *args)
            tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (status, "", 1), f"{path} {args}: {done.stderr}")
            tap.true(said in done.stderr, done.stderr)
    tap.true(not os.path.exists(f"{folder}/sock"), "it listened")
    done = gpreemptd("--config", "/dev/null", "--classes", f"{folder}/none", "--check")
    tap.same((done.returncode, done.stderr), (1, f"gpreemptd: --classes {folder}/none: No such file or directory\n"), "rules that are named must be there too")
    done = gpreemptd("--config", config(folder, f"[classes]\ninclude = {folder}/none\n"), "--check")
    tap.same((done.returncode, done.stderr), (1, f"gpreemptd: include = {folder}/none: No such file or directory\n"), "and those that the file names")


@tap.test("a line of the log that is too long is cut, and ends")
def _(folder):
    path = f"{folder}{'/x' * 400}"
    done = gpreemptd("--check", "--config", path)
    tap.same((done.returncode, len(done.stderr), done.stderr.count("\n"), done.stderr[-1]), (1, 511, 1, "\n"), done.stderr)


@tap.test("bad options are 2 as ever, with --check too if it is no option at all")
def _(folder):
    for args, said in ((("--lease", "3"), "gpreemptd: --lease 3 has no unit; write ns, us, ms, s, min, m or h behind it, as in: --lease 3s"),
                       (("--check", "--bogus"), "gpreemptd --help"), (("one",), "one is one too many"),
                       (("--socket", "x" * 200), "--socket: it is"), (("--ways", "none"), '--ways: "none" is no way')):
        done = gpreemptd("--config", "/dev/null", *args)
        tap.same(done.returncode, 2, f"{args}: {done.stderr}")
        tap.true(said in done.stderr, done.stderr)


# Reading it again


@tap.test("three agents stay connected over a reload, and can be stopped after it")
def _(folder):
    path = config(folder, "[daemon]\nlease = 20s\n")
    with daemon(folder, "--config", path) as d:
        agents = [fork_agent(d, 1) for _ in range(2)]
        own, tool = Agent(d.path, 1), d.tool()
        try:
            until(lambda: len(tool.handles()) == 3, "all are listed")
            handles = tool.handles()
            config(folder, "[daemon]\nlease = 30s\npatience = 9s\n[limits]\nqueues = 5\n")
            reload(d, AGAIN)
            tap.same(sorted(tool.handles()), sorted(handles), "queues after it")
            serial = tool.ask(HOLD, Items(handles, STOP))
            for agent in agents:
                agent.hears_wants()
                agent.go()
            own.answer()
            tap.same(tool.result(serial).statuses(), [0, 0, 0], "stopped")
        finally:
            for agent in agents:
                agent.end()


@tap.test("what is held stays held over a reload")
def _(folder):
    path = config(folder, "")
    with daemon(folder, "--config", path) as d:
        agent, tool = d.agent(), d.tool()
        [queue] = held(agent, tool)
        reload(d, AGAIN)
        tap.same((tool.state(queue), agent.hears(0.2)), (SUSPENDED, []), "state, and what the agent hears")


@tap.test("who comes after a reload is told the new lease, and who was there hears as often as the old one needs")
def _(folder):
    path = config(folder, "[daemon]\nlease = 300ms\n")
    with daemon(folder, "--config", path) as d:
        agent = d.agent()
        tap.same(agent.lease, 300_000_000, "before")
        config(folder, "[daemon]\nlease = 3000s\n")
        reload(d, AGAIN)
        tap.same(d.tool().lease, 3000 * 10**9, "after")
        for _ in range(5):
            agent.wait(PING)


@tap.test("a shorter lease is kept from the first beat on")
def _(folder):
    path = config(folder, "[daemon]\nlease = 3000s\n")
    with daemon(folder, "--config", path) as d:
        config(folder, "[daemon]\nlease = 300ms\n")
        reload(d, AGAIN)
        agent = d.agent()
        for _ in range(3):
            agent.wait(PING)


@tap.test("queues are judged again by the rules that a reload reads")
def _(folder):
    with daemon(folder, "--scan", "0s") as d:
        agent, tool = d.agent(name="train.py"), d.tool()
        before = tool.queues()[0]["class"]
        tap.write(f"{folder}/classes.ini", f"[online]\npid = {os.getpid()}\n")
        tap.same(tool.queues()[0]["class"], before, "before the signal")
        reload(d, AGAIN)
        until(lambda: tool.queues()[0]["class"] == 2, "it is online")
        tap.true("classes.ini:2" in tool.queues()[0]["rule"], tool.queues()[0]["rule"])
        agent.close()


def rules(folder, word):
    """Many, so that to judge some clients takes more than one turn."""
    path = tap.write(f"{folder}/{word}.ini", "[online]\n" + 1000 * "pid = 4\n" + f"[{word}]\npid = 40001\n")
    os.rename(path, f"{folder}/classes.ini")


@tap.test("a reload while queues are judged by the last one's rules is not put off to the next scan")
def _(folder):
    rules(folder, "online")
    with daemon(folder, "--scan", "3600s") as d:
        tool = d.tool()
        for n in range(1, 100):
            foreign(folder, 40000 + n, 7)
            rules(folder, "online")
            size = os.path.getsize(f"{folder}/log")
            d.process.send_signal(signal.SIGHUP)
            end = time.monotonic() + SOON
            while os.path.getsize(f"{folder}/log") == size:  # without a pause: the next is to come while this one's rules judge
                tap.true(time.monotonic() < end, f"reload {n} is not logged")
            rules(folder, "offline")
            d.process.send_signal(signal.SIGHUP)
            until(lambda: [q["class"] for q in tool.queues(40001)] == [1], f"the first of {n} is offline")


@tap.test("ways and scans are those that a reload reads")
def _(folder):
    path = config(folder, "[daemon]\nways = private\nscan = 0s\n")
    with daemon(folder, "--config", path) as d:
        agent, tool = d.agent(), d.tool()
        tap.same(tool.queues()[0]["way"], "", "way")
        foreign(folder, 4242, 7)
        config(folder, "[daemon]\nways = update\nscan = 50ms\n")
        reload(d, AGAIN)
        tap.same(tool.queues()[0]["way"], "update", "way")
        until(lambda: len(tool.queues()) == 2, "what came is found at once")
        foreign(folder, 4242, 8)
        until(lambda: len(tool.queues()) == 3, "and later again")
        agent.close()


@tap.test("with a bad file or bad rules nothing changes, and the log says why")
def _(folder):
    path = config(folder, "[daemon]\nlease = 5s\n")
    with daemon(folder, "--config", path) as d:
        agent, tool = d.agent(), d.tool()
        config(folder, "[daemon]\nlease = 6s\nscan = never\n")
        reload(d, STAYS)
        tap.true(f"{path}:3: scan = never is not a time" in d.log(), d.log())
        config(folder, "[daemon]\nlease = 7s\n")
        tap.write(f"{folder}/classes.ini", "[online]\nsense = none\n")
        reload(d, STAYS)
        tap.true("classes.ini:2: " in d.log(), d.log())
        os.unlink(path)
        reload(d, STAYS)
        tap.same(d.tool().lease, 5 * 10**9, "lease")
        tap.same(len(tool.queues()), 1, "queues")
        agent.close()


@contextlib.contextmanager
def bare(folder, path):
    """A gpreemptd that has everything from its file."""
    process = Process([DAEMON, "--config", path], stderr=open(f"{folder}/log", "ab"))
    try:
        until(lambda: listens(f"{folder}/sock") or process.poll() is not None, "it listens")
        yield process
        process.terminate()
        tap.same(process.wait(SOON), 0, tap.read(folder, "log"))
    finally:
        process.kill()
        process.wait()


@tap.test("sockets and root stay as they were over a reload, and the log says so")
def _(folder):
    text = f"[daemon]\nsocket = {{}}\nclass_sockets = {{}}\nroot = {{}}\n[classes]\ninclude = {tap.write(f'{folder}/classes.ini', '')}\n"
    path = config(folder, text.format(f"{folder}/sock", f"{folder}/class", tree(folder)))
    with bare(folder, path) as process:
        config(folder, text.format(f"{folder}/other", "none", "/elsewhere"))
        process.send_signal(signal.SIGHUP)
        until(lambda: AGAIN in tap.read(folder, "log"), "read again")
        said = tap.read(folder, "log")
        for stays in (f"socket stays {folder}/sock", f"class_sockets stays {folder}/class", f"root stays {tree(folder)}"):
            tap.true(f"{stays} until" in said, said)
        places = (f"{folder}/sock", f"{folder}/class/online/gpreemptd.sock", f"{folder}/other")
        tap.same([listens(place) for place in places], [True, True, False], "listens")
        tap.same(len(Tool(f"{folder}/sock").list()[0]), 1, "devices of the old root")


def connect(path, n):
    return [Tool(path) for _ in range(n)]


def is_full(path, n):
    """Whether so many may come, and no more."""
    tools = connect(path, n)
    with contextlib.suppress(Gone):
        Tool(path)
        raise AssertionError("one more than the limit was served")
    tap.same(len(tools), n, "connections")


@tap.test("a user's limits are those of the file, and of the one that is read again")
def _(folder):
    path = config(folder, "[limits]\npeers = 2\n")
    os.chmod(folder, 0o755)
    with daemon(folder, "--config", path) as d:
        AsUser(NOBODY, is_full, d.path, 2).end()
        config(folder, "[limits]\npeers = 4\n")
        reload(d, AGAIN)
        AsUser(NOBODY, is_full, d.path, 4).end()


@tap.test("there are as many places as the file says, and root's are besides")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder, "--config", config(folder, "[limits]\nplaces = 3\n")) as d:
        AsUser(NOBODY, is_full, d.path, 3).end()
        connect(d.path, 5)


@tap.test("the service can be reloaded")
def _(folder):
    tap.true("ExecReload=/bin/sh -c 'kill -HUP $MAINPID'\n" in tap.read(tap.SOURCE, "share/gpreemptd.service.in"), "ExecReload")
    if not os.path.exists("/bin/kill"):
        raise tap.Skip("this machine has no /bin/kill")
    with daemon(folder) as d:
        subprocess.run(["/bin/kill", "-HUP", str(d.process.pid)], check=True)
        until(lambda: AGAIN in d.log(), "it is")


tap.main(jobs=2)
