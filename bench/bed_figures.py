# SPDX-License-Identifier: MIT
"""What a run of bed_schedule.py says: figures of each row, and what the parts of scheduling cost there. Times are in ns.

A row has parts, and a part has requests as (latency, sent, ended), each from when the request was to come, and what gpreemptd
remembers of it as (event, when, latency). gpreemptd stops and resumes the queues of a process by one order: the agent makes one
call for each, and answers once. The latency of an event is from the agent's first call to the end of the queue's own.
"""

import bisect
import statistics

LEAST_LINGER, MOST_LINGER = 1_000_000, 20_000_000  # ns; src/core/core.c
MESSAGES = 3  # from a hint to gpreemptd's knowing that a stop is done: the hint, the order, the answer
P99_TAKES = 1000  # requests
NEAR = 0.15


def quantile(values, permille):
    return sorted(values)[-(-len(values) * permille // 1000) - 1]


def tails(values):
    return {"p50": quantile(values, 500), "p95": quantile(values, 950), "p99": quantile(values, 990) if len(values) >= P99_TAKES else None,
            "max": max(values)}


def total(row, name):
    return sum(part[name] for part in row["parts"])


def each(row, name):
    """For each preemption."""
    return row[name] / row["preemptions"] if row.get("preemptions") else None


def figures(row, alone):
    """alone: what offline did by itself"""
    requests = [one for part in row["parts"] for one in part["requests"]]
    rate = total(row, "offline_wave_ns") / total(row, "elapsed_ns")
    return {"requests": len(requests),
            "model": tails([ended - sent for _, sent, ended in requests]),
            "before": tails([sent for _, sent, _ in requests]),
            "after": tails([latency - ended for latency, _, ended in requests]),
            "whole": tails([latency for latency, _, _ in requests]),
            "offline": rate / (alone["offline_wave_ns"] / alone["elapsed_ns"]),
            "cycles_per_preemption": each(row, "cycles"),
            "daemon_ns": each(row, "daemon_cpu_ns")}


def orders(events, queues):
    """[(event, when it was answered, [what each call took])] of the orders that all queues' events are there of"""
    found = []
    for event, when, latency in events:
        if not found or found[-1][0] != event or found[-1][2][-1] >= latency or len(found[-1][2]) == queues:
            found.append((event, when, []))
        found[-1][2].append(latency)
    return [(event, when, [b - a for a, b in zip([0, *ends], ends)]) for event, when, ends in found if len(ends) == queues]


def calls(row, event, queues):
    return [call for part in row["parts"] for one in orders(part["events"], queues) if one[0] == event for call in one[2]]


def notices(row, queues, period_ns):
    """For each preemption, from the sending of the request that caused it to gpreemptd's knowing that it is done, less the calls."""
    found = []
    for part in row["parts"]:
        sent = [part["start_ns"] + i * period_ns + one[1] for i, one in enumerate(part["requests"])]
        for event, when, took in orders(part["events"], queues):
            cause = bisect.bisect_right(sent, when - sum(took)) - 1
            if event == "suspend" and cause >= 0:
                found.append(when - sum(took) - sent[cause])
    return found


def spells(row, queues):
    """For each preemption, how long online had the device by gpreemptd's knowledge: from its stopping offline to its letting it go on."""
    found = []
    for part in row["parts"]:
        done = [(event, when - sum(took)) for event, when, took in orders(part["events"], queues)]
        found += [b[1] - a[1] for a, b in zip(done, done[1:]) if (a[0], b[0]) == ("suspend", "resume")]
    return found


def linger(row, queues, message):
    """As the scheduler has it: twice what an order to stop takes, until it is answered, within bounds."""
    stops = statistics.mean(sum(took) for part in row["parts"] for event, _, took in orders(part["events"], queues) if event == "suspend")
    return min(max(2 * (message + stops + message), LEAST_LINGER), MOST_LINGER)


def costs(sampled, hinted, queues, period_ns):
    """sampled, hinted: the rows without hints and with them"""
    rows = (sampled, hinted)
    message = statistics.median(notices(hinted, queues, period_ns)) / MESSAGES
    return {"message": message,
            # One look sees online work, the next that it is over. (A request that is over before it is seen says nothing of the period.)
            "sample": statistics.median(spells(sampled, queues)) - linger(sampled, queues, message),
            "stop_call": statistics.median([call for row in rows for call in calls(row, "suspend", queues)]),
            "resume_call": statistics.median([call for row in rows for call in calls(row, "resume", queues)]),
            "off": sum(total(row, "off_ns") for row in rows) / sum(total(row, "cycles") for row in rows)}


def device_keys(cost, save_ns):
    """Of the simulator's device; save_ns: what it adds to a cycle itself. A call is its cycle and the rest."""
    return {"unmap_ns": 0, "map_fixed_ns": 0, "map_queue_ns": 0, "dispatch_ns": 0,
            "fence_ns": max(0, cost["off"] - save_ns), "message_ns": cost["message"], "sample_ns": max(1000, cost["sample"]),
            **{f"{call}_{end}_ns": max(0, cost[call] - cost["off"]) for call in ("stop_call", "resume_call") for end in ("min", "max")}}


def is_near(bed, predicted):
    return predicted is not None and abs(bed / predicted - 1) <= NEAR
