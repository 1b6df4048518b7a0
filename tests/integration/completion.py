#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What real shells offer for gpreempt: bash, zsh and fish, each with the script that it prints."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

import tap

PATIENCE = 60  # seconds, for a machine that is busy
ENV = {**os.environ, "PATH": f"{os.path.abspath(tap.BUILD)}:{os.environ['PATH']}"}
BASH = """source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
how=$(complete -p "$1"); how=${how#*-F }; ${how%% *}
printf '%s\\n' "${COMPREPLY[@]}" """
# ^G says what the line has become, and clears it.
ZSH = """autoload -Uz compinit; compinit -u -D; LISTMAX=0
report() { zle -I; print -r -- "bec""ame: $BUFFER :end""ed"; BUFFER= }
zle -N report; bindkey '^G' report; print lo""aded
"""


def verbs():
    return {entry["name"]: entry["usage"] for entry in json.loads(tap.good("help", "--json").stdout)}


def options(usage):
    """Those that --help shows."""
    return set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", usage.split("\nexamples:")[0].split("\n\n", 1)[-1])) | set(re.findall(r"\[(--[\w-]+)\]", usage)) | {"--help"}


def script(folder, shell, name):
    if not shutil.which(shell):
        raise tap.Skip(f"{shell} is not installed")
    return tap.write(os.path.join(folder, name), tap.good("completion", shell).stdout)


def ask_bash(path, line):
    """As readline splits it: a = is a word."""
    words = [word for part in line.split(" ") for word in (re.split("(=)", part) if "=" in part else [part])]
    done = subprocess.run(["bash", "--norc", "-c", BASH, "bash", path, *words], capture_output=True, text=True, check=True, timeout=PATIENCE, env=ENV)
    tap.same(done.stderr, "", line)
    return set(done.stdout.split())


def ask_fish(path, line):
    command = ["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", path, line]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE, env={**ENV, "HOME": os.path.dirname(path)})
    return {entry.split("\t")[0].split("=")[-1] for entry in done.stdout.splitlines()}


class Zsh:
    """One at a terminal: what it lists has no other way out."""

    def __init__(self, folder):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 200, 0, 0))
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**ENV, "HOME": folder, "TERM": "dumb", "PS1": "ready> "})
        self.type(f"fpath=({folder} $fpath); {ZSH}")
        self.read_until("loaded")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, end):
        text, until = "", time.monotonic() + PATIENCE
        while end not in text:
            tap.true(time.monotonic() < until, f"zsh did not say {end}: {text}")
            if select.select([self.terminal], [], [], 1)[0]:
                text += os.read(self.terminal, 65536).decode(errors="replace")
        return text

    def ask(self, line):
        """What was listed, and what the last word became."""
        self.type(f"{line}\t\x07")
        text = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", " ", self.read_until(" :ended"))
        listed, became = text.rsplit("became: ", 1)
        return set(re.findall(r"[\w-]+", listed)) - set(line.split()) | set(became[: -len(" :ended")].split()[-1:])

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


@contextlib.contextmanager
def shell_of(folder, shell):
    """A function: a line in, what is offered out."""
    path = script(folder, shell, "_gpreempt" if shell == "zsh" else "gpreempt." + shell)
    if shell != "zsh":
        yield lambda line: (ask_bash if shell == "bash" else ask_fish)(path, line)
        return
    zsh = Zsh(folder)
    try:
        yield zsh.ask
    finally:
        zsh.end()


PLACES = {
    "an option's value that is a word": ("gpreempt suspend --way ", {"auto", "update", "dbg", "private"}),
    "an option's value after =": ("gpreempt sim E --device=", {"mi308x", "mi300x", "h200"}),
    "an option after an argument": ("gpreempt sim E --du", {"--duration"}),
    "an option after one whose value may be left out": ("gpreempt list --watch --js", {"--json"}),
    "a class": ("gpreempt cdi --docker-args of", {"offline"}),
    "a kind of events": ("gpreempt events --kind ", {"suspend", "failed", "lost"}),
    "a configuration": ("gpreempt sim E --only interrupt-b", {"interrupt-batched"}),
    "a policy": ("gpreempt policy ", {"fifo", "fair"}),
    "a policy for a device": ("gpreempt policy 0 ", {"fifo", "fair"}),
    "an option of gpreemptd": ("gpreemptd --pr", {"--print-config"}),
    "an option of queue_finder": ("queue_finder --verb", {"--verbose"}),
    "an argument that is a word": ("gpreempt wait ", {"running", "stopped"}),
    "an argument that is a scenario": ("gpreempt sim que", {"queues"}),
    "an argument that is a verb": ("gpreempt help compl", {"completion"}),
    "the command that is to run": ("gpreempt run --weight 3 mkfif", {"mkfifo"}),
}


for shell in ("bash", "zsh", "fish"):
    @tap.test(f"{shell} offers every verb, and of each every option that --help shows")
    def _(folder, shell=shell):
        with shell_of(folder, shell) as ask:
            there = verbs()
            tap.same(set(there) - ask("gpreempt "), set(), "verbs that are not offered")
            for verb, usage in there.items():
                offered = {word for word in ask(f"gpreempt {verb} --") if word.startswith("--")} - {"--"}
                tap.same(offered or {"--help"}, options(usage), verb)

    @tap.test(f"{shell} offers what may stand in a place, and nothing after a verb that is none")
    def _(folder, shell=shell):
        with shell_of(folder, shell) as ask:
            for place, (line, wanted) in PLACES.items():
                tap.same(wanted - ask(line), set(), f"{place}: {line}")
            tap.same(ask("gpreempt nonsense --") & {"--json", "--help"}, set(), "a verb that is none")


@tap.test("bash offers words for the first argument alone, and a value's words in place of options")
def _(folder):
    with shell_of(folder, "bash") as ask:
        tap.same(ask("gpreempt wait running "), set(), "the second argument")
        tap.same(ask("gpreempt ps --backend "), {"sim"}, "a value")
        tap.same(ask("gpreempt ps --backend sim --j"), {"--json"}, "after a value")


@tap.test("zsh and fish describe an option whose text --help has in the next line")
def _(folder):
    del folder
    for shell, words in (("zsh", "'--docker-args=[write nothing; print"), ("fish", "-l docker-args -x -a 'online offline' -d 'write nothing; print")):
        tap.true(words in tap.good("completion", shell).stdout, shell)


@tap.test("completion of a shell that is none names those there are; a description with quotes is no end of one")
def _(folder):
    done = tap.run("completion", "csh")
    tap.same((done.returncode, done.stdout, done.stderr), (tap.BAD_INPUT, "", 'gpreempt: completion: no "csh"; there are: bash, zsh, fish\n'), "csh")
    for shell in ("bash", "zsh", "fish"):
        done = subprocess.run([shell, "-n", script(folder, shell, shell)], capture_output=True, text=True, check=False)
        tap.same((done.returncode, done.stderr), (0, ""), shell)


tap.main(jobs=2)
