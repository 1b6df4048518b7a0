#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The README's lines that start gpreemptd and programs, typed as they stand, on a simulated GPU and in namespaces of their own.

systemctl's line is typed in tests/integration/packages.py, where there is a systemd.
"""

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import tap
from gpreemptd import until
from preload import need_preload
from torchless import without_torch

BUILD = os.path.abspath(tap.BUILD)
EXAMPLES = os.path.join(tap.SOURCE, "examples")
SOON = 60  # s
PORT = 8000  # the examples' own: nobody else is in that network
PID = "4711"

# No GPU of this machine, no gpreemptd and no settings of it are there.
INSIDE = """mount -t tmpfs tmpfs /run
for dir in /etc/gpreempt /sys/class/kfd /proc/driver/nvidia; do [ ! -d $dir ] || mount -t tmpfs tmpfs $dir; done
exec "$@" """


def lines(section):
    """Its commands, without what is said of them, and that."""
    block = re.search(rf"^## {section}\n.*?^```\n(.*?)^```", tap.read(tap.SOURCE, "README.md"), re.M | re.S).group(1)
    typed = [line[2:].partition("#") for line in block.splitlines() if line.startswith("$ ")]
    return [(command.strip(), said.strip()) for command, _, said in typed]


def chosen(section, words):
    """The one line of it that has these words."""
    found = [command for command, _ in lines(section) if words in command]
    tap.same(len(found), 1, f"lines with {words!r}: {lines(section)}")
    return found[0]


class Shells:
    """Somebody's, where each line is typed; sudo is theirs, and what else the lines name is in the folder. All ends with the namespaces."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(f"{folder}/bin")
        os.makedirs("/run/user/0", mode=0o700)
        os.symlink("/usr/bin/python3", f"{folder}/bin/python")
        os.chmod(tap.write(f"{folder}/bin/sudo", '#!/bin/sh\nexec "$@"\n'), 0o755)
        for name in ("train.py", "serve.py"):
            shutil.copy(f"{EXAMPLES}/{name}", folder)
        env = dict(os.environ, PATH=f"{folder}/bin:{BUILD}:{os.environ['PATH']}", XDG_RUNTIME_DIR="/run/user/0", LC_ALL="C.UTF-8", PYTHONDONTWRITEBYTECODE="1",
                   GPREEMPT_LIBRARY=f"{BUILD}/libgpreempt.so.0", LD_LIBRARY_PATH=BUILD, PYTHONPATH=f"{tap.SOURCE}/python")
        env.pop("GPREEMPT_SOCKET", None)
        self.env = without_torch(env)

    def type(self, line):
        """It goes on beside the others, whether or not its line has a shell do that."""
        return subprocess.Popen(["sh", "-c", f"exec {line.removesuffix('&')}"], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=open(f"{self.folder}/said", "ab"), text=True)

    def ends(self, process, number=None):
        """Well; what it printed."""
        if number:
            process.send_signal(number)
        out, _ = process.communicate(timeout=SOON)
        tap.same(process.returncode, 0, f"{process.args}: {out}{self.said()}")
        return out

    def said(self):
        """To stderr, by all of them."""
        return tap.read(self.folder, "said")

    def ask(self, *words):
        return json.loads(tap.good(*words, "--json", env=self.env).stdout)

    def states(self, pid):
        return [one["state"] for one in self.ask("list")["queues"] if one["pid"] == pid]

    def simulated(self):
        """In the place of a card."""
        gpu = self.type(chosen("Without a GPU, in three shells", "gpreempt sim-gpu"))
        until(lambda: self.ask("list")["devices"], "gpreemptd has the GPU", SOON)
        return gpu

    def daemon(self, line):
        process = self.type(line)
        until(lambda: tap.run("ps", env=self.env).returncode == 0, f"gpreemptd is there: {self.said()}", SOON)
        return process

    def training(self, section, words="train.py"):
        train = self.type(chosen(section, words))
        until(lambda: self.states(train.pid) == ["running"], "it trains", SOON)
        return train


def requests(*texts):
    """To serve.c: the answers to each."""
    until(lambda: socket.socket().connect_ex(("127.0.0.1", PORT)) == 0, "the server listens", SOON)
    with socket.create_connection(("127.0.0.1", PORT)) as one, one.makefile("rw") as both:
        for text in texts:
            print(text, file=both, flush=True)
            yield both.readline().strip()


def counts(shells):
    device = shells.ask("stats")["devices"][0]
    return device["hints"] > 0 and device["preemptions"] > 0 and device["failures"] == 0


def on_amd(shells):
    section = "On an AMD GPU"
    subprocess.run(["cc", f"-I{tap.SOURCE}/include", f"{EXAMPLES}/serve.c", "-o", f"{shells.folder}/serve", f"-L{BUILD}", "-lgpreempt"], check=True)
    without = next(said for command, said in lines(section) if "systemctl" in command)
    daemon = shells.daemon(re.search("without systemd: (.*), which logs into its shell", without).group(1))
    shells.simulated()
    train = shells.training(section)
    shells.type(chosen(section, "./serve"))
    tap.same(list(requests("a", "bcd")), ["1", "3"], "answers")
    until(lambda: counts(shells), "requests had the training stopped", SOON)
    tap.true(f"\n{train.pid}:" in shells.ends(shells.type(chosen(section, "gpreempt list"))), "its queue is listed as PID:QUEUE")
    tool = shells.type(chosen(section, "gpreempt suspend").replace(PID, str(train.pid)))
    tap.true(tool.stdout.readline().startswith("Suspended 1 "), "suspend")
    tap.same(shells.states(train.pid), ["suspended"], "it stands still")
    shells.ends(tool, signal.SIGINT)
    until(lambda: shells.states(train.pid) == ["running"], "it runs again", SOON)
    shells.ends(daemon, signal.SIGTERM)
    tap.true("listening on /run/gpreempt/" in shells.said(), f"its log, in its shell: {shells.said()}")


def on_nvidia(shells):
    section = "On an NVIDIA GPU"
    daemon = shells.daemon(chosen(section, "gpreemptd"))
    shells.simulated()
    shells.training(section)
    shells.type(chosen(section, "serve.py"))
    subprocess.run([sys.executable, f"{EXAMPLES}/ask.py"], timeout=SOON, check=True)
    until(lambda: counts(shells), "requests had the training stopped", SOON)
    shells.ends(daemon, signal.SIGTERM)


def in_three_shells(shells):
    section = "Without a GPU, in three shells"
    gpu = shells.type(f"{chosen(section, 'sim-gpu')} --verbose")  # as on a terminal
    daemon = shells.daemon(chosen(section, "gpreemptd "))
    until(lambda: shells.ask("list")["devices"], "gpreemptd has the GPU", SOON)
    train = shells.training(section, "--work train")
    said = shells.ends(shells.type(chosen(section, "--online").replace("10s", "2s")))
    tap.true(re.match(r"infer-10ms: online infer-10ms on a simulated mi308x, [2-9]\.\d s ", said), said)  # later, if the host woke it late
    tap.true("listening on" in tap.read(shells.folder, "gpreemptd.log"), "its log is where the line has it")
    said = shells.ends(train, signal.SIGINT)
    tap.true(re.match(r"train: offline .*\n.*\bsteps\b.*\btimes\b.*\n\d", said), f"its steps, and how long it was stopped: {said}")
    shells.ends(daemon, signal.SIGTERM)
    said = shells.ends(gpu, signal.SIGINT) + shells.said()
    tap.same([f"(process {train.pid})" in said, "infer-10ms" in said], [True, True], f"a line for each program: {said}")


SECTIONS = {"amd": on_amd, "nvidia": on_nvidia, "shells": in_three_shells}


def raise_loopback():
    """What ip link set lo up does."""
    with socket.socket() as one:
        fcntl.ioctl(one, 0x8914, struct.pack("16sh", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


def within(folder, which):
    need_preload()
    if os.geteuid() != 0:
        raise tap.Skip("only root can have another /run")
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-euc", INSIDE, "sh",
                           "/usr/bin/python3", os.path.abspath(__file__), "--inside", which, folder],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=4 * SOON, check=False)
    tap.same(done.returncode, 0, done.stdout[-3000:])


@tap.test("the README's lines for an AMD GPU start gpreemptd and programs that it knows, stop one until Ctrl-C, and list them")
def _(folder):
    within(folder, "amd")


@tap.test("the README's lines for an NVIDIA GPU start gpreemptd, training that yields and a server that says when requests come")
def _(folder):
    within(folder, "nvidia")


@tap.test("the README's three shells are a simulated GPU, gpreemptd with training, and a client that is served")
def _(folder):
    within(folder, "shells")


@tap.test("each of the README's lines that start something is typed by a test")
def _(folder):
    starts = [command for section in ("On an AMD GPU", "On an NVIDIA GPU", "Without a GPU, in three shells") for command, _ in lines(section)]
    # doctor looks at what the machine is, and find at a driver's files: tests/integration/amd_cli.py, find.py. systemctl: packages.py.
    others = [command for command in starts if re.search(r"doctor|find|systemctl", command)]
    tap.same((len(starts), len(others)), (14, 3), f"{starts}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        raise_loopback()
        SECTIONS[sys.argv[2]](Shells(sys.argv[3]))
    else:
        tap.main(jobs=3)
