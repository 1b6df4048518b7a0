#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The same scenario and seed give the same files, to the byte."""

import json
import os
import shlex

import tap

FILES = ("result.json", "index.html", "trace.json")
RANDOM = ("E", "--duration", "4s", "--only", "exclusive,native,gate+hints,interrupt-batched,auto")


def files_of(folder, *args):
    tap.good("sim", *args, "--out", folder)
    return {name: tap.read(folder, name, mode="rb") for name in FILES}


def same_files(one, other):
    for name in FILES:
        tap.same(one[name], other[name], name)


@tap.test("two runs with one seed write the same bytes")
def _(folder):
    same_files(files_of(f"{folder}/1", *RANDOM, "--seed", "7"), files_of(f"{folder}/2", *RANDOM, "--seed", "7"))


@tap.test("the number of jobs changes no byte")
def _(folder):
    same_files(files_of(f"{folder}/1", *RANDOM, "--jobs", "1"), files_of(f"{folder}/2", *RANDOM, "--jobs", "2"))


@tap.test("the rows of a sweep come in the same order with more jobs than rows")
def _(folder):
    sweep = ("queues", "--duration", "2s", "--only", "native,auto")
    same_files(files_of(f"{folder}/1", *sweep, "--jobs", "1"), files_of(f"{folder}/2", *sweep, "--jobs", "99"))


@tap.test("another seed gives other figures")
def _(folder):
    rows = [json.loads(files_of(f"{folder}/{seed}", *RANDOM, "--seed", seed)["result.json"])["rows"] for seed in "12"]
    tap.true(rows[0][0]["histogram"] != rows[1][0]["histogram"], "seeds 1 and 2 have the same latencies")


@tap.test("the command in a result, run again, gives that result")
def _(folder):
    asked = ("E", "--duration", "3s", "--seed", "3", "--device", "mi300x", "--policy", "fair", "--only", "native auto+hints")
    first = files_of(f"{folder}/1", *asked)
    command = shlex.split(json.loads(first["result.json"])["command"])
    tap.same(command[:2], ["gpreempt", "sim"], "command")
    same_files(first, files_of(f"{folder}/2", *command[2:]))


@tap.test("the command in a result of a file with blanks and quotes in its name can be run again")
def _(folder):
    name = os.path.join(folder, "it's a $HOME `test`.ini")
    tap.write(name, tap.good("sim", "--show", "A").stdout)
    first = tap.good("sim", name, "--duration", "2s", "--json").stdout
    command = shlex.split(json.loads(first)["command"])
    tap.same(command[2], name, "scenario")
    tap.same(tap.good(*command[1:], "--json").stdout, first, "result")


@tap.test("what is printed with --json is what is written to result.json")
def _(folder):
    done = tap.good("sim", *RANDOM, "--json", "--out", f"{folder}/1")
    tap.same(done.stdout, tap.read(folder, "1", "result.json"), "result")


tap.main()
