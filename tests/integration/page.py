#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The page in a real browser, loaded from disk: what it draws, and that it fits."""

import html
import json
import os
import re
import shutil
import subprocess

import tap

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--allow-file-access-from-files", "--enable-logging=stderr", "--v=0",
         "--hide-scrollbars", "--virtual-time-budget=5000", "--dump-dom")
CHARTS = ("cdf", "histogram", "throughput", "tradeoff", "timeline")

# Loads the page in a frame of some width, opens all that can be opened, and writes down what is wider than it may be.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
<iframe id="frame" src="%s" style="width:%dpx;height:3000px;border:0"></iframe><pre id="measured"></pre>
<script>
document.getElementById("frame").addEventListener("load", e => {
	const page = e.target.contentDocument, scroller = page.scrollingElement;
	page.querySelectorAll("details").forEach(d => d.open = true);
	const inBox = n => n.closest(".box, .scroll, pre, #tip, caption"), table = page.querySelector("#tables table"), box = page.querySelector("#tables .box");
	const wide = [...page.querySelectorAll("body *")].filter(n => !inBox(n) && n.getBoundingClientRect().right > page.documentElement.clientWidth + 0.5);
	document.getElementById("measured").textContent = JSON.stringify({ scroll: scroller.scrollWidth, client: page.documentElement.clientWidth,
		wide: wide.map(n => n.tagName + " " + (n.id || n.className || "")), table: table && table.offsetWidth, box: box && box.clientWidth,
		figures: page.querySelectorAll("svg").length, tables: page.querySelectorAll("table").length });
});
</script>
"""

if not BROWSER:
    tap.skip_all("chromium is not installed")


def dump(path, *flags, width=1200):
    """The page's DOM after its scripts have run, and what it wrote to the console."""
    profile = path + ".profile"
    try:
        done = subprocess.run([BROWSER, *FLAGS, *flags, f"--window-size={width},2000", f"--user-data-dir={profile}", f"file://{path}"],
                              capture_output=True, text=True, timeout=120, check=False)
    finally:
        shutil.rmtree(profile, ignore_errors=True)
    tap.same(done.returncode, 0, f"browser: {done.stderr[-500:]}")
    return done.stdout, [line for line in done.stderr.split("\n") if "CONSOLE" in line]


def make(folder, *args):
    tap.good("sim", *args, "--out", folder)
    return json.loads(tap.read(folder, "result.json"))


def plot(dom, name):
    match = re.search(rf'<div class="plot" id="plot-{name}">(.*?)</div>', dom, re.S)
    tap.true(match, f"no chart {name}")
    return match[1]


def text_of(dom):
    without = re.sub(r"<(script|style)\b.*?</\1>", "", dom, flags=re.S)
    return html.unescape(re.sub(r"<[^>]*>", "", without))


@tap.test("the page draws every chart and every row, says simulated, and has nothing to complain about")
def _(folder):
    result = make(folder, "A", "--duration", "12s")
    dom, console = dump(f"{folder}/index.html")
    tap.same(console, [], "console")
    tap.true('role="alert"' not in dom, "the page shows an error")
    for name in CHARTS:
        tap.true("<svg" in plot(dom, name), f"{name} has no drawing: {plot(dom, name)[:200]}")
        tap.true(re.search(r'<path d="M[^"]{40,}"|<circle', plot(dom, name)), f"{name} has nothing drawn in it")
    body = re.search(r'id="tables".*?<tbody>(.*?)</tbody>', dom, re.S)[1]
    tap.same(body.count("<tr"), len(result["rows"]), "rows")
    text = text_of(dom)
    tap.true(text.count("imulated") > 5, "the page hardly says simulated")
    tap.true(result["command"] in text, "the command is not on the page")
    tap.true(re.search(r"<title>[^<]*simulated", dom), "the title does not say simulated")


@tap.test("the page of a sweep draws its charts over the sweep and lets one choose a value")
def _(folder):
    make(folder, "queues", "--duration", "12s", "--only", "exclusive,native,interrupt-single,auto")
    dom, console = dump(f"{folder}/index.html")
    tap.same(console, [], "console")
    for name in ("sweepratio", "sweepharvest", *CHARTS):
        tap.true("<svg" in plot(dom, name), f"{name} has no drawing: {plot(dom, name)[:200]}")
    choice = re.search(r'<select id="sweep-value">(.*?)</select>', dom, re.S)[1]
    tap.same(re.findall(r">(\d+)</option>", choice), ["1", "2", "4", "8", "16", "24"], "values")


@tap.test("the page says which rows cannot keep up and what each way needs")
def _(folder):
    native = make(folder, "A", "--duration", "12s", "--only", "exclusive,native,gate,yield")["rows"][1]
    dom = dump(f"{folder}/index.html")[0]
    text = text_of(dom)
    tap.same(native["keeps_up"], False, "native keeps up: choose another scenario for this test")
    tap.true(f"native: {native['unfinished']:,} of {native['requests']:,} requests were still waiting at the end" in text, "not in the notes")
    tap.true("On a real AMD GPU: a launch hook in the process." in text, "what gate needs")
    tap.true("On a real AMD GPU: a scheduler inside the kernel" in text, "what yield needs")
    tap.true("one queue per call" not in text, "a way that is not shown is defined")
    row = re.search(r'id="tables".*?<th scope="row">(?:(?!</th>).)*native</th>(.*?)</tr>', dom, re.S)[1]
    tap.true(">no gpreempt<" in row and ">grows<" in row, row)


@tap.test("in the page's table the rows of a stock AMD driver stand out, and each row says what it needs")
def _(folder):
    make(folder, "light", "--duration", "45s", "--only", "exclusive,native,interrupt-single,interrupt-single+hints,interrupt-batched,auto")
    dom = dump(f"{folder}/index.html")[0]
    body = re.search(r'id="tables".*?<tbody>(.*?)</tbody>', dom, re.S)[1]
    rows = [(bool(stock), text_of(row)) for stock, row in re.findall(r'<tr( class="stock")?>(.*?)</tr>', body, re.S)]
    tap.same([stock for stock, _ in rows], [False, False, True, True, False, False], "rows that stand out")
    for (_, row), needs in zip(rows, ("no offline", "no gpreempt", "stock driver", "stock driver", "new kernel", "new kernel")):
        tap.true(needs in row, f"{needs}: {row}")
    tap.true("with gpreempt on a stock AMD driver (interrupt-single), p99 is" in text_of(dom), "the summary")


def timeline_choice(path):
    return re.search(r'<select id="timeline-row">.*?<option value="([^"]*)" selected', dump(path)[0], re.S)[1]


@tap.test("the two pages of demo lead to each other, and their timelines open on what a stock driver does")
def _(folder):
    tap.good("demo", "--duration", "12s", "--out", f"{folder}/demo")
    for page, other in (("index.html", "E/index.html"), ("E/index.html", "../index.html")):
        dom = dump(f"{folder}/demo/{page}")[0]
        tap.same(re.findall(r'<a href="([^"]*)"', dom), [other], page)
        tap.true(os.path.exists(os.path.join(f"{folder}/demo", os.path.dirname(page), other)), f"{page} leads nowhere")
        tap.same(timeline_choice(f"{folder}/demo/{page}"), "interrupt-single", page)
    make(f"{folder}/h200", "A", "--duration", "4s", "--device", "h200")
    tap.same((timeline_choice(f"{folder}/h200/index.html"), "<a " in tap.read(folder, "h200/index.html")), ("auto", False), "no AMD GPU, no other page")


def measure(folder, width, page):
    tap.write(f"{folder}/frame.html", FRAME % (page, width))
    dom, console = dump(f"{folder}/frame.html", width=width + 100)
    tap.same(console, [], "console")
    measured = re.search(r'<pre id="measured">(.*?)</pre>', dom, re.S)[1]
    tap.true(measured, "nothing was measured")
    return json.loads(html.unescape(measured))


def check_width(folder, width, page="index.html"):
    found = measure(folder, width, page)
    tap.same(found["client"], width, "width of the frame")
    tap.true(found["scroll"] <= width, f"{found['scroll']} pixels wide in {width}: {found['wide'][:8]}")
    tap.same(found["wide"], [], f"beyond {width} pixels")
    return found


@tap.test("at 1200 pixels nothing is wider than the page, and the table needs no scrolling")
def _(folder):
    make(folder, "E", "--duration", "60s")
    found = check_width(folder, 1200)
    tap.true(found["table"] <= found["box"], f"the table is {found['table']} wide in {found['box']}")


@tap.test("at 400 pixels nothing but the inside of a table is wider than the page")
def _(folder):
    make(folder, "E", "--duration", "4s")
    check_width(folder, 400)


@tap.test("the page of a sweep fits 1200 and 400 pixels")
def _(folder):
    make(folder, "levels", "--duration", "4s")
    for width in (1200, 400):
        check_width(folder, width)


@tap.test("the page that compares the notes' two ways fits 1200 and 400 pixels")
def _(folder):
    old, new = (os.path.join(tap.SOURCE, "results", "bed", name) for name in ("stock", "patched"))
    tap.good("report", "--old", old, "--new", new, "--out", f"{folder}/report.html")
    for width in (1200, 400):
        found = check_width(folder, width, "report.html")
        tap.true(found["figures"] >= 20 and found["tables"] >= 4, f"{found}")


@tap.test("the page of every scenario draws without a word on the console")
def _(folder):
    for entry in json.loads(tap.good("sim", "--list", "--json").stdout):
        make(f"{folder}/{entry['name']}", entry["name"], "--duration", "2s", "--only", "exclusive,native,auto+hints")
        dom, console = dump(f"{folder}/{entry['name']}/index.html")
        tap.same(console, [], f"{entry['name']}: console")
        tap.true('role="alert"' not in dom, f"{entry['name']}: the page shows an error")


@tap.test("a page whose result is cut short says so instead of staying empty")
def _(folder):
    make(folder, "A", "--duration", "2s", "--only", "auto")
    page = tap.read(folder, "index.html")
    tap.write(f"{folder}/cut.html", page.replace('"rows":[', '"rows":[[[', 1))
    text = text_of(dump(f"{folder}/cut.html")[0])
    tap.true("no result that can be read" in text, f"the page says: {text[:200]}")


os.environ.pop("DISPLAY", None)
tap.main()
