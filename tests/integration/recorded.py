#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gpreemptd, with an agent and tools of the first release, as recorded in tests/recorded, and with ones of a release to come."""

import contextlib
import errno
import glob
import os
import struct

import tap
from gpreemptd import daemon, until
from protocol import (
    Items, Peer, strided, AGENT, CLASS, CLIENTS, DEVICE, DEVICE_INFO, DONE, EVENTS, GPU, HEADER, HELLO, HINT, HOLD, LIST, PING, POLICY,
    QUEUE, QUEUE_INFO, RELEASE, RESULT, FEATURES, STATS, STOP, STRIDES, SUSPENDED, TOOL, UPDATE, WANTS,
)

RECORDED = os.path.join(tap.SOURCE, "tests", "recorded", "protocol1")
OPTIONS = ("--lease", "1s", "--sample", "--scan", "0s")  # as when it was recorded
ITEM = HEADER.size + 32 + 192  # where the first one begins
HANDLES = {QUEUE_INFO: (16, 24), HOLD: (ITEM,), RELEASE: (ITEM,), RESULT: (ITEM,)}  # gpreemptd's choice, and where it stands
PID = 96  # of QUEUE_INFO
FROM = slice(344, 536)  # of QUEUE_INFO: a text, which a tool shows as it is
LATENCY = ITEM + 16  # of a RESULT's item
POLICY_NAME = slice(80, 112)  # of DEVICE: there was none


def recording(path):
    """(who, what, bytes) of each packet, in the order in which gpreemptd had them; what: >, <, ends"""
    steps = []
    for line in tap.read(path).splitlines():
        words = line.split("#")[0].split()
        if line.startswith(" "):
            for word in words:
                digits, _, times = word.partition("*")
                steps[-1][2] += bytes.fromhex(digits) * int(times or 1)
        elif words:
            steps.append([words[0], words[1], bytearray()])
    return steps


def kind(data):
    return struct.unpack_from("<H", data, 4)[0]


class Player:
    """Says what was recorded, and hears what was: but for gpreemptd's handles, serials and policy, and who we are."""

    def __init__(self, path):
        self.path, self.peers, self.now, self.serials = path, {}, {}, {}

    def say(self, who, data):
        if kind(data) == HELLO:
            self.peers[who] = Peer(self.path)
        peer = self.peers[who].socket
        for at in HANDLES.get(kind(data), ()):
            if at < len(data):
                data[at:at + 8] = self.now[bytes(data[at:at + 8])]
        if kind(data) == DONE:
            data[12:16] = self.serials[bytes(data[12:16])]
        peer.send(data)
        if who == "agent" and kind(data) != HELLO:
            self.settle(peer)

    def settle(self, peer):
        """What it said has been read when what it may not say is refused."""
        peer.send(HEADER.pack(HEADER.size, LIST, 1, 0, 99))
        while HEADER.unpack(peer.recv(65536)[:HEADER.size])[1:] != (3, 1, 0, 99):
            pass

    def hear(self, who, data):
        got = bytearray(self.peers[who].socket.recv(65536))
        while kind(got) == PING != kind(data):
            got = bytearray(self.peers[who].socket.recv(65536))
        self.substitute(got, data)
        tap.same(got.hex(), data.hex(), f"{who} hears")

    def substitute(self, got, data):
        """Only what was not known before: the same handle stands for the same thing to the end."""
        if kind(data) in (DEVICE, QUEUE_INFO):  # what came later stands behind what it reads
            got[:4] = data[:4]
            del got[len(data):]
        tap.same((kind(got), len(got)), (kind(data), len(data)), "type and length")
        for at in HANDLES.get(kind(data), ()):
            if at < len(data):
                then, now = bytes(data[at:at + 8]), bytes(got[at:at + 8])
                tap.same(self.now.setdefault(then, now), now, "handle")
                got[at:at + 8] = then
        if kind(data) == DEVICE:
            got[POLICY_NAME] = data[POLICY_NAME]
        if kind(data) == QUEUE_INFO:
            tap.same(struct.unpack_from("<I", got, PID)[0], os.getpid(), "pid")
            got[PID:PID + 4] = data[PID:PID + 4]
            got[FROM] = got[FROM].partition(b"held=")[0].rstrip(b" \0").ljust(192, b"\0")  # who holds it came later, at its end
        if kind(data) == RESULT and len(data) > LATENCY:  # it is not longer than it took here
            got[LATENCY:LATENCY + 8] = data[LATENCY:LATENCY + 8]
        if kind(data) == WANTS:
            self.serials[bytes(data[12:16])] = bytes(got[12:16])
            got[12:16] = data[12:16]

    def end(self, who):
        self.peers.pop(who).close()


def play(folder, name):
    with daemon(folder, *OPTIONS) as d:
        player = Player(d.path)
        for who, what, data in recording(os.path.join(RECORDED, name)):
            if what == "ends":
                player.end(who)
            elif what == ">":
                player.say(who, data)
            else:
                player.hear(who, data)


@tap.test("an agent of the first release is listed, stopped and resumed by tools of the first release, to the byte")
def _(folder):
    play(folder, "suspend.hex")


@tap.test("a tool of the first release reserves and is refused, to the byte")
def _(folder):
    play(folder, "reserve.hex")


@tap.test("all that was recorded is played")
def _(_folder):
    tap.same(sorted(os.path.basename(path) for path in glob.glob(f"{RECORDED}/*")), ["reserve.hex", "suspend.hex"], "files")


@contextlib.contextmanager
def of_the_future(folder):
    """gpreemptd, an agent and a tool that have features and fields which nobody has yet."""
    later = struct.pack("<IIQ", 0xFFFFFFFF, 300, 20_000_000) + b"\xff" * 9
    with daemon(folder) as d:
        agent, tool = Peer(d.path).hello(AGENT, UPDATE, later=later), Peer(d.path).hello(TOOL, later=later)
        yield d, agent, tool


@tap.test("of the features that a peer has those come back that gpreemptd has too")
def _(folder):
    with of_the_future(folder) as (d, agent, tool):
        tap.same((agent.features, tool.features), (FEATURES, FEATURES), "both")
        tap.same(Peer(d.path).hello(TOOL, later=struct.pack("<I", 0xFFFFFFFF & ~FEATURES)).features, 0, "only others")
        tap.same(Peer(d.path).hello(TOOL).features, 0, "none")


@tap.test("peers of a later release are served: longer fields, longer items, types that nobody knows")
def _(folder):
    with of_the_future(folder) as (d, agent, tool):
        for number in (1, 2):
            agent.send(QUEUE, struct.pack("<QQQIIIIII", number, number << 16, 4096, number, GPU, 1, 7, 100, 0) + b"\xff" * 12)
        for peer in (agent, tool):
            peer.send(CLASS + 1, b"\xff" * 40)
            peer.send(0xFFFF, b"\xff" * 40, flags=STRIDES)
        until(lambda: len(d.tool().handles()) == 2, "its queues are listed")
        handles = d.tool().handles()
        tool.send(HOLD, strided(Items(handles, STOP).bytes(), b"\xff" * 5, b"\xff" * 16), 7, flags=STRIDES)
        _, serial, body = agent.wait(WANTS)
        done = Items.parse(body)
        tap.same((agent.flags, sorted(done.list)), (STRIDES, [[1, STOP, 0, 0], [2, STOP, 0, 0]]), "flags and items of WANTS")
        for item in done.list:
            item[3] = 1234
        agent.send(DONE, strided(done.bytes(), b"\xff" * 5, b"\xff" * 16), serial, flags=STRIDES)
        _, serial, body = tool.wait(RESULT)
        tap.same((tool.flags, serial, Items.parse(body).list), (STRIDES, 7, [[q, STOP, 0, 1234] for q in handles]), "RESULT")
        tap.same([q["state"] for q in d.tool().queues()], [SUSPENDED] * 2, "states")
        tap.same(len(agent.hears(0.1)) + len(tool.hears(0.1)), 0, "of what nobody knows nothing is said")


@tap.test("items that lie about where they are end the connection, with a word")
def _(folder):
    for offset, stride in ((0, 24), (243, 24), (269, 24), (65535, 24), (244, 23), (244, 65535)):
        with of_the_future(folder) as (_, _, tool):
            body = bytearray(strided(Items([1], STOP).bytes()))
            body[:4] = struct.pack("<HH", offset, stride)
            tool.send(HOLD, bytes(body), flags=STRIDES)
            tap.same(tool.error(), (-errno.EBADMSG, "not a message"), f"{offset}, {stride}")


@tap.test("a HELLO that ends within a later field is not a message")
def _(folder):
    with daemon(folder) as d:
        peer = Peer(d.path)
        peer.send(HELLO, struct.pack("<IIII32s64s", TOOL, 0, 0, 0, b"", b"") + b"\1\0\0")
        tap.same(peer.error(), (-errno.EBADMSG, "not a message"), "error")


@tap.test("what is a tool's to say is refused to an agent, and its connection goes on")
def _(folder):
    with of_the_future(folder) as (d, agent, _):
        bodies = {POLICY: bytes(36), LIST: b"", STATS: bytes(4), EVENTS: bytes(8)}
        for type_, body in bodies.items():
            agent.send(type_, body)
            status, said = agent.error()
            tap.true(status == -errno.EINVAL and "not for you to send" in said, f"{type_}: {status} {said}")
        agent.send(QUEUE, struct.pack("<QQQIIIIII", 1, 0x7F0000010000, 4096, 1, 9, 1, 7, 100, 0))
        until(lambda: len(d.tool().handles()) == 1, "its queue is listed")


tap.main(jobs=4)
