# SPDX-License-Identifier: MIT
"""Online servers and offline trainings on an NVIDIA GPU, and gpreemptd between them. What the measurements share; not one itself."""

import contextlib
import inspect
import io
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import load

WRONG = ("NOT THE SAME", "DIFFERS", "STAYED PARKED", "WRONG", "FAILED")  # words of a table that fail its part; a bar that is missed does not
HERE = os.path.dirname(os.path.abspath(__file__))
# What stands in gpreemptd.conf; None: training rests
EXCLUSIVE, YIELD, PARKING = None, "park = 0\n", "park = 2\n"
KNOWN_S = 15  # by then gpreemptd knows the programs: their agents look for it every now and then


def environment(prefix, folder, client_class, weight=100):
    """Of a program with the agent in it."""
    return {"LD_PRELOAD": f"{prefix}/lib/libgpreempt-agent.so", "GPREEMPT_SOCKET": f"{folder}/gpreemptd.sock", "GPREEMPT_CLASS": client_class,
            "GPREEMPT_WEIGHT": str(weight), "PYTHONPATH": f"{prefix}/share/gpreempt/python", "GPREEMPT_LIBRARY": f"{prefix}/lib/libgpreempt.so.0"}


def compiled(name, folder):
    """A program of this folder, by nvcc."""
    subprocess.run(["nvcc", "-O2", "-arch=native", "-o", f"{folder}/{name}", f"{HERE}/{name}.cu", "-ldl", "-lcuda"], check=True)
    return f"{folder}/{name}"


class Program:
    def __init__(self, name, env):
        self.name = name
        self.process = subprocess.Popen([sys.executable, f"{HERE}/{name}.py"], env=dict(os.environ, **env), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def ready(self):
        for line in self.process.stdout:
            if line.strip() == "ready":
                return
        sys.exit(f"{self.name}.py did not start")

    def tell(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.kill()
        self.process.wait()


class Training(Program):
    def __init__(self, env):
        super().__init__("train", env)
        self.seen, self.pauses = [(0.0, 0)], []

    def follow(self):
        for line in self.process.stdout:
            word, number, _, at = line.split()
            if word == "layers":
                self.seen.append((float(at), int(number)))
            else:
                self.pauses.append((float(at), float(number)))

    def ready(self):
        super().ready()
        threading.Thread(target=self.follow, daemon=True).start()

    def rate(self, begin, end):
        inside = [(at, layers) for at, layers in self.seen if begin <= at <= end]
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0]) if len(inside) > 1 else 0.0


class Clock:
    """What the GPU's clock, power and caps are, all the time, by nvidia-smi: one that stays up, as each start of it takes locks of the driver."""

    EVERY_MS = 500

    def __init__(self):
        query = ["nvidia-smi", "-i", "0", "--query-gpu=clocks.sm,power.draw,clocks_event_reasons.active", "--format=csv,noheader,nounits", "-lms", str(self.EVERY_MS)]
        self.seen = []
        self.process = subprocess.Popen(query, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        for line in self.process.stdout:
            self.seen.append((time.monotonic(), sampled(line)))

    def between(self, begin, end):
        return summed_up([one for at, one in list(self.seen) if one and begin <= at <= end])

    def end(self):
        self.process.kill()
        self.process.wait()


def sampled(line):
    """MHz, W and caps of a line of nvidia-smi's; None: it says something else."""
    try:
        mhz, watts, caps = line.replace(" MHz", "").replace(" W", "").split(", ")
        return float(mhz), float(watts), int(caps, 16)
    except ValueError:
        return None


def summed_up(some):
    if not some:
        return {"samples": 0}
    mhz, watts, caps = zip(*some)
    return {"samples": len(some), "sm_mhz": [min(mhz), statistics.median(mhz), max(mhz)], "power_w": [min(watts), statistics.median(watts), max(watts)],
            "caps": sorted(set(caps))}


class Bench:
    """Servers stand still between rows; trainings rest or go.  For rows of exclusive there is one more of each server, that has no agent and gives no hints."""

    def __init__(self, prefix, servers=("serve",), weights=(100,), env=None, with_bare=True):
        self.prefix, self.folder, self.env = prefix, tempfile.mkdtemp(), env
        self.rows, self.alones, self.trains, self.daemon, self.options, self.cut_short = [], [], [], None, (), None
        self.conf = f"{self.folder}/gpreemptd.conf"
        self.servers = [Program(name, self.environment("online")) for name in servers]
        self.bare = [Program(name, self.bare_environment()) for name in servers] if with_bare else []
        self.clock = Clock()
        try:
            self.add_trainings(*weights)
            for server in (*self.servers, *self.bare):
                server.ready()
        except BaseException:  # the part's time is over, too
            self.end_programs()
            raise

    def environment(self, client_class, weight=100):
        """With gpreempt, unless the bench has an environment of its own; the hints of such a one go nowhere."""
        mine = environment(self.prefix, self.folder, client_class, weight)
        return mine if self.env is None else dict(mine, LD_PRELOAD="", **self.env)

    def bare_environment(self):
        """As if gpreempt were not there; server.py needs its Python package all the same."""
        return dict(self.environment("online"), LD_PRELOAD="", GPREEMPT_SOCKET="")

    def add_trainings(self, *weights):
        new = [Training(self.environment("offline", weight)) for weight in weights]
        self.trains += new
        for one in new:
            one.ready()

    def gpreempt(self, *words, seconds=None):
        """What it prints. seconds: nobody waits for longer."""
        env = dict(os.environ, GPREEMPT_SOCKET=f"{self.folder}/gpreemptd.sock")
        try:
            return subprocess.run([f"{self.prefix}/bin/gpreempt", *words], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                                  timeout=seconds).stdout
        except subprocess.TimeoutExpired:
            return f"gpreempt {words[0]}: no answer in {seconds} s\n"

    def launch_daemon(self, *options):
        self.options = options
        self.daemon = subprocess.Popen([f"{self.prefix}/bin/gpreemptd", "--config", self.conf, "--socket", f"{self.folder}/gpreemptd.sock", *options],
                                       stderr=subprocess.DEVNULL)

    def configure(self, text, *options):
        with open(self.conf, "w", encoding="utf-8") as file:
            file.write("[scheduler]\n" + text)
        if self.daemon is None:
            self.launch_daemon(*options)
            self.wait_until_known()
            print(self.gpreempt("ps"), flush=True)
        else:
            self.daemon.send_signal(signal.SIGHUP)
            time.sleep(0.3)

    def knows_all(self):
        try:
            known = {queue["pid"] for queue in json.loads(self.gpreempt("list", "--json"))["queues"]}
        except ValueError:  # nobody answers yet
            return False
        return all(program.pid in known for program in (*self.servers, *self.trains))

    def wait_until_known(self):
        """A row beside a program that gpreemptd does not know would be one of native, by another name."""
        end = time.monotonic() + KNOWN_S
        while not self.knows_all() and time.monotonic() < end and self.daemon.poll() is None:
            time.sleep(0.2)
        if self.daemon.poll() is not None:
            sys.exit(f"gpreemptd ended: {self.daemon.returncode}")
        if not self.knows_all():
            print("# WRONG: gpreemptd does not know all of the programs", flush=True)
        time.sleep(0.5)  # slices are set

    def train(self, does):
        for one in self.trains:
            one.tell("go" if does else "rest")

    def calls(self):
        """How often gpreemptd had something stopped, resumed or made to yield, or tried to."""
        try:
            devices = json.loads(self.gpreempt("stats", "--json"))["devices"] if self.daemon else []
        except (ValueError, KeyError):
            return 0
        return sum(one[key] for one in devices for key in ("suspends", "resumes", "failures", "slices"))

    def exclusive(self, name, *what, **more):
        """The bare servers alone. Trainings that rest would take turns, as nobody can tell that they do: beside several there is no gpreemptd."""
        ends = self.daemon is not None and len(self.trains) > 1
        if ends:
            self.end_daemon()
        self.row(name, *what, trains=False, servers=self.bare, **dict(more, hints=False))
        if ends:
            self.launch_daemon(*self.options)
            self.wait_until_known()

    def row(self, name, rate, count, seed, trains=True, warm=0, servers=None, **more):
        """more: of what a server is told, and not as usual. Every server has the rate, and arrivals of its own."""
        servers = self.servers if servers is None else servers
        self.train(trains)
        time.sleep(0.7)
        before = self.calls()
        spec = dict({"shape": "poisson", "hints": True, "is_async": False}, rate=rate, count=count, warm=warm, **more)
        for i, server in enumerate(servers):
            server.tell("serve " + json.dumps(dict(spec, seed=seed + 1000 * i)))
        found = [server.answer() for server in servers]
        begin, end = min(one["begin_s"] for one in found), max(one["end_s"] for one in found)
        clock = self.clock.between(begin, end)
        each = [one.rate(begin, end) for one in self.trains]
        row = {key: [x for one in found for x in one[key]] for key in ("latency_us", "service_us")}
        row.update(row=name, rate=rate, seed=seed, layers_per_s=sum(each), gpu=clock, calls=self.calls() - before)
        if len(each) > 1:
            row.update(layers_per_s_of=each, pauses=[[list(p) for p in one.pauses if begin <= p[0] <= end] for one in self.trains])
        self.rows.append(row)
        print(f"# {name} {rate:g}/s seed {seed}: p50 {at(row, 50):.0f} p99 {at(row, 99):.0f} service {statistics.mean(row['service_us']):.0f}"
              f" layers/s {[round(x) for x in each]} ({clock})", flush=True)

    def alone(self, seconds=4):
        self.train(True)
        time.sleep(1)
        begin = time.monotonic()
        time.sleep(seconds)
        self.alones.append(sum(one.rate(begin, time.monotonic()) for one in self.trains))
        print(f"# training alone: {self.alones[-1]:.0f} layers/s", flush=True)

    def end_programs(self):
        for program in (*self.servers, *self.bare, *self.trains):
            program.end()
        self.servers, self.bare, self.trains = [], [], []
        self.clock.end()

    def end_daemon(self):
        if self.daemon:
            end_daemon(self.daemon)
        self.daemon = None

    def end(self):
        self.end_programs()
        self.end_daemon()

    def __enter__(self):
        return self

    def __exit__(self, kind, why, trace):
        """What there is when it fails, or when its time is over, is kept."""
        self.end()
        if kind is not None and issubclass(kind, (Exception, SystemExit, KeyboardInterrupt)):
            self.cut_short = f"{kind.__name__}: {why}"
            traceback.print_exception(kind, why, trace)
        return self.cut_short is not None

    def how(self):
        return dict({"machine": machine()}, **({"cut_short": self.cut_short} if self.cut_short else {}))

    def found(self):
        return dict(self.how(), alone_layers_per_s=self.alones, rows=self.rows)


def end_daemon(daemon):
    daemon.terminate()
    try:
        daemon.wait(10)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def gpu(what):
    """By nvidia-smi, or nothing."""
    return subprocess.run(["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader"], text=True, stdout=subprocess.PIPE, check=False).stdout.strip()


def other_gpus(doctor, smi):
    """What gpreempt doctor says of GPUs (its JSON) and not nvidia-smi of name, UUID and bus (CSV), and the other way round. Nothing: they agree."""
    ours = {tuple(check["detail"].split(";")[0].split(", ")[:3]) for check in doctor["checks"] if check["what"] == "NVIDIA GPU" and ", GPU-" in check["detail"]}
    theirs = set()
    for line in smi.splitlines():
        name, uuid, bus = line.split(", ")
        theirs.add((name, bus.lower()[-12:], uuid))
    return sorted(ours ^ theirs)


def machine():
    return gpu("name,driver_version")


def quantile(values, percent):
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))]


def at(row, percent):
    return quantile(row["latency_us"], percent)


def some(rows, name, rate=None):
    return [row for row in rows if row["row"] == name and rate in (None, row["rate"])]


def p(rows, percent):
    return statistics.median(at(row, percent) for row in rows)


def spread(rows):
    """The least and the greatest p99 of repeats."""
    each = [at(row, 99) for row in rows]
    return f"{min(each):.0f} to {max(each):.0f}" if len(each) > 1 else "-"


def alone(found):
    return statistics.median(found["alone_layers_per_s"] or [float("nan")])


def services(row):
    """Of each request, us from the end of the one before, or from its arrival where that is later. Older files have the arrivals' seed alone."""
    if "service_us" in row:
        return row["service_us"]
    found, last = [], 0.0
    for at_us, latency in zip(load.arrivals("poisson", row["rate"], len(row["latency_us"]), row["seed"]), row["latency_us"]):
        end = at_us * 1e6 + latency
        found.append(end - max(at_us * 1e6, last))
        last = end
    return found


def service(rows):
    return statistics.median(statistics.mean(services(row)) for row in rows)


def end_in_time(*_):
    raise KeyboardInterrupt("its time is over")


def clock_of(row):
    seen = row.get("gpu", "")
    return seen if isinstance(seen, dict) else summed_up([one for one in [sampled(seen)] if one])


def clocks(found):
    """SM clock, power and caps beside each row, and whether exclusive is what it is called; older files have one sample after each row."""
    names = sorted({(row["rate"], row["row"]) for row in found["rows"]})
    print(f"{'SM clock, power, caps':24} {'rate':>5} {'MHz, median':>12} {'least':>6} {'most':>6} {'W, median':>10}  caps, in all samples")
    for rate, name in names:
        known = [one for one in map(clock_of, some(found["rows"], name, rate)) if one["samples"]]
        if known:
            mhz, caps = [one["sm_mhz"] for one in known], sorted({cap for one in known for cap in one["caps"]})
            print(f"{name:24} {rate:5.0f} {statistics.median(one[1] for one in mhz):12.0f} {min(one[0] for one in mhz):6.0f} {max(one[2] for one in mhz):6.0f}"
                  f" {statistics.median(one['power_w'][1] for one in known):10.0f}  {', '.join(f'{cap:#x}' for cap in caps)}")
    baseline(found)


def baseline(found):
    """What all else is compared with, where it is not a server alone; older files do not count what gpreemptd did."""
    of_exclusive = [row for row in found["rows"] if row["row"].startswith("exclusive")]
    touched = sum(row.get("calls", 0) for row in of_exclusive)
    if touched:
        print(f"WRONG: gpreemptd made {touched} calls while a server ran alone")
    if any("calls" not in row for row in of_exclusive):
        print("Here exclusive is not a server alone: the agent was in it, it gave the hints of its row, and gpreemptd could park the\n"
              "training that rested beside it. A server without these may be faster; then all ratios to exclusive are higher than here.")


def keep(found):
    if len(sys.argv) == 3:
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            json.dump(found, file, separators=(",", ":"))


def kept(measure):
    """All that was found; of what is told to end, or fails, what it has until then."""
    found = None
    signal.signal(signal.SIGTERM, end_in_time)
    try:
        got = measure(os.path.abspath(sys.argv[1]))
        for found in got if inspect.isgenerator(got) else [got]:
            keep(found)
    except (Exception, SystemExit, KeyboardInterrupt) as why:  # pylint: disable=broad-except
        traceback.print_exc()
        found = found or {"machine": machine()}
        found["cut_short"] = f"{type(why).__name__}: {why}"
        keep(found)
    return found


def say(table, found):
    """Returns what was printed. What was cut short says so, and may have nothing that there is a table for."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            table(found)
        except (LookupError, TypeError, ValueError) as why:
            if not found.get("cut_short"):
                raise
            print(f"The table ends here, for want of figures ({type(why).__name__}: {why}).")
        if found.get("cut_short"):
            print(f"CUT SHORT ({found['cut_short']}): what was still to be measured is missing above.")
    print(said.getvalue(), end="", flush=True)
    return said.getvalue()


def run(measure, table, usage, short=None):
    """measure() returns what was found, or yields it as it grows; its table comes last, from the same dictionary that --again reads. short: the table of --short."""
    if sys.argv[1:2] == ["--again"] and (len(sys.argv) == 3 or (short and sys.argv[3:] == ["--short"])):
        with open(sys.argv[2], encoding="utf-8") as file:
            say(table if len(sys.argv) == 3 else short, json.load(file))
        return
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(usage)
    found = kept(measure)
    wrong = [line for line in say(table, found).splitlines() if any(word in line for word in WRONG)]
    if found.get("cut_short"):
        sys.exit(f"cut short: {found['cut_short']}")
    if wrong:
        sys.exit("not as it should be:\n" + "\n".join(wrong))
