#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What bench/h200 does without a GPU: the load, the servers, and what its tables say of figures."""

import contextlib
import io
import json
import os
import re
import struct
import subprocess
import sys
import time

import tap

BENCH = os.path.join(tap.SOURCE, "bench", "h200")
sys.path.append(BENCH)
sys.dont_write_bytecode = True
import beside
import load
import model
import rows

# One that takes a millisecond in the place of a GPU, and counts its hints; how many there were is the last line
SERVER = """
import sys
import time
import types

hints = [0, 0]

class Hint:
    def __enter__(self):
        hints[0] += 1

    def __exit__(self, *why):
        hints[1] += 1

sys.modules["gpreempt"] = types.SimpleNamespace(online=Hint)
import server

class Sent:
    def __init__(self, ends):
        self.ends = ends

    def synchronize(self):
        time.sleep(max(0.0, self.ends - time.perf_counter()))

class Server:
    ends = 0.0

    def request(self):
        time.sleep(0.001)

    def send(self):
        self.ends = max(self.ends, time.perf_counter()) + 0.001
        return Sent(self.ends)

server.main(Server(), 2)
print(hints)
"""


def environment():
    return {**os.environ, "PYTHONPATH": BENCH, "PYTHONDONTWRITEBYTECODE": "1"}


def served(*lines):
    done = subprocess.run([sys.executable, "-c", SERVER], input="".join(line + "\n" for line in lines), env=environment(), text=True, stdout=subprocess.PIPE,
                          timeout=100, check=True)
    ready, *answers = done.stdout.splitlines()
    tap.same(ready, "ready", "first line")
    return [json.loads(answer) for answer in answers]


def again(part, folder, found, *words):
    tap.write(f"{folder}/kept.json", json.dumps(found))
    return tap.good("--again", f"{folder}/kept.json", *words, program=os.path.join(BENCH, f"{part}.py"), env=environment()).stdout


@tap.test("requests come at the rate that is asked for, and in bursts too, the same for the same seed")
def _(folder):
    for shape, off in (("poisson", 0.02), ("burst", 0.1)):
        times = load.arrivals(shape, 100, 20000, 1)
        tap.true(abs(len(times) / times[-1] / 100 - 1) < off, f"{shape}: {len(times) / times[-1]}/s")
        tap.same(times, load.arrivals(shape, 100, 20000, 1), "the same")
        tap.true(times == sorted(times) != load.arrivals(shape, 100, 20000, 2), "in order, and another seed is another")
    gaps = [b - a for a, b in zip(times, times[1:])]
    tap.true(sum(gap < 1 / 300 for gap in gaps) > 0.45 * len(gaps), "three times the rate, for most of those that come in bursts")


@tap.test("the load says when each request comes, and not before")
def _(folder):
    begin = time.perf_counter() + 0.1
    with subprocess.Popen([sys.executable, os.path.join(BENCH, "load.py"), "poisson", "400", "40", "3", str(begin)], stdout=subprocess.PIPE, bufsize=0) as process:
        came = [(struct.unpack("d", packed)[0], time.perf_counter()) for packed in iter(lambda: process.stdout.read(8), b"")]
    tap.same([round((due - begin) * 1e6) for due, _ in came], [round(at * 1e6) for at in load.arrivals("poisson", 400, 40, 3)], "times")
    tap.true(all(now >= due for due, now in came), "one came too early")


@tap.test("a server serves all that come, one after the other or as they come, and counts from the intended arrival")
def _(folder):
    spec = {"shape": "poisson", "rate": 2000, "count": 60, "warm": 10, "seed": 1, "hints": False, "is_async": False}
    variants = ({}, {"is_async": True}, {"hints": True})
    *answers, hints = served(*("serve " + json.dumps(dict(spec, **more)) for more in variants))
    tap.same(hints, [70, 70], "hints of the last ones")
    for more, found in zip(variants, answers):
        tap.same([len(found[key]) for key in ("latency_us", "service_us")], [60, 60], "requests that count")
        tap.true(all(service <= latency + 1 for latency, service in zip(found["latency_us"], found["service_us"])), "a service is a part of its latency")
        times = load.arrivals("poisson", 2000, 70, 1)
        tap.true(times[-1] - times[10] <= found["end_s"] - found["begin_s"] < times[-1] - times[10] + max(found["latency_us"]) / 1e6 + 1e-4, "from the first that counts to the last")
        tap.true(2 * sum(found["service_us"]) < sum(found["latency_us"]), "they waited longer than they were served")
        # Sent as they come, several may end before a busy host lets the server look: then all but one seem to take no time.
        tap.true("is_async" in more or min(found["service_us"]) >= 1000, "each took its time")


@tap.test("a server can be asked to serve without a clock")
def _(folder):
    found, hints = served("repeat 0.2")
    tap.true(found["served"] > 0 and found["seconds"] >= 0.2 and hints == [0, 0], str(found))


@tap.test("service is counted from the end of the request before, also for files that have latencies alone")
def _(folder):
    at = [one * 1e6 for one in load.arrivals("poisson", 500, 50, 7)]
    ends, services = [], []
    for i, one in enumerate(at):
        begin = max([one, *ends[-1:]])
        services.append(1000 + 10 * i)
        ends.append(begin + services[-1])
    row = {"rate": 500, "seed": 7, "latency_us": [end - one for end, one in zip(ends, at)]}
    tap.same([round(us) for us in beside.services(row)], services, "services")
    first, second, later = rows.places(row)
    tap.same(len(first), 1 + sum(one >= end for one, end in zip(at[1:], ends)), "those that came to an idle server")
    tap.true(second and later and len(first) + len(second) + len(later) == 50, "places")


@tap.test("every part that h200.sh names is there and says how it is used")
def _(folder):
    told = tap.good("--help", program=os.path.join(tap.SOURCE, "bench", "h200.sh")).stdout
    parts = re.findall(r"^  (\w+) {2,}\S", told, re.M)
    tap.true({"rows", "rows50", "rows_async", "mix", "overhead", "killed"} <= set(parts), told)
    for part in parts:
        if part == "smoke":
            continue
        done = subprocess.run([sys.executable, os.path.join(BENCH, f"{part}.py")], env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        tap.true(done.returncode == 1 and done.stderr.startswith(f"{part}.py PREFIX [OUT]: "), f"{part}: {done.stderr}")


@tap.test("a result that differs is said to")
def _(folder):
    one = {"kills": {"gpreemptd": 3}, "served": 9, "alone": ["a"], "stays": {"sums": ["a", "a"], "longest_s": 0.1, "done": 5}, "killed": {"sums": []}}
    found = {"machine": "none", "found": {"CUDA": one}}
    tap.true("a, 2 times the same\n" in again("killed", folder, found), "the same")
    one["killed"]["sums"] = ["b"]
    tap.true("NOT THE SAME" in again("killed", folder, found), "another")
    row = {"queues": 4, "cycles": 1, "stopped": 1, "resumed": 1, "suspended": 5, "alone": "a", "sum": "a"}
    tap.true("the same\n" in again("programs", folder, {"machine": "none", "programs": {"one": row}}), "the same")
    tap.true("DIFFERS" in again("programs", folder, {"machine": "none", "programs": {"one": dict(row, sum="b")}}), "another")
    tap.true("DIFFERS" in again("programs", folder, {"machine": "none", "programs": {"one": dict(row, sum=None, alone=None)}}), "none")


@tap.test("the table of overhead is of the pairs, and that of a mix says how many kept to their limits")
def _(folder):
    found = {"machine": "none", "pairs": {"server": [[99, 100], [101, 100], [100, 100]]}, "cpu": {"server": {"gpreemptd": 0.5, "agent": 0.25}}}
    tap.true(re.search(r"^server +3 +1\.0000 +0\.9900 +1\.0100$", again("overhead", folder, found), re.M), "median, least, most")
    mixed = [{"row": name, "load": percent, "rate": 1, "latency_us": us, "layers_per_s": layers} for percent in (10, 50, 90) for name, us, layers in
             (("exclusive", [100] * 100, 0), ("native", [100] * 50 + [190] * 50, 5), ("yield with parking", [100] * 90 + [130] * 10, 8))]
    told = again("mix", folder, {"machine": "none", "service_us": 1000, "alone_layers_per_s": [10], "rows": mixed})
    tap.same(len(re.findall(r"^native +\d+% +100 .* 1\.90 +0\.500 +0\.500 +1\.000 +0\.50$", told, re.M)), 3, told)
    tap.same(len(re.findall(r"^yield with parking +\d+% +100 .* 1\.30 +0\.900 +1\.000 +1\.000 +0\.80$", told, re.M)), 3, told)


@tap.test("the table of levels says which bars were not kept, what differs, and what failed")
def _(folder):
    def off(level, us, n):
        return {"what": "off", "level": level, "kernel_us": 100, "unheld_us": 101, "most_ended": n, "in_flight": n, "us": us}

    def deep(went_in, us):
        return {"what": "deep", "nodes": 64, "went_in": went_in, "neighbour_us": us}

    found = {"machine": "none", "door": "yes: it opens", "failed": {"latency": "SystemExit: no GPU"},
             "rows": [off("gate", [50] * 98 + [120] * 2, 1), off("throttle", [50] * 98 + [425] * 2, 4),
                      {"what": "alone", "level": "gate", "kernel_us": 100, "plain_us": 100, "ours_us": 101}, {"what": "alone", "level": "gate", "kernel_us": 100, "plain_us": 110, "ours_us": 150},
                      deep(128, 50), deep(100, 50), deep(128, 3e6)],
             "latency_us": {"yield": {"0.1 ms": [30] * 100}}, "ratios": {"yield": {"high_us": 10, "low_us": 31}, "interrupt": {"high_us": 10, "low_us": 30}},
             "sums": {"eager training": {"none": {"sum": "a", "error": None}, "throttle": {"sum": "a", "held": "7", "error": None}, "gate": {"sum": "b", "held": "7", "error": None}},
                      "graph training": {"none": {"sum": "a", "error": None}, "throttle": {"sum": "a", "held": "0", "error": None}, "gate": {"sum": "a", "error": None}}}}
    told = again("levels", folder, found)
    for line in (r"0\.1 ms +gate +101\.0 +1 +100 +50 +120 +121$", r"0\.1 ms +throttle +101\.0 +4 +100 +50 +425 +424  NOT KEPT$", r"0\.1 ms +yield +- +- +100 +30 +30 +-$",
                 r"0\.1 ms +interrupt +- +- +0 +- +-$",
                 r" +1 ms yield .* 3\.10  \(two", r" +1 ms interrupt .* 3\.00  NOT KEPT", r"gate, with nobody .*: 1\.0100 times as long$",
                 r"A closed gate lets 128 graphs of 64 .* 50 us at the most$",
                 r"A closed gate lets 100 .* NOT KEPT$", r"A closed gate lets 128 .* 3000000 us .* NOT KEPT$",
                 r"PyTorch, eager training, throttle .*: the same$", r"PyTorch, eager training, gate .*: DIFFERS$",
                 r"PyTorch, eager training, none .*: the same$", r"PyTorch, graph training, throttle .*: NOT SHOWN$", r"PyTorch, graph training, gate .*: NOT SHOWN$", r"FAILED: latency: SystemExit: no GPU$"):
        tap.true(re.search("^" + line, told, re.M), f"{line}: {told}")


@tap.test("the table of streams says where others waited for one that is held, and where that one ran")
def _(folder):
    good = {"what": "streams", "level": "gate", "connections": "", "streams": 14, "others_went_on": 13, "others": 13, "above_went_on": 8, "above": 8, "held_ran": 0, "ran_later": 20}
    rows = [good, dict(good, others_went_on=12), dict(good, above_went_on=7), dict(good, held_ran=1), dict(good, ran_later=19), dict(good, connections="8", level="throttle")]
    told = again("streams", folder, {"machine": "none", "door": "yes", "failed": {}, "rows": rows}).splitlines()
    tap.same([line.endswith("NOT KEPT") for line in told[2:]], [False, True, True, True, True, False], f"{told}")
    tap.same((told[2].split()[:4], told[7].split()[:3]), (["not", "set", "22", "gate"], ["8", "22", "throttle"]), f"{told}")


@tap.test("a table of what was cut short says so, however little there is, and one of rows in which gpreemptd did anything to a server alone")
def _(folder):
    for part in ("rows", "rows50", "rows_async", "several", "mix", "decode", "graph_decode", "latency", "levels", "streams", "overhead", "programs", "killed", "same", "mps", "mps_gates", "verify"):
        told = again(part, folder, {"machine": "none", "cut_short": "KeyboardInterrupt: its time is over"})
        tap.true(told.splitlines()[-1].startswith("CUT SHORT (KeyboardInterrupt: its time is over)"), f"{part}: {told}")
    row = {"row": "exclusive", "rate": 50, "latency_us": [100] * 10, "service_us": [100] * 10, "layers_per_s": 0, "gpu": {"samples": 0}, "calls": 3}
    found = {"machine": "none", "alone_layers_per_s": [10], "rows": [row]}
    tap.true("WRONG: gpreemptd made 3 calls while a server ran alone\n" in again("rows", folder, found), "calls")
    found["rows"] = [dict(row, calls=0), dict(row, row="yield")]
    tap.true("WRONG" not in again("rows", folder, found) and "CUT SHORT" not in again("rows", folder, found), "no calls but for others")


@tap.test("of a file that does not count what gpreemptd did beside a server alone every table says that it was none, and of another none does")
def _(folder):
    row = {"rate": 300, "latency_us": [100] * 10, "service_us": [100] * 10, "layers_per_s": 5, "gpu": {"samples": 0}}
    for part in ("rows", "several", "mix", "decode", "graph_decode", "mps"):
        for counted in ({"calls": 0}, {}):
            rows_of = [dict(row, row=name, load=10, **counted) for name in ("exclusive", "native", "yield", "yield with parking", "one", "MPS")]
            told = again(part, folder, {"machine": "none", "service_us": 1000, "weights": [], "alone_layers_per_s": [10], "rows": rows_of})
            tap.same("exclusive is not a server alone" in told, not counted, f"{part}: {told}")
    tap.true("exclusive is not a server alone" in again("rows", folder, {"machine": "none", "alone_layers_per_s": [10], "rows": [dict(row, row="exclusive")]}, "--short"), "short")


@tap.test("GPUs that gpreempt doctor has and nvidia-smi has not, or has by another UUID, are told")
def _(folder):
    def checks(*details):
        return {"checks": [{"what": "NVIDIA GPU", "detail": detail} for detail in details]}

    one, two = "NVIDIA H200, 0000:41:00.0, GPU-aa", "NVIDIA H200, 0000:81:00.0, GPU-bb; MIG: 2 instances, each a GPU"
    smi = "NVIDIA H200, GPU-aa, 00000000:41:00.0\nNVIDIA H200, GPU-bb, 00000000:81:00.0\n"
    tap.same(beside.other_gpus(checks(one, two), smi), [], "the same")
    tap.same(beside.other_gpus(checks(one), smi), [("NVIDIA H200", "0000:81:00.0", "GPU-bb")], "one is missing")
    tap.same(len(beside.other_gpus(checks(one, two.replace("bb", "cc")), smi)), 2, "another UUID")
    tap.same(len(beside.other_gpus(checks(one, "NVIDIA H200, 0000:81:00.0, UUID unknown"), smi)), 1, "no UUID")


@tap.test("a figure that is farther off than it may be, and a p99 of too few requests, are told by the model's table")
def _(folder):
    tap.same([model.field(1000, us, 50, 1000)[1] for us in (1149, 1151, 851, 849)], [True, False, True, False], "p50")
    tap.same([model.field(1000, us, 99, 1000)[1] for us in (1249, 1251)], [True, False], "p99")
    tap.same(model.field(1000, 3000, 99, 999), (f"{'-':>9}{3000:9}{'-':>8}", True), "few")
    row = {"latency_us": [model.BEHIND + 1] * 100}
    with contextlib.redirect_stdout(io.StringIO()) as told:
        tap.same([model.compare("rows", "native", 300, [row], {50: us, 99: us}) for us in (model.BEHIND + 1, 1000)], [True, False], "falls behind")
    tap.same(re.findall("falls behind: (.*)", told.getvalue()), ["both", "only one of them"], "as it is told")


tap.main(jobs=2)
