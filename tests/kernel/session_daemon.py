#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=900 memory=3G param=cus=8 vm=own
"""gpreemptd with the driver's scheduling sessions: it stops queues of any process itself, all of them in one call."""

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import time

import amd
import tap
import suspended  # after tap, which finds it

VERSION = "/sys/class/kfd/kfd/sched_version"
NOTES = os.path.join(os.path.abspath(tap.BUILD), "tests", "kernel", "notes_poc_v2")
CONF = "[scheduler]\nmax_starve = never\nlinger = 1ms\n"  # no slice for the starved, which would look like a fault
CALL = 0xc0404b29  # _IOWR('K', 0x29, 64 bytes)
CREATE, SET, STOP = 1, 2, 1
ALL_QUEUES, ENTRY = 0xffffffff, 40  # bytes of an entry
PACKETS = ("unmap", "query_status", "runlist")
LEASE = suspended.LEASE

suspended.add_cases(suspended.Way("session", cycles=lambda processes, queues: 1, agent=False))


@contextlib.contextmanager
def packets(**want):
    """What is done inside is so many packets to the GPU."""
    before = {name: amd.stat(name) for name in PACKETS}
    yield
    have = {name: amd.stat(name) - before[name] for name in PACKETS}
    tap.same({name: have[name] for name in want}, want, f"packets ({have})")


@contextlib.contextmanager
def scheduled(folder, *options, conf=CONF):
    with amd.Machine(folder, "--config", tap.write(f"{folder}/conf", conf), *options) as machine:
        yield machine
        tap.same(amd.stat("bad_restores"), 0, "bad restores")


def offline(machine, queues=2):
    """Without an agent."""
    return machine.target(queues, agent=False)


def online(machine):
    target = machine.target(1, env={"GPREEMPT_CLASS": "online"})
    target.tell("idle")
    return target


def is_off(machine, target):
    return set(machine.states(target).values()) == {"suspended"}


def is_on(machine, target):
    return set(machine.states(target).values()) == {"running"}


def events(machine):
    return [json.loads(line) for line in machine.good("events", "--json").stdout.splitlines()]


@tap.test("24 queues in 8 processes, none with an agent: one unmap and one fence for the stop, one run list for the resume")
def _(folder):
    with amd.Machine(folder) as machine:
        targets = [offline(machine, 3) for _ in range(8)]
        with packets(unmap=1, query_status=1, runlist=0):
            machine.good("suspend", *suspended.pids(targets), "--lease", LEASE)
        tap.true(all(is_off(machine, one) and one.stands_still() for one in targets), "one goes on")
        with packets(unmap=0, query_status=0, runlist=1):
            machine.good("resume", *suspended.pids(targets))
        found = machine.stats()
        tap.same((found["suspends"], found["resumes"], found["cycles"]), (24, 24, 2), "what stats says")
        for one in targets:
            one.goes_on()
            one.end()


def gives_way(machine, trains, serves):
    serves.tell("busy")
    amd.until(lambda: is_off(machine, trains), "offline is suspended")
    tap.true(trains.stands_still(), "offline goes on beside online")


@tap.test("offline work without an agent is off the GPU while online works, again and again, and loses nothing")
def _(folder):
    away = suspended.waves_away()
    with scheduled(folder) as machine:
        trains, serves = offline(machine, 4), online(machine)
        trains.goes_on()
        for _ in range(5):
            gives_way(machine, trains, serves)
            serves.tell("idle")
            trains.goes_on()
        amd.until(lambda: is_on(machine, trains), "it runs")
        tap.same(machine.stats()["failures"], 0, "failures")
        serves.end()
        trains.end()
        tap.same(suspended.waves_away(), away, "waves that did not come back")


@tap.test("what a stopped program creates is stopped from the beginning, and runs with the rest")
def _(folder):
    with scheduled(folder) as machine:
        trains, serves = offline(machine, 2), online(machine)
        gives_way(machine, trains, serves)
        with packets(runlist=0):  # nobody but the driver knows of it yet
            trains.ask("create")
        tap.true(trains.stands_still(), "it goes on")
        serves.tell("idle")
        trains.goes_on()
        serves.end()
        trains.end()


@tap.test("a program whose queues have all gone while it was stopped runs when online work is over")
def _(folder):
    with scheduled(folder, "--lease", "60s") as machine:  # without queues it is let go when the session is renewed
        trains, serves = offline(machine, 1), online(machine)
        gives_way(machine, trains, serves)
        trains.tell(f"drop {next(iter(trains.rings))}")
        amd.until(lambda: not machine.queues(trains), "gpreemptd has seen that")
        serves.tell("idle")
        time.sleep(2)
        trains.ask("create")
        trains.goes_on()
        serves.end()
        trains.end()


@tap.test("kill -9 of gpreemptd: offline goes on at once, long before the lease ends; the next one stops it again")
def _(folder):
    with scheduled(folder) as machine:
        trains, serves = offline(machine), online(machine)
        gives_way(machine, trains, serves)
        machine.daemon.kill()
        machine.daemon.wait()
        trains.goes_on()
        machine.start("--config", f"{folder}/conf")
        amd.until(lambda: is_off(machine, trains), "offline is suspended again")
        tap.true(trains.stands_still(), "offline goes on beside online")
        serves.tell("idle")
        trains.goes_on()
        serves.end()
        trains.end()


@tap.test("a gpreemptd that hangs: offline goes on when the lease ends, and is off again when it wakes")
def _(folder):
    with scheduled(folder, "--lease", amd.SOME_LEASE) as machine:
        trains, serves = offline(machine), online(machine)
        gives_way(machine, trains, serves)
        machine.daemon.send_signal(signal.SIGSTOP)
        trains.goes_on()
        machine.daemon.send_signal(signal.SIGCONT)
        amd.until(lambda: is_off(machine, trains), "offline is suspended again")
        tap.true(trains.stands_still(), "offline goes on beside online")
        tap.true("lease" in [one["event"] for one in events(machine)], "no event tells that a lease ended")
        serves.tell("idle")
        trains.goes_on()
        serves.end()
        trains.end()


@tap.test("a lease is kept for as long as gpreemptd lives")
def _(folder):
    with scheduled(folder, "--lease", amd.SOME_LEASE) as machine:
        trains, serves = offline(machine), online(machine)
        gives_way(machine, trains, serves)
        before = trains.progress()
        time.sleep(15)
        tap.same(trains.progress(), before, "what it did in more than two leases")
        serves.tell("idle")
        trains.goes_on()


@tap.test("list, events and the capabilities say session; --way session takes it, --way update the agent's")
def _(folder):
    with amd.Machine(folder, "--ways", "update,session?") as machine:
        bare, ours = machine.target(1), machine.target(1)
        tap.same({queue["way"] for queue in machine.list()["queues"]}, {"update"}, "ways")
        machine.good("suspend", str(bare.pid), "--way", "session", "--lease", LEASE)
        machine.good("suspend", str(ours.pid), "--lease", LEASE)
        tap.same({one["pid"]: one["way"] for one in events(machine) if one["event"] == "suspend"}, {bare.pid: "session", ours.pid: "update"}, "ways")
        tap.true(bare.stands_still() and ours.stands_still(), "one goes on")
        machine.good("resume", str(bare.pid), str(ours.pid))
        bare.goes_on()
        ours.goes_on()
    with amd.Machine(folder) as machine:
        bare = offline(machine)
        found = machine.list()
        tap.same({queue["way"] for queue in found["queues"]}, {"session"}, "ways")
        tap.true({"batch", "cross-process"} <= set(found["devices"][0]["can"]), found["devices"])


def queue_states(target):
    folder = f"/sys/class/kfd/kfd/proc/{target.pid}/queues"
    return [tap.read(folder, id, "state").split() for id in os.listdir(folder)]


def at_once(targets):
    """How many of their queues do not wait for their turn."""
    return sum("waits" not in state for one in targets for state in queue_states(one))


def shares(machine, queues):
    """Percentages of the slots with which so many offline queues run at a time."""
    percent = -(-queues * 100 // machine.list()["devices"][0]["queue_slots"])
    return str(100 - percent), str(percent)


def reserve_but(machine, queues):
    machine.good("reserve", "0", *shares(machine, queues))


def is_said(folder, words):
    amd.until(lambda: words in tap.read(f"{folder}/gpreemptd.log"), f"the log says {words!r}")


@tap.test("the driver keeps a reservation: offline queues take turns, gpreemptd stops none, and kill -9 lifts it")
def _(folder):
    with amd.Machine(folder) as machine:
        targets = [offline(machine, 4) for _ in range(2)]
        serves = online(machine)
        reserve_but(machine, 3)
        is_said(folder, "the driver keeps the reservation")
        amd.until(lambda: at_once(targets) == 3, "three of eight run at a time")
        tap.true(all(is_on(machine, one) for one in targets), "gpreemptd has stopped one")
        tap.true("waits" not in queue_states(serves)[0], "online is limited")
        for one in targets:
            one.goes_on()
        machine.good("reserve", "0", "0", "0")
        amd.until(lambda: at_once(targets) == 8, "all run")
        reserve_but(machine, 3)
        amd.until(lambda: at_once(targets) == 3, "three of eight again")
        machine.daemon.kill()
        machine.daemon.wait()
        amd.until(lambda: at_once(targets) == 8, "all run")
        for one in (*targets, serves):
            one.end()


@tap.test("with no more rights than its service has, gpreemptd has its sessions, and the driver keeps a reservation")
def _(folder):
    with amd.Machine(folder, before=amd.service_rights()) as machine:
        trains = offline(machine, 4)
        machine.good("suspend", str(trains.pid), "--lease", LEASE)
        tap.same({queue["way"] for queue in machine.queues(trains)}, {"session"}, "ways")
        tap.true(trains.stands_still(), "it goes on")
        machine.good("resume", str(trains.pid))
        reserve_but(machine, 2)
        is_said(folder, "the driver keeps the reservation")
        amd.until(lambda: at_once([trains]) == 2, "two of four run at a time")
        trains.end()


@tap.test("without CAP_SYS_ADMIN the driver refuses a reservation, the log says so, and gpreemptd keeps it")
def _(folder):
    with amd.Machine(folder, before=["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]) as machine:
        trains = offline(machine, 4)
        reserve_but(machine, 2)
        is_said(folder, "the driver does not keep the reservation: gpreemptd lacks CAP_SYS_ADMIN")
        amd.until(lambda: list(machine.states(trains).values()).count("suspended") == 2, "two of four are suspended")
        machine.good("reserve", "0", "0", "0")
        amd.until(lambda: is_on(machine, trains), "all run")
        trains.end()


@tap.test("in the background: offline is off the GPU while online works, and gpreemptd makes no call for it")
def _(folder):
    with scheduled(folder, conf=CONF + "driver_watches = yes\n") as machine:
        trains, serves = offline(machine, 3), online(machine)
        is_said(folder, "the driver looks for online work itself")
        tap.true("background" in machine.list()["devices"][0]["can"], machine.list()["devices"])
        for _ in range(3):
            trains.goes_on()
            serves.tell("busy")
            amd.until(trains.stands_still, "offline is off the GPU")
            serves.tell("idle")
        trains.goes_on()
        tap.same(machine.stats()["suspends"], 0, "stops by gpreemptd")
        serves.end()
        trains.end()


@contextlib.contextmanager
def another_session(pid):
    """Somebody else's, which has stopped that process."""
    kfd = os.open("/dev/kfd", os.O_RDWR)
    args = bytearray(struct.pack("<IIQiI40x", CREATE, 0, 0, 0, 0))
    fcntl.ioctl(kfd, CALL, args)
    session = struct.unpack_from("<i", args, 16)[0]
    entry = ctypes.create_string_buffer(struct.pack("<IIQIIIIII", pid, ALL_QUEUES, 0, 0, 0, STOP, 0, 0, 0), ENTRY)
    fcntl.ioctl(session, CALL, bytearray(struct.pack("<IIQII40x", SET, 0, ctypes.addressof(entry), 1, ENTRY)))
    try:
        yield
    finally:
        os.close(session)
        os.close(kfd)


@tap.test("what another session has stopped is told, and tried by the agent if there is one")
def _(folder):
    with amd.Machine(folder) as machine:
        bare, ours = offline(machine), machine.target(1)
        with another_session(bare.pid):
            done = machine.run("suspend", str(bare.pid), "--lease", LEASE)
            tap.same(done.returncode, 1, "exit status")
            tap.true("another scheduling session has stopped it" in done.stderr, done.stderr)
        with another_session(ours.pid):
            done = machine.good("suspend", str(ours.pid), "--lease", LEASE)
            tap.true("another scheduling session has stopped it; used update" in done.stdout, done.stdout)
        tap.true(ours.stands_still(), "it goes on")
        machine.good("resume", str(ours.pid))
        for one in (bare, ours):
            one.goes_on()
            one.end()


@tap.test("without CAP_SYS_NICE agents are used, and the log says why")
def _(folder):
    with amd.Machine(folder, before=["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]) as machine:
        target, bare = machine.target(2), amd.Target(1, machine.socket, agent=False)
        tap.same({queue["way"] for queue in machine.queues(target)}, {"update"}, "ways")
        tap.same(machine.queues(bare), [], "what can be stopped of one without an agent")
        tap.true("no scheduling session: gpreemptd lacks CAP_SYS_NICE" in tap.read(f"{folder}/gpreemptd.log"), "the log does not say so")
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        tap.true(target.stands_still(), "it goes on")
        machine.good("resume", str(target.pid))
        target.end()
        bare.kill()


def notes(environment, *words):
    """A program written from the notes' second header."""
    done = subprocess.run([NOTES, *map(str, words)], env=environment, capture_output=True, text=True, timeout=amd.PATIENCE, check=False)
    tap.same((done.returncode, done.stderr), (0, ""), "exit status, stderr")


@tap.test("from gpreempt_poc_v2.h: three queues are unmapped in one cycle and remapped, through gpreemptd and without one, and nothing is printed")
def _(folder):
    with amd.Machine(folder) as machine:
        target = offline(machine, 3)
        with packets(unmap=5, runlist=5):
            notes(machine.environment(), 5, *target.rings)
        target.goes_on()
        machine.daemon.terminate()
        machine.daemon.wait()
        with machine.cycles(6, least=5):  # the driver has one of its own for a process that ends
            notes(dict(os.environ, GPREEMPT_SOCKET=""), 5, *target.rings)
        target.goes_on()
        target.end()


def reserving(environment, *words):
    """A program from that header, which has reserved, and takes it back at the end of its stdin."""
    program = subprocess.Popen([NOTES, "reserve", *map(str, words)], env=environment, text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    tap.same(program.stdout.readline(), "reserved\n", "what it says")
    return program


def ends_well(program):
    tap.same((program.communicate(timeout=amd.PATIENCE), program.returncode), (("", ""), 0), "its end")


@tap.test("from gpreempt_poc_v2.h: the driver keeps a reservation, by its id of the GPU or the number; without gpreemptd there is none")
def _(folder):
    with amd.Machine(folder) as machine:
        trains, share = offline(machine, 4), shares(machine, 2)
        for gpu in (machine.list()["devices"][0]["gpu_id"], 0):
            program = reserving(machine.environment(), gpu, *share)
            is_said(folder, "the driver keeps the reservation")
            amd.until(lambda: at_once([trains]) == 2, "two of four run at a time")
            trains.goes_on()
            ends_well(program)
            amd.until(lambda: at_once([trains]) == 4, "all run")
        for environment, words, why in ((machine.environment(), ("60", "50"), "Invalid argument"),
                                        (dict(os.environ, GPREEMPT_SOCKET=""), share, "No such device")):
            done = subprocess.run([NOTES, "reserve", "0", *words], env=environment, capture_output=True, text=True, check=False)
            tap.true(done.returncode == 1 and why in done.stderr, f"exit status {done.returncode}: {done.stderr}")
            tap.same(at_once([trains]), 4, "how many run")
        tap.same(machine.stats()["suspends"], 0, "stops by gpreemptd")
        trains.end()


def doctor(environment):
    done = tap.run("doctor", "--json", env=environment)
    return {check["what"]: (check["state"], check["detail"]) for check in json.loads(done.stdout)["checks"]}


@tap.test("doctor says that sessions are there, of which version, and that gpreemptd uses them; or not")
def _(folder):
    with amd.Machine(folder) as machine:
        found = doctor(machine.environment())
        tap.same(found["batch call"][0], "yes", "batch call")
        tap.true(f"scheduling sessions, version {tap.read(VERSION).strip()}:" in found["batch call"][1], found["batch call"][1])
        tap.true("it stops them in scheduling sessions" in found["gpreemptd"][1], found["gpreemptd"][1])
    with amd.Machine(folder, "--ways", "update") as machine:
        tap.true("it uses no scheduling sessions" in doctor(machine.environment())["gpreemptd"][1], "gpreemptd")


if not os.path.exists(VERSION):
    print("1..0 # SKIP this driver has no scheduling sessions (kernel/bed/run --patched)")
    sys.exit(0)
tap.main()
