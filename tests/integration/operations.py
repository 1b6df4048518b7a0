#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""docs/OPERATIONS.md: its commands work, and no kind of event is missing."""

import os
import re
import subprocess

import tap

import yaml

import gpreemptd
import simulated
from gpreemptd import until

PAGE = tap.read(tap.SOURCE, "docs", "OPERATIONS.md")
PATIENCE = 40  # s

# Stand-ins. systemctl has the verbs that the page uses, for a real gpreemptd.
SUDO = '#!/bin/sh\nexec "$@"\n'
JOURNALCTL = "#!/bin/sh\ncat {folder}/log\n"
SYSTEMCTL = """#!/bin/sh
stop() {{ [ ! -e {folder}/daemon ] || {{ kill $(cat {folder}/daemon); while kill -0 $(cat {folder}/daemon) 2>/dev/null; do sleep 0.05; done; }}; rm -f {folder}/daemon; }}
start() {{ {daemon} --config {folder}/conf --socket {socket} --root {root} >/dev/null 2>>{folder}/log & echo $! >{folder}/daemon; until {program} list >/dev/null 2>&1; do sleep 0.05; done; }}
echo "systemctl $*" >>{folder}/done
[ "$2" = gpreemptd ] || exit 4
case $1 in
status) kill -0 $(cat {folder}/daemon) && echo "active (running)" ;;
reload) kill -HUP $(cat {folder}/daemon) ;;
restart) stop; start ;;
start | stop) $1 ;;
*) echo "systemctl: no $1 here" >&2; exit 1 ;;
esac
"""


def script(folder, name, text):
    path = tap.write(f"{folder}/bin/{name}", text)
    os.chmod(path, 0o755)


@tap.test("every command of the page does what it says, in their order")
def _(folder):
    commands = [line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S) for line in block.splitlines()]
    tap.true(len(commands) > 20, f"found: {commands}")
    socket = f"{folder}/gpreemptd.sock"
    words = {"folder": folder, "daemon": gpreemptd.DAEMON, "program": tap.PROGRAM, "socket": socket, "root": gpreemptd.tree(folder)}
    os.makedirs(f"{folder}/bin")
    tap.write(f"{folder}/conf", "")
    for name, text in (("sudo", SUDO), ("journalctl", JOURNALCTL.format(**words)), ("systemctl", SYSTEMCTL.format(**words)),
                       ("gpreemptd", f'#!/bin/sh\nexec {gpreemptd.DAEMON} --config {folder}/conf "$@"\n'), ("gpreempt", f'#!/bin/sh\nexec {tap.PROGRAM} "$@"\n')):
        script(folder, name, text)
    env = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}", GPREEMPT_SOCKET=socket)

    def sh(command):
        return subprocess.run(["sh", "-c", command], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=PATIENCE, check=False)

    try:
        tap.same(sh("systemctl start gpreemptd").returncode, 0, "start")
        with simulated.gpu(folder, socket=socket), simulated.train(folder, socket=socket) as train:
            until(lambda: f"{train.pid} " in sh("gpreempt ps").stdout, "the job is there")
            for command in commands:
                if "restart" in command or re.match("sudo systemctl stop|sleep ", command):
                    until(lambda: f"{train.pid} " in sh("gpreempt ps").stdout, "the job is there")
                if command.startswith("sleep "):
                    continue  # until the job has come again: that was waited for, however long it took
                done = sh(command.replace("4711", str(train.pid)))
                tap.same(done.returncode, 0, f"{command}: {done.stdout}")
            until(lambda: f"{train.pid} " in sh("gpreempt ps").stdout, "the job is there after all of it")
    finally:
        sh("systemctl stop gpreemptd")
    used = set(re.findall(r"^systemctl (\w+)", tap.read(folder, "done"), re.M))
    tap.same(used, {"status", "reload", "restart", "start", "stop"}, "the stand-in was asked for")


@tap.test("every kind of event is explained, once, and none that there is not; the same in its man page")
def _(folder):
    words = re.search(r'GP_EVENT_WORDS "(.*)"', tap.read(tap.SOURCE, "src", "base", "event_words.h")).group(1).split()
    section = PAGE.partition("## What each event means\n")[2].partition("\n## ")[0]
    rows = [re.split(r" \| ", row.strip("| ")) for row in re.findall(r"^\| `.*$", section, re.M)]
    tap.same([row[0].strip("`") for row in rows], words, "kinds, in their order")
    for row in rows:
        tap.same((len(row), [cell for cell in row if len(cell.strip()) < 4]), (4, []), f"what it means, how often, and what to do: {row}")
    manual = tap.read(tap.SOURCE, "man", "gpreempt-events.1")
    tap.same([word for word in words if f".B {word}\n" not in manual], [], "not in gpreempt-events(1)")


def rows(heading):
    """The cells of a section's tables, without their headings."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [re.split(r" \| ", row.strip("| ")) for row in re.findall(r"^\| .*`.*$", section, re.M)]


@tap.test("every alert there is has its severity and what to do on the page, and what is asked for there is exported")
def _(folder):
    rules = yaml.safe_load(tap.read(tap.SOURCE, "share", "prometheus", "gpreempt.rules.yml"))
    there = {rule["alert"]: rule["labels"]["severity"] for group in rules["groups"] for rule in group["rules"] if "alert" in rule}
    shown = rows("Metrics and alerts")
    tap.same({row[0].strip("`"): row[1] for row in shown if row[0].startswith("`")}, there, "alerts")
    queries = " ".join(row[1] for row in shown if not row[0].startswith("`"))
    names = {re.sub("_bucket$", "", name) for name in re.findall(r"\bgpreempt_\w+", queries)}
    tap.same(sorted(names - set(re.findall(r"^\| `(gpreempt_\w+)` \|", tap.read(tap.SOURCE, "docs", "METRICS.md"), re.M))), [], "of no metric")
    tap.true(len(names) > 5, names)


@tap.test("the journal's fields on the page are those of gpreemptd's manual page, and the kinds those that it says are there")
def _(folder):
    manual = tap.read(tap.SOURCE, "man", "gpreemptd.8").partition(".SH LOG\n")[2].partition("\n.SH ")[0]
    fields, kinds = rows("The journal"), re.search(r"kinds\n((?:.*\n)+?)\.RB \(", manual).group(1)
    told = {name for row in fields for name in re.findall(r"`([A-Z_]+)`", row[0])}
    tap.same(told, set(re.findall(r"\b(?:GPREEMPT_\w+|ERRNO)\b", manual)), "fields")
    tap.same(set(re.findall(r"`(\w+)`", fields[0][1])), set(re.findall(r"\w+", kinds)) - {"BR", "and"}, "kinds")
    asked = set(re.findall(r"journalctl .*?\b(GPREEMPT_\w+)=", PAGE))
    tap.same(asked - told, set(), "what is looked for by")


@tap.test("what the page says to look at is there: columns, lines of stats, settings")
def _(folder):
    with gpreemptd.daemon(folder) as d, simulated.gpu(folder, socket=d.path), simulated.train(folder, socket=d.path) as train:
        simulated.handles(d, train.pid)
        told = "".join(tap.good(*words, "--socket", d.path).stdout for words in (("ps", "--wide"), ("stats",), ("policy",), ("list",), ("top", "--once", "--interval", "100ms")))
    for word in ("CLASS", "WHY", "STATE", "HINTS", "SAMPLES", "POLICY", "OFFLINE", "P99", "WAY", "failures", "suspends", "limited", "back-off", "ejection", "preemptions", "reason"):
        tap.true(word in PAGE and re.search(rf"(?m)\b{word}\b", told), f"{word}: {told}")
    settings = tap.read(tap.SOURCE, "share", "gpreemptd.conf")
    for word in ("max_stops_per_s", "linger", "max_starve", "starve_slice"):
        tap.true(f"`{word}`" in PAGE and f";{word} = " in settings, word)


tap.main(jobs=2)
