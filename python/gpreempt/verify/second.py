# SPDX-License-Identifier: MIT
"""The test programs of the notes' second part: the new way, and beside the old one."""

import time
from typing import Any, Callable, List, Optional, Tuple

import gpreempt
from gpreempt._gpu import MEASURED, SIMULATED, device_text
from gpreempt.verify.first import ONLINE_MS
from gpreempt.verify.run import Held, Run, held
from gpreempt.verify.stage import Job, Skip, comes, until_known
from gpreempt.verify.training import OnCpu, OnGpu
from gpreempt.verify.ways import NEW, OLD, Calls, said

QUEUES = (1, 3, 10)
NEW_ALONE = ("batch", "reservation")  # checks of what the old way has not
ONLINE_PERCENT, OFFLINE_PERCENT = 75, 25
RESERVED_RATE, RESERVED_REQUESTS = 10, 5  # of the online work beside a reservation
NOT_TRIED = "the reservation was accepted, not tried: {}"
QUEUE_STATE = "/sys/class/kfd/kfd/proc/{}/queues/{}/state"  # with kernel/series
MODELS_PAUSE_S = 0.5
STEPS = 5  # of a training that are to show something
HOLD_S = 0.1  # of one, to see that it stands still


def queue_count(n: int) -> str:
    return "1 queue" if n == 1 else "{} queues".format(n)


def batch(run: Run, calls: Calls) -> None:
    run.used = [NEW]
    if NEW not in run.ways:
        raise Skip("it is of the new way alone")
    queues, repeats = run.chosen("queues", 10, 10), run.chosen("repeats", 20, 100)
    run.did = "unmapped {} queues of a job {} times in one call each, and mapped them again, by {}".format(queues, repeats, said(NEW))
    new = Calls(NEW)
    with run.stage.offline(calls, queues) as job:
        cycles = run.repeat(new, job, ONLINE_MS / 1e3, lambda at, n: n >= repeats, lambda: 2 * ONLINE_MS / 1e3)
        run.see_job(job, repeats, held(cycles), queues)


def reservation(run: Run, calls: Calls) -> None:
    run.used = [NEW]
    if NEW not in run.ways:
        raise Skip("it is of the new way alone")
    is_simulated = run.stage.device.kind == SIMULATED
    if not is_simulated and not any(one.device == run.stage.number and one.queue_slots for one in gpreempt.devices()):
        raise Skip("this device has no queue slots that could be reserved")
    run.did = "reserved {} % of the queue slots for online work and {} % for offline work".format(ONLINE_PERCENT, OFFLINE_PERCENT)
    if is_simulated:
        run.did += ", on the simulated machine that the library carries"
        with gpreempt.Context(backend="sim") as context:
            _reserve(run, context, 0, lambda: run.saw.append(NOT_TRIED.format("the GPU that is simulated in real time takes none")))
    elif run.stage.starts_jobs:
        run.did += ", and tried that with more offline queues than it has room for, and with an online one"
        _reserve(run, gpreempt.context(), run.stage.number, lambda: _limited(run, calls))
    else:
        _reserve(run, gpreempt.context(), run.stage.number, lambda: run.saw.append(NOT_TRIED.format("it needs jobs that fill the slots, those of --job")))
    if run.stage.starts_jobs:
        run.did += "; then filled the GPU's queue slots"
        _fill(run, calls)


def _reserve(run: Run, context: gpreempt.Context, device: int, tried: Callable[[], None]) -> None:
    """tried: what is done while it is reserved. What was reserved before is so again at the end."""
    def reserved() -> Any:
        return next((one.online_percent, one.offline_percent) for one in context.devices() if one.device == device)

    before = reserved()
    try:
        context.reserve(device, ONLINE_PERCENT, OFFLINE_PERCENT)
        run.fact("the device has the reservation", reserved() == (ONLINE_PERCENT, OFFLINE_PERCENT))
        run.fact("more than 100 % is refused, and changes nothing", _is_refused(context, device) and reserved() == (ONLINE_PERCENT, OFFLINE_PERCENT))
        tried()
    finally:
        context.reserve(device, *before)
    run.fact("it has what it had before", reserved() == before)


def _is_refused(context: gpreempt.Context, device: int) -> bool:
    try:
        context.reserve(device, 80, 30)
    except gpreempt.Error:
        return True
    return False


def _slots(run: Run) -> int:
    return next(one.queue_slots for one in gpreempt.devices() if one.device == run.stage.number)


def _limited(run: Run, calls: Calls) -> None:
    """While it is reserved: whether offline queues keep to it, all come to their turn, and online work is served beside them."""
    slots = _slots(run)
    room, most = slots * OFFLINE_PERCENT // 100, 0
    with run.stage.offline(calls, slots) as job:
        before = job.progress()

        def had_turns() -> bool:
            nonlocal most
            most = max(most, min(_at_once(job.pid) for _ in range(2)))  # of two looks one may fall into a change of turns
            return all(now > then for (_, now), (_, then) in zip(job.progress(), before))

        is_limited = comes(lambda: _at_once(job.pid) <= room)
        is_fair = comes(had_turns)
        served = run.stage.served(run.stage.online(RESERVED_RATE, RESERVED_REQUESTS))
    run.saw.append("of {} offline queues at most {} at once with {} slots for them, {}; {} of {} requests beside them served".format(
        slots, most, room, "each in its turn" if is_fair else "some never", served["completed"], RESERVED_REQUESTS))
    run.fact("no more offline queues run at once than it has room for", is_limited and most <= room)
    run.fact("each of the offline queues has its turn", is_fair)
    run.fact("an online program beside them is served", served["completed"] == RESERVED_REQUESTS)


def _at_once(pid: int) -> int:
    """How many of its queues run, and do not wait for their turn: gpreemptd's to tell, or the driver's where that keeps the reservation."""
    return sum(1 for queue in gpreempt.queues(pid=pid) if queue.state == gpreempt.QueueState.RUNNING and not _waits(queue))


def _waits(queue: gpreempt.Queue) -> bool:
    try:
        with open(QUEUE_STATE.format(queue.local_pid, queue.queue_id)) as file:
            return "waits" in file.read().split()
    except OSError:
        return False


def _fill(run: Run, calls: Calls) -> None:
    from gpreempt_scheduler import HQDResourceMonitor  # the notes' module: beside this package

    monitor, slots = HQDResourceMonitor(check_interval_ms=20, device=run.stage.number), _slots(run)
    with run.stage.offline(calls, slots):
        with monitor:
            time.sleep(run.chosen("filled_s", 1, 10))
    run.raw["hqd"] = list(monitor.samples)
    run.saw.append("{} active queues on {} slots".format(max((int(one["active"]) for one in monitor.samples), default=0), slots))
    run.judge("hqd_percent", monitor.mean_percent)


def compare(run: Run, calls: Calls) -> None:
    repeats, apart_s = run.chosen("repeats", 20, 100), run.chosen("apart_s", 0.01, 0.1)
    run.did = "off the GPU, a wait of {} ms as online work, on again: {} times, {:g} ms apart, with {} queues, by {}".format(
        ONLINE_MS, repeats, apart_s * 1e3, ", ".join(map(str, QUEUES)), " and ".join(said(way) for way in run.ways))
    run.used = run.ways
    run.raw["compared"] = []
    for queues in QUEUES:
        try:
            for way in run.ways:
                _compared(run, Calls(way), queues, repeats, apart_s)
        except Skip as why:
            run.saw.append("{}: {}".format(queue_count(queues), why))
    run.fact("something was compared", bool(run.raw["compared"]))
    _say_speed_up(run)
    _say_batch(run)


def _compared(run: Run, calls: Calls, queues: int, repeats: int, apart_s: float) -> None:
    way, before = calls.way.name, "{}_{}_".format(calls.way.name, queues)
    with run.stage.offline(calls, queues) as job:
        cycles = run.repeat(calls, job, ONLINE_MS / 1e3, lambda at, n: n >= repeats, lambda: ONLINE_MS / 1e3 + apart_s, before=before)
        taken = sorted({queue.way for queue in gpreempt.queues(pid=job.pid)})
        run.see_job(job, repeats, held(cycles), queues, "{} way, {}: ".format(way, queues))
    run.measure(before + "online_ms", [cycle.online_ms for cycle in cycles], "online_{}_ms".format(way))
    run.raw["compared"].append({"way": way, "queues": queues, "grace_us": calls.way.grace_us, "taken": taken})


def _say_speed_up(run: Run) -> None:
    if run.ways != [OLD, NEW]:
        return
    for queues in QUEUES:
        old, new = (run.figures.get("{}_{}_{}".format(way, queues, name)) for way, name in ((OLD, "suspend_ms"), (NEW, "batch_unmap_ms")))
        before, after = (one[run.of] if one else None for one in (old, new))
        if before and after:
            run.saw.append("{}: the old way's suspend takes {:.3f} ms, the new one's unmap {:.3f} ms: {:.2f} times as fast, {:.0f} % saved ({}, {})".format(
                queue_count(queues), before, after, before / after, 100 * (1 - after / before), run.of,
                device_text(run.stage.device)))


def _say_batch(run: Run) -> None:
    has_batch = any(one.device == run.stage.number and gpreempt.Caps.BATCH in one.caps for one in gpreempt.devices())
    run.raw["has_batch"] = has_batch
    for way in run.ways:
        taken = {word for row in run.raw["compared"] if row["way"] == way for word in row["taken"]}
        run.saw.append("{} way: queues were stopped by {}".format(way, ", ".join(sorted(taken)) or "nothing"))
    if NEW in run.ways and not has_batch:
        run.saw.append("this device has no batch call: the new way took the old one's, and differs from it by chance alone")


class _Watched:
    """A scheduler; whoever is off the GPU is told when that begins and before it ends."""

    def __init__(self, scheduler: Any, watched: List[Any]) -> None:
        self._scheduler, self._watched = scheduler, watched

    def notify_online_task(self) -> None:
        self._scheduler.notify_online_task()
        for one in self._watched:
            one.look()

    def online_task_complete(self) -> None:
        for one in self._watched:
            one.see_still()
        self._scheduler.online_task_complete()


class _Nobody:
    """A scheduler that does nothing: requests are served beside whatever runs."""

    def notify_online_task(self) -> None:
        pass

    def online_task_complete(self) -> None:
        pass


def models(run: Run, calls: Calls) -> None:
    import simple_models  # the notes' modules: beside this package
    from ai_model_wrapper import mark_online

    requests = run.chosen("requests", 5, 20)
    run.chosen("pause_s", 0.1, MODELS_PAUSE_S)
    on_gpu = run.stage.device.kind == MEASURED and simple_models.has_gpu()
    torch = "PyTorch, on the {}".format("GPU" if on_gpu else "CPU") if simple_models.HAS_TORCH else "no PyTorch: waits of the stated length"
    run.did = "served {} requests of case A (a CNN) and of case B (a transformer) beside a training job, with GPreemptScheduler; {}".format(requests, torch)
    mark_online()  # before a model goes to the GPU
    cases = [("a", simple_models.SimpleCNN(ONLINE_MS)), ("b", simple_models.SimpleTransformer(ONLINE_MS))]  # type: List[Tuple[str, Any]]
    for case, model in cases:
        model.is_told = True  # what it did says it
        with run.stage.offline(calls) as job:
            _case_of_job(run, case, model.cuda() if on_gpu else model, requests, job)
        if not simple_models.HAS_TORCH:
            run.judge_figure("online_{}_ms".format(run.way), "case_{}_ms".format(case))
    if simple_models.HAS_TORCH:
        _real(run, calls, requests, on_gpu)


def _case_of_job(run: Run, case: str, model: Any, requests: int, job: Job, training: Optional[OnCpu] = None) -> None:
    """training: stands still with the job."""
    off = _case(run, case, model, requests, job.pid, [job] + ([training] if training else []))
    run.see_job(job, requests, off, what="case {}: ".format(case.upper()))


def _case(run: Run, case: str, model: Any, requests: int, pid: int, watched: List[Any]) -> Held:
    """Requests with a process off the GPU; for how long it was."""
    from ai_model_wrapper import OnlineAIModel
    from gpreempt_scheduler import GPreemptScheduler

    scheduler = GPreemptScheduler()
    try:
        for queue in gpreempt.queues(pid=pid):
            scheduler.register_offline_queue(queue)
        online = OnlineAIModel(model, _Watched(scheduler, watched))
        _warm_up(model)
        _serve(run, online, case, requests)
    finally:
        scheduler.cleanup()
    run.fact("case {}: all {} requests were served with offline work off the GPU".format(case.upper(), requests), online.last_error is None)
    took = scheduler.statistics
    return Held((took.online.total - took.suspend.total) / 1e3, (took.online.total + took.resume.total) / 1e3)


def _warm_up(model: Any) -> None:
    """The first request takes longer, on a GPU much."""
    from ai_model_wrapper import OnlineAIModel

    OnlineAIModel(model, _Nobody()).inference()


def _real(run: Run, calls: Calls, requests: int, on_gpu: bool) -> None:
    """ResNet-18 beside the training of a BERT, both on the GPU, or both on the CPU."""
    import real_models
    from ai_model_wrapper import OnlineAIModel

    run.did += "; and of ResNet-18 beside the training of a small BERT"
    model = real_models.ResNet18()
    online = OnlineAIModel(model.cuda() if on_gpu else model, _Nobody())
    _warm_up(model)
    _serve(run, online, "c_alone", requests)
    (_beside_gpu if on_gpu else _beside_cpu)(run, calls, online, requests)


def _beside_cpu(run: Run, calls: Calls, online: Any, requests: int) -> None:
    """The training follows the queue of the job that stands for it: gpreemptd tells whether that is suspended."""
    with OnCpu() as training:
        _serve(run, online, "c_unscheduled", requests)
        with run.stage.offline(calls) as job:
            training.follow(job.pid)
            _case_of_job(run, "c", online.model, requests, job, training)
        training.come_to(max(STEPS, len(training.losses) + 1), "the training goes on")
        losses = training.losses
    _see_training(run, losses, training.still, requests)


def _beside_gpu(run: Run, calls: Calls, online: Any, requests: int) -> None:
    """The training is the job. Whether it stands still is seen apart from the requests, whose times it would be in."""
    with OnGpu() as training:
        until_known(calls, training.pid, 1, "training")
        _serve(run, online, "c_unscheduled", requests)
        _case(run, "c", online.model, requests, training.pid, [])
        for _ in range(requests):
            calls.cycle(calls.queues(training.pid), lambda: training.hold(HOLD_S))
        training.come_to(len(training.losses) + STEPS, "the training goes on")
        losses = training.losses
    with OnGpu() as undisturbed:
        undisturbed.come_to(len(losses), "as many steps without a preemption")
        same = undisturbed.losses[:len(losses)]
    _see_training(run, losses, training.still, requests)
    run.fact("case C: nothing lost: each step has the loss of the same step undisturbed", losses == same)


def _see_training(run: Run, losses: List[float], still: int, times: int) -> None:
    run.raw["losses"] = losses
    run.saw.append("case C: {} steps of training, loss {:.2f} at first and {:.2f} at the end".format(len(losses), losses[0], losses[-1]))
    run.fact("case C: the training stood still each time", still == times)
    run.fact("case C: the training learned", losses[-1] < losses[0])


def _serve(run: Run, online: Any, case: str, requests: int) -> None:
    latencies = []  # type: List[float]
    try:
        for _ in range(requests):
            online.inference()
            latencies.append(online.last_latency_ms)
            run.progress("case {}: {} requests".format(case.upper(), len(latencies)))
            time.sleep(run.parameters["pause_s"])
    finally:
        if latencies:
            run.measure("case_{}_ms".format(case), latencies)


CHECKS = [("batch", batch), ("reservation", reservation), ("compare", compare), ("models", models)]
