# SPDX-License-Identifier: GPL-2.0
"""The virtual machine: an initrd made for one job, and QEMU.

TCG, never KVM: nested KVM hangs on some hosts, and what is measured here is never the host's time.
"""

import contextlib
import gzip
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import threading
import time

import bed

QEMU = "qemu-system-x86_64"
BUSYBOX = "/bin/busybox"
LOOK = 0.5  # s between two looks at the host
STARVED = 20.0  # s; after so long the kernel calls a CPU or a task stuck
PREEMPTION_MS = "60000"  # the driver's patience with its GPU: longer than the host keeps the machine from running
APPLETS = ["sh", "mount", "mkdir", "cp", "chroot", "poweroff", "ifconfig", "hostname"]


def missing():
    """What is not installed, or None."""
    if not shutil.which(QEMU):
        return f"{QEMU} is not installed"
    if not os.path.exists(BUSYBOX):
        return "busybox-static is not installed"
    return None


def add_options(parser):
    """What run and vm have in common."""
    driver = parser.add_mutually_exclusive_group()
    driver.add_argument("--stock", action="store_true", help="amdkfd as Debian ships it (the default)")
    driver.add_argument("--patched", action="store_true", help="amdkfd with kernel/series")
    parser.add_argument("--devices", type=int, help="GPUs; 1 by default")
    parser.add_argument("--xccs", type=int, help="XCCs of each; 1 by default")
    parser.add_argument("--memory", help="of the machine; 2G by default")
    parser.add_argument("--param", action="append", default=[], metavar="K=V", help="for the module")
    parser.add_argument("--build", type=os.path.abspath, help="where the programs are",
                        default=os.environ.get("GPREEMPT_BUILD", os.path.join(bed.ROOT, "build")))


def instruction_ns(text):
    """0: the machine's clock is the host's."""
    ns = int(text) if text.isdigit() else -1
    if not 0 <= ns <= 1024 or ns & (ns - 1):
        raise bed.Failed(f"instruction_ns={text}: must be 1, 2, 4 ... 1024")
    return ns


def mebibytes(memory):
    """Of what QEMU takes for an amount of memory."""
    found = re.fullmatch(r"(\d+)([MG]?)", memory)
    if not found:
        raise bed.Failed(f"memory={memory}: must be as 512M or 3G")
    return int(found[1]) * (1024 if found[2] == "G" else 1)


def shape(options, needs):
    """The machine that is wanted: by the command line, else by needs ({name: [value...]}), else as by default."""
    def one(name, default):
        return getattr(options, name) or needs.get(name, [default])[-1]
    params = {"xccs": str(one("xccs", 1)), "queue_preemption_timeout_ms": PREEMPTION_MS}
    params.update(word.partition("=")[::2] for word in needs.get("param", []) + options.param)
    return {"devices": int(one("devices", 1)), "instruction_ns": instruction_ns(needs.get("instruction_ns", ["0"])[-1]), "memory": one("memory", "2G"), "params": params,
            "kernel": " ".join(needs.get("kernel", []))}


def job(options, wanted, module, **more):
    """What the runner is to do; more is either tests or a shell."""
    params = [f"{name}={value}" for name, value in wanted["params"].items()]
    env = {
        "PATH": f"{options.build}:{options.build}/tests/kernel:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": f"{bed.ROOT}/tests",
        "GPREEMPT_BUILD": options.build, "GPREEMPT_SOURCE": bed.ROOT,
        "BED_DRIVER": "patched" if options.patched else "stock", "BED_MODULE": module, "BED_PARAMS": " ".join(params),
        "BED_DEVICES": str(wanted["devices"]), "BED_XCCS": wanted["params"]["xccs"],
    }
    return {"module": module, "params": params, "env": env, **more}


def initrd(folder, work):
    """Path of an initrd whose runner finds this job."""
    tree = os.path.join(folder, "initrd")
    for name in ("bin", "bed", "dev"):
        os.makedirs(os.path.join(tree, name))
    shutil.copy(BUSYBOX, os.path.join(tree, "bin", "busybox"))
    for name in APPLETS:
        os.symlink("busybox", os.path.join(tree, "bin", name))
    shutil.copy(os.path.join(bed.HERE, "init"), tree)
    shutil.copy(os.path.join(bed.HERE, "runner"), os.path.join(tree, "bed"))
    with open(os.path.join(tree, "bed", "job.json"), "w", encoding="utf-8") as file:
        json.dump(work, file)
    names = "\n".join(os.path.relpath(os.path.join(where, name), tree)
                      for where, folders, files in os.walk(tree) for name in folders + files)
    archive = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"], cwd=tree, check=True,
                             input=names.encode(), stdout=subprocess.PIPE).stdout
    path = os.path.join(folder, "initrd.gz")
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(archive)
    return path


def processor(ns):
    """ns of an instruction; 0: by the host's clock. QEMU counts them on one thread alone, where a second CPU would gain nothing."""
    if not ns:
        return ["-accel", "tcg,thread=multi", "-smp", "2"]
    return ["-accel", "tcg,thread=single", "-smp", "1", "-icount", f"shift={ns.bit_length() - 1}"]


def command(image, disk, wanted, console, results):
    """QEMU's command line."""
    # On a busy host the first ticks come late, and the kernel would take the timer for a broken one.
    words = "console=ttyS0 panic=-1 log_buf_len=4M kunit.enable=1 no_timer_check " + wanted["kernel"]
    args = [
        # Without q35 Linux spends 20 s on the interrupt of the first virtio device.
        QEMU, "-machine", "q35", *processor(wanted["instruction_ns"]), "-cpu", "max", "-m", wanted["memory"],
        "-nodefaults", "-display", "none", "-monitor", "none", "-no-reboot", "-serial", console, "-serial", results,
        "-virtfs", "local,path=/,security_model=none,readonly=on,mount_tag=host,multidevs=remap",
        "-kernel", image, "-initrd", disk, "-append", words.strip(),
    ]
    return args + ["-device", "pci-testdev"] * wanted["devices"]


class Host:
    """For how long the host kept a process from running. Its guest sees the clock jump, and may think that a CPU is stuck."""

    def __init__(self, pid):
        self.tasks = f"/proc/{pid}/task"
        self.looks = []  # (when, {thread: seconds it was kept waiting since the look before})
        threading.Thread(target=self.watch, daemon=True).start()

    def look(self):
        """{thread: (seconds it has waited for a CPU since it began, whether a signal has stopped it)}"""
        found = {}
        for thread in os.listdir(self.tasks):
            with contextlib.suppress(OSError, IndexError):  # it is gone
                waited = int(bed.read(f"{self.tasks}/{thread}/schedstat").split()[1]) / 1e9
                state = bed.read(f"{self.tasks}/{thread}/stat").rpartition(")")[2].split()[0]
                found[thread] = waited, state == "T"
        return found

    def watch(self):
        before, then = {}, time.monotonic()
        with contextlib.suppress(OSError):  # the process is gone
            while True:
                time.sleep(LOOK)
                now, threads = time.monotonic(), self.look()
                # This thread is as good as any: whoever pauses the whole host is seen by it alone.
                lost = {"us": max(0.0, now - then - 2 * LOOK)}
                for name in threads.keys() & before.keys():
                    waited, is_stopped = threads[name]
                    lost[name] = now - then if is_stopped else waited - before[name][0]
                self.looks.append((now, lost))
                before, then = threads, now

    def worst(self, begin):
        """The most seconds, of STARVED at a time, that one of its threads was kept waiting since then."""
        looks = [look for look in list(self.looks) if look[0] >= begin]
        worst = 0.0
        for end, _ in looks:
            inside = [lost for when, lost in looks if end - STARVED < when <= end]
            names = set().union(*inside)
            worst = max(worst, *(sum(lost.get(name, 0.0) for lost in inside) for name in names))
        return min(worst, STARVED)


class Machine:
    """A machine at work on a job; what its runner says comes as records."""

    def __init__(self, image, work, wanted, console):
        self.folder = tempfile.mkdtemp(prefix="gpreempt-bed-")
        self.buffer = b""
        try:
            disk = initrd(self.folder, work)
            self.process = subprocess.Popen(
                command(image, disk, wanted, f"file:{console}", "stdio"), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=bed.die_with_parent)
            self.host = Host(self.process.pid)
        except BaseException:
            shutil.rmtree(self.folder)
            raise

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)

    def line(self, deadline):
        """The next line, or None when the time is up or the machine is gone."""
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                return None
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\n", 1)
        return text.decode(errors="replace")

    def record(self, seconds):
        """The next record, or None; what is none is QEMU's own word, and goes to stderr."""
        deadline = time.monotonic() + seconds
        while True:
            text = self.line(deadline)
            if text is None:
                return None
            try:
                return json.loads(text)
            except ValueError:
                bed.say(f"{QEMU}: {text}")
