# SPDX-License-Identifier: MIT
"""Agents and tools as processes of their own, which come and go, for a soak; not a test itself.

They do as the protocol says, and look again for a gpreemptd that went. What an agent's queues are it says in memory that it
shares with whoever started it.
"""

import contextlib
import mmap
import os
import random
import select
import signal
import struct
import time

import tap
from gpreemptd import until
from protocol import (
    Agent, Gone, Items, Tool, BUSY, CLIENTS, DONE, EVENTS, HINT_BEGIN, HINT_END, HOLD, IDLE, ONLINE, STATS, STOP, WANTS,
)

LOST = (OSError, Gone)
PAUSE_S = 0.05  # before it looks for gpreemptd again


class Leave(Exception):
    """It was told to."""


def leave(*_):
    raise Leave


class Board:
    """For each place how many queues stand still, and how many stops there were; for all whether there is to be no work."""

    def __init__(self, places):
        self.places = places
        self.numbers = memoryview(mmap.mmap(-1, 8 * (2 * places + 1))).cast("Q")

    def __getitem__(self, place):
        return self.numbers[place]

    def __setitem__(self, place, stopped):
        self.numbers[place] = stopped

    def count(self, place, stops):
        self.numbers[self.places + place] += stops

    def stops(self):
        return sum(self.numbers[self.places:2 * self.places])

    def set_quiet(self, quiet):
        self.numbers[2 * self.places] = quiet

    def is_quiet(self):
        return self.numbers[2 * self.places]


class Process:
    """A child that runs a function. It ends well, or by a kill."""

    def __init__(self, function, *args):
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # until the child can take it
        self.pid = os.fork()
        if self.pid == 0:
            self.be(function, *args)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])

    @staticmethod
    def be(function, *args):
        status = 1
        try:
            tap.die_with_parent()
            signal.signal(signal.SIGTERM, leave)
            with contextlib.suppress(Leave):
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
                function(*args)
            status = 0
        finally:
            os._exit(status)

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def leave(self):
        self.signal(signal.SIGTERM)
        until(self.has_ended, f"process {self.pid} ends")
        tap.same(self.status, 0, "exit status of an agent")

    def has_ended(self):
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        self.status = os.waitstatus_to_exitcode(status)
        return pid


class Guest:
    """An agent: its connection, or the search for one."""

    def __init__(self, board, place, path, client_class, hints, queues):
        self.board, self.place, self.path, self.queues = board, place, path, queues
        self.client_class, self.hints = client_class, hints
        self.random = random.Random(place)
        self.begun = 0  # requests
        self.is_working = False

    def run(self):
        try:
            while True:
                with contextlib.suppress(*LOST):
                    self.connected()
                self.board[self.place] = 0  # without gpreemptd everything runs
                time.sleep(PAUSE_S)
        except Leave:
            self.board[self.place] = 0
            raise

    def connected(self):
        agent = Agent(self.path, self.queues, seen=self.client_class, name=f"guest{self.place}")
        with contextlib.closing(agent):
            self.is_working = False
            try:
                self.serve(agent)
            except Leave:
                with contextlib.suppress(*LOST):
                    for number in agent.stopped:
                        agent.remove(number)
                raise

    def serve(self, agent):
        lease_end = time.monotonic() + agent.lease / 1e9
        turn = 0.0
        while time.monotonic() < lease_end or not self.board[self.place]:
            now = time.monotonic()
            if now >= turn:
                self.work(agent)
                turn = now + self.random.uniform(0.005, 0.05)
            if select.select([agent.socket], [], [], turn - now if turn > now else 0)[0]:
                self.hear(agent)
                lease_end = time.monotonic() + agent.lease / 1e9

    def hear(self, agent):
        kind, serial, body = agent.receive()
        if kind == WANTS:
            items = Items.parse(body)
            agent.obey(items)
            self.board[self.place] = sum(agent.stopped.values())
            self.board.count(self.place, sum(item[1] == STOP for item in items.list))
            agent.send(DONE, items.bytes(), serial)

    def work(self, agent):
        """Online: a request begins, or the one before ends."""
        if self.client_class != ONLINE or (self.board.is_quiet() and not self.is_working):
            return
        self.is_working = not self.is_working
        self.begun += self.is_working
        if self.hints:
            agent.hint(HINT_BEGIN if self.is_working else HINT_END, self.begun)
        elif agent.sample:
            agent.activity(1, BUSY if self.is_working else IDLE)


def be_guest(*args):
    Guest(*args).run()


def be_holder(path, pid, how):
    """Holds what a process has by then, and stays."""
    with contextlib.suppress(*LOST):
        tool = Tool(path)
        handles = tool.handles(pid)
        if handles:
            tool.send(HOLD, Items(handles, STOP, **how).bytes())
        while True:
            tool.receive()
    signal.pause()


def be_teller(path, policy):
    """Changes the policy, asks for everything that can be asked, and follows events until it is ended."""
    with contextlib.suppress(AssertionError, *LOST):
        tool = Tool(path)
        if policy:
            tool.policy(policy)
        tool.send(CLIENTS)
        tool.send(STATS, struct.pack("<I", 0))
        tool.send(EVENTS, struct.pack("<II", 1, 0))
        while True:
            tool.receive()
    signal.pause()
