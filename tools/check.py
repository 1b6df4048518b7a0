#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check.py [--build DIR] [--fast] [--san] [--html] [STEP...]: run every test, or only some steps, and count.

Prints a line per suite with the log of what failed; at the end what was skipped and why, what failed once more,
and last of all "N passed, N failed, N skipped". Exits 1 if anything failed.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

VM_SUITES = ["vm"]  # run in a virtual machine, in a step of their own that --fast leaves out
NOT_UNDER_VALGRIND = ["long", "integration", "static"]
MUST_HAVE_TESTS = ["unit", "integration", "static"]

COVERED = ["src/base", "src/core", "src/model", "src/policy"]
COVERAGE_BAR = 90.0  # per cent of lines, in each of them

# The builds besides the first, each in a folder of its own: compiler, meson's options, ninja's target, what it needs.
BUILDS = {
    "clang": ("clang", ["-Dwerror=true"], [], "clang"),
    "san": ("gcc", ["-Db_sanitize=address,undefined"], [], "gcc"),
    "cov": ("gcc", ["-Db_coverage=true", "-Dbuildtype=debug"], [], "gcovr"),
    "fuzz": ("clang", ["-Dfuzz=true", "-Db_sanitize=address,undefined", "-Db_lundef=false"], ["fuzzers"], "clang"),
}
BUILD_OF = {"clang": "clang", "sanitizers": "san", "coverage": "cov", "fuzz": "fuzz"}  # of a step

FUZZ_SECONDS = 60
GRACE = 10  # for what is built, between SIGTERM and SIGKILL
LOG_LINES = 60  # of one failure

SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:print_stacktrace=1",
}
VALGRIND = ("valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect "
            f"--suppressions={ROOT}/tools/valgrind.supp")


class Tally:
    """Counts of one suite, or of all, the logs of what failed, and why what was skipped was."""

    def __init__(self):
        self.passed = self.failed = 0
        self.logs = []
        self.skips = []  # (test, why)

    @property
    def skipped(self):
        return len(self.skips)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skips += other.skips

    def fail(self, name, log=""):
        self.failed += 1
        self.logs.append((name, log))

    def skip(self, name, why):
        self.skips.append((name, why.strip() or "it does not say why"))

    def reasons(self):
        """A line for each, with all that it kept from running."""
        names = {}
        for name, why in self.skips:
            names.setdefault(why, []).append(name)
        return [f"{len(kept)} skipped, {why}: {'; '.join(kept)}" for why, kept in names.items()]

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def run(command, **env):
    """Exit status and everything printed."""
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **env}, check=False, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    return done.returncode, done.stdout


def tail(text):
    lines = text.rstrip().splitlines()
    cut = [f"({len(lines) - LOG_LINES} lines before)"] if len(lines) > LOG_LINES else []
    return "\n".join("    " + line for line in cut + lines[-LOG_LINES:])


def count_tap(program, text):
    """Counts of one program's TAP. A planned test that never reported has failed."""
    tally = Tally()
    planned = None
    for line in text.splitlines():
        plan = re.match(r"1\.\.(\d+)\s*(?:#\s*(?:skip)?\S*\s*(.*))?", line, re.IGNORECASE)
        result = re.match(r"(not )?ok\b(?:\s+\d+)?(?:\s*-)?\s*(.*?)\s*(?:#\s*(?:skip|todo)\S*\s*(.*))?$", line, re.IGNORECASE)
        if plan:
            planned = int(plan[1])
            if planned == 0:
                tally.skip(f"all of {program}", plan[2] or "")
        elif result and result[3] is not None:
            tally.skip(f"{program}: {result[2]}", result[3])
        elif result and result[1]:
            tally.failed += 1
        elif result:
            tally.passed += 1
    seen = tally.passed + tally.failed + tally.skipped
    tally.failed += max(0, (planned or 0) - seen)
    return tally


def failed_cases(text):
    """Of a TAP too long to be shown, the cases that failed, each with what was said after it."""
    if len(text.splitlines()) <= LOG_LINES:
        return text
    shown = []
    failed = False
    for line in text.splitlines():
        if re.match(r"(not )?ok\b", line):
            failed = line.startswith("not")
        if failed:
            shown.append(line)
    return "\n".join(shown) + "\n" if shown else text


def count_test(test):
    """Counts of one line of meson's testlog.json."""
    text = test.get("stdout", "")
    tally = Tally()
    good = test["result"] in ("OK", "EXPECTEDFAIL", "SKIP")
    if re.search(r"^1\.\.\d+", text, re.MULTILINE):
        tally = count_tap(test["name"], text)
    elif test["result"] == "SKIP":
        tally.skip(test["name"], text)
    elif good:
        tally.passed = 1
    if not good:
        tally.failed = max(tally.failed, 1)  # all its tests may be well and valgrind not
        log = failed_cases(text) + test.get("stderr", "") + f"\n{test['result']}, exit status {test['returncode']}"
        tally.logs.append((test["name"], log))
    return tally


def read_testlog(path):
    """Counts of a whole testlog.json."""
    tally = Tally()
    with open(path, encoding="utf-8") as file:
        for line in file:
            one = count_test(json.loads(line))
            tally.add(one)
            tally.logs += one.logs
    return tally


class Aside:
    """Builds, one after the other, behind tests that mostly wait: half of the machine idles under those."""

    def __init__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(1)
        self.lock = threading.Lock()
        self.process = None
        self.is_over = False

    def begin(self, commands, **env):
        """The future of (seconds, the command that failed if one did, all that was printed)."""
        return self.pool.submit(self.work, commands, env)

    def work(self, commands, env):
        begin = time.monotonic()
        failed = None
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
            for command in commands:
                process = self.start(command, env, said)
                if not process:
                    break
                if process.wait():
                    failed = command
                    break
            said.seek(0)
            return time.monotonic() - begin, failed, said.read()

    def start(self, command, env, said):
        """None once it is over. What it prints is no pipe's: whom a build left behind would keep that open."""
        with self.lock:
            if self.is_over:
                return None
            self.process = subprocess.Popen(
                [os.path.join(ROOT, "tools", "aside.sh"), *command], cwd=ROOT, env={**os.environ, **env},
                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
            )
            return self.process

    def end(self):
        """Nothing is built for a check that has ended."""
        with self.lock:
            self.is_over = True
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process and self.process.poll() is None:
                with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(self.process.pid, number)
                    self.process.wait(GRACE)
        self.pool.shutdown(cancel_futures=True)


class Check:
    def __init__(self, options):
        self.build = options.build
        self.options = options
        self.total = Tally()
        self.gcc_built = None
        self.aside = Aside()
        self.builds = {}  # what is built aside: its future

    def folder(self, name):
        return os.path.join(self.build, name) if name else self.build

    def report(self, name, tally, begin, more=""):
        self.total.add(tally)
        print(f"{name:24} {tally}  ({time.monotonic() - begin:.1f} s{more})")
        for what, log in tally.logs:
            print(f"  {what}:\n{tail(log)}" if log else f"  {what}")
            self.total.logs.append((f"{name}: {what}", log))
        print(*(f"  {line}\n" for line in tally.reasons()), sep="", end="", flush=True)

    def commands(self, folder, options, target):
        path = self.folder(folder)
        exists = os.path.exists(os.path.join(ROOT, path, "build.ninja"))
        return [
            ["meson", "configure" if exists else "setup", path, *options],
            ["ninja", "--quiet", "-C", path, *target],
        ]

    def begin(self, steps):
        """Starts all that these steps need besides the first build."""
        for step in steps:
            folder = BUILD_OF.get(step)
            if folder and shutil.which(BUILDS[folder][3]):
                compiler, options, target, _ = BUILDS[folder]
                self.builds[folder] = self.aside.begin(self.commands(folder, options, target), CC=compiler)
        if "vm" in steps:
            self.builds["kernel"] = self.aside.begin([[os.path.join(ROOT, "kernel", "bed", "build")]])

    def built(self, name, what):
        """Waits for what is built aside; a suite of its own with one test. False if it failed."""
        begin = time.monotonic()
        seconds, failed, log = self.builds[what].result()
        return self.report_build(name, failed, log, begin, f"; {seconds:.0f} s beside the tests")

    def report_build(self, name, failed, log, begin, more=""):
        tally = Tally()
        if failed:
            tally.fail(" ".join(failed), log)
        else:
            tally.passed = 1
        self.report(name, tally, begin, more)
        return not failed

    def suites(self, folder):
        """Meson's suites in there, in a fixed order, but for those of the virtual machine."""
        status, text = run(["meson", "introspect", "--tests", self.folder(folder)])
        tests = json.loads(text) if status == 0 else []
        # Meson writes PROJECT:SUITE.
        found = {suite.split(":")[-1] for test in tests for suite in test["suite"]}
        return sorted((found | set(MUST_HAVE_TESTS)) - set(VM_SUITES))

    def meson_test(self, name, folder, suite, *args, **env):
        begin = time.monotonic()
        base = "check-" + re.sub(r"\W+", "-", name)
        wrapper = "-valgrind" if "--wrapper" in args else ""  # meson adds the name of its program
        log = os.path.join(ROOT, self.folder(folder), "meson-logs", base + wrapper + ".json")
        if os.path.exists(log):
            os.unlink(log)
        command = ["meson", "test", "-C", self.folder(folder), "--no-rebuild", "--suite", suite, "--logbase", base]
        status, text = run(command + list(args), **env)
        if os.path.exists(log):
            tally = read_testlog(log)
        else:
            tally = Tally()
            tally.fail(f"no test of suite {suite} was run", text)
        if status and not tally.failed:
            tally.fail(" ".join(command), text)
        self.report(name, tally, begin)

    def build_gcc(self):
        """Once, whichever step comes first."""
        if self.gcc_built is None:
            begin = time.monotonic()
            for command in self.commands("", ["-Dwerror=true"], []):
                status, log = run(command, CC="gcc")
                if status:
                    break
            self.gcc_built = self.report_build("gcc, -Werror", status and command, log, begin)
        return self.gcc_built

    def gcc(self):
        if self.build_gcc():
            for suite in self.suites(""):
                self.meson_test(suite, "", suite)

    def clang(self):
        if self.there("clang", "clang"):
            self.built("clang, -Werror", "clang")

    def sanitizers(self):
        if not self.built("sanitizers, build", "san"):
            return
        for suite in self.suites("san"):
            if suite != "static" or self.options.san:
                self.meson_test(f"sanitizers, {suite}", "san", suite, "--timeout-multiplier", "4", **SANITIZERS)

    def valgrind(self):
        if not self.there("valgrind", "valgrind") or not self.build_gcc():
            return
        for suite in self.suites(""):
            if suite not in NOT_UNDER_VALGRIND:
                self.meson_test(f"valgrind, {suite}", "", suite, "--timeout-multiplier", "20", "--wrapper", VALGRIND)

    def coverage(self):
        if not self.there("coverage", "gcovr") or not self.built("coverage, build", "cov"):
            return
        path = os.path.join(ROOT, self.folder("cov"))
        for folder, _, names in os.walk(path):
            for name in names:
                if name.endswith(".gcda"):  # of an earlier run
                    os.unlink(os.path.join(folder, name))
        self.meson_test("coverage, unit", "cov", "unit", "--timeout-multiplier", "4")
        self.coverage_bar(path)

    def coverage_bar(self, path):
        begin = time.monotonic()
        tally = Tally()
        out = os.path.join(path, "coverage.json")
        command = ["gcovr", "--root", ROOT, "--json-summary", out]
        if self.options.html:
            os.makedirs(os.path.join(path, "html"), exist_ok=True)
            command += ["--html-details", os.path.join(path, "html", "index.html")]
        for folder in COVERED:
            command += ["--filter", f"{folder}/"]
        status, log = run(command + [path])
        if status:
            tally.fail("gcovr", log)
        else:
            self.judge_coverage(out, tally)
        self.report("coverage, lines", tally, begin)
        if self.options.html and not status:
            print(f"{self.folder('cov')}/html/index.html shows each line.")

    def judge_coverage(self, path, tally):
        with open(path, encoding="utf-8") as file:
            files = json.load(file)["files"]
        for folder in COVERED:
            inside = [entry for entry in files if entry["filename"].startswith(folder + "/")]
            lines = sum(entry["line_total"] for entry in inside)
            hit = sum(entry["line_covered"] for entry in inside)
            percent = 100.0 * hit / lines if lines else 0.0
            print(f"  {folder:20} {percent:5.1f} % of {lines} lines")
            if percent >= COVERAGE_BAR:
                tally.passed += 1
                continue
            worst = sorted(inside, key=lambda entry: entry["line_covered"] - entry["line_total"])[:5]
            text = "\n".join(f"{entry['filename']}: {entry['line_percent']} %" for entry in worst)
            tally.fail(f"{folder}: {percent:.1f} % of {lines} lines, {COVERAGE_BAR:.0f} % is the bar", text)

    def fuzz(self):
        if not self.there("fuzz", "clang") or not self.built("fuzz, build", "fuzz"):
            return
        begin = time.monotonic()
        tally = Tally()
        folder = os.path.join(ROOT, self.folder("fuzz"), "tests")
        names = sorted(name for name in os.listdir(folder) if re.fullmatch(r"fuzz_\w+", name))
        running = [(name, self.start_fuzzer(folder, name)) for name in names]
        for name, process in running:
            process.wait()
            with open(os.path.join(folder, name + ".log"), encoding="utf-8", errors="replace") as file:
                log = file.read()
            if process.returncode:
                tally.fail(name, log)
            else:
                tally.passed += 1
                done = re.search(r"Done (\d+) runs in (\d+) second", log)
                print(f"  {name}: {done[1]} inputs in {done[2]} s" if done else f"  {name}")
        if not names:
            tally.fail("no fuzz target is listed")
        self.report("fuzz", tally, begin)

    def start_fuzzer(self, folder, name):
        """It grows a corpus of its own in the build and only reads the one in the tree."""
        corpus = os.path.join(folder, "corpus", name)
        crashes = os.path.join(folder, "crashes", name) + "-"
        os.makedirs(corpus, exist_ok=True)
        os.makedirs(os.path.dirname(crashes), exist_ok=True)
        seeds = os.path.join(ROOT, "tests", "fuzz", "corpus", name.replace("fuzz_", "", 1))
        command = [
            os.path.join(folder, name), corpus, *([seeds] if os.path.isdir(seeds) else []),
            f"-max_total_time={self.options.fuzz_seconds}", "-timeout=10", "-rss_limit_mb=2048",
            "-print_final_stats=0", "-verbosity=1", f"-artifact_prefix={crashes}",
        ]
        # To a file: nobody reads a pipe while they all run.
        with open(os.path.join(folder, name + ".log"), "wb") as log:
            return subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, **SANITIZERS},
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )

    def install(self):
        """What is installed can be found, linked and run."""
        if not self.build_gcc():
            return
        begin = time.monotonic()
        tally = Tally()
        status, log = run([os.path.join(ROOT, "tools", "check-install.sh"), self.folder("")])
        if status:
            tally.fail("check-install.sh", log)
        else:
            tally.passed = 1
        self.report("install", tally, begin)

    def vm(self):
        """The driver's tests, on a kernel that takes minutes to build the first time."""
        if not self.build_gcc() or not self.built("kernel", "kernel"):
            return
        for suite in VM_SUITES:
            self.meson_test(suite, "", suite)

    def run(self, steps):
        """The first build by itself, for most of the tests are its; the others beside these."""
        if set(steps) & FIRST_BUILD:
            self.build_gcc()
        self.begin(steps)
        for step in steps:
            getattr(self, step)()

    def there(self, step, program):
        if shutil.which(program):
            return True
        tally = Tally()
        tally.skip(step, f"{program} is not installed")
        self.report(step, tally, time.monotonic())
        return False


STEPS = ["gcc", "clang", "install", "sanitizers", "valgrind", "coverage", "fuzz", "vm"]
FIRST_BUILD = {"gcc", "install", "valgrind", "vm"}  # steps that run what it made
VM_STEPS = ["vm"]
SAN_STEPS = ["sanitizers", "fuzz"]


def main():
    parser = argparse.ArgumentParser(description="Run every test and count.")
    parser.add_argument("--build", default="build", help="build folder, relative to the project's root")
    parser.add_argument("--fast", action="store_true", help="leave out what needs a virtual machine")
    parser.add_argument("--san", action="store_true", help="all tests under ASan and UBSan")
    parser.add_argument("--html", action="store_true", help="with coverage: pages that show each line")
    parser.add_argument("--fuzz-seconds", type=int, default=FUZZ_SECONDS, help="for each target")
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(STEPS)}; all if none is given")
    options = parser.parse_args()
    unknown = set(options.steps) - set(STEPS)
    if unknown:
        parser.error(f"no such step: {', '.join(sorted(unknown))}")
    steps = options.steps or (SAN_STEPS if options.san else STEPS)
    check = Check(options)
    for number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # by nohup
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        check.run([step for step in steps if not options.fast or step not in VM_STEPS])
    finally:
        check.aside.end()
    print(*(f"{line}\n" for line in check.total.reasons()), sep="", end="")
    for name, log in check.total.logs:  # again: an hour of output lies between a failure and the end
        print(f"failed, {name}:\n{tail(log)}")
    print(check.total)
    sys.exit(1 if check.total.failed else 0)


if __name__ == "__main__":
    main()
