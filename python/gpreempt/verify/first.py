# SPDX-License-Identifier: MIT
"""The seven test programs of the notes' first part."""

import random
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from gpreempt.verify import events
from gpreempt.verify.run import Run, held
from gpreempt.verify.stage import SOON_S, Job
from gpreempt.verify.watch import KernelLog, Process
from gpreempt.verify.ways import Calls, Failed, said

ONLINE_MS = 10  # of online work, in the notes' examples
FEWEST_STEPS = 20  # of a job: of fewer, one more or less is too much of it
NO_QUEUE = 0xFFFFFFF0
THREADS = 4
BESIDE = "online_beside_ms"  # of requests for which gpreemptd's scheduler makes room, whichever way is tried
NO_REQUESTS = "no online requests: it makes them on the simulated GPU, or by --job"


def basic(run: Run, calls: Calls) -> None:
    settle_s, hold_s = run.chosen("settle_s", 1, 10), run.chosen("hold_s", 1, 1)
    run.did = "let a job run for {:g} s, took it off the GPU for {:g} s by {}, and let it go on".format(settle_s, hold_s, said(run.way))
    run.progress("it settles, {:g} s".format(settle_s))
    with run.stage.offline(calls) as job:
        time.sleep(settle_s)
        active = []  # type: List[bool]

        def hold() -> float:
            active.append(calls.is_active(job.ids[0]))
            return job.hold(hold_s)

        cycle = calls.cycle(job.ids, hold)
        run.fact("its queue was inactive meanwhile", active == [False])
        run.fact("it is active afterwards", calls.is_active(job.ids[0]))
        time.sleep(hold_s)
        run.measure("suspend_ms", [cycle.suspend_ms])  # one tells nothing: latency judges them
        run.measure("resume_ms", [cycle.resume_ms])
        run.see_job(job, 1, held([cycle]))


def frequent(run: Run, calls: Calls) -> None:
    duration_s, every_s = run.duration(5, 300), run.chosen("every_s", 0.1, 0.1)
    run.did = "took a job off the GPU for {} ms every {:g} ms, for {:g} s, by {}".format(ONLINE_MS, every_s * 1e3, duration_s, said(run.way))
    with run.stage.offline(calls) as job:
        cycles = run.repeat(calls, job, ONLINE_MS / 1e3, lambda at, n: at >= duration_s, lambda: every_s)
        run.see_job(job, len(cycles), held(cycles))


def edge(run: Run, calls: Calls) -> None:
    run.did = "did what a program may do wrong, by {}, and asked for much at once".format(said(run.way))
    with run.stage.offline(calls) as job:
        _wrong_calls(run, calls, job)
        _concurrent_calls(run, calls, job)
        run.fact("at the end the queue is active", calls.is_active(job.ids[0]))
    if run.stage.starts_jobs:
        _many_online(run, calls)
    else:
        run.saw.append(NO_REQUESTS)


def _outcome(call: Callable[[], Any]) -> str:
    try:
        call()
    except Failed as wrong:
        return str(wrong)
    return ""


def _wrong_calls(run: Run, calls: Calls, job: Job) -> None:
    ids = job.ids
    told = _outcome(lambda: calls.suspend(ids + [NO_QUEUE]))
    run.saw.append("an unknown queue: " + (told or "no error"))
    run.fact("an unknown queue is an error, and nothing is stopped", bool(told) and calls.is_active(ids[0]))
    run.fact("no offline queue at all is no error", not _outcome(lambda: calls.suspend([])) and not _outcome(lambda: calls.resume([])))
    for _ in range(2):
        run.fact("suspended, also twice, it is inactive", not _outcome(lambda: calls.suspend(ids)) and not calls.is_active(ids[0]))
    for _ in range(2):
        run.fact("resumed, also twice, it is active", not _outcome(lambda: calls.resume(ids)) and calls.is_active(ids[0]))


def _concurrent_calls(run: Run, calls: Calls, job: Job) -> None:
    rounds = run.chosen("rounds", 10, 100)
    failures = []  # type: List[str]
    together = threading.Barrier(THREADS)

    def suspend_and_resume() -> None:
        try:
            for _ in range(rounds):
                together.wait(SOON_S)
                failures.extend(filter(None, [_outcome(lambda: calls.suspend(job.ids)), _outcome(lambda: calls.resume(job.ids))]))
        except Exception as wrong:  # told, and nobody waits for a thread that has ended
            failures.append("{}: {}".format(type(wrong).__name__, wrong))
            together.abort()

    threads = [threading.Thread(target=suspend_and_resume, daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.saw.append("{} threads, {} times each, let go at once: {} errors{}".format(THREADS, rounds, len(failures), ", as: " + failures[0] if failures else ""))
    run.fact("calls of several threads at once all succeed", not failures)


def _many_online(run: Run, calls: Calls) -> None:
    """Several online programs, whose requests come each by its own clock."""
    programs, requests = 3, run.chosen("requests", 10, 100)
    with run.stage.offline(calls) as job:
        serving = [run.stage.online(10, requests) for _ in range(programs)]
        done = [run.stage.served(one) for one in serving]
        run.saw.append("{} online programs beside each other, {} requests each: longest {:.1f} ms".format(
            programs, requests, max(one["latency_ns"]["max"] for one in done) / 1e6))
        run.raw["online"] = done
        run.fact("all requests of {} online programs beside each other are served".format(programs), all(one["completed"] == requests for one in done))
        _see_progress(run, job)


def _see_progress(run: Run, job: Job) -> None:
    figures = job.end()
    run.fact("offline work went on besides", bool(figures and figures["completed"]))


def latency(run: Run, calls: Calls) -> None:
    repeats = run.chosen("repeats", 100, 100)
    run.did = "took a job off the GPU {} times by {}".format(repeats, said(run.way))
    with run.stage.offline(calls) as job:
        cycles = run.repeat(calls, job, ONLINE_MS / 1e3, lambda at, n: n >= repeats, lambda: 2 * ONLINE_MS / 1e3)
        run.see_job(job, repeats, held(cycles))
    if run.stage.starts_jobs:
        run.did += "; then requests of {} ms beside it, with gpreemptd's scheduler".format(ONLINE_MS)
        _online_latency(run, calls)
    else:
        run.saw.append(NO_REQUESTS)


def _online_latency(run: Run, calls: Calls) -> None:
    requests = run.chosen("requests", 20, 1000)
    run.progress("{} requests".format(requests))
    alone = run.stage.served(run.stage.online(10, requests))
    with run.stage.offline(calls):
        beside = run.stage.served(run.stage.online(10, requests))
    run.raw["online_alone"], run.raw["online_beside"] = alone, beside
    for name, one in (("online_alone_ms", alone), (BESIDE, beside)):
        run.figures[name] = _in_ms(one)
    run.judge_figure("online_{}_ms".format(run.way), BESIDE)


def _in_ms(served: Dict[str, Any]) -> Dict[str, Any]:
    """The program's own figures, from the intended arrival of each request."""
    row = {name: value / 1e6 if value is not None else None for name, value in served["latency_ns"].items()}
    return dict({name: row[name] for name in ("mean", "p50", "p95", "p99", "max")}, count=served["completed"], deviation=None)


def throughput(run: Run, calls: Calls) -> None:
    duration_s, rate = run.duration(5, 300), run.chosen("requests_per_s", 2, 2)
    run.did = "ran a job alone for {0:g} s, then {0:g} s beside {1:g} requests a second of {2} ms, with gpreemptd's scheduler".format(
        duration_s, rate, ONLINE_MS)
    run.did += "; and {:g} s with a wait of {} ms as often as online work, by {}".format(duration_s, ONLINE_MS, " and ".join(map(said, run.ways)))
    run.used = run.ways
    if not run.stage.starts_jobs:
        run.stage.online(rate, 1)  # says why not
    run.progress("alone, {:g} s".format(duration_s))
    with run.stage.offline(calls) as job:
        time.sleep(duration_s)
        alone = job.end() or {}
    run.progress("beside requests, {:g} s".format(duration_s))
    with run.stage.offline(calls) as job:
        end = time.monotonic() + duration_s
        served = run.stage.served(run.stage.online(rate, max(1, int(rate * duration_s))))
        time.sleep(max(0.0, end - time.monotonic()))
        mixed = job.end() or {}
    run.raw.update(alone=alone, mixed=mixed, online=served)
    run.figures[BESIDE] = _in_ms(served)
    run.saw.append("{:.2f} steps a second alone, {:.2f} beside {} requests".format(alone["per_second"], mixed["per_second"], served["completed"]))
    run.fact("all requests were served", served["completed"] == served["submitted"])
    run.judge("lost_percent", _lost_percent(alone, mixed))
    run.judge_figure("online_{}_ms".format(run.way), BESIDE)
    for way in run.ways:
        _lost_by_calls(run, Calls(way), alone, rate, duration_s)


def _lost_percent(alone: Dict[str, Any], mixed: Dict[str, Any]) -> Optional[float]:
    return 100 * (1 - mixed["per_second"] / alone["per_second"]) if alone["per_second"] else None


def _lost_by_calls(run: Run, calls: Calls, alone: Dict[str, Any], rate: float, duration_s: float) -> None:
    """By one way's own calls, in place of gpreemptd's scheduler. The online work is a wait, as in compare."""
    way = calls.way.name
    with run.stage.offline(calls) as job:
        cycles = run.repeat(calls, job, ONLINE_MS / 1e3, lambda at, n: at >= duration_s, lambda: 1 / rate, before=way + "_", is_judged=False)
        run.see_job(job, len(cycles), held(cycles), what="{} way: ".format(way))
    mixed = run.raw["jobs"][-1]
    lost = _lost_percent(alone, mixed)
    if lost is None or min(alone["completed"], mixed["completed"]) < FEWEST_STEPS:
        run.saw.append("{} way: too few steps to tell what it loses".format(way))
        return
    run.saw.append("{} way: {:.2f} steps a second with {} stops".format(way, mixed["per_second"], len(cycles)))
    run.raw.setdefault("lost", []).append({"way": way, "stops": len(cycles), "alone_per_second": alone["per_second"], "per_second": mixed["per_second"],
                                           "lost_percent": lost})
    run.judge("lost_percent", lost, way)


def stability(run: Run, calls: Calls) -> None:
    duration_s = run.duration(6, 3600)
    shortest_s, longest_s = run.chosen("shortest_gap_s", 0.1, 1), run.chosen("longest_gap_s", 1, 10)
    run.did = "took a job off the GPU by {}, {:g} to {:g} s apart by chance, for {:g} s".format(said(run.way), shortest_s, longest_s, duration_s)
    chance = random.Random(1)
    _watched(run, calls, 1, ONLINE_MS / 1e3, duration_s, lambda: chance.uniform(shortest_s, longest_s))


def stress(run: Run, calls: Calls) -> None:
    duration_s, queues, every_s = run.duration(5, 600), run.chosen("queues", 10, 10), run.chosen("every_s", 0.01, 0.01)
    run.did = "took {} queues of a job off the GPU every {:g} ms for {:g} s, by {}".format(queues, every_s * 1e3, duration_s, said(run.way))
    _watched(run, calls, queues, every_s / 2, duration_s, lambda: every_s)


def _watched(run: Run, calls: Calls, queues: int, hold_s: float, duration_s: float, gap_s: Callable[[], float]) -> None:
    """With the kernel's messages, and gpreemptd's CPU and memory, watched."""
    kernel, daemon = KernelLog(), Process(run.stage.daemon_pid or 0)
    looked = [0.0]

    def look() -> None:
        if time.monotonic() - looked[0] >= min(1, duration_s / 20):
            looked[0] = time.monotonic()
            daemon.look()

    try:
        with run.stage.offline(calls, queues) as job:
            try:
                cycles = run.repeat(calls, job, hold_s, lambda at, n: at >= duration_s, gap_s, look)
            finally:
                _see_watch(run, kernel, daemon)
            run.raw["on_gpu"] = events.on_gpu(events.told(job.pid, cycles[0].began_s), queues)
            run.see_job(job, len(cycles), held(cycles), queues)
    finally:
        kernel.close()


def _see_watch(run: Run, kernel: KernelLog, daemon: Process) -> None:
    trouble, used = kernel.trouble(), daemon.as_dict()
    run.raw["daemon"] = {"samples": daemon.samples}
    run.raw["kernel_log"] = trouble
    if used["first_kib"] is not None:
        run.saw.append("gpreemptd: {:.1f} % of a CPU, {:.0f} KiB at first, {:.0f} KiB at the end".format(
            used["cpu_percent"], used["first_kib"], used["last_kib"]))
        run.fact("gpreemptd's memory does not grow", not daemon.grew)
    else:
        run.saw.append("gpreemptd's CPU and memory: not watched; it is not seen from here, or there was no time")
    run.saw.append("kernel log: " + ("not readable ({}): not watched".format(kernel.why_not) if kernel.why_not
                                     else "{} messages of a driver in trouble".format(len(trouble))))
    run.fact("the kernel log tells of no trouble, where it may be read", not trouble)


CHECKS = [("basic", basic), ("frequent", frequent), ("edge", edge), ("latency", latency), ("throughput", throughput),
          ("stability", stability), ("stress", stress)]
