#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""mutants.py [--list] [--sample N] [--seed S] [--since REV] [--jobs N] [PATH...]: do the tests notice small changes?

Changes the C files of each PATH (a folder or a file; src/daemon, src/agent and src/lib if there is none) in one place at
a time, in copies of the tree, and runs the tests of that folder until one fails. Prints each change that no test noticed,
and last of all "N mutants, N killed, N survived, N accepted: S %". Changes that do not compile, or give the same code, are
left out. Those that no test can notice are listed in tools/mutants-accepted.txt, with the reason.
"""

import argparse
import concurrent.futures
import contextlib
import glob
import os
import queue
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import mutate

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ACCEPTED = os.path.join(ROOT, "tools", "mutants-accepted.txt")
DEFAULT = ["src/daemon", "src/agent", "src/lib"]

# Of each folder: the unit tests and the files of tests/integration that are about it.
TESTS = {
    "src/agent": (["agent", "own", "server"], ["agent.py", "guest.py"]),
    "src/backend": (["nvrm", "own", "backend", "describe", "session"], ["agent.py", "guest.py", "nvrm.py", "session.py"]),
    "src/base": (["base", "listen", "server"], ["names.py"]),
    "src/cli": (["top"], ["bad_input.py", "amd_cli.py", "completion.py", "find.py", "outputs.py", "run.py", "terminal.py", "top.py", "verbs.py", "nvrm.py", "metrics.py"]),
    "src/cluster": (["cluster"], ["cluster_sim.py"]),
    "src/core": (["core", "bad_policy", "policy", "holds", "stats"], []),
    "src/daemon": (["decisions", "devices", "loop", "notify", "session"], ["drain.py", "debugger.py", "session.py", "recorded.py", "conf.py", "scheduler.py", "daemon.py", "trust.py", "containers.py", "oldkernel.py", "nvrm.py", "journal.py"]),
    "src/discover": (["discover", "dumps", "classes", "cgroup", "describe"], ["find.py", "cgroup.py", "places.py", "names.py", "nvrm.py"]),
    "src/ini": (["parse"], ["bad_input.py", "conf.py"]),
    "src/level": (["cuda", "level", "rocr"], ["opencl.py"]),
    "src/lib": (["lib", "compat"], ["compat.py", "amd_cli.py", "verbs.py"]),
    "src/machine": (["machine"], ["determinism.py"]),
    "src/metrics": (["metrics"], ["metrics.py"]),
    "src/model": (["model", "gpu", "leap"], []),
    "src/policy": (["policy", "core", "bad_policy", "load"], ["policy.py"]),
    "src/simgpu": (["simgpu"], ["simgpu.py", "failopen.py"]),
    "src/slurm": (["slurm"], ["slurm.py"]),
    "src/study": (["parse"], ["bad_input.py", "outputs.py", "terminal.py"]),
    "src/wire": (["wire"], ["recorded.py", "daemon.py"]),
}

# The tests of these run in the virtual machine: they are left out unless they are named.
ELSEWHERE = ["src/backend/kfd/packets.c", "src/backend/kfd/probe.c", "src/daemon/dbg.c", "src/backend/kfd/trap.c"]

TIMES, MORE = 3, 10  # a test that takes so many times as long as on the tree as it is, and so many seconds more, has noticed
MEMORY, FILE = 8 << 30, 256 << 20  # bytes that a mutant may have, and write
KILLED, SURVIVED, NONE = "killed", "survived", "none"


class Failed(Exception):
    """What went wrong, in lines."""


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def run(command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **more)
    return done.returncode, done.stdout


def must(command, **more):
    status, text = run(command, **more)
    if status:
        raise Failed(f"{' '.join(command)}:\n{text[-4000:]}")
    return text


def area(path):
    return "/".join(path.split("/")[:2])


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Copy:
    """The tree in a place of its own, and its build."""

    def __init__(self, folder, files, areas):
        self.source, self.build, self.log = (os.path.join(folder, name) for name in ("source", "build", "log"))
        for name in files:
            target = os.path.join(self.source, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), target, follow_symlinks=False)
        self.changed = None  # (path, text as it was)
        # Without debug information: the same code is the same object.
        must(["meson", "setup", "-Ddebug=false", self.build, self.source])
        linked = re.findall(r"^(\S+): c_LINKER", must(["ninja", "-C", self.build, "-t", "targets", "all"]), re.MULTILINE)
        units = {f"tests/test_{name}" for one in areas for name in TESTS[one][0]}
        doubles = {"tests/fake_gpreemptd", "tests/guest"}
        self.targets = [name for name in linked if not name.startswith(("tests/", "bench/"))
                        or name.endswith(".so") or name in units | doubles]
        must(self.ninja())

    def ninja(self):
        return ["ninja", "--quiet", "-j1", "-C", self.build, *self.targets]

    def path(self, name):
        return os.path.join(self.source, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def objects(self, name):
        """What is made of that file alone."""
        found = {}
        for path in glob.glob(f"{self.build}/**/*{name.replace('/', '_')}.o", recursive=True):
            with open(path, "rb") as file:
                found[path] = file.read()
        return found

    def restore(self):
        if self.changed:
            self.write(*self.changed)
            self.changed = None

    def commands(self, folder):
        """(name, command) of each test of an area."""
        units, scripts = TESTS[folder]
        there = [name for name in scripts if os.path.exists(self.path(f"tests/integration/{name}"))]
        return ([(name, [f"{self.build}/tests/test_{name}"]) for name in units] +
                [(name, [sys.executable, self.path(f"tests/integration/{name}"), "--stop"]) for name in there])

    def passes(self, command, seconds):
        env = {**os.environ, "GPREEMPT_BUILD": self.build, "GPREEMPT_SOURCE": self.source, "PYTHONDONTWRITEBYTECODE": "1",
               "PYTHONPATH": self.path("tests"), "CMOCKA_MESSAGE_OUTPUT": "TAP"}
        with open(self.log, "wb") as log:
            process = subprocess.Popen(command, env=env, cwd=self.source, start_new_session=True, preexec_fn=limit,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a mutant leaves behind what it should have ended
            process.wait()

    def judge(self, mutant, limits):
        self.restore()
        if run(self.ninja())[0]:
            raise Failed(f"{self.source} no longer builds as it was")
        before = self.objects(mutant.path)
        text = read(self.path(mutant.path))
        self.changed = mutant.path, text
        self.write(mutant.path, mutant.apply(text))
        if run(self.ninja())[0] or (before and self.objects(mutant.path) == before):
            return NONE
        commands = sorted(self.commands(area(mutant.path)), key=lambda entry: limits[entry[0]])
        return SURVIVED if all(self.passes(command, limits[name]) for name, command in commands) else KILLED


def clean_run(copy, areas):
    """{test: seconds it is given}, by how long each takes with nothing changed."""
    limits = {}
    for name, command in sorted({entry[0]: entry for one in areas for entry in copy.commands(one)}.values()):
        begin = time.monotonic()
        if not copy.passes(command, 600):
            raise Failed(f"{name} does not pass with nothing changed:\n{read(copy.log)}")
        limits[name] = TIMES * (time.monotonic() - begin) + MORE
    return limits


def tracked():
    text = must(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    return sorted(name for name in set(text.split("\0")) if name and os.path.lexists(os.path.join(ROOT, name)))


def changed_lines(rev):
    """{(path, line)} that are not as they were in rev."""
    lines, path = set(), None
    for text in must(["git", "-C", ROOT, "diff", "-U0", "--no-color", rev, "--", "src"]).splitlines():
        name, hunk = re.match(r"\+\+\+ b/(.*)", text), re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", text)
        path = name[1] if name else path
        if hunk:
            lines |= {(path, int(hunk[1]) + i) for i in range(int(hunk[2] or 1))}
    return lines


def is_of(name, path):
    return name == path or (name.startswith(path + "/") and name not in ELSEWHERE)


def choose(options):
    """The mutants that are wanted, in order."""
    paths = [os.path.relpath(os.path.abspath(path), ROOT) for path in options.paths] or DEFAULT
    files = [name for name in tracked() if name.endswith((".c", ".h")) and any(is_of(name, path) for path in paths)]
    unknown = {area(name) for name in files} - set(TESTS)
    if unknown or not files:
        raise Failed(f"{', '.join(sorted(unknown) or paths)}: no C files that TESTS in {__file__} knows")
    found = []
    for name in files:
        found += mutate.mutants(name, read(os.path.join(ROOT, name)))
    if options.since:
        lines = changed_lines(options.since)
        found = [mutant for mutant in found if (mutant.path, mutant.line) in lines]
    if options.sample and options.sample < len(found):
        found = sorted(random.Random(options.seed).sample(found, options.sample), key=found.index)
    return found


def accepted():
    """{name of a mutant: why nobody can notice it}"""
    lines = [line.partition(" # ") for line in read(ACCEPTED).splitlines() if line and not line.startswith("#")]
    without = [name for name, _, why in lines if not why]
    if without:
        raise Failed("\n".join([f"{ACCEPTED}: no reason:", *without]))
    return {name: why for name, _, why in lines}


def judge_all(found, jobs):
    """Yields (mutant, verdict), in order."""
    areas = sorted({area(mutant.path) for mutant in found})
    files = tracked()
    with tempfile.TemporaryDirectory(prefix="gpreempt-mutants-") as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        os.chmod(folder, 0o755)  # tests run programs as other users
        places = [os.path.join(folder, str(number)) for number in range(min(jobs, len(found)))]
        copies = list(pool.map(lambda place: Copy(place, files, areas), places))
        limits = clean_run(copies[0], areas)
        free = queue.SimpleQueue()
        for copy in copies:
            free.put(copy)

        def one(mutant):
            copy = free.get()
            try:
                return mutant, copy.judge(mutant, limits)
            finally:
                free.put(copy)

        yield from pool.map(one, found)


def report(found, jobs):
    known = accepted()
    tried = [mutant for mutant in found if mutant.name() not in known]
    count = {KILLED: 0, SURVIVED: 0, NONE: 0}
    for mutant, verdict in judge_all(tried, jobs) if tried else ():
        count[verdict] += 1
        if verdict == SURVIVED:
            print(mutant, flush=True)
    judged, left_out = count[KILLED] + count[SURVIVED], len(found) - len(tried)
    percent = 100.0 * count[KILLED] / judged if judged else 100.0
    print(f"{judged + left_out} mutants, {count[KILLED]} killed, {count[SURVIVED]} survived, {left_out} accepted: {percent:.1f} %")


def main():
    parser = argparse.ArgumentParser(description="Do the tests notice small changes?", epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="the changes, and nothing is run")
    parser.add_argument("--sample", type=int, metavar="N", help="only so many of them, by chance")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of that chance; %(default)s unless given")
    parser.add_argument("--since", metavar="REV", help="only in lines that are not as they were in that revision")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="copies of the tree at work; %(default)s unless given")
    parser.add_argument("paths", nargs="*", metavar="PATH")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        found = choose(options)
        if options.list:
            print(*found, sep="\n")
        else:
            report(found, options.jobs)
    except Failed as why:
        sys.exit(str(why))


if __name__ == "__main__":
    main()
