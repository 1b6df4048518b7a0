# SPDX-License-Identifier: MIT
"""Debian's own Slurm on one machine: munged, slurmctld and a slurmd for each of four nodes, with a simulated GPU and a gpreemptd each.

A node has a mount namespace, in which /run is its own, and a host name; so everything is where it is on a real one. What the tests with
Slurm share; not a test itself.
"""

import contextlib
import glob
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import tap
from gpreemptd import DAEMON, listens, until

NODES = ("n1", "n2", "n3", "n4")
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "unshare", "setpriv")
SHARE = os.path.join(tap.SOURCE, "share", "slurm")
PLUGIN = os.path.join(os.path.abspath(tap.BUILD), "gpreempt-slurm.so")
AGENT = os.path.join(os.path.abspath(tap.BUILD), "libgpreempt-agent.so")
EXAMPLE = os.path.join(os.path.abspath(tap.BUILD), "plugstack.conf")
USER = "nobody"
GPU = "/run/gpu/sock"  # of each node, as its jobs see it
SOON = 60.0  # s

CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock
CredType=cred/munge
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
KillWait=2
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_min_interval=1000,max_rpc_cnt=0
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/%n/spool
SlurmdPidFile={folder}/%n/slurmd.pid
SlurmdLogFile={folder}/%n/slurmd.log
PlugStackConfig={folder}/plugstack.conf
NodeName=n[1-4] NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=16 RealMemory=65536 Gres=gpu:{gpus},shard:8
Include {share}/gpreempt.conf
"""


def why_not():
    """Why there can be no cluster here, or nothing."""
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if os.getuid() != 0:
        return "only root can start slurmd"
    if missing:
        return f"there is no {missing[0]}"
    return "" if os.path.exists(PLUGIN) else "the plug-in was not built: there is no slurm/spank.h"


def free_ports(n):
    """So many in a row that nobody has"""
    for first in range(20000 + os.getpid() % 4000, 32000, n):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + n):
                    one = stack.enter_context(socket.socket())
                    one.bind(("127.0.0.1", port))
                return first
            except OSError:
                continue
    raise tap.Skip("no ports are free")


class Done:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


class Node:
    def __init__(self, cluster, name):
        self.cluster, self.name, self.folder = cluster, name, f"{cluster.folder}/{name}"
        self.run = f"{self.folder}/run"
        self.socket = f"{self.run}/gpreempt/gpreemptd.sock"
        for folder in ("run/gpreempt", "run/gpu", "spool"):
            os.makedirs(f"{self.folder}/{folder}")
        shutil.chown(f"{self.run}/gpu", USER)
        self.daemon = self.gpu = self.slurmd = None

    def start_daemon(self):
        log = open(f"{self.folder}/gpreemptd.log", "ab")
        self.daemon = subprocess.Popen([DAEMON, "--config", "/dev/null", "--socket", self.socket, "--class-sockets", "none", *self.cluster.options],
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=tap.die_with_parent)
        until(lambda: listens(self.socket) or self.daemon.poll() is not None, "gpreemptd listens")

    def kill_daemon(self):
        self.daemon.kill()
        self.daemon.wait()

    def start_gpu(self):
        """A user's: it takes root's programs and that user's."""
        log = open(f"{self.folder}/gpu.log", "wb")
        self.gpu = subprocess.Popen([*as_user(USER), tap.PROGRAM, "sim-gpu", "--devices", str(self.cluster.gpus), "--socket", f"{self.run}/gpu/sock"], stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=log, env=dict(os.environ, GPREEMPT_SOCKET=self.socket), preexec_fn=tap.die_with_parent)
        until(lambda: "Ctrl-C" in tap.read(self.folder, "gpu.log") or self.gpu.poll() is not None, "the GPU is ready")

    def start_slurmd(self):
        log = open(f"{self.folder}/slurmd.out", "ab")
        there = f"mount --bind {self.run} /run && hostname {self.name} && exec slurmd -D -N {self.name}"
        self.slurmd = subprocess.Popen(["unshare", "-m", "-u", "--propagation", "private", "sh", "-c", there], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, env=self.cluster.env, preexec_fn=tap.die_with_parent)

    def kill_slurmd(self):
        self.slurmd.kill()
        self.slurmd.wait()

    def clients(self):
        """Those of gpreemptd there, by pid"""
        said = json.loads(tap.good("ps", "--json", "--socket", self.socket).stdout)
        return {client["pid"]: client for client in said["clients"]}

    def jobs(self):
        """What was declared there, and goes on"""
        try:
            return [line.split("\t")[1] for line in tap.read(f"{self.socket}.jobs").splitlines()]
        except FileNotFoundError:
            return []

    def is_quiet(self):
        return not self.jobs() and not self.clients()


def as_user(name):
    user = pwd.getpwnam(name)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


class Cluster:
    def __init__(self, settings="", proctrack="linuxproc", options=(), more="", gpus=1):
        """settings: what plugstack.conf says besides the example's; options: of each gpreemptd; more: of slurm.conf; gpus: of each node, at most two"""
        self.folder = tempfile.mkdtemp(prefix="gpreempt-slurm-")
        os.chmod(self.folder, 0o755)
        self.options, self.gpus = options, gpus
        self.reports = f"{self.folder}/reports"
        self.env = dict(PATH=os.environ["PATH"], SLURM_CONF=f"{self.folder}/slurm.conf", LC_ALL="C.UTF-8")
        for name in ("munge", "state", "reports"):
            os.mkdir(f"{self.folder}/{name}")
        self.write_conf(settings, proctrack, more)
        self.nodes = {name: Node(self, name) for name in NODES}
        self.services = []

    def write_conf(self, settings, proctrack, more):
        first = free_ports(5)
        tap.write(f"{self.folder}/slurm.conf", CONF.format(host=socket.gethostname().split(".")[0], port=first, first=first + 1, last=first + 4, share=SHARE,
                                                           folder=self.folder, proctrack=proctrack, gpus=self.gpus) + more)
        files = "".join(f"Name=gpu File={path}\n" for path in ("/dev/null", "/dev/zero")[:self.gpus])
        tap.write(f"{self.folder}/gres.conf", f"{files}Include {SHARE}/gres.conf\n")
        tap.write(f"{self.folder}/cgroup.conf", "CgroupAutomount=no\nCgroupPlugin=cgroup/v1\n")
        self.set_plugin(settings)

    def set_plugin(self, settings=""):
        """The example, with the plug-in where it is built"""
        said, found = re.subn(r"^(required )/\S+/gpreempt/gpreempt-slurm\.so( .*)$", rf"\1{PLUGIN}\2 agent={AGENT} report={self.reports} {settings}", tap.read(EXAMPLE), flags=re.M)
        tap.same(found, 1, "the example's lines")
        tap.write(f"{self.folder}/plugstack.conf", said)

    def start(self):
        self.start_munge()
        for node in self.nodes.values():
            node.start_daemon()
            node.start_gpu()
        self.serve("slurmctld", "-D")
        for node in self.nodes.values():
            node.start_slurmd()
        until(lambda: self.run("sinfo", "-h", "-o", "%T", "-p", "harvest").out.split() == ["idle"], "all nodes are idle", SOON)

    def start_munge(self):
        folder = f"{self.folder}/munge"
        tap.write(f"{folder}/key", os.urandom(128))
        os.chmod(f"{folder}/key", 0o600)
        self.serve("munged", "--foreground", "--force", f"--socket={folder}/sock", f"--key-file={folder}/key", f"--pid-file={folder}/pid",
                   f"--log-file={folder}/log", f"--seed-file={folder}/seed")
        until(lambda: os.path.exists(f"{folder}/sock"), "munged listens")

    def serve(self, *command):
        log = open(f"{self.folder}/{command[0]}.out", "ab")
        self.services.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env, preexec_fn=tap.die_with_parent))

    def run(self, *command, user=None, timeout=SOON, env=None):
        done = subprocess.run([*(as_user(user) if user else ()), *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=timeout, env=dict(self.env, **(env or {})), cwd="/tmp")
        return Done(done.returncode, done.stdout, done.stderr)

    def good(self, *command, **more):
        done = self.run(*command, **more)
        tap.same(done.status, 0, f"{' '.join(command)}: {done.out}{done.err}")
        return done.out

    def batch(self, script, *options, user=None, name="job"):
        """The number of a job"""
        path = tap.write(f"{self.folder}/{name}.sh", f"#!/bin/sh\n{script}\n")
        return int(self.good("sbatch", "--parsable", "-o", "/dev/null", *options, path, user=user).split(";")[0])

    def is_idle(self):
        """No job is left. A slurmctld that is busy may hang up, of which squeue ends."""
        done = self.run("squeue", "-h")
        return done.status == 0 and not done.out

    def job(self, number):
        """What slurmctld says of it"""
        said = self.good("scontrol", "show", "job", "-o", str(number))
        return dict(re.findall(r"(?:^| )(\w+)=(.*?)(?= \w+=|$)", said.strip()))

    def state(self, number):
        return self.job(number)["JobState"]

    def ends(self, number, *states, patience=SOON):
        until(lambda: self.state(number) not in ("PENDING", "RUNNING", "COMPLETING"), f"job {number} ends", patience)
        if states:
            tap.true(self.state(number) in states, f"job {number}: {self.job(number)}")

    def comment(self, number, pattern):
        """It comes when the last slurmstepd has ended."""
        until(lambda: re.search(pattern, self.job(number).get("Comment", "")), f"{pattern} in the comment: {self.job(number)}", SOON)
        return re.search(pattern, self.job(number)["Comment"])

    def report(self, number, step, node):
        path = f"{self.reports}/{number}.{step}.{node}.json"
        until(lambda: os.path.exists(path), f"a report is in {path}", SOON)
        return json.loads(tap.read(path))

    def stop(self):
        with contextlib.suppress(Exception):
            self.run("scancel", "--full", "-u", "root")
            self.run("scancel", "--full", "-u", USER)
            until(lambda: not self.run("squeue", "-h").out.strip(), "all jobs have ended", 15)
        for node in self.nodes.values():
            end(node.slurmd)
        for process in self.services:
            end(process)
        self.end_strays()
        for node in self.nodes.values():
            end(node.gpu)
            end(node.daemon)
        for folder in glob.glob("/sys/fs/cgroup/*/slurm_n[1-4]/**/", recursive=True)[::-1]:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    def strays(self):
        """Processes of jobs, and slurmstepds: they have the cluster in their environment."""
        mine, found = f"SLURM_CONF={self.folder}/".encode(), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if mine in tap.read(f"/proc/{pid}/environ", mode="rb") and int(pid) != os.getpid():
                    found.append(int(pid))
        return found

    def end_strays(self):
        for pid in self.strays():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def end(process):
    if process and process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def cluster(*args, **more):
    one = Cluster(*args, **more)
    try:
        one.start()
        yield one
    finally:
        if os.environ.get("GPREEMPT_KEEP"):  # to look at what it said
            shutil.copytree(one.folder, os.environ["GPREEMPT_KEEP"], dirs_exist_ok=True, ignore=shutil.ignore_patterns("sock", "*.sock", "spool"))
        one.stop()


def work(*options):
    """A program on the node's simulated GPU, for a shell"""
    return f"{tap.PROGRAM} sim-client --gpu {GPU} {' '.join(options)}"


TRAIN = work("--offline", "--work", "train")


def serving(seconds, rate=20, *options):
    return work("--online", "--work", "infer-10ms", "--rate", str(rate), "--hints", "--duration", f"{seconds}s", *options)
