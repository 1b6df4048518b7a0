#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The verbs that ask gpreemptd what it does and tell it how to: ps, policy, hint, stats, events, wait.

First against a gpreemptd made of nothing, which says what it is told to; then against the real one, with agents and programs.
"""

import grp
import json
import os
import re
import select
import signal
import subprocess
import sys

import tap
import gpreemptd
import simulated
from double import ANSWERS, daemon, end
from gpreemptd import NOBODY, AsUser, until
from protocol import RUN, STOP

IDLE, RUNNING, WAITING, HELD = range(4)
UNKNOWN, OFFLINE, ONLINE = range(3)
HINT, POLICY, CLIENTS, STATS, EVENTS = 18, 19, 20, 22, 24  # types of messages
SUSPEND, RESUME, FAILED, GONE, LOST, LATER = 0, 1, 2, 7, 9, 31  # kinds of events
ALL_DEVICES = 0xFFFFFFFF
CLIENTS_THERE = (f"client=100:{OFFLINE}:{WAITING}:101:train", f"client=200:{ONLINE}:{RUNNING}:250:serve",
                 f"client=300:{ONLINE}:{IDLE}:400:chat", f"client=400:{OFFLINE}:{HELD}:333:tune")
SCONTROL = "#!/bin/sh\necho NodeName=n1 Weight=1\n"
NEW = (("ps",), ("policy",), ("policy", "fair"), ("hint", "begin", "--client", "1"), ("stats",), ("events",), ("wait", "running", "1"))
HANDLES = 1000  # the double's first client has one more


def one_line(done, *words, code=tap.FAILED):
    """It failed, and said so in one line with these words."""
    tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), f"{done.args}: {done.stderr}")
    for word in words:
        tap.true(word in done.stderr, f"{word}: {done.stderr}")


def columns(text):
    """Rows of words by their headings; no word of the double has a space but the last column's."""
    head, *rows = text.splitlines()
    names = head.split()
    return [dict(zip(names, row.split(None, len(names) - 1))) for row in rows]


@tap.test("ps shows online clients first, and of them the one with the larger share")
def _(folder):
    with daemon(folder, *CLIENTS_THERE) as d:
        rows = columns(d.good("ps").stdout)
        tap.same([row["NAME"] for row in rows], ["chat", "serve", "tune", "train"], "order")
        tap.same(rows[1], {"PID": "200", "USER": "root", "NAME": "serve", "CLASS": "online", "WEIGHT": "100", "SLO": "20ms", "DEVICE": "0",
                           "STATE": "running", "SHARE": "25.0%", "WHY": "environment"}, "row")
        tap.same([row["STATE"] for row in rows], ["idle", "running", "held", "waiting"], "states")
        tap.same((rows[3]["SLO"], rows[3]["SHARE"]), ("-", "10.1%"), "offline")


@tap.test("ps --wide adds how often each became active")
def _(folder):
    with daemon(folder, *CLIENTS_THERE) as d:
        tap.true("HINTS" not in d.good("ps").stdout, "without --wide")
        tap.same({(row["HINTS"], row["SAMPLES"]) for row in columns(d.good("ps", "--wide").stdout)}, {("12", "34")}, "counts")


def weigh(folder, d, *options):
    """What slurm-weights would do with the double's clients, on a node whose weight is 1"""
    os.makedirs(f"{folder}/bin", exist_ok=True)
    os.chmod(tap.write(f"{folder}/bin/scontrol", SCONTROL), 0o755)
    done = tap.good("slurm-weights", "--name", "n1", "--dry-run", "--json", *options, env=dict(d.env(), PATH=f"{folder}/bin:/usr/bin:/bin"))
    return json.loads(done.stdout)


@tap.test("a service that fills one of two GPUs, by several programs at once, uses half of its node to slurm-weights")
def _(folder):
    both = (f"client=100:{ONLINE}:{RUNNING}:700", f"client=200:{ONLINE}:{RUNNING}:600")
    with daemon(folder, "devices=2", *both) as d:
        told = weigh(folder, d)
        tap.same((told["devices"], told["used_permille"], told["weight"]), (2, 500, 501), f"{told}")


@tap.test("to slurm-weights all of three GPUs is all, and two thirds of them are 666 more than the node's own weight")
def _(folder):
    three = [word for pid in (1, 2, 3) for word in (f"client={pid}00:{ONLINE}:{RUNNING}:1000", f"device={pid}00:{pid - 1}")]
    for clients, own, used, weight in ((three, (), 1000, 1001), (three[:4], ("--base", "200"), 666, 866), ((), ("--base", "200"), 0, 200), ((), (), 0, 1)):
        with daemon(folder, "devices=3", *clients) as d:
            told = weigh(folder, d, *own)
            tap.same((told["used_permille"], told["weight"], told["had"], told["changed"]), (used, weight, 1, False), f"{clients} {own}: {told}")


@tap.test("slurm-weights leaves out simulated GPUs, of which any user can add some, unless it is told to count them")
def _(folder):
    for on in (0, 2):
        with daemon(folder, "devices=3:1", f"client=100:{ONLINE}:{RUNNING}:600", f"device=100:{on}") as d:
            for options, devices, used in (((), 1, 0 if on else 600), (("--simulated",), 3, 200)):
                told = weigh(folder, d, *options)
                tap.same((told["devices"], told["used_permille"]), (devices, used), f"the work is on {on}: {told}")


@tap.test("slurm-weights says what scontrol has failed of, and what can be done: the node's name, slurmctld, or Slurm itself")
def _(folder):
    def why(script, *words):
        tools = tap.write(f"{folder}/tools/scontrol", f"#!/bin/sh\n{script}\nexit 1\n") if script else f"{folder}/none/scontrol"
        if script:
            os.chmod(tools, 0o755)
        done = tap.run("slurm-weights", "--name", "n1", "--dry-run", env=dict(d.env(), PATH=f"{os.path.dirname(tools)}:/nonexistent"))
        tap.same((done.returncode, done.stdout), (tap.FAILED, ""), f"{script}: {done.stderr}")
        tap.true(all(word in done.stderr for word in words), f"{script}: {done.stderr}")
    os.mkdir(f"{folder}/tools")
    with daemon(folder, "devices=1") as d:
        why("echo Node n1 not found", "slurmctld knows no node n1; --name names another")
        why("echo slurm_load_node error: Unable to contact slurm controller >&2", "slurm_load_node error", "scontrol cannot ask slurmctld",
            "is slurmctld running, and does slurm.conf here, or SLURM_CONF, name it")
        why("", "there is no scontrol in PATH")


@tap.test("slurm-comment says of each job why nothing was written")
def _(folder):
    def why(*tools):
        for name, script in zip(("squeue", "scontrol"), tools):
            os.chmod(tap.write(f"{folder}/{name}", f"#!/bin/sh\n{script}\n"), 0o755)
        env = dict(d.env(), PATH=f"{folder}:/nonexistent")
        said, done = tap.run("slurm-comment", env=env), tap.run("slurm-comment", "--json", env=env)
        told = json.loads(done.stdout)["jobs"][0]
        tap.same((said.returncode, done.returncode, told["written"]), (tap.FAILED, tap.FAILED, False), f"{tools}: {said.stdout}{said.stderr}")
        tap.same(said.stdout, f"job 1, not written ({told['why']}): {told['entry']}\n", f"{tools}")
        return told["why"]
    runs = 'case "$*" in *%k*) echo "$MINE";; *) echo 1 1;; esac'
    with daemon(folder, "jobs=1:1") as d:
        tap.same(why(), "there is no squeue or scontrol in PATH", "without Slurm")
        tap.same(why("exit 1"), "squeue does not tell of it, see its line", "without slurmctld")
        tap.same(why(":"), "Slurm has ended it", "of a job that is none any more")
        tap.same(why(runs), "there is no squeue or scontrol in PATH", "with one of the two")
        tap.same(why(runs.replace("$MINE", "m" * 4090)), "there is no room in its comment", "of a job with a long comment")
        tap.same(why(runs, "exit 1"), "slurmctld refuses, see scontrol's line", "refused")


@tap.test("jobs of Slurm that come while they are listed are left to the next call")
def _(folder):
    for there, come in ((1, 2), (1, 5000), (2, 1)):
        with daemon(folder, f"jobs={there}:{come}") as d:
            told = json.loads(d.good("slurm-comment", "--dry-run", "--json").stdout)["jobs"]
            tap.same([one["job"] for one in told], ["1"], f"{there}, then {come}")


# Of one job, whose comment is a file.
SQUEUE = '#!/bin/sh\ncase "$*" in *%k*) cat COMMENT;; *) echo 1 1;; esac\n'
UPDATE = '#!/bin/sh\nprintf %s "${3#Comment=}" >COMMENT\n'


@tap.test("what a job of Slurm has had so far takes no whole entry's place, which the step has ended with")
def _(folder):
    comment = tap.write(f"{folder}/comment", "mine")
    os.mkdir(f"{folder}/bin")
    for name, text in (("squeue", SQUEUE), ("scontrol", UPDATE)):
        os.chmod(tap.write(f"{folder}/bin/{name}", text.replace("COMMENT", comment)), 0o755)
    with daemon(folder, "jobs=1:1") as d:
        env = dict(d.env(), PATH=f"{folder}/bin:/usr/bin:/bin")
        tap.good("slurm-comment", env=env)
        so_far = re.fullmatch(r"mine; (gpreempt batch@\S+: offline, ran 0 s, stopped 0 times, 0 s), so far", tap.read(comment))
        tap.true(so_far, tap.read(comment))
        for there in (f"mine; {so_far[1]}", f"{so_far[1]}; mine"):
            tap.write(comment, there)
            tap.good("slurm-comment", env=env)
            tap.same(tap.read(comment), there, "as the step left it")
        tap.write(comment, so_far[1].replace("ran 0", "ran 1"))  # it was requeued
        tap.good("slurm-comment", env=env)
        tap.same(tap.read(comment), f"{so_far[1]}, so far", "of what runs now")


@tap.test("ps --json has all of a client; without clients it says so, or has an empty list")
def _(folder):
    with daemon(folder, *CLIENTS_THERE) as d:
        told = json.loads(d.good("ps", "--json").stdout)
        tap.same(told["schema"], "gpreempt-ps-1", "schema")
        client = told["clients"][1]
        tap.same({key: client[key] for key in ("client", "pid", "class", "rule", "slo_ns", "device", "state", "share_permille", "hinted", "simulated")},
                 {"client": HANDLES + 2, "pid": 200, "class": "online", "rule": "environment", "slo_ns": 20000000, "device": 0,
                  "state": "running", "share_permille": 250, "hinted": 12, "simulated": False}, "client")
        tap.same(told["clients"][3]["slo_ns"], None, "slo of none")
    with daemon(f"{folder}", "100:1") as d:
        tap.same(d.good("ps").stdout, "no clients\n", "none")
        tap.same(json.loads(d.good("ps", "--json").stdout)["clients"], [], "none")


@tap.test("policy shows each device's, and why one was ejected")
def _(folder):
    with daemon(folder, "devices=2", "ejected=it ran nobody for 250 ms") as d:
        rows = columns(d.good("policy").stdout)
        tap.same([(row["DEVICE"], row["POLICY"], row["EJECTED"]) for row in rows],
                 [("0", "priority", "it ran nobody for 250 ms"), ("1", "priority", "it ran nobody for 250 ms")], "rows")
        tap.same([row["DEVICE"] for row in columns(d.good("policy", "1").stdout)], ["1"], "one device")
        told = json.loads(d.good("policy", "--json").stdout)["devices"]
        tap.same([(device["device"], device["policy"], device["ejection"]) for device in told],
                 [(0, "priority", "it ran nobody for 250 ms"), (1, "priority", "it ran nobody for 250 ms")], "JSON")


@tap.test("policy with a name sets it, for one device or for all")
def _(folder):
    with daemon(folder, "devices=2") as d:
        tap.same(d.good("policy", "fair").stdout, "All devices: fair schedules from now on.\n", "all")
        tap.same(d.heard()["policy_device"], ALL_DEVICES, "device")
        tap.same(d.good("policy", "1", "deadline").stdout, "Device 1: deadline schedules it from now on.\n", "one")
        tap.same(d.heard()["policy_device"], 1, "device")
        told = json.loads(d.good("policy", "1", "fifo", "--json").stdout)["devices"]
        tap.same([(device["device"], device["policy"]) for device in told], [(1, "fifo")], "JSON")


@tap.test("a policy that is none is answered with those there are; who may not choose is told who may")
def _(folder):
    with daemon(folder, f"error={POLICY}:2", "text=no such policy; there are: fifo priority") as d:
        one_line(d.run("policy", "best"), "there are: fifo priority", code=tap.BAD_INPUT)
        for words in (("7",), ("7", "fair"), ("x", "fair"), ("99999999999",)):
            one_line(d.run("policy", *words), "gpreempt list", code=tap.BAD_INPUT)
        d.tell("text=only root and group gpreempt may")
        d.tell(f"error={POLICY}:1")
        one_line(d.run("policy", "fair"), "only root and group gpreempt may: use sudo")


@tap.test("hint says for whom, until when and where, and waits for the answer")
def _(folder):
    with daemon(folder, *CLIENTS_THERE) as d:
        tap.same(d.good("hint", "begin", "--client", "200", "--number", "7", "--device", "0", "--for", "5s").stdout,
                 "serve 200: a request is on its way, for 5s at most.\n", "begin")
        heard = d.heard()
        tap.true(heard.pop("serial") != 0, "it is answered")
        del heard["policy_device"], heard["lists"]
        tap.same(heard, {"client": HANDLES + 2, "number": 7, "expiry": 5000000000, "what": 1, "device": 0}, "begin")
        tap.same(d.good("hint", "end", "--client", "200").stdout, "serve 200: a request is done.\n", "end")
        heard = d.heard()
        tap.same((heard["client"], heard["number"], heard["what"], heard["device"]), (HANDLES + 2, 0, 2, ALL_DEVICES), "end")
        told = json.loads(d.good("hint", "begin", "--client", "200", "--json").stdout)
        tap.same((told["schema"], told["what"], told["pid"], told["device"]), ("gpreempt-hint-1", "begin", 200, None), "JSON")


@tap.test("hint says what is wrong, in gpreemptd's words and its own")
def _(folder):
    with daemon(folder, *CLIENTS_THERE) as d:
        one_line(d.run("hint", "begin", "--client", "999"), "no client 999", "gpreempt ps")
        one_line(d.run("hint", "begin", "--client", str(HANDLES + 2)), f"no client {HANDLES + 2}", "gpreempt ps")  # which shows 200
        for words, say in ((("begin",), "--client 4711"), (("stop", "--client", "200"), "neither begin nor end"),
                           (("end", "--client", "200", "--for", "1s"), "begin alone"), (("begin", "--client", "x"), "gpreempt ps"),
                           (("begin", "--client", "200", "--device", "5"), "gpreempt list"), (("begin", "--client", "0"), "gpreempt ps"),
                           (("begin", "--client", "200", "--number", "0"), "number")):
            one_line(d.run("hint", *words), say, code=tap.BAD_INPUT)
        d.tell("text=client 200 is not online")
        d.tell(f"error={HINT}:1")
        one_line(d.run("hint", "begin", "--client", "200"), "client 200 is not online")
        d.tell(f"error={HINT}:114")
        one_line(d.run("hint", "end", "--client", "200"), "--for")


@tap.test("stats tells of each device, or of one, what was done and how long it took")
def _(folder):
    with daemon(folder, "devices=2") as d:
        text = d.good("stats").stdout
        tap.same(re.findall(r"^device (\d+): (.*)$", text, re.M), [("0", "gfx942"), ("1", "gfx942")], "devices")
        for line in ("  policy       priority", "  preemptions  12", "  suspends     24, p50 1.2ms, p99 3ms, most 4ms", "  resumes      23",
                     "  failures     1", "  limited      0", "  hints        5", "  samples      7", "  back-off     -", "  ejection     -"):
            tap.same(text.split("device 1")[0].splitlines().count(line), 1, f"{line}: {text}")
        told = json.loads(d.good("stats", "1", "--json").stdout)
        tap.same([device["device"] for device in told["devices"]], [1], "devices")
        tap.same((told["devices"][0]["suspend_ns"], told["devices"][0]["backs_off"]), ({"p50": 1200000, "p99": 3000000, "max": 4000000}, False), "JSON")
        one_line(d.run("stats", "2"), "no device 2", "gpreempt list", code=tap.BAD_INPUT)
        one_line(d.run("stats", "x"), "gpreempt list", code=tap.BAD_INPUT)


@tap.test("stats says why it backs off, and why a policy was ejected")
def _(folder):
    with daemon(folder, "ejected=2000 stops a second are used up", "backoff") as d:
        text = d.good("stats").stdout
        for name in ("back-off", "ejection"):
            tap.true(re.search(rf"^  {name} +2000 stops a second are used up$", text, re.M), text)
        tap.same(json.loads(d.good("stats", "--json").stdout)["devices"][0]["backs_off"], True, "JSON")


KEPT = (f"event={SUSPEND}:100:1200000:0", "text=no answer", f"event={FAILED}:100:0:110", "text=", f"event={GONE}:100:0:0", f"event={LATER}:0:0:0")


def without_time(text):
    """Its lines, of which the words are apart by one space."""
    return [" ".join(re.sub(r"^\d\d:\d\d:\d\d\.\d{3}  ", "", line).split()) for line in text.splitlines()]


@tap.test("events prints those that are kept in a line each, and ends")
def _(folder):
    with daemon(folder, *KEPT) as d:
        text = d.good("events").stdout
        tap.same(without_time(text), ["suspend device 0 train 100 1.200ms by update", "failed device 0 train 100 Connection timed out: no answer",
                                      "gone device 0 train 100", "kind-31 device 0"], "lines")
        tap.same({line.find("train") for line in text.splitlines()[:3]}, {35}, "one below the other")
        events = [json.loads(line) for line in d.good("events", "--json").stdout.splitlines()]
        tap.same([event["number"] for event in events], [1, 2, 3, 4], "numbers")
        tap.same((events[1]["event"], events[1]["pid"], events[1]["error"], events[1]["text"]), ("failed", 100, "Connection timed out", "no answer"), "JSON")
        tap.same((events[0]["latency_ns"], events[0]["way"], events[0]["error"]), (1200000, "update", None), "JSON")


@tap.test("events --kind asks for those alone, and knows which there are")
def _(folder):
    with daemon(folder, *KEPT) as d:
        kinds = [line.split()[0] for line in without_time(d.good("events", "--kind", "gone,suspend").stdout)]
        tap.same(kinds, ["suspend", "gone"], "kinds")
        one_line(d.run("events", "--kind", "gone,suspnd"), "did you mean suspend", code=tap.BAD_INPUT)
        one_line(d.run("events", "--kind", "zzzzzzzzz"), "starved", code=tap.BAD_INPUT)
        one_line(d.run("events", "--retry"), "--follow", code=tap.BAD_INPUT)


@tap.test("events --follow prints what comes, and a signal ends it well")
def _(folder):
    for number in (signal.SIGINT, signal.SIGTERM):
        with daemon(folder, *KEPT[:1]) as d:
            program, line = d.start("events", "--follow", "--since", "all", "--json")
            tap.same(json.loads(line)["event"], "suspend", "the first")
            d.tell(f"event={RESUME}:100:5000:0")
            tap.same(json.loads(program.stdout.readline())["event"], "resume", "the second")
            tap.same(end(program, number), (0, "", ""), "the end")


@tap.test("events --follow shows what comes and nothing older, though the clock was set back, and shows what is of no time")
def _(folder):
    with daemon(folder, *KEPT[:1], f"event={LOST}:0:0:0") as d:
        program, line = d.start("events", "--follow", "--json")
        tap.same(json.loads(line)["event"], "lost", "which says that it follows")
        d.tell("behind=3600")
        for latency in (5000, 6000):
            d.tell(f"event={RESUME}:100:{latency}:0")
            tap.same(json.loads(program.stdout.readline())["latency_ns"], latency, "what comes")
        tap.same(end(program), (0, "", ""), "the end")


@tap.test("events --since prints those that are not older, and all by that word")
def _(folder):
    with daemon(folder, *KEPT) as d:
        tap.same(d.good("events", "--since", "0s").stdout, "", "from now on")
        for since in ("3600s", "60min", "1.5h", "all"):
            tap.same(d.good("events", "--since", since).stdout, d.good("events").stdout, since)
        one_line(d.run("events", "--since", "yesterday"), "10s", code=tap.BAD_INPUT)


@tap.test("events --follow ends without a word when nobody reads it any more")
def _(folder):
    with daemon(folder, *KEPT[:1]) as d:
        program, _line = d.start("events", "--follow", "--since", "all")
        program.stdout.close()
        tap.true(program.wait(ANSWERS) in (0, -signal.SIGPIPE), f"exit status {program.returncode}")
        tap.same(program.stderr.read(), "", "what it says")
        program.stderr.close()


def stop(d):
    d.process.stdin.close()
    d.process.wait(ANSWERS)
    d.process.stdin = open(os.devnull, "w", encoding="utf-8")


@tap.test("when gpreemptd goes, events says so and exits with 1")
def _(folder):
    with daemon(folder, *KEPT[:1]) as d:
        program, _line = d.start("events", "--follow", "--since", "all")
        stop(d)
        out, errors = program.communicate(timeout=ANSWERS)
        tap.same((program.returncode, out, errors.count("\n")), (tap.FAILED, "", 1), errors)
        tap.true("gpreemptd has gone" in errors, errors)


@tap.test("when gpreemptd goes, suspend, wait and events say what becomes of the queues and what to do, in a person's words")
def _(folder):
    def waiting(d):
        program = subprocess.Popen([tap.PROGRAM, "wait", "stopped", "200"], env=d.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        lists = d.heard()["lists"]
        until(lambda: d.heard()["lists"] > lists + 4, "it looks again and again")
        return program

    for start, said in ((lambda d: d.start("suspend", "100")[0], "runs again"), (waiting, "try again"),
                        (lambda d: d.start("events", "--follow", "--since", "all")[0], "--retry")):
        with daemon(folder, "100:1", "200:1", *KEPT[:1]) as d:
            program = start(d)
            stop(d)
            errors = program.communicate(timeout=ANSWERS)[1]
        tap.same((program.returncode, errors.count("\n")), (tap.FAILED, 1), errors)
        for word in ("gpreemptd has gone", "systemctl restart gpreemptd", said):
            tap.true(word in errors, f"{word}: {errors}")
        for word in ("context", "open "):
            tap.true(word not in errors, f"{word}: {errors}")


@tap.test("with --retry events waits for the next gpreemptd")
def _(folder):
    with daemon(folder, *KEPT[:1]) as d:
        program, _line = d.start("events", "--follow", "--since", "all", "--retry", "--json")
        stop(d)
        tap.true("waiting for it" in program.stderr.readline(), "what it says")
        with daemon(folder, *KEPT[-2:]):
            tap.same(json.loads(program.stdout.readline())["event"], "gone", "of the next one")
            program.stdout.readline()
            tap.same(end(program), (0, "", ""), "the end")


@tap.test("events that are refused are an error in gpreemptd's words")
def _(folder):
    with daemon(folder, f"error={EVENTS}:16", "text=too many follow") as d:
        one_line(d.run("events"), "too many follow")


@tap.test("wait returns when the queues stand still, and when they run again")
def _(folder):
    with daemon(folder) as d:
        tap.same(d.good("wait", "running", "100", "200:7").stdout, "Running: 3 queues of 2 processes.\n", "at once")
        waiter = subprocess.Popen([tap.PROGRAM, "wait", "stopped", "100"], env=d.env(), stdout=subprocess.PIPE, text=True)
        d.good("suspend", "100:1", "--lease", "60s")
        tap.same(waiter.poll(), None, "one of two")
        d.good("suspend", "100:2", "--lease", "60s")
        tap.same((waiter.communicate(timeout=ANSWERS)[0], waiter.returncode), ("Stopped: 2 queues of 1 process.\n", 0), "both")
        told = json.loads(d.good("wait", "stopped", "100:2", "--json").stdout)
        tap.same((told["schema"], [queue["error"] for queue in told["queues"]]), ("gpreempt-wait-1", [None]), "JSON")


@tap.test("wait says which are not when the time is over, and exits with 1")
def _(folder):
    with daemon(folder) as d:
        d.good("suspend", "100:1", "--lease", "60s")
        one_line(d.run("wait", "stopped", "100", "--timeout", "100ms"), "100:2: not stopped within 100ms: it is running")
        one_line(d.run("wait", "running", "100:1", "100:2", "--timeout", "100ms"), "100:1: not running within 100ms: it is suspended")
        told = json.loads(d.run("wait", "stopped", "100", "--timeout", "100ms", "--json").stdout)
        tap.same({queue["queue_id"]: queue["error"] is None for queue in told["queues"]}, {1: True, 2: False}, "JSON")


@tap.test("a queue that wait waits for in vain is told: it is none, has gone, or is nobody's word")
def _(folder):
    with daemon(folder) as d:
        one_line(d.run("wait", "stopped", "999"), "999", "gpreempt list")
        one_line(d.run("wait", "gone", "100"), "neither running nor stopped", code=tap.BAD_INPUT)
        one_line(d.run("wait", "stopped"), "PID[:QUEUE] is missing", code=tap.BAD_INPUT)
        program = subprocess.Popen([tap.PROGRAM, "wait", "stopped", "200:7"], env=d.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lists = d.heard()["lists"]
        until(lambda: d.heard()["lists"] > lists + 4, "it looks again and again")
        d.tell("hide=200:7")
        out, errors = program.communicate(timeout=ANSWERS)
        tap.same((program.returncode, out, errors), (tap.FAILED, "", "gpreempt: 200:7: has gone\n"), "gone")


@tap.test("resume tells what it resumed from what ran already, and from what a policy stops; all three are no error")
def _(folder):
    with daemon(folder) as d:
        d.good("suspend", "100:1", "--lease", "60s")
        tap.same(d.good("resume", "100", "200:7").stdout, "Resumed 1 queue of 1 process.\nRunning already: 2 queues of 2 processes.\n", "one of three")
        tap.same(d.good("resume", "100").stdout, "Running already: 2 queues of 1 process.\n", "none of two")
        d.good("suspend", "200:1", "--lease", "60s")
        told = json.loads(d.good("resume", "200", "--json").stdout)["queues"]
        tap.same({queue["queue_id"]: queue["was"] for queue in told}, {1: "held", 7: "running"}, "JSON")
    with gpreemptd.daemon(folder) as d:
        serve = program(SERVE, d.path)
        tap.same(serve.stdout.readline(), "ready\n", "the online client")
        train = d.agent(name="train", seen=1)
        until(lambda: len(clients(d)) == 2, "both are clients")
        good(d, "hint", "begin", "--client", str(serve.pid), "--for", "60s")
        train.answer()
        good(d, "wait", "stopped", str(os.getpid()), "--timeout", "10s")
        tap.same(good(d, "resume", str(os.getpid())).stdout, "Suspended by nobody, and not running: 1 queue of 1 process.\nNote: stopped for online work.\n",
                 "stopped by a policy")
        stop_program(serve)


@tap.test("list says who suspended a job, in a column that is there for that alone")
def _(folder):
    with gpreemptd.daemon(folder) as d, simulated.gpu(folder, socket=d.path), simulated.train(folder, socket=d.path) as train:
        simulated.handles(d, train.pid)
        tap.true("HELD BY" not in good(d, "list").stdout, "nobody suspended anything")
        holder = subprocess.Popen([tap.PROGRAM, "suspend", str(train.pid), "--socket", d.path], stdout=subprocess.PIPE, text=True)
        holder.stdout.readline()
        who = f"{'root' if os.geteuid() == 0 else f'user {os.getuid()}'}, process {holder.pid}"
        lines = good(d, "list").stdout.splitlines()
        at = next(line.index("HELD BY") for line in lines if "HELD BY" in line)
        tap.same({line[at:at + len(who)] for line in lines if line.startswith(f"{train.pid}:")}, {who}, "column")
        tap.same({queue["held_by"] for queue in json.loads(good(d, "list", "--json").stdout)["queues"]}, {who}, "JSON")
        holder.terminate()
        holder.communicate()
        tap.same({queue["held_by"] for queue in json.loads(good(d, "list", "--json").stdout)["queues"]}, {None}, "afterwards")


@tap.test("doctor lists the devices that gpreemptd knows")
def _(folder):
    with gpreemptd.daemon(folder) as d, simulated.gpu(folder, socket=d.path), simulated.train(folder, socket=d.path) as train:
        simulated.handles(d, train.pid)
        known = json.loads(good(d, "list", "--json").stdout)["devices"]
        done = tap.run("doctor", "--json", env=dict(os.environ, GPREEMPT_SOCKET=d.path))
        [told] = [check for check in json.loads(done.stdout)["checks"] if check["what"] == "devices"]
        tap.same((told["state"], re.findall(r"(\d+): (\S+) \(\w+", told["detail"])), ("yes", [(str(one["device"]), one["name"]) for one in known]), told)


@tap.test("without gpreemptd every verb says so in one line, and exits with 1")
def _(folder):
    for words in NEW:
        one_line(tap.run(*words, env=dict(os.environ, GPREEMPT_SOCKET=f"{folder}/none")), f"{folder}/none")


@tap.test("without gpreemptd the advice begins with the socket that was named, and names no option that the verb has not")
def _(folder):
    if os.path.exists("/dev/kfd"):
        raise tap.Skip("this machine has an AMD GPU's driver")
    for words in NEW:
        done = tap.run(*words, "--socket", f"{folder}/mistyped")
        tap.true(done.stderr.startswith(f"gpreempt: no gpreemptd at {folder}/mistyped: start it, "), done.stderr)
        tap.true(len(done.stderr) - len(folder) < 200, f"{len(done.stderr)} characters: {done.stderr}")
        tap.true("GPREEMPT_SOCKET" in done.stderr, done.stderr)
        tap.same("--backend sim" in done.stderr, "--backend" in tap.good(words[0], "--help").stdout, f"{words}: {done.stderr}")
    tap.true("gpreempt sim-gpu" in tap.run("events", "--socket", f"{folder}/mistyped").stderr, "events")
    usual = tap.run("ps", env={name: value for name, value in os.environ.items() if not name.startswith(("GPREEMPT_", "XDG_"))})
    if "no gpreemptd at /run/gpreempt/" in usual.stderr:
        first = usual.stderr.partition("; ")[0]
        tap.true(re.fullmatch(r"gpreempt: no gpreemptd at \S+: start it \(systemctl start gpreemptd, or gpreemptd as yourself\)", first), usual.stderr)
        tap.true(len(usual.stderr) < 240, usual.stderr)


@tap.test("a gpreemptd that hangs up or does not know the question is reported, whatever the verb")
def _(folder):
    for words, kind in ((("ps",), CLIENTS), (("policy",), STATS), (("policy", "fair"), POLICY), (("stats",), STATS), (("events",), EVENTS),
                        (("hint", "begin", "--client", "100"), HINT)):
        with daemon(folder, *CLIENTS_THERE, f"drop={kind}") as d:
            one_line(d.run(*words), "gpreemptd has gone")
        with daemon(folder, *CLIENTS_THERE, f"error={kind}:22", "text=a tool does not say that") as d:
            one_line(d.run(*words), "a tool does not say that")


@tap.test("the simulated machine has clients, policies, hints and statistics, and each line says that it is one")
def _(folder):
    sim = ("--backend", "sim")
    rows = tap.good("ps", *sim).stdout.splitlines()[1:]
    tap.same(len(rows), 3, "clients")
    tap.true(all(" simulated " in row for row in rows), rows)
    tap.true(all(client["simulated"] and client["share_permille"] is None for client in json.loads(tap.good("ps", "--json", *sim).stdout)["clients"]), "JSON")
    for words in (("policy",), ("policy", "fair"), ("policy", "0", "fifo"), ("hint", "begin", "--client", "1"), ("stats",), ("wait", "running", "2")):
        tap.true("simulated" in tap.good(*words, *sim).stdout, words)
    one_line(tap.run("hint", "begin", "--client", "2", *sim), "only online clients")
    one_line(tap.run("policy", "best", *sim), "fifo priority fair deadline", code=tap.BAD_INPUT)


LIBRARY = os.path.join(os.path.abspath(tap.BUILD), "libgpreempt.so")

# An online client: an agent with a queue that does as it is told, in a process of its own.
SERVE = """
import sys
from protocol import Agent
agent = Agent(sys.argv[1], name="serve", seen=2)
print("ready", flush=True)
while True:
    agent.answer()
"""

# A program that gives hints by libgpreempt, one every 20 ms, and says what each comes to; it has no queue.
HINTS = """
import ctypes, sys, time
lib = ctypes.CDLL(sys.argv[1])
ctx = ctypes.c_void_p()
print("open", lib.gp_ctx_open(None, ctypes.byref(ctx)), flush=True)
while True:
    print("hint", lib.gp_hint_begin(ctx, None), flush=True)
    time.sleep(0.02)
"""


# One that gives a single hint, and prints the notice that there is of it in the end.
NOTICE = """
import ctypes, sys, time
lib = ctypes.CDLL(sys.argv[1])
lib.gp_ctx_notice.restype = ctypes.c_char_p
ctx = ctypes.c_void_p()
print(lib.gp_ctx_open(None, ctypes.byref(ctx)), lib.gp_hint_begin(ctx, None))
end = time.monotonic() + 10
while not lib.gp_ctx_notice(ctx) and time.monotonic() < end:
    time.sleep(0.01)
print(lib.gp_ctx_notice(ctx).decode(), flush=True)
"""


def program(text, *args, **env):
    return subprocess.Popen([sys.executable, "-c", text, *args], env=dict(os.environ, PYTHONPATH=tap.HERE, **env), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, text=True, preexec_fn=tap.die_with_parent)


def stop_program(process):
    process.kill()
    process.wait()
    process.stdout.close()


def verb(d, *words, **more):
    return tap.run(*words, "--socket", d.path, **more)


def good(d, *words):
    return tap.good(*words, "--socket", d.path)


def clients(d):
    return json.loads(good(d, "ps", "--json").stdout)["clients"]


def one_client(d, pid):
    return next(client for client in clients(d) if client["pid"] == pid)


@tap.test("a hint for a real online client stops offline work, everything tells of it, and its end gives it back")
def _(folder):
    with gpreemptd.daemon(folder) as d:
        serve = program(SERVE, d.path)
        tap.same(serve.stdout.readline(), "ready\n", "the online client")
        train = d.agent(name="train", seen=1)
        until(lambda: len(clients(d)) == 2, "both are clients")
        tap.same([(client["name"], client["class"], client["rule"]) for client in clients(d)],
                 [("serve", "online", "--online (GPREEMPT_CLASS)"), ("train", "offline", "--offline (GPREEMPT_CLASS)")], "ps")
        good(d, "hint", "begin", "--client", str(serve.pid), "--for", "60s")
        tap.same(train.answer().list[0][1], STOP, "what the offline agent hears")
        tap.same(good(d, "wait", "stopped", str(os.getpid()), "--timeout", "10s").stdout, "Stopped: 1 queue of 1 process.\n", "wait")
        tap.same((one_client(d, os.getpid())["state"], one_client(d, serve.pid)["hints"]), ("waiting", 1), "ps")
        good(d, "hint", "end", "--client", str(serve.pid))
        tap.same(train.answer().list[0][1], RUN, "what the offline agent hears")
        good(d, "wait", "running", str(os.getpid()), "--timeout", "10s")
        told = json.loads(good(d, "stats", "0", "--json").stdout)["devices"][0]
        tap.true(min(told[key] for key in ("preemptions", "suspends", "resumes", "hints")) >= 1, told)
        events = [json.loads(line) for line in good(d, "events", "--json").stdout.splitlines()]
        of_train = [event["event"] for event in events if event["pid"] == os.getpid()]
        tap.same(of_train, ["client", "suspend", "resume"], "events")
        stop_program(serve)


@tap.test("the real gpreemptd says what is wrong with a hint")
def _(folder):
    with gpreemptd.daemon(folder) as d:
        agent = d.agent(name="train", seen=1)
        one_line(verb(d, "hint", "begin", "--client", str(os.getpid())), "not online", "gpreempt run --online", "gpreempt-classes(5)")
        one_line(verb(d, "hint", "end", "--client", str(os.getpid())), "no such hint", "--for")
        agent.close()


@tap.test("a program whose hints count for nothing is told so by the library, and how to be online")
def _(folder):
    if b"__asan_init" in tap.read(LIBRARY, mode="rb"):
        raise tap.Skip("an instrumented library does not load into Python")
    with gpreemptd.daemon(folder) as d:
        hints = program(NOTICE, LIBRARY, GPREEMPT_SOCKET=d.path)
        said = hints.stdout.read().splitlines()
        hints.stdout.close()
        tap.same((hints.wait(ANSWERS), said[0]), (0, "0 0"), "what the calls return")
        tap.true(said[1].startswith("hints of this process count for nothing: ") and "gpreempt run --online" in said[1], said[1])


@tap.test("a program that is online by its environment gives hints before it has a queue, and after a restart of gpreemptd again")
def _(folder):
    if b"__asan_init" in tap.read(LIBRARY, mode="rb"):
        raise tap.Skip("an instrumented library does not load into Python")
    with gpreemptd.daemon(folder) as d:
        hints = program(HINTS, LIBRARY, GPREEMPT_SOCKET=d.path, GPREEMPT_CLASS="online", GPREEMPT_WEIGHT="200", GPREEMPT_SLO="20ms")
        tap.same(hints.stdout.readline(), "open 0\n", "the library")
        tap.same(hints.stdout.readline(), "hint 0\n", "the first hint")
        until(lambda: [client for client in clients(d) if client["pid"] == hints.pid], "it is a client")
        client = one_client(d, hints.pid)
        tap.same({key: client[key] for key in ("class", "weight", "slo_ns", "device", "queues")},
                 {"class": "online", "weight": 200, "slo_ns": 20000000, "device": 0, "queues": 0}, "ps")
        d.process.kill()
        d.process.wait()
    until(lambda: hints.stdout.readline() == f"hint {-19}\n", "it notices that nobody is there")
    with gpreemptd.daemon(folder) as d:
        until(lambda: hints.stdout.readline() == "hint 0\n", "hints get through")
        until(lambda: [client for client in clients(d) if client["pid"] == hints.pid], "it is a client again")
        stop_program(hints)
        until(lambda: not clients(d), "it is none any more")


@tap.test("root chooses a policy of the real gpreemptd; another user sees it, and is told who may choose")
def _(folder):
    os.chmod(folder, 0o755)
    with gpreemptd.daemon(folder) as d:
        good(d, "policy", "0", "fair")
        tap.same([row["POLICY"] for row in columns(good(d, "policy").stdout)], ["fair"], "policy")
        good(d, "policy", "deadline")
        tap.same(json.loads(good(d, "list", "--json").stdout)["devices"][0]["policy"], "deadline", "list")
        one_line(verb(d, "policy", "best"), "fifo priority fair deadline", code=tap.BAD_INPUT)

        def as_nobody():
            one_line(verb(d, "policy", "fifo"), "only root and group gpreempt", "sudo")
            tap.same([row["POLICY"] for row in columns(good(d, "policy").stdout)], ["deadline"], "policy")
        AsUser(NOBODY, as_nobody).end()


@tap.test("who lacks group gpreempt is told how to get it, made first where there is none")
def _(folder):
    os.chmod(folder, 0o755)
    how = "use sudo, or: sudo usermod -aG gpreempt $USER, then log in again"
    if "gpreempt" not in {group.gr_name for group in grp.getgrall()}:
        how = "use sudo, or: sudo groupadd -r gpreempt && sudo usermod -aG gpreempt $USER, restart gpreemptd, then log in again"
    with gpreemptd.daemon(folder) as d:
        agent, pid = d.agent(2, name="serve", seen=2), str(os.getpid())

        def as_nobody():
            for words in (("policy", "fifo"), ("reserve", "0", "50"), ("hint", "begin", "--client", pid), ("suspend", pid + ":1", "--lease", "1s")):
                one_line(verb(d, *words), "only root and group gpreempt", how)
            done = verb(d, "suspend", pid, "--lease", "1s")
            tap.same((done.returncode, done.stderr.count("\n"), done.stderr.count(how)), (tap.FAILED, 2, 1), done.stderr)
        AsUser(NOBODY, as_nobody).end()
        agent.close()


@tap.test("list shows what is reserved of a real gpreemptd's device, and nothing when it is over")
def _(folder):
    with gpreemptd.daemon(folder) as d:
        tap.true("RESERVED" not in good(d, "list").stdout, "without one")
        good(d, "reserve", "0", "75%")
        tap.true(re.search(r"\bRESERVED\b.*\n.* 75% online, 25% offline ", good(d, "list").stdout), "with one")
        told = json.loads(good(d, "list", "--json").stdout)["devices"][0]
        tap.same((told["online_percent"], told["offline_percent"]), (75, 25), "JSON")
        good(d, "reserve", "0", "0", "0")
        tap.true("RESERVED" not in good(d, "list").stdout, "after it")


@tap.test("events --follow begins with now, --since with those before")
def _(folder):
    def follow(d, *options):
        return subprocess.Popen([tap.PROGRAM, "events", "--follow", "--kind", "client", "--socket", d.path, *options],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    with gpreemptd.daemon(folder) as d:
        d.agent(name="before").close()
        new, recent = follow(d), follow(d, "--since", "3600s")
        tap.true(" before " in recent.stdout.readline(), "--since")
        while not select.select([new.stdout], [], [], 0.1)[0]:
            d.agent(name="after").close()
        tap.true(" after " in new.stdout.readline(), "the first of --follow")
        tap.true(" after " in recent.stdout.readline(), "the second of --since")
        for follower in (new, recent):
            tap.same(end(follower)[0], 0, "exit status")


@tap.test("events --follow --retry sees clients come and go, and goes on with the next real gpreemptd")
def _(folder):
    with gpreemptd.daemon(folder) as d:
        follower = subprocess.Popen([tap.PROGRAM, "events", "--follow", "--since", "all", "--retry", "--kind", "client,gone", "--socket", d.path],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        agent = d.agent(name="train")
        tap.same(without_time(follower.stdout.readline()), [f"client train {os.getpid()}"], "came")
        agent.close()
        tap.same(without_time(follower.stdout.readline()), [f"gone train {os.getpid()}"], "went")
    tap.true("gpreemptd has gone" in follower.stderr.readline(), "the end of the first")
    with gpreemptd.daemon(folder) as d:
        agent = d.agent(name="again")
        tap.same(without_time(follower.stdout.readline()), [f"client again {os.getpid()}"], "came to the second")
        tap.same(end(follower)[0], 0, "exit status")
        agent.close()


tap.main(jobs=4)
