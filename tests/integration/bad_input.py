#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Bad input: one line with file, line and what to write instead, exit 2, nothing on stdout, nothing half-written."""

import os
import resource
import shutil
import signal
import subprocess

import tap

SCENARIO = """[scenario]
name = mine
device = mi308x
duration = 3s

[online serve]
work = infer-1ms
arrival = periodic
rate = 100

[offline train]
work = train
"""
TRACE = "gpreempt-trace 1\n0 1000 0\n1 2000 0\n2 3000 0\n"


def refused(args, *said, code=tap.BAD_INPUT, **more):
    """Fails in one line that has all of said in it, and prints nothing else."""
    done = tap.run(*args, **more)
    tap.same(done.returncode, code, f"exit status ({done.stderr})")
    tap.same(done.stdout, "", "stdout")
    tap.true(done.stderr.startswith("gpreempt: ") and done.stderr.endswith("\n"), f"stderr: {done.stderr!r}")
    tap.same(done.stderr.count("\n"), 1, f"lines on stderr: {done.stderr!r}")
    tap.true(len(done.stderr) < 1100, f"{len(done.stderr)} characters on stderr")
    for text in said:
        tap.true(text in done.stderr, f"{text!r} is not in: {done.stderr!r}")


def scenario_refused(folder, text, *said):
    path = tap.write(f"{folder}/mine.ini", text)
    refused(("sim", path, "--out", f"{folder}/out"), path, *said)
    tap.same(os.listdir(folder), ["mine.ini"], "files left behind")


def changed(old, new):
    tap.true(old in SCENARIO, f"{old} is not in the scenario")
    return SCENARIO.replace(old, new)


def add_scenario_test(sentence, text, *said):
    @tap.test(sentence)
    def _(folder):
        scenario_refused(folder, text, *said)


@tap.test("the scenario that the others spoil is good")
def _(folder):
    path = tap.write(f"{folder}/mine.ini", SCENARIO)
    tap.good("sim", path, "--only", "auto", "--out", f"{folder}/out")
    tap.true(os.path.exists(f"{folder}/out/index.html"), "no page")


add_scenario_test("an unknown key is refused and the nearest one named", changed("rate =", "rat ="), ":9: ", '"rat"', "rate")
add_scenario_test("an unknown section is refused", changed("[offline", "[background"), ":11: ", '"background"', "offline")
add_scenario_test("a negative rate is refused", changed("= 100", "= -100"), ":9: ", "rate", "more than 0")
add_scenario_test("a rate of nothing is refused", changed("= 100", "="), ":9: ", "rate = 10")
add_scenario_test("a rate in words is refused", changed("= 100", "= often"), ":9: ", "often", "rate = 10")
add_scenario_test("a time without a unit is refused", changed("3s", "3"), ":4: ", "no unit", "ns, us, ms, s, min, m or h")
add_scenario_test("a key given twice is refused", changed("rate = 100", "rate = 100\nrate = 5"), ":10: ", "twice", "line 9")
add_scenario_test("a key before any section is refused", "name = x\n" + SCENARIO, ":1: ", "before any section")
add_scenario_test("an unknown device is refused and the known ones named", changed("mi308x", "mi999"), ":3: ", "mi308x mi300x h200")
add_scenario_test("an unknown policy is refused", changed("3s", "3s\npolicy = kind"), ":5: ", "kind", "priority")
add_scenario_test("an unknown config is refused", changed("3s", "3s\nconfigs = native best"), ":5: ", "best", "auto")
add_scenario_test("an unknown work is refused", changed("= train", "= training"), ":12: ", "training", "train")
add_scenario_test("an empty file is refused with what to add", "", ":1: ", "[online serve]")
add_scenario_test("binary garbage is refused as no text", bytes(range(256)) * 64, "not a text file")
add_scenario_test("garbage without zero bytes is refused", bytes(range(1, 256)) * 64, ": ")
add_scenario_test("a line of a megabyte is refused", SCENARIO + "# \n[" + "x" * 1000000, ":14: ", "too long")
add_scenario_test("escape sequences in a value do not reach the terminal", changed("mi308x", "\x1b[31mred"), ":3: ", "?[31mred")


@tap.test("a missing file is refused by name")
def _(folder):
    refused(("sim", f"{folder}/none.ini"), f"{folder}/none.ini: No such file")


@tap.test("a folder in place of a file is refused")
def _(folder):
    refused(("sim", f"{folder}/"), "Is a directory")


@tap.test("an unknown scenario is refused and the built-in ones named")
def _(folder):
    refused(("sim", "zz"), "zz: no such scenario", "burst", "levels", "queues")


def trace_refused(folder, trace, *said):
    tap.write(f"{folder}/requests.txt", trace)
    path = tap.write(f"{folder}/mine.ini", changed("arrival = periodic\nrate = 100", "arrival = trace\ntrace = requests.txt"))
    refused(("sim", path, "--out", f"{folder}/out"), *said)
    tap.true(not os.path.exists(f"{folder}/out"), "the out folder is there")


@tap.test("a good trace runs")
def _(folder):
    tap.write(f"{folder}/requests.txt", TRACE)
    path = tap.write(f"{folder}/mine.ini", changed("arrival = periodic\nrate = 100", "arrival = trace\ntrace = requests.txt"))
    tap.good("sim", path, "--only", "auto")


@tap.test("a trace with a hole is refused at the line behind it")
def _(folder):
    trace_refused(folder, TRACE.replace("1 2000 0\n", ""), "requests.txt:3: request 1 is missing")


@tap.test("a trace whose time goes back is refused at that line")
def _(folder):
    trace_refused(folder, TRACE.replace("3000", "1999"), "requests.txt:4: time goes back", "2000")


@tap.test("a trace that is not there is refused at the line that names it")
def _(folder):
    path = tap.write(f"{folder}/mine.ini", changed("arrival = periodic\nrate = 100", "arrival = trace\ntrace = none.txt"))
    refused(("sim", path), "mine.ini:9: ", "none.txt")


def device_refused(folder, name, key, value, *said):
    """A copy of a device file in which key has another value, or is gone."""
    lines = tap.read(tap.SOURCE, "share/devices", f"{name}.ini").split("\n")
    number = next(i for i, line in enumerate(lines) if line.startswith(f"{key} ="))
    lines[number:number + 1] = [f"{key} = {value}"] if value is not None else []
    path = tap.write(f"{folder}/gpu.ini", "\n".join(lines))
    where = f"{path}:{number + 1}: " if value is not None else path
    refused(("sim", "A", "--device", path, "--out", f"{folder}/out"), where, key, *said)
    scenario = tap.write(f"{folder}/mine.ini", changed("mi308x", "gpu.ini"))
    refused(("sim", scenario, "--out", f"{folder}/out"), where, key, *said)
    tap.same(sorted(os.listdir(folder)), ["gpu.ini", "mine.ini"], "files left behind")


@tap.test("a device whose yield slice is longer than its slice is refused")
def _(folder):
    device_refused(folder, "h200", "yield_slice_ns", 10**9, "slice_ns")


@tap.test("a device without queue slots is refused")
def _(folder):
    device_refused(folder, "mi308x", "queue_slots", 0, "1 or more")


@tap.test("a device with a number that is none is refused")
def _(folder):
    device_refused(folder, "mi308x", "unmap_ns", "15us", "whole number")


@tap.test("a device file with a key missing is refused with the line to add")
def _(folder):
    device_refused(folder, "mi308x", "quantum_ns", None, "is missing", "add a line")


OPTIONS = {
    "an unknown --device": (("sim", "A", "--device", "zz"), "--device", "mi308x mi300x h200"),
    "a --device file that is not there": (("sim", "A", "--device", "./zz.ini"), "--device", "./zz.ini"),
    "an unknown --policy": (("sim", "A", "--policy", "zz"), "--policy", "fifo priority fair deadline"),
    "an unknown config in --only": (("sim", "A", "--only", "native,zz"), "--only", '"zz"', "interrupt-batched"),
    "an empty --only": (("sim", "A", "--only", ""), "--only: its value is empty"),
    "a --duration without a unit": (("sim", "A", "--duration", "5"), "gpreempt: --duration 5 has no unit", "as in: --duration 60s"),
    "a --lease that is too long": (("suspend", "1", "--lease", "2000000s"), "gpreempt: --lease 2000000s is not possible", "from 1ms to 86400s, as in: --lease 10s"),
    "a --slo that is no time": (("run", "--slo", "soon", "true"), "gpreempt: --slo soon is not a time", "as in: --slo 20ms"),
    "a --rate of 0": (("sim-client", "--online", "--work", "decode", "--rate", "0"), "gpreempt: --rate: it must be more than 0", "as in: --rate 100"),
    "a --duration shorter than the warm-up": (("sim", "A", "--duration", "5ms"), "--duration", "warmup"),
    "a negative --seed": (("sim", "A", "--seed", "-1"), "gpreempt: --seed -1 is not possible", "whole number"),
    "--jobs 0": (("sim", "A", "--jobs", "0"), "gpreempt: --jobs 0 is not possible", "1 to 1024"),
    "an unknown verb": (("simulate",), '"simulate"', "sim"),
    "an unknown option": (("sim", "A", "--fast"), "--fast", "gpreempt sim --help"),
    "an unknown option among letters": (("sim", "A", "-xh"), "-x", "gpreempt sim --help"),
    "an option of another verb": (("list", "--seed", "1"), "--seed", "gpreempt list --help"),
    "an option without its value": (("sim", "A", "--seed"), "--seed needs a value"),
    "another option without its value": (("sim", "A", "--jobs"), "--jobs needs a value"),
    "a letter without its value": (("sim", "A", "-o"), "-o needs a value"),
    "a flag with a value": (("sim", "A", "--json=yes"), "--json takes no value"),
    "no verb": ((), "gpreempt demo"),
    "no scenario": (("sim",), "sim: SCENARIO is missing", "gpreempt sim --help"),
    "no pid": (("wait", "running"), "wait: PID[:QUEUE] is missing", "gpreempt wait --help"),
    "no share": (("reserve", "0"), "reserve: ONLINE is missing", "gpreempt reserve --help"),
    "neither": (("hint",), "hint: begin|end is missing", "gpreempt hint --help"),
    "two scenarios": (("sim", "A", "B"), '"B" is one too many'),
    "an unknown verb to help": (("help", "zz"), '"zz"', "known are: demo sim"),
    "a mistyped verb to help": (("help", "lst"), '"lst"', "did you mean list?"),
    "an unknown scenario to --show": (("sim", "--show", "zz"), '"zz"', "levels"),
    "a word that is no queue": (("suspend", "2:2", "train", "--backend", "sim"), '"train" is no queue', "PID or PID:QUEUE"),
    "a device that is not there to reserve": (("reserve", "9", "50", "--backend", "sim"), "no device 9", "gpreempt list"),
    "a rule for the simulated machine": (("list", "--backend", "sim", "--rule", "online:pid=1"), "--rule", "AMD GPUs"),
    "a rule for a simulated device": (("list", "--device", "h200", "--rule", "online:pid=1"), "--rule", "AMD GPUs"),
    "an unknown backend": (("list", "--backend", "zz"), "zz", "sim"),
    "a folder without a result": (("report", "/"), "//result.json", "gpreempt sim --out"),
    "a verb with a newline in it": (("si\nm",), "si?m"),
}


def add_option_test(what, args, said):
    @tap.test(f"{what} is refused in one line that says what to do")
    def _(folder):
        refused(args, *said, cwd=folder)
        tap.same(os.listdir(folder), [], "files left behind")


for subject, (arguments, *words) in OPTIONS.items():
    add_option_test(subject, arguments, words)


@tap.test("an out folder that is a file is refused, and the file stays as it is")
def _(folder):
    path = tap.write(f"{folder}/file", "mine")
    refused(("sim", "A", "--out", path), "--out", path, "Not a directory")
    refused(("sim", "A", "--out", f"{path}/sub"), "--out", "Not a directory")
    tap.same(tap.read(path), "mine", "the file")


def as_nobody(folder):
    """Arguments for run(): root may write anywhere, so the program runs as nobody, from a copy that nobody may run."""
    if os.geteuid() != 0:
        return {}
    os.chmod(folder, 0o755)
    return {"program": shutil.copy(tap.PROGRAM, folder), "user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"}


@tap.test("an out folder that may not be written fails with status 1 before anything is run")
def _(folder):
    who = as_nobody(folder)
    os.mkdir(f"{folder}/locked", 0o555)
    refused(("sim", "E", "--out", f"{folder}/locked"), "--out", "Permission denied", code=tap.FAILED, timeout=2, **who)
    refused(("sim", "E", "--out", f"{folder}/locked/a/b"), "--out", "Permission denied", code=tap.FAILED, timeout=2, **who)
    tap.same(os.listdir(f"{folder}/locked"), [], "files left behind")


@tap.test("a scenario that may not be read is refused")
def _(folder):
    who = as_nobody(folder)
    path = tap.write(f"{folder}/mine.ini", SCENARIO)
    os.chmod(path, 0)
    refused(("sim", path), path, "Permission denied", **who)


def small_files():
    """From here on no file may grow beyond 64 KiB: as on a full disk, a write fails in the middle."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))


@tap.test("a disk that gets full leaves no file and no folder behind")
def _(folder):
    args = ("sim", "A", "--duration", "2s", "--out", f"{folder}/a/b")
    refused(args, "cannot write the result", "File too large", code=tap.FAILED, preexec_fn=small_files)
    tap.same(os.listdir(folder), [], "files left behind")


@tap.test("a disk that gets full leaves the result that was there as it was")
def _(folder):
    args = ("sim", "A", "--duration", "2s", "--out", folder)
    tap.good(*args)
    before = {name: tap.read(folder, name) for name in os.listdir(folder)}
    refused((*args, "--seed", "2"), "File too large", code=tap.FAILED, preexec_fn=small_files)
    refused(("report", folder), "File too large", code=tap.FAILED, preexec_fn=small_files)
    tap.same({name: tap.read(folder, name) for name in os.listdir(folder)}, before, "files")


@tap.test("a folder in the place of one of the three files stops all three")
def _(folder):
    os.mkdir(f"{folder}/trace.json")
    refused(("sim", "A", "--duration", "2s", "--out", folder), "cannot write", "Is a directory", code=tap.FAILED)
    tap.same(os.listdir(folder), ["trace.json"], "files")


@tap.test("output to a full device fails with status 1 and says so, whatever the verb")
def _(folder):
    if not os.path.exists("/dev/full"):
        raise tap.Skip("no /dev/full")
    for args in (("sim", "A", "--duration", "2s"), ("sim", "A", "--duration", "2s", "--json"), ("--help",), ("list", "--backend", "sim", "--json"), ("doctor",)):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = tap.run(*args, stdout=full)
        tap.same(done.returncode, tap.FAILED, f"{args}: exit status")
        tap.same(done.stderr, "gpreempt: cannot write the output: No space left on device\n", f"{args}: stderr")


@tap.test("a closed stdout is an error, not a success")
def _(folder):
    done = subprocess.run(["sh", "-c", '"$0" list --backend sim >&-', tap.PROGRAM], capture_output=True, text=True, check=False)
    tap.same((done.returncode, done.stderr.count("\n")), (tap.FAILED, 1), done.stderr)


@tap.test("an option that is none is refused, and the one that it is near to is named")
def _(folder):
    refused(("sim", "E", "--dration", "3s"), "sim: unknown option --dration (did you mean --duration?); see gpreempt sim --help")
    refused(("list", "--backed=sim"), "unknown option --backed (did you mean --backend?)")
    refused(("list", "--duration", "3s"), "unknown option --duration; see gpreempt list --help")


@tap.test("a demo or scenario shorter than its warmup is refused before anything is printed, in the option's words")
def _(folder):
    for words in (("demo", "--out", f"{folder}/out"), ("sim", "E")):
        refused((*words, "--duration", "1s"), "--duration: 1s leaves nothing after the scenario's warmup of 1s; give more than that")
    tap.same(os.listdir(folder), [], "files left behind")


@tap.test("a name that gpreemptd has no room for is refused, not cut")
def _(folder):
    client = ("sim-client", "--offline", "--work", "train", "--gpu", f"{folder}/none", "--name")
    refused((*client, "x" * 32), "at most 31 characters")
    refused((*client, "x" * 31), f"{folder}/none", code=tap.FAILED)


@tap.test("words that cannot be right are bad input, whether gpreemptd runs or not")
def _(folder):
    for words, said in ((("suspend", "abc"), '"abc" is no queue'), (("resume", "1:x"), '"1:x"'), (("wait", "running", "0"), '"0"'), (("preempt", "7", "x", "--type", "save"), '"x"'),
                        (("stats", "x"), '"x" is no device'), (("policy", "x", "fair"), '"x"'), (("reserve", "x", "50"), '"x"'), (("policy", "9x"), '"9x"'),
                        (("hint", "begin", "--client", "x"), '"x" is no process'), (("hint", "begin", "--client", "4", "--device", "x"), '"x" is no device'),
                        (("list", "--socket", "/" + "x" * 200), "File name too long")):
        for socket in (f"{folder}/none", ""):
            refused(words, said, env=dict(os.environ, GPREEMPT_SOCKET=socket))
    with open(tap.write(f"{folder}/words", "4711 abc\n"), encoding="utf-8") as words:
        refused(("suspend", "-"), '"abc" is no queue', stdin=words, env=dict(os.environ, GPREEMPT_SOCKET=f"{folder}/none"))


tap.main()
