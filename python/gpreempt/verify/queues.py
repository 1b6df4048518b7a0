# SPDX-License-Identifier: MIT
"""The notes' test_batch_unmap and test_fast_remap: queues by their ids, off the GPU in one call and on again."""

import argparse
import os
import time
from typing import List

import gpreempt
from gpreempt._gpu import SIMULATED, Gpu, described, device_text
from gpreempt.verify.main import complain
from gpreempt.verify.ways import NEW, Calls, Failed


def queue_id(text: str) -> int:
    if not text.isdigit() or int(text) >= 1 << 32:
        raise argparse.ArgumentTypeError("\"{}\" is no id; write a number from 0 to 4294967295".format(text))
    return int(text)


def parsed(words: List[str]) -> List[int]:
    parser = argparse.ArgumentParser(prog=os.path.basename(words[0]), description="See gpreempt-verify(1).")
    parser.add_argument("ids", type=queue_id, nargs="+", metavar="ID", help="a queue's, as gpreempt list has it")
    return list(parser.parse_args(words[1:]).ids)


def devices_of(ids: List[int]) -> List[Gpu]:
    used = {queue.device for queue in gpreempt.queues() if queue.queue_id in ids}
    return [described(one) for one in gpreempt.devices() if one.device in used]


def tried(calls: Calls, ids: List[int]) -> bool:
    """Prints what was seen; whether it is as it must be."""
    active = []  # type: List[bool]

    def look() -> float:
        active.extend(calls.is_active(one) for one in ids)
        return time.perf_counter()

    cycle = calls.cycle(ids, look)
    after = [calls.is_active(one) for one in ids]
    gpus = devices_of(ids)
    on = ", ".join(device_text(one) for one in gpus)
    print("Unmapped {} of {} queue{} in {:.3f} ms ({})".format(active.count(False), len(ids), "" if len(ids) == 1 else "s", cycle.suspend_ms, on))
    print("Mapped {} of {} again in {:.3f} ms ({})".format(after.count(True), len(ids), cycle.resume_ms, on))
    if any(one.kind == SIMULATED for one in gpus):
        print("The GPU was simulated, in real time: these are one call each, and this host's time is in them.")
    return not any(active) and all(after)


def main(words: List[str]) -> int:
    ids = parsed(words)
    try:
        calls = Calls(NEW).open()
    except (Failed, ImportError, OSError) as wrong:
        return complain(1, wrong)
    try:
        return 0 if tried(calls, ids) else 1
    except (Failed, gpreempt.Error) as wrong:
        return complain(1, wrong)
    finally:
        calls.close()
