#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""model.py RESULTS [GPREEMPT]: what the simulated H200 says of each row that was measured on one, and how far that is from it.

RESULTS: a folder with rows.json, rows50.json, rows_async.json and several.json; GPREEMPT: the program. The scenario is h200-queue, with each row's rate and mechanism. Its two
constants are fitted to what single requests took when the server was alone, which is printed first, and to nothing else. A row that falls behind has no
quantiles to compare; a p99 takes 1,000 requests. Exits 1 if any figure is farther off than it may be.
"""

import configparser
import json
import os
import statistics
import subprocess
import sys
import tempfile

import beside
import rows

SCENARIO = os.path.join(beside.HERE, "..", "..", "share", "scenarios", "h200-queue.ini")
FITTED = ("rows", 300)  # the file and the rate
MAY_BE_OFF = {50: 0.15, 99: 0.25}
LEAST = {50: 100, 99: 1000}  # requests
BEHIND = 20000  # us: of a server that falls behind the median grows without end
KERNEL_US, LAUNCH_US = 11, 8  # of the scenario and the device
SIMULATED = {  # as the simulator has them: row, hints, parking, offline's weights, one after the other
    "exclusive": ("exclusive", 0, (100,), "yes"), "native": ("native", 0, (100,), "yes"), "yield": ("yield+hints", 0, (100,), "yes"),
    "yield with parking": ("yield+hints", 2, (100,), "yes"), "exclusive, async": ("exclusive", 0, (100,), "no"),
    "yield, async, no hints": ("yield", 0, (100,), "no"), "one": ("yield+hints", 2, (100,), "yes"), "three": ("yield+hints", 2, (100, 100, 200), "yes")}
LEFT_OUT = {("several", "exclusive"), ("several", "exclusive again")}  # as in rows


def scenario():
    read = configparser.ConfigParser(delimiters=("=",), comment_prefixes=("#", ";"))
    read.read(SCENARIO, encoding="utf-8")
    return read


def fit(found):
    """The time of a request after another one, and what one pays besides that comes to an idle server; medians, us."""
    alone = [rows.places(row) for row in beside.some(found[FITTED[0]]["rows"], "exclusive", FITTED[1])]
    first, later = (statistics.median(us for one in alone for us in one[i]) for i in (0, 2))
    read = scenario()
    kernels, prepare = int(read["work resnet50"]["kernels"]), int(read["online resnet50"]["prepare"].removesuffix("us"))
    print(f"A request that comes to an idle server takes {first:.0f} us, one after two others {later:.0f} us: the scenario has {kernels} kernels"
          f" ({kernels * KERNEL_US + LAUNCH_US} us) and prepares for {prepare} us ({first - later:.0f}).")
    return abs(kernels * KERNEL_US + LAUNCH_US - later) <= KERNEL_US / 2 + 0.5 and abs(prepare - (first - later)) <= 1


def simulate(gpreempt, folder, name, rate):
    config, park, weights, serial = SIMULATED[name]
    read = scenario()
    read["scenario"].update(configs=config, park=str(park))
    read["online resnet50"].update(rate=f"{rate:g}", serial=serial)
    work = read["offline transformer"]["work"]
    read.remove_section("offline transformer")
    for i, weight in enumerate(weights):
        read[f"offline transformer{i}"] = {"work": work, "weight": str(weight)}
    with open(f"{folder}/row.ini", "w", encoding="utf-8") as file:
        read.write(file)
    done = subprocess.run([gpreempt, "sim", f"{folder}/row.ini", "--json"], stdout=subprocess.PIPE, check=True)
    latency = json.loads(done.stdout)["rows"][0]["latency_ns"]
    return {percent: latency[f"p{percent}"] / 1000 for percent in MAY_BE_OFF}


def field(measured, model, percent, count):
    """As it is printed, and whether it is as near as it must be."""
    if count < LEAST[percent]:
        return f"{'-':>9}{model:9.0f}{'-':>8}", True
    off = model / measured - 1
    return f"{measured:9.0f}{model:9.0f}{off * 100:+7.0f}%", abs(off) <= MAY_BE_OFF[percent]


def compare(file, name, rate, some, model):
    measured = {percent: beside.p(some, percent) for percent in MAY_BE_OFF}
    begin = f"{file:10} {name:24} {rate:5.0f}"
    if measured[50] > BEHIND or model[50] > BEHIND:
        both = measured[50] > BEHIND and model[50] > BEHIND
        print(f"{begin}  falls behind: {'both' if both else 'only one of them'}")
        return both
    count = min(len(row["latency_us"]) for row in some) * len(some)
    fields = [field(measured[percent], model[percent], percent, count) for percent in MAY_BE_OFF]
    near = all(is_near for _, is_near in fields)
    print(begin + " ".join(text for text, _ in fields) + ("" if near else "  OFF"))
    return near


def main(results, gpreempt="gpreempt"):
    found = {}
    for file in ("rows50", "rows", "rows_async", "several"):
        with open(f"{results}/{file}.json", encoding="utf-8") as kept:
            found[file] = json.load(kept)
    good = fit(found)
    print(f"{'file':10} {'row':24} {'rate':>5}{'p50 us':>9}{'model':>9}{'off':>8} {'p99 us':>9}{'model':>9}{'off':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for file, one in found.items():
            for name, rate in sorted({(row["row"], row["rate"]) for row in one["rows"]}, key=lambda key: (key[1], list(SIMULATED).index(key[0]) if key[0] in SIMULATED else -1)):
                if (file, name) not in LEFT_OUT:
                    good &= compare(file, name, rate, beside.some(one["rows"], name, rate), simulate(gpreempt, folder, name, rate))
    return 0 if good else 1


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
