#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The archive that make dist makes: built in a Debian 11, installed and used in another, and as docs/INSTALL.md says."""

import base64
import fcntl
import functools
import glob
import hashlib
import json
import os
import re
import shutil
import zipfile

import tap
import roots
from roots import ROOT_TOOL, SKIPPED, called, well

DIST_TOOL = os.path.join(tap.SOURCE, "tools", "dist.sh")
DIST = os.path.join(os.path.abspath(tap.BUILD), "dist")
PACKAGES = ["systemd", "xz-utils"]
BASE = os.path.join(DIST, "-".join(["fresh", *PACKAGES]))  # a Debian 11 with nothing to build with; never changed
OWN = "/opt/gpreempt"


@functools.lru_cache
def archive():
    """Its path. As make dist leaves it; what has not changed is not built again."""
    options = {option["name"]: option["value"] for option in json.loads(tap.read(tap.BUILD, "meson-info", "intro-buildoptions.json"))}
    if options["b_sanitize"] != "none" or options["b_coverage"]:
        raise tap.Skip("the archive has a build of its own, which is not instrumented")
    return well(called(DIST_TOOL, DIST)).stdout.strip()


def unpacked(folder):
    well(called("tar", "-C", folder, "-xf", archive()))
    return glob.glob(os.path.join(folder, "gpreempt-*"))[0]


def is_program(path):
    return os.path.isfile(path) and not os.path.islink(path) and tap.read(path, mode="rb")[:4] == b"\x7fELF"


def files_below(folder):
    return [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]


# No systemd runs there: it enables units, and starts none.
SUDO = """#!/bin/sh
case "$1 $2" in
"systemctl try-restart") exit ;;
"systemctl enable" | "systemctl disable") SYSTEMD_OFFLINE=1 systemctl "$2" "$4" ;;
*) exec "$@" ;;
esac
"""


class Root(roots.Root):
    """A fresh Debian 11, with the archive unpacked in /root."""

    def __init__(self, folder):
        roots.make(BASE, "bullseye", *PACKAGES)
        super().__init__(folder, BASE)
        self.archive = unpacked(self.put("/root"))
        self.name = os.path.basename(self.archive)

    def install(self, *args):
        return self.run("sh", f"/root/{self.name}/install.sh", *args)


def policy(folder):
    """tests/unit/mine.c, made with the compiler that made the archive."""
    build = build_root()
    with open(build + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.copy(os.path.join(tap.SOURCE, "tests", "unit", "mine.c"), os.path.join(build, "tmp"))
        well(called(ROOT_TOOL, "--run", build, "gcc-9", "-shared", "-fPIC", "-I/src/include", "-I/src/src", "/tmp/mine.c", "-o", "/tmp/mine.so"))
        return tap.read(build, "tmp", "mine.so", mode="rb")


def wheel(folder):
    return well(called(os.path.join(tap.SOURCE, "tools", "wheel.py"), archive(), folder)).stdout.strip()


@tap.test("the wheel is the same each time; its record is right, its library the archive's, and nothing of ours is left out")
def _(folder):
    first, second = wheel(f"{folder}/a"), wheel(f"{folder}/b")
    tap.same(tap.read(first, mode="rb") == tap.read(second, mode="rb"), True, "the second is as the first")
    with zipfile.ZipFile(first) as file:
        made = {name: file.read(name) for name in file.namelist()}
    record = next(made[name].decode() for name in made if name.endswith("/RECORD"))
    want = {name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=") for name, data in made.items() if not name.endswith("/RECORD")}
    tap.same(dict(re.findall(r"^(.*),sha256=(.*),\d+$", record, re.M)), want, "RECORD")
    there = unpacked(folder)
    libraries = {f"gpreempt/{name}.so.0" for name in ("libgpreempt", "libgpreempt_poc", "libgpreempt_poc_v2")}
    tap.same([name for name in libraries if made[name] != tap.read(there, "lib", os.path.basename(name), mode="rb")], [], "libraries that are not the archive's")
    python = os.path.join(there, "share", "gpreempt", "python")
    ours = {os.path.relpath(path, python) for path in files_below(python)}
    tap.same({name for name in made if ".dist-info/" not in name} - libraries, ours, "files")
    tap.true("gpreempt/py.typed" in ours and "gpreempt_scheduler.py" in ours, f"{ours}")
    tap.true(b"Tag: py3-none-manylinux_2_28_x86_64\n" in next(made[name] for name in made if name.endswith("/WHEEL")), "tag")
    done = tap.run(f"{folder}/nothing.tar.xz", folder, program=os.path.join(tap.SOURCE, "tools", "wheel.py"))
    tap.same((done.returncode, "no archive of make dist" in done.stderr), (1, True), done.stderr)


def build_root():
    """The Debian 11 that the archive was built in; it has a Python."""
    archive()
    return os.path.join(os.environ.get("GPREEMPT_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "gpreempt"), "dist")


@tap.test("all tests of the Python package pass on a Debian 11, with its Python 3.9, and the package of the wheel finds the library inside")
def _(folder):
    root = build_root()
    over = roots.Root(folder, root)
    changed = os.path.join(folder, "changed")
    for name in ("tests", "python", "docs"):
        shutil.copytree(os.path.join(tap.SOURCE, name), f"{changed}/src/{name}", symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    with zipfile.ZipFile(wheel(folder)) as file:
        file.extractall(f"{changed}/wheel")
    script = """python3 --version
PYTHONPATH=/wheel python3 -c 'import gpreempt; print(len(gpreempt.Context(backend="sim").queues()), "queues")'
CC=gcc-9 GPREEMPT_BUILD=/made GPREEMPT_SOURCE=/src PYTHONPATH=/src/tests python3 /src/tests/integration/python.py --jobs 2"""
    with open(root + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        done = over.run("sh", "-euc", script)
    tap.same(done.returncode, 0, "\n".join(re.findall(r"^not ok .*(?:\n#.*)*", done.stdout, re.M)) + done.stderr)
    tap.true(done.stdout.startswith("Python 3.9.") and "\n5 queues\n" in done.stdout, done.stdout)
    tap.same(re.findall("# SKIP.*", done.stdout), [], "skipped")


@tap.test("the same sources give the same archive, to the byte, and its checksum is right")
def _(folder):
    path = archive()
    first = tap.read(path, mode="rb")
    os.remove(path)
    archive.cache_clear()
    tap.same(tap.read(archive(), mode="rb") == first, True, "the second is as the first")
    well(called("sha256sum", "-c", path + ".sha256", cwd=os.path.dirname(path)))
    owners = set(re.findall(r"^\S+ (\S+)", well(called("tar", "-tvf", path, "--numeric-owner")).stdout, re.M))
    tap.same(owners, {"0/0"}, "owners")


@tap.test("dist says what it is at, and leaves the archive and its checksum and nothing else")
def _(folder):
    name = os.path.basename(archive())
    done = well(called(DIST_TOOL, folder))
    tap.same(set(os.listdir(folder)), {name, name + ".sha256"}, "left")
    for step in ("compiling", "packing"):
        tap.true(f"dist.sh: {step}" in done.stderr, f"{step}: {done.stderr}")


@tap.test("where a Debian 11 cannot be made, dist says why and what to do, and leaves no archive")
def _(folder):
    os.chmod(tap.write(os.path.join(folder, "unshare"), "#!/bin/sh\nexit 1\n"), 0o755)
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "GPREEMPT_CACHE": os.path.join(folder, "cache")}
    done = tap.run(folder, program=DIST_TOOL, env=env)
    tap.same((done.returncode, done.stdout, glob.glob(f"{folder}/*.xz*")), (SKIPPED, "", []), done.stderr)
    tap.true("no mount namespace" in done.stderr and "take another machine" in done.stderr, done.stderr)


@tap.test("nothing in the archive needs a libc newer than 2.28, gpreempt none at all, and the check would notice")
def _(folder):
    check = os.path.join(tap.SOURCE, "tools", "check-glibc.sh")
    allowed = re.search(r'^libraries="(.*)"', tap.read(tap.SOURCE, "tools", "dist.sh"), re.M).group(1).split()
    there = unpacked(folder)
    programs = [path for path in files_below(there) if is_program(path)]
    names = {os.path.relpath(path, there) for path in programs}
    tap.same({"bin/gpreempt", "bin/gpreemptd", "lib/libgpreempt-agent.so", "libexec/gpreempt/gpreempt", "libexec/gpreempt/gpreempt-metrics"} - names, set(), f"not in {names}")
    for path in programs:
        done = called("sh", check, path, *allowed, *(["libmicrohttpd.so.12"] if path.endswith("/gpreempt-metrics") else []))
        tap.same((done.returncode, done.stdout), (0, ""), path)
    tap.true("INTERP" not in well(called("readelf", "-lW", os.path.join(there, "bin", "gpreempt"))).stdout, "gpreempt asks for a loader")
    if b"GLIBC_2.34" not in tap.read(tap.PROGRAM, mode="rb"):
        raise tap.Skip("this machine's libc is too old to see the check fail")
    tap.same(called("sh", check, tap.PROGRAM, *allowed, "libinih.so.1", "libjson-c.so.5", "libncursesw.so.6", "libtinfo.so.6").returncode, 1, "a program of this machine's libc")


@tap.test("a cache that others than root can write, or that is in a folder of theirs, is not made a root of")
def _(folder):
    outer, cache = os.path.join(folder, "outer"), os.path.join(folder, "outer", "cache")
    os.makedirs(cache)
    for path, change, back in ((cache, lambda: os.chown(cache, 4242, 0), lambda: os.chown(cache, 0, 0)),
                               (cache, lambda: os.chmod(cache, 0o1777), lambda: os.chmod(cache, 0o755)),
                               (outer, lambda: os.chown(outer, 4242, 0), lambda: os.chown(outer, 0, 0)),
                               (outer, lambda: os.chmod(outer, 0o757), lambda: os.chmod(outer, 0o755))):
        change()
        done = tap.run("nosuch", f"{folder}/made", program=ROOT_TOOL, env={**os.environ, "GPREEMPT_CACHE": cache})
        back()
        tap.same((done.returncode, os.listdir(cache)), (SKIPPED, []), done.stderr)
        if "is not installed" in done.stderr or "only root" in done.stderr or "mount namespace" in done.stderr:
            raise tap.Skip(done.stderr)
        tap.true(f"others than root can write {path};" in done.stderr, done.stderr)


@tap.test("gpreempt alone, in a root with nothing in it, simulates, says what is there, and what it lacks to load a policy")
def _(folder):
    there = unpacked(folder)
    alone = os.path.join(folder, "alone")
    os.mkdir(alone)
    shutil.copy(os.path.join(there, "bin", "gpreempt"), alone)
    tap.write(os.path.join(alone, "mine.so"), "")

    def run(*args):
        return tap.run(*args, program="/gpreempt", preexec_fn=lambda: (os.chroot(alone), os.chdir("/")))

    for args in (("--help",), ("version",), ("doctor",), ("list", "--backend", "sim"), ("completion", "bash")):
        done = run(*args)
        tap.same((done.returncode, done.stderr), (0, ""), args)
    args = ("sim", "E", "--duration", "3s", "--only", "native,auto", "--json")
    done = run(*args)
    tap.same((done.returncode, done.stdout), (0, tap.good(*args).stdout), done.stderr)
    done = run("sim", "E", "--policy", "/mine.so")
    tap.same((done.returncode, done.stdout), (tap.BAD_INPUT, ""), done.stderr)
    tap.true("static gpreempt" in done.stderr and "install all of the archive" in done.stderr, done.stderr)


@tap.test("a copy of gpreempt runs nothing beside it that others than root and the caller can write")
def _(folder):
    there = unpacked(folder)
    marker = os.path.join(folder, "marker")
    other = os.path.join(there, "libexec", "gpreempt", "gpreempt")
    os.chmod(tap.write(other, f"#!/bin/sh\necho ran >{marker}\n"), 0o755)
    inner = os.path.dirname(other)

    def runs():
        done = tap.run("sim", "E", "--policy", "/mine.so", program=os.path.join(there, "bin", "gpreempt"))
        ran = os.path.exists(marker)
        tap.true(ran or (done.returncode == tap.BAD_INPUT and "others than root and you can write" in done.stderr), done.stderr)
        if ran:
            os.remove(marker)
        return ran

    tap.true(runs(), "one of our own")
    for path in (other, inner, os.path.dirname(inner)):
        os.chown(path, 4242, 0)
        tap.true(not runs(), f"{path} is another's")
        os.chown(path, 0, 0)
        os.chmod(path, 0o757)
        tap.true(not runs(), f"{path} is everybody's")
        os.chmod(path, 0o775)
        os.chown(path, 0, 4242)
        tap.true(not runs(), f"{path} is a group's")
        os.chown(path, 0, 0)
        os.chmod(path, 0o755)
    tap.true(runs(), "one of our own again")


@tap.test("docs/INSTALL.md does what it says, command for command, on a Debian 11")
def _(folder):
    first, *blocks = roots.commands()
    well(called("sh", "-euc", first, cwd=tap.SOURCE, env={**os.environ, "BUILD": os.path.abspath(tap.BUILD)}))
    root = Root(folder)
    shutil.rmtree(root.archive)
    for path in glob.glob(os.path.join(DIST, "*.tar.xz*")):
        shutil.copy(path, root.put("/root"))
    before = root.listing()
    root.put("/usr/bin/sudo", SUDO)
    script = "cd /root; export USER=root\n" + "".join(blocks).replace("sleep 2", LISTENING)
    text = well(root.run("bash", "-euc", script)).stdout
    left = {line for line in root.listing() - before if not re.search(r" (/root|/usr/bin/sudo|/etc/gpreempt|/run|/var/log|/etc/(group|gshadow|passwd)-?\b)", line)}
    tap.same(left, set(), "left after all of it")
    tap.same(root.sh("getent group gpreempt").split(":")[3], "root\n", "members of the group")
    for said in ("would install /usr/local/bin/gpreemptd", "bin/gpreempt doctor\n", "simulated", "infer-10ms", "put there again", "is gone from /usr/local"):
        tap.true(said in text, f"{said}: {text}")


@tap.test("install --check changes nothing, whatever is there, and names what installing then does")
def _(folder):
    root = Root(folder)
    for step in ("an empty place", "itself"):
        before = root.listing("%y %m %p %l %s %T@")
        done = well(root.install("--check", "--prefix", OWN))
        tap.same(root.listing("%y %m %p %l %s %T@") ^ before, set(), step)
        named = set(re.findall(r"^would (?:install|write|make the folder) (.*)$", done.stdout, re.M))
        well(root.install("--prefix", OWN))
        sizes = [int(size) if kind == "f" else 0 for kind, size in (line.split() for line in root.sh(f"find {OWN} ! -type d ! -name manifest -printf '%y %s\\n'").splitlines())]
        tap.same(done.stdout.splitlines()[-1], f"In all: {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB, in {OWN}.", "the sum")
        there = {line.split(" ")[2] for line in root.listing() - {line.rsplit(" ", 2)[0] + " " for line in before}}
        there = {path for path in there if path.startswith("/opt/")}
        tap.same(there if step == "an empty place" else {f"{OWN}/share/gpreempt/manifest"}, named, step)
    before = root.listing("%y %m %p %l %s %T@")
    well(root.install("--uninstall", "--check", "--prefix", OWN))
    tap.same(root.listing("%y %m %p %l %s %T@") ^ before, set(), "--uninstall")


LISTENING = 'until [ -S /run/gpreempt/sim-gpu.sock ] && [ -S "${GPREEMPT_SOCKET:-/run/gpreempt/gpreemptd.sock}" ]; do sleep 0.1; done'
SESSION = """
export PATH=$1/bin:$PATH; cd /root
gpreempt doctor
gpreempt sim E --duration 2s --only native,auto
gpreempt sim B --duration 2s --only auto --policy ./mine.so
gpreempt run --offline -- /bin/true
mkdir -p /etc/gpreempt; printf '[scheduler]\\nload = /root/mine.so\\npolicy = mine\\n' >/etc/gpreempt/gpreemptd.conf
gpreempt sim-gpu >sim-gpu.log 2>&1 &
gpreemptd 2>gpreemptd.log &
@LISTENING@
gpreempt sim-client --offline --work train --duration 100s >client.log 2>&1 &
for i in $(seq 300); do gpreempt ps 2>/dev/null | grep train && break; sleep 0.1; done
printf '#!/bin/sh\\n[ "$*" = "passwd 0" ] && echo lena::0:0::/:\\n' >/usr/bin/getent
sed -i /^root:/d /etc/passwd
gpreempt ps
gpreempt policy
gpreempt sim-client --online --work infer-1ms --rate 50 --hints --duration 2s
""".replace("@LISTENING@", LISTENING)


@tap.test("installed elsewhere, all of it works there: the simulator, a policy of one's own in it and in gpreemptd, the agent, users' names")
def _(folder):
    root = Root(folder)
    root.put("/root/mine.so", policy(folder))
    well(root.install("--prefix", OWN))
    unit, pc = root.sh(f"cat {OWN}/lib/systemd/system/gpreemptd.service"), root.sh(f"cat {OWN}/lib/pkgconfig/gpreempt.pc")
    tap.true(f"\nExecStart={OWN}/bin/gpreemptd\n" in unit and "/usr/local" not in unit, unit)
    tap.true(pc.startswith(f"prefix={OWN}\n"), pc)
    done = well(root.run("sh", "-euc", SESSION, "sh", OWN))
    tap.true("policy mine" in done.stdout, f"the simulator's policy: {done.stdout}")
    tap.true("agent" not in done.stderr, f"the agent was not found: {done.stderr}")
    users = re.findall(r"^\d+ +(\w+) +train ", done.stdout, re.M)
    tap.same((users[0], users[-1]), ("root", "lena"), f"whose it is, from /etc/passwd and from getent: {done.stdout}")
    tap.true(re.search(r"^0 .* mine *$", done.stdout, re.M), f"policy: {done.stdout}")
    tap.true("online infer-1ms" in done.stdout and "nobody scheduled it" not in done.stdout, done.stdout)


@tap.test("an older version is named and replaced, and nothing that somebody changed or brought is lost")
def _(folder):
    root = Root(folder)
    root.sh(f"cp -r /root/{root.name} /root/old; echo 0.0.9 >/root/old/VERSION; echo old >/root/old/share/gpreempt/gone; echo old >/root/old/bin/gpreemptd")
    well(root.run("sh", "/root/old/install.sh", "--prefix", OWN))
    root.sh(f"echo mine >>{OWN}/share/gpreempt/classes.ini; echo mine >{OWN}/share/gpreempt/mine")
    done = well(root.install("--prefix", OWN))
    tap.true("gpreempt 0.0.9, which is older" in done.stdout and "classes.ini.saved" in done.stdout, done.stdout)
    tap.same(root.sh(f"cd {OWN}/share/gpreempt; ls gone 2>/dev/null || :; tail -n 1 classes.ini.saved; cat mine; ls -d *.new 2>/dev/null || :"), "mine\nmine\n", "files")
    tap.true("gpreemptd" in root.sh(f"{OWN}/bin/gpreemptd --help"), "the new program is there")
    done = well(root.run("sh", "/root/old/install.sh", "--prefix", OWN))
    tap.true("which is newer" in done.stdout, done.stdout)
    root.sh("mkdir -p /opt/other/bin; echo theirs >/opt/other/bin/gpreempt")
    before = root.listing()
    done = root.install("--prefix", "/opt/other")
    tap.same((done.returncode, root.listing() ^ before, root.sh("cat /opt/other/bin/gpreempt")), (1, set(), "theirs\n"), "another's file")
    tap.true("/opt/other/bin/gpreempt" in done.stderr, done.stderr)


@tap.test("uninstall leaves nothing of ours and takes nothing of others', and not while systemd would start it")
def _(folder):
    root = Root(folder)
    before = root.listing()
    well(root.install("--prefix", "/srv/a/b"))
    well(root.install("--prefix", "/srv/a/b"))
    root.sh("cd /srv/a/b/share/gpreempt/python; for at in . gpreempt gpreempt/verify; do mkdir $at/__pycache__; echo >$at/__pycache__/notes.pyc; done")  # as root's Python does
    well(root.run("sh", "/srv/a/b/share/gpreempt/install.sh", "--uninstall"))
    tap.same(root.listing() ^ before, set(), "after install, again, uninstall")
    tap.same(root.run("sh", f"/root/{root.name}/install.sh", "--uninstall", "--prefix", "/srv/a/b").returncode, 1, "twice")

    well(root.install("--prefix", OWN))
    root.sh(f"echo mine >{OWN}/share/gpreempt/mine; echo mine >>{OWN}/share/gpreempt/classes.ini; ln -s {OWN}/lib/systemd/system/gpreemptd.service /etc/systemd/system")
    done = root.install("--uninstall", "--prefix", OWN)
    tap.same((done.returncode, "systemctl disable --now gpreemptd" in done.stderr), (1, True), "enabled")
    root.sh(f"test -x {OWN}/bin/gpreempt; rm /etc/systemd/system/gpreemptd.service")
    done = well(root.install("--uninstall", "--prefix", OWN))
    left = {line.split(" ")[2] for line in root.listing() - before}
    tap.same(left, {OWN, f"{OWN}/share", f"{OWN}/share/gpreempt", f"{OWN}/share/gpreempt/mine", f"{OWN}/share/gpreempt/classes.ini"}, "left")
    tap.true(f"{OWN}/share/gpreempt/classes.ini was changed" in done.stdout, done.stdout)


# In place of a program. The {0}th time it ends who called it.
FATAL = """#!/bin/sh
echo >>/shim/calls
[ "$(wc -l </shim/calls)" -lt {} ] && exec /bin/{} "$@"
kill -9 $PPID
"""


def interrupt(root):
    root.run("sh", "-uc", f"rm -f /shim/calls; PATH=/shim:$PATH sh /root/{root.name}/install.sh --prefix {OWN}; rm -f /shim/calls")


@tap.test("an installation that was interrupted is finished by the next, or removed without a trace")
def _(folder):
    root = Root(folder)
    root.put("/shim/mv", FATAL.format(40, "mv"))
    before = root.listing()
    interrupt(root)
    there = root.listing()
    tap.true(any(f"{OWN}/bin/gpreempt " in line for line in there) and not any(f"{OWN}/share/gpreempt/install.sh" in line for line in there), "it was interrupted")
    well(root.install("--uninstall", "--prefix", OWN))
    tap.same(root.listing() ^ before, set(), "removed")
    well(root.install("--prefix", OWN))
    whole = root.listing()
    well(root.install("--uninstall", "--prefix", OWN))
    interrupt(root)
    well(root.install("--prefix", OWN))
    tap.same(root.listing() ^ whole, set(), "finished")


@tap.test("one that was interrupted while it made folders, even the manifest's, leaves none that uninstall does not remove")
def _(folder):
    root = Root(folder)
    for program, count in (("mkdir", 1), ("mv", 1), ("mkdir", 2), ("mkdir", 9)):
        root.sh("rm -rf /shim")
        root.put(f"/shim/{program}", FATAL.format(count, program))
        before = root.listing()
        interrupt(root)
        tap.true(count == 1 and program == "mkdir" or root.listing() != before, f"{program} {count}: it was interrupted too early")
        tap.true(not any(f"{OWN}/bin/gpreempt " in line for line in root.listing()), f"{program} {count}: it was interrupted too late")
        root.install("--uninstall", "--prefix", OWN)
        tap.same(root.listing() ^ before, set(), f"{program} {count}")


@tap.test("what an installation here would trip over is said: sudo's path, an old libc, another gpreempt")
def _(folder):
    root = Root(folder)
    said = well(root.install()).stdout
    tap.true("sudo here" not in said and "glibc" not in said and "Another" not in said, f"for nothing: {said}")
    root.put("/etc/sudoers", "#Defaults secure_path = /none\nDefaults    secure_path = /sbin:/bin:/usr/sbin:/usr/bin\n")  # as EL8 has it
    root.put("/shim/getconf", "#!/bin/sh\necho glibc 2.17\n")
    root.put("/shim/gpreempt", "#!/bin/sh\n")
    said = root.sh(f"PATH=/shim:$PATH sh /root/{root.name}/install.sh")
    for words in ("sudo here does not look in /usr/local/bin: say sudo /usr/local/bin/gpreempt", "no glibc 2.28", "first in the PATH: /shim/gpreempt"):
        tap.true(words in said, f"{words}: {said}")
    root.put("/etc/sudoers", 'Defaults secure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin"\n')  # as Debian has it
    tap.true("sudo here" not in well(root.install()).stdout, "Debian's")


@tap.test("a prefix that cannot be one is refused, and who may not write there is told where to, and may")
def _(folder):
    root = Root(folder)
    for prefix, code, words in (("opt", 2, "whole path"), ("/opt/a b", 2, "cannot name it"), ("/", 2, "whole path"), ("/proc/x", 2, "the kernel's"), (f"/root/{root.name}/VERSION/x", 1, "cannot make the folder")):
        done = root.install("--prefix", prefix)
        tap.same((done.returncode, words in done.stderr, done.stdout), (code, True, ""), f"{prefix}: {done.stderr}")
    root.sh("chmod 755 /root; mkdir /home/lena; chown 4242 /home/lena")
    done = root.run("setpriv", "--reuid", "4242", "--clear-groups", "sh", f"/root/{root.name}/install.sh")
    tap.same((done.returncode, "use sudo, or --prefix" in done.stderr), (1, True), done.stderr)
    done = well(root.run("setpriv", "--reuid", "4242", "--clear-groups", "sh", f"/root/{root.name}/install.sh", "--prefix", "/home/lena/.local"))
    commands = re.findall(r"^  ([^#\s].*)$", done.stdout, re.M)
    tap.same([line for line in commands if "sudo" in line or "systemctl" in line], [], "what comes next for a user")
    tap.true("/home/lena/.local/bin/gpreemptd &" in commands and "/home/lena/.local/share/gpreempt/install.sh --uninstall" in commands, done.stdout)
    tap.true("gpreempt" in root.sh("setpriv --reuid 4242 --clear-groups /home/lena/.local/bin/gpreempt version"), "one's own")
    tap.same(root.install("--nonsense").returncode, 2, "an option that is none")


tap.main()
