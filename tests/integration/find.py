#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""find on recorded trees: what it prints, what it writes, and what it says when there is nothing."""

import json
import os
import re
import shutil

import tap
from gpreemptd import NOBODY

PID = 158036
GPU = 38571
RING = 0x7F9567E00000


def put(folder, path, text):
    os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
    tap.write(f"{folder}/{path}", text)


def tree(folder, queues=(1,), pid=PID):
    """A machine with one GPU, and a process that has these queues."""
    root = f"{folder}/root"
    node = "sys/class/kfd/kfd/topology/nodes/1"
    put(root, f"{node}/gpu_id", f"{GPU}\n")
    put(root, f"{node}/name", "aqua\n")
    put(root, f"{node}/properties", "simd_count 320\nsimd_per_cu 4\nnum_cp_queues 24\nnum_xcc 4\nlocation_id 49408\ndomain 0\n")
    put(root, f"sys/class/kfd/kfd/proc/{pid}/pasid", "32769\n")
    put(root, f"proc/{pid}/comm", "python\n")
    for id in queues:
        for name, value in (("gpuid", GPU), ("size", 65536), ("type", 0)):
            put(root, f"sys/class/kfd/kfd/proc/{pid}/queues/{id}/{name}", str(value))
    return root


def annotated(root, *queues):
    """debugfs in the annotated form of a private kernel."""
    text = "".join(f"Compute queue on device 0001:01:00.0\n    Queue ID: {id} ({id:#x})\n    Address: {ring:#x}\n"
                   f"    Process: pid {PID} pasid 0x8001\n    is active: {'yes' if active else 'no'}\n    priority: 2\n"
                   for id, ring, active in queues)
    put(root, "sys/kernel/debug/kfd/mqds", text)


def find(folder, *words, status=0):
    os.makedirs(f"{folder}/here", exist_ok=True)
    done = tap.run("find", *words, cwd=f"{folder}/here")
    tap.same(done.returncode, status, f"{done.stdout}{done.stderr}")
    return done


def config(folder, pid=PID):
    scope = {}
    exec(tap.read(folder, "here", f"queue_config_pid_{pid}.py"), scope)
    return scope["queues"]


@tap.test("the text and the file are as the notes fix them")
def _(folder):
    root = tree(folder)
    annotated(root, (1, RING, True))
    text = find(folder, str(PID), "--root", root).stdout
    lines = [line.strip() for line in text.splitlines()]
    tap.same(lines[:5], ["Queue #1:", "address:  0x00007f9567e00000", "queue id: 1", f"pid:      {PID}", "active:   yes"], "the queue")
    tap.true("Total: 1 queue" in lines and f"Wrote queue_config_pid_{PID}.py" in lines, text)
    tap.same(tap.read(folder, "here", f"queue_config_pid_{PID}.py"), f"""# queue_config_pid_{PID}.py
queues = [
    {{
        'addr': 0x00007f9567e00000,
        'queue_id': 1,
        'pid': {PID},
        'is_active': True,
    }},
]
""", "the file")


@tap.test("each queue says where its fields came from")
def _(folder):
    root = tree(folder)
    annotated(root, (1, RING, False))
    text = find(folder, str(PID), "--root", root).stdout
    tap.true(re.search(r"from: +address debugfs mqds, queue id \S.*, active debugfs mqds", text), text)
    tap.same([queue["is_active"] for queue in config(folder)], [False], "active")
    verbose = find(folder, str(PID), "--root", root, "--verbose").stdout
    for word in ("kind:", "priority: 2", f"gpu:      {GPU}", "debugfs mqds   read", "log            not asked"):
        tap.true(word in verbose, f"{word}: {verbose}")


@tap.test("what sysfs does not tell is unknown, None in the file, and null in JSON")
def _(folder):
    root = tree(folder, (3, 5))
    text = find(folder, str(PID), "--root", root).stdout
    tap.same(text.count("address:  unknown"), 2, text)
    tap.true("Unknown: addresses and activity: " in text and "run it as root" not in text, text)
    tap.same(config(folder), [{"addr": None, "queue_id": id, "pid": PID, "is_active": None} for id in (3, 5)], "the file")
    told = json.loads(find(folder, str(PID), "--root", root, "--json").stdout)
    tap.same([(queue["addr"], queue["queue_id"], queue["is_active"]) for queue in told["queues"]], [(None, 3, None), (None, 5, None)], "JSON")
    tap.same(told["file"], f"queue_config_pid_{PID}.py", "file")
    tap.true("mqds" in told["missing"], told["missing"])


@tap.test("with the log alone, the process gone, the runtime's number is marked as such")
def _(folder):
    os.makedirs(f"{folder}/empty")
    log = tap.write(f"{folder}/hip.log", f"SWq=0x7f0000001000, HWq=0x{RING:x}, id=41, Dispatch Header = 0xb02\n" * 3)
    text = find(folder, str(PID), log, "--root", f"{folder}/empty").stdout
    tap.true("queue id: unknown (the runtime's own number is 41)" in text, text)
    tap.true(f"address:  0x{RING:016x}" in text and "active:   unknown" in text, text)
    tap.same(config(folder), [{"addr": RING, "queue_id": None, "pid": PID, "is_active": None}], "the file")


@tap.test("a log that is not there is refused by name, and nothing is written")
def _(folder):
    done = find(folder, str(PID), f"{folder}/none.log", "--root", tree(folder), status=tap.BAD_INPUT)
    tap.true("none.log: No such file" in done.stderr, done.stderr)
    tap.same(os.listdir(f"{folder}/here"), [], "files")


@tap.test("nothing found is exit status 1, no file, and a reason")
def _(folder):
    root = tree(folder, ())
    os.makedirs(f"{root}/proc/77")
    os.makedirs(f"{folder}/empty")
    for pid, where, word in ((PID, root, "has no queue now"), (77, root, "does not use an AMD GPU"), (78, root, "there is no process 78"),
                             (PID, f"{folder}/empty", "amdgpu is not loaded")):
        done = find(folder, str(pid), "--root", where, status=tap.FAILED)
        tap.true(word in done.stderr and done.stderr.count("\n") == 1, done.stderr)
        told = json.loads(find(folder, str(pid), "--root", where, "--json", status=tap.FAILED).stdout)
        tap.same((told["queues"], told["file"]), ([], None), "JSON")
    tap.same(os.listdir(f"{folder}/here"), [], "files")


@tap.test("a log without queues is named among the reasons")
def _(folder):
    log = tap.write(f"{folder}/hip.log", "nothing of use\n")
    tap.true("AMD_LOG_LEVEL" in find(folder, "78", log, "--root", tree(folder), status=tap.FAILED).stderr, "no hint")


@tap.test("a file that cannot be written is reported after what was found")
def _(folder):
    root = tree(folder)
    os.makedirs(f"{folder}/here/queue_config_pid_{PID}.py")
    done = find(folder, str(PID), "--root", root, status=tap.FAILED)
    tap.true("Queue #1:" in done.stdout and "Wrote" not in done.stdout, done.stdout)
    tap.true(f"cannot write queue_config_pid_{PID}.py: Is a directory" in done.stderr, done.stderr)


@tap.test("bad process ids are refused in one line")
def _(folder):
    for word in ("x", "0", "-5", "1.5", "99999999999", ""):
        done = tap.run("find", "--", word)
        tap.same((done.returncode, done.stderr.count("\n")), (tap.BAD_INPUT, 1), f"{word!r}: {done.stderr}")


@tap.test("a root that is no folder is bad input")
def _(folder):
    for root in (f"{folder}/none", tap.write(f"{folder}/file", "")):
        tap.true(f"--root {root}: " in find(folder, "1", "--root", root, status=tap.BAD_INPUT).stderr, root)


DOCKER = os.path.join(tap.SOURCE, "tests/unit/trees/docker")


@tap.test("an unknown container is refused, and those that there are are named")
def _(folder):
    for words in (("1",), ()):
        done = find(folder, *words, "--container", "nobody", "--root", tree(folder), status=tap.FAILED)
        tap.true("--container nobody: no container that you may see" in done.stderr, done.stderr)
        done = find(folder, *words, "--container", "nobody", "--root", DOCKER, status=tap.FAILED)
        tap.true("there are trainer, online-serving, llm" in done.stderr, done.stderr)
        done = find(folder, *words, "--container", "traine", "--root", DOCKER, status=tap.FAILED)
        tap.true("did you mean trainer?" in done.stderr, done.stderr)
        done = find(folder, *words, "--container", "3f9", "--root", DOCKER, status=tap.FAILED)
        tap.true("which of them: trainer (3f9a01234567), online-serving (3f9bfedcba98)?" in done.stderr, done.stderr)
    done = find(folder, "99", "--container", "trainer", "--root", DOCKER, status=tap.FAILED)
    tap.true("--container trainer: there is no process 99 in it" in done.stderr, done.stderr)
    tap.same(os.listdir(f"{folder}/here"), [], "files")


@tap.test("without a pid it finds the queues of every process in the container")
def _(folder):
    text = find(folder, "--container", "trainer", "--root", DOCKER).stdout
    tap.true("pid:      158036" in text and "Wrote queue_config_pid_158036.py" in text and "158100" not in text, text)
    told = json.loads(find(folder, "--container", "llm", "--root", DOCKER, "--json").stdout)
    tap.same([(process["pid"], len(process["queues"])) for process in told["processes"]], [(158200, 1)], "JSON")


@tap.test("digits that a container without queues has too mean the one with queues, with and without a pid")
def _(folder):
    root = shutil.copytree(DOCKER, f"{folder}/root")
    scope = f"docker-{'3f9a':f<64}.scope"
    put(root, f"sys/fs/cgroup/system.slice/{scope}/cgroup.procs", "")
    put(root, "proc/500/cgroup", f"0::/system.slice/{scope}\n")
    put(root, "proc/500/status", "Name:\tsh\nNSpid:\t500\t17\n")
    for words in (("17",), ()):
        tap.true("pid:      158036" in find(folder, *words, "--container", "3f9a", "--root", root).stdout, words)


@tap.test("a pid that was read inside a container is named with the host's, where the host's own has no queues")
def _(folder):
    done = find(folder, "17", "--root", DOCKER, status=tap.FAILED)
    for hint in ("17 is also PID 158036 (container trainer)", "17 is also PID 158200 (container llm)"):
        tap.true(hint in done.stderr, done.stderr)
    tap.true("is also" not in find(folder, "18", "--root", DOCKER, status=tap.FAILED).stderr, "nobody's")


@tap.test("in a pid namespace it finds nothing by the host's numbers, and says why")
def _(folder):
    if os.getuid() != 0:
        raise tap.Skip("only root can make pid namespaces")
    done = tap.run("--pid", "--fork", "--mount-proc", tap.PROGRAM, "find", "1", program="unshare", cwd=folder)
    tap.same((done.returncode, done.stdout), (tap.FAILED, ""), done.stderr)
    tap.true("pid namespace" in done.stderr and "--container NAME" in done.stderr, done.stderr)


@tap.test("by the notes' name it takes the same words, and without any prints its usage")
def _(folder):
    os.symlink(tap.PROGRAM, f"{folder}/queue_finder")
    done = tap.run(program=f"{folder}/queue_finder")
    tap.same(done.returncode, tap.BAD_INPUT, "exit status")
    tap.true("queue_finder PID [LOG]" in done.stderr, done.stderr)
    root = tree(folder)
    done = tap.run(str(PID), "--root", root, program=f"{folder}/queue_finder", cwd=folder)
    tap.same(done.returncode, 0, done.stderr)
    tap.true("Queue #1:" in done.stdout, done.stdout)


@tap.test("list --root shows the same queues, and gives them classes by rule")
def _(folder):
    root = tree(folder, (1, 2))
    listed = json.loads(tap.good("list", "--root", root, "--rule", f"online:pid={PID}", "--json").stdout)
    tap.same([(device["compute_units"], device["gpu_id"], device["pci"]) for device in listed["devices"]], [(80, GPU, "0000:c1:00.0")], "devices")
    tap.same([(queue["pid"], queue["queue_id"], queue["class"], queue["priority"]) for queue in listed["queues"]],
             [(PID, 1, "online", None), (PID, 2, "online", None)], "queues")
    text = tap.good("list", "--root", root).stdout
    tap.true(f"\n{PID}:1 " in text and "python" in text, text)
    tap.true(f" {GPU}  " in text and " 0000:c1:00.0 " in text, text)
    tap.same(tap.run("list", "--root", f"{folder}/none").returncode, tap.BAD_INPUT, "a folder that is not there")
    text = tap.good("list", "--root", root, "--priority", "0-15").stdout
    tap.true("unknown: the recorded copy" in text and "only root" not in text, text)


@tap.test("slots that nobody knows of are ? in list and null in JSON, and not 0: in a tree that does not say, and of a device that has none")
def _(folder):
    root = tree(folder)
    properties = f"{root}/sys/class/kfd/kfd/topology/nodes/1/properties"
    for where, slots, word in ((("--root", root), 24, "24"), (("--root", root), None, "?"), (("--device", "h200"), None, "?")):
        head, row, *_ = tap.good("list", *where).stdout.splitlines()
        at = head.index(" SLOTS") + 1  # numbers stand at the left of their column
        tap.same((row[at:].split()[0], json.loads(tap.good("list", "--json", *where).stdout)["devices"][0]["queue_slots"]), (word, slots), f"{where}: {row}")
        tap.write(properties, tap.read(properties).replace("num_cp_queues 24\n", ""))


@tap.test("a log that cannot be read or is a folder is refused by name, and nothing is written")
def _(folder):
    root = tree(folder)
    done = find(folder, str(PID), folder, "--root", root, status=tap.BAD_INPUT)
    tap.true(f"{folder}: Is a directory" in done.stderr, done.stderr)
    tap.same(os.listdir(f"{folder}/here"), [], "files")
    log = tap.write(f"{folder}/hip.log", "")
    os.chmod(log, 0)
    os.chmod(folder, 0o755)
    done = tap.run("find", str(PID), log, "--root", root, user=NOBODY if os.getuid() == 0 else None)
    tap.same((done.returncode, "hip.log: Permission denied" in done.stderr), (tap.BAD_INPUT, True), done.stderr)


@tap.test("a log of another process is named as such, whether or not other queues were found")
def _(folder):
    log = tap.write(f"{folder}/hip.log", f":3:rocvirtual.cpp :1 : 1 us: [pid:4712  tid:0x7f] SWq=0x7f0000001000, HWq=0x{RING:x}, id=1, Dispatch\n")
    text = find(folder, str(PID), log, "--root", tree(folder)).stdout
    tap.true(f"is of process 4712, not {PID}" in " ".join(text.split()), text)
    told = json.loads(find(folder, str(PID), log, "--root", tree(folder), "--json").stdout)
    tap.true("4712" in told["log"] and len(told["queues"]) == 1, told)
    tap.true("is of process 4712" in find(folder, "78", log, "--root", tree(folder), status=tap.FAILED).stderr, "without queues")


@tap.test("a log without queues is said to have none, though sysfs has some")
def _(folder):
    log = tap.write(f"{folder}/hip.log", "nothing of use\n")
    tap.true("names no queue" in find(folder, str(PID), log, "--root", tree(folder)).stdout, "no word")


@tap.test("what a log told is not called unknown")
def _(folder):
    log = tap.write(f"{folder}/hip.log", f"Created SWq=0x7f0000001000 to map on HWq=0x{RING:x} with size 1024 with priority 1, cooperative: 0\n")
    text = find(folder, str(PID), log, "--root", tree(folder)).stdout
    tap.true(f"address:  0x{RING:016x}" in text and "Unknown: activity: /sys" in text, text)


@tap.test("a queue that stands in the list twice, by its id and by its address, is counted once")
def _(folder):
    root = os.path.join(tap.SOURCE, "tests/unit/trees/truncated")
    tap.same(len(os.listdir(f"{root}/sys/class/kfd/kfd/proc/69/queues")), 5)
    text = find(folder, "69", "--root", root).stdout
    tap.true("Total: 5 queues\nTwice: 3 " in text and "mqds ends in the middle" in text, text)


tap.main()
