#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Containers: the socket that root mounted into one decides its class, and nobody in it acts outside of it.

Those of Podman and runc have this machine's own files, or a few of them, as their root.
"""

import contextlib
import ctypes
import errno
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import time

import tap
from gpreemptd import AsUser, daemon, foreign, tree, until, with_group
from preload import AGENT, DOUBLE, DRIVER, last_call, need_preload, python
from protocol import Agent, Gone, Items, Peer, Tool, ALL_DEVICES, ATTACH, GIVEN_OFFLINE, GIVEN_ONLINE, HOLD, IN_CONTAINER, OFFLINE, ONLINE, POLICY, SOON, STOP, TOOL, WELCOME, LIST
from simulated import gpu, suspended, train

ANNA = 20001
OTHERS = 300000  # where the uids of a user namespace begin
LOADED = ("/lib/x86_64-linux-gnu/libpthread.so.0", "/lib/x86_64-linux-gnu/libdl.so.2")  # by the agent
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
libc = ctypes.CDLL(None, use_errno=True)
PLACE = "/run/gpreempt/gpreemptd.sock"
CLASSES = {"online": ONLINE, "offline": OFFLINE}


def door(d, name):
    return f"{d.folder}/class/{name}/gpreemptd.sock"


@contextlib.contextmanager
def with_doors(folder, *options, **more):
    before = tap.read(folder, "log").count("listening on") if os.path.exists(f"{folder}/log") else 0
    with daemon(folder, "--class-sockets", f"{folder}/class", *options, **more) as d:
        until(lambda: d.log().count("listening on") == before + 3, "it listens on all three")
        yield d


def told(d, pid, n=1):
    """class and rule of each queue of a process, once there are n"""
    tool = d.tool()
    until(lambda: len(tool.queues(pid)) == n, "its queues are listed")
    return [(q["class"], q["rule"]) for q in tool.queues(pid)]


class Elsewhere:
    """An agent in a child that has another root folder by now."""

    def __init__(self, path, root):
        self.ready, ready = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            tap.die_with_parent()
            agent = Agent(path)
            os.chroot(root)
            os.write(ready, b"x")
            with contextlib.suppress(Gone, OSError):
                while True:
                    agent.answer()
            os._exit(0)
        os.read(self.ready, 1)

    def end(self):
        os.close(self.ready)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def need_root():
    if os.geteuid() != 0:
        raise tap.Skip("needs root")


@tap.test("who comes by a class's socket is of that class, whatever tag, environment, priority and rules say")
def _(folder):
    lies = {"online": {"tag": "OFFLINE_AI", "seen": OFFLINE}, "offline": {"tag": "ONLINE_AI", "seen": ONLINE}}
    priorities = {"online": 0, "offline": 15}
    with with_doors(folder, "--rule", f"offline:pid={os.getpid()}") as d:
        for name in ("online", "offline", "online"):
            agent = Agent(door(d, name), 0, **lies[name])
            agent.add(1, priority=priorities[name])
            tap.same(told(d, os.getpid()), [(CLASSES[name], f"socket {name}")], name)
            agent.close()
            tool = d.tool()
            until(lambda: not tool.handles(os.getpid()), "it has gone")
        agent = d.agent(tag="ONLINE_AI")
        tap.same(told(d, os.getpid())[0][0], OFFLINE, "by everybody's socket rules say")
        agent.close()


@tap.test("a process that came by a class's socket and comes again by everybody's is what rules say")
def _(folder):
    foreign(folder, os.getpid(), 99)  # it stays known between
    with with_doors(folder, "--rule", f"online:pid={os.getpid()}") as d:
        tool = d.tool()
        first = Agent(door(d, "offline"))
        until(lambda: {(q["class"], q["rule"]) for q in tool.queues(os.getpid())} == {(OFFLINE, "socket offline")}, "by the class's socket")
        second = Agent(d.path)  # as after exec()
        until(lambda: {(q["class"], q["rule"]) for q in tool.queues(os.getpid())} == {(ONLINE, f"--rule pid={os.getpid()}")}, "by everybody's")
        first.close()
        second.close()


@tap.test("a rule that makes a process online does not do so for one that came by the socket offline, also after a reload")
def _(folder):
    with with_doors(folder, "--rule", f"online:pid={os.getpid()}") as d:
        agent = Agent(door(d, "offline"))
        d.process.send_signal(signal.SIGHUP)
        until(lambda: "read again" in d.log(), "it reads again")
        tap.same(told(d, os.getpid()), [(OFFLINE, "socket offline")])
        agent.close()


@tap.test("by a class's socket nobody has rights over others, not even root")
def _(folder):
    need_root()
    with with_doors(folder) as d:
        tap.same(d.tool().rights, 1, "root's, by everybody's socket")
        for name in CLASSES:
            tool = Tool(door(d, name))
            tap.same(tool.rights, {"online": GIVEN_ONLINE, "offline": GIVEN_OFFLINE}[name], name)
            tool.send(POLICY, struct.pack("<I32s", ALL_DEVICES, b"fifo"))
            tap.same(tool.error()[0], -errno.EPERM, f"policy by {name}")


@tap.test("a tool that came by a class's socket holds what is in its own root folder, and nothing in another")
def _(folder):
    need_root()
    with with_doors(folder) as d:
        other = Elsewhere(door(d, "online"), folder)
        agent = Agent(door(d, "offline"))
        try:
            [theirs], [own] = ([q["queue"] for q in d.tool().queues(pid)] for pid in (other.pid, os.getpid()) if told(d, pid))
            for name in CLASSES:
                tap.same(Tool(door(d, name)).hold([theirs]).statuses(), [-errno.EPERM], f"another's, by {name}")
            tool = Tool(door(d, "offline"))
            asked = tool.ask(HOLD, Items([own], STOP))
            agent.answer()
            tap.same(tool.result(asked).statuses(), [0], "its own")
            tap.same(d.tool().hold([theirs]).statuses(), [0], "root's, by everybody's socket")
        finally:
            other.end()


def turned_away(path):
    """The status with which gpreemptd refuses whoever comes there; 0: it does not."""
    peer = Peer(path)
    peer.greet(TOOL)
    kind, _, body = peer.receive()
    return 0 if kind == WELCOME else struct.unpack_from("<i", body)[0]


@tap.test("a user reaches a class's socket by no path of the host, and one that was in its folder before is turned away")
def _(folder):
    need_root()
    os.chmod(folder, 0o755)

    def anna(d, inner):
        for name in CLASSES:
            try:
                Peer(door(d, name))
                raise AssertionError("it is there for everybody")
            except PermissionError:
                pass
        tap.same(turned_away(f"/proc/self/fd/{inner}/gpreemptd.sock"), -errno.EPERM, "by an open folder")

    with with_doors(folder) as d:
        inner = os.open(f"{folder}/class/online", os.O_PATH)
        AsUser(ANNA, anna, d, inner).end()


@tap.test("the folder of a class outlives gpreemptd, and has the next one's socket")
def _(folder):
    with with_doors(folder):
        inner = os.open(f"{folder}/class/offline", os.O_PATH)
    for _ in range(2):
        with with_doors(folder) as d:
            tap.same(os.listdir(f"/proc/self/fd/{inner}/"), ["gpreemptd.sock"], "what who mounts it sees")
            agent = Agent(f"/proc/self/fd/{inner}/gpreemptd.sock")
            tap.same(told(d, os.getpid()), [(OFFLINE, "socket offline")])
            agent.close()
        tap.same(os.listdir(f"/proc/self/fd/{inner}/"), [], "when it has ended")


@tap.test("hints by a class's socket count for online alone")
def _(folder):
    with with_doors(folder) as d:
        for name, want in (("online", True), ("offline", False)):
            tool = Tool(door(d, name))
            try:
                tool.hint(1)
                counted = True
            except AssertionError:
                counted = False
            tap.same(counted, want, name)
            tool.close()
            everybody = d.tool()
            until(lambda: not everybody.handles(os.getpid()), "it has gone")


def sit_in_namespace(d, name, told):
    """In a user namespace that root made, with the folder of a class mounted: takes what connections it gets, and says how many."""
    tap.true(libc.unshare(CLONE_NEWNS) == 0, "a mount namespace")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    os.mkdir("/run/gpreempt")
    subprocess.run(["mount", "--bind", f"{d.folder}/class/{name}", "/run/gpreempt"], check=True)
    tap.true(libc.unshare(CLONE_NEWUSER) == 0, "a user namespace")
    peers = []
    for _ in range(140):
        with contextlib.suppress(Gone, OSError, AssertionError):
            peers.append(Tool("/run/gpreempt/gpreemptd.sock"))
    os.write(told, struct.pack("<I", len(peers)))
    AsUser.wait()


@tap.test("containers in user namespaces that took all of a class's places have none of the other's, nor of root's")
def _(folder):
    need_root()
    with with_doors(folder) as d:
        heard, told = os.pipe()
        children = []
        for name, places in (("offline", 128), ("offline", 0), ("online", 128)):
            children.append(AsUser(0, sit_in_namespace, d, name, told))
            tap.true(select.select([heard], [], [], 3 * SOON)[0], "nothing came from a child")
            tap.same(struct.unpack("<I", os.read(heard, 4))[0], places, name)
        d.tool().list()
        for child in children:
            child.go()
            child.end()


@tap.test("with none, and with another socket, there is no class's socket; a folder of another user is refused")
def _(folder):
    need_root()
    for options in ((), ("--class-sockets", "none")):
        with daemon(folder, *options) as d:
            until(lambda: "listening on" in d.log(), "it runs")
        tap.same(d.log().count("listening on"), 1, "sockets")
        os.remove(f"{folder}/log")
    os.mkdir(f"{folder}/theirs")
    os.chown(f"{folder}/theirs", ANNA, ANNA)
    done = tap.run("--config", "/dev/null", "--socket", f"{folder}/sock", "--class-sockets", f"{folder}/theirs",
                   program=os.path.join(os.path.abspath(tap.BUILD), "gpreemptd"))
    tap.same(done.returncode, 1, "exit status")
    tap.true(f"is user {ANNA}'s; choose another place by --class-sockets" in done.stderr, done.stderr)


@tap.test("what stands in the place of a class's socket or folder is left alone and told of, and everybody else is served")
def _(folder):
    need_root()
    os.makedirs(f"{folder}/class/online/gpreemptd.sock")  # as Docker makes what it cannot find
    tap.write(f"{folder}/class/offline", "text")
    os.chmod(f"{folder}/class", 0o700)
    with daemon(folder, "--class-sockets", f"{folder}/class") as d:
        until(lambda: "listening on" in d.log(), "it runs")
        for name in CLASSES:
            tap.true(f"class {name} has no socket" in d.log(), d.log())
        tap.true(f"{folder}/class/online/gpreemptd.sock is there and is no socket; it is left alone" in d.log(), d.log())
        tap.same(d.log().count("listening on"), 1, "sockets")
        d.tool().close()
    tap.same((os.listdir(f"{folder}/class/online"), tap.read(folder, "class", "offline")), (["gpreemptd.sock"], "text"), "what is left")
    os.rmdir(f"{folder}/class/online/gpreemptd.sock")
    with daemon(folder, "--class-sockets", f"{folder}/class") as d:
        until(lambda: d.log().count("listening on") == 3, "everybody's and online's")
        Tool(door(d, "online")).close()


# What is given to Docker and Podman


def words(folder, name):
    return tap.good("cdi", "--docker-args", name, "--class-sockets", f"{folder}/class").stdout.split()


@tap.test("the file and the words for Docker say the same, and name what is there")
def _(folder):
    file = f"{folder}/gpreempt.json"
    said = tap.good("cdi", "--out", file, "--class-sockets", f"{folder}/class").stdout
    tap.true(said.startswith(f"Wrote {file}: "), said)
    told = json.loads(tap.read(file))
    tap.same((told["cdiVersion"], told["kind"]), ("0.3.0", "gpreempt.dev/class"))
    tap.same([device["name"] for device in told["devices"]], ["online", "offline"])
    for device in told["devices"]:
        all_words = []
        for mount in device["containerEdits"]["mounts"] + told["containerEdits"]["mounts"]:
            tap.true({"ro", "bind"} <= set(mount["options"]), mount)
            all_words += ["-v", f"{mount['hostPath']}:{mount['containerPath']}:ro"]
        for variable in told["containerEdits"]["env"]:
            all_words += ["-e", variable]
        tap.same(words(folder, device["name"]), all_words, device["name"])
    agent = told["containerEdits"]["mounts"][0]
    tap.same(agent["hostPath"], AGENT, "the agent")
    tap.same(told["containerEdits"]["env"], [f"LD_PRELOAD={agent['containerPath']}"])


@tap.test("paths that a shell or -v would take apart, a class that is none and a place that cannot be are refused, and nothing is written")
def _(folder):
    file = f"{folder}/gpreempt.json"
    odd = f"{folder}/an agent.so"
    shutil.copy(AGENT, odd)
    for args, env, status, said in (
            (("--class-sockets", "/a:b"), {}, tap.BAD_INPUT, "/a:b: only whole paths"),
            (("--class-sockets", "a"), {}, tap.BAD_INPUT, "a: only whole paths"),
            (("--class-sockets", "/" + "a" * 5000), {}, tap.BAD_INPUT, "no socket can have a path so long"),
            (("--class-sockets", "/" + "a" * 84), {}, tap.BAD_INPUT, "no socket can have a path so long"),
            ((), {"GPREEMPT_AGENT": odd}, tap.BAD_INPUT, f"{odd}: only whole paths"),
            ((), {"GPREEMPT_AGENT": f"{folder}/none"}, tap.FAILED, f"there is no agent at {folder}/none")):
        for what in (("--out", file), ("--docker-args", "online")):
            done = tap.run("cdi", *what, *args, env=dict(os.environ, **env))
            tap.same((done.returncode, done.stdout), (status, ""), f"{what} {args}")
            tap.true(said in done.stderr, done.stderr)
    tap.true(not os.path.exists(file), "it was written")
    tap.true("write online or offline" in tap.run("cdi", "--docker-args", "idle").stderr, "a class")
    for out, said in ((f"{odd}/x", "no folder"), (f"{folder}/none/x", f"there is no folder {folder}/none/"), ("/dev/null", "/dev/null is there and is no file")):
        done = tap.run("cdi", "--out", out)
        tap.same((done.returncode, said in done.stderr), (tap.FAILED, True), done.stderr)
    tap.same(sorted(os.listdir(folder)), ["an agent.so"], "what is there")


@tap.test("what every container would load is a library that nobody but root and the caller can write or replace")
def _(folder):
    need_root()
    agent = shutil.copy(AGENT, f"{folder}/agent.so")

    def cdi():
        return tap.run("cdi", "--docker-args", "online", env=dict(os.environ, GPREEMPT_AGENT=agent))

    tap.same(cdi().returncode, 0, "a good one")
    for path, change, back in ((agent, lambda: os.chown(agent, ANNA, 0), lambda: os.chown(agent, 0, 0)),
                               (agent, lambda: os.chmod(agent, 0o666), lambda: os.chmod(agent, 0o644)),
                               (folder, lambda: os.chmod(folder, 0o757), lambda: os.chmod(folder, 0o700)),
                               (folder, lambda: os.chown(folder, ANNA, 0), lambda: os.chown(folder, 0, 0))):
        change()
        done = cdi()
        back()
        tap.same((done.returncode, done.stdout), (tap.FAILED, ""), done.stderr)
        tap.true(f"{path}: the agent for all containers must be writable by root and you alone" in done.stderr, done.stderr)
    for other in (folder, os.path.abspath(__file__), os.path.realpath("/usr/bin/env"), "/dev/null"):
        agent = other
        done = cdi()
        tap.same((done.returncode, done.stdout), (tap.BAD_INPUT, ""), done.stderr)
        tap.true(f"{other} is no library" in done.stderr, done.stderr)


@tap.test("a copy of gpreempt takes the agent beside it, unless somebody else put it there")
def _(folder):
    need_root()
    need_preload()
    program = shutil.copy(os.path.join(tap.BUILD, "gpreempt"), folder)
    agent = shutil.copy(AGENT, folder)
    for owner, taken in ((0, True), (ANNA, False)):
        os.chown(agent, owner, owner)
        done = tap.run("run", "--offline", "--", "printenv", "LD_PRELOAD", program=program)
        tap.same(agent in done.stdout, taken, done.stdout + done.stderr)


@tap.test("what is written for all containers nobody else can write, whatever the umask")
def _(folder):
    for mask, mode in ((0, 0o644), (0o077, 0o600)):
        file = f"{folder}/{mask}.json"
        tap.same(tap.run("cdi", "--out", file, preexec_fn=lambda m=mask: os.umask(m)).returncode, 0, "exit status")
        tap.same(os.stat(file).st_mode & 0o7777, mode, oct(mask))


# musl


MUSL_PROGRAM = """
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int print_maps(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), maps))
		fputs(line, stdout);
	return 0;
}

int main(int argc, char **argv)
{
	char data[96] = { 0 };
	int status, driver = open("/dev/full", O_RDWR);

	if (argc > 1 && argv[1][0] == 'm')
		return print_maps();
	if (argc > 1)
		ioctl(driver, _IOWR('K', 2, data), data);
	printf("%d", ioctl(driver, _IOWR('K', 2, data), data));
	printf(" %d\\n", errno);
	fflush(stdout);
	if (fork() == 0)
		_exit(4);
	wait(&status);
	printf("%d\\n", WEXITSTATUS(status));
	return 3;
}
"""


def musl_program(folder):
    if not shutil.which("musl-gcc"):
        raise tap.Skip("musl-gcc is not there: Debian's musl-tools")
    source = tap.write(f"{folder}/program.c", MUSL_PROGRAM)
    subprocess.run(["musl-gcc", "-o", f"{folder}/program", source], check=True)
    return f"{folder}/program"


# Behind the agent: the driver of /dev/full, for which all queues can be made. It prints who calls it with how many threads.
MUSL_DRIVER = """
#include <dirent.h>
#include <stdio.h>

int ioctl(int fd, int request, ...)
{
	DIR *tasks = opendir("/proc/self/task");
	int n = 0;

	(void)fd;
	while (readdir(tasks))
		n++;
	closedir(tasks);
	printf("%x of %d, ", (unsigned int)request, n - 2);
	return 0;
}
"""


@tap.test("a program of musl makes queues with the agent as it does without: no call more and no thread")
def _(folder):
    need_preload()
    program = musl_program(folder)
    source = tap.write(f"{folder}/driver.c", MUSL_DRIVER)
    subprocess.run(["musl-gcc", "-shared", "-fPIC", "-o", f"{folder}/driver.so", source], check=True)
    env = dict(os.environ, GPREEMPT_KFD="/dev/full", GPREEMPT_CLASS="offline")
    said = []
    for preload in ("", AGENT + ":"):
        done = subprocess.run([program, "twice"], capture_output=True, check=False, env=dict(env, LD_PRELOAD=f"{preload}{folder}/driver.so"))
        said.append((done.returncode, done.stdout, done.stderr))
    tap.same(said[0], (3, b"c0604b02 of 1, c0604b02 of 1, 0 0\n4\n", b""), "without")
    tap.same(said[1], said[0], "with the agent")


@tap.test("a program of musl that the agent is loaded into runs as it does without, and nothing more is printed")
def _(folder):
    need_preload()
    program = musl_program(folder)
    plain = subprocess.run([program], capture_output=True, check=False)
    tap.same((plain.returncode, plain.stdout, plain.stderr), (3, b"-1 25\n4\n", b""))
    env = dict(os.environ, LD_PRELOAD=AGENT, GPREEMPT_KFD="/dev/full")
    loaded = subprocess.run([program], capture_output=True, check=False, env=env)
    tap.same((loaded.returncode, loaded.stdout, loaded.stderr), (3, plain.stdout, b""))
    maps = subprocess.run([program, "maps"], capture_output=True, check=True, env=env, text=True).stdout
    tap.true(AGENT in maps and "musl" in maps, maps)


# Podman


def podman(folder, *command):
    """Its storage is the test's own."""
    return ["podman", "--root", f"{folder}/storage", "--runroot", f"{folder}/runroot", "--events-backend", "none", "--cgroup-manager", "cgroupfs", *command]


def runs_for(folder):
    """Whether anything of Podman's does, with the test's storage: it cleans up behind containers by itself."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = tap.read(f"/proc/{pid}/cmdline", mode="rb")  # a stranger's need not be text
            if os.fsencode(f"{folder}/storage") in words and int(pid) != os.getpid():
                return True
    return False


def own_mounts():
    """From now on what is mounted is the test's, and ends with it."""
    if libc.unshare(CLONE_NEWNS) < 0:
        raise tap.Skip("no mount namespaces here")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


@contextlib.contextmanager
def with_podman(folder):
    """Its mounts are in a namespace of the test's, and end with it."""
    need_root()
    need_preload()
    for program in ("podman", "runc"):
        if not shutil.which(program):
            raise tap.Skip(f"{program} is not there")
    own_mounts()
    try:
        done = subprocess.run([*podman(folder, "run", "--rm", *PLAIN), "--rootfs", "/:O", "/bin/true"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise tap.Skip(f"podman cannot run a container here: {done.stderr.strip()[-160:]}")
        yield
    finally:
        until(lambda: not runs_for(folder), "Podman has cleaned up", 60)
        mounted = [line.split()[1] for line in tap.read("/proc/self/mounts").splitlines()]
        for path in sorted((path for path in mounted if path.startswith(f"{folder}/")), reverse=True):
            subprocess.run(["umount", "--lazy", path], check=True)


# The limits that Podman would raise may be out of reach here.
PLAIN = ["--runtime", "runc", "--network", "none", "--ulimit", "nofile=20000:20000", "--ulimit", "nproc=1000:1000"]


@contextlib.contextmanager
def container(folder, name, *args, rootfs="/:O", before=()):
    """One that runs args; before: options."""
    command = [*podman(folder, "run", "--name", name, *PLAIN), *before, "--rootfs", rootfs, *args]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=tap.die_with_parent) as process:
        try:
            yield process
        finally:
            subprocess.run(podman(folder, "rm", "--force", "--time", "0", name), capture_output=True, check=False, timeout=60)
            process.kill()


def clients(d):
    return {c["name"]: (c["class"], c["rule"]) for c in json.loads(tap.good("ps", "--json", "--socket", d.path).stdout)["clients"]}


def until_clients(d, want, process=None):
    def there():
        if process and process.poll() is not None:
            raise AssertionError(f"it ended: {process.communicate()}")
        return clients(d) == want

    try:
        until(there, "clients", 40)
    except AssertionError as wrong:
        raise AssertionError(f"{wrong}: {clients(d)}, not {want}") from wrong


def sim_client(name, *claims):
    return tap.PROGRAM, "sim-client", "--gpu", "/run/gpu/sock", "--name", name, *claims


def next_line(stream):
    """Empty: none comes."""
    return stream.readline() if select.select([stream], [], [], SOON)[0] else ""


SERVE, TRAIN = ("--work", "infer-10ms", "--rate", "20"), ("--work", "train")


@tap.test("containers by the words for Docker are what was mounted, also if they say otherwise, and are so again with the next gpreemptd")
def _(folder):
    with with_podman(folder):
        want = {"liar": ("offline", "socket offline"), "modest": ("online", "socket online")}
        liar, modest = sim_client("liar", "--online", *SERVE), sim_client("modest", "--offline", *TRAIN)
        with contextlib.ExitStack() as stack:
            with with_doors(folder) as d, gpu(folder, socket=d.path):
                shared = "-v", f"{folder}/gpu:/run/gpu"
                one = stack.enter_context(container(folder, "liar", *liar, before=(*words(folder, "offline"), *shared, "-e", "GPREEMPT_CLASS=online")))
                two = stack.enter_context(container(folder, "modest", *modest, before=(*words(folder, "online"), *shared, "-e", "AMD_QUEUE_TAG=OFFLINE_AI")))
                until_clients(d, want, one)
                for process, name in ((one, "offline"), (two, "online")):
                    tap.same(next_line(process.stderr), f"gpreempt: gpreemptd takes it for {name}: socket {name}\n", "what it says")
                d.process.terminate()
                d.process.wait(SOON)
                with with_doors(folder) as again:
                    until_clients(again, want, two)


def with_places(folder):
    """gpreemptd's root folder, in which the machine's processes are to be seen."""
    root = tree(folder)
    os.makedirs(f"{root}/sys/fs")
    for path in ("proc", "sys/fs/cgroup"):
        os.symlink(f"/{path}", f"{root}/{path}")


def answer(d, verb, *words):
    return json.loads(tap.good(verb, "--json", "--socket", d.path, *words).stdout)


@tap.test("programs on one simulated GPU, in two containers and outside, are on one device, and those that are online stop the others")
def _(folder):
    with with_podman(folder), contextlib.ExitStack() as stack, with_doors(folder) as d, gpu(folder, socket=d.path):
        shared = "-v", f"{folder}/gpu:/run/gpu"
        for name, claims, other in (("server", ("--online", *SERVE), "online"), ("trainer", ("--offline", *TRAIN), "offline")):
            stack.enter_context(container(folder, name, *sim_client(name, *claims), before=(*words(folder, other), *shared)))
        outside = stack.enter_context(train(folder, "--name", "outside", socket=d.path))
        until(lambda: set(clients(d)) == {"server", "trainer", "outside"}, "all are there", 40)
        [device] = (device["device"] for device in answer(d, "list")["devices"] if device["simulated"])
        tap.same({(c["device"], c["simulated"]) for c in answer(d, "ps")["clients"]}, {(device, True)}, "their device")
        until(lambda: answer(d, "stats", str(device))["devices"][0]["preemptions"] > 1, "the others are stopped", 40)
        until(lambda: all(c["stopped"] for c in answer(d, "ps")["clients"] if c["class"] == "offline"), "all of them", 40)
        outside.figures(signal.SIGINT)


@tap.test("a simulated program in a container is found by the container's name, which rules know too")
def _(folder):
    with with_podman(folder):
        with_places(folder)
        name = named(folder)
        with with_doors(folder, "--rule", f"online:container={name}") as d, gpu(folder, socket=d.path), train(folder, socket=d.path):
            before = "-v", f"{folder}/gpu:/run/gpu", "-v", f"{d.path}:/run/daemon.sock"
            with container(folder, name, *sim_client("inside", "--offline", *TRAIN, "--socket", "/run/daemon.sock"), before=before) as process:
                until_clients(d, {"inside": ("online", f"--rule container={name}"), "train": ("offline", "--offline (GPREEMPT_CLASS)")}, process)
                for verb, key in (("ps", "clients"), ("list", "queues")):
                    tap.same([one["place"].split()[:2] for one in answer(d, verb, "--container", name)[key]], [["container", name]], verb)
                tap.same({c["name"]: c["place"] for c in answer(d, "ps")["clients"]}["train"], "", "of one outside")
                tap.same(next_line(process.stderr), f"gpreempt: gpreemptd takes it for online: --rule container={name}\n", "what it says")
                with suspended(d, "--container", name):
                    [(stopped, held)] = ((c["stopped"], c["state"]) for c in answer(d, "ps")["clients"] if c["name"] == "inside")
                    tap.same((stopped, held), (1, "held"))


# Two programs on the GPU, and what is said of them: who they are here and on the host, and what suspend makes of pids.
NUMBERS = """
import json, subprocess, sys, time
program = sys.argv[1]
client = [program, "sim-client", "--gpu", "/run/gpu/sock", "--offline", "--work", "train"]
first, second = (subprocess.Popen(client, stdout=subprocess.DEVNULL) for _ in range(2))

def run(*words):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr

end = time.monotonic() + 30
while len(listed := [q for q in json.loads(run("list", "--json")[1])["queues"] if q["local_pid"]]) < 2 and time.monotonic() < end:
    time.sleep(0.05)
host = {q["local_pid"]: q["pid"] for q in listed}
said = {"here": [first.pid, second.pid], "host": [host[first.pid], host[second.pid]]}
said["local"] = run("suspend", "--json", "--lease", "100ms", str(first.pid), f"{second.pid}:0")
said["listed"] = run("suspend", "--json", "--lease", "100ms", str(host[first.pid]))
said["nobody"] = run("suspend", "--lease", "100ms", "999999")
said["tables"] = [run(verb)[1] for verb in ("list", "ps")]
print(json.dumps(said))
for one in (first, second):
    one.kill()
"""


@tap.test("in a container suspend takes the pids that programs have there and those that the lists have, which say that they are the host's")
def _(folder):
    with with_podman(folder), with_doors(folder) as d, gpu(folder, socket=d.path), train(folder, socket=d.path):
        before = *words(folder, "offline"), "-v", f"{folder}/gpu:/run/gpu"
        with container(folder, named(folder), "/usr/bin/python3", "-c", NUMBERS, tap.PROGRAM, before=before) as process:
            out, errors = process.communicate(timeout=100)
        tap.same(process.returncode, 0, errors)
        told = json.loads(out)
        tap.true(max(told["here"]) < min(told["host"]) and len(set(told["host"])) == 2, told)
        for asked, want in (("local", told["host"]), ("listed", told["host"][:1])):
            code, said, why = told[asked]
            tap.same((code, sorted((q["pid"], q["error"]) for q in json.loads(said)["queues"])), (0, sorted((pid, None) for pid in want)), why)
        tap.same(told["nobody"][2], "gpreempt: 999999: no process 999999 with GPU queues; see gpreempt list; its pids are the host's, not this container's\n")
        for table in told["tables"]:
            tap.true("The pids are the host's." in table, table)
        tap.true("host's" not in tap.good("ps", "--socket", d.path).stdout, "on the host nothing is said")


# Each verb's exit status, and what it prints.
VERBS = """
import json, os, shutil, subprocess, sys
said = []
for words in ("doctor --json", "run --online --print-env", "run --online -- /bin/true", "run --offline -- /bin/true", "policy fair"):
    done = subprocess.run([sys.argv[1], *words.split()], capture_output=True, text=True)
    said.append((done.returncode, done.stdout, done.stderr))
shutil.copy(sys.argv[1], "/tmp/alone")
os.environ.pop("LD_PRELOAD", None)
print(json.dumps([*said, subprocess.run(["/tmp/alone", "run", "--print-env"], capture_output=True, text=True).stdout]))
"""


def verbs_in(folder, *before):
    """What they say in a container."""
    with container(folder, named(folder), "/usr/bin/python3", "-c", VERBS, tap.PROGRAM, before=before) as process:
        out, errors = process.communicate(timeout=60)
        tap.same(process.returncode, 0, errors)
        return json.loads(out)


def checks(said):
    doctor = json.loads(said)
    for wrong in ("usermod", "groupadd", "systemctl"):
        tap.true(wrong not in doctor["advice"], doctor["advice"])
    return {check["what"]: (check["state"], check["detail"]) for check in doctor["checks"]}, doctor["advice"]


@tap.test("in a container with a class doctor, run and policy say which one it has, and advise nothing that is the host's")
def _(folder):
    agent = "/usr/lib/gpreempt/libgpreempt-agent.so"
    with with_podman(folder), with_doors(folder):
        for name, other in (("online", "offline"), ("offline", "online")):
            doctor, printed, *ran, policy, alone = verbs_in(folder, *words(folder, name))
            found, advice = checks(doctor[1])
            tap.true(found["class"][1].startswith(f"{name}, by the socket that was given to this container"), found["class"])
            tap.true(found["rights"][0] == "own" and "queues of this container" in found["rights"][1], found["rights"])
            tap.same(found["agent"], ("yes", f"{agent}, by LD_PRELOAD"))
            tap.true("start them as they are" in advice and "gpreempt run" not in advice, advice)
            tap.true(printed[0] == 0 and f"export LD_PRELOAD={agent}\n" in printed[1], printed)
            remark = f"gpreempt: gpreemptd will take it for {name}: that is what this container was given\n"
            tap.same({said: remark if said == other else "" for said in CLASSES}, dict(zip(("online", "offline"), (one[2] for one in ran))), name)
            tap.same(printed[2], ran[0][2], "--print-env")
            tap.same(alone, f"export LD_PRELOAD={agent}\n", "without LD_PRELOAD, in an image without an agent")
            tap.true(policy[0] == tap.FAILED and policy[2].endswith("may change a policy: this is a container: do it on the host\n"), policy)


@tap.test("a container's root that comes by everybody's socket hears that it is none to gpreemptd, and who can help")
def _(folder):
    with with_podman(folder):
        with_places(folder)
        with with_doors(folder) as d, gpu(folder, socket=d.path):
            before = "-v", f"{d.path}:/run/daemon.sock", "-e", "GPREEMPT_SOCKET=/run/daemon.sock", "-v", f"{folder}/gpu:/run/gpu"
            doctor, _printed, online, offline, policy, _alone = verbs_in(folder, *before)
            found, advice = checks(doctor[1])
            tap.true("a container's root and groups have no rights" in found["rights"][1] and "class" not in found, found)
            tap.true("To be online in a container: root on the host" in advice, advice)
            tap.true("a container's own word does not count" in online[2] and offline[2] == "", f"{online} {offline}")
            tap.true(policy[2].endswith("this is a container: do it on the host\n"), policy)
            with container(folder, named(folder), *sim_client("boast", "--online", *SERVE), before=before) as process:
                until_clients(d, {"boast": ("offline", "--online (GPREEMPT_CLASS) refused: a container's root and groups do not count")}, process)
                tap.true("takes it for offline: --online (GPREEMPT_CLASS) refused: " in next_line(process.stderr), "what it says")


def stops_and_runs(d, process, folder):
    """Its one queue is offline by the socket, and goes off the GPU and back."""
    tool = d.tool()
    until(lambda: tool.queues() or process.poll() is not None, "its queue is listed", 40)
    tap.same(process.poll(), None, "its end")
    [queue] = tool.queues()
    tap.same((queue["class"], queue["rule"]), (OFFLINE, "socket offline"))
    tap.same(tool.hold([queue["queue"]]).statuses(), [0], "stopped")
    tap.same(last_call(f"{folder}/out"), "update 0 0")
    tap.same(tool.release([queue["queue"]]).statuses(), [0], "resumed")
    tap.same(last_call(f"{folder}/out"), "update 0 100")


def stop_and_resume(folder, rootfs):
    """A Python program with the mounted agent in it, by one gpreemptd and by the next."""
    os.makedirs(f"{folder}/out")
    inner = next(word for word in words(folder, "offline") if word.startswith("LD_PRELOAD="))
    variables = [f"{inner}:/double.so", f"GPREEMPT_KFD={DRIVER}", "KFD_DOUBLE_LOG=/out/log"]
    before = [*words(folder, "offline"), "-v", f"{folder}/out:/out", "-v", f"{DOUBLE}:/double.so:ro"]
    before += [word for variable in variables for word in ("-e", variable)]
    with contextlib.ExitStack() as stack:
        for options in ((), ("--old-kernel",)):
            with with_doors(folder, *options) as d:
                if not os.listdir(f"{folder}/out"):
                    process = stack.enter_context(container(folder, "agent", *python("create()\ntime.sleep(200)"), before=before, rootfs=rootfs))
                stops_and_runs(d, process, folder)


@tap.test("a program in a container is stopped and resumed by the agent that was mounted into it, and comes again to the next gpreemptd")
def _(folder):
    with with_podman(folder):
        stop_and_resume(folder, "/:O")


@tap.test("the same in a container of Debian 11, with the agent of this machine")
def _(folder):
    with with_podman(folder):
        tool = os.path.join(tap.SOURCE, "tools", "root.sh")
        if not os.path.exists(tool):
            raise tap.Skip("tools/root.sh is not here")
        done = tap.run("bullseye", f"{folder}/old", "python3", program=tool, timeout=270)
        if done.returncode == 77:
            raise tap.Skip(done.stderr.strip())
        tap.same(done.returncode, 0, f"root.sh: {done.stderr[-300:]}")
        stop_and_resume(folder, f"{folder}/old")


@tap.test("by --device and the file that cdi writes a container is of that class")
def _(folder):
    with with_podman(folder):
        os.makedirs(f"{folder}/cdi")
        tap.good("cdi", "--out", f"{folder}/cdi/gpreempt.json", "--class-sockets", f"{folder}/class")
        os.makedirs("/run/cdi", exist_ok=True)  # where runtimes look; what is there stays as it is
        subprocess.run(["mount", "--bind", f"{folder}/cdi", "/run/cdi"], check=True)
        with with_doors(folder) as d, gpu(folder, socket=d.path):
            for name in CLASSES:
                before = "--device", f"gpreempt.dev/class={name}", "-v", f"{folder}/gpu:/run/gpu"
                with container(folder, name, *sim_client(name, "--offline", *TRAIN), before=before) as process:
                    until_clients(d, {name: (name, f"socket {name}")}, process)
                until_clients(d, {})


def small_root(folder, *programs, owner=0):
    """Those programs with their libraries."""
    root = f"{folder}/small"
    for path in ("run/gpreempt", "usr/lib/gpreempt", "proc", "dev", "sys", "tmp", "etc"):
        os.makedirs(f"{root}/{path}")
    for program in programs:
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for file in (program, *(word for word in listed.split() if word.startswith("/")), *LOADED):
            os.makedirs(os.path.dirname(root + file), exist_ok=True)
            shutil.copy(file, root + file)
    for folder_, _, files in os.walk(root):
        for name in ("", *files):
            os.chown(os.path.join(folder_, name), owner, owner)
    return root


@tap.test("in a user namespace, where root outside has no number, a container finds gpreemptd and is what was mounted")
def _(folder):
    with with_podman(folder):
        os.chmod(folder, 0o755)
        root = small_root(folder, tap.PROGRAM, "/bin/sh", owner=OTHERS)
        program = f"{tap.PROGRAM} sim-client --gpu /tmp/gpu/sock --name remapped --offline --work train"
        both = f"{tap.PROGRAM} sim-gpu --socket /tmp/gpu/sock & until {program}; do :; done"  # not before the GPU listens
        before = (*words(folder, "online"), "--uidmap", f"0:{OTHERS}:1000", "--tmpfs", "/tmp/gpu")
        with with_doors(folder) as d, container(folder, "remapped", "/bin/sh", "-c", both, rootfs=root, before=before) as process:
            until_clients(d, {"remapped": ("online", "socket online")}, process)
            [uid] = (c["uid"] for c in json.loads(tap.good("ps", "--json", "--socket", d.path).stdout)["clients"])
            tap.same(uid, OTHERS, "its uid, as the host has it")


INTRUDER = """
import json, os, socket, struct, sys, time
sys.path.insert(0, "/tests")
from protocol import *
PATH = "/run/gpreempt/gpreemptd.sock"
said = {}

def refused(what, *args):
    try:
        what(*args)
    except OSError as wrong:
        return wrong.errno
    return 0

said["folder"] = [refused(os.unlink, PATH), refused(open, PATH + "2", "w"), refused(os.open, "/run/gpreempt", os.O_TMPFILE | os.O_RDWR)]
said["lies there"] = os.listdir("/run/gpreempt")
os.getpid = lambda: int(sys.argv[1])  # what HELLO says
agent = Agent(PATH, 2, name="intruder", tag="ONLINE_AI", seen=ONLINE)
tool = Tool(PATH)
said["rights"] = tool.rights
said["hold"] = tool.hold([int(sys.argv[2])]).statuses()
tool.send(POLICY, struct.pack("<I32s", ALL_DEVICES, b"fifo"))
said["policy"] = tool.error()[0]
peers = []
for i in range(300):
    try:
        peers.append(Tool(PATH))
    except Exception:
        pass
said["places"] = 0 < len(peers) <= 128
print(json.dumps(said), flush=True)
time.sleep(100)
"""


SLY = """
import json, struct, sys
sys.path.insert(0, "/tests")
from protocol import *

def come(path):
    peer = Peer(path)
    peer.greet(TOOL)
    kind, _, body = peer.receive()
    return 0 if kind == WELCOME else struct.unpack_from("<i", body)[0]
print(json.dumps([come("/run/gpreempt/gpreemptd.sock"), come("/proc/1/root/run/gpreempt/gpreemptd.sock")]))
"""


@tap.test("a container that claims another's pid, acts on it, writes into the folder and floods gets nothing of it, and takes nothing from others")
def _(folder):
    with with_podman(folder):
        with with_doors(folder) as d:
            agent = d.agent()
            [victim] = d.tool().handles(os.getpid())
            tests = os.path.join(os.path.abspath(tap.SOURCE), "tests")
            before = (*words(folder, "offline"), "-v", f"{tests}:/tests:ro")
            with container(folder, "intruder", "/usr/bin/python3", "-c", INTRUDER, str(os.getpid()), str(victim), before=before) as process:
                line = process.stdout.readline()
                tap.true(line, process.poll() is not None and process.stderr.read())
                tap.same(json.loads(line), {
                    "folder": [errno.EROFS] * 3, "lies there": ["gpreemptd.sock"], "rights": GIVEN_OFFLINE | IN_CONTAINER, "hold": [-errno.EPERM],
                    "policy": -errno.EPERM, "places": True})
                tap.same(told(d, os.getpid()), [(OFFLINE, "priority 7 < 10")], "of whom it claimed to be")
                theirs = [q for q in d.tool().queues() if q["name"] == "intruder"]
                tap.same([(q["class"], q["rule"], q["pid"] != os.getpid()) for q in theirs], [(OFFLINE, "socket offline", True)] * 2)
                with container(folder, "other", tap.PROGRAM, "ps", "--json", before=words(folder, "online")) as other:
                    out, errors = other.communicate(timeout=60)
                    tap.same(other.returncode, 0, f"another container: {errors}")
                    tap.true('"intruder"' in out, out)
            agent.close()


@tap.test("by /proc a user's container gives its class to no process of that user outside, nor to another container that sees it")
def _(folder):
    with with_podman(folder):
        with with_doors(folder) as d:
            os.chmod(folder, 0o755)
            user = "-u", f"{ANNA}:{ANNA}"
            with container(folder, "server", "/bin/sh", "-c", "echo up; exec sleep 100", before=(*user, *words(folder, "online"))) as server:
                tap.same(server.stdout.readline(), "up\n", "the container")
                done = subprocess.run(podman(folder, "inspect", "server", "--format", "{{.State.Pid}}"), capture_output=True, text=True, check=True)
                path = f"/proc/{int(done.stdout)}/root/run/gpreempt/gpreemptd.sock"
                child = AsUser(ANNA, lambda: tap.same(turned_away(path), -errno.EPERM, "from outside"))
                child.end()
                tests = os.path.join(os.path.abspath(tap.SOURCE), "tests")
                before = (*user, *words(folder, "offline"), "-v", f"{tests}:/tests:ro", "--pid", "container:server")
                with container(folder, "sly", "/usr/bin/python3", "-c", SLY, before=before) as sly:
                    out, errors = sly.communicate(timeout=60)
                    tap.same(json.loads(out or "null"), [0, -errno.EPERM], f"by its own socket, and by the other's: {errors}")


@tap.test("a program of musl runs in a container with the words as it does without")
def _(folder):
    with with_podman(folder):
        program = musl_program(folder)
        root = small_root(folder)
        loader = os.path.realpath("/lib/ld-musl-x86_64.so.1")
        os.makedirs(f"{root}/lib", exist_ok=True)
        shutil.copy(loader, f"{root}/lib/ld-musl-x86_64.so.1")
        shutil.copy(program, f"{root}/program")
        with with_doors(folder), container(folder, "musl", "/program", rootfs=root, before=words(folder, "offline")) as process:
            out, errors = process.communicate(timeout=60)
            tap.same((process.returncode, out, errors), (3, "-1 25\n4\n", ""))


CLONE_NEWUSER, CLONE_NEWPID = 0x10000000, 0x20000000
PR_SET_DUMPABLE = 4
OPEN_TREE, MOVE_MOUNT = 428, 429  # Linux 5.2
AT_FDCWD, OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH, MS_BIND, MNT_DETACH = -100, 1, 4, 0x1000, 2


def need_call(r):
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r


def in_container(function, *args):
    """In a child with namespaces of its own for pids and mounts, as root makes them."""
    def outer():
        need_call(libc.unshare(CLONE_NEWPID | CLONE_NEWNS))
        AsUser(0, function, *args).end()

    AsUser(0, outer).end()


def own_user_namespace():
    """As uid 0 in a container makes it, without any rights."""
    need_call(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))
    tap.write("/proc/self/uid_map", "0 0 1")


@tap.test("a container that makes a user namespace, and has another's class mounted in it with that one's help, is turned away")
def _(folder):
    need_root()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def server():
        need_call(libc.mount(f"{folder}/class/online".encode(), b"/run/gpreempt", None, MS_BIND, None))
        Tool(PLACE).close()
        own_user_namespace()
        socket.send_fds(ours, [b"x"], [need_call(libc.syscall(OPEN_TREE, AT_FDCWD, b"/run/gpreempt", OPEN_TREE_CLONE))])

    def other():
        own_user_namespace()
        mount = socket.recv_fds(theirs, 1, 1)[1][0]
        need_call(libc.syscall(MOVE_MOUNT, mount, b"", AT_FDCWD, b"/run/gpreempt", MOVE_MOUNT_F_EMPTY_PATH))
        tap.same(turned_away(PLACE), -errno.EPERM)

    own_mounts()
    with with_doors(folder):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        os.mkdir("/run/gpreempt")
        in_container(server)
        in_container(other)


@tap.test("who has the folder of a class hidden at its place, or another one of the same name there, is turned away")
def _(folder):
    need_root()
    own_mounts()

    def bind(path):
        need_call(libc.mount(path.encode(), b"/run/gpreempt", None, MS_BIND, None))

    def server():
        bind(f"{folder}/class/online")
        os.chdir("/run/gpreempt")
        said = [turned_away("gpreemptd.sock")]
        for other in ("/mnt", f"{folder}/class/offline", same):
            bind(other)
            said.append(turned_away("gpreemptd.sock"))
            need_call(libc.umount2(b"/run/gpreempt", MNT_DETACH))
        bind(f"{folder}/class/online")
        tap.same([*said, turned_away("gpreemptd.sock")], [0, *[-errno.EPERM] * 3, 0])

    with with_doors(folder):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=True)
        inner = f"{folder}/class/online"
        [mount] = [line.split() for line in tap.read("/proc/self/mountinfo").splitlines() if line.split()[4] == mount_point(inner)][-1:]
        same = f"/mnt{mount[3].rstrip('/')}{inner[len(mount[4].rstrip('/')):]}"
        os.makedirs(same)
        os.mkdir("/run/gpreempt")
        in_container(server)


def mount_point(path):
    while not os.path.ismount(path):
        path = os.path.dirname(path)
    return path


def seconds_to_come(path):
    """The usual time, of eleven, until gpreemptd has let one in."""
    times = []
    for _ in range(11):
        begun = time.monotonic()
        Tool(path).close()
        times.append(time.monotonic() - begun)
    return sorted(times)[5]


@tap.test("a container that floods a class's socket, and has so much mounted that each takes long, has a turn like everybody")
def _(folder):
    need_root()
    own_mounts()
    usual, says = os.pipe()

    def container_with_mounts():
        for _ in range(400):
            need_call(libc.mount(b"tmpfs", f"{folder}/many".encode(), b"tmpfs", 0, None))
        need_call(libc.mount(f"{folder}/class/online".encode(), b"/run/gpreempt", None, MS_BIND, None))
        os.write(says, struct.pack("<d", seconds_to_come(PLACE)))
        while True:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
                one.connect(PLACE)

    with with_doors(folder) as d:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        os.mkdir("/run/gpreempt")
        os.mkdir(f"{folder}/many")
        flood = AsUser(0, in_container, container_with_mounts)
        os.close(says)
        alone = struct.unpack("<d", os.read(usual, 8))[0]
        beside = min(seconds_to_come(d.path) for _ in range(3))  # others may have taken the processor
        os.kill(flood.pid, signal.SIGKILL)
        tap.true(beside < 10 * alone, f"{beside:.3f} s for another, where one of the flood takes {alone:.4f} s")


# Containers that run already


IDLE = "/bin/sleep", "1000"


def named(folder):
    """As no container of another test is."""
    return os.path.basename(folder)


def first_process(folder):
    """Of the container, once it runs."""
    def pid():
        said = subprocess.run(podman(folder, "inspect", "--format", "{{.State.Pid}}", named(folder)), capture_output=True, text=True, check=False)
        return int(said.stdout) if said.returncode == 0 and said.stdout.strip() else 0

    until(pid, "it runs", 40)
    return pid()


def attach(d, *args):
    """The line that it says, as this test's Podman has it."""
    line = tap.good("attach", *args, "--socket", d.path).stdout.splitlines()[-1].split()
    tap.same((line[:2], line[-1]), (["podman", "exec"], "COMMAND"))
    return podman(d.folder, *line[1:-1])


def start(stack, *command):
    process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                                   preexec_fn=tap.die_with_parent))
    stack.callback(process.kill)
    return process


def refusal(d, *args):
    done = tap.run("attach", *args, "--socket", d.path)
    tap.same((done.returncode, done.stdout), (tap.FAILED, ""), done.stderr)
    return done.stderr


@tap.test("a program that is started by the line of attach in a container that ran before is stopped by the agent, and is what it was after a restart of gpreemptd")
def _(folder):
    need_preload()
    with with_podman(folder), contextlib.ExitStack() as stack:
        os.makedirs(f"{folder}/out")
        mounts = "-v", f"{folder}/out:/out", "-v", f"{DOUBLE}:/double.so:ro"
        stack.enter_context(container(folder, named(folder), *IDLE, before=mounts))
        first_process(folder)
        for options in ((), ("--old-kernel",), ()):
            with with_doors(folder, *options) as d:
                if not os.listdir(f"{folder}/out"):
                    line = [word.replace(".so", ".so:/double.so") for word in attach(d, named(folder), "--offline")]
                    line[-1:-1] = ["-e", f"GPREEMPT_KFD={DRIVER}", "-e", "KFD_DOUBLE_LOG=/out/log"]
                    process = start(stack, *line, *python("create()\ntime.sleep(200)"))
                stops_and_runs(d, process, folder)


@tap.test("attach once more changes the class of those who come then, of nobody before; it ends with the container")
def _(folder):
    with with_podman(folder), contextlib.ExitStack() as stack, with_doors(folder) as d, gpu(folder, socket=d.path):
        with container(folder, named(folder), *IDLE, before=("-v", f"{folder}/gpu:/run/gpu")):
            pid = first_process(folder)
            first = attach(d, named(folder), "--online")
            tap.same(attach(d, "--pid", str(pid), "--online"), first, "the same again")
            for name in ("online", "offline"):
                line = attach(d, named(folder), f"--{name}")
                process = start(stack, *line, *sim_client(name, "--offline", *TRAIN))
                until(lambda: name in clients(d) or process.poll() is not None, f"{name} is there", 40)
                tap.same(process.poll(), None, "its end")
            tap.same(clients(d), {name: (name, f"socket {name}") for name in CLASSES})
            tap.same(tap.read(folder, "gpreemptd.sock.attached").split()[::2], [str(pid), "offline"], "what the next one finds")
            listed = json.loads(tap.good("attach", "--list", "--json", "--socket", d.path).stdout)["attached"]
            tap.same([(one["pid"], one["class"]) for one in listed], [(pid, "offline")], "listed")
            tap.same(tap.good("attach", "--list", "--socket", d.path).stdout.splitlines()[1].split()[:2], [str(pid), "offline"], "as a table")
        until(lambda: tap.read(folder, "gpreemptd.sock.attached") == "", "it is attached no more", 40)
        tap.same(tap.good("attach", "--list", "--socket", d.path).stdout, "nothing is attached\n", "listed no more")
        tap.true(f'no container that runs is called "{named(folder)}"' in refusal(d, named(folder), "--offline"), "by its name")
        tap.true(f"there is no process {pid}" in refusal(d, "--pid", str(pid), "--offline"), "by its pid")
        tap.same(refused(d.tool(), pid), -errno.ESRCH, "as gpreemptd says")


def refused(tool, pid, begun=0):
    tool.send(ATTACH, struct.pack("<IIQ", pid, OFFLINE, begun))
    return tool.error()[0]


@tap.test("nobody but root on the host attaches, a process of the host and one with another start are refused, and so is a container with a class")
def _(folder):
    need_root()
    os.chmod(folder, 0o755)

    def anna(d):
        tap.same(refused(d.tool(), os.getppid()), -errno.EPERM, "a user")
        tap.true("only root" in tap.run("attach", "--pid", str(os.getppid()), "--online", "--socket", d.path).stderr, "who runs the tool")

    with with_podman(folder), with_doors(folder) as d:
        AsUser(ANNA, anna, d).end()
        tap.same(refused(Tool(door(d, "online")), os.getpid()), -errno.EPERM, "root, by a class's socket")
        tap.same(refused(d.tool(), os.getpid()), -errno.EXDEV, "the host's")
        tap.true("is in no container" in refusal(d, "--pid", str(os.getpid()), "--online"), "the host's, by the tool")
        with container(folder, named(folder), *IDLE, before=words(folder, "online")):
            pid = first_process(folder)
            tap.same(refused(d.tool(), pid, begun=1), -errno.ESRCH, "another start")
            tap.true("listens in it already" in refusal(d, named(folder), "--offline"), "that has a class")
        with container(folder, named(folder), *IDLE):
            d.tool().attach(first_process(folder), ONLINE)


@tap.test("a container of a user's own user namespace is not attached, and nothing is bound in it: nobody from there would be let in")
def _(folder):
    need_root()
    os.chmod(folder, 0o755)
    os.mkdir(f"{folder}/home")
    os.chown(f"{folder}/home", ANNA, ANNA)
    is_there, there = os.pipe()

    def anna():
        need_call(libc.prctl(PR_SET_DUMPABLE, 1))  # else its files in /proc are root's
        need_call(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))
        tap.write("/proc/self/uid_map", f"0 {ANNA} 1")
        tap.write("/proc/self/setgroups", "deny")
        tap.write("/proc/self/gid_map", f"0 {ANNA} 1")
        os.chroot(f"{folder}/home")
        os.write(there, b"x")
        AsUser.wait()

    with daemon(folder) as d:
        child = AsUser(ANNA, anna)
        os.close(there)
        tap.same(os.read(is_there, 1), b"x", "it has its root folder")
        tap.same(refused(d.tool(), child.pid), -errno.EPERM)
        tap.true("everybody's socket" in refusal(d, "--pid", str(child.pid), "--online"), "by the tool")
        tap.true(not os.path.exists(f"{folder}/home/run"), "what is in it")
        child.go()
        child.end()


@contextlib.contextmanager
def living_in(root):
    """A process that has this root folder."""
    os.makedirs(root, exist_ok=True)
    pid = os.fork()
    if pid == 0:
        tap.die_with_parent()
        os.chroot(root)
        signal.pause()
    try:
        until(lambda: os.readlink(f"/proc/{pid}/root") == root, "it has its root folder")
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def attached(folder):
    """pid and class of each."""
    words_ = tap.read(folder, "gpreemptd.sock.attached").split()
    return list(zip(words_[::3], words_[2::3]))


def flips(*roots):
    """A child that has one root folder after the other, without end."""
    pid = os.fork()
    if pid == 0:
        tap.die_with_parent()
        folders = [os.open(root, os.O_PATH) for root in roots]
        while True:
            for one in folders:
                os.fchdir(one)
                os.chroot(".")
    until(lambda: os.readlink(f"/proc/{pid}/root") in roots, "it has another root folder")
    return pid


@tap.test("of a process that changes its root folder all the time those are let in who have the one with the socket")
def _(folder):
    need_root()
    own_mounts()
    roots = [f"{folder}/one", f"{folder}/two"]
    places = [f"{root}{PLACE}" for root in roots]
    for root in roots:
        os.makedirs(f"{root}/proc")  # for sanitizers
        subprocess.run(["mount", "--rbind", "/proc", f"{root}/proc"], check=True)

    def comes(root, bound):
        os.chdir(os.path.dirname(bound))
        os.chroot(root)
        os.setresgid(ANNA, ANNA, ANNA)
        os.setresuid(ANNA, ANNA, ANNA)
        tap.same(turned_away(os.path.basename(bound)), 0 if bound.startswith(root) else -errno.EPERM, root)

    with daemon(folder, umask=0o077) as d:
        for _ in range(10):
            pid = flips(*roots)
            d.tool().attach(pid, ONLINE)
            [bound] = (place for place in places if os.path.exists(place))
            for root in roots:
                AsUser(0, comes, root, bound).end()
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.remove(bound)


@tap.test("a list of what is attached that another may have written is not believed, and one that never ends makes nobody wait")
def _(folder):
    need_root()
    path = f"{folder}/gpreemptd.sock.attached"
    changes = {"as it is": None, "for everybody to write": lambda: os.chmod(path, 0o666), "a user's": lambda: os.chown(path, ANNA, ANNA),
               "a link": lambda: (os.rename(path, f"{folder}/list"), os.symlink("list", path)),
               "a pipe": lambda: (os.remove(path), os.mkfifo(path))}
    with living_in(f"{folder}/one") as pid:
        with daemon(folder) as d:
            d.tool().attach(pid, ONLINE)
        listed = tap.read(path)
        for what, change in changes.items():
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
            os.chmod(tap.write(path, listed), 0o600)
            if change:
                change()
            before = d.log()
            with daemon(folder) as d:
                until(lambda: "listening on" in d.log()[len(before):], "it listens")
                if change:
                    d.tool().attach(pid, OFFLINE)
                    tap.same(attached(folder), [(str(pid), "offline")], what)
                else:
                    until(lambda: "is attached" in d.log()[len(before):], "it is attached again")
                tap.same(d.log()[len(before):].count("its container is online"), 0 if change else 1, what)


@tap.test("64 containers can be attached, and another one once one of them has ended, also where there are no pidfds")
def _(folder):
    need_root()
    for options in ((), ("--old-kernel",)):
        with daemon(folder, *options) as d, contextlib.ExitStack() as stack:
            last = stack.enter_context(living_in(f"{folder}/last"))
            first = contextlib.ExitStack()
            d.tool().attach(first.enter_context(living_in(f"{folder}/first")), ONLINE)
            for i in range(63):
                d.tool().attach(stack.enter_context(living_in(f"{folder}/{i}")), ONLINE)
            tap.same(refused(d.tool(), last), -errno.ENOSPC, "the 65th")
            first.close()
            until(lambda: len(attached(folder)) == 63, "one has ended")
            d.tool().attach(last, ONLINE)


@tap.test("root that is not on the host attaches nobody by everybody's socket, and neither does a member of group gpreempt")
def _(folder):
    need_root()
    os.chmod(folder, 0o755)

    def member(d, pid):
        tool = d.tool()
        tap.same((tool.rights, refused(tool, pid)), (1, -errno.EPERM))

    def elsewhere(pid):
        os.chdir(folder)
        os.chroot(f"{folder}/other")
        tap.same(refused(Tool("gpreemptd.sock"), pid), -errno.EPERM)

    os.mkdir(f"{folder}/other")
    with daemon(folder, under=with_group(folder, 23456)) as d, living_in(f"{folder}/one") as pid:
        AsUser(0, elsewhere, pid).end()
        AsUser(ANNA, member, d, pid, groups=(23456,)).end()


@tap.test("what has the socket's name in a container and is no socket is left alone, and a socket that nobody listens on is replaced")
def _(folder):
    need_root()
    place = f"{folder}/one{PLACE}"
    os.makedirs(os.path.dirname(place))
    with daemon(folder) as d, living_in(f"{folder}/one") as pid:
        tap.write(place, "theirs")
        tap.same((refused(d.tool(), pid), tap.read(place)), (-errno.EEXIST, "theirs"))
        os.remove(place)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as theirs:
            theirs.bind(place)
            theirs.listen()
            tap.same(refused(d.tool(), pid), -errno.EADDRINUSE, "while somebody listens")
        d.tool().attach(pid, ONLINE)


@tap.test("who asked for a container is answered once: at its end, if that comes first, and not again then")
def _(folder):
    own_mounts()
    with daemon(folder) as d:
        with living_in(f"{folder}/one") as pid:
            tool = d.tool()
            tool.attach(pid, ONLINE)
        until(lambda: not attached(folder), "it has ended")
        serial = tool.send(LIST)
        tap.same(tool.receive()[1], serial, "what comes next is the answer to the next question")
        with silent(folder, "run") as pid:
            tool.send(ATTACH, struct.pack("<IIQ", pid, OFFLINE, 0))
            tap.same(refused(d.tool(), pid), -errno.EBUSY, "who asks meanwhile")
            os.kill(pid, signal.SIGKILL)
            tap.same(tool.error()[0], -errno.ESRCH, "its end")


@tap.test("where the list of what is attached cannot be written there is none: the next gpreemptd has no class that was changed")
def _(folder):
    need_root()
    own_mounts()
    os.mkdir(f"{folder}/small")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", f"{folder}/small"], check=True)
    with living_in(f"{folder}/one") as pid, daemon(f"{folder}/small") as d:
        d.tool().attach(pid, ONLINE)
        with contextlib.suppress(OSError), open(f"{folder}/small/full", "wb", 0) as file:
            while True:
                file.write(b"x" * 4096)
        d.tool().attach(pid, OFFLINE)
        tap.same([name for name in os.listdir(f"{folder}/small") if "attached" in name], [], "lists")


@tap.test("through links in a container nothing is written outside of it, also with the host's pids")
def _(folder):
    with with_podman(folder), with_doors(folder) as d:
        os.makedirs(f"{folder}/outside")
        root = small_root(folder, "/bin/sleep")
        with container(folder, named(folder), *IDLE, rootfs=root, before=("--pid", "host")):
            pid = first_process(folder)
            for target in (f"/proc/1/root{folder}/outside", f"{folder}/outside", f"..{folder}/outside"):
                for path in ("run", "usr/lib"):
                    os.rename(f"{root}/{path}", f"{root}/aside-{os.path.basename(path)}")
                    os.symlink(target, f"{root}/{path}")
                said = refusal(d, "--pid", str(pid), "--online")
                tap.true("symbolic links are not followed" in said, said)
                tap.same(refused(d.tool(), pid), -errno.ENOTDIR, target)
                for path in ("run", "usr/lib"):
                    os.remove(f"{root}/{path}")
                    os.rename(f"{root}/aside-{os.path.basename(path)}", f"{root}/{path}")
            os.rename(f"{root}/usr/lib", f"{root}/aside-lib")
            os.symlink(f"/proc/1/root{folder}/outside", f"{root}/usr/lib")
            tap.true("/run/gpreempt/libgpreempt-agent.so" in " ".join(attach(d, "--pid", str(pid), "--online")), "another folder for the agent")
            tap.same(os.listdir(f"{folder}/outside"), [], "what is outside")


@tap.test("attach says what is missing, and that no gpreemptd runs")
def _(folder):
    need_root()
    for args in ((), ("trainer",), ("--online",), ("trainer", "--online", "--offline"), ("trainer", "--pid", "1", "--online"), ("--pid", "0", "--online"),
                 ("--list", "trainer"), ("--list", "--online"), ("--list", "--pid", "1")):
        tap.same(tap.run("attach", *args).returncode, tap.BAD_INPUT, args)
    tap.same(tap.run("attach", "--list", "--socket", f"{folder}/none").returncode, tap.FAILED, "the list of none")
    said = tap.run("attach", "--pid", str(os.getpid()), "--online", "--socket", f"{folder}/none")
    tap.true(said.returncode == tap.FAILED and "start it" in said.stderr, said.stderr)


GUEST = """
import os, sys
sys.path.insert(0, "/tests")
import protocol  # and what it needs, while it is there
os.chroot("/proc/1/root")
peer = protocol.Peer("/run/gpreempt/gpreemptd.sock")
peer.greet(protocol.TOOL)
kind, _, body = peer.receive()
print(0 if kind == protocol.WELCOME else int.from_bytes(body[:4], "little", signed=True))
"""


@tap.test("a container that sees the processes of an attached one does not come as that one, also with its root folder")
def _(folder):
    with with_podman(folder), with_doors(folder) as d:
        tests = os.path.join(os.path.abspath(tap.SOURCE), "tests")
        with container(folder, named(folder), *IDLE):
            first_process(folder)
            attach(d, named(folder), "--online")
            before = "-v", f"{tests}:/tests:ro", "--pid", f"container:{named(folder)}"
            with container(folder, "guest", "/usr/bin/python3", "-c", GUEST, before=before) as guest:
                out, errors = guest.communicate(timeout=60)
                tap.same(out, f"{-errno.EPERM}\n", errors)


class Opened:
    """Who opens what in a folder, from now on: inotify(7)."""

    IN_OPEN = 0x20

    def __init__(self, folder):
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0 or libc.inotify_add_watch(self.fd, folder.encode(), self.IN_OPEN) < 0:
            raise tap.Skip("no inotify here")

    def names(self):
        """Those that were, since this was last asked."""
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return set()
        found = set()
        while data:
            size = 16 + struct.unpack_from("<I", data, 12)[0]
            found.add(data[16:size].rstrip(b"\0").decode())
            data = data[size:]
        return found


@tap.test("attach opens nothing in a container but an agent as large as ours: no device, and no file without end")
def _(folder):
    with with_podman(folder), with_doors(folder) as d:
        root = small_root(folder, "/bin/sleep")
        path, name = os.path.split(f"{root}/usr/lib/gpreempt/{os.path.basename(AGENT)}")

        def endless():
            with open(f"{path}/{name}", "w", encoding="utf-8") as file:
                file.truncate(1 << 42)

        with container(folder, named(folder), *IDLE, rootfs=root):
            pid = str(first_process(folder))
            opened = Opened(path)
            for make in (lambda: os.mknod(f"{path}/{name}", 0o20666, os.makedev(1, 3)), lambda: os.mkfifo(f"{path}/{name}"), endless):
                make()
                opened.names()
                tap.good("attach", "--pid", pid, "--online", "--socket", d.path)
                tap.true(name not in opened.names(), "it was opened")
                tap.same(tap.read(f"{path}/{name}", mode="rb"), tap.read(AGENT, mode="rb"), "what is there then")
                os.remove(f"{path}/{name}")
            tap.good("attach", "--pid", pid, "--online", "--socket", d.path)
            opened.names()
            before = os.stat(f"{path}/{name}").st_ino
            tap.good("attach", "--pid", pid, "--online", "--socket", d.path)
            tap.true(name in opened.names(), "an equal one was not looked at")
            tap.same(os.stat(f"{path}/{name}").st_ino, before, "and left")


FUSE_GETATTR, FUSE_INIT = 3, 26  # include/uapi/linux/fuse.h, Linux 6.12
FOLDER = struct.pack("<6Q10I", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)  # its attributes


def be_folder(device):
    """What the kernel asks of a file system of one folder, without end."""
    while True:
        _, opcode, unique = struct.unpack_from("<IIQ", os.read(device, 1 << 18))
        body = {FUSE_INIT: struct.pack("<2I56x", 7, 31), FUSE_GETATTR: bytes(16) + FOLDER}.get(opcode)
        os.write(device, struct.pack("<IiQ", 16 + len(body or b""), 0 if body else -errno.ENOSYS, unique) + (body or b""))


def agent_in(root, d, pid, **more):
    """The file of the agent, after attach, and that nothing else was left where it tried to."""
    said = json.loads(tap.good("attach", "--pid", str(pid), "--online", "--json", "--socket", d.path, **more).stdout)
    path = next(word.partition("=")[2] for word in said["command"].split() if word.startswith("LD_PRELOAD="))
    tap.same(tap.read(root + path, mode="rb"), tap.read(AGENT, mode="rb"), path)
    left = [name for place in ("usr/lib/gpreempt", "run/gpreempt") for name in os.listdir(f"{root}/{place}") if ".new" in name]
    tap.same(left, [], "what is left")
    return path


@tap.test("the agent goes where programs can load it, in the place of whatever has its name, for everybody to read")
def _(folder):
    need_root()
    own_mounts()
    root, usr, run = f"{folder}/one", "/usr/lib/gpreempt/libgpreempt-agent.so", "/run/gpreempt/libgpreempt-agent.so"
    os.makedirs(f"{root}/usr")
    with daemon(folder) as d, living_in(root) as pid:
        os.umask(0o077)
        tap.same(agent_in(root, d, pid), usr)
        tap.same([os.stat(root + path).st_mode & 0o777 for path in (usr, os.path.dirname(usr))], [0o644, 0o755], "modes")
        tap.write(root + usr, bytes(os.path.getsize(AGENT)))
        tap.same(agent_in(root, d, pid), usr, "another of that size")
        os.rename(root + usr, f"{root}/aside")
        os.symlink("/aside", root + usr)
        tap.write(f"{root}{usr}.new", "what an attach that was killed left")
        tap.same((agent_in(root, d, pid), os.path.islink(root + usr)), (usr, False), "a link to an equal one")
        for options in ("noexec", "size=16k"):
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", f"{root}/usr"], check=True)
            tap.same(agent_in(root, d, pid), run, options)


@contextlib.contextmanager
def silent(folder, name):
    """A process with such a folder in its root folder, or as that, which does not answer any more."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise tap.Skip("no /dev/fuse")
    os.makedirs(f"{folder}/silent/{name}", exist_ok=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"silent", f"{folder}/silent/{name}".encode(), b"fuse", 0, options):
        raise tap.Skip(f"a FUSE file system cannot be mounted: {os.strerror(ctypes.get_errno())}")
    server = os.fork()
    if server == 0:
        tap.die_with_parent()
        be_folder(device)
    is_there, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        tap.die_with_parent()
        os.close(device)
        os.chroot(f"{folder}/silent")
        os.write(there, b"x")
        signal.pause()
    os.close(there)
    try:
        tap.same(os.read(is_there, 1), b"x", "it has its root folder")
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(device)


def ignore_alarms():
    """As whoever starts a program may have left it."""
    signal.signal(signal.SIGALRM, signal.SIG_IGN)


@tap.test("a container whose files do not answer is not attached, and gpreemptd serves others meanwhile")
def _(folder):
    own_mounts()
    with with_doors(folder, preexec_fn=ignore_alarms) as d, silent(folder, "run") as pid:
        tool = d.tool()
        tool.send(ATTACH, struct.pack("<IIQ", pid, OFFLINE, 0))
        agent = d.agent()
        tap.same(len(told(d, os.getpid())), 1, "another's queue, while it waits")
        status, said = tool.error()
        tap.same((status, "do not answer" in said), (-errno.ETIMEDOUT, True), said)
        children = f"/proc/{d.process.pid}/task/{d.process.pid}/children"
        until(lambda: not tap.read(children), "nobody goes on with it")
        agent.close()


@tap.test("attach does not wait for a container's files for ever, and says so")
def _(folder):
    own_mounts()
    for name in ("usr", ""):
        with with_doors(folder) as d, silent(folder, name) as pid:
            done = tap.run("attach", "--pid", str(pid), "--online", "--socket", d.path, timeout=40, preexec_fn=ignore_alarms)
            tap.same((done.returncode, done.stdout), (tap.FAILED, ""), done.stderr)
            tap.true("its files do not answer" in done.stderr, done.stderr)


@tap.test("in a user namespace a container that is attached finds gpreemptd, and its files are its own root's")
def _(folder):
    with with_podman(folder), contextlib.ExitStack() as stack:
        os.chmod(folder, 0o755)
        root = small_root(folder, tap.PROGRAM, "/bin/sh", "/bin/sleep", owner=OTHERS)
        program = f"{tap.PROGRAM} sim-client --gpu /tmp/gpu/sock --name remapped --offline --work train"
        both = f"{tap.PROGRAM} sim-gpu --socket /tmp/gpu/sock & until {program}; do :; done"
        before = ("--uidmap", f"0:{OTHERS}:1000", "--tmpfs", "/tmp/gpu")
        with with_doors(folder) as d, container(folder, named(folder), *IDLE, rootfs=root, before=before):
            first_process(folder)
            process = start(stack, *attach(d, named(folder), "--online"), "/bin/sh", "-c", both)
            until_clients(d, {"remapped": ("online", "socket online")}, process)
            made = "run/gpreempt/gpreemptd.sock", "usr/lib/gpreempt/libgpreempt-agent.so"
            before = [os.stat(f"{root}/{path}") for path in made]
            tap.same({owner for one in before for owner in (one.st_uid, one.st_gid)}, {OTHERS}, "owners")
            attach(d, named(folder), "--online")
            tap.same([os.stat(f"{root}/{path}").st_ino for path in made], [one.st_ino for one in before], "the same files again")


# docs/CONTAINERS.md, word for word: Podman is its Docker, a simulated client its IMAGE, a shell its systemd


DOCKER = """#!/bin/bash
verb=$1
shift
words=()
while [ $# -gt 0 ]; do
    case "$1 $2" in
    "--device /dev/"*) shift ;;
    "--name "*) name=$2; words+=("$1") ;;
    "IMAGE "*) words+=(-v {folder}/gpu:/run/gpu --rootfs /:O {client} --name "$name") ;;
    *) words+=("$1") ;;
    esac
    shift
done
exec {podman} "$verb" {plain} "${{words[@]}}"
"""
SYSTEMCTL = """#!/bin/bash
case "$*" in
"enable --now gpreemptd") ;;
"restart gpreemptd")
    kill $(cat {folder}/pid)
    while kill -0 $(cat {folder}/pid) 2>/dev/null; do sleep 0.1; done ;;
*) exit 1 ;;
esac
gpreemptd --config /dev/null --classes /dev/null </dev/null >/dev/null 2>>{folder}/log &
echo $! >{folder}/pid
while [ ! -S /run/gpreempt-class/offline/gpreemptd.sock ]; do sleep 0.1; done
"""


def steps():
    """Each command of root's, and what is printed then."""
    text = tap.read(tap.SOURCE, "docs", "CONTAINERS.md")
    for block in text.split("```")[1::2]:
        for part in block.split("\n# ")[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed


def write_programs(folder):
    os.makedirs(f"{folder}/bin")
    client = " ".join((tap.PROGRAM, "sim-client", "--gpu", "/run/gpu/sock", "--offline", *TRAIN))
    texts = {"docker": DOCKER.format(folder=folder, client=client, podman=" ".join(podman(folder)), plain=" ".join(PLAIN)),
             "systemctl": SYSTEMCTL.format(folder=folder)}
    for name, text in texts.items():
        os.chmod(tap.write(f"{folder}/bin/{name}", text), 0o755)
    return dict(os.environ, PATH=f"{folder}/bin:{os.path.abspath(tap.BUILD)}:{os.environ['PATH']}")


def hide(folder, *paths):
    """What is written there is the test's."""
    for path in paths:
        name = path.replace("/", "-")
        for part in ("upper", "work"):
            os.makedirs(f"{folder}/hidden{name}/{part}")
        options = f"lowerdir={path},upperdir={folder}/hidden{name}/upper,workdir={folder}/hidden{name}/work"
        subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", path], check=True)


def whys(env):
    said = subprocess.run(["gpreempt", "ps", "--json"], env=env, capture_output=True, text=True, check=True).stdout
    return {c["name"]: c["rule"] for c in json.loads(said)["clients"]}


@tap.test("who follows docs/CONTAINERS.md to the word has containers of the classes that it says, also after the restart")
def _(folder):
    want = {"server": "socket online", "trainer": "socket offline", "batch": "socket offline"}
    with with_podman(folder):
        env = write_programs(folder)
        hide(folder, "/etc")
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        done = []
        with gpu(folder):
            try:
                for command, printed in steps():
                    if command == "gpreempt ps":
                        until(lambda: whys(env) == want, f"clients after {done}", 40)
                    ran = subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True, check=False, timeout=100)
                    tap.same(ran.returncode, 0, f"{command}: {ran.stderr}")
                    tap.true(ran.stdout == printed or not printed, f"{command}: {ran.stdout}")
                    done.append(command.split()[0])
            finally:
                subprocess.run(podman(folder, "rm", "--all", "--force", "--time", "0"), capture_output=True, check=False, timeout=60)
                if os.path.exists(f"{folder}/pid"):
                    os.kill(int(tap.read(folder, "pid")), signal.SIGTERM)
        tap.same(done, ["systemctl", "gpreempt", "docker", "docker", "docker", "gpreempt", "systemctl", "gpreempt"], "steps")


# examples/compose.sh, with this machine's files in the place of an image's, and its network


PODMAN = """#!/bin/bash
verb=$1
shift
[ "$verb" != network ] || exit 0
words=()
if [ "$verb" = run ]; then
    words=({plain} --network host -v /usr:/usr:O -v /etc:/etc:ro)
    while [ $# -gt 0 ]; do
        case $1 in
        --net | --network-alias | -p) shift ;;
        *) words+=("$1") ;;
        esac
        shift
    done
fi
exec {podman} "$verb" "${{words[@]}}" "$@"
"""


def import_image(folder, name):
    """What every Debian has at its root, and nothing in it."""
    root = f"{folder}/image"
    for place in ("usr", "etc", "dev", "proc", "sys", "run", "tmp"):
        os.makedirs(f"{root}/{place}")
    for place in ("bin", "lib", "lib64", "sbin"):
        os.symlink(f"usr/{place}", f"{root}/{place}")
    made = subprocess.run(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(podman(folder, "import", "-", name), input=made, capture_output=True, check=True)


@tap.test("examples/compose.sh serves and trains in containers, each of the class that is mounted, training is stopped for requests, and nothing is left")
def _(folder):
    if not shutil.which("podman-compose"):
        raise tap.Skip("podman-compose is not there")
    with with_podman(folder):
        import_image(folder, "empty")
        plain = " ".join(word for word in PLAIN if word not in ("--network", "none"))
        os.makedirs(f"{folder}/bin")
        os.chmod(tap.write(f"{folder}/bin/podman", PODMAN.format(podman=" ".join([shutil.which("podman"), *podman(folder)[1:]]), plain=plain)), 0o755)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        build = os.path.abspath(tap.BUILD)
        env = dict(os.environ, PATH=f"{folder}/bin:{build}:{os.environ['PATH']}", TMPDIR=folder, COMPOSE="podman-compose", IMAGE="localhost/empty", PORT=port, GPREEMPT_AGENT=AGENT,
                   GPREEMPT_LIBRARY=f"{build}/libgpreempt.so.0", GPREEMPT_PACKAGE=f"{os.path.abspath(tap.SOURCE)}/python", GPREEMPT_PROGRAM=tap.PROGRAM)
        examples = os.path.join(os.path.abspath(tap.SOURCE), "examples")
        with open(f"{folder}/said", "w", encoding="utf-8") as to:  # Podman's own processes keep a pipe open
            done = subprocess.run([f"{examples}/sim.sh", f"{examples}/compose.sh", "sim"], env=env, stdin=subprocess.DEVNULL, stdout=to, stderr=to, timeout=100, check=False)
        said = tap.read(folder, "said")
        tap.same(done.returncode, 0, said)
        rows = {row[2]: (row[3], row[-2:]) for row in map(str.split, said.splitlines()) if row[-2:-1] == ["socket"]}
        tap.same(rows, {"train.py": ("offline", ["socket", "offline"]), "python3": ("online", ["socket", "online"])}, said)
        figures = {words[0]: words[1] for words in map(str.split, said.splitlines()) if len(words) == 2}
        tap.true(int(figures["hints"]) >= 20 and int(figures["preemptions"]) >= 20, said)
        tap.same(subprocess.run(podman(folder, "ps", "--all", "--quiet"), capture_output=True, text=True, check=True).stdout, "", "containers that are left")
        tap.same([name for name in os.listdir(folder) if name.startswith("tmp.")], [], "left behind")


signal.alarm(280)
tap.main(jobs=2)
