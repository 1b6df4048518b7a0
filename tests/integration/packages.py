#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Debian's packages and EL's: installed, upgraded and removed on a Debian 12 with a systemd of its own, with clients connected.

The release before is built from the newest tag of an older version that can make packages. While there is none, from the commit that
packaging/before names, under a lower version if its version is still this one's.
"""

import contextlib
import fcntl
import glob
import json
import os
import re
import shutil
import signal
import socket
import threading
import time

import tap
import roots
from gpreemptd import tree
from preload import CLIENT, DOUBLE, DRIVER, need_preload
from roots import called, until, well

WORK = os.path.join(os.path.abspath(tap.BUILD), "packages")
PACKAGES = ["systemd", "libinih1", "libjson-c5", "libmicrohttpd12", "python3", "rpm"]
BASE = os.path.join(WORK, "-".join(["fresh", *PACKAGES]))
NAMES = ["gpreempt", "gpreempt-agent", "gpreempt-metrics", "gpreempt-slurm", "libgpreempt-dev", "libgpreempt0", "python3-gpreempt"]
SOCKET = "/run/gpreempt/gpreemptd.sock"
CONF = "/etc/gpreempt/gpreemptd.conf"
BEFORE = "\n; of the release before\n"  # the end of its CONF
SOON = 60  # seconds; nothing here takes that long unless it is broken
EXPOSURE = 40  # tenths, of systemd-analyze security; what is left is what gpreemptd is for

# What installing and removing anything changes, and the group, which stays.
OTHERS = re.compile(r" /(var/(lib/(dpkg|apt|systemd)|cache|log|tmp)|root|run|etc/(ld\.so\.cache|(group|gshadow|passwd|shadow)-?|machine-id|\.pwd\.lock))\b")


# The packages


def version(source=tap.SOURCE):
    return re.search(r"^  version: '(.*)',$", tap.read(source, "meson.build"), re.M).group(1)


def numbers(text):
    return tuple(int(part) for part in text.split("."))


def lower(text):
    major, minor, patch = numbers(text)
    return ".".join(map(str, (major, minor, patch - 1) if patch else (major, minor - 1, 99) if minor else (major - 1, 99, 99)))


def packed(source, kind, folder, **env):
    if not shutil.which("rpmbuild" if kind == "rpm" else "dh_python3"):
        raise tap.Skip(f"what makes packages is not installed: tools/deps.sh {kind}")
    options = {option["name"]: option["value"] for option in json.loads(tap.read(tap.BUILD, "meson-info", "intro-buildoptions.json"))}
    if options["b_sanitize"] != "none" or options["b_coverage"]:
        raise tap.Skip("packages have builds of their own, which are not instrumented")
    made = well(called(os.path.join(source, "tools", "pack.sh"), kind, folder, env={**os.environ, **env})).stdout.split()
    return [path for path in made if not path.endswith(".src.rpm")]


def packages(kind):
    """Their paths. As make deb and make rpm leave them; what has not changed is not built again."""
    return packed(tap.SOURCE, kind, os.path.join(os.path.abspath(tap.BUILD), kind))


def installed():
    """The names of all files that an installation has."""
    for source, place in json.loads(tap.read(tap.BUILD, "meson-info", "intro-installed.json")).items():
        if os.path.isdir(source):
            yield from (name for folder, _, names in os.walk(source) if "__pycache__" not in folder for name in names)
        else:
            yield os.path.basename(place)


def see_all_are_there(paths, *lister):
    """LICENSE is each package's own, by another name."""
    listed = "".join(well(called(*lister, path)).stdout for path in paths).splitlines()
    packed_names = {os.path.basename(line.split(" -> ")[0]).removesuffix(".gz") for line in listed}
    tap.same(sorted(set(installed()) - packed_names - {"LICENSE"}), [], "what no package has")


def git(repository, *args, **more):
    return called("git", "-C", repository, *args, **more)


def tag_before(repository):
    tags = [tag for tag in git(repository, "tag").stdout.split() if re.fullmatch(r"v?\d+\.\d+\.\d+", tag)]
    older = [tag for tag in tags if numbers(tag.lstrip("v")) < numbers(version())]
    able = [tag for tag in older if git(repository, "cat-file", "-e", f"{tag}:tools/pack.sh").returncode == 0]
    return max(able, key=lambda tag: numbers(tag.lstrip("v")), default=None)


def commit_before():
    """One of an older release, and what it is called."""
    tag = tag_before(tap.SOURCE)
    name = tag or tap.read(tap.SOURCE, "packaging", "before").split()[-1]
    if git(tap.SOURCE, "cat-file", "-e", f"{name}^{{commit}}").returncode != 0:
        raise tap.Skip(f"{name}, of which the packages before these are made, is not in this copy's history: an archive, or a shallow clone")
    return name


def rewrite(sources, path, old, new):
    text = tap.read(sources, path)
    tap.same(text.count(old), 1, f"{old!r} in {path}")
    tap.write(os.path.join(sources, path), text.replace(old, new))


def make_older(sources):
    """Packages of one version are no upgrade of each other. And a setting's line has changed since, which dpkg and rpm must ask about."""
    of = version(sources)
    if numbers(of) >= numbers(version()):
        rewrite(sources, "meson.build", f"  version: '{of}',\n", f"  version: '{lower(version())}',\n")
        rewrite(sources, "packaging/gpreempt.spec", f"Version: {of}\n", f"Version: {lower(version())}\n")
    tap.write(f"{sources}/share/gpreemptd.conf", tap.read(sources, "share", "gpreemptd.conf") + BEFORE)


def extract(name, sources):
    """Once: what is there has been compiled."""
    if not os.path.isdir(sources):
        shutil.rmtree(f"{sources}.new", ignore_errors=True)
        os.makedirs(f"{sources}.new")
        well(called("sh", "-euc", 'git -C "$1" archive --output "$2/archive.tar" "$3"; tar -C "$2" -xf "$2/archive.tar"; rm "$2/archive.tar"', "sh", tap.SOURCE, f"{sources}.new", name))
        make_older(f"{sources}.new")
        os.rename(f"{sources}.new", sources)


def release_before(kind):
    """Its packages, and its version."""
    name = commit_before()
    place = os.path.join(WORK, "before", name)
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(WORK, "before.lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        extract(name, f"{place}/sources")
    number = version(f"{place}/sources")
    tap.say(f"the release before is {name}, as {number}")
    when = well(git(tap.SOURCE, "log", "-1", "--format=%ct", name)).stdout.strip()
    return packed(f"{place}/sources", kind, f"{place}/{kind}", DEB_BUILD_OPTIONS="noopt", SOURCE_DATE_EPOCH=when), number  # compiled sooner


# Ways to install them


class Debian:
    starts = True  # what is installed runs
    keeps = set()  # settings that the administrator changed

    new_conf = CONF + ".dpkg-dist"

    @staticmethod
    def install(m, paths):
        """As unattended-upgrades does: nobody is asked."""
        m.sh('DEBIAN_FRONTEND=noninteractive dpkg --force-confdef --force-confold --install "$@" 2>&1', *bring(m, paths))

    @staticmethod
    def roll_back(m, paths):
        keep = ("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold")
        m.sh('DEBIAN_FRONTEND=noninteractive apt-get --yes install --allow-downgrades "$@" 2>&1', *keep, *bring(m, paths))

    @staticmethod
    def remove(m):
        m.sh('dpkg --purge "$@" 2>&1', *NAMES)


class Rpm:
    starts = False
    new_conf = CONF + ".rpmnew"
    # And folders that on EL are python3's, pkgconf's and everybody's.
    keeps = {"/etc/gpreempt", CONF + ".rpmsave", "/usr/lib/python3.6", "/usr/lib/python3.6/site-packages", "/usr/lib64/pkgconfig", "/usr/share/licenses"}

    @staticmethod
    def install(m, paths):
        m.sh('rpm --upgrade --nodeps "$@" 2>&1', *bring(m, paths))

    @staticmethod
    def roll_back(m, paths):
        m.sh('rpm --upgrade --oldpackage --nodeps "$@" 2>&1', *bring(m, paths))

    @staticmethod
    def remove(m):
        m.sh("rpm --query --all | grep gpreempt | xargs rpm --erase")


def bring(m, paths):
    shutil.rmtree(m.path("/root/packages"), ignore_errors=True)
    os.mkdir(m.path("/root/packages"))
    for path in paths:
        shutil.copy(path, m.path("/root/packages"))
    return [f"/root/packages/{os.path.basename(path)}" for path in paths]


@contextlib.contextmanager
def machine(folder):
    roots.make(BASE, "bookworm", *PACKAGES)
    with roots.Machine(folder, BASE) as m:
        yield m


def is_active(m, *units):
    return m.run("systemctl", "is-active", *units).stdout.split()


def daemon_of(m):
    """Its number in there."""
    return int(m.sh("systemctl show --value --property MainPID gpreemptd"))


# Clients


class Comers:
    """Somebody who comes to the socket all the time, and counts who was refused."""

    def __init__(self, path):
        self.came, self.refused = 0, []
        self.path, self.ends = path, False
        self.thread = threading.Thread(target=self.come)

    def come(self):
        while not self.ends:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
                try:
                    one.connect(self.path)
                    self.came += 1
                except OSError as why:
                    self.refused.append(str(why))
            time.sleep(0.002)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *why):
        self.ends = True
        self.thread.join()


PROGRAM = CLIENT + """
assert create()[0] == 0
print("ready", flush=True)
time.sleep(3600)
"""


class Clients:
    """A program with the agent in it on a stand-in for AMD's driver, and two on a simulated GPU, all under the machine's gpreemptd."""

    def __init__(self, m):
        self.machine = m
        tree(m.path("/srv"))  # a GPU for gpreemptd, in /srv/root
        shutil.copy(DOUBLE, m.path("/srv/libkfd_double.so"))
        tap.write(m.path("/srv/program.py"), PROGRAM)
        m.sh(f"sed -i 's:^;root = /$:root = /srv/root:' {CONF}; grep -qx 'root = /srv/root' {CONF}; systemctl restart gpreemptd")
        environment = f"GPREEMPT_KFD={DRIVER}", "KFD_DOUBLE_LOG=/srv/calls", "LD_PRELOAD=/srv/libkfd_double.so"
        self.program = m.start("env", *environment, "gpreempt", "run", "--offline", "--", "python3", "/srv/program.py")
        tap.same(self.program.stdout.readline(), "ready\n", "the program")
        self.gpu = m.start("gpreempt", "sim-gpu")
        tap.true(self.gpu.stdout.readline(), "the simulated GPU")
        self.train = m.start("gpreempt", "sim-client", "--offline", "--work", "train", "--json")
        self.infer = m.start("gpreempt", "sim-client", "--online", "--work", "infer-10ms", "--rate", "20", "--hints", "--json")
        until(lambda: len(self.known()) == 3, "gpreemptd knows all", SOON)
        self.first = self.known()

    def ask(self, *args):
        done = self.machine.run("gpreempt", *args, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def known(self):
        """Numbers and classes."""
        return {(one["pid"], one["class"]) for one in (self.ask("ps") or {"clients": []})["clients"]}

    def stopped(self):
        """Queues that are not running."""
        return [one for one in self.ask("list")["queues"] if one["state"] != "running"]

    def last_call(self):
        return tap.read(self.machine.path("/srv/calls")).splitlines()[-1]

    def program_number(self):
        return next(str(one["pid"]) for one in self.ask("ps")["clients"] if one["name"] == "python3")

    def lease_program(self):
        """Nobody waits for the end of that."""
        self.machine.sh('gpreempt suspend "$1" --lease 10min', self.program_number())

    def suspend_program(self):
        """A tool that has it stopped until it ends."""
        tool = self.machine.start("gpreempt", "suspend", self.program_number())
        tap.true(tool.stdout.readline().startswith("Suspended"), "suspend")
        tap.same(self.last_call(), "update 0 0", "the program's queue")
        return tool

    def run_all(self):
        """The program's queue, and those of the GPU: offline ones are stopped for a request, and for no longer."""
        until(lambda: self.last_call() == "update 0 100", "the program's queue runs", SOON)
        until(lambda: not self.stopped(), "all queues run at a time", SOON)

    def live(self):
        tap.same([one.poll() for one in (self.program, self.gpu, self.train, self.infer)], [None] * 4, "they run")

    def figures(self, which):
        """What a simulated one measured; it ends."""
        which.send_signal(signal.SIGINT)
        return json.loads(which.communicate(timeout=SOON)[0])


def start_clients(m, kind):
    """On what has just been installed."""
    if not kind.starts:
        m.sh("systemctl enable --now gpreemptd 2>&1")
    until(lambda: is_active(m, "gpreemptd", "gpreemptd.socket") == ["active", "active"], "gpreemptd runs", SOON)
    return Clients(m)


def see_settings(m, kind, *lines):
    """Those of the administrator, and beside them what the other release has."""
    tap.same(m.sh(f"grep -c '^root = /srv/root$' {CONF}; ls /etc/gpreempt").splitlines(), ["1", "classes.ini", "gpreemptd.conf", os.path.basename(kind.new_conf)], "settings")
    tap.same([BEFORE.strip() in m.sh(f"cat {path}") for path in (CONF, kind.new_conf)], list(lines), f"the line of the release before in {CONF} and in {kind.new_conf}")


def roll_back(m, kind, clients, before, number):
    """To the release before, with a program that somebody has stopped."""
    was = daemon_of(m)
    clients.lease_program()
    clients.suspend_program()
    kind.roll_back(m, before)
    until(lambda: daemon_of(m) not in (0, was), "the older gpreemptd runs", SOON)
    until(lambda: clients.known() == clients.first, "it knows the same clients", SOON)
    tap.same(m.sh("gpreemptd --version"), f"gpreemptd {number}\n", "the release before")
    clients.live()
    clients.run_all()


def upgrade(folder, kind, name):
    """Nobody is asked, gpreemptd's new settings have changed, and so have those that are there."""
    need_preload()
    before, number = release_before(name)
    now = packages(name)
    with machine(folder) as m:
        kind.install(m, before)
        clients = start_clients(m, kind)
        tap.same(m.sh("gpreemptd --version"), f"gpreemptd {number}\n", "the release before")
        clients.lease_program()
        was, tool = daemon_of(m), clients.suspend_program()
        with Comers(m.path(SOCKET)) as comers:
            kind.install(m, now)
            until(lambda: daemon_of(m) not in (0, was), "another gpreemptd runs", SOON)
            until(lambda: clients.known() == clients.first, "it knows the same clients", SOON)
        tap.same((comers.refused, comers.came > 20), ([], True), f"of {comers.came} who came meanwhile, refused")
        tap.same(os.readlink(m.path(f"/proc/{daemon_of(m)}/exe")), "/usr/bin/gpreemptd", "what runs")
        tap.same(m.sh("gpreemptd --version"), f"gpreemptd {version()}\n", "this release")
        tap.true(tool.wait(SOON) != 0 and "gpreemptd" in tool.stderr.read(), "the tool is told")
        clients.live()
        clients.run_all()
        see_settings(m, kind, True, False)
        again = clients.suspend_program()  # the agent of the release before, by this gpreemptd
        again.kill()
        clients.run_all()
        roll_back(m, kind, clients, before, number)
        infer, train = clients.figures(clients.infer), clients.figures(clients.train)
        tap.true(infer["submitted"] - infer["completed"] <= 1 and infer["completed"] > 20, f"{infer}")
        tap.true(train["completed"] > 0 and train["stops"] > 0, f"{train}")


def removal(folder, kind, name):
    need_preload()
    with machine(folder) as m:
        before = m.listing()
        kind.install(m, packages(name))
        clients = start_clients(m, kind)
        clients.lease_program()
        clients.suspend_program()
        kind.remove(m)
        tap.same(is_active(m, "gpreemptd", "gpreemptd.socket"), ["inactive", "inactive"], "its units")
        until(lambda: clients.last_call() == "update 0 100", "the program's queue runs", SOON)
        clients.live()
        tap.same(m.sh("ls -d /run/gpreempt* 2>/dev/null || :"), "", "left in /run")
        tap.same(m.sh("systemctl list-unit-files --no-legend 'gpreempt*' || :; systemctl --failed --no-legend"), "", "units")
        left = {line for line in m.listing() - before if not OTHERS.search(line) and " /srv" not in line}
        tap.same({line.split()[2] for line in left}, kind.keeps, "left")
        tap.same({line for line in before - m.listing() if not OTHERS.search(line)}, set(), "lost")
        tap.true(m.sh("getent group gpreempt").startswith("gpreempt:"), "the group stays: its number may be on files")


# Debian


@tap.test("lintian has nothing to say of Debian's packages, and each override has its reason beside it")
def _(_folder):
    paths = packages("deb")
    tap.same(sorted(os.path.basename(path).split("_")[0] for path in paths), NAMES, "packages")
    if not shutil.which("lintian"):
        raise tap.Skip("lintian is not installed")
    done = called("lintian", "--allow-root", "--fail-on", "error,warning", *glob.glob(os.path.join(os.path.dirname(paths[0]), "*.changes")))
    tap.same((done.returncode, done.stdout), (0, ""), done.stderr)
    for path in glob.glob(os.path.join(tap.SOURCE, "packaging", "debian", "*.lintian-overrides")):
        tap.true(tap.read(path).startswith("# "), f"{path} gives no reason")


@tap.test("what make install installs is in Debian's packages, each file of it")
def _(_folder):
    see_all_are_there(packages("deb"), "dpkg", "--contents")


@tap.test("the example of plugstack.conf in Debian's package names Slurm's plug-in where the package has it")
def _(folder):
    package = next(path for path in packages("deb") if "/gpreempt-slurm_" in path)
    well(called("dpkg-deb", "--extract", package, folder))
    plugins = glob.glob(f"{folder}/usr/lib/*/gpreempt/gpreempt-slurm.so")
    lines = [line.split() for line in tap.read(folder, "usr/share/gpreempt/slurm/plugstack.conf").splitlines() if not line.startswith("#")]
    tap.same([line[:2] for line in lines], [["required", plugin[len(folder):]] for plugin in plugins], "lines")


@tap.test("Debian's packages are upgraded with clients connected, and rolled back: nobody is refused, all come back, nothing stays stopped, settings stay")
def _(folder):
    upgrade(folder, Debian, "deb")


@tap.test("Debian's packages are purged with clients connected: nothing stays stopped, and nothing is left but the group")
def _(folder):
    removal(folder, Debian, "deb")


@tap.test("a later release's settings come as gpreemptd.conf.dpkg-dist where the administrator has changed them, and a removal keeps those")
def _(folder):
    with machine(folder) as m:
        Debian.install(m, packages("deb"))
        m.sh(f"""echo '; mine' >>{CONF}
            cd /root; dpkg-deb --raw-extract packages/gpreempt_*.deb later
            echo '; theirs' >>later{CONF}; sed -i 's/^Version: .*/&+later/' later/DEBIAN/control; rm later/DEBIAN/md5sums
            dpkg-deb --build later later.deb; dpkg --force-depends --force-confdef --force-confold --install later.deb 2>&1""")
        tap.same(m.sh(f"tail -qn 1 {CONF} {CONF}.dpkg-dist"), "; mine\n; theirs\n", "settings")
        m.sh("dpkg --force-depends --remove gpreempt 2>&1")
        tap.same(m.sh(f"tail -n 1 {CONF}; ls /run/gpreempt* /usr/bin/gpreempt 2>/dev/null || :"), "; mine\n", "after the removal")


@tap.test("the service has the rights that its file names and no others, and is as closed as gpreemptd's work allows")
def _(folder):
    with machine(folder) as m:
        Debian.install(m, packages("deb"))
        unit = m.sh("cat /lib/systemd/system/gpreemptd.service")
        names = re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M).group(1).lower().split()
        status = m.sh('cat "/proc/$1/status"', str(daemon_of(m)))
        field = dict(re.findall(r"^(\w+):\s*(\S+)", status, re.M))
        known = [f"cap_{name}" for name in m.sh("setpriv --list-caps").split()]
        have = {name for number, name in enumerate(known) if int(field["CapEff"], 16) >> number & 1}
        tap.same((have, field["CapBnd"], field["NoNewPrivs"], field["Seccomp"]), (set(names), field["CapEff"], "1", "2"), "rights")
        for path, may in (("/run/gpreempt", True), ("/etc", False), ("/usr/bin", False), ("/root", False), ("/tmp", False), ("/sys", False)):
            done = m.run("nsenter", "--mount", "--target", str(daemon_of(m)), "test", "-w", path)
            tap.same(done.returncode == 0, may, f"it may write {path}")
        said = m.run("sh", "-c", "systemd-analyze verify gpreemptd.service gpreemptd.socket 2>&1").stdout.splitlines()
        tap.same([line for line in said if "Command 'man " not in line], [], "systemd-analyze verify")  # there is no man
        pid = daemon_of(m)
        m.sh("systemctl reload gpreemptd")
        until(lambda: "the configuration was read again" in m.sh("journalctl --unit gpreemptd --output cat"), "it is reloaded", SOON)
        tap.same(daemon_of(m), pid, "and not restarted")
        done = m.run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", "/lib/systemd/system/gpreemptd.service")
        tap.same(done.returncode, 0, f"{done.stdout[-200:]}{done.stderr}")


@tap.test("restarting gpreemptd refuses nobody; stopping it stops it, however many come")
def _(folder):
    with machine(folder) as m:
        Debian.install(m, packages("deb"))
        with Comers(m.path(SOCKET)) as comers:
            for _ in range(3):
                m.sh("systemctl restart gpreemptd")
            m.sh('kill -KILL "$1"', str(daemon_of(m)))  # systemd starts it again
            until(lambda: is_active(m, "gpreemptd") == ["active"] and daemon_of(m), "it runs again", SOON)
        tap.same((comers.refused, comers.came > 20), ([], True), f"of {comers.came}")
        with Comers(m.path(SOCKET)) as comers:
            m.sh("systemctl stop gpreemptd")
            tap.same(is_active(m, "gpreemptd"), ["inactive"], "stopped")
            until(lambda: is_active(m, "gpreemptd.socket") == ["inactive"], "its socket is stopped with it", SOON)
            seen = len(comers.refused)
            until(lambda: len(comers.refused) > seen + 20, "they are refused", SOON)
            tap.same(is_active(m, "gpreemptd", "gpreemptd.socket"), ["inactive", "inactive"], "and stays so")


SCRAPE = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9847/metrics').read().decode())"


@tap.test("the exporter's service is not started by itself; started, it has a user of its own and no rights, and tells of gpreemptd, of the next one too")
def _(folder):
    with machine(folder) as m:
        Debian.install(m, packages("deb"))
        tap.same(is_active(m, "gpreempt-metrics"), ["inactive"], "after the installation")
        m.sh("systemctl start gpreempt-metrics")
        until(lambda: m.run("python3", "-c", SCRAPE).returncode == 0, "it answers", SOON)
        tap.true("\ngpreempt_up 1\n" in m.sh(f'python3 -c "{SCRAPE}"'), m.sh("journalctl --unit gpreempt-metrics --output cat"))
        pid = m.sh("systemctl show --value --property MainPID gpreempt-metrics").strip()
        field = dict(re.findall(r"^(\w+):\s*(\S+)", m.sh('cat "/proc/$1/status"', pid), re.M))
        tap.same((field["CapBnd"], field["CapEff"], field["NoNewPrivs"], field["Seccomp"]), ("0" * 16, "0" * 16, "1", "2"), "rights")
        tap.true(int(field["Uid"]) > 0 and int(field["Gid"]) > 0, f"{field}")
        m.sh("systemctl restart gpreemptd")
        tap.true("\ngpreempt_up 1\n" in m.sh(f'python3 -c "{SCRAPE}"'), "after a restart of gpreemptd")
        m.sh("systemctl stop gpreemptd")
        until(lambda: "\ngpreempt_up 0\n" in m.sh(f'python3 -c "{SCRAPE}"'), "it knows that there is no gpreemptd", SOON)
        tap.same(m.sh("systemctl show --value --property MainPID --property NRestarts gpreempt-metrics"), f"{pid}\n0\n", "it has not been started again")
        said = m.run("sh", "-c", "systemd-analyze verify gpreempt-metrics.service 2>&1").stdout.splitlines()
        tap.same([line for line in said if "Command 'man " not in line], [], "systemd-analyze verify")  # there is no man
        done = m.run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", "/lib/systemd/system/gpreempt-metrics.service")
        tap.same(done.returncode, 0, f"{done.stdout[-200:]}{done.stderr}")


COME = "import socket; socket.socket(socket.AF_UNIX).connect('/run/gpreempt-metrics/sock')"


@tap.test("on a unix socket, as docs/METRICS.md sets it up, the exporter's service is there for the group of the proxy, and for nobody else")
def _(folder):
    settings = re.search(r"^```ini\n(.*?)^```", tap.read(tap.SOURCE, "docs", "METRICS.md"), re.M | re.S).group(1)
    with machine(folder) as m:
        Debian.install(m, packages("deb"))
        os.makedirs(m.path("/etc/systemd/system/gpreempt-metrics.service.d"))
        tap.write(m.path("/etc/systemd/system/gpreempt-metrics.service.d/override.conf"), settings)
        m.sh("systemctl daemon-reload; systemctl start gpreempt-metrics")

        def comes(user, group):
            return m.run("setpriv", "--reuid", user, "--regid", group, "--clear-groups", "python3", "-c", COME).returncode == 0

        until(lambda: comes("www-data", "www-data"), "the proxy comes in", SOON)
        tap.same(comes("nobody", "nogroup"), False, "somebody else comes in")


# No terminal to ask, and no sudo there.
APT = 'APT::Get::Assume-Yes "true";\nDPkg::Use-Pty "false";\n'
SUDO = '#!/bin/sh\nexec env DEBIAN_FRONTEND=noninteractive "$@"\n'


@tap.test("docs/INSTALL.md does what it says of Debian's packages, command for command, and the README's systemctl starts gpreemptd")
def _(folder):
    first, *blocks = roots.commands("Debian packages")
    tap.same((first, len(blocks)), ("make deb\n", 3), "commands")
    packages("deb")
    well(called("sh", "-euc", first, cwd=tap.SOURCE, env={**os.environ, "BUILD": os.path.abspath(tap.BUILD)}))
    with machine(folder) as m:
        tap.write(m.path("/etc/apt/apt.conf.d/test"), APT)
        os.chmod(tap.write(m.path("/usr/bin/sudo"), SUDO), 0o755)
        before = m.listing()
        os.makedirs(m.path("/root/build/deb"))
        for path in packages("deb"):
            shutil.copy(path, m.path("/root/build/deb"))
        said = m.sh("cd /root; " + blocks[0])
        tap.true("gpreemptd      yes" in said and "agent          yes" in said, said)
        tap.same(m.sh("getent group gpreempt").split(":")[3], "root\n", "members of the group")
        m.sh("systemctl stop gpreemptd")
        m.sh(re.search(r"^\$ (sudo systemctl start \w+) ", tap.read(tap.SOURCE, "README.md"), re.M).group(1))
        tap.same((is_active(m, "gpreemptd"), m.run("gpreempt", "ps").returncode), (["active"], 0), "by the README's line")
        m.sh(blocks[1])
        until(lambda: "read again" in m.sh("journalctl --unit gpreemptd --output cat"), "it is reloaded", SOON)
        tap.true("lease = 5s\n" in m.sh("gpreemptd --print-config"), "the setting")
        said = m.sh("python3 -c 'import gpreempt; print(len(gpreempt.Context(backend=\"sim\").queues()), gpreempt.__file__)'")
        tap.same(said, "5 /usr/lib/python3/dist-packages/gpreempt/__init__.py\n", "the Python package")
        tap.true("usage" in m.sh("gpreempt verify --help") and m.sh("PYTHONPATH=/usr/share/gpreempt/python python3 -c 'import gpreempt_scheduler'") == "", "Python")
        m.sh(blocks[2])
        tap.same({line for line in m.listing() - before if not OTHERS.search(line)}, set(), "left")


# EL


@tap.test("what the spec needs to build is what tools/deps.sh names for EL8")
def _(_folder):
    spec = tap.read(tap.SOURCE, "packaging", "gpreempt.spec")
    table = [[field.strip() for field in line.split("|")] for line in tap.read(tap.SOURCE, "tools", "deps.sh").splitlines() if line.count("|") == 4]
    ours = {row[2] for row in table if row[0].startswith("build ")}
    needed = set(re.findall(r"^BuildRequires: (\S+)", spec, re.M))
    # python3-devel and systemd: where EL has its macros for folders, and what the unit and the group are for. slurm-devel: who builds for
    # himself may do without its plug-in.
    tap.same(needed - {"python3-devel", "systemd", "slurm-devel"}, ours - {"python3"}, "packages")


@tap.test("EL's packages are made from the sources alone, name their parts as EL does and need no program of Debian's")
def _(folder):
    paths = packages("rpm")
    query = "%{NAME} %{ARCH} %{LICENSE}\\n[%{REQUIRENAME}\\n]"
    said = {os.path.basename(path): well(called("rpm", "--query", "--package", "--queryformat", query, path)).stdout.splitlines() for path in paths}
    heads = sorted(lines[0].split()[0] for lines in said.values())
    tap.same(heads, ["gpreempt", "gpreempt-agent", "gpreempt-devel", "gpreempt-libs", "gpreempt-metrics", "gpreempt-slurm", "python3-gpreempt"], "packages")
    programs = {line for lines in said.values() for line in lines[1:] if line.startswith("/")}
    tap.true(programs <= {"/bin/sh", "/usr/bin/env", "/usr/bin/python3", "/usr/bin/pkg-config"}, f"{programs}")
    listed = "".join(well(called("rpm", "--query", "--list", "--package", path)).stdout for path in paths)
    for path in ("/usr/lib64/libgpreempt.so.0\n", "/usr/lib/python3.6/site-packages/gpreempt/__init__.py\n", "/usr/lib/sysusers.d/gpreempt.conf\n",
                 "/usr/lib/systemd/system/gpreemptd.socket\n"):
        tap.true(path in listed, f"{path} is in none")
    settings = well(called("rpm", "--query", "--configfiles", "--package", next(path for path in paths if "/gpreempt-" + version() in path))).stdout
    tap.same(settings, "/etc/gpreempt/classes.ini\n/etc/gpreempt/gpreemptd.conf\n", "settings")


@tap.test("what make install installs is in EL's packages, each file of it")
def _(_folder):
    see_all_are_there(packages("rpm"), "rpm", "--query", "--list", "--package")


@tap.test("EL's packages are upgraded with clients connected, and rolled back: nobody is refused, all come back, nothing stays stopped, settings stay")
def _(folder):
    upgrade(folder, Rpm, "rpm")


@tap.test("EL's packages are removed with clients connected: nothing stays stopped, and nothing is left but changed settings and the group")
def _(folder):
    removal(folder, Rpm, "rpm")


tap.main(jobs=2)
