#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=2700 memory=3G param=cus=8
"""gpreempt verify on the real driver: by the agents on the stock one, by a session where the driver has them."""

import json
import os

import amd
import tap
from torchless import without_torch

CHECKS = ["basic", "frequent", "edge", "latency", "throughput", "stability", "stress", "batch", "reservation", "compare", "models"]
IS_PATCHED = os.environ.get("BED_DRIVER") == "patched"


def verify(machine, *words, job=amd.TARGET):
    env = without_torch({**machine.environment(), "GPREEMPT_QUIET": "1"})
    return tap.run("verify", *words, "--job", job, env=env, timeout=None)


@tap.test("all of the notes' tests find on the real driver that queues stop, go on and lose nothing, and say that it is software cost")
def _(folder):
    with amd.Machine(folder) as machine:
        done = verify(machine, "--duration", "1s", "--json")
        told = json.loads(done.stdout)
        tap.same((told["device"]["kind"], "software cost" in told["device"]["text"]), ("software GPU", True), f"{told['device']}")
        tap.same([(check["name"], check["status"], check["reason"]) for check in told["checks"]], [(name, "passed", "") for name in CHECKS], f"{untrue(told)}")
        by_name = {check["name"]: check for check in told["checks"]}
        compared = by_name["compare"]["raw"]
        tap.same((compared["has_batch"], {word for row in compared["compared"] for word in row["taken"]}),
                 (IS_PATCHED, {"session" if IS_PATCHED else "update"}), "whether there is a batch call, and the ways taken")
        tap.same([row["way"] for row in by_name["throughput"]["raw"]["lost"]], ["old", "new"], "the ways whose loss of throughput was measured")
        for name in ("stability", "stress"):
            tap.true("kernel log: 0 messages of a driver in trouble" in by_name[name]["saw"], f"{name}: {by_name[name]['saw']}")
        tap.same(done.returncode, 0, done.stderr)
    tap.same((amd.stat("bad_restores"), amd.stat("bad_addresses")), (0, 0), "bad restores and addresses")


def untrue(told):
    return [(check["name"], fact["what"]) for check in told["checks"] for fact in check["facts"] if not fact["is_so"]]


@tap.test("a job that goes on while it is held, and one that loses a dispatch, make a check fail")
def _(folder):
    for order, before, want in (("progress", ":", "stood still as often as asked"), ("end", " ", "nothing lost")):
        liar = tap.write(f"{folder}/liar", LIAR.format(target=amd.TARGET, order=order, before=before))
        os.chmod(liar, 0o755)
        with amd.Machine(folder) as machine:
            done = verify(machine, "basic", "--json", job=liar)
        check = json.loads(done.stdout)["checks"][0]
        tap.same((done.returncode, check["status"]), (1, "failed"), f"{check['facts']} {check['reason']}")
        tap.same([fact["what"].startswith(want) for fact in check["facts"] if not fact["is_so"]], [True], f"{check['facts']}")


LIAR = """#!/bin/sh
# Becomes the target, with the end of its answers to one order changed: each has another number.
mkfifo "$0.$$"
while read -r word rest; do
	[ "$word" != {order} ] || rest="${{rest%[: ]*}}{before}$((n += 1))"
	echo "$word $rest"
done <"$0.$$" &
exec {target} "$@" >"$0.$$"
"""


tap.main()
