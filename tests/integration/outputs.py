#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The files that a run writes, and the table and page that report makes of them."""

import json
import os
import re

import tap

SIM = ("sim", "E", "--duration", "3s", "--only", "exclusive,native,interrupt-batched+hints,auto")
FILES = ["index.html", "result.json", "trace.json"]


def table_of(text):
    return text[:text.index("\nWrote ")]


@tap.test("--out writes three files, makes the folders above, and leaves nothing else")
def _(folder):
    tap.good(*SIM, "--out", f"{folder}/a/b")
    tap.same(os.listdir(folder), ["a"], "folder")
    tap.same(sorted(os.listdir(f"{folder}/a/b")), FILES, "files")


@tap.test("files are as readable as the umask says")
def _(folder):
    tap.good(*SIM, "--out", f"{folder}/a", umask=0o027)
    for name in FILES:
        tap.same(os.stat(f"{folder}/a/{name}").st_mode & 0o777, 0o640, name)


@tap.test("a second run into the same folder replaces the files and keeps the others there")
def _(folder):
    tap.good(*SIM, "--out", folder)
    tap.write(f"{folder}/mine.txt", "mine")
    tap.good(*SIM, "--seed", "2", "--out", folder)
    tap.same(sorted(os.listdir(folder)), sorted([*FILES, "mine.txt"]), "files")
    tap.same(json.loads(tap.read(folder, "result.json"))["seed"], 2, "seed")


@tap.test("report makes the same page and the same table again")
def _(folder):
    table = table_of(tap.good(*SIM, "--out", folder).stdout)
    page = tap.read(folder, "index.html")
    os.unlink(f"{folder}/index.html")
    tap.same(table_of(tap.good("report", folder).stdout), table, "table")
    tap.same(tap.read(folder, "index.html"), page, "page")


@tap.test("each row says what a real AMD GPU needs for it, and no ratio is given where online cannot keep up")
def _(folder):
    words = ("sim", "E", "--duration", "30s", "--only", "exclusive,native,gate,interrupt-single,interrupt-batched+hints,auto")
    table = tap.good(*words).stdout
    for name, needs in (("native", "no gpreempt"), ("gate", "launch hook"), ("interrupt-single", "stock driver"),
                        ("interrupt-batched+hints", "new kernel"), ("auto", "new kernel")):
        tap.true(f"\n{name:23} {needs} " in table, f"{name}: {table}")
    rows = {row["config"]: row for row in json.loads(tap.good(*words, "--json").stdout)["rows"]}
    tap.same((rows["native"]["keeps_up"], rows["native"]["ratio_p99"] > 100), (False, True), "native keeps up: choose another scenario for this test")
    tap.true(re.search(r"^native .* grows ", table, re.M) and table.count("grows ") == 2, table)
    nvidia = " ".join(tap.good("sim", "h200", "--duration", "2s", "--only", "native").stdout.split())
    tap.true("on AMD" not in nvidia and "measured under open loads of 50 to 500 requests/s" in nvidia, "an NVIDIA device")
    tap.true("measured under open loads" not in table, "an AMD device")


@tap.test("a result of the first release, without what a row needs, is reported all the same")
def _(folder):
    tap.good(*SIM, "--out", folder)
    spoil(folder, lambda result: [row.pop("on_amd") for row in result["rows"]])
    tap.true("\ninterrupt-batched+hints " in tap.good("report", folder).stdout, "table")


@tap.test("report --out writes the page to that file alone, and --json prints the result")
def _(folder):
    tap.good(*SIM, "--out", f"{folder}/a")
    page = tap.read(folder, "a", "index.html")
    os.unlink(f"{folder}/a/index.html")
    done = tap.good("report", f"{folder}/a", "--out", f"{folder}/page.html", "--json")
    tap.same(tap.read(folder, "page.html"), page, "page")
    tap.same(sorted(os.listdir(f"{folder}/a")), ["result.json", "trace.json"], "files")
    tap.same(done.stdout, tap.read(folder, "a", "result.json"), "result")


def check_event(event, named):
    for key in ("ph", "pid", "tid", "name"):
        tap.true(key in event, f"{key} is missing in {event}")
    if event["ph"] == "M":
        named.add((event["pid"], event["tid"]))
        return
    tap.true(event["ph"] in ("X", "b", "e"), f"kind of event: {event}")
    tap.true(event["ts"] >= 0 and event.get("dur", 0) >= 0, f"ends before it begins: {event}")
    tap.true((event["pid"], event["tid"]) in named, f"in a lane without a name: {event}")


@tap.test("trace.json is a trace that viewers open: every event has its place and ends after it begins")
def _(folder):
    tap.good(*SIM, "--out", folder)
    trace, named = json.loads(tap.read(folder, "trace.json")), set()
    for event in trace["traceEvents"]:
        check_event(event, named)
    kinds = {event["name"] for event in trace["traceEvents"] if event["ph"] != "M"}
    tap.true({"serve 0 request", "work", "suspended", "cycle"} <= kinds, f"kinds of spans: {kinds}")
    rows = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    tap.same(rows, [f"{name} (simulated)" for name in SIM[-1].split(",")], "rows")


@tap.test("no two spans of a lane overlap, since a viewer drops the second; what may overlap begins and ends by id")
def _(folder):
    tap.good("sim", "E", "--duration", "12s", "--only", "exclusive,native,auto+hints", "--out", folder)
    events = json.loads(tap.read(folder, "trace.json"))["traceEvents"]
    lanes, begun = {}, {}
    for event in events:
        begin = round(event.get("ts", 0) * 1000)
        if event["ph"] == "X":
            lanes.setdefault((event["pid"], event["tid"]), []).append((begin, begin + round(event["dur"] * 1000)))
        elif event["ph"] == "b":
            tap.true(event["id"] not in begun, f"an id that another span has: {event}")
            begun[event["id"]] = begin
        elif event["ph"] == "e":
            tap.true(begun.pop(event["id"], begin + 1) <= begin, f"ends what never began, or too early: {event}")
    tap.same(begun, {}, "spans without an end")
    for lane, spans in lanes.items():
        spans.sort()
        for (_, end), (begin, _) in zip(spans, spans[1:]):
            tap.true(end <= begin, f"spans overlap in lane {lane} at {begin}")


def spoil(folder, change):
    result = json.loads(tap.read(folder, "result.json"))
    change(result)
    tap.write(f"{folder}/result.json", json.dumps(result))


SPOILED = {
    "without rows": lambda r: r.pop("rows"),
    "whose rows are no list": lambda r: r.update(rows=7),
    "with a row that is no object": lambda r: r["rows"].append("native"),
    "without groups": lambda r: r["scenario"].pop("groups"),
    "whose latency is text": lambda r: r["rows"][0]["latency_ns"].update(p50="1 ms"),
    "of another schema": lambda r: r.update(schema="gpreempt-result-99"),
}


def check_refused(folder):
    page = tap.read(folder, "index.html")
    done = tap.run("report", folder)
    tap.same((done.returncode, done.stdout), (tap.BAD_INPUT, ""), done.stderr)
    tap.same(done.stderr.count("\n"), 1, done.stderr)
    tap.true(done.stderr.startswith(f"gpreempt: {folder}/result.json:1: "), done.stderr)
    tap.same(tap.read(folder, "index.html"), page, "page")


@tap.test("report refuses a result with something missing or wrong in it, and leaves the page alone")
def _(folder):
    for what, change in SPOILED.items():
        tap.good(*SIM, "--out", folder)
        spoil(folder, change)
        try:
            check_refused(folder)
        except AssertionError as wrong:
            raise AssertionError(f"a result {what}: {wrong}") from wrong


@tap.test("report refuses half a result")
def _(folder):
    tap.good(*SIM, "--out", folder)
    text = tap.read(folder, "result.json")
    tap.write(f"{folder}/result.json", text[:len(text) // 2])
    check_refused(folder)


@tap.test("a name with markup in it cannot leave its place in the page")
def _(folder):
    text = tap.good("sim", "--show", "A").stdout.replace("name = A", "name = A\n# </script><script>alert(1)</script>")
    tap.good("sim", tap.write(f"{folder}/a.ini", text), "--duration", "2s", "--only", "auto", "--out", folder)
    tap.true("alert(1)" in tap.read(folder, "result.json"), "the comment is not in the result: nothing was tested")
    tap.true("</script><script>alert" not in tap.read(folder, "index.html"), "markup is in the page as it is")


tap.main()
