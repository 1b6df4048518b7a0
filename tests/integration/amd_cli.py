#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The verbs that act on AMD's queues, against a gpreemptd made of nothing, and without one."""

import contextlib
import fcntl
import json
import os
import re
import pty
import shutil
import signal
import struct
import subprocess
import termios

import tap
from double import ANSWERS, daemon, end
from gpreemptd import until
from preload import need_preload

LIST, HOLD = 10, 14  # types of messages


@tap.test("suspend keeps the queues off while it runs, and a signal resumes them")
def _(folder):
    with daemon(folder) as d:
        for number in (signal.SIGINT, signal.SIGTERM):
            program, line = d.start("suspend", "100", "200:7")
            tap.same(line, "Suspended 3 queues of 2 processes; Ctrl-C resumes.\n", "what it says")
            tap.same(d.held(), {"100:1", "100:2", "200:7"}, "held")
            status, out, errors = end(program, number)
            tap.same((status, out, errors), (0, "Resumed.\n", ""), "the end")
            tap.same(d.held(), set(), "held afterwards")


@tap.test("a suspend that is killed leaves nothing stopped")
def _(folder):
    with daemon(folder) as d:
        program, _line = d.start("suspend", "100")
        tap.same(len(d.held()), 2, "held")
        end(program, signal.SIGKILL)
        tap.same(d.held(), set(), "held afterwards")


@tap.test("with a lease suspend returns at once, and resume ends it early")
def _(folder):
    with daemon(folder) as d:
        tap.same(d.good("suspend", "100:1", "--lease", "60s").stdout, "Suspended 1 queue of 1 process for 60s.\n", "what it says")
        tap.same(d.held(), {"100:1"}, "held")
        tap.same(d.good("resume", "100").stdout, "Resumed 1 queue of 1 process.\nRunning already: 1 queue of 1 process.\n", "what it says")
        tap.same(d.held(), set(), "held afterwards")


@tap.test("a lease that ends resumes by itself")
def _(folder):
    with daemon(folder) as d:
        d.good("suspend", "100:1", "--lease", "1ms")
        tap.same(d.held(), set(), "held")


@tap.test("what cannot be done is said of each, the rest is done, and the exit status is 1")
def _(folder):
    with daemon(folder, "100:1", "100:2", "100:3", "refuse=100:2=1", "text=only root and group gpreempt may do that") as d:
        done = d.run("suspend", "100:1", "100:2", "100:9", "4711", "4711:1", "100:3", "100:3", "--lease", "60s")
        tap.same(done.returncode, tap.FAILED, done.stderr)
        tap.same(d.held(), {"100:1", "100:3"}, "held")
        lines = done.stderr.splitlines()
        for start, word in (("gpreempt: 100:9: ", "it has 1, 2, 3"), ("gpreempt: 4711: ", "gpreempt list"),
                            ("gpreempt: 4711:1: ", "gpreempt list"), ("gpreempt: 100:3: ", "twice"),
                            ("gpreempt: 100:2: ", "Operation not permitted: only root and group")):
            tap.same(len([line for line in lines if line.startswith(start) and word in line]), 1, f"{start}{word} in {lines}")
        tap.same(len(lines), 5, "lines")


@tap.test("of words that no queue can have each is named, nothing is done, and the exit status is 2")
def _(folder):
    with daemon(folder) as d:
        for verb in (("suspend", "--lease", "60s"), ("preempt", "--type", "save"), ("resume",), ("wait", "stopped")):
            done = d.run(*verb, "100:1", "x", "7:y")
            tap.same((done.returncode, done.stdout, done.stderr.count("PID:QUEUE")), (tap.BAD_INPUT, "", 2), done.stderr)
        tap.same(d.held(), set(), "held")


@tap.test("everything may be refused: then nothing is held, and it does not wait")
def _(folder):
    with daemon(folder, "100:1", "refuse=100:1=95") as d:
        done = d.run("suspend", "100:1", timeout=ANSWERS)
        tap.same((done.returncode, done.stdout), (tap.FAILED, ""), done.stderr)


@tap.test("queues come from standard input too: none of them, and a hundred thousand")
def _(folder):
    with daemon(folder, "many=20000") as d:
        done = d.run("suspend", "-", "--lease", "60s", input="", stdin=None)
        tap.same(done.returncode, tap.FAILED, done.stdout)
        tap.true("standard input is empty" in done.stderr, done.stderr)
        words = "\n".join(f"300:{i}" for i in range(100000))
        done = d.run("suspend", "-", "--lease", "60s", input=words, stdin=None)
        tap.same(done.returncode, tap.FAILED, "exit status")
        tap.same(done.stdout, "Suspended 20000 queues of 1 process for 60s.\n", "what it says")
        tap.same(done.stderr.count("\n"), 80000, "complaints")
        tap.same(len(d.held()), 20000, "held")


@tap.test("what gpreemptd adds to a success is shown")
def _(folder):
    with daemon(folder, "100:1", "text=dbg is not there, and update was used") as d:
        tap.true("Note: dbg is not there, and update was used.\n" in d.good("suspend", "100:1", "--lease", "1s").stdout, "no note")


@tap.test("--json tells of each queue and keeps the rest off stdout")
def _(folder):
    with daemon(folder, "100:1", "100:2", "refuse=100:2=1") as d:
        done = d.run("suspend", "100", "--lease", "60s", "--json")
        told = json.loads(done.stdout)
        tap.same({queue["queue_id"]: queue["error"] for queue in told["queues"]}, {1: None, 2: "Operation not permitted"}, "queues")
        tap.same(json.loads(d.good("resume", "100:1", "--json").stdout)["schema"], "gpreempt-resume-1", "schema")
        program, line = d.start("suspend", "100:1", "--json")
        tap.same(len(json.loads(line)["queues"]), 1, "queues")
        tap.same(end(program)[:2], (0, ""), "the end")


@tap.test("preempt has a type, and a lease by itself; a reset is refused")
def _(folder):
    with daemon(folder) as d:
        done = d.run("preempt", "100:1")
        tap.same(done.returncode, tap.BAD_INPUT, done.stderr)
        tap.true("--type save" in done.stderr, done.stderr)
        tap.same(d.good("preempt", "100:1", "--type", "save").stdout, "Preempted 1 queue of 1 process, for 10s at most.\n", "save")
        d.good("preempt", "100:2", "--type", "drain", "--timeout", "200ms", "--lease", "60s")
        tap.same(d.held(), {"100:1", "100:2"}, "held")
        done = d.run("preempt", "200:1", "--type", "reset")
        tap.same((done.returncode, done.stderr.count("\n")), (tap.FAILED, 1), done.stderr)
        tap.true("lost" in done.stderr, done.stderr)
        tap.same(d.held(), {"100:1", "100:2"}, "held")


TRAINER, SERVE = "container trainer 3f9a01234567", "pod serve-0/llm 3f9bfedcba98"


def contained(folder):
    """Three processes, two of them in one container."""
    return daemon(folder, "100:1", "100:2", "200:1", "300:1", "client=100:1:1:500", "client=300:1:1:500", f"place=100={TRAINER}", f"place=200={TRAINER}",
                  f"place=300={SERVE}")


@tap.test("--container is all queues of all processes in it, by name, part of a name or digits of its id")
def _(folder):
    with contained(folder) as d:
        for verb, word, count in (("suspend", "trainer", 3), ("suspend", "3f9a", 3), ("preempt", "llm", 1), ("suspend", "serve-0", 1),
                                  ("suspend", "serve-0/llm", 1), ("suspend", "3f9a01234567" + "8" * 52, 3)):
            more = ("--type", "save") if verb == "preempt" else ()
            d.good(verb, "--container", word, "--lease", "60s", *more)
            tap.same(len(d.held()), count, word)
            d.good("wait", "stopped", "--container", word, "--timeout", "10s")
            tap.true(f"Resumed {count} queue" in d.good("resume", "--container", word).stdout, word)
            tap.same(d.held(), set(), word)


@tap.test("a container whose name is longer than a list has room for is known by what is shown or its id, never by a name that begins like it")
def _(folder):
    name = "n" * 75
    shown = name[:67] + "..."
    with daemon(folder, "100:1", "200:1", f"place=100=container {shown} 3f9a01234567", f"place=200={SERVE}") as d:
        for word in (shown, "3f9a"):
            tap.same([queue["pid"] for queue in json.loads(d.good("list", "--container", word, "--json").stdout)["queues"]], [100], word)
        for word in (name, name + "x", name[:70]):
            done = d.run("list", "--container", word)
            tap.same(done.returncode, tap.FAILED, word)
            tap.true("--container 3f9a01234567" in done.stderr, done.stderr)
        tap.same(d.run("list", "--container", name[:66]).returncode, tap.FAILED, "less of it")
    with daemon(folder, "100:1", f"place=100=container {name[:70]} 3f9a01234567") as d:
        d.good("list", "--container", name[:70])
        tap.same(d.run("list", "--container", name).returncode, tap.FAILED, "a whole one that this begins with")


@tap.test("list and ps show the container's name, and with --container those in it alone")
def _(folder):
    with contained(folder) as d:
        lines = {line.split()[0]: line for line in d.good("list").stdout.splitlines() if ":" in line.split(" ")[0]}
        tap.true(" trainer " in lines["100:1"] and " serve-0/llm " in lines["300:1"] and "3f9a" not in lines["100:1"], lines)
        tap.same([queue["pid"] for queue in json.loads(d.good("list", "--container", "trainer", "--json").stdout)["queues"]], [100, 100, 200], "list")
        tap.same([client["pid"] for client in json.loads(d.good("ps", "--container", "llm", "--json").stdout)["clients"]], [300], "ps")


@tap.test("a container that is not there is an error that names those that are, one that is misspelt the one meant, and digits of two both")
def _(folder):
    with contained(folder) as d:
        for word, text in (("trainr", "did you mean trainer?"), ("zzz", "there are trainer, serve-0/llm"),
                           ("3f9", "which of them: trainer (3f9a01234567), serve-0/llm (3f9bfedcba98)?")):
            for verb in (("suspend",), ("resume",), ("preempt", "--type", "save"), ("wait", "stopped"), ("list",)):
                done = d.run(*verb, "--container", word)
                tap.same((done.returncode, done.stdout), (tap.FAILED, ""), done.stderr)
                tap.true(done.stderr.startswith(f"gpreempt: --container {word}: ") and text in done.stderr, done.stderr)
        tap.same(d.held(), set(), "held")
    with daemon(folder) as d:
        tap.true("no container that you may see has GPU queues" in d.run("suspend", "--container", "x").stderr, "none at all")


def sleeper(pid):
    """The sleep that a process has become or started, or 0."""
    with contextlib.suppress(OSError):
        if tap.read(f"/proc/{pid}/comm") == "sleep\n":
            return int(pid)
        return next(filter(None, map(sleeper, tap.read(f"/proc/{pid}/task/{pid}/children").split())), 0)
    return 0


@contextlib.contextmanager
def namespaced(*command):
    """A process of this machine that is number 1 in a pid namespace of its own; or the sleep of another command that is that."""
    if os.getuid() != 0:
        raise tap.Skip("only root can make pid namespaces")
    with subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", *(command or ("sleep", "600"))]) as unshare:
        try:
            until(lambda: sleeper(unshare.pid), "it runs")
            yield sleeper(unshare.pid)
        finally:
            unshare.kill()


@tap.test("a pid read inside a container is hinted at where the host's process of that number has no queues, and means its own with --container")
def _(folder):
    with namespaced() as pid, daemon(folder, f"{pid}:3", f"place={pid}={TRAINER}") as d:
        done = d.run("suspend", "1", "--lease", "60s")
        tap.same((done.returncode, f"; 1 is also PID {pid} (container trainer)\n" in done.stderr), (tap.FAILED, True), done.stderr)
        tap.same(d.run("suspend", "2", "--lease", "60s").stderr.count("is also"), 0, "another")
        d.good("suspend", "1:3", "--container", "trainer", "--lease", "60s")
        tap.same(d.held(), {f"{pid}:3"}, "held")
        tap.true("there is no process 2 with GPU queues in that container" in d.run("resume", "2", "--container", "trainer").stderr, "another")


@tap.test("a pid of a namespace between a process's own and the host's means it too, unless another has that pid in its own")
def _(folder):
    nested, second = ("unshare", "--pid", "--fork", "--kill-child", "sleep", "600"), ("sh", "-c", "sleep 600 & wait")
    with namespaced(*nested) as pid, namespaced(*second) as other:
        for number in (pid, other):
            tap.same(re.search(r"^NSpid:\t\d+(\t.*)$", tap.read(f"/proc/{number}/status"), re.M)[1], "\t2\t1" if number == pid else "\t2", "its pids")
        with daemon(folder, f"{pid}:3", f"place={pid}={TRAINER}") as d:
            for number in ("1", "2"):
                tap.true(f"; {number} is also PID {pid} (container trainer)\n" in d.run("suspend", number, "--lease", "60s").stderr, number)
                d.good("suspend", f"{number}:3", "--container", "trainer", "--lease", "60s")
                tap.same(d.held(), {f"{pid}:3"}, "held")
                d.good("resume", f"{number}:3", "--container", "trainer")
        with daemon(folder, f"{pid}:3", f"{other}:4", f"place={pid}={TRAINER}", f"place={other}={TRAINER}") as d:
            d.good("suspend", "2", "--container", "trainer", "--lease", "60s")
            tap.same(d.held(), {f"{other}:4"}, "the other's own")


@tap.test("reserve takes shares with and without the sign, and refuses those that are none")
def _(folder):
    with daemon(folder) as d:
        tap.true("75% of the queue slots are for online work, 25%" in d.good("reserve", "0", "75%").stdout, "75%")
        tap.same(json.loads(d.good("reserve", "0", "60", "20", "--json").stdout)["offline_percent"], 20, "offline")
        for words in (("0", "101%"), ("0", "60", "50"), ("x", "5"), ("0", "half"), ("0", "")):
            done = d.run("reserve", *words)
            tap.same((done.returncode, done.stderr.count("\n")), (tap.BAD_INPUT, 1), f"{words}: {done.stderr}")


@tap.test("list shows what can be suspended under the names that suspend takes")
def _(folder):
    with daemon(folder) as d:
        text = d.good("list").stdout
        for name in ("100:1", "100:2", "200:1", "200:7"):
            tap.true(f"\n{name} " in text, text)
        tap.true(all(len(line) <= 100 for line in text.splitlines()), text)
        d.good("suspend", "100:1", "--lease", "60s")
        tap.true("suspended" in next(line for line in d.good("list").stdout.splitlines() if line.startswith("100:1 ")), "state")


def at_terminal(columns, args, env):
    """What it prints on a terminal as wide as that."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([tap.PROGRAM, *args], env=env, stdin=subprocess.DEVNULL, stdout=theirs) as program:
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while not text.endswith(b"\0"):
                text += os.read(ours, 65536) or b"\0"
    os.close(ours)
    tap.same(program.returncode, 0, "exit status")
    return text.decode().replace("\r\n", "\n").rstrip("\0")


@tap.test("on a terminal without room for it the rule stands in a line of its own")
def _(folder):
    with daemon(folder) as d:
        for columns, together in ((60, False), (80, True), (120, True)):
            lines = at_terminal(columns, ("list",), d.env()).splitlines()
            at = next(i for i, line in enumerate(lines) if line.startswith("100:1 "))
            tap.true("priority 7 < 10" in lines[at if together else at + 1], f"{columns}: {lines}")
            tap.true(all(len(line) <= columns for line in lines), f"{columns}: {lines}")


@tap.test("a priority search that finds nothing says what ROCm gives, and one that finds is silent")
def _(folder):
    with daemon(folder) as d:
        tap.true("ROCm gives queues 0, 7 or 11" in d.good("list", "--priority", "0-5").stdout, "0-5")
        text = d.good("list", "--priority", "8-15").stdout
        tap.true("200:7 " in text and "200:1 " not in text and "ROCm" not in text, text)
        for wrong in ("5-0", "x", "0-16", "-", ""):
            tap.same(d.run("list", "--priority", wrong).returncode, tap.BAD_INPUT, wrong)


@tap.test("a gpreemptd that goes while queues are held is reported, and the exit status is 1")
def _(folder):
    with daemon(folder) as d:
        program, _line = d.start("suspend", "100")
        d.process.stdin.close()
        d.process.wait(ANSWERS)
        out, errors = program.communicate(timeout=ANSWERS)
        tap.same((program.returncode, out), (tap.FAILED, ""), errors)
        tap.true("runs again" in errors, errors)
        d.process.stdin = open(os.devnull, "w", encoding="utf-8")


@tap.test("a gpreemptd that hangs up in the middle of a suspend is reported once")
def _(folder):
    with daemon(folder, "100:1", "100:2", f"drop={HOLD}") as d:
        done = d.run("suspend", "100")
        tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (tap.FAILED, "", 1), done.stderr)
        tap.true("gpreemptd has gone" in done.stderr, done.stderr)


def no_amd():
    if os.path.exists("/dev/kfd"):
        raise tap.Skip("this machine has an AMD GPU")


LIVE = (("list",), ("list", "--json"), ("suspend", "1"), ("resume", "1:1"), ("preempt", "1:1", "--type", "save"), ("reserve", "0", "50%"))


@tap.test("without an AMD GPU every verb says so in one line, and what to do, and exits 1")
def _(folder):
    no_amd()
    for env in (dict(os.environ, GPREEMPT_SOCKET=f"{folder}/none"), dict(os.environ, GPREEMPT_SOCKET="")):
        for words in (*LIVE, ("list", "--backend", "kfd"), ("list", "--backend", "auto")):
            done = tap.run(*words, env=env)
            tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (tap.FAILED, "", 1), f"{words}: {done.stderr}")
            for word in ("/dev/kfd", "modprobe amdgpu", "gpreempt doctor", "--backend sim"):
                tap.true(word in done.stderr, f"{words}: {done.stderr}")


@tap.test("a gpreemptd that refuses us is an error in its words, whatever the verb, and no absent one")
def _(folder):
    with daemon(folder, "100:1", "unwelcome=1", "text=its user has too many connections") as d:
        for words in LIVE:
            done = d.run(*words)
            tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (tap.FAILED, "", 1), f"{words}: {done.stderr}")
            tap.true("refuses: its user has too many connections" in done.stderr and "no gpreemptd" not in done.stderr, done.stderr)


@tap.test("who asks for the simulated machine gets it, and each line says that it is one")
def _(folder):
    with daemon(folder) as d:
        for more, env in ((("--backend", "sim"), d.env()), ((), dict(d.env(), GPREEMPT_BACKEND="sim"))):
            text = tap.good("list", *more, env=env).stdout
            rows = [line for line in text.splitlines() if line and not line.startswith(("DEVICE", "QUEUE"))]
            tap.same(len(rows), 6, text)
            tap.true(all(" simulated " in line for line in rows), text)
            listed = json.loads(tap.good("list", "--json", *more, env=env).stdout)
            tap.true(all(item["simulated"] for item in listed["devices"] + listed["queues"]), listed)
            tap.same(tap.good("suspend", "2", "3:4", "--lease", "1s", *more, env=env).stdout,
                     "Suspended 3 simulated queues of 2 processes for 1s.\n", "suspend")
            tap.same(tap.good("resume", "2:2", *more, env=env).stdout, "Running already: 1 simulated queue of 1 process.\n", "resume")
            tap.true("(simulated)" in tap.good("reserve", "0", "75", *more, env=env).stdout, "reserve")
            for words in (("preempt", "2", "--type", "save"), ("reserve", "0", "75")):
                tap.same(json.loads(tap.good(*words, "--json", *more, env=env).stdout)["simulated"], True, words)
        tap.true(not any(queue["simulated"] for queue in json.loads(d.good("list", "--json").stdout)["queues"]), "real ones")
        tap.same(d.held(), set(), "held by gpreemptd")


@tap.test("list --watch goes on until Ctrl-C, and ends well")
def _(folder):
    with daemon(folder) as d:
        program, line = d.start("list", "--watch", "50ms", "--json")
        tap.same(len(json.loads(line)["queues"]), 4, "queues")
        tap.same(end(program), (0, "", ""), "the end")
        for wrong in (("--watch", "1ms"), ("--watch", "x"), ("--watch=0s",), ("5s",), ("--watch=1s", "5s")):
            tap.same(d.run("list", *wrong).returncode, tap.BAD_INPUT, wrong)


def doctor(*words, **more):
    """{check: (state, detail)}, and the advice."""
    found = json.loads(tap.good("doctor", "--json", *words, **more).stdout)
    return {check["what"]: (check["state"], check["detail"]) for check in found["checks"]}, found["advice"]


@tap.test("doctor tells of gpreemptd, the agent and rights without an AMD GPU too")
def _(folder):
    no_amd()
    checks, advice = doctor(env=dict(os.environ, GPREEMPT_SOCKET=f"{folder}/none"))
    tap.same(checks["gpreemptd"], ("no", f"it does not run: nobody listens at {folder}/none"), "gpreemptd")
    tap.same(checks["agent"], ("yes", os.path.join(os.path.realpath(tap.BUILD), "libgpreempt-agent.so")), "agent")
    tap.true("rights" in checks, "no line about rights")
    tap.true("Start gpreemptd" in advice and "gpreempt run --print-env" in advice, advice)
    with daemon(folder) as d:
        tap.same(doctor(env=d.env())[0]["gpreemptd"], ("yes", "it runs, and knows 4 queues"), "gpreemptd")
    with daemon(folder, "100:1") as d:
        tap.same(doctor(env=d.env())[0]["gpreemptd"], ("yes", "it runs, and knows 1 queue"), "gpreemptd")
    tap.same(doctor(env=dict(os.environ, GPREEMPT_SOCKET=""))[0]["gpreemptd"], ("no", "GPREEMPT_SOCKET is empty: none is asked"), "gpreemptd")


@tap.test("doctor's advice calls programs by the folder that it was called by, and systemd only where it has the unit")
def _(folder):
    os.mkdir(f"{folder}/bin")
    shutil.copy(tap.PROGRAM, f"{folder}/bin")
    bare = dict(os.environ, GPREEMPT_SOCKET=f"{folder}/none")
    _, advice = doctor(program="bin/gpreempt", cwd=folder, env=bare)
    tap.true("or bin/gpreemptd &" in advice and "bin/gpreempt demo" in advice, advice)
    tap.true(not re.search(r"(?<!bin/)gpreempt (run|demo|list)|[^/]gpreemptd &", advice), advice)
    units = [path for path in ("/etc", "/usr/local/lib", "/usr/lib", "/lib") if os.path.exists(f"{path}/systemd/system/gpreemptd.service")]
    tap.same("systemctl" in advice, bool(units), advice)
    _, advice = doctor(program="gpreempt", cwd=folder, env=dict(bare, PATH=f"{folder}/bin:{os.environ['PATH']}"))
    tap.true("or gpreemptd &" in advice and ": gpreempt demo" in advice, advice)


@tap.test("doctor says first whose queues one may act on, and then who one is")
def _(folder):
    state, detail = doctor()[0]["rights"]
    tap.true(re.match(r"you may act on .*queues.*\. You are user \d+, with(out)? CAP_SYS_ADMIN, in (group|none of the groups) ", detail), detail)
    tap.same(state, "yes" if "everybody's" in detail else "own", detail)


@tap.test("who is in no group gpreempt is told how to join it, and how to make it where there is none")
def _(folder):
    if os.getuid() != 0:
        raise tap.Skip("only root can be another user")
    os.chmod(folder, 0o755)
    program = shutil.copy(tap.PROGRAM, folder)
    for group, made in (("", True), ("gpreempt:x:23456:\n", False)):
        tap.write(f"{folder}/group", "root:x:0:\n" + group)
        done = tap.good("-m", "--propagation", "private", "sh", "-c", f"mount --bind {folder}/group /etc/group && exec setpriv --reuid=65534 "
                        f"--regid=65534 --clear-groups {program} doctor --json", program="unshare")
        advice = json.loads(done.stdout)["advice"]
        tap.same("groupadd -r gpreempt && sudo usermod -aG gpreempt $USER" in advice, made, advice)
        tap.true("usermod -aG gpreempt $USER" in advice, advice)


def ask_without_names(folder, d, *words):
    """What getent is asked by a verb where no user and no group has a name."""
    if os.getuid() != 0:
        raise tap.Skip("only root can put other files there")
    tap.write(f"{folder}/asked", "")
    tap.write(f"{folder}/none", "")
    os.chmod(tap.write(f"{folder}/getent", f'#!/bin/sh\necho "$@" >>{folder}/asked\nexit 2\n'), 0o755)
    put = "".join(f"mount --bind {folder}/{mine} {path} && " for mine, path in (("none", "/etc/passwd"), ("none", "/etc/group"), ("getent", "/usr/bin/getent")))
    done = tap.run("-m", "--propagation", "private", "sh", "-c", put + 'exec "$@"', "sh", tap.PROGRAM, *words, program="unshare", env=d.env())
    return done, tap.read(f"{folder}/asked").splitlines()


@tap.test("ps asks once for a user whom nobody knows, however many rows are that user's")
def _(folder):
    with daemon(folder, "100:1", "200:1", "300:1", *(f"client={pid}:1:1:500" for pid in (100, 200, 300))) as d:
        done, asked = ask_without_names(folder, d, "ps")
    tap.same((done.returncode, len(done.stdout.splitlines()), asked), (0, 4, ["passwd 0"]), done.stdout + done.stderr)


@tap.test("when a queue cannot be stopped, groups are looked up only where a right is missing")
def _(folder):
    for text, wanted in (("only root and group gpreempt may do that", ["group gpreempt"]), ("process 100 is debugged by process 7", [])):
        with daemon(folder, "100:1", "100:2", "refuse=100:1=1", "refuse=100:2=1", f"text={text}") as d:
            done, asked = ask_without_names(folder, d, "suspend", "100:1", "100:2")
        tap.same((done.returncode, asked, text in done.stderr), (tap.FAILED, wanted, True), done.stderr)
        tap.same("usermod" in done.stderr, bool(wanted), done.stderr)


@tap.test("run --print-env prints what run sets, for a shell, and runs nothing")
def _(folder):
    need_preload()
    env = {key: value for key, value in os.environ.items() if not key.startswith(("GPREEMPT_", "LD_PRELOAD", "AMD_", "ROCR_"))}
    words = ("--online", "--weight", "200", "--slo", "20ms", "--tag", "it's $HOME", "--device", "0,2", "--socket", "my sock", "--quiet")
    printed = tap.good("run", *words, "--print-env", env=env, cwd=folder).stdout
    show = "env | grep -E '^(GPREEMPT_|LD_PRELOAD|AMD_|ROCR_)' | sort"
    by_eval = tap.good("-c", f'eval "$1"; {show}', "sh", printed, program="sh", env=env, cwd=folder).stdout
    tap.same(by_eval, tap.good("run", *words, "--", "sh", "-c", show, env=env, cwd=folder).stdout, "environment")
    tap.same(len(by_eval.splitlines()), 7, by_eval)
    tap.same(tap.good("run", "--quiet", "--print-env", env=env).stdout.count("\n"), 1, "without options: the agent alone")
    done = tap.run("run", "--print-env", "touch", f"{folder}/ran", env=env)
    tap.same((done.returncode, done.stdout, os.path.exists(f"{folder}/ran")), (tap.BAD_INPUT, "", False), done.stderr)
    done = tap.run("run", "--print-env", env=dict(env, GPREEMPT_AGENT="/nowhere/agent.so"))
    tap.same((done.returncode, done.stdout), (tap.FAILED, ""), done.stderr)
    tap.true("no agent at /nowhere/agent.so" in done.stderr, done.stderr)


@tap.test("selftest stops what runs on the simulated GPU, says that it is simulated, and needs no AMD GPU unless one is asked for")
def _(folder):
    no_amd()
    text = tap.good("selftest").stdout
    tap.true(text.startswith("ok   simulated MI308X: a running queue was stopped and resumed 10 times."), text)
    tap.true(" 0 while stopped, " in text and "There is no AMD GPU here" in text, text)
    told = json.loads(tap.good("selftest", "--backend", "sim", "--json").stdout)
    tap.same([(trial["backend"], trial["simulated"], trial["while_stopped"]) for trial in told["trials"]], [("sim", True, 0)], "trials")
    done = tap.run("selftest", "--backend", "kfd")
    tap.same((done.returncode, done.stdout), (tap.FAILED, "FAIL AMD GPU: could not open /dev/kfd: No such file or directory\n"), "kfd")
    tap.same(tap.run("selftest", "--backend", "cuda").returncode, tap.BAD_INPUT, "cuda")


@tap.test("a rule that is none is refused in one line")
def _(folder):
    done = tap.run("list", "--rule", "online:colour=blue")
    tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (tap.BAD_INPUT, "", 1), done.stderr)


tap.main()
