#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The program at a terminal and in a pipe: progress, help, JSON of each verb."""

import fcntl
import glob
import json
import os
import pty
import re
import struct
import subprocess
import termios
import time

import tap
from double import daemon

VERBS = ("demo", "sim", "sim-gpu", "sim-client", "run", "cdi", "attach", "slurm-weights", "slurm-requeue", "slurm-comment", "list", "ps", "find", "suspend", "resume", "preempt", "wait", "reserve",
         "policy", "hint", "stats", "top", "events", "metrics", "doctor", "selftest", "verify", "report", "completion", "version", "help")
SIM = ("sim", "queues", "--duration", "3s")


def read_terminal(fd):
    """All that comes until the other end closes."""
    text = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            return text.decode()
        if not part:
            return text.decode()
        text += part


@tap.test("progress is shown on a terminal, and wiped when it is done")
def _(folder):
    ours, theirs = pty.openpty()
    with subprocess.Popen([tap.PROGRAM, *SIM], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs) as program:
        os.close(theirs)
        text = read_terminal(ours)
    os.close(ours)
    tap.same(program.returncode, 0, "exit status")
    steps = [(int(a), int(b)) for a, b in re.findall(r"\rsimulating: (\d+) of (\d+) rows", text)]
    tap.true(len(steps) > 10, f"progress: {text!r}")
    tap.same(steps, sorted(steps), "progress goes back")
    tap.true(text.endswith("\r\x1b[K"), f"not wiped: {text[-40:]!r}")


def on_terminal(width, *args, env=None):
    """What it prints on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 50, width, 0, 0))
    with subprocess.Popen([tap.PROGRAM, *args], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL,
                          env=env) as program:
        os.close(theirs)
        text = read_terminal(ours)
    os.close(ours)
    tap.same(program.returncode, 0, "exit status")
    return text.replace("\r\n", "\n")


@tap.test("a table on a terminal has all words that it has in a pipe, in no line that is wider than the terminal")
def _(folder):
    for args, narrow in ((("list",), 66), (("ps",), 30), (("policy",), 20)):
        whole = tap.good(*args, "--backend", "sim").stdout
        for width in (narrow, 80, 120):
            text = on_terminal(width, *args, "--backend", "sim")
            tap.same(sorted(text.split()), sorted(whole.split()), f"words of {args} in {width} columns")
            tap.true(max(map(len, text.splitlines())) <= width, f"{args} in {width} columns: {text}")


@tap.test("ps on a narrow terminal cuts long names, so that state and share stand in the first line; elsewhere they are whole")
def _(folder):
    names = ["serve-llama-3-70b-instruct-awq", "train-resnet-50-imagenet-bf16"]
    with daemon(folder, f"client=100:2:1:250:{names[0]}", f"client=4194304:1:2:101:{names[1]}") as d:
        for width, lines in ((80, 1), (66, 2)):
            text = on_terminal(width, "ps", env=d.env())
            head, *rest = text.splitlines()
            tap.true({"STATE", "SHARE"} <= set(head.split()), f"{width}: {text}")
            tap.same(len(rest) + 1, 3 * lines, f"{width}: {text}")
            tap.true(max(map(len, text.splitlines())) <= width, f"{width}: {text}")
            for name in names:
                cut = re.search(rf" ({name[:5]}\S*)\.\.\. ", text)
                tap.true(cut and name.startswith(cut[1]) and name not in text, f"{width}: {text}")
        for text in (on_terminal(200, "ps", env=d.env()), d.good("ps").stdout, d.good("ps", "--json").stdout):
            tap.true(all(name in text for name in names), text)


@tap.test("a device is called by one word in every table")
def _(folder):
    heads = [line.split() for args in (("list",), ("ps",), ("policy",)) for line in tap.good(*args, "--backend", "sim").stdout.splitlines() if "DEVICE" in line or "GPU" in line]
    tap.same(([("DEVICE" in head) for head in heads], [head for head in heads if "GPU" in head]), ([True] * 4, []), "headings")


@tap.test("stats on a narrow terminal breaks between words, and in a pipe has a line for each name")
def _(folder):
    reason = "a reason of the driver that is longer than a line of this terminal, word after word"
    with daemon(folder, f"ejected={reason}", "backoff") as d:
        text = on_terminal(60, "stats", env=d.env())
        tap.true(max(map(len, text.splitlines())) <= 60 and reason not in text and reason in " ".join(text.split()), text)
        tap.true(f" {reason}\n" in d.good("stats").stdout, "in a pipe")


@tap.test("the table of a scenario fits 60, 80 and 120 columns, and what the stock driver does stands out in it")
def _(folder):
    sim = ("sim", "E", "--duration", "3s", "--only", "exclusive,native,gate,interrupt-single,interrupt-single+hints,interrupt-batched+hints")
    for width, left_out in ((60, ["n", "p95", "p99.9", "SLO%", "harvest", "stop99", "cycles"]), (80, ["n", "p95", "p99.9", "SLO%", "harvest", "cycles"]), (120, [])):
        lines = on_terminal(width, *sim).splitlines()
        bold = [line for line in lines if line.startswith("\x1b[1m") and line.endswith("\x1b[0m")]
        tap.same([line[4:].split()[0] for line in bold], ["interrupt-single", "interrupt-single+hints"], "bold")
        lines = [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in lines]
        tap.true(max(map(len, lines)) <= width, f"{width} columns: {lines}")
        head = next(line for line in lines if line.startswith("simulated")).split()
        tap.same([name for name in ("n", "p50", "p95", "p99", "p99.9", "ratio", "SLO%", "be_norm", "harvest", "stop50", "stop99", "cycles")
                  if name not in head], left_out, f"left out of {width} columns")
    tap.true("\x1b" not in tap.good(*sim).stdout, "bold in a pipe")


@tap.test("columns that fit a terminal if they stand closer do so, and no heading stands below")
def _(folder):
    ps = ("ps", "--wide", "--backend", "sim")
    whole = tap.good(*ps).stdout
    enough = max(map(len, whole.splitlines()))
    tap.same(on_terminal(enough, *ps), whole, "with room")
    for width in (enough - 1, enough - 5):
        closer = on_terminal(width, *ps)
        tap.same([line.split() for line in closer.splitlines()], [line.split() for line in whole.splitlines()], f"{width} columns")
        tap.true(closer != whole, "closer")


@tap.test("help on a terminal of 80 columns has its words in their order, in no line that is wider, but for examples")
def _(folder):
    for args in ((verb, "--help") for verb in VERBS):
        text, whole = on_terminal(80, *args), tap.good(*args).stdout
        tap.same(text.split(), whole.split(), f"words of {args}")
        wide = [line for line in text.partition("\nexamples:\n")[0].splitlines() if len(line) > 80]
        tap.same(wide, [], f"{args}")
    tap.true(max(map(len, on_terminal(80, "--help").splitlines())) <= 80, "all verbs")


@tap.test("in a pipe there is no progress and no escape sequence")
def _(folder):
    done = tap.good(*SIM)
    tap.same(done.stderr, "", "stderr")
    tap.true("\x1b" not in done.stdout and "\r" not in done.stdout, "escape sequences in the table")


def close_early(args, nbytes):
    """Runs it, reads so many bytes, closes the pipe."""
    program = subprocess.Popen([tap.PROGRAM, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with program:
        program.stdout.read(nbytes)
        program.stdout.close()
        errors = program.stderr.read().decode()
    return program.returncode, errors


@tap.test("a pipe closed early ends the program quietly")
def _(folder):
    for args in (("sim", "A", "--duration", "2s"), ("sim", "A", "--duration", "2s", "--json"), ("--help",)):
        status, errors = close_early(args, 1)
        tap.true(status in (0, 1, -13), f"{args}: exit status {status}")
        tap.true(errors.count("\n") <= 1, f"{args}: {errors}")
        tap.true("Sanitizer" not in errors, errors)


@tap.test("--json keeps all but the JSON off stdout")
def _(folder):
    done = tap.good("sim", "A", "--duration", "2s", "--only", "auto", "--json", "--out", folder)
    json.loads(done.stdout)
    tap.true("index.html" in done.stderr, "stderr does not say what was written")


def options_of(verb):
    """What the parser of a verb takes, by the source: its --help must not be asked."""
    text = tap.read(tap.SOURCE, "src/cli", f"cmd_{verb.replace('-', '_')}.c")
    return [word.partition("=")[0] for word in re.search(r'\.options =\s*((?:"[^"]*"\s*)+)', text)[1].replace('"', "").split()]


def add_help_test(verb):
    @tap.test(f"{verb} --help exits 0 and names every option that it takes, and no other")
    def _(folder):
        text = tap.good(verb, "--help", cwd=folder).stdout
        tap.true(text.startswith(f"usage: gpreempt {verb}"), text)
        tap.same(sorted(set(re.findall(r"--([a-z]+(?:-[a-z]+)*)", text.split("examples:")[0]))), sorted(options_of(verb)), "options")
        tap.same(tap.good("help", verb).stdout, text, f"help {verb}")
        tap.same(tap.good(verb, "-h", cwd=folder).stdout, text, f"{verb} -h")
        tap.same(os.listdir(folder), [], "files left behind")


for name in VERBS:
    add_help_test(name)


@tap.test("--help names every verb, and there is no verb without a test here")
def _(folder):
    text = tap.good("--help").stdout
    verbs = sorted(os.path.basename(path)[4:-2].replace("_", "-") for path in glob.glob(f"{tap.SOURCE}/src/cli/cmd_*.c"))
    tap.same(verbs, sorted(VERBS), "verbs")
    for verb in VERBS:
        tap.true(re.search(rf"^  {verb} ", text, re.M), f"{verb} is not in --help")
    tap.same(tap.good("help").stdout, text, "help")


@tap.test("the examples in every --help are taken by the parser")
def _(folder):
    for verb in VERBS:
        for line in re.findall(r"^  gpreempt (.*)$", tap.good(verb, "--help").stdout.split("examples:")[1], re.M):
            args = line.split(";")[0].split(">")[0].split()
            end = args.index("--") if "--" in args else len(args)
            done = tap.run(*args[:end], "--help")
            tap.same((done.returncode, done.stderr), (0, ""), line)


@tap.test("--version and version print the version of the build")
def _(folder):
    want = re.search(r"version: '([^']*)'", tap.read(tap.SOURCE, "meson.build"))[1]
    for args in (("--version",), ("version",)):
        tap.true(want in tap.good(*args).stdout, f"{args}: not {want}")
    tap.true(want in json.loads(tap.good("version", "--json").stdout).values(), "version --json")


@tap.test("list --json has the devices and queues that list shows")
def _(folder):
    for device in ("mi308x", "mi300x", "h200"):
        listed = json.loads(tap.good("list", "--device", device, "--json").stdout)
        tap.same([entry["name"] for entry in listed["devices"]], [device], "devices")
        tap.true(listed["queues"], "no queues")
        text = tap.good("list", "--device", device).stdout
        for queue in listed["queues"]:
            name = f"{queue['client']}:{queue['queue']}"
            tap.true(re.search(rf"^{name} .* simulated .*{queue['class']}.*{queue['client_name']}", text, re.M), f"{queue} is not in the table")


@tap.test("doctor exits 0, and finds that the simulated GPU works")
def _(folder):
    found = json.loads(tap.good("doctor", "--json").stdout)
    tap.same(found["works"], True, "works")
    tap.true("simulated GPU  yes" in tap.good("doctor").stdout, "doctor does not show it")


@tap.test("help --json and sim --show --json are JSON")
def _(folder):
    tap.same(sorted(entry["name"] for entry in json.loads(tap.good("help", "--json").stdout)), sorted(VERBS), "verbs")
    shown = json.loads(tap.good("sim", "--show", "E", "--json").stdout)
    tap.same(shown["text"], tap.read(tap.SOURCE, "share/scenarios/e.ini"), "scenario E")


@tap.test("demo writes where it says, and its command is one that can be typed")
def _(folder):
    done = tap.good("demo", "--duration", "2s", cwd=folder)
    tap.same(os.listdir(folder), ["gpreempt-demo"], "files")
    for where, name in (("gpreempt-demo", "light"), ("gpreempt-demo/E", "E")):
        tap.true(f"Wrote {where}/index.html" in done.stdout, done.stdout[-200:])
        tap.same(json.loads(tap.read(folder, where, "result.json"))["scenario"]["name"], name, where)
    command = json.loads(tap.read(folder, "gpreempt-demo/result.json"))["command"]
    again = tap.good(*command.split()[1:], "--json").stdout
    tap.same(again, tap.read(folder, "gpreempt-demo/result.json"), "result")


def most_children(*args):
    """How many processes the program had at most, looked at again and again."""
    most = 0
    with subprocess.Popen([tap.PROGRAM, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as program:
        while program.poll() is None:
            try:
                most = max(most, len(tap.read(f"/proc/{program.pid}/task/{program.pid}/children").split()))
            except OSError:
                break
            time.sleep(0.002)
    tap.same(program.wait(), 0, "exit status")
    return most


@tap.test("rows run side by side: one per CPU, or as many as --jobs says")
def _(folder):
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        raise tap.Skip("this kernel does not list the children of a process")
    args = ("sim", "E", "--duration", "20s")
    tap.same(most_children(*args, "--jobs", "1"), 1, "with --jobs 1")
    tap.same(most_children(*args, "--jobs", "3"), 3, "with --jobs 3")
    most = most_children(*args)
    tap.true(min(2, os.cpu_count()) <= most <= os.cpu_count(), f"{most} on {os.cpu_count()} CPUs")


tap.main()
