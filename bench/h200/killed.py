#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""killed.py PREFIX [OUT]: whether programs on an NVIDIA GPU lose or repeat anything, or stay parked, while gpreemptd, an online and an offline program are killed.
killed.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. CUDA: an online program with hints and two offline ones; one of these is killed, the other works, to its end again and
again, and its result depends on each of its kernels having run exactly once. PyTorch: a server, and two trainings, the same. What was killed is started again.
In the end the online program goes for good, and the offline ones come to their ends. Of one that does not, what gpreempt and the kernel say of it is printed and
kept; then it is suspended and resumed, gpreemptd goes, and the other program goes, to see after which of these it goes on. All of it takes less than 150 s.
Prints a table last; OUT: a file for all of it as JSON, which grows as it goes.
"""

import glob
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

import beside

KERNELS, ITERATIONS, STEPS = os.environ.get("KERNELS", "600"), "60000", os.environ.get("STEPS", "400")
KILLS = {"CUDA": int(os.environ.get("KILLS", "100")), "PyTorch": 3}
LEASE = "500ms"
STARTS = {"gpreemptd": (0.2, 0.5), "online": (0.2, 1.0), "offline": (0.2, 1.0)}  # s, until the next is killed
SLOW = 9.0  # s that a PyTorch program may take to come back
LOOK = 10.0  # s, in which what nobody parks any more comes to its end; then somebody looks
GOES_ON, WORKS = 2.0, 10  # s in which it goes on, if what kept it is gone, and the kernels or steps that it tells of then: fewer are as good as none
PATIENCE = 20.0  # s: then it is not waited for any more
MOST = 145.0  # s for all of it
AT_ONCE = 10  # kills, and what there is by then is kept


class Work:
    """A program that prints "done N at SECONDS" and its sum in the end, over and over."""

    def __init__(self, command, env=None):
        self.command, self.env = command, dict(os.environ, **(env or {}))
        self.sums, self.longest, self.done, self.last, self.is_over = [], 0.0, 0, None, False
        self.process, self.heard, self.longest_silent, self.failures = None, time.monotonic(), 0.0, 0
        self.ended = threading.Event()  # not join(): one that a signal interrupts takes the thread for ended
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        while not self.is_over or self.process is None:
            self.process = subprocess.Popen(self.command, env=self.env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            self.last, self.heard = None, time.monotonic()
            for line in self.process.stdout:
                self.take(line.split())
            if self.process.wait() > 0:  # not by us
                self.failures += 1
                time.sleep(0.2)
        self.ended.set()

    def take(self, words):
        if words[:1] == ["done"] and len(words) == 4:
            now = float(words[3])
            self.longest, self.last = max(self.longest, now - (self.last or now)), now
            self.longest_silent, self.heard = max(self.longest_silent, self.silent()), time.monotonic()
            self.done += 1
        elif words[:1] == ["sum"]:
            self.sums.append(words[1])

    def silent(self):
        """s since its last kernel, or its begin"""
        return time.monotonic() - self.heard

    def has_ended(self, seconds=0.0):
        return self.ended.wait(seconds)

    def goes_on(self):
        enough, end = self.done + WORKS, time.monotonic() + GOES_ON
        while time.monotonic() < end and self.done < enough and not self.has_ended(0.05):
            pass
        return self.done >= enough or self.has_ended()

    def found(self):
        return {"sums": self.sums, "longest_s": self.longest, "longest_silent_s": max(self.longest_silent, self.silent()), "done": self.done, "failures": self.failures}

    def kill(self):
        if self.process:
            self.process.kill()

    def stop(self, seconds):
        """It may be about to start again, and what the driver holds on to does not end."""
        self.is_over = True
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.has_ended(0.1):
            self.kill()
        return self.has_ended()


def threads_of(pid):
    """What the kernel says that each thread does, and where in the kernel it is."""
    found = []
    for task in sorted(glob.glob(f"/proc/{pid}/task/*")):
        said = [task.rsplit("/", 1)[1]]
        for name in ("comm", "stat", "wchan", "syscall", "stack"):
            try:
                with open(f"{task}/{name}", encoding="utf-8") as file:
                    text = file.read()
            except OSError as why:
                text = why.strerror
            said.append(f"{name} " + (text.rsplit(")", 1)[-1].split()[0] if name == "stat" else " ".join(text.split())))
        found.append(", ".join(said))
    return found


class Victims:
    """The programs, each by its part, and gpreemptd. What is known of them stands in found all the time."""

    def __init__(self, bench, kind, found, online, offline):
        self.bench, self.kind, self.found = bench, kind, found
        self.kills, self.chance = {name: 0 for name in STARTS}, random.Random(1)
        self.programs = {"online": Work(online, bench.environment("online")), "offline": Work(offline, bench.environment("offline"))}
        self.stays = Work(offline, bench.environment("offline"))
        self.offline = {"stays": self.stays, "killed": self.programs["offline"]}

    def all(self):
        return (self.stays, *self.programs.values())

    def note(self):
        self.found.update(kills=self.kills, served=self.programs["online"].done)
        for name, work in self.offline.items():
            self.found.setdefault(name, {"is_stuck": False}).update(work.found())

    def kill(self, name):
        if name == "gpreemptd":
            self.bench.daemon.kill()
            self.bench.daemon.wait()
            time.sleep(self.chance.uniform(0.0, 0.4))
            self.bench.launch_daemon("--lease", LEASE)
        else:
            self.programs[name].kill()
        self.kills[name] += 1

    def kill_at_random(self, count):
        """Yields now and then."""
        is_slow = count < 10
        for i in range(count):
            name = sorted(STARTS)[i % 3] if is_slow else self.chance.choice(sorted(STARTS))
            time.sleep(SLOW if is_slow else self.chance.uniform(*STARTS[name]))
            if self.bench.left() < PATIENCE or self.stands_still(is_slow):
                break
            self.kill(name)
            if (i + 1) % AT_ONCE == 0:
                self.note()
                yield
        self.note()
        print(f"# {self.kind}: killed {self.kills}; {self.bench.left():.0f} s are left, the one that stays is without a kernel or step for {self.stays.silent():.1f} s", flush=True)

    def stands_still(self, is_slow):
        """Whether the one that is not killed does, though each offline one has its turns."""
        if is_slow or self.stays.silent() < LOOK:
            return False
        self.look("stays", self.stays)
        return True

    def wait_for(self, name, work, seconds):
        """Whether it has ended. Whoever ends us meanwhile finds for whom we wait."""
        end = time.monotonic() + min(seconds, self.bench.left())
        while not work.has_ended(0.1) and time.monotonic() < end:
            self.found["waits_for"] = {"program": name, "pid": work.process and work.process.pid, "silent_s": work.silent()}
        if work.has_ended():
            self.found.pop("waits_for", None)
        return work.has_ended()

    def look(self, name, work):
        pid, silent = work.process.pid, work.silent()
        seen = {"program": name, "pid": pid, "silent_s": silent, "threads": threads_of(pid), "gpreemptd_runs": self.bench.daemon.poll() is None}
        for verb in ("ps", "list", "stats", "events"):
            seen[verb] = self.bench.gpreempt(verb, seconds=5).splitlines()[-60:]
        self.found.setdefault("looks", []).append(seen)
        print(f"# {self.kind}: {name} (process {pid}) does not come to its end, and is without a kernel or step for {silent:.1f} s")
        for what in ("threads", "ps", "list", "stats", "events"):
            print(f"# {what}:", *seen[what], sep="\n#   ")
        sys.stdout.flush()
        return seen

    def find_out(self, name, work):
        """What has to be done until it goes on, one thing after the other."""
        seen = self.look(name, work)
        others = [other for other in self.offline.values() if other is not work]
        for what, do in (("nothing is done", lambda: None), ("it is suspended and resumed", lambda: self.suspend(work)),
                         ("gpreemptd goes", self.bench.daemon.kill), ("the other program goes", lambda: [other.stop(1.0) for other in others])):
            do()
            if work.goes_on():
                seen["goes_on_when"] = what
                break
        print(f"# {self.kind}: {name} goes on when {seen.get('goes_on_when', 'none of all that is done')}", flush=True)

    def suspend(self, work):
        """A channel that the driver enabled and that does not run may do so the next time."""
        for words in (("suspend", str(work.process.pid), "--lease", "10s"), ("resume", str(work.process.pid))):
            print("# " + self.bench.gpreempt(*words, seconds=5).strip())

    def end(self):
        """Nobody is parked once the online program is gone: what stays comes to its end. Yields now and then."""
        online = self.programs["online"]
        if not online.stop(min(LOOK, self.bench.left())):
            self.found["online_stays"] = self.look("online", online)["threads"]
        for work in self.offline.values():
            work.is_over = True
        begun = time.monotonic()
        for name, work in self.offline.items():
            if not self.wait_for(name, work, begun + LOOK - time.monotonic()):
                self.note()
                yield
                self.find_out(name, work)
                break
        for name, work in self.offline.items():
            if not self.wait_for(name, work, begun + PATIENCE - time.monotonic()) or self.was_freed(name):
                self.found[name]["is_stuck"] = True
            work.stop(1.0)
        self.note()
        yield

    def was_freed(self, name):
        """Whether it went on, but only when something else was gone."""
        return any(seen["program"] == name and seen.get("goes_on_when") != "nothing is done" for seen in self.found.get("looks", ()))


class Bench(beside.Bench):
    def __init__(self, prefix):
        self.end_s = time.monotonic() + MOST
        super().__init__(prefix, servers=(), weights=())
        self.configure(beside.PARKING, "--lease", LEASE)

    def left(self):
        return max(self.end_s - time.monotonic(), 0.0)

    def measure(self, kind, found, online, offline):
        """Yields now and then."""
        if self.daemon.poll() is not None:
            self.launch_daemon("--lease", LEASE)
        alone = Work(offline, {"LD_PRELOAD": ""})
        alone.is_over = True
        alone.has_ended(self.left())
        alone.stop(1.0)
        found["alone"] = alone.sums
        victims = Victims(self, kind, found, online, offline)
        try:
            victims.note()
            yield from victims.kill_at_random(KILLS[kind])
            yield from victims.end()
        finally:  # its time may be over
            victims.note()
            for work in victims.all():
                work.stop(1.0)


def measure(prefix):
    folder = tempfile.mkdtemp()
    work, pulse = (beside.compiled(name, folder) for name in ("work", "pulse"))
    program = [sys.executable, f"{beside.HERE}/program.py"]
    programs = {"CUDA": ([pulse, f"{prefix}/lib/libgpreempt.so.0"], [work, KERNELS, ITERATIONS]),
                "PyTorch": ([*program, "pulse", "0"], [*program, "eager training", STEPS])}
    found = {}
    with Bench(prefix) as bench:
        for kind, (online, offline) in programs.items():
            found[kind] = {}
            for _ in bench.measure(kind, found[kind], online, offline):
                yield dict(bench.how(), found=found)
        print(bench.gpreempt("stats"), bench.gpreempt("ps"))
    yield dict(bench.how(), found=found)


def table(found):
    print(f"Measured on {found['machine']}. kill -9 at random; offline's result alone, and all of its results beside that.")
    for kind, one in found["found"].items():
        sums = one["stays"]["sums"] + one["killed"]["sums"]
        same = sums and set(sums) == set(one["alone"])
        print(f"{kind + ', killed':28} " + ", ".join(f"{name} {n} times" for name, n in one["kills"].items()))
        print(f"{'results':28} {(one['alone'] or ['none'])[0]}, {len(sums)} times {'the same' if same else 'NOT THE SAME'}")
        print(f"{'longest without a kernel':28} {one['stays']['longest_s'] * 1e3:.0f} ms, of {one['stays']['done']} kernels or steps")
        print(f"{'online requests served':28} {one['served']}")
        for name in (name for name in ("stays", "killed") if one[name].get("is_stuck")):
            print(f"{'STAYED PARKED':28} the one that {'is not killed' if name == 'stays' else 'was killed'}: no end in {LOOK:.0f} s")
        for seen in one.get("looks", ()):
            print(f"{'':28} {seen['program']} was without a kernel for {seen['silent_s']:.1f} s, and went on when {seen.get('goes_on_when', 'none of all that was done')}")
        for name in (name for name in ("stays", "killed") if one[name].get("failures")):
            print(f"{'FAILED':28} the one that {'is not killed' if name == 'stays' else 'was killed'} gave up by itself {one[name]['failures']} times")
        if "online_stays" in one:
            print(f"{'FAILED':28} the online program was killed, and does not end")
        if "waits_for" in one:
            print(f"{'waited for at last':28} {one['waits_for']['program']}, without a kernel for {one['waits_for']['silent_s']:.1f} s")


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
