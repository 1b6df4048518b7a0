# SPDX-License-Identifier: MIT
"""Debians for tests (tools/root.sh): one is made and never changed, and each test has what it changes over it; commands run in there,
or a whole systemd does.

What the tests of installations share; not a test itself.
"""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import time

import tap

ROOT_TOOL = os.path.join(tap.SOURCE, "tools", "root.sh")
SKIPPED = 77
PATIENCE = 800  # seconds; a root that is not in the cache takes minutes

# In a mount namespace of its own: the root with what this test changed over it.
OVER = """mount -t overlay overlay -o lowerdir="$1",upperdir="$2/changed",workdir="$2/work" "$2/root"
tool=$3; root=$2/root; how=$4; shift 4; exec "$tool" "$how" "$root" "$@" """


def called(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False, **more)
    if done.returncode == SKIPPED:
        raise tap.Skip(done.stderr.strip().split("\n")[0])
    return done


def well(done):
    tap.same(done.returncode, 0, f"{done.args}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def until(condition, why, patience=PATIENCE):
    """To look starts a program or two: not as often as it can be done."""
    end = time.monotonic() + patience
    while not condition():
        tap.true(time.monotonic() < end, f"not in {patience:g} s: {why}")
        time.sleep(0.1)


def make(place, suite, *packages):
    """Once: tests run side by side."""
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(place):
            return
        shutil.rmtree(place + ".new", ignore_errors=True)
        well(called(ROOT_TOOL, suite, place + ".new", *packages))
        os.rename(place + ".new", place)


def commands(heading=None):
    """The blocks of docs/INSTALL.md that are to be typed: those below this heading, or those below none that names packages."""
    sections = re.split(r"^## ", tap.read(tap.SOURCE, "docs", "INSTALL.md"), flags=re.M)
    chosen = [one for one in sections if (one.split("\n")[0] == heading if heading else "packages" not in one.split("\n")[0])]
    return re.findall(r"^```sh\n(.*?)^```", "".join(chosen), re.M | re.S)


class Root:
    """That one, with nothing changed in it yet."""

    def __init__(self, folder, base):
        self.folder, self.base = folder, base
        for name in ("changed", "work", "root"):
            os.mkdir(os.path.join(folder, name))

    def put(self, path, text=None, mode=0o755):
        """A folder, or a file in it; before anything has run, or what the root itself has not got."""
        full = os.path.join(self.folder, "changed") + path
        os.makedirs(full if text is None else os.path.dirname(full), exist_ok=True)
        if text is not None:
            os.chmod(tap.write(full, text), mode)
        return full

    def over(self, how, *command):
        return ["unshare", "--mount", "sh", "-euc", OVER, "sh", self.base, self.folder, ROOT_TOOL, how, *command]

    def run(self, *command):
        return called(*self.over("--run", *command))

    def sh(self, script, *args):
        """Its standard output; it must succeed."""
        return well(self.run("sh", "-euc", script, "sh", *args)).stdout

    def listing(self, what="%y %m %p %l"):
        """All that is there but what the kernel makes; %T@ and more as find has them."""
        text = self.sh(f"find / -xdev '(' -path /proc -o -path /sys -o -path /dev -o -path /tmp ')' -prune -o -printf '{what}\\n'")
        return set(text.splitlines())


def children_of(pid):
    return [int(child) for child in tap.read(f"/proc/{pid}/task/{pid}/children").split()]


class Inside(subprocess.Popen):
    """A program in a machine: nsenter's one child, to which signals go."""

    def send_signal(self, number):
        for child in children_of(self.pid) if self.poll() is None else []:
            os.kill(child, number)


class Machine(Root):
    """The same with its own systemd, which has come up; ends with the test."""

    def __enter__(self):
        with open(f"{self.folder}/boot.log", "wb") as log:
            self.process = subprocess.Popen(self.over("--boot"), stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=tap.die_with_parent)
        try:
            until(self.is_up, "systemd comes up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def is_up(self):
        status = self.process.poll()
        said = tap.read(self.folder, "boot.log")
        if status == SKIPPED:
            raise tap.Skip(said.strip().split("\n")[0])
        tap.same(status, None, f"exit status of root.sh --boot: {said}")
        return bool(self.init()) and self.run("systemctl", "is-system-running").stdout in ("running\n", "degraded\n")

    def init(self):
        """Its first process's number here; while that is not there, None."""
        with contextlib.suppress(OSError):  # a child of the shell before may have gone
            for child in children_of(self.process.pid):
                if tap.read(f"/proc/{child}/comm") == "systemd\n":
                    return child
        return None

    def inside(self, *command):
        return ["nsenter", "--all", "--target", str(self.init()), "env", "-i", "HOME=/root", "LANG=C.UTF-8", "USER=root",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *command]

    def run(self, *command):
        return called(*self.inside(*command))

    def path(self, path):
        """The same file, from here."""
        return f"/proc/{self.init()}/root{path}"

    def start(self, *command):
        """A program in it, which goes on; it ends with the machine."""
        return Inside(self.inside(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                      preexec_fn=tap.die_with_parent)

    def __exit__(self, *why):
        self.process.kill()  # and with it all that runs there
        self.process.wait()
