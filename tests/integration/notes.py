#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""docs/NOTES.md: what it says is here is here, its commands run, and its numbers are those of the programs. Of the README and all documents, their commands."""

import ast
import configparser
import contextlib
import functools
import glob
import inspect
import json
import os
import re
import shlex
import subprocess
import sys

import tap
from gpreemptd import daemon
from simulated import gpu, handles, train
from torchless import hide_torch, without_torch

PACKAGE = os.path.join(tap.SOURCE, "python")
BUILD = os.path.abspath(tap.BUILD)
LIBRARIES = ("libgpreempt.so.0", "libgpreempt_poc.so.0", "libgpreempt_poc_v2.so.0")
JOB = "4711"
PATIENCE = 240  # s, for a machine that is busy
SHORT = ("--duration", "300ms")

hide_torch()
sys.path.insert(0, PACKAGE)
os.environ["GPREEMPT_LIBRARY"] = os.path.join(BUILD, LIBRARIES[0])

import ai_model_wrapper  # noqa: E402
import gpreempt  # noqa: E402
import gpreempt_scheduler  # noqa: E402
import simple_models  # noqa: E402
import smart_queue_scheduler  # noqa: E402
from gpreempt.verify import criteria, report, second, ways  # noqa: E402

MODULES = (gpreempt_scheduler, smart_queue_scheduler, ai_model_wrapper, simple_models)
CLASSES = [getattr(module, name) for module in MODULES for name in module.__all__ if inspect.isclass(getattr(module, name))]

NEEDS_MORE = re.compile(r"\b(?:PID|LOG|NAME|DIR|FILE|VERSION)\b|--full|--intrusive|--watch|^kernel/|^bench/")  # than a simulated GPU
STATUSES = {"test_api_availability": {0, tap.FAILED}, f"gpreempt preempt {JOB} --type reset": {tap.FAILED}}
OTHERS = {"cat", "grep"}  # programs of the system's
CODE = re.compile(r"`([^`]+)`")


class Document:
    """Rows of tables, blocks of code and names."""

    def __init__(self, *path):
        self.text = tap.read(tap.SOURCE, *path)
        self.blocks = re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", self.text)
        self.rows = []  # of (heads, cells)
        plain = re.sub(r"(?ms)^```.*?^```$", "", self.text)
        heads = None
        for line in plain.split("\n"):
            cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else None
            if cells and heads:
                self.rows.append((heads, cells))
            heads = heads or cells if cells else None
        self.rows = [row for row in self.rows if not set("".join(row[1])) <= set("-")]
        self.prose = "\n".join(line for line in plain.split("\n") if not line.startswith("|"))

    def names(self):
        """What is said to be here: all in code type but for the notes' own names, in the left columns."""
        cells = [cell for heads, row in self.rows for cell in (row[1:] if heads[0].startswith("the notes") else row)]
        return [name for text in [*cells, self.prose] for name in CODE.findall(text)]

    def shown(self):
        """Commands of the blocks without a language, and of each what follows it."""
        found = [re.findall(r"(?m)^\$ (.*)\n((?:(?!\$ ).*\n)*)", text) for language, text in self.blocks if not language]
        return [one for block in found for one in block]

    def commands(self):
        """Of the blocks for a shell, and of the columns with commands."""
        lines = [line.split("  #")[0].strip() for language, text in self.blocks if language == "sh" for line in text.splitlines()]
        return lines + [name for heads, row in self.rows for head, cell in zip(heads, row) if head == "command" for name in CODE.findall(cell)]

    def table(self, head):
        """The rows of one whose second column has this name."""
        return [row for heads, row in self.rows if heads[1] == head]


document = Document("docs", "NOTES.md")


@functools.lru_cache
def exported():
    found = set()
    for library in LIBRARIES:
        done = tap.good("-D", "--defined-only", os.path.join(BUILD, library), program="nm")
        found |= {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}
    return found


@functools.lru_cache
def usage(*words):
    return tap.good(*words[1:], "--help", program=os.path.join(BUILD, words[0])).stdout


@functools.lru_cache
def verbs():
    return set(re.findall(r"(?m)^  ([\w-]+)  ", usage("gpreempt")))


@functools.lru_cache
def bold():
    """Words that a man page sets so: options, settings, variables, values."""
    pages = "\n".join(tap.read(path) for path in glob.glob(os.path.join(tap.SOURCE, "man", "*")))
    lines = re.findall(r'(?m)^\.(?:B|BR|BI|RB|IP|TP) (.*)$', pages)
    return {word for line in lines for word in re.findall(r"[\w-]+", line.replace("\\-", "-"))}


@functools.lru_cache
def settings():
    text = "\n".join(tap.read(tap.SOURCE, "share", name) for name in ("gpreemptd.conf", "classes.ini"))
    return dict(re.findall(r"(?m)^;?\s*(\w+) = (.*)$", text))


@functools.lru_cache
def series():
    return "\n".join(tap.read(path) for path in glob.glob(os.path.join(tap.SOURCE, "kernel", "series", "*.patch")))


def has_options(words, text):
    return all(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) or (word == "-o" and "--out" in text)
               for word in words if re.match(r"--?[a-z]", word))


def is_bed_test(name):
    return os.path.exists(os.path.join(tap.SOURCE, "tests", "kernel", name if name.endswith(".py") else name + ".c"))


def own_words(words):
    """Of a command that runs another: without that."""
    return words[:words.index("--")] if "--" in words else words


def is_command(text):
    words = [word for word in shlex.split(re.split(r"\| |& |;", text)[0]) if word not in ("sudo", "&")]
    if words[0] == "gpreempt":
        words = own_words(words)
        return len(words) == 1 or (words[1] in verbs() and has_options(words[2:], usage("gpreempt", words[1])))
    if words[0] == "make":
        return all(re.search(rf"(?m)^(?:[\w-]+ )*{word}(?: [\w-]+)*:", tap.read(tap.SOURCE, "Makefile")) for word in words[1:] if "=" not in word)
    if words[0] in OTHERS:
        return True
    if words[0] == "kernel/bed/run":
        return all(word.startswith("-") or is_bed_test(word) for word in words[1:])
    if os.path.exists(os.path.join(tap.SOURCE, words[0])):
        return len(words) == 1 or has_options(words[1:], tap.read(tap.SOURCE, words[0]))
    return os.access(os.path.join(BUILD, words[0]), os.X_OK) and has_options(words[1:], usage(words[0]))


def is_argument(name, value):
    """Of a class of the notes; with a value, one that it takes."""
    takers = [one for one in CLASSES if name in inspect.signature(one).parameters]
    if not takers or value is None:
        return bool(takers)
    return all(one(**{name: ast.literal_eval(value)}) for one in takers)


def is_in_python(name):
    return any(hasattr(place, name) for place in [*MODULES, *CLASSES]) or any(f"self.{name} = " in inspect.getsource(one) for one in CLASSES)


def is_page(name):
    return os.path.exists(os.path.join(tap.SOURCE, "man", name[:-3] + "." + name[-2]))


def is_call(name):
    return name[:-2] in exported() or is_in_python(name[:-2])


def is_option(text):
    return has_options(text.split(), "\n".join(usage("gpreempt", verb) for verb in verbs()) + usage("gpreemptd"))


def is_in_package(text):
    return hasattr(gpreempt, re.match(r"with gpreempt\.(\w+)", text).group(1))


def is_in_series(name):
    return re.search(rf"(?m)^\+.*\b{name}\b", series()) is not None


def is_file(name):
    return os.path.exists(os.path.join(tap.SOURCE, name))


def is_word(name):
    """Of a man page, of the settings, of Python, of the notes' header."""
    return (name in bold() or name in settings() or is_in_python(name) or is_argument(name, None)
            or re.search(rf"\b{name}\b", tap.read(tap.SOURCE, "include", "gpreempt", "compat", "gpreempt_poc.h")) is not None)


# What a name looks like, and what is to be so if it is here. The first that fits counts.
LOOKS = [
    (r"[\w-]+\(\d\)", is_page),
    (r"\w+\(\)", is_call),
    (r"--.*", is_option),
    (r"(?:gpreemptd?|queue_\w+|test_\w+|share/notes/\S+|kernel/bed/run)(?: .*)?", is_command),
    (r"with gpreempt\..*", is_in_package),
    (r"(?:AMDKFD_IOC|KFD_SCHED)_\w+", is_in_series),
    (r"([a-z_]+)=(\S+)", is_argument),
    (r"([A-Z_]+)=\S+", is_word),
    (r"\S+/\S+|python", is_file),
    (r"([\w-]+)\??", is_word),
]


def is_here(name):
    for look, is_so in LOOKS:
        found = re.fullmatch(look, name)
        if found:
            return is_so(*(found.groups() or [name]))
    return False


@tap.test("every name that the page says is here is: calls, commands, options, files, pages, Python's, the driver's")
def _(folder):
    names, commands = document.names(), [command for command, _ in document.shown()]
    tap.true(len(names) > 150, f"{len(names)} names")
    tap.same(sorted({name for name in names if not is_here(name)} | {command for command in commands if not is_command(command)}), [], "not here")


def public(one):
    return {name for name in vars(one) if not name.startswith("_") and callable(getattr(one, name))}


OURS = re.compile(r"(?:sudo )?(?:gpreemptd?|make)(?: |$)")


def typed(path):
    """What a document says to type, wherever it stands in it."""
    page = Document(path)
    lines = [line.split("  #")[0] for line in [*page.commands(), *(command for command, _ in page.shown())]]
    return lines + CODE.findall(re.sub(r"(?ms)^```.*?^```$", "", page.text))


@tap.test("the commands of the README and the documents are there, with the options that they give them")
def _(folder):
    pages = ["README.md", *glob.glob("docs/*.md", root_dir=tap.SOURCE)]
    ours = {(path, command) for path in pages for command in typed(path) if OURS.match(command)}
    tap.true(len(ours) > 200, f"{len(ours)}")
    tap.same(sorted(one for one in ours if not is_command(one[1])), [], "not there")


def noted():
    """What is here because the notes have it."""
    calls = {name + "()" for name in exported() if name.startswith("gpreempt_")}
    programs = {os.path.basename(path) for path in glob.glob(os.path.join(tap.SOURCE, "man", "[qt]*.1"))}
    scripts = {os.path.relpath(path, tap.SOURCE) for path in glob.glob(os.path.join(tap.SOURCE, "share", "notes", "**", "*.*"), recursive=True)}
    modules = {os.path.relpath(path, tap.SOURCE) for path in glob.glob(os.path.join(PACKAGE, "*.py"))}
    classes = {name for module in MODULES for name in module.__all__}
    methods = {name + "()" for module in MODULES[:3] for one in module.__all__ for name in public(getattr(module, one)) if one != "QueueInfo"}
    headers = {os.path.relpath(path, tap.SOURCE) for path in glob.glob(os.path.join(tap.SOURCE, "include", "gpreempt", "compat", "*.h"))}
    checks = re.search(r'#define GP_CHECKS \\\n\t"(.*) all"', tap.read(tap.SOURCE, "src", "cli", "options.h")).group(1).split()
    return (calls | scripts | modules | classes | methods | headers | {name[:-2] for name in programs} | {"gpreempt verify " + check for check in checks})


@tap.test("the page names all that is here because the notes have it: calls, programs, scripts, classes, their methods, checks")
def _(folder):
    told = {word for name in document.names() for word in (name, name.split(" ")[0])}
    tap.true(len(noted()) > 60, f"{len(noted())} names")
    tap.same(sorted(noted() - told), [], "not on the page")


def limit(criterion, value):
    return f"{criterion.sign} {value:g} {criterion.unit}" if value is not None else "-"


@tap.test("the criteria are those by which verify judges")
def _(folder):
    want = [[one.what, limit(one, one.must), limit(one, one.should), limit(one, one.best)] for one in criteria.CRITERIA.values()]
    tap.same(document.table("must"), want, "criteria")


def parameters():
    """By check, as they stand in the sources: name, and what is usual and with --full."""
    found = {}
    for path in glob.glob(os.path.join(PACKAGE, "gpreempt", "verify", "*.py")):
        tree = ast.parse(tap.read(path))
        constants = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)}
        for function in tree.body:
            chosen = asked(function, constants) if isinstance(function, ast.FunctionDef) else []
            found.setdefault(function.name, []).extend(chosen) if chosen else None
    return found


def asked(function, constants):
    """run.chosen("name", usual, full) and run.duration(usual, full) in it."""
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("chosen", "duration")]
    values = [[ast.literal_eval(constants.get(getattr(word, "id", ""), word)) for word in call.args] for call in calls]
    return [tuple(row) if len(row) == 3 else ("duration_s", *row) for row in values]


# A check's parts that are functions of their own.
PARTS = {"edge": ["_concurrent_calls", "_many_online"], "latency": ["_online_latency"], "reservation": ["_fill"]}


@tap.test("the parameters of the checks are those of the sources, as is usual and with --full")
def _(folder):
    sources = parameters()
    for _, command, told in document.table("command"):
        check = re.fullmatch(r"`gpreempt verify (\w+)`", command).group(1)
        want = {name: [usual] if usual == full else [usual, full]
                for function in [check, *PARTS.get(check, [])] for name, usual, full in sources.get(function, [])}
        got = {name: [float(value) for value in values.split(", ")] for name, values in re.findall(r"(\w+) ([\d., ]*\d)", told)}
        tap.same(got, {name: [float(value) for value in values] for name, values in want.items()}, check)


def default(one, name):
    return inspect.signature(one).parameters[name].default


def save_us(device):
    """All waves of a full GPU, over its memory's bandwidth."""
    ini = configparser.ConfigParser()
    ini.read(os.path.join(tap.SOURCE, "share", "devices", device + ".ini"))
    of = {name: int(value) for name, value in ini["device"].items() if value.isdigit()}
    cus = of["xccs"] * of["cus_per_xcc"]
    return cus, round(cus * of["waves_per_cu"] * of["save_bytes_per_wave"] / of["save_bytes_per_us"])


@tap.test("the other numbers are those of the programs")
def _(folder):
    old, new = ways.WAYS[ways.OLD], ways.WAYS[ways.NEW]
    scheduler, smart = gpreempt_scheduler.GPreemptScheduler, smart_queue_scheduler.SmartQueueScheduler
    small, large = save_us("mi308x"), save_us("mi300x")
    rounds = json.loads(tap.good("selftest", "--backend", "sim", "--json").stdout)["trials"][0]["rounds"]
    private = re.findall(r"define KFD_IOC_PRIVATE_\w+ KFD_IOC\(KFD_RW, (0x\w+)", tap.read(tap.SOURCE, "src", "backend", "kfd", "uapi.h"))
    for phrase in (
            f"grace {old.grace_us} us of the old way, {new.grace_us} us of the new",
            f"next stage above {report.NEXT_STAGE_MS} ms, failed above {report.FAILED_MS} ms",
            f"check interval {default(scheduler, 'check_interval_ms')} ms",
            f"online slice {default(smart, 'online_slice_ms')} ms",
            f"reservation {second.ONLINE_PERCENT} % and {second.OFFLINE_PERCENT} %",
            f"at {second.QUEUES[0]}, {second.QUEUES[1]} and {second.QUEUES[2]} queues",
            f"{default(scheduler.register_online_queue, 'priority')} unless given, in `register_online_queue()`",
            f"{default(scheduler.register_offline_queue, 'priority')} unless given, in `register_offline_queue()`",
            f"per device and second; {settings()['max_stops_per_s']}",
            f"stops a running queue {rounds} times",
            f"ioctls {private[0]} and {private[1]} of the private kernel",
            f"threshold {settings()['online_priority']} ",
            f"take {small[1]} us with {small[0]} compute units and {large[1]} us with {large[0]}"):
        tap.true(phrase in document.text, f"not on the page: {phrase}")


@tap.test("what commands print on the page is what they print")
def _(folder):
    shown = [(command, text) for command, text in document.shown() if text]
    tap.true(shown, "there is none")
    for command, text in shown:
        done = tap.run("-euc", command, program="sh", env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"})
        tap.same((done.returncode, done.stdout, done.stderr), (0, text, ""), command)


def place(folder):
    """A folder in which the source tree's are seen, and files can be made."""
    here = os.path.join(folder, "here")
    os.mkdir(here)
    for name in ("tests", "share", "python", "kernel"):
        os.symlink(os.path.join(tap.SOURCE, name), os.path.join(here, name))
    return here


def environment(socket):
    return without_torch({**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}", "GPREEMPT_SOCKET": socket, "PYTHONPATH": PACKAGE,
                          "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", "GPREEMPT_QUIET": "1"})


def verifies(command):
    return re.match(r"gpreempt (verify|report)|share/notes/|test_hqd", command) is not None


def is_late(done):
    """All that verify found wrong is that this machine was too slow for the notes' limits."""
    wrong = re.findall(r"(?m)^  FAIL .*$", done.stdout)
    return done.returncode == tap.FAILED and wrong and all(": not met" in line for line in wrong)


def runs(command, statuses, here, env):
    words = shlex.split(command)
    short = SHORT if words[:2] == ["gpreempt", "verify"] else ()
    done = subprocess.run([*words, *short], cwd=here, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=PATIENCE, check=False, preexec_fn=tap.die_with_parent)
    tap.true(done.returncode in statuses or is_late(done), f"{command}: exit status {done.returncode}; {done.stdout[-500:]}{done.stderr[-500:]}")


@contextlib.contextmanager
def beside_a_job(folder):
    """How a text with the page's 4711 is to be written, where it is to run, and with what."""
    with daemon(folder) as d, gpu(folder, socket=d.path), train(folder, socket=d.path) as client:
        handles(d, client.pid)
        yield lambda text: text.replace(JOB, str(client.pid)), place(folder), environment(d.path)


def run_all(folder, chosen):
    commands = [command for command in dict.fromkeys(document.commands()) if not NEEDS_MORE.search(command) and chosen(command)]
    tap.true(len(commands) > 5, f"{commands}")
    with beside_a_job(folder) as (own, here, env):
        for command in commands:
            runs(own(command), STATUSES.get(command, {0}), here, env)


@tap.test("its commands run, beside a job on a simulated GPU")
def _(folder):
    run_all(folder, lambda command: not verifies(command))


@tap.test("its commands that verify and report run too")
def _(folder):
    run_all(folder, verifies)


@tap.test("its Python runs, beside a job on a simulated GPU")
def _(folder):
    blocks = [text for language, text in document.blocks if language == "python"]
    tap.true(blocks, "there is none")
    with beside_a_job(folder) as (own, here, env):
        for text in blocks:
            tap.good("-c", own(text), program=sys.executable, cwd=here, env=env, timeout=PATIENCE, preexec_fn=tap.die_with_parent)


tap.main(jobs=2)
