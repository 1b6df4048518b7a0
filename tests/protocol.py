# SPDX-License-Identifier: MIT
"""gpreemptd's peers, an agent and a tool, written from docs/PROTOCOL.md: no line is shared with the programs.

What the tests of gpreemptd share; not a test itself.
"""

import os
import select
import socket
import struct
import time

import tap

GPU = 38571  # of an agent's queues, unless it says otherwise
RUN, STOP = 0, 2
(HELLO, WELCOME, ERROR, PING, QUEUE, GONE, ACTIVITY, WANTS, DONE, LIST, DEVICE, QUEUE_INFO, END, HOLD, RELEASE, RESERVE, RESULT,
 HINT, POLICY, CLIENTS, CLIENT_INFO, STATS, STATS_INFO, EVENTS, EVENT, ATTACH, JOB, JOBS, JOB_INFO, CLASS) = range(1, 31)
STRIDES = 1  # the flag, and the feature of who reads it
FEATURES = STRIDES | 2 | 4 | 8 | 16  # of PROTOCOL.md
AGENT, TOOL, PROXY = 1, 2, 3
UPDATE, DBG, PRIVATE = 1, 2, 4
SAVE, DRAIN, RESET = range(3)
NEW_QUEUES, STRICT = 1, 2
RUNNING, SUSPENDING, SUSPENDED, RESUMING = range(4)
OFFLINE, ONLINE = 1, 2
HINT_BEGIN, HINT_END = 1, 2
IDLE, BUSY = 1, 2
ALL_DEVICES = 0xFFFFFFFF
GIVEN_ONLINE, GIVEN_OFFLINE, IN_CONTAINER, OWN_DAEMON = 2, 4, 8, 16  # beside the right over others, 1
HEADER = struct.Struct("<IHHII")
ITEMS = struct.Struct("<QQIIII192s")
ITEM = struct.Struct("<QIiQ")
PLACE = struct.Struct("<HH")  # of the items, with STRIDES: where the first one is, and the stride
INFO = struct.Struct("<QQ32sIIIIIIQIIIIII32s96s96s192s")
DEVICE_INFO = struct.Struct("<32s32s32sIIII")
SOON = 60.0  # s; nothing here takes that long unless it is broken


def text(data):
    return data.split(b"\0")[0].decode()


def strided(body, more_fields=b"", more_item=b""):
    """Items as STRIDES has them; more: fields that a later release may have."""
    fields, items = body[:ITEMS.size] + more_fields, body[ITEMS.size:]
    place = PLACE.pack(HEADER.size + PLACE.size + len(fields), ITEM.size + len(more_item))
    return place + fields + b"".join(items[i:i + ITEM.size] + more_item for i in range(0, len(items), ITEM.size))


def plain(data):
    """The body of a packet with STRIDES, as it is without."""
    offset, stride = PLACE.unpack_from(data, HEADER.size)
    fields = data[HEADER.size + PLACE.size:][:ITEMS.size]
    return fields + b"".join(data[i:i + ITEM.size] for i in range(offset, len(data), stride))


class Items:
    """The body of HOLD, WANTS, RESULT and the like."""

    def __init__(self, queues=(), want=RUN, lease=0, timeout=0, way=0, kind=SAVE, hold=0):
        self.lease, self.timeout, self.way, self.kind, self.hold, self.text = lease, timeout, way, kind, hold, ""
        self.list = [[queue, want, 0, 0] for queue in queues]

    def bytes(self):
        head = ITEMS.pack(self.lease, self.timeout, self.way, self.kind, self.hold, len(self.list), self.text.encode())
        return head + b"".join(ITEM.pack(*item) for item in self.list)

    @classmethod
    def parse(cls, body):
        items = cls()
        items.lease, items.timeout, items.way, items.kind, items.hold, n, said = ITEMS.unpack_from(body)
        items.text = text(said)
        items.list = [list(ITEM.unpack_from(body, ITEMS.size + i * ITEM.size)) for i in range(n)]
        return items

    def statuses(self):
        return [item[2] for item in self.list]


class Gone(Exception):
    """The daemon closed the connection."""


class Peer:
    features = 0  # as WELCOME says

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(SOON)
        self.socket.connect(path)
        self.serial = 0
        self.flags = 0  # of what came last

    def send(self, kind, body=b"", serial=None, flags=0):
        if serial is None:
            self.serial += 1
            serial = self.serial
        self.socket.send(HEADER.pack(HEADER.size + len(body), kind, 1, flags, serial) + body)
        return serial

    def receive(self):
        """(type, serial, body)"""
        data = self.socket.recv(65536)
        if not data:
            raise Gone
        length, kind, version, self.flags, serial = HEADER.unpack_from(data)
        tap.same((length, version), (len(data), 1), "header")
        tap.true(self.flags in (0, self.features & STRIDES), f"flags {self.flags}")
        return kind, serial, plain(data) if self.flags else data[HEADER.size:]

    def wait(self, *kinds):
        end = time.monotonic() + 2 * SOON
        while True:
            tap.true(time.monotonic() < end, f"no message of type {kinds} came")
            kind, serial, body = self.receive()
            if kind in kinds:
                return kind, serial, body

    def hears(self, seconds):
        """What comes in that time, PINGs left out."""
        end = time.monotonic() + seconds
        heard = []
        while select.select([self.socket], [], [], max(0.0, end - time.monotonic()))[0]:
            message = self.receive()
            if message[0] != PING:
                heard.append(message)
        return heard

    def told(self):
        """What gpreemptd says because of what it was told before, PINGs left out; not what waits for an alarm."""
        asked, heard = self.send(CLIENTS, struct.pack("<I", 1)), []
        while (message := self.receive())[:2] != (END, asked):
            heard += [message] if message[0] not in (PING, CLIENT_INFO) else []
        Tool(self.socket.getpeername()).close()  # in a later step of its loop: what follows from the last one is sent by then
        return heard + self.hears(0)

    def greet(self, role, ways=0, name="test", tag="", seen=0, later=b""):
        """later: the fields that the first release did not have."""
        self.send(HELLO, struct.pack("<IIII32s64s", role, ways, os.getpid(), seen, name.encode(), tag.encode()) + later)

    def hello(self, role, *args, **who):
        self.greet(role, *args, **who)
        _, _, body = self.wait(WELCOME)
        self.lease, self.rights, self.sample, self.features = struct.unpack_from("<QIII", body + bytes(4))
        return self

    def error(self):
        _, _, body = self.wait(ERROR)
        status, said = struct.unpack_from("<i192s", body)
        return status, text(said)

    def close(self):
        self.socket.close()


class Tool(Peer):
    def __init__(self, path):
        super().__init__(path)
        self.hello(TOOL, name="tool")

    def list(self):
        """devices and queues, by their fields"""
        asked = self.send(LIST)
        devices, queues = [], []
        while True:
            kind, serial, body = self.wait(DEVICE, QUEUE_INFO, END)
            tap.same(serial, asked, "serial")
            if kind == END:
                return devices, queues
            if kind == DEVICE:
                name, backend, _, number, caps, cus, slots = DEVICE_INFO.unpack_from(body)
                devices.append({"name": text(name), "backend": text(backend), "device": number, "caps": caps, "cus": cus, "slots": slots})
            else:
                queues.append(info(body))

    def queues(self, pid=None):
        return [q for q in self.list()[1] if pid in (None, q["pid"])]

    def handles(self, pid=None):
        return [q["queue"] for q in self.queues(pid)]

    def state(self, handle):
        return next(q["state"] for q in self.queues() if q["queue"] == handle)

    def ask(self, kind, items):
        serial = self.send(kind, items.bytes())
        return serial

    def result(self, serial=None):
        kind, got, body = self.wait(RESULT, ERROR)
        tap.true(kind == RESULT, f"ERROR: {struct.unpack_from('<i192s', body) if kind == ERROR else ''}")
        if serial is not None:
            tap.same(got, serial, "serial")
        return Items.parse(body)

    def hold(self, queues, **how):
        return self.result(self.ask(HOLD, Items(queues, STOP, **how)))

    def release(self, queues):
        return self.result(self.ask(RELEASE, Items(queues)))

    def reserve(self, device, online, offline):
        self.send(RESERVE, struct.pack("<III", device, online, offline))
        return self.result()

    def policy(self, name, device=ALL_DEVICES):
        self.send(POLICY, struct.pack("<I32s", device, name.encode()))
        return self.result()

    def attach(self, pid, client_class, start=0):
        self.send(ATTACH, struct.pack("<IIQ", pid, client_class, start))
        return self.result()

    def hint(self, what, client=0, number=1, expiry=0):
        self.send(HINT, struct.pack("<QQQII", client, number, expiry, what, ALL_DEVICES))
        return self.result()


def info(body):
    names = ("queue client name device priority class state activity held ring pid queue_id gpu_id kind active known way rule place from")
    values = INFO.unpack_from(body)
    return {name: text(value) if isinstance(value, bytes) else value for name, value in zip(names.split(), values)}


class Agent(Peer):
    """Does as it is told, in answer(), and keeps what its queues are."""

    def __init__(self, path, queues=1, ways=UPDATE, **who):
        super().__init__(path)
        self.hello(AGENT, ways, **who)
        self.stopped = {}
        self.wanted = []  # of each item: (number, want, way)
        for i in range(queues):
            self.add(i + 1)

    def add(self, number, ring=None, queue_id=None, priority=7, kind=1, stopped=0, gpu=GPU):
        ring = 0x7F0000000000 + number * 0x10000 if ring is None else ring
        self.send(QUEUE, struct.pack("<QQQIIIIII", number, ring, 4096, number if queue_id is None else queue_id, gpu, kind, priority, 100, stopped))
        self.stopped[number] = stopped

    def remove(self, number):
        self.send(GONE, struct.pack("<Q", number))

    def hint(self, what, number):
        self.send(HINT, struct.pack("<QQQII", 0, number, 0, what, ALL_DEVICES), 0)

    def activity(self, number, activity):
        self.send(ACTIVITY, struct.pack("<QQQI", number, 0, 0, activity))

    def obey(self, items):
        for item in items.list:
            self.wanted.append((item[0], item[1], items.way))
            self.stopped[item[0]] = int(item[1] == STOP)
            item[2], item[3] = 0, 1234

    def answer(self, obey=None):
        """The next WANTS, done; its items."""
        _, serial, body = self.wait(WANTS)
        items = Items.parse(body)
        (obey or self.obey)(items)
        self.send(DONE, items.bytes(), serial)
        return items

    def refuse(self, status):
        def obey(items):
            for item in items.list:
                self.wanted.append((item[0], item[1], items.way))
                item[2] = -status
        return obey


def held(agent, tool, queues=None, **how):
    """The queues, all of them that agent's: they stand still for the tool."""
    queues = tool.handles() if queues is None else queues
    serial = tool.ask(HOLD, Items(queues, STOP, **how))
    agent.answer()
    tap.same(tool.result(serial).statuses(), len(queues) * [0], "hold")
    return queues
