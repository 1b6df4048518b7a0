#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The notes' libraries as programs load and link them: one, the other, both; as built and as installed."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys

import tap
import gpreemptd

BUILD = os.path.abspath(tap.BUILD)
FAKE = os.path.join(BUILD, "tests", "fake_gpreemptd")
POC, V2 = (os.path.join(BUILD, name) for name in ("libgpreempt_poc.so", "libgpreempt_poc_v2.so"))

CALLS = {
    "gpreempt_poc.h": ["gpreempt_poc_init", "gpreempt_poc_cleanup", "gpreempt_poc_errmsg", "gpreempt_suspend_queues", "gpreempt_resume_queues",
                       "gpreempt_get_all_queues", "gpreempt_find_queues_by_priority", "gpreempt_find_queues_by_process",
                       "gpreempt_get_queue_status", "gpreempt_free_queue_info"],
    "gpreempt_poc_v2.h": ["gpreempt_batch_unmap_queues", "gpreempt_fast_remap_queues", "gpreempt_set_hqd_reservation"],
}

# As the notes write them; a header that differs does not compile with these.
FORMS = """
#include <gpreempt_poc.h>
#include <gpreempt_poc_v2.h>
int  gpreempt_poc_init(void);
void gpreempt_poc_cleanup(void);
int  gpreempt_suspend_queues(uint32_t *queue_ids, uint32_t num_queues, uint32_t grace_period_us);
int  gpreempt_resume_queues(uint32_t *queue_ids, uint32_t num_queues);
int  gpreempt_get_all_queues(gpreempt_queue_info_t **queues, uint32_t *num_queues);
int  gpreempt_find_queues_by_priority(uint32_t min_prio, uint32_t max_prio, gpreempt_queue_info_t **queues, uint32_t *num_queues);
int  gpreempt_find_queues_by_process(pid_t pid, gpreempt_queue_info_t **queues, uint32_t *num_queues);
void gpreempt_free_queue_info(gpreempt_queue_info_t *queues);
int  gpreempt_batch_unmap_queues(uint32_t *qids, uint32_t num, uint32_t grace_us);
int  gpreempt_fast_remap_queues(uint32_t *qids, uint32_t num);
int  gpreempt_set_hqd_reservation(uint32_t gpu_id, uint32_t online_pct, uint32_t offline_pct);
int main(void)
{
	gpreempt_queue_info_t q = { .queue_id = 1, .priority = 2, .gpu_id = 3, .process_id = 4, .is_active = true, .queue_address = 5 };
	uint32_t id = 2;

	if (gpreempt_poc_init() || gpreempt_suspend_queues(&id, 1, 1000) || gpreempt_get_queue_status(id, &q))
		return 1;
	return q.is_active || gpreempt_resume_queues(&id, 1) || (gpreempt_poc_cleanup(), 0);
}
"""


@contextlib.contextmanager
def daemon(folder, *words):
    path = f"{folder}/gpreemptd.sock"
    process = subprocess.Popen([FAKE, path, *(words or ("100:1", "100:2", "200:1"))], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    try:
        tap.same(process.stdout.readline(), "ready\n", "the daemon")
        yield path
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


def python(folder, code, *paths, **env):
    """Runs it in a process of its own, where libs are the libraries at these paths."""
    start = f"import ctypes, os\nlibs = [ctypes.CDLL(path, use_errno=True) for path in {list(paths)!r}]\nu32 = ctypes.c_uint32\n"
    done = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, check=False, cwd=folder,
                          env=dict(os.environ, **env))
    tap.same(done.returncode, 0, done.stderr)
    return done


def is_instrumented():
    return b"__asan_init" in tap.read(POC, mode="rb") or b"__ubsan" in tap.read(POC, mode="rb")


def need_plain():
    if is_instrumented():
        raise tap.Skip("an instrumented library does not load into Python")


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    return sorted(set(re.findall(r" T (\w+)", out)))


@tap.test("both libraries export the calls of both headers and nothing else")
def _(folder):
    want = sorted(CALLS["gpreempt_poc.h"] + CALLS["gpreempt_poc_v2.h"])
    tap.same(exported(POC), want, "libgpreempt_poc.so")
    tap.same(exported(V2), want, "libgpreempt_poc_v2.so")
    for header, names in CALLS.items():
        text = tap.read(tap.SOURCE, "include/gpreempt/compat", header)
        for name in names:
            tap.true(f"{name}(" in text, f"{name} is not in {header}")


@tap.test("what one library suspends the other resumes, whichever is loaded first")
def _(folder):
    need_plain()
    code = """
first, second = libs
assert first.gpreempt_poc_init() == 0 and second.gpreempt_poc_init() == 0
ids = (u32 * 1)(2)
assert first.gpreempt_suspend_queues(ids, 1, 0) == 0
found, n = ctypes.c_void_p(), u32()
assert second.gpreempt_find_queues_by_process(200, ctypes.byref(found), ctypes.byref(n)) == 0 and n.value == 1
second.gpreempt_free_queue_info(found)
assert second.gpreempt_fast_remap_queues(ids, 1) == 0  # of process 100: only who suspended it knows
second.gpreempt_poc_cleanup()
assert first.gpreempt_suspend_queues((u32 * 1)(1), 1, 0) == 0  # still open, and 1 is 200's by the other's search
first.gpreempt_poc_cleanup()
assert first.gpreempt_suspend_queues(ids, 1, 0) == -1
"""
    with daemon(folder) as path:
        for libraries in ((POC, V2), (V2, POC)):
            python(folder, code, *libraries, GPREEMPT_SOCKET=path)


@tap.test("the second library alone is enough")
def _(folder):
    need_plain()
    with daemon(folder) as path:
        done = python(folder, """
assert libs[0].gpreempt_poc_init() == 0
ids = (u32 * 2)(2, 2)
for i in range(3):
    assert libs[0].gpreempt_batch_unmap_queues(ids, 2, 100) == 0
    assert libs[0].gpreempt_fast_remap_queues(ids, 2) == 0
assert libs[0].gpreempt_set_hqd_reservation(0, 70, 30) == 0
libs[0].gpreempt_poc_cleanup()
""", V2, GPREEMPT_SOCKET=path)
        tap.same(done.stderr.count("\n"), 1, done.stderr)
        tap.true("no batch call" in done.stderr and "UPDATE_QUEUE" in done.stderr, done.stderr)


@tap.test("a GPU is reserved by the driver's id while it has no queue")
def _(folder):
    need_plain()
    with gpreemptd.daemon(folder) as d:
        python(folder, f"""
assert libs[0].gpreempt_poc_init() == 0
assert libs[0].gpreempt_set_hqd_reservation({gpreemptd.GPU}, 75, 25) == 0
assert libs[0].gpreempt_set_hqd_reservation({gpreemptd.GPU} + 1, 75, 25) == -1
""", V2, GPREEMPT_SOCKET=d.path)
        device = json.loads(tap.good("list", "--json", "--socket", d.path).stdout)["devices"][0]
        tap.same((device["gpu_id"], device["online_percent"], device["offline_percent"]), (gpreemptd.GPU, 75, 25), "device")


@tap.test("a refusal is -1 with errno, and a sentence for who asks")
def _(folder):
    need_plain()
    with daemon(folder) as path:
        python(folder, """
import errno
assert libs[0].gpreempt_suspend_queues((u32 * 1)(2), 1, 0) == -1 and ctypes.get_errno() == errno.ENOTCONN
assert libs[0].gpreempt_poc_init() == 0
assert libs[0].gpreempt_suspend_queues((u32 * 1)(1), 1, 0) == -1 and ctypes.get_errno() == errno.ENOTUNIQ
libs[0].gpreempt_poc_errmsg.restype = ctypes.c_char_p
assert b"process 100" in libs[0].gpreempt_poc_errmsg() and b"process 200" in libs[0].gpreempt_poc_errmsg()
assert libs[0].gpreempt_suspend_queues((u32 * 1)(99), 1, 0) == -1 and ctypes.get_errno() == errno.ENOENT
""", POC, GPREEMPT_SOCKET=path)


def install(folder):
    meson = shutil.which("meson")
    if not meson or is_instrumented():
        raise tap.Skip("meson is not in the path, or the libraries are instrumented")
    subprocess.run([meson, "install", "-C", tap.BUILD, "--no-rebuild", "--destdir", folder], check=True, capture_output=True)
    path = subprocess.run(["find", folder, "-name", "gpreempt_poc.pc"], check=True, capture_output=True, text=True).stdout.strip()
    return os.path.dirname(path)


@tap.test("a program that includes the notes' headers by name is built with either library by pkg-config, and runs")
def _(folder):
    packages = install(f"{folder}/root")
    tap.write(f"{folder}/try.c", FORMS)
    env = dict(os.environ, PKG_CONFIG_PATH=packages, PKG_CONFIG_SYSROOT_DIR=f"{folder}/root")
    for name in ("gpreempt_poc", "gpreempt_poc_v2"):
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", name], env=env, check=True, capture_output=True, text=True)
        subprocess.run([os.environ.get("CC", "gcc"), "-Wall", "-Werror", f"{folder}/try.c", "-o", f"{folder}/{name}", *flags.stdout.split()], check=True)
        with daemon(folder) as path:
            done = subprocess.run([f"{folder}/{name}"], check=False, capture_output=True, text=True,
                                  env=dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(packages), GPREEMPT_SOCKET=path))
            tap.same((done.returncode, done.stdout, done.stderr), (0, "", ""), name)


PROGRAMS = {"queue_finder": "usage:", "test_api_availability": "AMD driver", "test_batch_unmap": "usage: test_batch_unmap",
            "test_cwsr_lv3": "a running queue was stopped and resumed 10 times", "test_fast_remap": "usage: test_fast_remap"}


def check_programs(folder):
    for name, words in PROGRAMS.items():
        done = tap.run(program=os.path.join(folder, name))
        tap.true(words in done.stdout + done.stderr, f"{name}: {done}")


@tap.test("the notes' programs are there under their names, in the build's folder and where they are installed")
def _(folder):
    check_programs(BUILD)
    install(f"{folder}/root")
    check_programs(os.path.dirname(subprocess.run(["find", f"{folder}/root", "-path", "*/bin/queue_finder"], check=True, capture_output=True, text=True).stdout))


@tap.test("the libraries find each other from the folder they lie in, in the build's and where they are installed")
def _(folder):
    need_plain()
    env = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    for where in (BUILD, os.path.dirname(install(f"{folder}/root"))):
        for name in ("libgpreempt_poc.so", "libgpreempt_poc_v2.so"):
            done = subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL('./{name}')"], cwd=where, env=env, capture_output=True,
                                  text=True, check=False)
            tap.same((done.returncode, done.stderr), (0, ""), f"{where}/{name}")


tap.main()
