#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gpreempt top in a real terminal, which tmux is: what it shows, its keys, sizes, how it ends; and --once."""

import contextlib
import errno
import itertools
import json
import os
import pty
import re
import signal
import subprocess
import sys

import tap

import double
import gpreemptd
import simulated
from gpreemptd import NOBODY, until
from protocol import STATS

UTF8 = "C.UTF-8"
KEEPS = {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1"}  # ncurses frees nothing at its end
OFFLINE, ONLINE = 1, 2
RUNNING, WAITING, HELD = 1, 2, 3
SUSPEND = 0  # a kind of event
POLICY = 19  # a type of message
COLOUR = re.compile(r"\x1b\[[0-9;]*3[1-7][;m]")
THERE = (f"client=100:{ONLINE}:{RUNNING}:250:serve", f"client=200:{OFFLINE}:{WAITING}:101:train", "100:1", "200:1")

# In the terminal: what it was before and is afterwards, and a shell's last words, which come back. Stopped, top waits for Enter.
SCRIPT = """set -m; echo the shell was here; stty -g >{0}/before
sh -c 'echo $$ >{0}/pid; exec "$@"' - {1}; status=$?
while [ $status -ge 147 ]; do echo it was stopped; read -r enter; fg; status=$?; done
echo $status >{0}/status; stty -g >{0}/after; cat"""
numbers = itertools.count()


class Terminal:
    """One with top in it. user: whose top is."""

    def __init__(self, folder, *words, socket, size=(80, 24), term="xterm-256color", locale=UTF8, user=None, **env):
        self.folder, self.socket = folder, f"{folder}/tmux{next(numbers)}"
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"] if user else []
        settings = [f"{name}={value}" for name, value in dict(env, TERM=term, LC_ALL=locale, GPREEMPT_SOCKET=socket, **KEEPS).items()]
        words = ["env", *settings, *as_user, tap.PROGRAM, "top", *words]
        for name in ("status", "after", "pid"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{folder}/{name}")
        script = SCRIPT.format(folder, " ".join(f"'{word}'" for word in words))
        self.tmux("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "sh", "-c", script)

    def tmux(self, *words, check=True):
        env = {name: value for name, value in os.environ.items() if name != "TMUX"}
        return subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", "-u", *words], env=env, check=check,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def lines(self):
        return self.screen().splitlines()

    def shows(self, *words):
        """Waits for it."""
        try:
            until(lambda: all(re.search(word, self.screen()) for word in words), f"{words} on the screen", simulated.SOON)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.screen()}") from None
        return self

    def press(self, *keys):
        self.tmux("send-keys", *keys)
        return self

    def resize(self, width, height):
        self.tmux("resize-window", "-x", str(width), "-y", str(height))
        return self

    def pid(self):
        return int(tap.read(self.folder, "pid"))

    def ended(self, has_second_screen=True):
        """The exit status; the terminal must be as it was. Without a second screen what was drawn stays."""
        until(lambda: os.path.exists(f"{self.folder}/after") and tap.read(self.folder, "after"), f"it ends: {self.screen()}")
        tap.same(tap.read(self.folder, "after"), tap.read(self.folder, "before"), "settings of the terminal")
        tap.true(not has_second_screen or ("the shell was here" in self.screen() and "q quit" not in self.screen()), f"not wiped: {self.screen()}")
        tap.true(self.tmux("display", "-p", "#{cursor_flag} #{alternate_on}") == "1 0\n", "the cursor, and the other screen")
        return int(tap.read(self.folder, "status"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server", check=False)


@contextlib.contextmanager
def scene(folder, *options):
    """A real gpreemptd, a simulated GPU, and a training job on it that gpreemptd knows."""
    with gpreemptd.daemon(folder, *options) as d, simulated.gpu(folder, socket=d.path), simulated.train(folder, socket=d.path) as train:
        simulated.handles(d, train.pid)
        yield d, train


def client(d, pid):
    return next(c for c in json.loads(tap.good("ps", "--json", "--socket", d.path).stdout)["clients"] if c["pid"] == pid)


def row(terminal, name):
    return next((line for line in terminal.lines() if f" {name} " in line), "")


@tap.test("it shows devices and clients, what is not known as a dash, and after q the terminal is as it was")
def _(folder):
    with double.daemon(folder, *THERE) as d, Terminal(folder, socket=d.socket) as t:
        t.shows(" serve ", r"PREEMPT/S +P99 +OFFLINE")
        tap.same(t.lines()[0].split()[:8], "gpreempt top 1 device 2 clients every 1s".split(), "title")
        tap.true("the shell was here" not in t.screen(), "the shell's screen")
        tap.same(t.tmux("display", "-p", "#{cursor_flag}"), "0\n", "the cursor")
        words = row(t, "serve").split()
        tap.same((words[0], words[1], words[4], words[-3:]), (">", "100", "online", ["running", "25.0%", "environment"]), "online")
        tap.same(row(t, "train").split()[-3:], ["waiting", "10.1%", "environment"], "offline")
        t.shows(r"(?m)^> +0 .* 0\.0 ")  # the second look knows that there was nothing between
        tap.same(t.press("q").ended(), 0, "exit status")


@tap.test("? and h show all keys, on the smallest terminal too, and the next key does nothing but end that")
def _(folder):
    with double.daemon(folder, *THERE) as d, Terminal(folder, socket=d.socket) as t:
        for key, size in (("?", (80, 24)), ("h", (40, 14))):
            t.resize(*size)
            t.shows(" serve ").press(key).shows(r"\nup, down, j, k .*", r"\nany key: back")
            for word in ("s  suspend", "r  resume", "c  make", "p  choose", "q  quit"):
                tap.true(f"\n{word} " in t.screen() or f"\n{word}\n" in t.screen(), f"{word} is not in {t.screen()}")
            tap.true(" serve " not in t.screen(), t.screen())
            t.press("q").shows(" serve ")
        tap.same(t.press("q").ended(), 0, "exit status")


@tap.test("a stop's latency is in the sparkline, of blocks or of ASCII, by locale and terminal")
def _(folder):
    with double.daemon(folder, *THERE) as d:
        for term, locale, lowest, highest in (("xterm-256color", UTF8, "▁", "█"), ("screen", UTF8, "▁", "█"), ("linux", UTF8, "_", "#"),
                                              ("vt100", "C", "_", "#"), ("xterm", "C", "_", "#")):
            with Terminal(folder, socket=d.socket, term=term, locale=locale) as t:
                t.shows(" serve ")
                d.tell(f"event={SUSPEND}:200:5000:0")
                t.shows(rf"LATENCY .*{lowest}.* most ")
                d.tell(f"event={SUSPEND}:200:2000000000:0")
                t.shows(rf"LATENCY .*{highest}.* most 2s")
                tap.true(locale == UTF8 or t.screen().isascii(), t.screen())
                tap.same(t.press("q").ended(term not in ("linux", "vt100")), 0, f"{term} {locale}")


@tap.test("colours are only added: NO_COLOR and a terminal without them have none, and the words are the same")
def _(folder):
    with double.daemon(folder, *THERE) as d:
        shown = {}
        for name, more in (("colour", {}), ("empty", {"NO_COLOR": ""}), ("none", {"NO_COLOR": "1"}), ("vt100", {"term": "vt100"})):
            with Terminal(folder, socket=d.socket, **more) as t:
                t.shows(" serve ", r"(?m)^> +0 .* 0\.0 ")
                shown[name] = (bool(COLOUR.search(t.screen("-e"))), "\x1b[1" in t.screen("-e") or "\x1b[0;1" in t.screen("-e"), t.lines()[1:])
        tap.same([has for has, *_ in shown.values()], [True, True, False, False], "colours")
        tap.same([bold for _, bold, _ in shown.values()], [True] * 4, "bold, which is online without colours")
        tap.same(shown["none"][2], shown["colour"][2], "words")
        tap.same(shown["vt100"][2], shown["colour"][2], "words")


SGR = re.compile(r"\x1b\[([0-9;]*)m")


def looks(screen):
    """[(a text, its foreground, is it bold?)]: 39 is the terminal's own."""
    parts, foreground, bold = [], "39", False
    for piece in re.split(r"(\x1b\[[0-9;]*m)", screen):
        codes = SGR.fullmatch(piece)
        if not codes:
            parts.append((piece, foreground, bold))
        for code in (codes[1] or "0").split(";") if codes else ():
            bold = code == "1" or (bold and code not in ("0", "22"))
            foreground = "39" if code == "0" else code if re.fullmatch("3[0-9]|9[0-7]", code) else foreground
    return parts


@tap.test("online is bold and cyan, what stands still is yellow, and there is no other colour; with NO_COLOR there is none")
def _(folder):
    others = (f"client=300:{OFFLINE}:{RUNNING}:101:other", f"client=400:{OFFLINE}:{HELD}:101:mail", "300:1", "400:1")
    with double.daemon(folder, *THERE, *others) as d:
        for more, online, stopped in (({}, "36", "33"), ({"NO_COLOR": "1"}, "39", "39")):
            with Terminal(folder, socket=d.socket, **more) as t:
                parts = looks(t.shows(" serve ", " mail ", r"(?m)^> +0 .* 0\.0 ").screen("-e"))
            seen = {name: (foreground, bold) for text, foreground, bold in parts for name in ("serve", "train", "mail", "other") if re.search(rf"\b{name}\b", text)}
            tap.same(seen, {"serve": (online, True), "train": (stopped, False), "mail": (stopped, False), "other": ("39", False)}, f"{more}")
            tap.same({foreground for text, foreground, _ in parts if text.strip()}, {"39", online, stopped}, f"colours: {more}")


@tap.test("it is of the terminal's size, from 80x24 on and after each change, and says if that is too small")
def _(folder):
    names = [f"client={100 + i}:{OFFLINE}:{RUNNING}:10:job{i}" for i in range(8)]
    with double.daemon(folder, *names) as d, Terminal(folder, socket=d.socket, term="screen") as t:  # whose keys tmux sends
        t.shows("job0")
        for width, height in ((80, 24), (200, 60), (100, 30), (50, 16), (80, 24), (80, 14)):
            t.resize(width, height)
            until(lambda: re.match(r"q quit  \? keys  s suspend", (t.lines() or [""])[-1]) and len(t.lines()) == height, f"keys in line {height}: {t.screen()}")
            until(lambda: re.match(r"gpreempt top .*:\d\d$", t.lines()[0]) and len(t.lines()[0]) == width, f"title of {width}: {t.screen()}")
            tap.same("job7" in t.screen(), height > 14, f"all of them in {height} lines")
        t.press("End").shows(r"(?m)^> +107 ")
        tap.true("job0" not in t.screen(), t.screen())
        t.press("Home").shows(r"(?m)^> +100 ").press("NPage").shows(r"(?m)^> +107 ").press("PPage").shows(r"(?m)^> +100 ").press("Down").shows(r"(?m)^> +101 ").press("k").shows(r"(?m)^> +100 ")
        t.resize(30, 8).shows("too small")
        t.resize(80, 24).shows("job0")
        tap.same(t.press("q").ended(), 0, "exit status")


@tap.test("a suspension is asked for, and what is suspended stands still until r, or until top ends")
def _(folder):
    with scene(folder) as (d, train), Terminal(folder, socket=d.path) as t:
        t.shows(r"(?m)^> .* train .* running").press("s").shows(f"Suspend train {train.pid}, 1 queue.*y/n")
        for key in ("n", "x", "Enter", "Space"):
            t.press(key).shows("nothing was done")
            tap.same(client(d, train.pid)["state"], "running", f"after {key}")
            t.press("s").shows("y/n")
        t.press("n").shows("nothing was done")
        t.press("s").shows("y/n").press("y").shows(f"Suspended 1 queue of train {train.pid}", " train .* held ")
        tap.same(client(d, train.pid)["state"], "held", "after yes")
        t.press("r").shows(f"Resumed 1 queue of train {train.pid}", " train .* running ")
        tap.same(client(d, train.pid)["state"], "running", "after r")
        t.press("s").shows("y/n").press("y").shows(" train .* held ").press("q")
        tap.same(t.ended(), 0, "exit status")
        t.shows("What was suspended here runs again")
        until(lambda: client(d, train.pid)["state"] == "running", "it runs on")
        with Terminal(folder, socket=d.path) as other:
            other.shows(r"(?m)^> .* train .* running").press("s").shows("y/n").press("y").shows(" train .* held ").press("r").shows(" train .* running ").press("q")
            tap.same(other.ended(), 0, "exit status")
            tap.true("runs again" not in other.screen(), f"what was resumed before is told: {other.screen()}")


@tap.test("an answer is about what was asked: if that has gone, no other client is stopped and no other device has the policy")
def _(folder):
    with scene(folder) as (d, train), simulated.train(folder, socket=d.path) as other:
        simulated.handles(d, other.pid)
        with Terminal(folder, socket=d.path) as t:
            t.shows("2 clients").press("s").shows("y/n")
            asked, left = (train, other) if f"Suspend train {train.pid}," in t.screen() else (other, train)
            asked.kill()
            t.shows("1 client ", rf"(?m)^> +{left.pid} ").press("y").shows(f"train {asked.pid} has no queues there")
            tap.same(client(d, left.pid)["state"], "running", "the other")
    with double.daemon(folder, *THERE, "devices=2") as d, Terminal(folder, socket=d.socket) as t:
        t.shows("2 devices").press("Right").shows(r"(?m)^> 1 ").press("p").shows("Policy of device 1")
        d.tell("devices=1")
        t.shows("1 device ", r"(?m)^> 0 ", "Policy of device 1").press("fair", "Enter").shows("device 1")
        until(lambda: d.heard()["policy_device"] == 1, f"the policy is device 1's: {d.heard()}")


@tap.test("a policy is typed or picked with Tab; one that there is not is refused in gpreemptd's words")
def _(folder):
    with scene(folder) as (d, _), Terminal(folder, socket=d.path) as t:
        def policy():
            return json.loads(tap.good("policy", "--json", "--socket", d.path).stdout)["devices"][-1]["policy"]

        t.shows(" train .* running").press("Right").shows(r"(?m)^> 1 .*simulated")  # the tree of the test has one more
        t.press("p").shows("Policy of device 1.*fair").press("Tab", "Tab", "Tab").shows("fair_")
        tap.same(policy(), "priority", "until Enter")
        t.press("Enter").shows("fair schedules device 1", r"(?m)^> 1 .* fair ")
        tap.same(policy(), "fair", "chosen")
        t.press("p").shows("Policy of").press("fairx", "BSpace", "BSpace").shows("fai_").press("Enter").shows("there is no such policy; there are: fifo priority fair deadline")
        t.press("p").shows("Policy of").press("x" * 40).shows(r"\):\s+x{31}_\n").press("Escape")  # more is no name
        t.press("p").shows(r"\): _").press("Tab", "Tab", "Tab", "Tab").shows("deadline_").press("Tab").shows(r"\): fifo_").press("Escape")
        until(lambda: "Policy of" not in t.screen(), "Escape ends it")
        tap.same(policy(), "fair", "after Escape")


MINE = """#include <gpreempt/policy.h>
static uint64_t decide(struct gp_policy *p, uint64_t now) { (void)p; (void)now; return GP_NEVER; }
const struct gp_policy_ops gp_policy = { .size = sizeof(gp_policy), .abi = GP_POLICY_ABI, .name = "mine", .decide = decide };
"""


@tap.test("Tab picks a policy that gpreemptd has loaded, too, and where nobody names them those that are built in")
def _(folder):
    source = tap.write(f"{folder}/mine.c", MINE)
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{tap.SOURCE}/include", "-o", f"{folder}/mine.so", source], check=True)
    with scene(folder, "--config", tap.write(f"{folder}/conf", f"[scheduler]\nload = {folder}/mine.so\n")) as (d, _), Terminal(folder, socket=d.path) as t:
        t.shows(" train .* running").press("p").shows(r"Policy of device 0 \(fifo priority fair deadline mine; Tab")
        t.press(*["Tab"] * 5).shows("mine_").press("Enter").shows("mine schedules device 0", r"(?m)^> 0 .* mine ")
    for words in ((f"error={POLICY}:{errno.ENOENT}", "text=there is no such policy"), (f"error={POLICY}:{errno.EIO}",)):
        with double.daemon(folder, *THERE, *words) as d, Terminal(folder, socket=d.socket) as t:
            t.shows(" serve ").press("p").shows(r"Policy of device 0 \(fifo priority fair deadline; Tab").press("Tab").shows("fifo_")


@tap.test("a class is changed, by gpreemptd and on the simulated machine, after a question")
def _(folder):
    with scene(folder) as (d, train), Terminal(folder, socket=d.path) as t:
        t.shows(" train .* running").press("c").shows(f"Make train {train.pid} online. y/n").press("n").shows(" train .* running")
        tap.same(client(d, train.pid)["class"], "offline", "its class")
        t.press("c").shows("y/n").press("y").shows(f"train {train.pid} is online from now on", " train +online")
        tap.same(client(d, train.pid)["class"], "online", "its class")
    with Terminal(folder, "--backend", "sim", socket="") as t:
        t.shows(" serve 0 +online").press("c").shows("Make serve 0 1 offline").press("y").shows("serve 0 1 is offline from now on", " serve 0 +offline")
        tap.same(t.press("q").ended(), 0, "exit status")


@tap.test("when gpreemptd goes it says so and shows nothing that is old, and finds the next one")
def _(folder):
    with scene(folder) as (d, train), Terminal(folder, socket=d.path) as t:
        t.shows(" train .* running").press("s").shows("y/n").press("y").shows(" held ")
        d.process.kill()
        d.process.wait()
        t.shows("gpreemptd has gone", "what it held for you runs again", "- devices  - clients", "devices are not known", "clients are not known", r"LATENCY  -")
        t.press("s")  # nothing to do it with
        os.unlink(d.path)
        with gpreemptd.daemon(folder) as again:
            t.shows("gpreemptd is here", r" train .* running")
            tap.same(client(again, train.pid)["state"], "running", "it runs")
            tap.same(t.press("q").ended(), 0, "exit status")
            tap.true("What was suspended" not in t.screen(), "what was told when gpreemptd went is told again")


@tap.test("a question ends with the gpreemptd that it is about: of the next one's clients another has that number")
def _(folder):
    for key, question in (("s", "Suspend train .*y/n"), ("p", "Policy of device")):
        with scene(folder) as (d, train), Terminal(folder, socket=d.path) as t:
            t.shows(" train .* running").press(key).shows(question)
            d.process.kill()
            d.process.wait()
            t.shows("gpreemptd has gone")
            os.unlink(d.path)
            with gpreemptd.daemon(folder) as again:
                t.shows("gpreemptd is here", " train .* running").press("y", "Enter")
                tap.same(t.press("q").ended(), 0, "exit status: it is no letter of an answer")
                tap.same(client(again, train.pid)["state"], "running", "it")


@tap.test("of the next gpreemptd nothing is known at first, and what it stops from then on is in the sparkline")
def _(folder):
    with contextlib.ExitStack() as first:
        d = first.enter_context(double.daemon(folder, *THERE))
        with Terminal(folder, "--interval", "3s", socket=d.socket) as t:
            t.shows(r"(?m)^> +0 .* 0\.0 +3ms +10\.1%")
            first.close()
            t.shows("gpreemptd has gone")
            with double.daemon(folder, *THERE) as d:
                t.shows("gpreemptd is here", r"(?m)^> +0 .* - +3ms +10\.1%")
                d.tell(f"event={SUSPEND}:200:2000000000:0")
                t.shows(r"(?m)^> +0 .* 0\.0 +3ms +10\.1%", "LATENCY .*█.* most 2s")


@tap.test("a signal ends it and the terminal is as it was, and what it held runs")
def _(folder):
    with scene(folder) as (d, train):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with Terminal(folder, socket=d.path) as t:
                t.shows(" train .* running").press("s").shows("y/n").press("y").shows(" held ")
                os.kill(t.pid(), number)
                tap.same(t.ended(), 0, f"exit status after {number}")
                until(lambda: client(d, train.pid)["state"] == "running", "it runs on")
        with Terminal(folder, socket=d.path) as t:
            t.shows(" train .* running").press("C-c")
            tap.same(t.ended(), 0, "exit status after Ctrl-C")


@tap.test("stopped by Ctrl-Z it leaves the terminal to the shell, and takes it again")
def _(folder):
    with double.daemon(folder, *THERE) as d, Terminal(folder, socket=d.socket) as t:
        t.shows(" serve ").press("C-z").shows("the shell was here", "it was stopped")
        tap.true(" serve " not in t.screen(), t.screen())
        t.press("Enter").shows(" serve ", "q quit").press("q")
        tap.same(t.ended(), 0, "exit status")


@tap.test("what others write to the terminal is wiped by Ctrl-L, which answers no question")
def _(folder):
    with scene(folder) as (d, train), Terminal(folder, socket=d.path) as t:
        t.shows(r"(?m)^> .* train .* running").press("s").shows("y/n")
        tap.write(t.tmux("display", "-p", "#{pane_tty}").strip(), "\033[10;20HBroadcast message")
        t.shows("Broadcast message").press("C-l")
        until(lambda: "Broadcast" not in t.screen(), f"it is wiped: {t.screen()}")
        t.shows(" train .* running", "y/n").press("y").shows(f"Suspended 1 queue of train {train.pid}")


@tap.test("when the terminal goes it ends, with a signal or without one, and what it held runs")
def _(folder):
    with scene(folder) as (d, train):
        with Terminal(folder, socket=d.path) as t:
            t.shows(" train .* running").press("s").shows("y/n").press("y").shows(" held ")
            pid = t.pid()
        until(lambda: not os.path.exists(f"/proc/{pid}") or " (gpreempt) Z" in tap.read(f"/proc/{pid}/stat"), "it ends")
        until(lambda: client(d, train.pid)["state"] == "running", "it runs on")
        ours, theirs = pty.openpty()
        env = dict(os.environ, GPREEMPT_SOCKET=d.path, TERM="xterm", LC_ALL=UTF8, **KEEPS)
        with subprocess.Popen([tap.PROGRAM, "top"], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=env, start_new_session=True) as top:
            os.close(theirs)
            tap.true(os.read(ours, 10), "it begins")
            os.close(ours)
            try:
                tap.same(top.wait(simulated.SOON), 0, "exit status")
            finally:
                top.kill()


@tap.test("who has no rights sees all, is told that this is read-only, and is asked nothing")
def _(folder):
    os.chmod(folder, 0o711)
    with scene(folder) as (d, train):
        for name in ("pid",):  # written by the other user's shell
            tap.write(f"{folder}/{name}", "")
        with Terminal(folder, socket=d.path, user=NOBODY) as t:
            t.shows(" train .* running", "read-only but for your own")
            t.press("s").shows("read-only: only root and group gpreempt may change other users' clients", "sudo")
            t.press("p").shows("read-only: only root and group gpreempt may change policies")
            t.press("c").shows("read-only: .*clients")
            tap.true("y/n" not in t.screen(), t.screen())
            tap.same(client(d, train.pid)["state"], "running", "it")
            tap.same(t.press("q").ended(), 0, "exit status")


@tap.test("who has no rights may suspend what is its own, with the queues that it makes meanwhile")
def _(folder):
    if os.geteuid() != 0:
        raise tap.Skip("only root can be somebody else")
    os.chmod(folder, 0o711)
    script = "import sys; from protocol import Agent; one = Agent(sys.argv[1], name='own'); print('ready', flush=True); one.answer(); sys.stdin.read()"
    with gpreemptd.daemon(folder) as d:
        with contextlib.closing(d.agent(1, name="mine")) as agent, Terminal(folder, socket=d.path) as t:
            t.shows(" mine ").press("s").shows("y/n").press("y")
            agent.answer()
            t.shows("Suspended 1 queue of mine")
            agent.add(2)
            agent.answer()
            tap.same(agent.stopped, {1: 1, 2: 1}, "what stands still")
            t.press("q")
            while any(agent.stopped.values()):
                agent.answer()
            t.ended()
        with subprocess.Popen([sys.executable, "-c", script, d.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=NOBODY, group=NOBODY, extra_groups=[],
                              env={**os.environ, "PYTHONPATH": tap.HERE}) as own:
            tap.same(own.stdout.readline(), "ready\n", "an agent")
            with Terminal(folder, socket=d.path, user=NOBODY) as t:
                t.shows(r"(?m)^> .* own ", "read-only but for your own").press("s").shows(f"Suspend own {own.pid}, 1 queue.*y/n")
                t.press("y").shows("Suspended 1 queue of own").press("q").ended()
            own.stdin.close()


@tap.test("what gpreemptd refuses is shown in its words")
def _(folder):
    with double.daemon(folder, *THERE, "text=the policy says no", f"error={POLICY}:1") as d, Terminal(folder, socket=d.socket) as t:
        t.shows(" serve ").press("s").shows("serve 100 has no queues there")  # the double's clients have none: nothing is asked
        t.press("p").shows("Policy of").press("fair", "Enter").shows("gpreemptd: the policy says no: ", "sudo|CAP_SYS_ADMIN")


@tap.test("clients stand by their class, whatever order they came in")
def _(folder):
    with double.daemon(folder, *reversed(THERE)) as d, Terminal(folder, socket=d.socket) as t:
        t.shows(r"(?m)^> +100 .* serve .*\n +200 .* train ")


@tap.test("of a device that goes while it is asked about nothing is known, and top goes on")
def _(folder):
    with double.daemon(folder, *THERE, f"error={STATS}:{errno.ENODEV}") as d:
        devices, clients = d.good("top", "--once", "--interval", "100ms").stdout.split("\n\n")
        tap.same(devices.splitlines()[1].split()[-5:], ["-", "-", "10.1%", "-", "-"], "PREEMPT/S to LATENCY")
        told = json.loads(d.good("top", "--once", "--interval", "100ms", "--json").stdout)
        tap.same((told["devices"], len(told["clients"]), len(clients.splitlines())), ([], 2, 3), "all else")


@tap.test("--once prints what is seen, in words and as JSON, and what is not known is a dash, or null")
def _(folder):
    with double.daemon(folder, *THERE, f"event={SUSPEND}:200:2000000000:0") as d:
        devices, clients = d.good("top", "--once", "--interval", "200ms", program=tap.PROGRAM).stdout.split("\n\n")
        head, line = (text.split() for text in devices.splitlines())
        tap.same(head, "DEVICE NAME POLICY PREEMPT/S P99 OFFLINE STOPPED LATENCY".split(), "headings")
        told = dict(zip(head, [line[0], " ".join(line[1:-6]), *line[-6:]]))
        tap.same((told["DEVICE"], told["PREEMPT/S"], told["OFFLINE"]), ("0", "0.0", "10.1%"), devices)
        tap.same(clients, d.good("ps").stdout, "clients are those of ps")
        told = json.loads(d.good("top", "--once", "--json", "--interval", "200ms").stdout)
        tap.same((told["schema"], told["interval_ns"], len(told["devices"]), len(told["clients"])), ("gpreempt-top-1", 200000000, 1, 2), "JSON")
        device = told["devices"][0]
        tap.same((device["preemptions_per_second"], device["offline_share_permille"], max(filter(None, device["longest_stops_ns"]), default=None)),
                 (0, 101, 2000000000), "figures")
        tap.true(None in device["longest_stops_ns"], "when nothing was stopped")
    with double.daemon(folder, "100:1") as d:
        told = json.loads(d.good("top", "--once", "--json", "--interval", "100ms").stdout)
        tap.same((told["devices"][0]["offline_share_permille"], set(told["devices"][0]["longest_stops_ns"]), told["clients"]), (None, {None}, []), "of none")
        tap.true(d.good("top", "--once", "--interval", "100ms").stdout.endswith("\n\nno clients\n"), "of none")
    simulated_machine = json.loads(tap.good("top", "--once", "--json", "--interval", "100ms", "--backend", "sim").stdout)["devices"][0]
    tap.same((simulated_machine["offline_share_permille"], simulated_machine["preempt_p99_ns"]), (None, None), "what nobody measures")


@tap.test("without a terminal, without one that is known and with bad options it says what to do")
def _(folder):
    with double.daemon(folder, *THERE) as d:
        for words, code, said in ((("top",), tap.BAD_INPUT, "no terminal; --once"), (("top", "--json"), tap.BAD_INPUT, "--json is for --once"),
                                  (("top", "--interval", "1ms"), tap.BAD_INPUT, "--interval"), (("top", "0"), tap.BAD_INPUT, "one too many")):
            done = d.run(*words, stdin=subprocess.DEVNULL)
            tap.true((done.returncode, done.stdout) == (code, "") and said in done.stderr and done.stderr.count("\n") == 1, f"{words}: {done}")
        for term in ("no-such-terminal", "dumb"):
            with Terminal(folder, socket=d.socket, term=term) as t:
                t.shows(f'no terminal "{term}" is known here that can be drawn')
                until(lambda: os.path.exists(f"{folder}/status") and tap.read(folder, "status") == "1\n", "its status")
    done = tap.run("top", "--once", "--socket", f"{folder}/nobody")
    tap.true(done.returncode == tap.FAILED and "no gpreemptd at" in done.stderr, f"{done}")


tap.main(jobs=2)
