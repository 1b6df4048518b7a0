#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=300 memory=3G xccs=2
"""doctor on the real driver: what it says of the machine is so, and what it does there leaves nothing behind."""

import glob
import json
import os
import subprocess

import amd
import tap

NOBODY = 65534
TIMES = 10
SESSIONS = "/sys/class/kfd/kfd/sched_version"  # of kernel/series, which mends that hang, too


def doctor(*words, program=tap.PROGRAM, user=None):
    """(what it found, exit status)"""
    name = () if os.path.basename(program) != "gpreempt" else ("doctor",)
    as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
    done = subprocess.run([*as_user, program, *name, "--json", *words], capture_output=True, text=True, check=False)
    tap.same(done.stderr, "", "stderr")
    return json.loads(done.stdout), done.returncode


def states(found):
    return {check["what"]: check["state"] for check in found["checks"]}


def detail(found, what):
    return next(check["detail"] for check in found["checks"] if check["what"] == what)


def notes_name(folder, name="test_api_availability"):
    path = f"{folder}/{name}"
    os.symlink(tap.PROGRAM, path)
    os.chmod(folder, 0o755)
    return path


def close_up():
    """Only root may use the GPU."""
    for path in ("/dev/kfd", *glob.glob("/dev/dri/renderD*")):
        os.chmod(path, 0o600)


@tap.test("as root everything that this kernel has is there, and a queue of its own was stopped and resumed")
def _(folder):
    found, status = doctor()
    tap.same(status, 0, "exit status")
    tap.same((found["works"], found["amd"]), (True, True), "works")
    want = {"AMD driver": "yes", "rights": "yes", "cwsr_enable": "yes", "debugfs": "yes", "UPDATE_QUEUE": "yes",
            "DBG_TRAP": "yes", "private calls": "?", "batch call": "yes" if os.path.exists(SESSIONS) else "no", "own queue": "yes", "gpreemptd": "no"}
    have = states(found)
    tap.same({what: have.get(what) for what in want}, want, "checks")
    tap.true("gpreemptd" in found["advice"], found["advice"])
    tap.true("90402" in detail(found, "own queue"), detail(found, "own queue"))
    tap.true("not tried: gpreempt doctor --intrusive does" in detail(found, "DBG_TRAP"), detail(found, "DBG_TRAP"))


@tap.test("with --intrusive the debugger's interface is tried too; on a stock gfx942 that DISABLE hangs is said, and nothing is left behind")
def _(folder):
    found, _ = doctor("--intrusive")
    stock = ("no", "suspends and resumes a queue, but DISABLE hung, until a signal after")
    state, said = ("yes", "a queue suspended in") if os.path.exists(SESSIONS) else stock
    tap.true(said in detail(found, "DBG_TRAP"), detail(found, "DBG_TRAP"))
    tap.same(states(found)["DBG_TRAP"], state, "DBG_TRAP")
    amd.until(lambda: not os.listdir("/sys/class/kfd/kfd/proc"), "its processes are gone from the driver")


@tap.test("selftest stops a running queue: it stands still, and goes on; a program that is at work meanwhile does too")
def _(folder):
    target = subprocess.Popen([amd.TARGET, "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        tap.same(target.stdout.readline().split()[0], "ready", "the target")
        done = subprocess.run([notes_name(folder, "test_cwsr_lv3"), "--backend", "kfd", "--json"], capture_output=True, text=True, check=False)
        trial = json.loads(done.stdout)["trials"][0]
        tap.same((done.returncode, trial["works"], trial["rounds"], trial["while_stopped"]), (0, True, 10, 0), trial)
        tap.true(trial["before"] > 0 and trial["after"] > 0 and not trial["simulated"], trial)
        target.stdin.write("end\n")
        target.stdin.flush()
        begun, ended, wrong, status = map(int, target.stdout.readline().split()[1:])
        tap.same((ended, wrong, status), (begun, 0, 0), "dispatches ended, ended twice, error")
    finally:
        target.kill()
        target.wait()


@tap.test("by the notes' name it exits 0 for the same reason")
def _(folder):
    tap.same(doctor(program=notes_name(folder))[1], 0, "exit status")


@tap.test("what it does leaves nothing behind, however often")
def _(folder):
    before = amd.stat("bad_addresses")
    for _ in range(TIMES):
        tap.same(states(doctor()[0])["own queue"], "yes", "own queue")
    amd.until(lambda: not os.listdir("/sys/class/kfd/kfd/proc"), "its processes are gone from the driver")
    tap.same(amd.stat("bad_addresses"), before, "addresses that are none")


@tap.test("a program that is at work meanwhile goes on")
def _(folder):
    target = subprocess.Popen([amd.TARGET, "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        tap.same(target.stdout.readline().split()[0], "ready", "the target")
        tap.same(states(doctor()[0])["own queue"], "yes", "own queue")
        target.stdin.write("end\n")
        target.stdin.flush()
        begun, ended, wrong, status = map(int, target.stdout.readline().split()[1:])
        tap.same((ended, wrong, status), (begun, 0, 0), "dispatches ended, ended twice, error")
    finally:
        target.kill()
        target.wait()


@tap.test("without rights it says which are missing and how to get them, and the notes' name exits 1")
def _(folder):
    close_up()
    found, status = doctor(user=NOBODY)
    have = states(found)
    tap.same(status, 0, "exit status: the simulated GPU works")
    tap.same((have["AMD driver"], have["own queue"], have["debugfs"]), ("denied", "denied", "denied"), "checks")
    tap.same((found["works"], found["amd"]), (True, False), "works")
    tap.true("usermod -aG render" in found["advice"], found["advice"])
    tap.true("without CAP_SYS_ADMIN" in detail(found, "rights"), detail(found, "rights"))
    tap.same(doctor(program=notes_name(folder), user=NOBODY)[1], 1, "exit status")


@tap.test("with the driver open and the render node closed, it says so")
def _(folder):
    close_up()
    os.chmod("/dev/kfd", 0o666)
    found, _ = doctor(user=NOBODY)
    tap.same(states(found)["DBG_TRAP"], "yes", "DBG_TRAP")
    tap.same(states(found)["own queue"], "denied", "own queue")
    tap.true("render node" in detail(found, "own queue"), detail(found, "own queue"))


@tap.test("a user with both open stops and resumes a queue without being root")
def _(folder):
    for path in ("/dev/kfd", *glob.glob("/dev/dri/renderD*")):
        os.chmod(path, 0o666)
    found, status = doctor(program=notes_name(folder), user=NOBODY)
    tap.same((states(found)["own queue"], status), ("yes", 0), detail(found, "own queue"))
    tap.same(states(found)["rights"], "own", detail(found, "rights"))


tap.main()
