#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Nothing that a program does with its threads, ids, limits, scheduling, signals, descriptors or end goes differently with the agent."""

import os
import signal

import tap

from preload import DOUBLE, client


@tap.test("after setuid() no thread of the program has the old user, groups or capabilities")
def _(folder):
    if os.geteuid() != 0:
        raise tap.Skip("needs root")
    os.chmod(folder, 0o755)
    tap.same(client(folder, """
create()
assert wait_for(lambda: len(threads()) == 2)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
for task in os.listdir("/proc/self/task"):
    fields = dict(line.split(":", 1) for line in open(f"/proc/self/task/{task}/status"))
    print(*fields["Uid"].split(), *fields["Gid"].split(), fields["Groups"].split(), int(fields["CapPrm"], 16), int(fields["CapEff"], 16))
"""), "65534 65534 65534 65534 65534 65534 65534 65534 [] 0 0\n" * 2)


if not os.path.exists(DOUBLE):
    tap.skip_all("this build is instrumented: its libraries cannot be preloaded")
signal.alarm(280)
tap.main()
