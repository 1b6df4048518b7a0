#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=300 memory=3G param=cus=8
"""Who may do what, with real users: one's own processes, others' only as root or in the group, online only as one of these."""

import glob
import os
import subprocess

import amd
import tap

NOBODY = 65534
GROUP = 60123  # gpreempt's, for this machine alone
LEASE = "60s"


def as_user(*command, groups=(), **more):
    """The command as nobody, with these groups beside its own."""
    return subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
                           f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups", *command],
                          capture_output=True, text=True, check=False, **more)


class Nobody(amd.Target):
    """A target of the user nobody."""

    def command(self, queues, words):
        return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *super().command(queues, words)]


def open_up(folder):
    """Everybody may use the GPU, as a udev rule would have it; and reach the socket."""
    for path in ("/dev/kfd", *glob.glob("/dev/dri/renderD*")):
        os.chmod(path, 0o666)
    os.chmod(folder, 0o755)


@tap.test("a user may suspend and resume a process of his own")
def _(folder):
    open_up(folder)
    with amd.Machine(folder) as machine:
        target = machine.adopt(Nobody(2, machine.socket))
        done = as_user(tap.PROGRAM, "suspend", str(target.pid), "--lease", LEASE, env=machine.environment())
        tap.same(done.returncode, 0, done.stderr)
        tap.true(target.stands_still(), "it goes on")
        done = as_user(tap.PROGRAM, "resume", str(target.pid), env=machine.environment())
        tap.same(done.returncode, 0, done.stderr)
        target.goes_on()
        target.end()


@tap.test("a user may not suspend a process of root's, is told why, and it goes on")
def _(folder):
    open_up(folder)
    with amd.Machine(folder) as machine:
        target = machine.target(1)
        done = as_user(tap.PROGRAM, "suspend", str(target.pid), "--lease", LEASE, env=machine.environment())
        tap.same(done.returncode, 1, done.stderr)
        tap.true("ermi" in done.stderr and "gpreempt" in done.stderr, f"no word of permission or group: {done.stderr}")
        target.goes_on()
        target.end()


@tap.test("a user in the group gpreempt may suspend a process of root's")
def _(folder):
    open_up(folder)
    with open("/etc/group", "a", encoding="utf-8") as file:  # the machine's own, gone with it
        file.write(f"gpreempt:x:{GROUP}:\n")
    with amd.Machine(folder) as machine:
        target = machine.target(1)
        done = as_user(tap.PROGRAM, "suspend", str(target.pid), "--lease", LEASE, env=machine.environment(), groups=[GROUP])
        tap.same(done.returncode, 0, done.stderr)
        tap.true(target.stands_still(), "it goes on")
        machine.good("resume", str(target.pid))
        target.goes_on()
        target.end()


@tap.test("a tag makes root's process online, another user's it does not, and the list says why")
def _(folder):
    open_up(folder)
    with amd.Machine(folder) as machine:
        trusted = machine.target(1, env={"AMD_QUEUE_TAG": "ONLINE_AI"})
        other = machine.adopt(Nobody(1, machine.socket, env={"AMD_QUEUE_TAG": "ONLINE_AI"}))
        classes = {queue["pid"]: (queue["class"], queue["rule"]) for queue in machine.list()["queues"]}
        tap.same(classes[trusted.pid][0], "online", classes[trusted.pid][1])
        tap.same(classes[other.pid][0], "offline", classes[other.pid][1])
        tap.true("ONLINE_AI" in classes[other.pid][1], f"rule {classes[other.pid][1]}")


@tap.test("the agent writes AMD_QUEUE_PRIORITY into the queue's creation")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(1, env={"AMD_QUEUE_PRIORITY": "11"})
        tap.same([queue["priority"] for queue in machine.queues(target)], [11], "as gpreemptd has it")
        mqds = tap.read("/sys/kernel/debug/kfd/mqds").splitlines()
        line = next(line for line in mqds if line.strip().startswith("00000200:"))
        tap.same(int(line.split()[1 + 6], 16), 11, "queue priority in the MQD, offset 0x218")


tap.main()
