# SPDX-License-Identifier: MIT
"""Faults by chance, one after the other, and what must hold after them; not a test itself.

A Plan says what happens next, from its seed alone. A Stage has gpreemptd, a simulated GPU and the processes that it happens
to. Now and then there is a quiet moment: everything that may run must run, and what was begun must end.
"""

import collections
import contextlib
import os
import random
import re
import signal
import time

import tap
from gpreemptd import daemon, until
from protocol import DRAIN, NEW_QUEUES, OFFLINE, ONLINE, RUNNING, SAVE, Tool
from simulated import Client, gpu
from soaked import Board, Process, be_guest, be_holder, be_teller

PLACES, TOOLS, PROGRAMS = 10, 5, 3  # of agents, tools and programs on the simulated GPU
MOST_FROZEN = 3
QUIET_EVERY = 50  # faults
FIRST_LIFE = 400  # faults with one gpreemptd; twice as many the next time
LIVES_ENDED = 100  # faults between, in which gpreemptd is ended and started
SOON = 120.0  # s; nothing here takes that long unless it is broken
PAUSE_S = 0.03  # between two faults, about
MS = 10**6  # ns
MORE_KIB = 1024  # of memory, that the second quiet moment and all after it may show beyond the first

CONF = """[daemon]
lease = {lease}
scan = 500ms
patience = 300ms
[scheduler]
max_starve = {starve}
policy = {policy}
"""
# Programs on the simulated GPU: what they are, and how much each does.
KINDS = (
    (("--offline", "--work", "train"), 5),
    (("--online", "--work", "infer-10ms", "--rate", "30", "--hints"), 15),
    (("--online", "--work", "infer-1ms", "--rate", "100", "--arrival", "poisson"), 50),
)
POLICIES = ("priority", "fair", "deadline", "fifo")
CALM = {"lease": "1s", "starve": "1s", "policy": "priority"}

Fault = collections.namedtuple("Fault", "name args pause_s", defaults=((), 0.0))


class Plan:
    """An endless list of faults. It knows who is there because it said so: nothing that really happened changes it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.clear()

    def clear(self):
        """As it is after a quiet moment."""
        self.running, self.frozen, self.tools, self.programs = set(), set(), set(), set()
        self.daemon = "runs"  # or hangs, is deaf (nobody finds its socket), is down

    def __iter__(self):
        life = FIRST_LIFE
        while True:
            yield from self.part(LIVES_ENDED, True)
            yield Fault("renew")
            yield from self.part(life, False)
            life *= 2

    def part(self, length, may_end):
        for i in range(1, length + 1):
            weights = self.weights(may_end)
            name = self.random.choices(list(weights), weights.values())[0]
            yield Fault(name, getattr(self, name)(), self.random.expovariate(1 / PAUSE_S))
            if i % QUIET_EVERY == 0:
                yield Fault("quiet")
                self.clear()

    def weights(self, may_end):
        """How often each happens, of what can happen now."""
        guests, is_up = self.running | self.frozen, self.daemon == "runs"
        return {
            "come": 8 * (len(guests) < PLACES), "leave": 2 * bool(guests), "kill": 2 * bool(guests),
            "freeze": 2 * (bool(self.running) and len(self.frozen) < MOST_FROZEN), "thaw": 2 * len(self.frozen),
            "hold": 5 * bool(guests), "tell": 3, "drop": 3 * bool(self.tools),
            "begin": len(self.programs) < PROGRAMS, "kill_program": 0.5 * bool(self.programs), "reload": 3,
            "hang": is_up, "wake": 8 * (self.daemon == "hangs"),
            "kill_daemon": may_end * (self.daemon != "down"), "end_daemon": may_end * (self.daemon in ("runs", "deaf")),
            "delete_socket": 0.5 * may_end * is_up, "start": 12 * (self.daemon == "down"),
        }

    def pick(self, places):
        return self.random.choice(sorted(places))

    def come(self):
        place = self.pick(set(range(PLACES)) - self.running - self.frozen)
        self.running.add(place)
        return place, self.random.choice((OFFLINE, ONLINE)), self.random.random() < 0.5, self.random.randint(1, 4)

    def leave(self):
        place = self.pick(self.running | self.frozen)
        self.running.discard(place)
        self.frozen.discard(place)
        return (place,)

    kill = leave

    def freeze(self):
        place = self.pick(self.running)
        self.running.remove(place)
        self.frozen.add(place)
        return (place,)

    def thaw(self):
        place = self.pick(self.frozen)
        self.frozen.remove(place)
        self.running.add(place)
        return (place,)

    def tool(self):
        place = self.random.randrange(TOOLS)
        self.tools.add(place)
        return place

    def hold(self):
        """How: with a lease, or until it is dropped."""
        lease = self.random.choice((0, 0, 50 * MS, 500 * MS, 1000 * MS))
        kind = self.random.choice((SAVE, SAVE, DRAIN))
        how = {"lease": lease, "kind": kind, "timeout": 20 * MS, "hold": self.random.choice((0, NEW_QUEUES))}
        return self.tool(), self.pick(self.running | self.frozen), how

    def tell(self):
        return self.tool(), self.random.choice((None, *POLICIES))

    def drop(self):
        place = self.pick(self.tools)
        self.tools.remove(place)
        return (place,)

    def begin(self):
        place = self.pick(set(range(PROGRAMS)) - self.programs)
        self.programs.add(place)
        return place, self.random.randrange(len(KINDS)), self.random.randint(1, 4)

    def kill_program(self):
        place = self.pick(self.programs)
        self.programs.remove(place)
        return (place,)

    def reload(self):
        """Now and then what is no configuration."""
        if self.random.random() < 0.2:
            return (None,)
        return ({"lease": self.random.choice(("300ms", "1s")), "starve": self.random.choice(("50ms", "1s", "never")),
                 "policy": self.random.choice(POLICIES)},)

    def becomes(self, state):
        self.daemon = state
        return ()

    def hang(self):
        return self.becomes("hangs")

    def wake(self):
        return self.becomes("runs")

    def kill_daemon(self):
        return self.becomes("down")

    def end_daemon(self):
        return self.becomes("down")

    def delete_socket(self):
        return self.becomes("deaf")

    def start(self):
        return self.becomes("runs")


class Stage:
    """Where it happens. Each fault is a call."""

    def __init__(self, folder):
        self.folder, self.path = folder, f"{folder}/gpreemptd.sock"
        self.board = Board(PLACES)
        self.guests, self.tools, self.programs = {}, {}, {}
        self.figures = collections.Counter()  # of a run
        self.sizes = []  # (KiB in memory, descriptors) of gpreemptd in quiet moments since it was started
        self.all_sizes = []  # of all lives
        self.life = None
        self.start()

    # gpreemptd

    def configure(self, values):
        return tap.write(f"{self.folder}/conf", CONF.format(**values) if values else "[nonsense\n")

    def start(self):
        self.life = contextlib.ExitStack()
        self.daemon = self.life.enter_context(daemon(self.folder, "--config", self.configure(CALM), preexec_fn=tap.die_with_parent))
        self.sizes = []
        self.all_sizes.append(self.sizes)

    def signal(self, number):
        self.daemon.process.send_signal(number)

    def end_daemon(self):
        """Well, or as it was killed."""
        life, self.life = self.life, None
        life.close()
        os.unlink(f"{self.folder}/log")

    def kill_daemon(self):
        self.signal(signal.SIGKILL)
        self.end_daemon()

    def renew(self):
        self.end_daemon()
        self.start()

    def hang(self):
        self.signal(signal.SIGSTOP)

    def wake(self):
        self.signal(signal.SIGCONT)

    def delete_socket(self):
        os.unlink(self.path)

    def reload(self, values):
        self.configure(values)
        if self.life:
            self.signal(signal.SIGHUP)

    # Clients

    def come(self, place, client_class, hints, queues):
        self.guests[place] = Process(be_guest, self.board, place, self.path, client_class, hints, queues)
        self.guests[place].queues = queues

    def leave(self, place):
        self.thaw(place)
        self.guests.pop(place).leave()

    def kill(self, place):
        self.guests.pop(place).kill()
        self.board[place] = 0

    def freeze(self, place):
        self.guests[place].signal(signal.SIGSTOP)

    def thaw(self, place):
        self.guests[place].signal(signal.SIGCONT)

    def begin(self, place, kind, queues):
        options, requests = KINDS[kind]
        client = Client(self.folder, *options, "--requests", str(requests), "--queues", str(queues), socket=self.path)
        self.programs[place] = client, requests

    def kill_program(self, place):
        client, _ = self.programs.pop(place)
        client.kill()
        client.communicate()

    # Tools

    def put(self, place, *what):
        self.drop(place)
        self.tools[place] = Process(*what)

    def hold(self, place, guest, how):
        self.put(place, be_holder, self.path, self.guests[guest].pid, how)

    def tell(self, place, policy):
        self.put(place, be_teller, self.path, policy)

    def drop(self, place):
        if place in self.tools:
            self.tools.pop(place).kill()

    # Quiet moments

    def quiet(self):
        """Nobody wants anything of anybody: all must run, with nobody's help. Then all go, and gpreemptd is as small as it was."""
        self.board.set_quiet(1)
        for place in list(self.tools):
            self.drop(place)
        for place in self.guests:
            self.thaw(place)
        self.mend_daemon()
        with contextlib.closing(Tool(self.path)) as tool:
            tool.policy(CALM["policy"])
            for place in list(self.programs):
                self.await_program(place)
            self.await_that(tool, self.rests, "everything runs")
            for place in list(self.guests):
                self.leave(place)
            self.await_that(tool, lambda tool: not tool.queues(), "everybody has gone")
            self.measure()
        self.board.set_quiet(0)

    def mend_daemon(self):
        if self.life:
            self.wake()
        if self.life and not os.path.exists(self.path):
            self.end_daemon()
        if not self.life:
            self.start()

    def await_program(self, place):
        client, requests = self.programs.pop(place)
        done = client.figures()
        tap.same((done["submitted"], done["completed"]), (requests, requests), f"{done}")
        self.figures["requests and steps done"] += requests

    def rests(self, tool):
        queues = tool.queues()
        there = collections.Counter(q["pid"] for q in queues)
        stopped = [place for place in self.guests if self.board[place]]
        wanted = {guest.pid: guest.queues for guest in self.guests.values()}
        return there == wanted and not stopped and all(q["state"] == RUNNING for q in queues)

    def await_that(self, tool, condition, why):
        try:
            until(lambda: condition(tool), why, SOON)
        except AssertionError as wrong:
            queues = [(q["pid"], q["queue_id"], q["class"], q["activity"], q["state"], q["held"]) for q in tool.queues()]
            board = {place: (guest.pid, guest.queues, self.board[place]) for place, guest in self.guests.items()}
            raise AssertionError(f"{wrong}: queues {queues}, guests {board}; {self.daemon.log()[-2000:]}") from wrong

    def measure(self):
        """Memory is not looked at in an instrumented gpreemptd: what it has freed it keeps for a while."""
        pid = self.daemon.process.pid
        if self.sizes:
            until(lambda: descriptors(pid) <= self.sizes[0][1], f"descriptors: {self.sizes}, then {os.listdir(f'/proc/{pid}/fd')}", SOON)
        self.sizes.append((memory(pid), descriptors(pid)))
        tap.true(is_instrumented(pid) or self.sizes[-1][0] <= self.sizes[0][0] + MORE_KIB, f"KiB in memory, descriptors: {self.sizes}")

    def close(self):
        for process in [*self.guests.values(), *self.tools.values()]:
            process.kill()
        for client, _ in self.programs.values():
            client.kill()
            client.communicate()
        if self.life:
            self.life.close()


def memory(pid):
    """KiB"""
    return int(re.search(r"^VmRSS:\s*(\d+)", tap.read(f"/proc/{pid}/status"), re.MULTILINE)[1])


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def is_instrumented(pid):
    return "libasan" in tap.read(f"/proc/{pid}/maps")


def perform(stage, fault):
    getattr(stage, fault.name)(*fault.args)
    stage.figures[fault.name] += 1
    stage.figures["faults"] += fault.name not in ("quiet", "renew")
    time.sleep(fault.pause_s)


def soak(folder, seed, is_over, say=lambda stage: None):
    """Faults until is_over(how many there were); the stage, with what it has seen. say() hears of each quiet moment."""
    with gpu(folder), contextlib.closing(Stage(folder)) as stage:
        for fault in Plan(seed):
            if is_over(stage.figures["faults"]):
                fault = Fault("quiet")
            try:
                perform(stage, fault)
            except Exception as wrong:
                raise AssertionError(f"seed {seed}, after {stage.figures['faults']} faults, {fault}: {wrong}") from wrong
            if fault.name == "quiet":
                say(stage)
                if is_over(stage.figures["faults"]):
                    break
        stage.figures["queues stopped"] = stage.board.stops()
    return stage
