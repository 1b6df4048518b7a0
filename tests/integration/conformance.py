#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What holds of suspended queues on the driver, by agents and by a session, holds on a simulated GPU."""

import contextlib
import json
import os
import re
import signal
import subprocess

import tap

import amd
import simulated
import suspended

DONE = re.compile(r"queue ([0-9]+): ([0-9]+) done")
AHEAD = 2  # steps that an offline client always has in each queue


class Target(amd.Target):
    """A program on the simulated GPU, as the cases know them: what it has done is what it said so far."""

    def __init__(self, machine, queues):
        self.queues, self.log = queues, f"{machine.folder}/{len(machine.targets)}.client"
        command = [tap.PROGRAM, "sim-client", "--gpu", f"{machine.folder}/gpu/sock", "--offline", "--work", "infer-1ms", "--queues", str(queues),
                   "--verbose", "--json"]
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, env=machine.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                                            preexec_fn=tap.die_with_parent)
        self.pid = self.process.pid
        self.rings = dict.fromkeys(range(queues))

    def progress(self):
        return {**dict.fromkeys(self.rings, 0), **{int(queue): int(number) for queue, number in DONE.findall(tap.read(self.log))}}

    def end(self):
        """sim-client fails if a step comes twice, or not in its turn."""
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=amd.PATIENCE)
        tap.same(self.process.returncode, 0, f"the client's exit; {tap.read(self.log)[-500:]}")
        figures = json.loads(out)
        tap.same(figures["completed"], sum(self.progress().values()), "steps, by its figures and as they were done")
        tap.same(figures["submitted"] - figures["completed"], AHEAD * self.queues, "steps under way at the end")
        return figures["completed"]


class Machine(amd.Machine):
    """A simulated GPU and gpreemptd, without any of the host's."""

    def __init__(self, folder, *options):
        self.folder, self.around = folder, contextlib.ExitStack()
        self.around.enter_context(simulated.gpu(folder))
        os.makedirs(f"{folder}/root")
        super().__init__(folder, *options)

    def start(self, *options):
        super().start("--config", "/dev/null", "--classes", "/dev/null", "--root", f"{self.folder}/root", *options)

    def knows(self, target):
        return len(self.queues(target)) == target.queues

    def cycles(self, *_):
        return contextlib.nullcontext()

    def __exit__(self, *why):
        super().__exit__(*why)
        self.around.__exit__(*why)


class Uncounted:
    def are_off(self):
        pass

    def are_back(self):
        pass


class Simulated(suspended.Way):
    """The queues of a program on it are there from its beginning to its end."""

    waves = Uncounted
    changes_queues = False

    def machine(self, folder, *options):
        return Machine(folder, *options)

    def target(self, machine, queues):
        return machine.adopt(Target(machine, queues))

    def serve_again(self, machine):
        machine.start()


suspended.add_cases(Simulated("simulated"))

tap.main()
