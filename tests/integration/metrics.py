#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gpreempt metrics: what Prometheus is told, over HTTP, whatever gpreemptd and those who ask do."""

import contextlib
import errno
import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

import tap

import double
from gpreemptd import NOBODY, daemon, tree, unread, until
from protocol import HINT_BEGIN, HINT_END, HOLD, Items, ONLINE, STATS, STOP
from simulated import SOON, gpu, infer, train

EXPORTER = os.path.join(os.path.abspath(tap.BUILD), "gpreempt-metrics")
RULES = os.path.join(tap.SOURCE, "share", "prometheus", "gpreempt.rules.yml")
ALERTS = os.path.join(tap.SOURCE, "tests", "prometheus", "alerts.yml")
DASHBOARD = os.path.join(tap.SOURCE, "share", "grafana", "gpreempt.json")
PAGE = os.path.join(tap.SOURCE, "docs", "METRICS.md")
MOST_MEMORY = 64  # MiB
PATIENCE = 90  # s, for a Prometheus on a busy machine

SAMPLE = re.compile(r'([a-zA-Z_:]+)(?:\{(.*)\})? (\S+)')
AGENT = "import sys; from protocol import Agent; agent = Agent(sys.argv[1]); print('ready', flush=True); sys.stdin.read()"  # a client

LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)')


class Metrics:
    """A text, read by its own rules: families by name, and samples by name and labels."""

    def __init__(self, text):
        self.text, self.families, self.samples = text, {}, {}
        for line in text.splitlines():
            comment = re.fullmatch(r"# (HELP|TYPE) (\w+) (.+)", line)
            if comment:
                self.families.setdefault(comment[2], {"labels": []})[comment[1]] = comment[3]
                continue
            name, labels, value = SAMPLE.fullmatch(line).groups()
            pairs = LABEL.findall(labels or "")
            tap.same(LABEL.sub("", labels or ""), "", f"labels of {line}")
            key = name, tuple(sorted((label, re.sub(r"\\(.)", r"\1", text)) for label, text in pairs))
            tap.true(key not in self.samples, f"twice: {line}")
            self.samples[key] = float(value)
            known = self.families[self.family(name)]["labels"]
            known += [label for label, _ in pairs if label not in known]

    def family(self, name):
        return name if name in self.families else re.sub("_(bucket|sum|count)$", "", name)

    def get(self, metric, **labels):
        """The sum of all that have these labels; None: there is none."""
        found = [value for (one, have), value in self.samples.items() if one == metric and set(labels.items()) <= set(have)]
        return sum(found) if found else None


def see_it_is_built():
    if not os.path.exists(EXPORTER):
        raise tap.Skip("gpreempt was built without libmicrohttpd")


def once(path, *options, **more):
    see_it_is_built()
    return tap.run("metrics", "--once", "--socket", path, *options, **more)


def told(path, *options):
    done = once(path, *options)
    tap.same((done.returncode, done.stderr), (0, ""), "exit status")
    return Metrics(done.stdout)


def promtool(*words, **more):
    if not shutil.which("promtool"):
        raise tap.Skip("promtool is not installed: Debian's package prometheus has it")
    return tap.run(*words, program="promtool", **more)


@contextlib.contextmanager
def exporter(*options, path="", **more):
    """A running one, and its place; it must end well."""
    see_it_is_built()
    process = subprocess.Popen([tap.PROGRAM, "metrics", *(options or ("--listen", "0")), "--socket", path or "/nowhere/gpreemptd.sock"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=tap.die_with_parent, **more)
    try:
        line = process.stdout.readline()
        tap.true(line.startswith("Metrics at "), line + (process.stderr.read() if not line else ""))
        process.place = re.sub("^Metrics at (http://)?|(/metrics|, path /metrics); Ctrl-C ends it.\n$", "", line)
        yield process
        process.terminate()
        out, errors = process.communicate(timeout=SOON)
        tap.same((process.returncode, out), (0, ""), f"how it ends; {errors}")
        process.said = errors
        tap.true("Sanitizer" not in errors, errors)
    finally:
        process.kill()
        process.wait()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=SOON)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def ask(place, path="/metrics", method="GET", body=None):
    """(status, headers, text)"""
    connection = UnixConnection(place) if place.startswith("/") else http.client.HTTPConnection(place, timeout=SOON)
    with contextlib.closing(connection):
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def scrape(place):
    status, headers, text = ask(place)
    tap.same((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"), "answer")
    return Metrics(text)


def memory(process):
    """MiB, the most there ever were."""
    return int(re.search(r"VmHWM:\s*(\d+)", tap.read(f"/proc/{process.pid}/status"))[1]) / 1024


def device_of(metrics, name="mi308x"):
    """The simulated GPU's number."""
    return next(dict(labels)["device"] for (one, labels) in metrics.samples if one == "gpreempt_device_info" and ("name", name) in labels)


@contextlib.contextmanager
def at_work(folder, *options):
    """A gpreemptd with an offline and an online program that has had some requests."""
    with daemon(folder) as d, gpu(folder, socket=d.path):
        with train(folder, socket=d.path) as offline, infer(folder, "--hints", "--slo", "10s", *options, socket=d.path) as online:
            until(lambda: (told(d.path).get("gpreempt_preemptions_total") or 0) >= 5, "there were preemptions")
            yield d, offline, online


@tap.test("what gpreemptd counted is what is told, in the form that promtool wants")
def _(folder):
    with at_work(folder) as (d, offline, online):
        online.figures(signal.SIGINT)
        offline.figures(signal.SIGINT)
        until(lambda: told(d.path).get("gpreempt_clients") == 0, "they are gone")
        metrics = told(d.path)
        stats = next(one for one in json.loads(tap.good("stats", "--json", "--socket", d.path).stdout)["devices"] if one["name"] == "mi308x")
        number = device_of(metrics)
        for name, key in (("gpreempt_preemptions_total", "preemptions"), ("gpreempt_device_cycles_total", "cycles"), ("gpreempt_suspend_duration_seconds_count", "suspends"),
                          ("gpreempt_resume_duration_seconds_count", "resumes"), ("gpreempt_failures_total", "failures"), ("gpreempt_stops_put_off_total", "limited")):
            tap.same(metrics.get(name, device=number), stats[key], name)
        tap.same(metrics.get("gpreempt_online_activations_total", device=number, source="hint"), stats["hints"], "hints")
        tap.same(metrics.get("gpreempt_policy_info", device=number, policy="priority"), 1, "policy")
        tap.true(0 < metrics.get("gpreempt_class_wait_seconds_total", device=number, **{"class": "offline"}), "offline waited")
        tap.true(0 < metrics.get("gpreempt_class_run_seconds_total", device=number, **{"class": "offline"}), "offline ran")
        tap.true(0 < metrics.get("gpreempt_class_run_seconds_total", device=number, **{"class": "online"}), "online ran")
        mean = metrics.get("gpreempt_suspend_duration_seconds_sum", device=number) / stats["suspends"]
        tap.true(0 < mean <= stats["suspend_ns"]["max"] / 1e9, f"the mean of stops is {mean} s")
        text = metrics.text
    done = promtool("check", "metrics", input=text, stdin=None)
    tap.same((done.returncode, done.stdout, done.stderr), (0, "", ""), "promtool")


@tap.test("a histogram has as many below a bound as there were, and all of them at the end")
def _(folder):
    with at_work(folder) as (d, *_):
        metrics = told(d.path)
        for name in ("suspend", "resume", "online_request"):
            buckets = [(float(dict(labels)["le"]), value) for (one, labels), value in metrics.samples.items()
                       if one == f"gpreempt_{name}_duration_seconds_bucket" and ("device", device_of(metrics)) in labels]
            tap.same([bound for bound, _ in buckets], [float(f"{step}e{power}") for power in range(-5, 1) for step in (1, 2, 5)] + [10.0, float("inf")], "bounds")
            counts = [count for _, count in buckets]
            tap.same(counts, sorted(counts), "they grow")
            tap.same(counts[-1], metrics.get(f"gpreempt_{name}_duration_seconds_count", device=device_of(metrics)), "all of them")
            tap.true(counts[-1] > 0, name)


def open_hints(d):
    return told(d.path, "--per-client").get("gpreempt_client_open_hints", pid=str(os.getpid()))


@tap.test("requests are counted with their latency, and by whether they met their objective")
def _(folder):
    with daemon(folder) as d:
        for objective_ns, asked, met in ((3600 * 10 ** 9, 5, 5), (1000, 10, 5)):
            with contextlib.closing(d.agent(1, seen=ONLINE, later=struct.pack("<IIQ", 0, 0, objective_ns))) as agent:
                for number in range(1, 6):
                    agent.hint(HINT_BEGIN, number)
                    until(lambda: open_hints(d) == 1, "it has begun")
                    agent.hint(HINT_END, number)
                    until(lambda: open_hints(d) == 0, "it has ended")
            metrics = told(d.path)
            tap.same([metrics.get(f"gpreempt_{name}", device="0") for name in ("slo_requests_total", "slo_met_total", "online_request_duration_seconds_count", "hints_expired_total")],
                     [asked, met, asked, 0], "requests")
            tap.true(metrics.get("gpreempt_online_request_duration_seconds_sum", device="0") > asked * 1e-6, "longer than a microsecond each")


@tap.test("a stop that fails and a hint that nobody ends are counted, each in its place")
def _(folder):
    with daemon(folder, "--patience", "1s") as d, contextlib.closing(d.agent(1, seen=ONLINE)) as agent, contextlib.closing(d.tool()) as tool:
        for status, reason in ((errno.EIO, "driver"), (errno.EPERM, "refused"), (errno.ENOMEM, "busy"), (0, "timeout")):
            tool.send(HOLD, Items(tool.handles(os.getpid()), STOP).bytes())
            if status:
                agent.answer(agent.refuse(status))
            tool.result()
            metrics = told(d.path)
            tap.same(metrics.get("gpreempt_failures_total", device="0", action="suspend", reason=reason), 1, reason)
        tap.same(metrics.get("gpreempt_failures_total", action="suspend"), 4, "all")  # nobody answers the resume that follows either
        tool.hint(HINT_BEGIN, client=tool.queues(os.getpid())[0]["client"], expiry=10 ** 6)
        until(lambda: told(d.path).get("gpreempt_hints_expired_total", device="0") == 1, "it has expired")


@tap.test("what starves is counted")
def _(folder):
    config = tap.write(f"{folder}/conf", "[scheduler]\nmax_starve = 100ms\n")
    with daemon(folder, "--config", config) as d, gpu(folder, socket=d.path), train(folder, socket=d.path), infer(folder, "--hints", "--rate", "200", socket=d.path):
        until(lambda: (told(d.path).get("gpreempt_starvation_slices_total") or 0) >= 2, "it starved")


@tap.test("without gpreemptd gpreempt_up is 0, and when it comes, or another does, the next scrape has it all")
def _(folder):
    path = f"{folder}/gpreemptd.sock"
    with exporter(path=path) as server:
        metrics = scrape(server.place)
        tap.same(metrics.get("gpreempt_up"), 0, "gpreempt_up")
        tap.same(set(metrics.families), {"gpreempt_up", "gpreempt_build_info"}, "what there is")
        for _ in range(2):
            with daemon(folder):
                until(lambda: scrape(server.place).get("gpreempt_up") == 1, "it is found")
                tap.same(scrape(server.place).get("gpreempt_policy_info", device="0"), 1, "its device")
            until(lambda: scrape(server.place).get("gpreempt_up") == 0, "it is missed")
    lines = server.said.splitlines()
    tap.same([("answers" in line, "gpreempt_up is 0" in line) for line in lines], [(False, True), (True, False)] * 2 + [(False, True)], lines)


@tap.test("a gpreemptd that was started again between two scrapes is not missed")
def _(folder):
    path = f"{folder}/gpreemptd.sock"
    with exporter(path=path) as server:
        with daemon(folder):
            until(lambda: scrape(server.place).get("gpreempt_up") == 1, "it is found")
        with daemon(folder, "--config", tap.write(f"{folder}/conf", "[scheduler]\npolicy = fair\n")):
            ups = []
            until(lambda: ups.append(scrape(server.place)) or ups[-1].get("gpreempt_policy_info", policy="fair"), "it was asked again")
            tap.same({one.get("gpreempt_up") for one in ups}, {1}, "gpreempt_up")
    tap.same(server.said, "", "there was nothing to tell of")


@tap.test("while gpreemptd hangs scrapes are answered, with gpreempt_up 0, and go on when it does")
def _(folder):
    with daemon(folder) as d, exporter(path=d.path) as server:
        tap.same(scrape(server.place).get("gpreempt_up"), 1, "before")
        d.process.send_signal(signal.SIGSTOP)
        try:
            until(lambda: scrape(server.place).get("gpreempt_up") == 0, "it is missed")
        finally:
            d.process.send_signal(signal.SIGCONT)
        until(lambda: scrape(server.place).get("gpreempt_up") == 1, "it is back")


@tap.test("a device that goes while it is asked about is left out, and all else is told")
def _(folder):
    with double.daemon(folder, "100:1", "client=100:1:1:500:train", f"error={STATS}:{errno.ENODEV}") as d:
        metrics = told(d.socket, "--per-client")
        tap.same((metrics.get("gpreempt_up"), metrics.get("gpreempt_device_info"), metrics.get("gpreempt_client_share_ratio")), (1, None, 0.5), "what is told")


@tap.test("scrapes are answered though nobody reads what it says on stderr")
def _(folder):
    del folder
    see_it_is_built()
    with unread() as full, subprocess.Popen([*full["under"], tap.PROGRAM, "metrics", "--listen", "0", "--socket", "/nowhere/gpreemptd.sock"], stdout=subprocess.PIPE, text=True,
                                            pass_fds=full["pass_fds"], preexec_fn=tap.die_with_parent) as process:
        try:
            place = re.search("http://(.*)/metrics", process.stdout.readline())[1]
            tap.same(scrape(place).get("gpreempt_up"), 0, "gpreempt_up")
            process.terminate()
            tap.same(process.wait(SOON), 0, "exit status")
        finally:
            process.kill()


@tap.test("what an older gpreemptd does not know is not there, and not 0")
def _(folder):
    with double.daemon(folder, "100:1", "client=100:1:1:500:train") as d:
        metrics = told(d.socket)
        tap.same(metrics.get("gpreempt_up"), 1, "up")
        tap.true(metrics.get("gpreempt_preemptions_total") is not None, "what it knows")
        for name in ("gpreempt_starvation_slices_total", "gpreempt_clients_backing_off", "gpreempt_hints_expired_total", "gpreempt_slo_requests_total", "gpreempt_slo_met_total", "gpreempt_suspend_duration_seconds_count", "gpreempt_failures_total", "gpreempt_class_run_seconds_total"):
            tap.same(metrics.get(name), None, name)
        done = promtool("check", "metrics", input=metrics.text, stdin=None)
        tap.same((done.returncode, done.stderr), (0, ""), "promtool")


BAD_POLICY = """#include <gpreempt/policy.h>
static uint64_t decide(struct gp_policy *p, uint64_t now) { (void)now; gp_policy_stop(p, 99); return GP_NEVER; }
const struct gp_policy_ops gp_policy = { .size = sizeof(gp_policy), .abi = GP_POLICY_ABI, .name = "bad", .decide = decide };
"""


@tap.test("a policy that was ejected is told with its reason, until another is chosen, be it fifo")
def _(folder):
    source = tap.write(f"{folder}/bad.c", BAD_POLICY)
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{tap.SOURCE}/include", "-o", f"{folder}/bad.so", source], check=True)
    with daemon(folder, "--config", tap.write(f"{folder}/conf", f"[scheduler]\nload = {folder}/bad.so\n")) as d, gpu(folder, socket=d.path), train(folder, socket=d.path):
        tap.same(told(d.path).get("gpreempt_policy_ejected", device="0", reason=""), 0, "at first")
        tap.good("policy", "0", "bad", "--socket", d.path)
        until(lambda: told(d.path).get("gpreempt_policy_ejected", device="0", reason="policy bad ejected: stopped client 99, which it does not own") == 1, "it is told, and why")
        tap.good("policy", "0", "fifo", "--socket", d.path)
        metrics = told(d.path)
        tap.same((metrics.get("gpreempt_policy_ejected"), metrics.get("gpreempt_policy_ejections_total")), (0, 1), "when another was chosen")


@tap.test("there is nothing by process unless it is asked for, and then names are what they are")
def _(folder):
    name = 'a"b\\c{d}=e,\u00e9'
    with double.daemon(folder, "100:1", f"client=100:2:1:500:{name}", "client=200:1:2:250:b") as d:
        tap.true(not {label for family in told(d.socket).families.values() for label in family["labels"]} & {"pid", "client"}, "labels")
        tap.same(told(d.socket).get("gpreempt_clients", device="0", state="running", **{"class": "online"}), 1, "added up")
        tap.same(told(d.socket).get("gpreempt_clients", device="0", state="waiting", **{"class": "offline"}), 1, "added up")
        metrics = told(d.socket, "--per-client")
        tap.same(metrics.get("gpreempt_client_share_ratio", pid="100", name=name, **{"class": "online"}), 0.5, "share")
        tap.same(metrics.get("gpreempt_client_share_ratio", pid="200", name="b", **{"class": "offline"}), 0.25, "share")
        tap.same(metrics.get("gpreempt_clients_left_out"), 0, "left out")
        done = promtool("check", "metrics", input=metrics.text, stdin=None)
        tap.same((done.returncode, done.stderr), (0, ""), "promtool")


@tap.test("other paths and methods are refused, and a body is not read")
def _(folder):
    with exporter() as server:
        tap.same(ask(server.place, "/nothing")[0], 404, "a path")
        tap.true("/metrics" in ask(server.place, "/")[2], "the first page")
        status, headers, text = ask(server.place, method="HEAD")
        tap.same((status, text), (200, ""), "HEAD")
        tap.true(int(headers["Content-Length"]) > 50, "its length")
        for method in ("POST", "PUT", "DELETE"):
            status, headers, _ = ask(server.place, method=method, body="x" * 1000)
            tap.same((status, headers["Allow"]), (405, "GET, HEAD"), method)
        tap.same(ask(server.place, body="x" * 5000)[0], 200, "GET with a body")


@tap.test("garbage, endless requests and readers that do not read do no harm, and little memory")
def _(folder):
    with daemon(folder) as d, exporter(path=d.path) as server:
        host, port = server.place.split(":")
        for garbage in (b"\0" * 1000, b"\xff" * 100000, b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 200000, b"\r\n" * 10000,
                        b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 50000, b"GET /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                        b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            with socket.create_connection((host, int(port)), timeout=SOON) as one, contextlib.suppress(OSError):
                one.sendall(garbage)
                one.shutdown(socket.SHUT_WR)
                while one.recv(65536):
                    pass
            tap.same(scrape(server.place).get("gpreempt_up"), 1, f"after {garbage[:40]!r}")
        with contextlib.ExitStack() as stack:
            for number in range(25):
                one = stack.enter_context(socket.create_connection((host, int(port)), timeout=SOON))
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                one.sendall((b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50, b"GET /met")[number % 2])
            tap.same(scrape(server.place).get("gpreempt_up"), 1, "beside them")
        tap.true(memory(server) < MOST_MEMORY, f"{memory(server)} MiB")


@tap.test("sixty-four who say nothing keep others out for ten seconds, and no longer")
def _(folder):
    del folder
    with exporter() as server, contextlib.ExitStack() as stack:
        host, port = server.place.split(":")
        begun = time.monotonic()
        for _ in range(64):
            stack.enter_context(socket.create_connection((host, int(port)), timeout=SOON))
        tap.same(scrape(server.place).get("gpreempt_up"), 0, "gpreempt_up")
        tap.true(time.monotonic() - begun > 8, "it did not wait for them")  # the exporter's seconds are whole ones


@tap.test("two hundred scrapes at once are all answered, and gpreemptd is asked a few times")
def _(folder):
    with double.daemon(folder, "100:1") as d, exporter(path=d.socket) as server:
        scrape(server.place)
        before, got, begun = d.heard()["lists"], [], time.monotonic()
        threads = [threading.Thread(target=lambda: got.append(scrape(server.place).get("gpreempt_up"))) for _ in range(200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON)
        tap.same(got, [1] * 200, "answers")
        asked, seconds = d.heard()["lists"] - before, time.monotonic() - begun
        tap.true(asked <= 5 * seconds + 1, f"{asked} lists in {seconds} s")
        tap.true(memory(server) < MOST_MEMORY, f"{memory(server)} MiB")


@tap.test("it listens on this machine's own address unless told otherwise, and says what is wrong with another")
def _(folder):
    for address, place in (("0", "127.0.0.1:"), ("127.0.0.1:0", "127.0.0.1:"), ("localhost:0", ""), ("[::1]:0", "[::1]:")):
        with contextlib.suppress(tap.Skip), exporter("--listen", address) as server:
            tap.true(server.place.startswith(place), server.place)
            tap.same(scrape(server.place).get("gpreempt_up"), 0, address)
    with exporter() as server, socket.create_connection(server.place.split(":"), timeout=SOON) as one:
        one.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        while one.recv(65536):  # it hangs up first: the kernel keeps the port for a while
            pass
    with exporter("--listen", server.place) as server:
        port = server.place.split(":")[1]
        for address, code, words in ((port, 1, "choose another by --listen"), ("::1:9", 2, "no address"), ("host:port", 2, "no address"), ("70000", 2, "no address"), ("1.2.3:4:5", 2, "no address"),
                                     ("no.such.host.invalid:1", 2, "no.such.host.invalid"), ("", 2, "empty")):
            done = tap.run("metrics", "--listen", address)
            tap.same((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), f"{address}: {done.stderr}")
            tap.true(words in done.stderr, done.stderr)
    done = tap.run("metrics", "--once", "--unix", "x")
    tap.same(done.returncode, 2, done.stderr)


@tap.test("a unix socket serves the same, replaces one that was left behind, takes nobody else's place and goes at the end")
def _(folder):
    path = f"{folder}/metrics.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    with exporter("--unix", path) as server:
        tap.same(scrape(path).get("gpreempt_up"), 0, "over it")
        for place in (path, tap.write(f"{folder}/file", "mine"), f"{folder}/no/such", "x" * 108, "x" * 200):
            done = tap.run("metrics", "--unix", place)
            tap.same((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        tap.same(server.place, path, "its name")
    for number in (signal.SIGINT, signal.SIGHUP):
        with exporter("--unix", path) as server:
            server.send_signal(number)
            tap.same(server.wait(SOON), 0, f"exit status after {number}")
    tap.same(sorted(os.listdir(folder)), ["file"], "what is left")
    tap.same(tap.read(folder, "file"), "mine", "the file")


@tap.test("whoever can enter the folder of a unix socket may connect, whatever the umask, and nobody else")
def _(folder):
    if os.geteuid() != 0:
        raise tap.Skip("only root can be somebody else")
    path = f"{folder}/in/metrics.sock"
    os.mkdir(os.path.dirname(path))
    with exporter("--unix", path, umask=0o077):
        for mode, come in ((0o711, "came"), (0o700, "PermissionError")):
            os.chmod(folder, 0o711)
            os.chmod(os.path.dirname(path), mode)
            script = "import socket, sys\ntry:\n socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n print('came')\nexcept OSError as why:\n print(type(why).__name__)"
            done = subprocess.run([sys.executable, "-c", script, path], user=NOBODY, group=NOBODY, extra_groups=[], stdout=subprocess.PIPE, text=True, check=True)
            tap.same(done.stdout.strip(), come, f"folder {mode:o}")


@tap.test("one whose socket's place another has taken leaves that to the other, and who is busy there is not waited for")
def _(folder):
    path = f"{folder}/metrics.sock"
    with contextlib.ExitStack() as stack:
        with exporter("--unix", path):
            os.remove(path)
            stack.enter_context(exporter("--unix", path))
        tap.same(scrape(path).get("gpreempt_up"), 0, "the other")
    with contextlib.ExitStack() as stack, contextlib.suppress(BlockingIOError):
        busy = stack.enter_context(socket.socket(socket.AF_UNIX))
        busy.bind(path)
        busy.listen(0)
        while True:
            one = stack.enter_context(socket.socket(socket.AF_UNIX))
            one.setblocking(False)
            try:
                one.connect(path)
            except BlockingIOError:
                done = tap.run("metrics", "--unix", path, timeout=SOON)
                tap.same((done.returncode, "something else is there" in done.stderr), (1, True), done.stderr)
                raise


@tap.test("--once without gpreemptd says so, in the metrics too")
def _(folder):
    done = once(f"{folder}/nothing")
    tap.same(done.returncode, 1, "exit status")
    tap.same(Metrics(done.stdout).get("gpreempt_up"), 0, "gpreempt_up")
    tap.true("gpreemptd" in done.stderr and done.stderr.count("\n") == 1, done.stderr)


@tap.test("a GPU that gpreemptd does not schedule is no gpreemptd")
def _(folder):
    done = once(f"{folder}/nothing", env={**os.environ, "GPREEMPT_ROOT": tree(folder)})
    tap.same((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
    tap.same(set(Metrics(done.stdout).families), {"gpreempt_up", "gpreempt_build_info"}, "what there is")


@tap.test("seventy clients are added up, and each is told of if that is asked for")
def _(folder):
    with daemon(folder) as d, contextlib.ExitStack() as stack:
        for _ in range(70):
            helper = stack.enter_context(subprocess.Popen([sys.executable, "-c", AGENT, d.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                                          env={**os.environ, "PYTHONPATH": tap.HERE}, preexec_fn=tap.die_with_parent))
            stack.callback(helper.stdin.close)
            tap.same(helper.stdout.readline(), "ready\n", "an agent")
        until(lambda: told(d.path).get("gpreempt_clients", device="0", **{"class": "offline"}) == 70, "all are there")
        metrics = told(d.path, "--per-client")
        tap.same(len([1 for name, _ in metrics.samples if name == "gpreempt_client_share_ratio"]), 70, "one by one")
        tap.same(metrics.get("gpreempt_clients_left_out"), 0, "left out")


@tap.test("anybody may run it")
def _(folder):
    if os.geteuid() != 0:
        raise tap.Skip("only root can be somebody else")
    os.chmod(folder, 0o755)
    with daemon(folder) as d, exporter(path=d.path, user=NOBODY, group=NOBODY, extra_groups=[]) as server:
        tap.same(scrape(server.place).get("gpreempt_policy_info", device="0"), 1, "its device")


# What is written about them

def names_in(text):
    return set(re.findall(r"\bgpreempt_[a-z_]+", text))


def all_families(folder):
    """Of a gpreemptd that has been at work."""
    with daemon(folder) as d, gpu(folder, socket=d.path), train(folder, socket=d.path), infer(folder, "--hints", "--slo", "10s", socket=d.path):
        return told(d.path, "--per-client")


@tap.test("the page tells of every metric that there is, with its type, labels and meaning, and of no other")
def _(folder):
    metrics = all_families(folder)
    want = {name: (family["TYPE"], [label for label in family["labels"] if label != "le"], family["HELP"]) for name, family in metrics.families.items()}
    have = {row[0]: (row[1], re.findall(r"`(\w+)`", row[2]), row[3]) for row in re.findall(r"^\| `(gpreempt_\w+)` \| (\w+) \| (.*?) \| (.*) \|$", tap.read(PAGE), re.M)}
    tap.same(set(have), set(want), "names")
    for name, row in want.items():
        tap.same(have[name], row, name)
    tap.true(all(metrics.family(name) in want for name in names_in(tap.read(PAGE))), "names in the text")
    once = {name for name, (_, labels, _) in want.items() if "device" not in labels}
    sentence = re.search(r"^All of these are told for each device, (.*?)\. What is missing", tap.read(PAGE), re.M | re.S).group(1)
    tap.same(names_in(sentence), once, "of no device")
    tap.same({name for name, (_, labels, _) in want.items() if "pid" in labels}, {name for name in want if name.startswith("gpreempt_client_")}, "of clients")


@tap.test("every metric that the dashboard and the rules name is exported, and every rule has a row on the page and a test")
def _(folder):
    metrics = all_families(folder)
    dashboard = json.loads(tap.read(DASHBOARD))
    used = names_in(tap.read(DASHBOARD)) | names_in(tap.read(RULES))
    tap.same({name for name in used if metrics.family(name) not in metrics.families}, set(), "not exported")
    tap.true(len(used) > 20, used)
    alerts = set(re.findall(r"alert: (\w+)", tap.read(RULES)))
    tap.same(set(re.findall(r"^\| `(Gpreempt\w+)` \|", tap.read(PAGE), re.M)), alerts, "rows")
    tap.same(set(re.findall(r"^        alertname: (\w+)", tap.read(ALERTS), re.M)), alerts, "tests of each that fires")
    panels = dashboard["panels"]
    tap.same(len({panel["id"] for panel in panels}), len(panels), "numbers of panels")
    cells = [(x, y) for panel in panels for place in [panel["gridPos"]] for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])]
    tap.same(len(set(cells)), len(cells), "panels over each other")
    tap.true(all(0 <= x < 24 for x, _ in cells), "panels beside the page")
    variables = {one["name"] for one in dashboard["templating"]["list"]} | {"__rate_interval"}
    tap.same(set(re.findall(r"\$\{?(\w+)", tap.read(DASHBOARD))) - variables, set(), "variables")


@tap.test("promtool finds the rules good, and each alert fires when it should and not before")
def _(folder):
    done = promtool("check", "rules", RULES)
    tap.same((done.returncode, done.stderr), (0, ""), done.stdout)
    tests = tap.write(f"{folder}/alerts.yml", tap.read(ALERTS).replace("RULES", RULES))
    done = promtool("test", "rules", tests)
    tap.same(done.returncode, 0, done.stdout + done.stderr)


class Prometheus:
    """A real one, which scrapes a place every second."""

    def __init__(self, folder, place):
        if not shutil.which("prometheus"):
            raise tap.Skip("prometheus is not installed")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.place = f"127.0.0.1:{free.getsockname()[1]}"
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}, "rule_files": [RULES],
                  "scrape_configs": [{"job_name": "gpreempt", "static_configs": [{"targets": [place]}]}]}
        self.log = f"{folder}/prometheus.log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(["prometheus", f"--config.file={tap.write(f'{folder}/prometheus.yml', json.dumps(config))}", f"--storage.tsdb.path={folder}/tsdb",
                                             f"--web.listen-address={self.place}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=tap.die_with_parent)

    def get(self, path, **query):
        with urllib.request.urlopen(f"http://{self.place}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=SOON) as answer:
            return json.load(answer)["data"]

    def value(self, query):
        """The sum of what it finds; None: nothing, or it is not there yet."""
        try:
            found = [float(one["value"][1]) for one in self.get("query", query=query)["result"] if one["value"][1] != "NaN"]
        except OSError:
            return None
        return sum(found) if found else None

    def until(self, query, good):
        until(lambda: good(self.value(query) or 0), f"{query}; {tap.read(self.log)[-2000:]}", patience=PATIENCE)


@tap.test("a real Prometheus scrapes it, runs the rules, and knows every query of the dashboard")
def _(folder):
    with at_work(folder) as (d, *_), exporter(path=d.path) as server:
        prometheus = Prometheus(folder, server.place)
        try:
            prometheus.until('gpreempt_up{job="gpreempt"}', lambda value: value == 1)
            prometheus.until("sum(rate(gpreempt_preemptions_total[1m]))", lambda value: value > 0)
            prometheus.until("gpreempt:slo_attainment:ratio_rate5m", lambda value: value == 1)
            prometheus.until("gpreempt:suspend_duration_seconds:p99_rate5m", lambda value: value > 0)
            until(lambda: [one["health"] for one in prometheus.get("targets")["activeTargets"]] == ["up"], "its target is up")
            for panel in json.loads(tap.read(DASHBOARD))["panels"]:
                for target in panel["targets"]:
                    query = re.sub(r"\$__rate_interval", "1m", re.sub(r"\$(instance|device)", ".+", target["expr"]))
                    value = prometheus.value(query)
                    tap.true(value is not None or "> 0" in query, f"{panel['title']}: nothing for {query}")
            rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
            tap.same({rule["health"] for rule in rules} - {"unknown"}, {"ok"}, "rules")
            meta = prometheus.get("metadata")
            tap.same(meta["gpreempt_suspend_duration_seconds"][0]["type"], "histogram", "type")
        finally:
            prometheus.process.terminate()
            prometheus.process.wait(SOON)


tap.main(jobs=4)
