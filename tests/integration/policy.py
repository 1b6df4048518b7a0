#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Policies from shared objects: the document's example, those that break a rule, and files that are none."""

import json
import os
import re
import shutil
import subprocess

import tap

CC = os.environ.get("CC", "cc").split()
DOCUMENT = tap.read(tap.SOURCE, "docs", "POLICY.md")
EXAMPLE = re.search(r"```c\n(.*?)```", DOCUMENT, re.S)[1]
WAY = "interrupt-batched"
SIM = ("sim", "B", "--duration", "3s", "--only", WAY)

# Five offline clients on a device that yields: one may run at a time.
TURNS = """[scenario]
device = h200
duration = 2s
[online serve]
work = infer-1ms
rate = 100
[offline train]
work = train
clients = 5
"""


def text_of(body, table=""):
    """A policy named grace; the last one counts where the table gives a field twice."""
    return f"""#include <gpreempt/policy.h>
{body}
#pragma GCC diagnostic ignored "-Woverride-init"
const struct gp_policy_ops gp_policy = {{ .size = sizeof(gp_policy), .abi = GP_POLICY_ABI, .name = "grace", {table} }};
"""


def decides(statement):
    body = f"static uint64_t decide(struct gp_policy *p, uint64_t now_ns) {{ (void)p; (void)now_ns; {statement} }}"
    return text_of(body, ".flags = GP_POLICY_STOPS_ONLINE, .decide = decide")


RUNS_ALL = text_of("static void enqueue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now_ns)"
                   " { (void)now_ns; gp_policy_run(p, c->id); }"
                   " static uint64_t decide(struct gp_policy *p, uint64_t now_ns) { (void)p; (void)now_ns; return GP_NEVER; }",
                   ".enqueue = enqueue, .decide = decide")
RUNS_NO_ONLINE = RUNS_ALL.replace("gp_policy_run", "if (c->client_class != GP_CLASS_ONLINE) gp_policy_run")


def build(folder, text, name="mine.so"):
    if not shutil.which(CC[0]):
        raise tap.Skip(f"{CC[0]} is not installed")
    source, path = tap.write(f"{folder}/{name}.c", text), f"{folder}/{name}"
    tap.good(*CC[1:], "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{tap.SOURCE}/include", "-o", path, source,
             program=CC[0])
    return path


def row_of(policy, sim=SIM):
    rows = json.loads(tap.good(*sim, "--policy", policy, "--json").stdout)["rows"]
    return [row for row in rows if row["config"] == sim[-1]][-1]


def refused(policy, *words, folder=None):
    done = tap.run(*SIM, "--policy", policy, cwd=folder)
    tap.same((done.returncode, done.stdout), (tap.BAD_INPUT, ""), done.stderr)
    for word in ("gpreempt: --policy: ", *words):
        tap.true(word in done.stderr, f"{word!r} is not in {done.stderr!r}")
    tap.same(done.stderr.count("\n"), 1, done.stderr)


@tap.test("the document's example compiles without a warning, in as many lines as it says, and its commands print what it shows")
def _(folder):
    lines = int(re.search(r"^## One in (\d+) lines$", DOCUMENT, re.M)[1])
    tap.true(EXAMPLE.count("\n") <= lines, f"{EXAMPLE.count(chr(10))} lines")
    build(folder, EXAMPLE, "grace.so")
    os.symlink(f"{os.path.abspath(tap.SOURCE)}/include", f"{folder}/include")
    tap.write(f"{folder}/grace.c", EXAMPLE)
    shown = re.search(r"\n```\n(\$ cc .*?)```", DOCUMENT, re.S)[1]
    path = f"{os.path.dirname(tap.PROGRAM)}:{os.environ['PATH']}"
    for command, output in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", shown, re.M):
        done = subprocess.run(command, shell=True, cwd=folder, env={**os.environ, "PATH": path}, text=True, capture_output=True, check=False)
        tap.same((done.stdout, done.stderr), (output, ""), command)


@tap.test("the document's example stops offline 2 ms later than priority does, and offline gains by it")
def _(folder):
    grace, priority = row_of(build(folder, EXAMPLE)), row_of("priority")
    later = grace["preempt_ns"]["p50"] - priority["preempt_ns"]["p50"]
    tap.true(1900000 < later < 2100000, f"{later} ns later")
    tap.true(grace["be_norm"] > priority["be_norm"], "offline gained nothing")


@tap.test("the document's example is ejected in no scenario and no configuration")
def _(folder):
    policy = build(folder, EXAMPLE)
    for scenario in ("E", "levels", "h200-three"):
        result = json.loads(tap.good("sim", scenario, "--duration", "2s", "--policy", policy, "--json").stdout)
        tap.same([row["reason"] for row in result["rows"] if "ejected" in row["reason"]], [], scenario)


@tap.test("the result names the loaded policy, and the command in it loads the same again")
def _(folder):
    policy = build(folder, EXAMPLE)
    text = tap.good(*SIM, "--policy", policy, "--json").stdout
    result = json.loads(text)
    tap.same(result["scenario"]["policy"], "grace", "policy")
    tap.same(tap.good(*result["command"].split()[1:], "--json").stdout, text, "second run")


@tap.test("a file name without a slash is the file that is here")
def _(folder):
    build(folder, EXAMPLE, "libc.so")
    tap.true("policy grace" in tap.good(*SIM, "--policy", "libc.so", cwd=folder).stdout, "another one was loaded")


@tap.test("a policy that breaks a rule is ejected, fifo goes on, and the reason is the one in the document")
def _(folder):
    yields = ("sim", tap.write(f"{folder}/turns.ini", TURNS), "--only", "yield")
    bad = (("gp_policy_run(p, 99)", decides("gp_policy_run(p, 99); return GP_NEVER;"), SIM),
           ("runs no online client", RUNS_NO_ONLINE, SIM), ("runs all", RUNS_ALL, yields),
           ("runs nobody", decides("return GP_NEVER;"), SIM), ("spins", decides("return now_ns;"), SIM))
    reasons = re.findall(r"^\| .* \| `(policy grace ejected: .*)` \|$", DOCUMENT, re.M)
    tap.same(len(reasons), len(bad), "reasons in the document")
    for reason, (name, text, sim) in zip(reasons, bad):
        row = row_of(build(folder, text, f"{name}.so"), sim)
        tap.same(row["reason"], reason, name)
        tap.true(row["be_norm"] > 0, f"{name}: offline work has stopped")


@tap.test("the table says below that a policy was ejected")
def _(folder):
    policy = build(folder, decides("gp_policy_stop(p, 99); return GP_NEVER;"))
    said = f"{WAY}: policy grace ejected: stopped client 99, which it does not own.\n"
    tap.true(said in tap.good(*SIM, "--policy", policy).stdout, "it does not say so")


@tap.test("a policy that crashes ends its row, and the message names the row")
def _(folder):
    done = tap.run(*SIM, "--policy", build(folder, decides("__builtin_trap();")))
    tap.same(done.returncode, tap.FAILED, done.stderr)
    tap.true(f"the row {WAY} " in done.stderr, done.stderr)


@tap.test("a policy that is not there, or no shared object, is refused with the reason")
def _(folder):
    refused(f"{folder}/nosuch.so", "nosuch.so: No such file or directory; ")
    refused("nosuch.so", "nosuch.so: No such file or directory; ", folder=folder)
    refused(folder, "Is a directory; ")
    refused(tap.write(f"{folder}/text.so", "policy = grace\n" * 100), "text.so: invalid ELF header; build it with cc -shared -fPIC\n")
    refused("./" + "x" * 5000, "File name too long")


@tap.test("a shared object that calls what gpreempt does not export is refused, and the message names it")
def _(folder):
    refused(build(folder, decides("return gp_version();")), "undefined symbol: gp_version; ")


@tap.test("a shared object without gp_policy, of another ABI or size, or without a name is refused with what to write")
def _(folder):
    refused(build(folder, "int other;\n", "other.so"), "there is no gp_policy in it; ")
    for number, (table, words) in enumerate({
            ".abi = GP_POLICY_ABI + 1": "it is of ABI 2 and this gpreempt of 1; build it with this one's policy.h",
            ".abi = 0": "it is of ABI 0 and this gpreempt of 1; ",
            ".size = 0": "its table has 0 bytes; write .size = sizeof(gp_policy)",
            ".size = offsetof(struct gp_policy_ops, name)": "its table has 16 bytes; ",
            ".name = 0": 'it has no name; write .name = "mine"',
            '.name = ""': "it has no name; ",
            '.name = "my own"': 'policy "my own" is not a name; ',
            '.name = "a2345678901234567890123456789012"': "policy is too long; ",
    }.items()):
        refused(build(folder, text_of("#include <stddef.h>", table), f"{number}.so"), words)


tap.main(jobs=2)
