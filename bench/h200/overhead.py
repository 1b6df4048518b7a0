#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""overhead.py PREFIX [OUT]: what gpreempt costs a program on an NVIDIA GPU when there is nobody to preempt.
overhead.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. A server and a training, each once with the agent, with gpreemptd running, and once without: all four stay up, and work
in turns, in pairs. And the processor time of gpreemptd and of the agents' threads, while each works. Prints a table last; OUT: a file for all of it as JSON.
"""

import glob
import os
import statistics
import time

import beside

PAIRS = int(os.environ.get("PAIRS", "5"))
SERVES_S, TRAINS_S, CPU_S = 2.0, 3.0, 8.0
RATE = 300


def served(server):
    server.tell(f"repeat {SERVES_S}")
    found = server.answer()
    return found["served"] / found["seconds"]


def trained(training):
    training.tell("go")
    time.sleep(0.7)
    begin = time.monotonic()
    time.sleep(TRAINS_S)
    end = time.monotonic()
    training.tell("rest")
    time.sleep(0.3)
    return training.rate(begin, end)


def pairs(work, with_it, without):
    """Who is first changes from pair to pair."""
    found = []
    for i in range(PAIRS):
        order = (with_it, without) if i % 2 else (without, with_it)
        rates = {id(program): work(program) for program in order}
        found.append([rates[id(with_it)], rates[id(without)]])
        print(f"# {work.__name__}: with {found[-1][0]:.1f}/s, without {found[-1][1]:.1f}/s", flush=True)
    return found


def ticks(stat):
    with open(stat, encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def agent_threads(pid):
    return [os.path.dirname(path) for path in glob.glob(f"/proc/{pid}/task/*/comm") if open(path, encoding="utf-8").read().strip() == "gpreempt-agent"]


def cpu(bench, program, work):
    """Percent of a core: gpreemptd's, and the agent's in that program."""
    stats = [f"/proc/{bench.daemon.pid}/stat"] + [f"{task}/stat" for task in agent_threads(program.pid)]
    before, begin = [ticks(stat) for stat in stats], time.monotonic()
    work()
    used = [(ticks(stat) - one) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - begin) * 100 for stat, one in zip(stats, before)]
    return {"gpreemptd": used[0], "agent": sum(used[1:]), "threads": len(used) - 1}


def measure(prefix):
    found, used = {}, {}
    with beside.Bench(prefix, with_bare=False) as bench, beside.Bench(prefix, env={}, with_bare=False) as bare:
        bench.configure(beside.PARKING)
        server, training = bench.servers[0], bench.trains[0]
        trained(training)  # kernels are chosen
        trained(bare.trains[0])
        found["server"] = pairs(served, server, bare.servers[0])
        found["training"] = pairs(trained, training, bare.trains[0])
        used["server, 300/s, hints"] = cpu(bench, server, lambda: bench.row("alone", RATE, int(RATE * CPU_S), 1, trains=False))
        used["server, without end"] = cpu(bench, server, lambda: served(server))
        training.tell("go")
        used["training"] = cpu(bench, training, lambda: time.sleep(CPU_S))
    return dict(bare.how(), pairs=found, cpu=used)


def table(found):
    print(f"Measured on {found['machine']}. With gpreempt over without, when nobody is to be preempted.")
    print(f"{'program':20} {'pairs':>6} {'median':>8} {'least':>8} {'most':>8}")
    for name, some in found["pairs"].items():
        ratios = [a / b for a, b in some]
        print(f"{name:20} {len(some):6} {statistics.median(ratios):8.4f} {min(ratios):8.4f} {max(ratios):8.4f}")
    print("percent of a core      gpreemptd    agent")
    for name, used in found["cpu"].items():
        print(f"{name:22} {used['gpreemptd']:9.2f} {used['agent']:8.2f}")


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
