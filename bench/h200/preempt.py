#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""preempt.py PID COUNT: suspends all queues of a process and resumes them, so many times, after pauses by chance, or until it is gone.

Prints a line of JSON: how often it was done, and how often it failed though the process was there.
"""

import json
import random
import sys
import time

import gpreempt

HELD_S, PAUSE_S = 0.0003, (0.0002, 0.002)
APPEARS_S = 30.0
LOOK_AGAIN = 100  # for new queues, once in so many times


def is_there(pid):
    """One that has ended, and that nobody has waited for yet, is not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


def queues_of(context, pid):
    end = time.monotonic() + APPEARS_S
    while not (found := context.queues(pid=pid)) and is_there(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def preempt(context, pid, count):
    chance, done, failed, queues = random.Random(count), 0, 0, []
    while done < count and failed < LOOK_AGAIN:
        if done % LOOK_AGAIN == 0 or failed:
            queues = queues_of(context, pid)
        if not queues or not is_there(pid):
            break
        try:
            with context.suspend(queues, lease=60.0):
                time.sleep(HELD_S)
            done += 1
        except OSError:
            failed += is_there(pid)
        time.sleep(chance.uniform(*PAUSE_S))
    return {"preempted": done, "failed": failed}


def main(pid, count):
    with gpreempt.Context() as context:
        print(json.dumps(preempt(context, int(pid), int(count))))


if __name__ == "__main__":
    main(*sys.argv[1:])
