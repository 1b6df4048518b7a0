#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The parts of bench/h200 from their beginning to their table, with programs that have no GPU in the place of PyTorch's, CUDA's, gpreemptd and nvidia-smi."""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import tap

SERVER = """#!/usr/bin/python3
import time
import server

class Sent:
    def synchronize(self):
        time.sleep(0.0005)

class Server:
    def request(self):
        time.sleep(0.0005)

    def send(self):
        return Sent()

server.main(Server(), 2)
"""
TRAINING = """#!/usr/bin/python3
import os, sys, threading, time
works = threading.Event()

def obey():
    for line in sys.stdin:
        works.set() if line == "go\\n" else works.clear()
    os._exit(0)

threading.Thread(target=obey, daemon=True).start()
print("ready", flush=True)
layers = 0
while True:
    time.sleep(0.01)
    layers += works.is_set()
    print(f"layers {layers} at {time.monotonic():.4f}", flush=True)
    print(f"pause 0.2 at {time.monotonic():.4f}", flush=True)
"""
PROBE = """#!/usr/bin/python3
import sys
print("ready", flush=True)
for line in sys.stdin:
    print(f"[{', '.join(['100.5'] * int(line.split()[1]))}]", flush=True)
"""
WORK = """#!/usr/bin/python3
import sys, time
online = "pulse" in sys.argv or sys.argv[0].endswith("pulse")
print("ready", flush=True)
for i in range(20) if not online else iter(int, 1):
    print(f"done {i + 1} at {time.monotonic():.6f}", flush=True)
    time.sleep(0.005)
print("sum 17", flush=True)
"""
KERNELS = """#!/usr/bin/python3
import sys
print("ready", flush=True)
sys.stdin.read()
"""
# low and high: what they are asked, and when, stands in a file. One more kernel of the low one has ended each time it is asked.
TWO = """#!/usr/bin/python3
import json, os, sys, time
what, us = sys.argv[1], int(sys.argv[2])

def note(text):
    with open(os.environ["TWO_LOG"], "a") as file:
        file.write(text + "\\n")

def row(**more):
    print(json.dumps({"kernel_us": us, **more}), flush=True)

note(f"{what} {os.getpid()}")
if what == os.environ.get("TWO_STANDS_STILL"):
    os.kill(os.getppid(), 14)  # SIGALRM: the part's time is over
    time.sleep(1000)
if what == "levels":
    for level, n in (("throttle", 4), ("gate", 1)):
        row(what="tasks", level=level, high_us=4 * us, low_us=8 * us, ratio=2)
        row(what="off", level=level, unheld_us=us + 8, in_flight=n, us=[n * us], most_ended=n)
elif what == "alone":
    row(what="alone", level="gate", plain_us=100, ours_us=101)
elif what == "low":
    print("ready 1.25", flush=True)
    for i, line in enumerate(sys.stdin):
        note("low is asked")
        is_held = os.path.exists(f"{os.environ['TWO_LOG']}.{os.getpid()}")
        row(what="low", kernels=0 if is_held else 4 * i, low_us=5.5)
elif what == "high":
    note(f"high has {sys.argv[5]}")
    print("ready", flush=True)
    sys.stdin.readline()
    note("high begins")
    row(what="high", high_us=1.1)
"""
# Each hint tells whether whoever gives it has an agent
GPREEMPT = """
import contextlib, os

def online():
    with open(os.environ["TWO_LOG"] + ".hints", "a") as file:
        file.write("agent\\n" if os.environ["LD_PRELOAD"] else "none\\n")
    return contextlib.nullcontext()

class Context(contextlib.nullcontext):
    def __enter__(self):
        return self

    def queues(self, pid):
        return [pid]

    def suspend(self, queues, lease):
        return contextlib.nullcontext()
"""
PROGRAMS = {  # by their paths under the folder
    "bench/h200/serve.py": SERVER, "bench/h200/tokens.py": SERVER, "bench/h200/train.py": TRAINING, "bench/h200/probe.py": PROBE, "bench/h200/program.py": WORK,
    "bench/h200/held.py": WORK.replace('print("sum 17"', 'print("sum 17\\nheld 3"'),
    "prefix/bin/gpreemptd": "#!/bin/sh\nexec sleep 1000\n",
    # Whoever runs has a queue
    "prefix/bin/gpreempt": "#!/usr/bin/python3\nimport json, os, sys\n"
                           "if sys.argv[1] == 'suspend':\n    open(f\"{os.environ['TWO_LOG']}.{sys.argv[2]}\", 'w')\n"
                           "if sys.argv[1] == 'resume':\n    os.unlink(f\"{os.environ['TWO_LOG']}.{sys.argv[2]}\")\n"
                           "print(json.dumps({'queues': [{'pid': int(pid)} for pid in os.listdir('/proc') if pid.isdigit()],"
                           " 'checks': [{'what': 'CUDA levels', 'state': 'yes', 'detail': 'it opens'}], 'devices': []}))\n",
    "prefix/share/gpreempt/python/gpreempt.py": GPREEMPT,
    "bin/nvidia-smi": "#!/bin/sh\ncase \"$*\" in *-lms*) while echo '1980, 690.50, 0x0000000000000004'; do sleep 0.02; done ;; esac\necho none\n", "bin/nvidia-cuda-mps-control": "#!/bin/sh\n[ \"$*\" = -d ] || read -r quit\n",
    "bin/nvcc": "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\ncp \"$(dirname \"$0\")/$(basename \"$2\")\" \"$2\"\n",
    "bin/work": WORK, "bin/pulse": WORK, "bin/kernels": KERNELS, "bin/two_priorities": TWO,
    "bin/libheld.so": ""}
# A part with other constants, so that it takes seconds; it waits for nothing that takes longer than a tenth of one
SMALL = """
import ast, sys, time, types
sys.dont_write_bytecode = True
import beside
import {part} as part

for name, value in ast.literal_eval(sys.argv.pop(1)).items():
    setattr(part, name, value)
for module in (beside, part):
    module.time = types.SimpleNamespace(sleep=lambda s: time.sleep(min(s, 0.1)), monotonic=time.monotonic)
beside.run(part.measure, part.table, "")
"""


def stand_in(folder):
    os.makedirs(folder, exist_ok=True)
    shutil.copytree(os.path.join(tap.SOURCE, "bench", "h200"), f"{folder}/bench/h200")
    shutil.copy(os.path.join(tap.SOURCE, "bench", "h200.sh"), f"{folder}/bench")
    for path, text in PROGRAMS.items():
        os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
        tap.write(f"{folder}/{path}", text)
        os.chmod(f"{folder}/{path}", 0o755)
    return dict(os.environ, TWO_LOG=f"{folder}/two", PATH=f"{folder}/bin:{os.environ['PATH']}", PYTHONPATH=f"{folder}/bench/h200", PYTHONDONTWRITEBYTECODE="1")


def command(folder, part, small):
    return [sys.executable, "-c", SMALL.format(part=part), repr(small), f"{folder}/prefix", f"{folder}/{part}.json"]


def measured(folder, part, status=0, env=None, **small):
    """What the part kept, and its table."""
    program, *words = command(folder, part, small)
    done = tap.run(*words, program=program, env=env or stand_in(folder))
    tap.same(done.returncode, status, done.stdout + done.stderr)
    return json.loads(tap.read(folder, f"{part}.json")), done.stdout[done.stdout.index("Measured on"):]


def lines_of(told, row):
    return len(re.findall(rf"^{row}  ", told, re.M))


def counts(found):
    """How many requests each row had, by name and rate."""
    counted = {}
    for row in found["rows"]:
        counted.setdefault((row["row"], row["rate"]), []).append(len(row["latency_us"]))
    return counted


@tap.test("rows and rows50: each rate has its repeats of each row, in turns, and native once")
def _(folder):
    names = ("exclusive", "yield", "yield with parking")
    found, told = measured(folder, "rows", REPEATS=2, REQUESTS={300: 20, 500: 5}, WARM={300: 5, 500: 1}, NATIVE={300: 9})
    tap.same(counts(found), {**{(name, 300): [20, 20] for name in names}, **{(name, 500): [5, 5] for name in names}, ("native", 300): [9]}, "rows")
    tap.same([(row["row"], row["seed"]) for row in found["rows"] if row["rate"] == 500], [(name, seed) for seed in (1, 2) for name in names], "turns")
    tap.same([lines_of(told.split("SM clock")[0], name) for name in (*names, "native")], [4, 4, 4, 2], told)  # two tables
    tap.true(re.search(r"^yield +500 +10 .* \d+ to \d+$", told, re.M) and re.search(r"^native +300 +9 .* -$", told, re.M), told)
    os.mkdir(f"{folder}/50")
    found, told = measured(f"{folder}/50", "rows50", REPEATS=3, REQUESTS={50: 4}, WARM={50: 1}, NATIVE={50: 5})
    tap.same(counts(found), {**{(name, 50): [4] * 3 for name in names}, ("native", 50): [5]}, "rows50")
    tap.true(re.search(r"^yield with parking +50 +12 ", told, re.M), told)


@tap.test("rows_async: two rows, of a server that sends as requests come; one has no agent, and neither gives hints")
def _(folder):
    found, told = measured(folder, "rows_async", REPEATS=2, REQUESTS={300: 20}, WARM={300: 5})
    tap.same(counts(found), {("exclusive, async", 300): [20, 20], ("yield, async, no hints", 300): [20, 20]}, "rows")
    tap.true(not os.path.exists(f"{folder}/two.hints"), "hints")
    tap.true(re.search(r"^yield, async, no hints +300 +40 +\d+ +\d+ +\d+ +\d+ +\d", told, re.M), told)


@tap.test("as h200.sh has them, rows, rows50 and rows_async ask for as many requests as are to be, for no longer than their time")
def _(folder):
    shown = 'import rows, rows50, rows_async\nprint([[m.REPEATS, m.REQUESTS, m.WARM, getattr(m, "NATIVE", {})] for m in (rows, rows50, rows_async)])'
    env = {name: value for name, value in stand_in(folder).items() if name != "REPEATS"}
    plans = ast.literal_eval(tap.good("-c", shown, program=sys.executable, env=env).stdout)
    tap.same([(repeats, requests) for repeats, requests, *_ in plans], [(5, {300: 2000, 500: 2000}), (3, {50: 1000}), (5, {300: 2000})], "plans")
    for (repeats, requests, warm, native), rows in zip(plans, (3, 3, 2)):
        seconds = repeats * rows * sum((requests[rate] + warm[rate]) / rate for rate in requests) + sum((count + warm[rate]) / rate for rate, count in native.items())
        tap.true(seconds < 300, f"requests come for {seconds} s; a part has 420, and its programs have to start")


@tap.test("rows: exclusive is of a server without an agent that gives no hints, and each row has its clock and power")
def _(folder):
    found, told = measured(folder, "rows", REPEATS=1, REQUESTS={300: 300, 50: 20}, WARM={300: 5, 50: 1}, NATIVE={300: 9, 50: 5})
    hinted = sum(len(row["latency_us"]) + (5 if row["rate"] == 300 else 1) for row in found["rows"] if row["row"] in ("native", "yield", "yield with parking"))
    tap.same(tap.read(folder, "two.hints").split(), ["agent"] * hinted, "hints")
    long = [row for row in found["rows"] if len(row["latency_us"]) == 300]
    tap.same([(row["gpu"]["sm_mhz"], row["gpu"]["power_w"], row["gpu"]["caps"]) for row in long], [([1980] * 3, [690.5] * 3, [4])] * 3, "clocks")
    tap.true(re.search(r"^exclusive +300 +1980 +1980 +1980 +690  0x4$", told, re.M), told)


@tap.test("same: a result that is another, and one that was not preempted so often, fail the part and are told")
def _(folder):
    small = {"COUNT": 40, "PATIENCE": 5.0}
    found, told = measured(folder, "same", **small)
    tap.same([sum(run["preempted"] for run in one["runs"]) for one in found["programs"].values()], [40] * 4, "how often")
    tap.same(told.count("17, the same\n"), 4, told)
    env = stand_in(f"{folder}/other")
    tap.write(f"{folder}/other/bin/work", WORK.replace('"sum 17"', '"sum 17" if "agent" not in __import__("os").environ["LD_PRELOAD"] else "sum 18"'))
    _, told = measured(f"{folder}/other", "same", status=1, env=env, **small)
    tap.same((told.count("17, DIFFERS\n"), told.count("17, the same\n")), (3, 1), told)
    _, told = measured(f"{folder}/other", "same", status=1, env=env, COUNT=10000, MOST_RUNS=1, PATIENCE=5.0)
    tap.same(len(re.findall(r"^WRONG: .* was preempted \d+ times, not 10000$", told, re.M)), 4, told)


@tap.test("several, mix, overhead, latency, decode and mps come to their tables")
def _(folder):
    small = {"several": {"REPEATS": 2, "COUNT": 9, "WARM": 3}, "mix": {"LOADS": {10: 0.3, 50: 0.1, 90: 0.1}, "NATIVE_S": 0.1}, "overhead": {"PAIRS": 2, "SERVES_S": 0.1, "CPU_S": 0.1},
             "latency": {}, "decode": {"REPEATS": 1, "RATE": 100.0, "COUNT": 9, "LEARNS": 2}, "mps": {"REQUESTS": {50: 3, 300: 9}, "WARM": 1}}
    rows = {"several": ("exclusive", "one", "exclusive again", "three"), "mix": ("exclusive", "native", "yield with parking"), "overhead": ("server", "training"),
            "latency": ("0.1 ms", "endless"), "decode": ("exclusive", "native", "yield", "yield with parking"), "mps": ("exclusive", "MPS")}
    for part, more in small.items():
        place = f"{folder}/{part}"
        os.mkdir(place)
        _, told = measured(place, part, **more)
        for row in rows[part]:
            tap.true(lines_of(told, row), f"{part}: {row}: {told}")


@tap.test("levels: what the low process did is asked when the high one is ready, and when it has ended; it has the low one's turns")
def _(folder):
    found, told = measured(folder, "levels", TIMES=3, STEPS=1)
    tap.same(found["failed"], {}, "failed")
    log = re.sub(r"\d{2,}", "PID", tap.read(folder, "two")).splitlines()
    one = ["low PID", "high PID", "high has 1.PID", "low is asked", "high begins", "low is asked"]
    tap.same(log[log.index("low PID"):], 2 * one, "order")
    tap.same(len(re.findall(r"^ +1 ms (?:yield|interrupt) +1 +6 +5\.00  \(two", told, re.M)), 2, told)
    tap.true(re.search(r"^0\.1 ms +throttle +108\.0 +4 +1 +400 +400 +452$", told, re.M), told)


@tap.test("levels: a part whose time is over ends the program that it was waiting for")
def _(folder):
    env = stand_in(folder)
    for what, parts in (("levels", ("throttle_and_gate",)), ("high", ("ratios",))):
        program, *words = command(folder, "levels", {"PARTS": ("build", *parts)})
        done = tap.run(*words, program=program, env=dict(env, TWO_STANDS_STILL=what))
        told = done.stdout
        tap.true(done.returncode == 1 and "not as it should be" in done.stderr, done.stderr)
        tap.true(re.search(rf"^FAILED: {parts[0]}: TimeoutError: it stood still$", told, re.M), told)
        left = [int(line.split()[1]) for line in tap.read(folder, "two").splitlines() if re.match(r"\w+ \d+$", line)]
        tap.true(left and not any(map(is_there, left)), f"{what}: {left}")


@tap.test("mps_gates: the client that is suspended stands still, the other does not, and where there is no MPS it is skipped")
def _(folder):
    found, told = measured(folder, "mps_gates", WINDOW_S=0)
    tap.same({name: found[name] for name in ("before", "suspended", "resumed")}, {"before": [4, 4], "suspended": [0, 12], "resumed": [20, 20]}, "kernels")
    tap.true("NOT KEPT" not in told and "cut_short" not in found, told)
    program, *words = command(folder, "mps_gates", {})
    env = dict(os.environ, PYTHONPATH=f"{folder}/bench/h200", PATH=f"{folder}/none")
    os.mkdir(f"{folder}/none")
    os.symlink(f"{folder}/bin/nvidia-smi", f"{folder}/none/nvidia-smi")
    tap.same(tap.good(*words, program=program, env=env).stdout.splitlines()[-1], "Skipped: there is no nvidia-cuda-mps-control here", "without MPS")


@tap.test("mps_gates: a client that goes on though it is suspended is told by the table")
def _(folder):
    place = tap.write(f"{folder}/found.json", json.dumps({"machine": "none", "before": [4, 4], "suspended": [1, 4], "resumed": [0, 4]}))
    told = tap.good("--again", place, program=os.path.join(tap.SOURCE, "bench", "h200", "mps_gates.py")).stdout
    tap.same([line.endswith("NOT KEPT") for line in told.splitlines()[2:]], [False, True, True], told)


@tap.test("killed: results are compared, and what does not come to its end is said to stay parked")
def _(folder):
    kills = {"CUDA": 10, "PyTorch": 3}
    found, told = measured(folder, "killed", KILLS=kills, SLOW=0.1)
    tap.same([sum(one["kills"].values()) for one in found["found"].values()], [10, 3], "kills")
    tap.same(len(re.findall(r"^results +17, \d+ times the same$", told, re.M)), 2, told)
    tap.true("STAYED PARKED" not in told, told)


# It stands still with the agent in it until it is killed, or until gpreemptd goes
STANDS_STILL = WORK.replace('print("sum', """import os
while "agent" in os.environ["LD_PRELOAD"] and HOLDS:
    time.sleep(0.01)
for i in range(20):
    print(f"done {i} at {time.monotonic():.6f}", flush=True)
    time.sleep(0.005)
print("sum""")
# Between two of it nobody goes on
GONE_WHEN_NO_OTHER_COMES = """#!/usr/bin/python3
import os, time
mine, place = str(os.getpid()), os.environ["TWO_LOG"] + ".daemon"
open(place, "w").write(mine)
if os.fork() == 0:
    while os.getppid() == int(mine):
        time.sleep(0.01)
    time.sleep(0.5)
    if open(place).read() == mine:
        os.unlink(place)
    os._exit(0)
time.sleep(1000)
"""
FOREVER, WHILE_GPREEMPTD_IS = "True", "os.path.exists(os.environ['TWO_LOG'] + '.daemon')"
STUCK = {"KILLS": {"CUDA": 1, "PyTorch": 1}, "SLOW": 0.1, "LOOK": 2.0, "GOES_ON": 1.0, "PATIENCE": 8.0}


@tap.test("killed: a program that stays parked is waited for no longer than need be, and what is known of it then is printed and kept", alone=True)
def _(folder):
    env = stand_in(folder)
    tap.write(f"{folder}/bin/work", STANDS_STILL.replace("HOLDS", FOREVER))
    found, told = measured(folder, "killed", status=1, env=env, **STUCK)
    told = told.split("PyTorch, killed")[0]
    tap.same(told.count("STAYED PARKED"), 1, told)  # the other one went when nothing else had helped
    seen, = found["found"]["CUDA"]["looks"]
    tap.same(seen["program"], "stays")
    tap.true(seen["silent_s"] > 1 and any("comm work" in thread or "comm python" in thread for thread in seen["threads"]), seen)
    tap.true(all('"queues"' in seen[verb][0] for verb in ("ps", "list", "stats", "events")), seen)
    tap.true("went on when none of all that was done" in told, told)


@tap.test("killed: after what a program that stood still goes on is told", alone=True)
def _(folder):
    env = stand_in(folder)
    tap.write(f"{folder}/bin/work", STANDS_STILL.replace("HOLDS", WHILE_GPREEMPTD_IS))
    tap.write(f"{folder}/prefix/bin/gpreemptd", GONE_WHEN_NO_OTHER_COMES)
    found, told = measured(folder, "killed", status=1, env=env, **STUCK)
    tap.same([seen["goes_on_when"] for seen in found["found"]["CUDA"]["looks"]], ["gpreemptd goes"], "looks")
    tap.true("STAYED PARKED" in told.split("PyTorch, killed")[0], told)


@tap.test("killed: what is told to end while it waits for a program has kept for which, and the kills", alone=True)
def _(folder):
    env = stand_in(folder)
    tap.write(f"{folder}/bin/work", STANDS_STILL.replace("HOLDS", FOREVER))
    with subprocess.Popen(command(folder, "killed", dict(STUCK, LOOK=100.0, PATIENCE=100.0)), env=env, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        until(lambda: "killed {" in process.stdout.readline(), "it does not come to its end")
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        told = process.stdout.read()
        tap.same(process.wait(60), 1, told)
    until(lambda: not alive(process.pid), "programs are left")
    kept = json.loads(tap.read(folder, "killed.json"))["found"]["CUDA"]
    tap.same((kept["waits_for"]["program"], sum(kept["kills"].values())), ("stays", 1), "kept")
    tap.true("waited for at last           stays, without a kernel for" in told and "CUT SHORT" in told, told)


def alive(group):
    """Whether anything is left of a process group."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def until(holds, what, seconds=60):
    end = time.monotonic() + seconds
    while not holds():
        tap.true(time.monotonic() < end, what)
        time.sleep(0.05)


@tap.test("a part that is told to end keeps what it has and ends its programs")
def _(folder):
    env = stand_in(folder)
    small = {"REQUESTS": {50: 100000}, "WARM": {50: 50}, "NATIVE": {50: 5}}
    with subprocess.Popen(command(folder, "rows", small), env=env, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            until(lambda: "# native" in process.stdout.readline(), "no row")
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            tap.same(process.wait(60), 1, "status")
            told = process.stdout.read()
            tap.true("native" in told and "CUT SHORT (KeyboardInterrupt: its time is over)" in told, told)
            until(lambda: not alive(process.pid), "programs are left")
        finally:
            if alive(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
    found = json.loads(tap.read(folder, "rows.json"))
    tap.same(([row["row"] for row in found["rows"]], found["cut_short"]), (["native"], "KeyboardInterrupt: its time is over"), "kept")


PART = """
import subprocess, sys, time
open(sys.argv[2], "w").write("kept")
print("table", flush=True)
child = subprocess.Popen(["sleep", "1000"])
open("{folder}/left", "a").write(f"{{child.pid}}\\n")
time.sleep({stays})
"""


def is_there(pid):
    """One that ended and that nobody waited for is not."""
    try:
        return "State:\tZ" not in tap.read(f"/proc/{pid}/status")
    except OSError:
        return False


def within(folder, seconds, *parts):
    """The exit status, what became of each, and what is said last."""
    done = tap.run("--within", str(seconds), f"{folder}/prefix", f"{folder}/out", *parts, program=f"{folder}/bench/h200.sh")
    return done.returncode, re.findall(r"^# (\w+): (ended with \d+|no time)", done.stdout, re.M), done.stdout.splitlines()[-1]


@tap.test("several parts within a time: one that does not end is ended, with all that it started, and the next has its turn")
def _(folder):
    stand_in(folder)
    for part, stays in (("rows", 0), ("mix", 1000), ("several", 0)):
        tap.write(f"{folder}/bench/h200/{part}.py", PART.format(stays=stays, folder=folder))
    tap.write(f"{folder}/bench/h200/killed.py", "raise SystemExit('not as it should be')\n")
    tap.same(within(folder, 100, "rows", "several"), (0, [("rows", "ended with 0"), ("several", "ended with 0")], "# not well, by exit status: none of 2"), "all well")
    shutil.rmtree(f"{folder}/out")
    ended = [("rows", "ended with 0"), ("killed", "ended with 1"), ("mix", "ended with 124"), ("several", "ended with 0")]
    tap.same(within(folder, 100, "rows", "killed", "mix=5", "several"), (1, ended, "# not well, by exit status: killed (1) mix (124)"), "parts")
    tap.same(sorted(os.listdir(f"{folder}/out")), ["log", "mix.json", "rows.json", "several.json"], "kept")
    tap.same(tap.read(folder, "out", "log").count("table"), 3, "log")
    ended = [("mix", "ended with 124"), ("rows", "no time")]
    tap.same(within(folder, 25, "mix", "rows"), (1, ended, "# not well, by exit status: mix (124) rows (no time)"), "no more time")
    until(lambda: not any(map(is_there, tap.read(folder, "left").split())), "what parts left goes on")
    tap.same(tap.run("--within", "25", f"{folder}/prefix", f"{folder}/out", "rows", "cows", program=f"{folder}/bench/h200.sh").returncode, tap.BAD_INPUT, "no such part")


@tap.test("a part that takes longer than it may is told to end, and one that h200.sh is told to end by, and nothing of it stays")
def _(folder):
    stand_in(folder)
    tap.write(f"{folder}/bench/h200/rows.py", PART.format(stays=1000, folder=folder))
    tap.write(f"{folder}/bench/h200/mix.py", PART.format(stays=0, folder=folder) + "sys.exit(7)\n")
    program, words = f"{folder}/bench/h200.sh", (f"{folder}/prefix", folder)
    done = tap.run("rows=3", *words, program=program)
    tap.same((done.returncode, done.stdout, tap.read(folder, "rows.json")), (124, "table\n", "kept"), done.stderr)
    tap.same([tap.run("mix", *words, program=program).returncode, tap.run("cows=3", *words, program=program).returncode], [7, tap.BAD_INPUT], "status")
    with subprocess.Popen([program, "rows", *words], stdout=subprocess.PIPE, text=True) as process:
        tap.same(process.stdout.readline(), "table\n", "it runs")
        until(lambda: len(tap.read(folder, "left").split()) == 3, "no child")
        process.send_signal(signal.SIGTERM)
        tap.true(process.wait(60) != 0, "status")
    until(lambda: not any(map(is_there, tap.read(folder, "left").split())), "what parts left goes on")


tap.main(jobs=2)
