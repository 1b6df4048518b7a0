# SPDX-License-Identifier: MIT
"""A gpreemptd made of nothing, as a program, and the verbs run against it: tests/unit/fake_gpreemptd.c.

What the tests of the verbs share; not a test itself.
"""

import contextlib
import json
import os
import signal
import subprocess

import tap

FAKE = os.path.join(os.path.abspath(tap.BUILD), "tests", "fake_gpreemptd")
ANSWERS = 10.0  # s


class Daemon:
    def __init__(self, folder, *words):
        self.socket = f"{folder}/gpreemptd.sock"
        self.process = subprocess.Popen([FAKE, self.socket, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        tap.same(self.process.stdout.readline(), "ready\n", "the daemon")

    def env(self):
        return dict(os.environ, GPREEMPT_SOCKET=self.socket)

    def run(self, *words, **more):
        return tap.run(*words, env=self.env(), **more)

    def good(self, *words, **more):
        return tap.good(*words, env=self.env(), **more)

    def start(self, *words):
        """The program, left running, and the first line it printed."""
        program = subprocess.Popen([tap.PROGRAM, *words], env=self.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        return program, program.stdout.readline()

    def tell(self, word):
        """One more word, which it has taken when this returns."""
        self.process.stdin.write(word + "\n")
        return self.heard()

    def heard(self):
        """Of the last HINT and POLICY: see fake_gpreemptd.c."""
        self.process.stdin.write("heard\n")
        self.process.stdin.flush()
        names = ("client", "number", "expiry", "what", "device", "serial", "policy_device", "lists")
        return dict(zip(names, map(int, self.process.stdout.readline().split())))

    def held(self):
        queues = json.loads(self.good("list", "--json").stdout)["queues"]
        return {f"{queue['pid']}:{queue['queue_id']}" for queue in queues if queue["held"]}


@contextlib.contextmanager
def daemon(folder, *words):
    one = Daemon(folder, *(words or ("100:1", "100:2", "200:1", "200:7:11")))
    try:
        yield one
    finally:
        one.process.stdin.close()
        one.process.wait(ANSWERS)
        one.process.stdout.close()


def end(program, number=signal.SIGINT):
    program.send_signal(number)
    out, errors = program.communicate(timeout=ANSWERS)
    return program.returncode, out, errors
