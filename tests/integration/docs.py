#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the documents show is what the programs print, and what they name is there."""

import glob
import json
import os
import re
import shutil

import tap

# No test finds these by itself: a stranger must be told.
SHARED = ("tests/*.py", "tests/unit/*.h", "tests/unit/[!t]*.c", "tests/unit/trees", "tests/integration/*.c", "tests/kernel/*.h", "tests/kernel/bed",
          "tests/fuzz/*.h")


@tap.test("the table of the README is what the command prints")
def _(folder):
    command, shown = re.search(r"```\n\$ gpreempt (.+)\n((?:.*\n)*?)```", tap.read(tap.SOURCE, "README.md")).groups()
    tap.same(shown, tap.good(*command.split()).stdout, command)


@tap.test("the H200 table of the model is what the test prints")
def _(folder):
    row = re.compile(r"^# (.+?) +p99 over exclusive: model (\S+), measured (\S+); offline (\S+)$", re.M)
    printed = row.findall(tap.good(program=os.path.join(os.path.abspath(tap.BUILD), "tests", "test_h200")).stdout)
    shown = re.findall(r"^\| (.+?) \| ([\d.]+) \| ([\d.]+|-) \| ([\d.]+) \|$", tap.read(tap.SOURCE, "docs", "MODEL.md"), re.M)
    tap.true(printed, "the test prints no table")
    tap.same(shown, printed, "table")


@tap.test("the table of the model beside the H200's rows is what the bench makes of its files, and all are near")
def _(folder):
    place, shown = re.search(r"```\n\$ bench/h200/model.py (.+)\n((?:.*\n)*?)```", tap.read(tap.SOURCE, "docs", "MODEL.md")).groups()
    done = tap.run(os.path.join(tap.SOURCE, place), os.path.abspath(tap.PROGRAM), program=os.path.join(tap.SOURCE, "bench", "h200", "model.py"), timeout=250,
                   env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
    tap.same(done.stdout, shown, "table")
    tap.same((done.returncode, "OFF" in shown), (0, False), "off")


@tap.test("the bed's table is what the bench makes of its file, and what was measured is near what the simulator predicts")
def _(folder):
    file, shown = re.search(r"```\n\$ bench/bed_schedule.py --again (.+)\n((?:.*\n)*?)```", tap.read(tap.SOURCE, "docs", "BENCH.md")).groups()
    copy = shutil.copy(os.path.join(tap.SOURCE, file), folder)
    printed = tap.good("--again", copy, program=os.path.join(tap.SOURCE, "bench", "bed_schedule.py")).stdout
    tap.same(shown, printed, "table")
    tap.true(printed.endswith(": all\n"), printed)


@tap.test("the table of three ways to stop many queues is what the bench makes of its file")
def _(folder):
    file, shown = re.search(r"```\n\$ bench/batch_cost.py --again (.+)\n((?:.*\n)*?)```", tap.read(tap.SOURCE, "docs", "BENCH.md")).groups()
    done = tap.run("--again", os.path.join(tap.SOURCE, file), program=os.path.join(tap.SOURCE, "bench", "batch_cost.py"))
    tap.same((done.returncode, done.stdout), (1, shown), "table, with a bar that is missed")


@tap.test("the table of the notes' two ways is what the bench makes of its files, which gpreempt report compares, and nothing was lost for it")
def _(folder):
    place, shown = re.search(r"```\n\$ bench/old_new.py --again (.+)\n((?:.*\n)*?)```", tap.read(tap.SOURCE, "docs", "BENCH.md")).groups()
    place = os.path.join(tap.SOURCE, place)
    tap.same(shown, tap.good("--again", place, program=os.path.join(tap.SOURCE, "bench", "old_new.py")).stdout, "table")
    told = json.loads(tap.good("report", "--old", f"{place}/stock", "--new", f"{place}/patched", "-o", f"{folder}/r.html", "--json").stdout)
    tap.same([(row["queues"], row["way"], row["told"]) for row in told["bottlenecks"]], [(n, way, 100) for n in (1, 3, 10) for _ in range(2) for way in ("old", "new")], "rows")
    for driver, way in (("stock", "update"), ("patched", "session")):
        found = json.loads(tap.read(place, driver, "compare.json"))
        tap.same((found["status"], {tuple(row["taken"]) for row in found["raw"]["compared"]}), ("passed", {(way,)}), driver)
        tap.same({(one["still"], one["submitted"] - one["completed"], one["twice"]) for one in found["raw"]["jobs"]}, {(100, 0, 0)}, driver)


@tap.test("the H200's tables are what the bench makes of its files, and the README's figures are of them")
def _(folder):
    printed = {}
    for part, file, shown in re.findall(r"```\n\$ bench/h200/(\w+).py --again (.+)\n((?:.*\n)*?)```", tap.read(tap.SOURCE, "docs", "BENCH.md") + tap.read(tap.SOURCE, "docs", "LEVELS.md")):
        program = os.path.join(tap.SOURCE, "bench", "h200", f"{part}.py")
        name = os.path.basename(file)[:-len(".json")]
        printed[name] = tap.good("--again", os.path.join(tap.SOURCE, file), program=program, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1")).stdout
        tap.same(shown, printed[name], name)
    kept = glob.glob(os.path.join(tap.SOURCE, "results", "h200", "*.json"))
    tap.same(sorted(printed), sorted(os.path.basename(path)[:-5] for path in kept), "all that was measured is shown")
    ratio = re.search(r"^yield with parking +50 .* (\d\.\d\d) +\S+ +\S+   ", printed["rows50"], re.M).group(1)
    for name in ("README.md", "README.zh-CN.md"):
        tap.true(re.search(rf"(50 requests a second the last ratio is|50 个请求时，最后一个比值是) {ratio}\b", tap.read(tap.SOURCE, name)), f"{name} does not have {ratio}")


@tap.test("the README's table of the H200 is what the bench makes of its file, in both languages, and of the same figures as the long one")
def _(folder):
    for name in ("README.md", "README.zh-CN.md"):
        part, file, shown = re.search(r"```\n\$ bench/h200/(\w+).py --again (\S+) --short\n((?:.*\n)*?)```", tap.read(tap.SOURCE, name)).groups()
        program, place = os.path.join(tap.SOURCE, "bench", "h200", f"{part}.py"), os.path.join(tap.SOURCE, file)
        tap.same(shown, tap.good("--again", place, "--short", program=program, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1")).stdout, name)
    told = tap.good("--again", place, program=program, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1")).stdout
    long = re.findall(r"^(exclusive|native|yield|yield with parking) +(\d+) +\d+ +\d+ +\d+ +(\d+) +\d+ +(\S+) +(\S+)", told, re.M)
    short = {row: iter(re.findall(r"(\d+) +([\d.]+) +([\d.]+)", rest)) for row, rest in re.findall(r"^(\w[a-z ]+\w)  +(\d.*)$", shown, re.M)}
    tap.same([(row, rate, *next(short[row])) for row, rate, *_ in long], long, "rates in the same order")
    tap.same([list(rest) for rest in short.values()], [[]] * len(short), "figures that the long table does not have")


@tap.test("what gpreempt is worth to a cluster of Slurm's is what the bench makes of its file, and no bar is missed")
def _(folder):
    file, shown = re.search(r"```\n\$ bench/slurm_table.py --again (.+)\n((?:.*\n)*?)```", tap.read(tap.SOURCE, "docs", "CLUSTER.md")).groups()
    done = tap.good("--again", os.path.join(tap.SOURCE, file), program=os.path.join(tap.SOURCE, "bench", "slurm_table.py"), env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
    tap.same(shown, done.stdout, "table")


@tap.test("what clusters cost stands in the documents as the bench says it of the file that is kept, or there is none")
def _(folder):
    shown = re.findall(r"```\n\$ bench/cluster_cost.py --again (.+)\n((?:.*\n)*?)```", tap.read(tap.SOURCE, "docs", "BENCH.md"))
    kept = glob.glob("results/cluster_cost*.json", root_dir=tap.SOURCE)
    tap.same([place for place, _ in shown], kept, "files that are shown, and those that are kept")
    for place, said in shown:
        tap.same(said, tap.run("--again", os.path.join(tap.SOURCE, place), program=os.path.join(tap.SOURCE, "bench", "cluster_cost.py")).stdout, place)


def no_tests():
    """C files of tests/kernel that its meson.build does not list as tests."""
    text = tap.read(tap.SOURCE, "tests", "kernel", "meson.build")
    tests = set(re.findall(r"^  '(\w+)'[,:]", text, re.M)) | set(re.findall(r"kernel_tests \+= '(\w+)'", text))
    paths = glob.glob(os.path.join(tap.SOURCE, "tests", "kernel", "*.c"))
    return {os.path.relpath(path, tap.SOURCE) for path in paths if os.path.basename(path)[:-2] not in tests}


@tap.test("the map of the tests names every double and whatever else they share, and nothing that is not there")
def _(folder):
    text = tap.read(tap.SOURCE, "docs", "TESTS.md")
    named = set(re.findall(r"`((?:tests|tools|kernel|src)/[^`]*?)/?`", text))
    there = {os.path.relpath(path, tap.SOURCE) for pattern in SHARED for path in glob.glob(os.path.join(tap.SOURCE, pattern))}
    tap.same(sorted((there | no_tests()) - named), [], "not in docs/TESTS.md")
    tap.same([path for path in sorted(named) if not glob.glob(os.path.join(tap.SOURCE, path))], [], "not there")
    for name in os.listdir(os.path.join(tap.SOURCE, "tests", "unit", "trees")):
        tap.true(f"`{name}`" in text, f"the tree {name} is not in docs/TESTS.md")


@tap.test("a number, name or link that is in another cell of a row, or in another row, is a difference of the two languages")
def _(folder):
    check = os.path.join(tap.SOURCE, "tools", "check-docs.py")
    tap.write(f"{folder}/a.md", "| x | y |\n|---|---|\n| 1 `a\\|b` | 2 [z](a.md) |\n| 3 | 4 |\n")
    for rows, want in (("| 一 1 `a\\|b` | 二 2 [z](a.zh-CN.md) |\n| 3 | 4 |", []), ("| 2 `a\\|b` | 1 [z](a.md) |\n| 3 | 4 |", ["numbers"]), ("| 1 | 2 `a\\|b` [z](a.md) |\n| 3 | 4 |", ["names"]),
                       ("| 1 `a\\|b` [z](a.md) | 2 |\n| 3 | 4 |", ["links"]), ("| 3 | 4 |\n| 1 `a\\|b` | 2 [z](a.md) |", ["names", "links", "numbers", "names", "links", "numbers"])):
        tap.write(f"{folder}/a.zh-CN.md", f"| x | y |\n|---|---|\n{rows}\n")
        done = tap.run(folder, program=check)
        tap.same((done.returncode, re.findall(r": other (\w+): ", done.stdout)), (1 if want else 0, want), f"{rows}: {done.stdout}{done.stderr}")


@tap.test("an emoji in a document, or in what a program prints, is noticed; an arrow, Chinese and lines of boxes are none")
def _(folder):
    checker = os.path.join(tap.SOURCE, "tools", "check-style.py")
    head = "/* SPDX-License-" + "Identifier: MIT */\n"
    for name, text, want in (("README.md", "done \u2705", 1), ("README.md", "\U0001f680", 1), ("README.md", "\u2192 \u8bad\u7ec3 \u2502\u2500 \u00b5 \u2264", 0),
                             ("share/a.sh", head.replace("/*", "#").replace(" */", "") + "echo '\u26a0'", 1), ("a.h", head + 'char *a = "\\xf0\\x9f\\x9a\\x80";', 1),
                             ("a.h", head + 'char *a = "\\xe2\\x9c\\x85";', 1), ("a.h", head + 'char *a = "\\xe2\\x86\\x92";', 0), ("b.txt", "'\\U0001F680'", 1)):
        path = os.path.join(folder, "tree", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        tap.write(path, text + "\n")
        done = tap.run(checker, f"{folder}/tree", program="python3")
        tap.same((done.returncode, "an emoji" in done.stdout), (want, bool(want)), f"{name} {text!r}: {done.stdout}")
        os.unlink(path)


@tap.test("a wrong type in the Python package is noticed, by mypy")
def _(folder):
    checker = os.path.join(tap.SOURCE, "tools", "check-types.py")
    os.makedirs(f"{folder}/python")
    for text, want in (("def f(a: int) -> str:\n    return str(a)\n", 0), ("def f(a: int) -> str:\n    return a\n", 1), ("def f(a):\n    return a\n", 1)):
        tap.write(f"{folder}/python/one.py", text)
        done = tap.run(checker, folder, program="python3")
        if done.returncode == 77:
            raise tap.Skip(done.stdout.strip())
        tap.same(done.returncode, want, done.stdout)
    tap.same(os.listdir(f"{folder}/python"), ["one.py"], "what it leaves behind")


@tap.test("the map of the tests names every suite")
def _(folder):
    built = tap.read(tap.SOURCE, "tests", "meson.build") + tap.read(tap.SOURCE, "tests", "kernel", "meson.build")
    suites = set(re.findall(r"suite'?: '(\w+)'", built)) | {"unit", "long"}
    shown = set(re.findall(r"^\| `(\w+)` \|", tap.read(tap.SOURCE, "docs", "TESTS.md"), re.M))
    tap.same(shown, suites, "suites")


tap.main()
