#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every built-in scenario on every built-in device."""

import json

import tap

DEVICES = ("mi308x", "mi300x", "h200")
CANNOT = "this device cannot do it"


def names():
    return [entry["name"] for entry in json.loads(tap.good("sim", "--list", "--json").stdout)]


def check_rows(rows):
    for row in rows:
        at = f"{row['config']} hints {row['hints']} value {row['sweep_value']}"
        ran = row["reason"] != CANNOT
        tap.same(row["lost_work"], 0 if ran else None, f"{at}: lost_work")
        tap.true(0 <= row["unfinished"] <= row["requests"], f"{at}: {row['unfinished']} of {row['requests']} unfinished")
        tap.same(sum(bar[2] for bar in row["histogram"]), row["requests"], f"{at}: requests in the histogram")
        if row["config"] == "exclusive":
            tap.same(row["ratio_p50"], 1, f"{at}: ratio_p50")
            tap.true(row["ratio_p99"] in (1, None), f"{at}: ratio_p99 is {row['ratio_p99']}")
            tap.same(row["be_norm"], None, f"{at}: be_norm")
        elif ran:
            tap.true(row["be_norm"] is not None, f"{at}: no be_norm")


def check_table(text, rows):
    lines = text.split("\n")
    for line in lines:
        tap.true(len(line) <= 120, f"{len(line)} columns: {line}")
    shown = {row["config"] + ("+hints" if row["hints"] else "") for row in rows}
    for name in shown:
        tap.true(any(line.split(" ")[0] == name for line in lines), f"no row {name}")
    tap.true("simulated" in text, "the table does not say simulated")


def check_scenario(name, device, folder):
    table = tap.good("sim", name, "--device", device, "--duration", "2s", "--out", folder).stdout
    result = json.loads(tap.read(folder, "result.json"))
    tap.same(result["schema"], "gpreempt-result-1", "schema")
    tap.same(result["simulated"], True, "simulated")
    tap.same(result["scenario"]["device"], device, "device")
    tap.true(result["rows"], "no rows")
    check_rows(result["rows"])
    check_table(table, result["rows"])
    for file in ("index.html", "trace.json"):
        tap.true("simulated" in tap.read(folder, file), f"{file} does not say simulated")


def add_test(name, device):
    @tap.test(f"scenario {name} runs on {device}, loses no work and says that it is simulated")
    def _(folder):
        check_scenario(name, device, folder)


for scenario in names():
    for gpu in DEVICES:
        add_test(scenario, gpu)


@tap.test("with enough requests the p99 of exclusive is there and its ratio is 1")
def _(folder):
    result = json.loads(tap.good("sim", "A", "--duration", "12s", "--only", "exclusive,auto", "--json").stdout)
    tap.true(result["rows"][0]["requests"] >= 1000, "too few requests for this test")
    tap.same(result["rows"][0]["ratio_p99"], 1, "ratio_p99")
    tap.true(result["rows"][1]["ratio_p99"] >= 1, "auto is faster than exclusive")


@tap.test("a row in which online cannot keep up says how many requests were still waiting")
def _(folder):
    args = ("sim", "A", "--duration", "12s", "--only", "native,auto")
    native, auto = json.loads(tap.good(*args, "--json").stdout)["rows"]
    tap.true(native["unfinished"] > native["requests"] / 10, "native keeps up: choose another scenario for this test")
    tap.same((native["keeps_up"], auto["keeps_up"]), (False, True), "keeps_up")
    said = f"native: {native['unfinished']:,} of {native['requests']:,} requests were still waiting at the end"
    text = " ".join(tap.good(*args).stdout.split())
    tap.true(said in text, f"not below the table: {said}")
    tap.true("auto: " + said.split(": ")[1] not in text, "said of auto too")


@tap.test("below the table stands what each way that is shown needs, and no other")
def _(folder):
    text = " ".join(tap.good("sim", "A", "--duration", "2s", "--only", "native,gate,yield+hints").stdout.split())
    needs = text[text.index("On a real AMD GPU:"):]
    tap.true("gate: a launch hook in the process" in needs, "gate is missing")
    tap.true("yield: a scheduler inside the kernel" in needs, "yield is missing")
    for other in ("throttle", "interrupt", "auto:"):
        tap.true(other not in needs, f"{other} is not shown, and is named")


tap.main()
