#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=600 memory=3G param=gfx=gfx90a param=cus=4
"""gpreemptd schedules programs of AMD's own runtime on a stock driver: offline work is off the GPU while online works, and nothing is lost."""

import contextlib
import os
import signal
import subprocess
import time

import amd
import tap

CONF = "[scheduler]\nmax_starve = never\nquantum = 1s\nlinger = 1ms\n"  # no slice for the starved, which would look like a fault; each request a preemption
TRAIN = "busy 64 4000"  # twice as many waves as there is room for, of 4 ms
LONG_US = 3_000_000
TRIES = 5  # of a request that is to be watched, each twice as long as the last
STOP_US = 200_000  # what stopping a queue may take: a device cycle, under emulation, with a kernel that checks everything
FOR_EVER_US = 600_000_000  # whoever has it under way is killed in the end
WEIGHTS = (100, 200, 300)
HANGS = os.path.join(os.path.abspath(tap.BUILD), "tests", "mine-hangs.so")


@contextlib.contextmanager
def scheduled(folder, *options):
    with amd.Machine(folder, "--config", tap.write(f"{folder}/conf", CONF), *options) as machine:
        yield machine
        tap.same(amd.stat("bad_restores"), 0, "bad restores")
        tap.same(amd.stat("bad_addresses"), 0, "bad addresses")


@contextlib.contextmanager
def nothing_lost():
    """Waves that were saved and did not come back, but for those of earlier programs that were killed."""
    before = amd.stat("waves_saved") - amd.stat("waves_restored")
    yield
    tap.same(amd.stat("waves_saved") - amd.stat("waves_restored"), before, "waves saved and not restored")


def offline(machine, queues, **more):
    program = machine.adopt(amd.Served(queues, machine.socket, "offline", **more))
    program.tell(TRAIN)
    return program


def online(machine, **more):
    return machine.adopt(amd.Served(1, machine.socket, "online", **more))


def is_off(machine, program):
    return set(machine.states(program).values()) == {"suspended"}


def stays_off(program):
    """By what it sees itself, and by what the GPU has done for it."""
    before = amd.wave_ns(program.pid)
    return program.stands_still() and amd.wave_ns(program.pid) == before


def watched(machine, trains, serves, request_us, look):
    """What look() finds while a request is served; once more and longer if it was over before. And how many it took."""
    for n in range(1, TRIES + 1):
        serves.serve(1, 0, 1, 16, request_us << (n - 1))
        amd.until(lambda: is_off(machine, trains) or not serves.is_serving(), "offline is suspended")
        found = look()
        in_time = serves.is_serving()
        serves.served()
        if in_time:
            return found, n
    raise AssertionError("every request was over too soon to see anything")


def gives_way(folder, queues, hints, requests, period_ms):
    with scheduled(folder) as machine, nothing_lost():
        trains, serves = offline(machine, queues), online(machine, hints=hints)
        trains.goes_on()
        found, watches = watched(machine, trains, serves, LONG_US + STOP_US * queues, lambda: (stays_off(trains), amd.stat("active")))
        tap.same(found, (True, len(machine.queues(serves))), "whether offline stays off, and queues in the run list")
        trains.goes_on()
        serves.serve(requests, period_ms, 3, 16, 4000)
        tap.same(len(serves.served()[1]), requests, "requests")
        trains.goes_on()
        found = machine.stats()
        tap.say({name: found[name] for name in ("preemptions", "suspends", "resumes", "hints", "samples")})
        tap.true(found["suspends"] >= 2 * queues and found["failures"] == 0, f"{found}")
        tap.same((found["hints"] > 0, found["hints"] + found["samples"] > 1), (hints, True), "whether hints began it; and how often")
        tap.same(serves.end(), watches + 3 * requests, "dispatches of online")
        trains.end()


for Q, N, MS in ((1, 300, 40), (4, 150, 50), (24, 60, 150)):
    for how in ("hinted", "seen in its queue alone"):
        tap.test(f"{Q} offline queue{'s' * (Q > 1)} and {N} requests of a program that is {how}: off while it works, and nothing is lost")(
            lambda folder, Q=Q, N=N, MS=MS, how=how: gives_way(folder, Q, how == "hinted", N, MS))


def shares(programs, before):
    """What each has had of the GPU since then."""
    had = [amd.wave_ns(one.pid) - then for one, then in zip(programs, before)]
    return [one / sum(had) for one in had]


def shares_from_now(programs):
    """For so long that a slice more or less does not make 5 percent. Whoever had its slice while the machine stood still had none."""
    before = [amd.wave_ns(one.pid) for one in programs]
    for _ in range(4):
        time.sleep(12)
        found = shares(programs, before)
        tap.say(found)
        if is_by_weight(found):
            break
    return found


def is_by_weight(found):
    return all(abs(share * sum(WEIGHTS) / weight - 1) <= 0.05 for share, weight in zip(found, WEIGHTS))


@tap.test("three offline programs under policy fair come to have the GPU by their weights, within 5 percent, and lose nothing")
def _(folder):
    with scheduled(folder) as machine, nothing_lost():
        programs = [offline(machine, 1, weight=weight) for weight in WEIGHTS]
        machine.good("policy", "fair")
        time.sleep(4)
        amd.until(lambda: is_by_weight(shares_from_now(programs)), f"shares by {WEIGHTS}", 300)
        for program in programs:
            program.end()


def stopped_for_ever(machine, queues=3):
    """offline, kept off by online work that does not end."""
    trains, serves = offline(machine, queues), online(machine)
    serves.serve(1, 0, 1, 16, FOR_EVER_US)
    is_off_again(machine, trains)
    return trains, serves


def is_off_again(machine, program):
    amd.until(lambda: is_off(machine, program), "offline is suspended")
    tap.true(stays_off(program), "offline goes on beside online")


def ends_well(trains, serves):
    serves.kill()
    trains.goes_on()
    trains.end()


@tap.test("kill -9 of gpreemptd lets offline go on at once, long before the lease ends; the next one takes both over, and stops what it must")
def _(folder):
    with scheduled(folder) as machine:
        trains, serves = stopped_for_ever(machine)
        machine.daemon.kill()
        machine.daemon.wait()
        trains.goes_on()
        machine.start("--config", f"{folder}/conf")
        is_off_again(machine, trains)
        ends_well(trains, serves)


@tap.test("a gpreemptd that hangs: offline goes on when the lease ends, and is off again when it wakes")
def _(folder):
    with scheduled(folder, "--lease", amd.SOME_LEASE) as machine:
        trains, serves = stopped_for_ever(machine)
        machine.daemon.send_signal(signal.SIGSTOP)
        trains.goes_on()
        machine.daemon.send_signal(signal.SIGCONT)
        is_off_again(machine, trains)
        ends_well(trains, serves)


@tap.test("a program that is killed, offline while it is stopped or online in its request, keeps nobody off the GPU")
def _(folder):
    with scheduled(folder) as machine:
        trains, serves = stopped_for_ever(machine)
        other = offline(machine, 1)
        amd.until(lambda: is_off(machine, other), "one that comes meanwhile is suspended")
        trains.kill()
        amd.until(lambda: not machine.queues(trains), "it is forgotten")
        tap.true(stays_off(other), "the other goes on beside online")
        ends_well(other, serves)


@tap.test("a socket that is deleted: who is connected is scheduled on, and the next gpreemptd has both")
def _(folder):
    with scheduled(folder) as machine:
        trains, serves = stopped_for_ever(machine)
        os.unlink(machine.socket)
        tap.true(stays_off(trains), "offline goes on beside online")
        machine.daemon.kill()
        machine.daemon.wait()
        trains.goes_on()
        machine.start("--config", f"{folder}/conf")
        amd.until(lambda: is_off(machine, trains), "offline is suspended again")
        ends_well(trains, serves)


@tap.test("a policy that never returns ends gpreemptd: offline goes on, and the next one begins with fifo")
def _(folder):
    with scheduled(folder) as machine:
        trains, serves = stopped_for_ever(machine)
        tap.write(f"{folder}/conf", f"{CONF}load = {HANGS}\npolicy = mine\n")
        machine.daemon.send_signal(signal.SIGHUP)
        tap.same(machine.daemon.wait(amd.PATIENCE), 70, "exit status")
        trains.goes_on()
        machine.start("--config", f"{folder}/conf")
        tap.same(machine.stats()["policy"], "fifo", "policy")
        trains.goes_on()
        ends_well(trains, serves)


@contextlib.contextmanager
def full_disk(folder):
    """A folder where not a byte more can be written, once it is filled."""
    place = f"{folder}/small"
    os.mkdir(place)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def fill(place):
    with contextlib.suppress(OSError), open(f"{place}/filler", "ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    tap.same(os.statvfs(place).f_bavail, 0, "free blocks")


@tap.test("a disk that is full, the socket's and the log's: gpreemptd goes on, and so does the one that is started on it")
def _(folder):
    with full_disk(folder) as place, scheduled(place) as machine:
        fill(place)
        trains, serves = stopped_for_ever(machine)
        machine.daemon.kill()
        machine.daemon.wait()
        trains.goes_on()
        machine.start("--config", f"{place}/conf")
        amd.until(lambda: is_off(machine, trains), "offline is suspended again")
        ends_well(trains, serves)


@contextlib.contextmanager
def wall_clock():
    """Sets the machine's, so many seconds off; in the end it is set right again."""
    def set_off(seconds):
        time.clock_settime(time.CLOCK_REALTIME, right + time.monotonic() + seconds)
    right = time.time() - time.monotonic()
    yield set_off
    set_off(0)


@tap.test("the clock is set, forward and back by a day: what is stopped stays so while it is to, and goes on when it is not")
def _(folder):
    with scheduled(folder) as machine, nothing_lost():
        trains, serves = offline(machine, 1), online(machine)
        watches = 0
        for seconds in (86400, -86400):
            with wall_clock() as set_off:
                found, n = watched(machine, trains, serves, LONG_US, lambda: (set_off(seconds), stays_off(trains))[1])
                tap.true(found, "offline goes on beside online")
                trains.goes_on()
            watches += n
        tap.same(serves.end(), watches, "dispatches of online")
        trains.end()


tap.main()
