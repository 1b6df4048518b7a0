#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gpreempt sim --cluster: services, jobs of a Slurm trace, where they go and how long they wait."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import tap

CLUSTERS = os.path.join(tap.SOURCE, "share", "clusters")
SMALL = os.path.join(CLUSTERS, "small.ini")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HEADING = "JobID|Submit|ElapsedRaw|AllocTRES\n"


def jobs(*lines):
    """Each is (seconds after eight o'clock, length in s, GPUs)."""
    return HEADING + "".join(f"{i}|2026-03-02T08:{at // 60:02}:{at % 60:02}|{length}|cpu=8,gres/gpu={gpus}\n" for i, (at, length, gpus) in enumerate(lines, 1))


def cluster(folder, trace, gpus=1, slots=1, services="", placement="spread", duration="60s", more=""):
    tap.write(f"{folder}/jobs.txt", trace)
    return tap.write(f"{folder}/mine.ini", f"[scenario]\nduration = {duration}\nconfigs = auto\n{more}\n[cluster]\ngpus = {gpus}\nslots = {slots}\n"
                     f"placement = {placement}\n{services}\n[offline train]\nwork = train\ntrace = jobs.txt\n")


def result(path, *args):
    return json.loads(tap.good("sim", "--cluster", path, "--json", "--jobs", "2", *args).stdout)


def row(*args, **more):
    return result(cluster(*args, **more))["rows"][0]


def starts(a_row):
    return [job[3] for job in a_row["jobs"]["list"]]


def ends(a_row):
    return [job[4] for job in a_row["jobs"]["list"]]


def near(got, want, by, why):
    tap.true(abs(got - want) <= by, f"{why}: got {got}, want {want} within {by}")


@tap.test("one, two or seven processes write the same bytes")
def _(folder):
    files = []
    for n in ("1", "2", "7"):
        tap.good("sim", "--cluster", SMALL, "--duration", "30s", "--only", "native,interrupt-single+hints,auto", "--jobs", n, "--out", f"{folder}/{n}")
        files.append([tap.read(folder, n, name, mode="rb") for name in ("result.json", "index.html")])
    tap.same(files[1], files[0], "with two")
    tap.same(files[2], files[0], "with seven")


@tap.test("a job alone on a GPU takes what its trace says, and that is what is harvested")
def _(folder):
    it = row(folder, jobs((0, 40, 1)))
    near(ends(it)[0], 40, 0.1, "its end")
    near(it["jobs"]["slowdown"]["p50"], 1, 0.01, "slowdown")
    near(it["all"]["harvested_gpu_hours"], 40 / 3600, 0.0002, "GPU-hours")
    near(it["all"]["gpu_hours"], 60 / 3600, 0.0001, "GPU-hours of the cluster")
    tap.same(it["all"]["lost_wave_ns"], 0, "lost work")


@tap.test("jobs wait for each other in the order in which they came")
def _(folder):
    it = row(folder, jobs((0, 10, 1), (1, 10, 1), (2, 60, 1), (3, 30, 1)))
    tap.same(starts(it)[0], 0, "start of the first")
    for i, want in ((1, 10.5), (2, 21)):
        near(starts(it)[i], want, 1, f"start of job {i}")
    tap.same(starts(it)[3], None, "start of the last")
    figures = {key: it["jobs"][key] for key in ("submitted", "started", "finished", "running", "waiting", "refused")}
    tap.same(figures, {"submitted": 4, "started": 3, "finished": 2, "running": 1, "waiting": 1, "refused": 0}, "counts")
    near(it["jobs"]["wait_s"]["max"], 57, 0.01, "the longest wait: of the one that waits still")
    tap.same([(it["series"]["jobs_waiting"][i], it["series"]["jobs_running"][i]) for i in (0, 10, 25, 99)], [(0, 1), (3, 1), (2, 1), (1, 1)], "in line, and running, over time")


@tap.test("two jobs that share a GPU take twice as long")
def _(folder):
    it = row(folder, jobs((0, 10, 1), (0, 10, 1)), slots=2)
    for end in ends(it):
        near(end, 20, 1, "end")


@tap.test("what a service takes, a job does not get")
def _(folder):
    service = "[online serve]\ngpus = 1\nwork = infer-10ms\nclients = 5\nrate = 10\nslo = 60ms\n"
    it = row(folder, jobs((0, 1000, 1)), services=service)
    near(it["all"]["online_gpu_hours"] * 60, 0.5, 0.1, "half of the time is the service's")
    tap.true(0.85 < it["all"]["harvest"] <= 1.02, f"harvest {it['all']['harvest']}")
    tap.true(it["all"]["slo_attainment"] > 0.99, f"SLO {it['all']['slo_attainment']}")


@tap.test("a gang ends with the slowest of its parts, and keeps its GPUs until then")
def _(folder):
    service = "[online serve]\ngpus = 1\nwork = infer-10ms\nclients = 5\nrate = 10\n"
    it = row(folder, jobs((0, 15, 2), (1, 5, 1)), gpus=2, services=service)
    alone = row(folder, jobs((0, 15, 1)), gpus=1, services=service)
    near(ends(it)[0], ends(alone)[0], 4, "end, as of a job beside the service")
    tap.true(ends(it)[0] > 20, f"ended at {ends(it)[0]}, as if it were alone")
    tap.true(starts(it)[1] >= ends(it)[0], f"a job began at {starts(it)[1]} where the gang ended at {ends(it)[0]}")
    it = row(folder, jobs((0, 15, 2)), gpus=2, services=service)  # nobody waits: both have ended at the next look
    near(ends(it)[0], ends(alone)[0], 4, "end, where both parts are seen at once")


@tap.test("behind a gang that does not fit, others wait too")
def _(folder):
    it = row(folder, jobs((0, 20, 1), (1, 5, 2), (2, 5, 1)), gpus=2)
    near(starts(it)[1], 20.5, 1, "start of the gang")
    tap.true(starts(it)[2] >= ends(it)[1], "the third did not wait")


@tap.test("a job that is larger than the cluster is refused, and nobody waits for it")
def _(folder):
    it = row(folder, jobs((0, 5, 3), (0, 5, 1)), gpus=2)
    tap.same(it["jobs"]["refused"], 1, "refused")
    tap.same([job[0] for job in it["jobs"]["list"]], ["2"], "jobs that came")
    near(ends(it)[0], 5, 0.1, "end")
    said = tap.good("sim", "--cluster", f"{folder}/mine.ini").stdout
    tap.true("Refused: 1 jobs that ask for more GPUs than there are." in said, said)


@tap.test("jobs that come after the end are left out, and that is said")
def _(folder):
    path = cluster(folder, jobs((0, 5, 1), (60, 5, 1), (61, 5, 1), (200, 5, 9)))
    tap.same(result(path)["cluster"]["after_end"], 2, "after the end")
    tap.same([result(path)["rows"][0]["jobs"][key] for key in ("submitted", "started")], [2, 1], "submitted; none begins at the end")
    said = tap.good("sim", "--cluster", path).stdout
    tap.true("Left out: 2 jobs of the trace that came after the end." in said, said)


@tap.test("what comes after the end is not counted, where the end is between two looks")
def _(folder):
    it = row(folder, jobs((0, 95, 1), (92, 5, 1)), duration="90s", gpus=2)
    tap.same([it["jobs"][key] for key in ("submitted", "running", "finished")], [1, 1, 0], "jobs")
    near(it["all"]["harvested_gpu_hours"], 90 / 3600, 0.0002, "GPU-hours")


@tap.test("a count that is too long for its column does not run into the one before")
def _(folder):
    tap.good("sim", "--cluster", cluster(folder, jobs((0, 5, 1)), duration="1s"), "--out", folder)
    made = json.loads(tap.read(folder, "result.json"))
    for row in made["rows"]:
        row["jobs"].update(running=1, waiting=129999)  # as of a trace that takes minutes
    tap.write(f"{folder}/result.json", json.dumps(made))
    tap.same(re.search(r"^auto .*$", tap.good("report", folder).stdout, re.M)[0].split()[-3:], ["0", "1", "129999"], "done, runs, waits")


@tap.test("placements differ in where they put jobs")
def _(folder):
    services = ("[online busy]\ngpus = 2\nclass = low\nwork = infer-10ms\nclients = 5\nrate = 12\n[online calm]\ngpus = 2\nclass = high\nwork = infer-1ms\nrate = 5\n")
    # A first job, which is short, makes the time begin before the others come. Those come when the load was taken twice.
    trace = jobs((0, 1, 1), *[(130, 1000, 1)] * 4)
    path = cluster(folder, trace, gpus=5, slots=2, services=services, placement="pack spread most-idle by-class", duration="135s")
    placed = {r["placement"]: [gpu["jobs"] for gpu in r["gpus"]] for r in result(path)["rows"]}
    tap.same(placed["pack"], [3, 2, 0, 0, 0], "pack")
    tap.same(placed["spread"], [2, 1, 1, 1, 0], "spread")
    tap.same(placed["most-idle"], [1, 0, 1, 1, 2], "most-idle: 4 is free, 2 and 3 are calm")
    tap.same(placed["by-class"], [1, 1, 0, 0, 3], "by-class: 4 has no service, 0 and 1 are of low class")


@tap.test("figures of the GPUs and of the services add up to those of all")
def _(_folder):
    for it in result(SMALL, "--duration", "20s", "--only", "exclusive,auto")["rows"]:
        gpus, every = it["gpus"], it["all"]
        tap.same(len(gpus), 10, "GPUs")
        tap.same(sum(g["requests"] for g in gpus), every["requests"], "requests")
        tap.same(sum(s["requests"] for s in it["services"]), every["requests"], "requests of services")
        near(sum(g["harvested_gpu_hours"] for g in gpus), every["harvested_gpu_hours"], 1e-4, "GPU-hours")
        near(sum(it["series"]["offline_gpus"]) * 20 / 100 / 3600, every["harvested_gpu_hours"], 1e-4, "GPU-hours over time")
        met = sum(s["requests"] * s["slo_attainment"] for s in it["services"])
        near(met / every["requests"], every["slo_attainment"], 1e-4, "SLO attainment")
        tap.same([g["service"] for g in gpus], ["chat"] * 4 + ["search"] * 4 + [""] * 2, "services")


@tap.test("exclusive lets no job in; with gpreempt services keep their latency, and without they do not")
def _(_folder):
    rows = {r["config"]: r for r in result(SMALL, "--duration", "60s", "--only", "exclusive,native,interrupt-single+hints")["rows"]}
    tap.same((rows["exclusive"]["jobs"], rows["exclusive"]["all"]["harvested_gpu_hours"]), ({}, 0), "exclusive")
    slo = {name: r["all"]["slo_attainment"] for name, r in rows.items()}
    tap.true(slo["interrupt-single"] > slo["exclusive"] - 0.005, f"{slo}")
    tap.true(slo["native"] < 0.5, f"{slo}")
    tap.true(rows["interrupt-single"]["all"]["harvest"] > 0.85, f"harvest {rows['interrupt-single']['all']['harvest']}")


@tap.test("another seed is another day, and the same seed the same one")
def _(_folder):
    texts = [tap.good("sim", "--cluster", SMALL, "--duration", "5s", "--only", "exclusive", "--json", "--seed", seed).stdout for seed in "112"]
    tap.same(texts[1], texts[0], "seed 1 twice")
    tap.true(json.loads(texts[2])["rows"] != json.loads(texts[0])["rows"], "seeds 1 and 2 give the same")


@tap.test("requests follow the curve, in a plain scenario too")
def _(folder):
    path = tap.write(f"{folder}/curve.ini", "[scenario]\nduration = 101s\nconfigs = exclusive\n[online serve]\nwork = infer-1ms\nrate = 100\n"
                     "curve = 0% 0% 100% 100%\nday = 100s\nday_begin = 99s\n")
    online = json.loads(tap.good("sim", path, "--json").stdout)["rows"][0]["throughput"]["online"]
    tap.same(sum(online[2:24]), 0, "requests in the quarter that is 0")
    near(sum(online[50:75]) / 25, 100, 10, "requests per second in the quarter that is 100 %")


@tap.test("bursts bring more requests, and are told")
def _(folder):
    service = "[online serve]\ngpus = 1\nwork = infer-1ms\nrate = 50\n"
    calm = result(cluster(folder, jobs((0, 1, 1)), services=service))
    burst = result(cluster(folder, jobs((0, 1, 1)), services=service + "burst_every = 5s\nburst_length = 5s\nburst_factor = 400%\n"))
    tap.true(burst["cluster"]["services"][0]["bursts"] > 1, "bursts")
    tap.same(calm["cluster"]["services"][0]["bursts"], 0, "bursts where none are asked for")
    ratio = burst["rows"][0]["all"]["requests"] / calm["rows"][0]["all"]["requests"]
    tap.true(1.5 < ratio < 4, f"{ratio:.2f} times as many requests")


@tap.test("the shipped traces are what tools/make-trace.py makes")
def _(_folder):
    for name in ("small", "thousand"):
        command = re.search(r"^; tools/(make-trace.py .*)$", tap.read(CLUSTERS, f"{name}.ini"), re.M)[1]
        made = subprocess.run(["sh", "-c", f"{tap.SOURCE}/tools/{command}"], capture_output=True, text=True, check=True).stdout
        tap.same(made, tap.read(CLUSTERS, f"{name}.txt"), name)


@tap.test("report makes the page and the table again")
def _(folder):
    table = tap.good("sim", "--cluster", SMALL, "--duration", "5s", "--only", "auto", "--out", folder).stdout.split("\n\nWrote")[0]
    page = tap.read(folder, "index.html")
    os.remove(f"{folder}/index.html")
    tap.same(tap.good("report", folder).stdout.split("\n\nWrote")[0], table, "table")
    tap.same(tap.read(folder, "index.html"), page, "page")


@tap.test("the command in a result, run again, gives that result")
def _(folder):
    path = cluster(folder, jobs((0, 5, 1)), duration="20s")
    first = tap.good("sim", "--cluster", path, "--seed", "5", "--device", "mi300x", "--policy", "fair", "--json").stdout
    again = subprocess.run(["sh", "-c", json.loads(first)["command"].replace("gpreempt", tap.PROGRAM, 1) + " --json"], capture_output=True, text=True, check=True)
    tap.same(again.stdout, first, "result")


BAD = (  # what is replaced, by what, and what is said
    ("gpus = 1\n", "", "mine.ini:5: [cluster] has no gpus"),
    ("gpus = 1\n", "gpus = 0\n", "mine.ini:6: gpus = 0 is not possible"),
    ("placement = spread", "placement = best", 'mine.ini:8: unknown placement "best"; known are: pack spread most-idle by-class'),
    ("configs = auto", "devices = 2", "mine.ini:3: each machine of a cluster has one"),
    ("configs = auto", "warmup = 1s", "mine.ini:3: a cluster counts from the beginning"),
    ("trace = jobs.txt", "", "mine.ini:14: its jobs come from a trace"),
    ("trace = jobs.txt", "trace = none.txt", 'mine.ini:16: cannot read the trace "none.txt": No such file'),
    ("trace = jobs.txt", "trace = jobs.txt\ntrace_begin = today", "mine.ini:17: trace_begin = today is no date"),
    ("trace = jobs.txt", "trace = jobs.txt\nclients = 2", "mine.ini:17: the trace says how many jobs there are"),
    ("[online serve]\ngpus = 1", "[online serve]", "mine.ini:9: service serve is on no GPU"),
    ("[online serve]\ngpus = 1", "[online serve]\ngpus = 2", "mine.ini:10: services on 2 GPUs up to here, and the cluster has 1"),
    ("rate = 10", "rate = 10\ncurve = 0% 0%", "mine.ini:13: the curve is 0 all day"),
    ("rate = 10", "rate = 10\nday = 5s", "mine.ini:13: day does nothing without curve"),
    ("rate = 10", "rate = 10\nburst_factor = 200%", "mine.ini:13: burst_factor does nothing without burst_every"),
    ("rate = 10", "rate = 10\ncurve = 10%\narrival = periodic", "mine.ini:13: curve changes the rate of random arrivals alone"),
    ("[offline train]", "[sweep]\nqueues = 1 2\n[offline train]", "a cluster has no sweep"),
    ("[offline train]", "[offline other]\nwork = train\ntrace = jobs.txt\n[offline train]", "a second offline group"),
    ("[cluster]", "[clusters]", 'unknown section "clusters"; did you mean cluster?'),
)


def refused(args, said):
    done = tap.run(*args)
    tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (tap.BAD_INPUT, "", 1), f"{said}: {done.stderr}")
    tap.true(said in done.stderr, f"{said!r} is not in {done.stderr!r}")


@tap.test("what is wrong with a cluster is said by its line")
def _(folder):
    path = cluster(folder, jobs((0, 5, 1)), services="[online serve]\ngpus = 1\nwork = infer-1ms\nrate = 10\n")
    text = tap.read(path)
    for old, new, said in BAD:
        tap.true(old in text, f"{old!r} is not in the cluster")
        tap.write(path, text.replace(old, new, 1))
        refused(("sim", "--cluster", path), said)
    tap.write(path, text)
    for trace, said in (("", "jobs.txt: no job"), ("JobID|Submit\n", "jobs.txt:1: a column is missing"), (jobs((0, 5, 1)).replace("|5|", "|five|"), "jobs.txt:2: \"five\"")):
        tap.write(f"{folder}/jobs.txt", trace)
        refused(("sim", "--cluster", path), said)


@tap.test("a cluster is no scenario, and a scenario no cluster")
def _(folder):
    refused(("sim", SMALL), "this is a cluster; run it with: gpreempt sim --cluster")
    path = tap.write(f"{folder}/a.ini", tap.good("sim", "--show", "A").stdout)
    refused(("sim", "--cluster", path), "no section [cluster] in it")
    refused(("sim", "--cluster", f"{folder}/none.ini"), "No such file or directory; give a cluster's file")
    refused(("sim", "A", "--cluster", SMALL), '"A" is one too many')
    for old, new, said in (("rate", "gpus = 2\nrate", "gpus is for clusters"), ("work = train", "work = train\ntrace = a.txt", "an offline group always has work; leave trace out")):
        tap.write(path, tap.good("sim", "--show", "A").stdout.replace(old, new, 1))
        refused(("sim", path), said)


@tap.test("a process that dies is told, and nothing is written")
def _(folder):
    with subprocess.Popen([tap.PROGRAM, "sim", "--cluster", SMALL, "--jobs", "2", "--out", f"{folder}/out"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        children = []
        while len(children) < 2 and process.poll() is None:
            time.sleep(0.01)
            children = tap.read(f"/proc/{process.pid}/task/{process.pid}/children").split()
        os.kill(int(children[1]), signal.SIGKILL)
        out, said = process.communicate(timeout=60)
    tap.same((process.returncode, out), (tap.FAILED, ""), said)
    tap.true("a process of the row exclusive spread died" in said, said)
    tap.same(os.listdir(folder), [], "files")


@tap.test("what a cluster costs is judged by the clock, on two cores")
def _(folder):
    def judged(cores=2, wall=600, cpu=1300, mib=4096, each=1.5):
        rows = [dict(gpus=gpus, simulated_s=60, cpu_s=gpus * 60 * us / 1e6, wall_s=1, mib=1, others_cpu_s=0, result="") for gpus, us in ((10, 200), (100, 200), (1000, 200 * each))]
        bar = dict(rows[-1], simulated_s=3600, wall_s=wall, cpu_s=cpu, mib=mib, result="auto")
        path = tap.write(f"{folder}/cost.json", json.dumps(dict(machine=dict(cpu="x", cores=cores), rows=rows, bar=bar)))
        return tap.run("--again", path, program=os.path.join(tap.SOURCE, "bench", "cluster_cost.py")).returncode
    tap.same(judged(), 0, "met, whatever CPU time it took")
    tap.same([judged(wall=601, cpu=100), judged(mib=4097), judged(each=1.6), judged(cores=16)], [1] * 4, "missed")


# Loads the page in a frame of some width, and writes down what is wider than it may be, and which charts are drawn.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0"><iframe id="frame" src="index.html" style="width:%dpx;height:3000px;border:0"></iframe>
<pre id="measured"></pre><script>
document.getElementById("frame").addEventListener("load", e => {
	const page = e.target.contentDocument, width = page.documentElement.clientWidth;
	page.querySelectorAll("details").forEach(d => d.open = true);
	const wide = [...page.querySelectorAll("body *")].filter(n => !n.closest(".box, pre, #tip, caption") && n.getBoundingClientRect().right > width + 0.5);
	document.getElementById("measured").textContent = JSON.stringify({ wide: wide.map(n => n.tagName + " " + n.className), errors: page.querySelectorAll(".error").length,
		charts: [...page.querySelectorAll(".plot")].filter(n => n.querySelector("svg path")).map(n => n.id), title: page.title, rows: page.querySelectorAll("tbody tr").length });
});
</script>"""


@tap.test("the page draws a cluster, and fits 1200 and 400 pixels")
def _(folder):
    if not BROWSER:
        raise tap.Skip("chromium is not installed")
    tap.good("sim", "--cluster", SMALL, "--duration", "20s", "--only", "exclusive,auto", "--out", folder)
    for width in (1200, 400):
        frame = tap.write(f"{folder}/frame.html", FRAME % width)
        done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom",
                               f"--user-data-dir={folder}/profile", f"--window-size={width + 40},3000", f"file://{frame}"], capture_output=True, text=True, timeout=120, check=True)
        measured = json.loads(re.search(r'<pre id="measured">(.*?)</pre>', done.stdout, re.S)[1])
        tap.same(measured["wide"], [], f"wider than {width} pixels")
        tap.same(measured["errors"], 0, "errors")
        tap.same(measured["charts"], ["plot-ctime", "plot-cwait", "plot-cjobs", "plot-cgpus"], "charts")
        tap.true(measured["rows"] >= 6 and "Cluster small" in measured["title"], f"{measured}")


tap.main(jobs=2)
