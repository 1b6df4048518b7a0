#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Names that others chose, in bytes that are no text: what reaches a terminal, a log or a JSON reader is text all the same."""

import fcntl
import json
import os
import pty
import struct
import termios
import unicodedata

import tap
from gpreemptd import daemon, foreign, put, tree, until
from protocol import AGENT, HELLO, UPDATE, WELCOME, Agent

NAMES = [
    b"\xff\xfe\x80\x9b2J",  # no UTF-8, and C1 as bytes
    b"caf\xe9s",  # Latin 1
    b"\x1b]0;owned\x07\x7f\r\n",  # C0 and DEL
    b"a\xc2\x9b2Jb\xc2\x85c",  # C1 as characters
    b"\xc0\xaf\xe0\x80\xaf\xed\xa0\x80\xf4\x90\x80\x80",  # overlong, a surrogate, above Unicode
    b"\xe2\x80\xaegnp.exe\xe2\x81\xa6\xe2\x80\xa8\xef\xbb\xbf",  # turns the text round, ends the line
    b"x" * 30 + b"\xc3",  # cut within a character by the message's array
    "训练-über".encode(),
]
TEXTS = ["????2J", "caf?s", "?]0;owned????", "a?2Jb?c", "????????????", "?gnp.exe???", "x" * 30, "训练-über"]


class Named(Agent):
    def hello(self, role, ways=0, **who):
        name = who["name"]
        self.send(HELLO, struct.pack("<IIII32s64s", AGENT, ways, os.getpid(), 0, name, name))
        self.wait(WELCOME)


def is_text(data, what):
    """Characters only that are seen, and ends of lines."""
    for character in data.decode("utf-8"):
        tap.true(character == "\n" or unicodedata.category(character) not in ("Cc", "Cf", "Zl", "Zp"), f"{what}: {data!r}")


def gpreempt(*args, **more):
    done = tap.run(*args, text=False, **more)
    is_text(done.stdout, args)
    is_text(done.stderr, args)
    tap.same(done.returncode, 0, f"{args}: {done.stderr}")
    return done.stdout


def queues_of(data):
    return json.loads(data.decode("utf-8"))["queues"]


@tap.test("an agent's name that is no text is text in list, in its JSON and in the log")
def _(folder):
    with daemon(folder) as d:
        for name, text in zip(NAMES, TEXTS):
            agent = Named(d.path, 1, UPDATE, name=name)
            until(lambda: queues_of(gpreempt("list", "--json", "--socket", d.path)), "its queue is listed")
            tap.same([q["client_name"] for q in queues_of(gpreempt("list", "--json", "--socket", d.path))], [text], name)
            tap.true(text.encode() in gpreempt("list", "--socket", d.path), text)
            agent.close()
            until(lambda: not queues_of(gpreempt("list", "--json", "--socket", d.path)), "it is gone")
    log = tap.read(folder, "log", mode="rb")
    is_text(log, "log")
    for text in TEXTS:
        tap.true(f"({text}) is gone" in log.decode(), f"{text!r} in {log}")


@tap.test("a command name that is no text is text in list and in its JSON")
def _(folder):
    for pid, name in enumerate(NAMES, 4000):
        foreign(folder, pid, 1)
        put(tree(folder), f"proc/{pid}/comm", name + b"\n")
    listed = gpreempt("list", "--json", "--root", tree(folder))
    tap.same([q["client_name"] for q in queues_of(listed)], TEXTS)
    gpreempt("list", "--root", tree(folder))


@tap.test("a rule that is no text is text where it is named, also where its end is cut off")
def _(folder):
    foreign(folder, 4711, 1)
    put(tree(folder), "proc/4711/comm", "trainé\n")
    for length in range(60, 100):
        rule = b"offline:command=train*" + b"*" * length + "é*".encode()
        listed = gpreempt("list", "--json", "--root", tree(folder), "--rule", rule)
        tap.same(queues_of(listed)[0]["class"], "offline", rule)
        put(tree(folder), "etc/gpreempt/classes.ini", b"[offline]\n" + rule.split(b":")[1] + b"\n")
        tap.true("classes.ini:2" in queues_of(gpreempt("list", "--json", "--root", tree(folder)))[0]["rule"], rule)
    for name in NAMES:
        done = tap.run("list", "--rule", b"offline:" + name.replace(b"\0", b""), text=False)
        is_text(done.stderr, name)
        tap.same(done.returncode, tap.BAD_INPUT, done.stderr)


@tap.test("a table cut by a narrow terminal is cut between characters")
def _(folder):
    foreign(folder, 4711, 1)
    put(tree(folder), "proc/4711/comm", "训练训练训\n")
    for columns in range(30, 60):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        done = tap.run("list", "--root", tree(folder), text=False, stdout=theirs)
        os.close(theirs)
        is_text(os.read(ours, 65536).replace(b"\r\n", b"\n"), columns)
        os.close(ours)
        tap.same(done.returncode, 0, done.stderr)


@tap.test("a result with escapes in its names makes a table without control characters")
def _(folder):
    tap.good("sim", "A", "--out", folder, "--only", "exclusive", "--duration", "2s")
    result = json.loads(tap.read(folder, "result.json"))
    result["scenario"]["name"] = "\x1b[2J\u202e\x9b"
    result["device"]["title"] = "GPU\nroot#"
    tap.write(f"{folder}/result.json", json.dumps(result))
    tap.true(b"Scenario ?[2J?? on GPU?root#" in gpreempt("report", folder), "the title")


tap.main()
