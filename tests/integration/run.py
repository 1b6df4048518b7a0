#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gpreempt run: the program is itself, but for the agent and what the environment tells it."""

import json
import os
import pty
import shutil
import signal
import struct
import subprocess

import tap
from gpreemptd import NOBODY, daemon, until
from preload import AGENT, DOUBLE, Daemon, python

PYTHON = "/usr/bin/python3"
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"
OURS = ("GPREEMPT_", "LD_PRELOAD", "AMD_QUEUE", "ROCR_", "HIP_")


def clean(**more):
    env = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return dict(env, GPREEMPT_SOCKET="/nowhere/sock", **more)


def run(*args, env=None, program=tap.PROGRAM, **more):
    return tap.run("run", *args, program=program, env=clean() if env is None else env, **more)


def shown(*args, env=None, **more):
    """The environment of a program that is run so."""
    done = run("--quiet", *args, "--", PYTHON, "-c", SHOW, env=env, **more)
    tap.same((done.returncode, done.stderr), (0, ""), " ".join(args))
    return json.loads(done.stdout)


def compiled(folder, *options, name="program", code="int main(void) { return 5; }"):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        raise tap.Skip("there is no C compiler")
    tap.write(f"{folder}/{name}.c", code)
    done = subprocess.run([compiler, *options, "-o", f"{folder}/{name}", f"{folder}/{name}.c"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise tap.Skip(f"the compiler has no {' '.join(options)}: {done.stderr.strip().splitlines()[-1]}")
    return f"{folder}/{name}"


def executable(path, text):
    tap.write(path, text)
    os.chmod(path, 0o755)
    return path


def copies(folder):
    """The program and the agent, where every user can reach them."""
    os.chmod(folder, 0o755)
    shutil.copy(AGENT, folder)
    return shutil.copy(tap.PROGRAM, folder)


# The environment


@tap.test("the program has the agent and what the options say in its environment")
def _(folder):
    env = shown("--online", "--weight", "300", "--slo", "1.5ms", "--tag", "front", "--device", "0,2", "--socket", "/run/x/sock")
    want = {"LD_PRELOAD": AGENT, "GPREEMPT_CLASS": "online", "GPREEMPT_WEIGHT": "300", "GPREEMPT_SLO": "1500000", "AMD_QUEUE_TAG": "front",
            "ROCR_VISIBLE_DEVICES": "0,2", "GPREEMPT_SOCKET": "/run/x/sock"}
    tap.same({name: env[name] for name in env if name.startswith(OURS)}, want, "environment")
    tap.same(shown("--offline")["GPREEMPT_CLASS"], "offline", "class")


@tap.test("where all GPUs are NVIDIA's, --device is said to CUDA, in the order of the PCI addresses, and not to ROCm")
def _(folder):
    before = clean(GPREEMPT_ROOT=os.path.join(tap.SOURCE, "tests", "unit", "trees", "nvidia"))
    env = shown("--device", "1,0", env=before)
    want = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1,0"}
    tap.same({name: env[name] for name in env if "VISIBLE" in name or "ORDER" in name}, want, "environment")
    printed = run("--device", "1", "--print-env", env=before).stdout
    tap.true("CUDA_VISIBLE_DEVICES" in printed and "ROCR" not in printed, printed)


@tap.test("without options the environment stays as it was, but for the agent")
def _(folder):
    before = clean(GPREEMPT_CLASS="online", GPREEMPT_WEIGHT="7", AMD_QUEUE_TAG="x", HIP_VISIBLE_DEVICES="1", FUNNY="a b\nc")
    tap.same(shown(env=before), dict(before, LD_PRELOAD=AGENT), "environment")
    tap.true("GPREEMPT_CLASS" not in shown(), "a class that nobody gave")


@tap.test("a tag of the other class is not left to the program, nor the priority that came with it; another tag is, and one that is given")
def _(folder):
    for word, tag, stays in (("--offline", "ONLINE_AI", False), ("--online", "OFFLINE_AI", False), ("--offline", "OFFLINE_AI", True), ("--online", "ONLINE_AI", True),
                             ("--offline", "BERT", True), ("--quiet", "ONLINE_AI", True)):
        before = clean(AMD_QUEUE_TAG=tag, AMD_QUEUE_PRIORITY="15")
        want = (tag, "15") if stays else (None, None)
        env = shown(word, env=before)
        tap.same((env.get("AMD_QUEUE_TAG"), env.get("AMD_QUEUE_PRIORITY")), want, f"{word} {tag}")
        printed = run("--quiet", word, "--print-env", env=before).stdout
        done = tap.run("-euc", printed + 'echo "${AMD_QUEUE_TAG-} ${AMD_QUEUE_PRIORITY-}"', program="/bin/sh", env=clean(AMD_QUEUE_TAG=tag, AMD_QUEUE_PRIORITY="15"))
        tap.same(done.stdout, " ".join(one or "" for one in want) + "\n", f"{word} {tag}: {printed}")
    env = shown("--offline", "--tag", "ONLINE_AI", env=clean(AMD_QUEUE_PRIORITY="15"))
    tap.same((env["AMD_QUEUE_TAG"], env["AMD_QUEUE_PRIORITY"]), ("ONLINE_AI", "15"), "a tag that is given")


@tap.test("the agent goes before what LD_PRELOAD has, and once if one run is in another")
def _(folder):
    other = compiled(folder, "-shared", "-fPIC", name="other.so")
    tap.same(shown(env=clean(LD_PRELOAD=other))["LD_PRELOAD"], f"{AGENT}:{other}", "with another")
    done = run("--quiet", "--online", "--", tap.PROGRAM, "run", "--quiet", "--offline", PYTHON, "-c", SHOW, env=clean(LD_PRELOAD=other))
    env = json.loads(done.stdout)
    tap.same((env["LD_PRELOAD"], env["GPREEMPT_CLASS"]), (f"{AGENT}:{other}", "offline"), "inner run")


@tap.test("a socket's path becomes absolute, since the program may go elsewhere")
def _(folder):
    tap.same(shown("--socket", "mine.sock", cwd=folder)["GPREEMPT_SOCKET"], f"{folder}/mine.sock", "socket")


@tap.test("GPREEMPT_AGENT names another agent; one that is not there is told, and the program runs")
def _(folder):
    other = shutil.copy(AGENT, f"{folder}/other.so")
    tap.same(shown(env=clean(GPREEMPT_AGENT="other.so"), cwd=folder)["LD_PRELOAD"], other, "another")
    done = run("sh", "-c", "echo $LD_PRELOAD; exit 4", env=clean(GPREEMPT_AGENT="/nowhere/agent.so"))
    tap.same((done.returncode, done.stdout), (4, "\n"), "without one")
    tap.same(done.stderr, "gpreempt: there is no agent at /nowhere/agent.so: it runs unscheduled; GPREEMPT_AGENT=FILE names another\n", "said")
    os.mkdir(f"{folder}/a b")
    done = run("true", env=clean(GPREEMPT_AGENT=shutil.copy(AGENT, f"{folder}/a b/")))
    tap.true("space or a colon" in done.stderr and done.returncode == 0, done.stderr)


@tap.test("the agent is in the program, and tells gpreemptd the class")
def _(folder):
    double = os.path.join(os.path.abspath(tap.BUILD), "tests", "libkfd_double.so")
    if not os.path.exists(double):
        raise tap.Skip("this build has no double of the driver")
    env = clean(GPREEMPT_KFD="/dev/full", KFD_DOUBLE_LOG=f"{folder}/log", LD_PRELOAD=double)
    with Daemon(f"{folder}/sock") as d:
        command = [tap.PROGRAM, "run", "--online", "--socket", f"{folder}/sock", "--", *python("create(); sys.stdin.read()")]
        with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
            d.accept()  # the verb, which asks; hung up on, it goes on
            d.hang_up()
            role, _, pid, seen = struct.unpack_from("<4I", d.accept(), 16)
            tap.same((role, pid, seen), (1, program.pid, 2), "an agent, of the program, online")
            program.stdin.close()
            tap.same(program.wait(), 0, "exit status")


# The program is itself


@tap.test("exit status, output, input and arguments are the program's own")
def _(folder):
    done = run("--quiet", "sh", "-c", "cat; echo out; echo err >&2; exit 42", input="in\n", stdin=None)
    tap.same((done.returncode, done.stdout, done.stderr), (42, "in\nout\n", "err\n"), "shell")
    spaced = executable(f"{folder}/my program", f"#!{PYTHON}\nimport sys; print(sys.argv)\n")
    done = run("--quiet", "--", spaced, "--online", "-h", "", "a b", "--")
    tap.same(done.stdout, f"{[spaced, '--online', '-h', '', 'a b', '--']}\n", "arguments")


@tap.test("process, group, signals and descriptors are those that the program would have had")
def _(folder):
    show = "import os, signal; print(os.getpid(), os.getpgrp(), sorted(os.listdir('/proc/self/fd')), signal.pthread_sigmask(0, ()), [int(s) for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN])"

    def started(*before, **more):
        with subprocess.Popen([*before, PYTHON, "-c", show], stdout=subprocess.PIPE, text=True, env=clean(), start_new_session=True, **more) as program:
            out = program.communicate()[0]
        pid, group, rest = out.split(" ", 2)
        tap.same((int(pid), int(group)), (program.pid, program.pid), "process and group")
        return rest

    with daemon(folder) as d:
        plain = started(stdin=subprocess.DEVNULL)
        tap.same(started(tap.PROGRAM, "run", "--online", "--socket", d.path, "--", stdin=subprocess.DEVNULL), plain, "with gpreemptd")
    tap.same(started(tap.PROGRAM, "run", "--quiet", "--", stdin=subprocess.DEVNULL), plain, "without")


@tap.test("a signal ends the program, and nothing is between it and its caller")
def _(folder):
    with subprocess.Popen([tap.PROGRAM, "run", "--quiet", "sleep", "100"], env=clean()) as program:
        until(lambda: tap.read(f"/proc/{program.pid}/comm") == "sleep\n", "it has become the program")
        program.send_signal(signal.SIGTERM)
        tap.same(program.wait(20), -signal.SIGTERM, "status")


@tap.test("at a terminal the program has it")
def _(folder):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(tap.PROGRAM, ["gpreempt", "run", "--quiet", "sh", "-c", "test -t 0 && test -t 1 && tty && read x && echo got $x && exit 6"], clean())
    os.write(terminal, b"word\n")
    text = b""
    while b"got word" not in text:
        text += os.read(terminal, 4096)
    tap.same(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 6, "status")
    tap.true(b"/dev/pts/" in text, text)
    os.close(terminal)


# What the agent does not reach


@tap.test("a static program runs, and one line says that it is unscheduled")
def _(folder):
    compiled(folder, "-static")
    done = run("./program", cwd=folder)
    tap.same((done.returncode, done.stderr), (5, "gpreempt: ./program is statically linked: it runs unscheduled\n"), "static")
    done = run("--quiet", "./program", cwd=folder)
    tap.same((done.returncode, done.stderr), (5, ""), "--quiet")


@tap.test("of a script the interpreter counts, through env and through other scripts")
def _(folder):
    static = compiled(folder, "-static")
    lines = {"one": f"#!{static} -x", "two": "#! /usr/bin/env program", "three": "#!/usr/bin/env -S A=b program -u", "four": f"#!{folder}/one",
             "five": "#!/usr/bin/env -Sprogram -u"}
    env = clean(PATH=f"{folder}:{os.environ['PATH']}")
    for name, line in lines.items():
        done = run(executable(f"{folder}/{name}", f"{line}\n"), env=env)
        tap.same((done.returncode, done.stderr), (5, f"gpreempt: {static}, which runs {folder}/{name}, is statically linked: it runs unscheduled\n"), line)
    for line in (f"#!{PYTHON}\n", "#!/usr/bin/env python3\n", ""):
        done = run(executable(f"{folder}/good", line), env=env)
        tap.true(done.returncode == 0 and "unscheduled" not in done.stderr, f"{line}: {done.stderr}")


@tap.test("a program that runs with more rights than its caller is told apart from one that only could")
def _(folder):
    if os.getuid() != 0:
        raise tap.Skip("only root can make a program set-uid root")
    if os.statvfs(folder).f_flag & os.ST_NOSUID:
        raise tap.Skip(f"{folder} is on a file system without set-uid")
    program = copies(folder)
    for mode, what in ((0o4755, "is setuid"), (0o2755, "is setgid")):
        other = shutil.copy("/bin/true", f"{folder}/other")
        os.chmod(other, mode)
        done = run(other, program=program, user=NOBODY, group=NOBODY, extra_groups=[])
        tap.same((done.returncode, done.stderr), (0, f"gpreempt: {other} {what}: it runs unscheduled\n"), what)
        tap.true(what not in run(other).stderr, "root has its own rights anyway")
    os.chmod(other, 0o755)
    try:
        os.setxattr(other, "security.capability", bytes.fromhex("0000000200200000") + bytes(12))
    except OSError as error:
        raise tap.Skip(f"no file capabilities in {folder}: {error}") from error
    done = run(other, program=program, user=NOBODY, group=NOBODY, extra_groups=[])
    tap.same(done.stderr, f"gpreempt: {other} has file capabilities: it runs unscheduled\n", "capabilities")


@tap.test("a program of another architecture or C library is left without the agent, which its loader would refuse")
def _(folder):
    other = bytearray(tap.read(AGENT, mode="rb"))
    other[18] ^= 0xFF  # e_machine
    tap.write(f"{folder}/agent.so", bytes(other))
    done = run("sh", "-c", "echo $LD_PRELOAD", env=clean(GPREEMPT_AGENT=f"{folder}/agent.so"))
    tap.same((done.stdout, done.stderr), ("\n", "gpreempt: sh is of another architecture: it runs unscheduled\n"), "architecture")
    os.mkdir(f"{folder}/lib")
    loader = compiled(folder, name="x", code="int main(void) { return 5; }")
    text = subprocess.run(["readelf", "-l", loader], capture_output=True, text=True, check=False).stdout if shutil.which("readelf") else ""
    if "interpreter: " not in text:
        raise tap.Skip("readelf does not tell the loader of a program")
    usual = text.split("interpreter: ")[1].split("]")[0]
    os.symlink(usual, f"{folder}/lib/ld-musl-x86_64.so.1")
    if len(folder) > 40:
        raise tap.Skip("the folder's name is too long for a loader's")
    done = run(compiled(folder, f"-Wl,--dynamic-linker={folder}/lib/ld-musl-x86_64.so.1", name="musl"))
    tap.same((done.returncode, done.stderr), (5, f"gpreempt: {folder}/musl uses another C library than the agent: it runs unscheduled\n"), "musl")


# Who schedules it


@tap.test("without gpreemptd the program runs, and one line says that nobody schedules it")
def _(folder):
    done = run("--socket", f"{folder}/none", "sh", "-c", "exit 9")
    tap.same((done.returncode, done.stderr.count("\n")), (9, 1), done.stderr)
    tap.true(done.stderr.startswith("gpreempt: nobody schedules it: ") and f"no gpreemptd at {folder}/none" in done.stderr, done.stderr)
    done = run("--quiet", "--socket", f"{folder}/none", "sh", "-c", "exit 9")
    tap.same((done.returncode, done.stderr), (9, ""), "--quiet")


@tap.test("with gpreemptd nothing is said, but to who would be online and may not")
def _(folder):
    program = copies(folder)
    with daemon(folder) as d:
        for args in (("--online",), ("--offline",), ()):
            done = run(*args, "--socket", d.path, "true")
            tap.same((done.returncode, done.stderr), (0, ""), f"root {args}")
        if os.getuid() != 0:
            raise tap.Skip("only root can be another user")
        as_nobody = {"program": program, "user": NOBODY, "group": NOBODY, "extra_groups": []}
        for args in (("--offline",), ()):
            done = run(*args, "--socket", d.path, "true", **as_nobody)
            tap.same((done.returncode, done.stderr), (0, ""), f"nobody {args}")
        done = run("--online", "--socket", d.path, "true", **as_nobody)
        tap.same((done.returncode, done.stderr.count("\n")), (0, 1), "online")
        tap.true("will take it for offline" in done.stderr and "usermod -aG gpreempt" in done.stderr, done.stderr)


# Bad input


@tap.test("a command that is not there is 127, one that cannot be executed 126, and both say what to do")
def _(folder):
    tap.write(f"{folder}/plain", "text")
    executable(f"{folder}/lost", "#!/nowhere/interpreter\n")
    for args, status, text in (
            (("no-such-command",), 127, "no-such-command: no such command in PATH; for a file in this folder write ./no-such-command"),
            (("./none",), 127, "./none: there is no such file"), (("",), 127, "no such command"), (("./plain/x",), 127, "no such file"),
            (("./plain",), 126, "./plain may not be executed; if it is a program: chmod +x ./plain"), ((".",), 126, ". is a folder: write"),
            (("/tmp",), 126, "/tmp is a folder: write"), (("./lost",), 126, "./lost: its interpreter is not there")):
        done = run("--quiet", "--", *args, cwd=folder)
        tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (status, "", 1), f"{args}: {done.stderr}")
        tap.true(text in done.stderr, done.stderr)
    env = clean(PATH=f"{folder}::/usr/bin:/bin")
    tap.same(run("--quiet", "plain", env=env).returncode, 126, "in PATH, not executable")
    executable(f"{folder}/plain", "exit 3\n")
    tap.same(run("--quiet", "plain", env=clean(PATH="/usr/bin:"), cwd=folder).returncode, 3, "an empty entry is this folder, and sh runs what has no #!")


@tap.test("a GPU that is not there is refused where it is known which are, and else told")
def _(folder):
    with daemon(folder) as d:
        for args, text in ((("--device", "1"), "--device: there is no GPU 1: there is 1, numbered from 0"), (("--device", "0,99"), "no GPU 99"),
                           (("--device", "99999999999999999999"), "no GPU 99999999999999999999")):
            done = run(*args, "--socket", d.path, "--quiet", "--", "touch", f"{folder}/made")
            tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (tap.BAD_INPUT, "", 1), f"{args}: {done.stderr}")
            tap.true(text in done.stderr, done.stderr)
            tap.true(not os.path.exists(f"{folder}/made"), "it ran")
        done = run("--device", "0", "--socket", d.path, "sh", "-c", "exit 9")
        tap.same((done.returncode, done.stderr), (9, ""), "one that is there")
    done = run("--device", "99", "--socket", f"{folder}/none", "sh", "-c", "exit 9")
    tap.same((done.returncode, done.stderr.split("\n")[0]), (9, "gpreempt: --device 99: nobody here knows whether there is such a GPU"), "unknown")
    tap.same(run("--device", "99", "--quiet", "--socket", f"{folder}/none", "true").stderr, "", "--quiet")


@tap.test("bad options are 2, and nothing runs")
def _(folder):
    for args, text in ((("--online",), "say what to run"), (("--online", "--offline", "touch", "x"), "write one of them"),
                       (("--weight", "0", "touch", "x"), "from 1 to 10000"), (("--weight", "10001", "touch", "x"), "from 1 to 10000"),
                       (("--slo", "20", "touch", "x"), "no unit"), (("--slo", "soon", "touch", "x"), "not a time"),
                       (("--device", "gpu0", "touch", "x"), "no list of GPUs"), (("--device", "0,,1", "touch", "x"), "no list of GPUs"),
                       (("--device", "0,", "touch", "x"), "no list of GPUs"), (("--tag", "", "touch", "x"), "empty"), (("--fast", "touch", "x"), "unknown option --fast")):
        done = run(*args, cwd=folder)
        tap.same((done.returncode, done.stderr.count("\n"), os.listdir(folder)), (2, 1, []), f"{args}: {done.stderr}")
        tap.true(text in done.stderr, f"{args}: {done.stderr}")


if not os.path.exists(DOUBLE):
    tap.skip_all("this build is instrumented: its libraries cannot be preloaded")
tap.main(jobs=2)
