#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gpreemptd's lines and events in systemd's journal, with fields: what it is sent, and a real one."""

import contextlib
import errno
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from datetime import datetime, timedelta

import tap
from gpreemptd import DAEMON, daemon, tree, unread, until
from protocol import BUSY, CLASS, HOLD, ONLINE, RELEASE, RUN, SOON, STOP, Agent, Items, Tool

JOURNALD = "/lib/systemd/systemd-journald"
EIO = errno.EIO

# In a mount namespace: a journal of its own, and what is to be done beside it.
BESIDE = """mount -t tmpfs tmpfs /run && mkdir -p /run/log/journal && mkdir -p /run/systemd/journal
%s & journald=$!
while ! [ -S /run/systemd/journal/socket ]; do kill -0 $journald || exit 77; sleep 0.05; done
"$@"; r=$?
journalctl --sync; kill $journald; wait $journald; exit $r"""


def entry_of(data):
    """The fields of one, which must be lines."""
    tap.true(data.endswith(b"\n"), data)
    pairs = [line.split("=", 1) for line in data.decode().split("\n")[:-1]]
    tap.same(len({name for name, _ in pairs}), len(pairs), f"a field twice: {pairs}")
    return dict(pairs)


class Recorder:
    """A journal that only takes down what it is sent."""

    def __init__(self, folder):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        os.makedirs(f"{tree(folder)}/run/systemd/journal")
        self.socket.bind(f"{tree(folder)}/run/systemd/journal/socket")
        self.socket.setblocking(False)
        self.entries = []

    def fill(self):
        """With what nobody reads."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one, contextlib.suppress(BlockingIOError):
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
            while True:
                one.sendto(b"MESSAGE=x\n", self.socket.getsockname())

    def read(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.entries.append(entry_of(self.socket.recv(65536)))
        return self.entries

    def events(self, kind):
        return [one for one in self.read() if one.get("GPREEMPT_EVENT") == kind]

    def wait(self, kind):
        until(lambda: self.events(kind), f"{kind} among {self.entries}")
        return self.events(kind)[-1]


def stream(folder):
    """JOURNAL_STREAM, if what gpreemptd says went to the journal."""
    info = os.stat(tap.write(f"{folder}/log", ""))
    return {"JOURNAL_STREAM": f"{info.st_dev}:{info.st_ino}"}


@contextlib.contextmanager
def refusing(d, status=EIO, **who):
    """An agent that could not stop its queue for a tool."""
    with contextlib.closing(d.agent(1, **who)) as agent, contextlib.closing(d.tool()) as tool:
        tool.send(HOLD, Items(tool.handles(os.getpid()), STOP).bytes())
        agent.answer(agent.refuse(status))
        tool.result()
        yield agent, tool


@tap.test("lines and events are entries with fields, of what they are about, and stderr stays empty")
def _(folder):
    journal = Recorder(folder)
    with daemon(folder, env=stream(folder)) as d:
        with refusing(d, name="train") as (_, tool):
            handle = tool.handles(os.getpid())[0]
            failed = journal.wait("failed")
            kept = json.loads(tap.good("events", "--json", "--kind", "failed", "--socket", d.path).stdout)
            line = tap.good("events", "--kind", "failed", "--socket", d.path).stdout.rstrip()
        want = {"PRIORITY": "4", "SYSLOG_IDENTIFIER": "gpreemptd", "GPREEMPT_EVENT": "failed", "GPREEMPT_EVENT_NUMBER": str(kept["number"]), "GPREEMPT_DEVICE": "0",
                "GPREEMPT_PID": str(os.getpid()), "GPREEMPT_CLIENT": "train", "GPREEMPT_QUEUE": str(handle), "GPREEMPT_WAY": "update", "GPREEMPT_TRIED": "suspend", "ERRNO": str(EIO)}
        tap.same({name: failed.get(name) for name in want}, want, "what failed")
        tap.same(failed["MESSAGE"], f"process {os.getpid()} (train): suspend failed: update failed: Input/output error", "text")
        tap.true(line.endswith("  suspend by update  update failed: Input/output error"), line)
        came = journal.wait("client")
        tap.same((came["GPREEMPT_PID"], came["GPREEMPT_CLIENT"], came["PRIORITY"]), (str(os.getpid()), "train", "6"), "who came")
        tap.same(journal.wait("gone")["GPREEMPT_PID"], str(os.getpid()), "who went")
        with contextlib.closing(Tool(d.path)) as other:
            other.reserve(0, 50, 50)
        until(lambda: any("50 % online" in one["MESSAGE"] and one.get("GPREEMPT_DEVICE") == "0" for one in journal.read()), "a line of a device")
        tap.same(d.log(), "", "stderr")
    tap.true(any("listening on" in one["MESSAGE"] for one in journal.read()), "its first line")


@tap.test("why it cannot start is an entry of an error")
def _(folder):
    journal = Recorder(folder)
    env, root = {**os.environ, **stream(folder)}, tree(folder)
    for place, word in ((f"{folder}/no/where.sock", "there is no folder"), (tap.write(f"{folder}/file", "mine"), "is no socket")):
        with open(f"{folder}/log", "ab") as log:
            done = subprocess.run([DAEMON, "--config", "/dev/null", "--root", root, "--socket", place], env=env, stderr=log, timeout=SOON, check=False)
        last = journal.read()[-1]
        tap.same((done.returncode, last["PRIORITY"], word in last["MESSAGE"]), (1, "3", True), f"{last}")
    tap.same(tap.read(folder, "log"), "", "stderr")


@tap.test("stops and resumes that work are not in it")
def _(folder):
    journal = Recorder(folder)
    with daemon(folder, env=stream(folder)) as d, contextlib.closing(d.agent(1)) as agent, contextlib.closing(d.tool()) as tool:
        queues = tool.handles(os.getpid())
        for kind, wanted in ((HOLD, STOP), (RELEASE, RUN)):
            tool.send(kind, Items(queues, wanted).bytes())
            agent.answer()
            tool.result()
        tap.same({one.get("GPREEMPT_EVENT") for one in journal.read()} - {"client", None}, set(), "events")


@tap.test("a resume that is tried again and again is one entry, and so is each other failure")
def _(folder):
    journal = Recorder(folder)
    with daemon(folder, env=stream(folder)) as d, contextlib.closing(d.agent(1)) as agent, contextlib.closing(d.tool()) as tool:
        tool.send(HOLD, Items(tool.handles(os.getpid()), STOP).bytes())
        agent.answer()
        tool.result()
        tool.send(RELEASE, Items(tool.handles(os.getpid())).bytes())
        for _ in range(5):
            agent.answer(agent.refuse(EIO))
        agent.answer()
        until(lambda: tool.state(tool.handles(os.getpid())[0]) == 0, "it runs")
        tap.same([one["GPREEMPT_TRIED"] for one in journal.events("failed")], ["resume"], "entries")
        tap.true("resume failed: " in journal.events("failed")[0]["MESSAGE"], journal.events("failed"))
        tap.same({one["tried"] for one in numbered(d, "failed").values()}, {"resume"}, "JSON")
        tap.same({one["tried"] for one in numbered(d, "suspend,resume").values()}, {None}, "JSON of what did not fail")
        line = tap.good("events", "--kind", "failed", "--socket", d.path).stdout.splitlines()[0]
        tap.true(line.endswith("  resume by update  Input/output error"), line)


@tap.test("a client that is left alone again and again is one entry in a minute, though each time is an event")
def _(folder):
    journal = Recorder(folder)
    with daemon(folder, "--sample", env=stream(folder)) as d, contextlib.closing(Agent(d.path, 0)) as agent, contextlib.closing(d.tool()) as tool:
        agent.add(1, priority=11)  # online
        agent.add(2)
        until(lambda: len(tool.handles(os.getpid())) == 2, "its queues are listed")
        agent.activity(1, BUSY)
        for _ in range(4):
            agent.answer(agent.refuse(EIO))
        events = tap.good("events", "--json", "--kind", "backoff", "--socket", d.path).stdout.splitlines()
        tap.true(len(events) >= 3, events)
        tap.same([(one["GPREEMPT_DEVICE"], one["GPREEMPT_PID"]) for one in journal.events("backoff")], [("0", str(os.getpid()))], "entries")


def numbered(d, kind):
    """What gpreemptd keeps of that kind, by number."""
    lines = tap.good("events", "--json", "--kind", kind, "--socket", d.path).stdout.splitlines()
    return {str(one["number"]): one for one in map(json.loads, lines)}


def see_fields(entry, event, **want):
    """GPREEMPT_ fields, no others but those of every entry."""
    about = {name: value for name, value in entry.items() if name not in ("MESSAGE", "SYSLOG_IDENTIFIER")}
    tap.same(about, dict(want, GPREEMPT_EVENT_NUMBER=str(event["number"])), entry["MESSAGE"])


@tap.test("a suspension that its lease ended is an entry of the queue that runs again, and one that somebody ended is none")
def _(folder):
    journal = Recorder(folder)
    with daemon(folder, env=stream(folder)) as d, contextlib.closing(d.agent(1, name="train")) as agent, contextlib.closing(d.tool()) as tool:
        queue = tool.handles(os.getpid())[0]
        for lease in (60_000_000_000, 1_500_000_000):
            tool.send(HOLD, Items([queue], STOP, lease=lease).bytes())
            agent.answer()
            tool.result()
            if lease == 60_000_000_000:
                tool.send(RELEASE, Items([queue]).bytes())
                agent.answer()
                tool.result()
        agent.answer()  # nobody asked for that
        ended = journal.wait("lease")
        tap.same(len(journal.events("lease")), 1, "entries")
        see_fields(ended, *numbered(d, "lease").values(), PRIORITY="6", GPREEMPT_EVENT="lease", GPREEMPT_DEVICE="0", GPREEMPT_PID=str(os.getpid()), GPREEMPT_CLIENT="train",
                   GPREEMPT_QUEUE=str(queue), GPREEMPT_WAY="update")
        tap.same(ended["MESSAGE"], f"process {os.getpid()} (train): a lease ended, and with it a suspension", "text")


@tap.test("who has waited for longer than max_starve, and gets a slice again and again, is one entry in a minute")
def _(folder):
    journal = Recorder(folder)
    conf = tap.write(f"{folder}/conf", "[scheduler]\nmax_starve = 200ms\nstarve_slice = 50ms\n")
    with daemon(folder, "--config", conf, "--sample", env=stream(folder)) as d, contextlib.closing(Agent(d.path, 0, name="both")) as agent, contextlib.closing(d.tool()) as tool:
        agent.add(1, priority=11)  # online
        agent.add(2)
        until(lambda: len(tool.handles(os.getpid())) == 2, "its queues are listed")
        agent.activity(1, BUSY)
        for wanted in (STOP, RUN, STOP, RUN, STOP):
            tap.same(agent.answer().list[0][1], wanted, "slices")
        events = numbered(d, "starved")
        tap.true(len(events) >= 2, events)
        entries = journal.events("starved")
        tap.same(len(entries), 1, "entries")
        see_fields(entries[0], events[min(events, key=int)], PRIORITY="6", GPREEMPT_EVENT="starved", GPREEMPT_DEVICE="0", GPREEMPT_PID=str(os.getpid()), GPREEMPT_CLIENT="both")
        tap.same(entries[0]["MESSAGE"], f"process {os.getpid()} (both): it had waited too long, and has a slice", "text")


BREAKS_A_RULE = """#include <gpreempt/policy.h>
static uint64_t decide(struct gp_policy *p, uint64_t now) { (void)now; gp_policy_stop(p, 99); return GP_NEVER; }
const struct gp_policy_ops gp_policy = { .size = sizeof(gp_policy), .abi = GP_POLICY_ABI, .name = "bad", .decide = decide };
"""


@tap.test("a policy that is ejected is an entry of the device, with the reason, and a warning")
def _(folder):
    journal = Recorder(folder)
    source = tap.write(f"{folder}/bad.c", BREAKS_A_RULE)
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{tap.SOURCE}/include", "-o", f"{folder}/bad.so", source], check=True)
    conf = tap.write(f"{folder}/conf", f"[scheduler]\nload = {folder}/bad.so\n")
    with daemon(folder, "--config", conf, env=stream(folder)) as d, contextlib.closing(d.agent(1)):
        tap.good("policy", "0", "bad", "--socket", d.path)
        ejected = journal.wait("ejected")
        see_fields(ejected, *numbered(d, "ejected").values(), PRIORITY="4", GPREEMPT_EVENT="ejected", GPREEMPT_DEVICE="0")
        tap.same(ejected["MESSAGE"], "device 0: policy bad ejected: stopped client 99, which it does not own; fifo goes on", "text")


@tap.test("who comes and who goes are entries with the numbers of their events")
def _(folder):
    journal = Recorder(folder)
    with daemon(folder, env=stream(folder)) as d:
        d.agent(1, name="train").close()
        for kind in ("client", "gone"):
            entry = journal.wait(kind)
            see_fields(entry, *numbered(d, kind).values(), PRIORITY="6", GPREEMPT_EVENT=kind, GPREEMPT_PID=str(os.getpid()), GPREEMPT_CLIENT="train")


@tap.test("who chooses a policy, or makes a client online, is an entry and an event of the same number")
def _(folder):
    journal = Recorder(folder)
    with daemon(folder, env=stream(folder)) as d, contextlib.closing(d.agent(1, name="train")), contextlib.closing(d.tool()) as tool:
        tap.good("policy", "0", "fifo", "--socket", d.path)
        tool.send(CLASS, struct.pack("<QI", tool.queues(os.getpid())[0]["client"], ONLINE))
        for kind, text, about in (("policy", "fifo", {"GPREEMPT_DEVICE": "0"}), ("class", "online", {"GPREEMPT_PID": str(os.getpid()), "GPREEMPT_CLIENT": "train"})):
            entry, event = journal.wait(kind), *numbered(d, kind).values()
            see_fields(entry, event, PRIORITY="6", GPREEMPT_EVENT=kind, **about)
            tap.same((event["text"], event["device"], event["pid"]),
                     (f"{text}, by user {os.getuid()}", about.get("GPREEMPT_DEVICE") and 0, int(about.get("GPREEMPT_PID", 0))), kind)


@tap.test("another policy by the configuration is an event of the device that has it")
def _(folder):
    conf = tap.write(f"{folder}/conf", "")
    with daemon(folder, "--config", conf) as d:
        tap.write(conf, "[device 0]\npolicy = fifo\n")
        d.process.send_signal(signal.SIGHUP)
        until(lambda: numbered(d, "policy"), "it is read")
        tap.same([(one["device"], one["text"]) for one in numbered(d, "policy").values()], [(0, "fifo, by the configuration")], "events")


@tap.test("a name cannot make up fields")
def _(folder):
    journal = Recorder(folder)
    with daemon(folder, env=stream(folder)) as d, refusing(d, name="a\nGPREEMPT_DEVICE=7\nB=c"):
        tap.same(journal.wait("failed")["GPREEMPT_DEVICE"], "0", "device")
        tap.true(all("B" not in one for one in journal.read()), "fields")


@tap.test("where stderr is no stream to the journal, or JOURNAL_STREAM is somebody else's, lines stay there")
def _(folder):
    journal = Recorder(folder)
    for value in (None, "1:2", "", "x"):
        with daemon(folder, env={} if value is None else {"JOURNAL_STREAM": value}) as d, refusing(d):
            until(lambda: "agent in process" in d.log(), "a line")
            tap.true("failed" not in d.log(), "events are no lines there")
            for line in d.log().splitlines():
                wall, _, said = line.partition(" gpreemptd: ")
                age = datetime.now() - datetime.strptime(wall, "%Y-%m-%d %H:%M:%S.%f")
                tap.true(said and timedelta(0) <= age < timedelta(seconds=SOON), f"each says when: {line}")
        os.remove(f"{folder}/log")
    tap.same(journal.read(), [], "entries")


@tap.test("what the journal does not take, or if there is none, is on stderr, and gpreemptd waits for nobody")
def _(folder):
    journal = Recorder(folder)
    with daemon(folder, env=stream(folder)) as d:
        journal.fill()
        with refusing(d) as (_, tool):
            until(lambda: "agent in process" in d.log() and "failed" in d.log(), "lines on stderr")
            tap.true(all(line.startswith("gpreemptd: ") for line in d.log().splitlines()), f"the journal says when: {d.log()}")
            tap.same(len(tool.handles(os.getpid())), 1, "it answers")
    journal.socket.close()
    with daemon(folder, env=stream(folder)) as d:
        until(lambda: "listening on" in d.log(), "lines on stderr")


@tap.test("who has its stderr and does not read it keeps gpreemptd from nothing")
def _(folder):
    for pair in (os.pipe, lambda: [one.detach() for one in socket.socketpair()]):
        with unread(pair) as stderr, daemon(folder, **stderr) as d, refusing(d) as (_, tool):
            tap.same(len(tool.handles(os.getpid())), 1, "it answers")


def as_journald_has_it(folder):
    """In the namespace: gpreemptd with its stderr to that journal; and what is in it afterwards, by journalctl."""
    os.makedirs(f"{tree(folder)}/run/systemd/journal")
    os.symlink("/run/systemd/journal/socket", f"{tree(folder)}/run/systemd/journal/socket")
    with daemon(folder, env=stream(folder)) as d, refusing(d, name="train"):
        tap.good("--sync", program="journalctl")  # it looks at who sent it, who must be there still
    found = tap.good("-D", "/run/log/journal", "--no-pager", "-o", "json", "GPREEMPT_EVENT=failed", program="journalctl").stdout
    tap.write(f"{folder}/found", found)
    tap.same(tap.read(folder, "log"), "", "stderr")


@tap.test("a real journal keeps them, and journalctl finds them by their fields")
def _(folder):
    if os.geteuid() != 0 or not os.path.exists(JOURNALD):
        raise tap.Skip("only root can have another /run" if os.geteuid() else "systemd-journald is not installed")
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", BESIDE % JOURNALD, "sh", "/usr/bin/python3", __file__, "--beside", folder],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=4 * SOON, check=False)
    if done.returncode == 77:
        raise tap.Skip(f"systemd-journald does not run here: {done.stdout.strip().splitlines()[-1:]}")
    tap.same(done.returncode, 0, done.stdout)
    found = json.loads(tap.read(folder, "found"))
    want = {"GPREEMPT_DEVICE": "0", "GPREEMPT_CLIENT": "train", "ERRNO": str(EIO), "PRIORITY": "4", "SYSLOG_IDENTIFIER": "gpreemptd", "_COMM": "gpreemptd", "_TRANSPORT": "journal"}
    tap.same({name: found.get(name) for name in want}, want, "entry")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--beside"]:
        as_journald_has_it(sys.argv[2])
    else:
        tap.main(jobs=4)
