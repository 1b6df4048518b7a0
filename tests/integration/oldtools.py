#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gpreempt is built with what EL8 has: Debian 11 stands in for it, and its json-c is made to look like 0.13."""

import atexit
import contextlib
import functools
import json
import os
import re
import shutil
import subprocess
import tempfile

import tap

SUITE = "bullseye"
PACKAGES = ["gcc-9", *re.search(r'^packages="\$compiler (.*)"$', tap.read(tap.SOURCE, "tools", "dist.sh"), re.MULTILINE).group(1).split()]
ROOT_TOOL = os.path.join(tap.SOURCE, "tools", "root.sh")
SKIPPED = 77

# Since which systemd a setting is there, at the latest (its NEWS and manual pages; 0: before those say). EL8 has 239; of what is newer
# it only warns, and nothing may rely on it.
SYSTEMD = 239
SETTINGS = {
    "Description": 0, "Documentation": 0, "Before": 0, "Type": 0, "ExecStart": 0, "ExecReload": 0, "RuntimeDirectory": 211, "RuntimeDirectoryMode": 211,
    "RuntimeDirectoryPreserve": 235, "MemoryMax": 231, "TasksMax": 227, "LimitNOFILE": 0, "Nice": 0, "KillMode": 0, "TimeoutStopSec": 188,
    "WatchdogSec": 207, "Restart": 0, "RestartSec": 0, "WantedBy": 0, "Wants": 0, "StopWhenUnneeded": 0, "ListenSequentialPacket": 0,
    "SocketMode": 0, "PassCredentials": 38, "Backlog": 0, "RemoveOnStop": 214, "CapabilityBoundingSet": 0, "NoNewPrivileges": 187,
    "ProtectSystem": 232, "ReadWritePaths": 231, "ProtectHome": 214, "ProtectKernelTunables": 232, "ProtectKernelModules": 232,
    "ProtectControlGroups": 232, "PrivateNetwork": 209, "RestrictAddressFamilies": 211, "RestrictNamespaces": 233, "RestrictRealtime": 231,
    "LockPersonality": 235, "MemoryDenyWriteExecute": 231, "KeyringMode": 235, "SystemCallArchitectures": 209, "SystemCallFilter": 187,
    "SystemCallErrorNumber": 209,
}

# json-c 0.14 and 0.15 brought these (its ChangeLog); without their names nobody can use them.
SINCE_0_14 = [
    "json_object_new_uint64", "json_object_get_uint64", "json_object_set_uint64", "json_parse_uint64", "json_tokener_get_parse_end",
    "json_object_new_null", "json_object_new_array_ext", "json_object_array_shrink", "json_object_from_fd_ex",
]
JSON_0_13 = "\n".join([
    *(f"#define {name} since_0_14_{name}" for name in SINCE_0_14),
    "#include_next <json-c/json.h>",
    *(f"#undef {name}" for name in SINCE_0_14),
    "#undef JSON_C_VERSION_NUM",
    "#define JSON_C_VERSION_NUM (13 << 8)",
]) + "\n"

TRY = """
#include "study/json.h"
int main(void)
{
	struct json_object *all = json_object_new_array();
	json_object_array_add(all, json_object_new_uint64(UINT64_MAX));
	json_object_array_add(all, json_object_new_uint64(INT64_MAX));
	json_object_array_add(all, json_object_new_uint64(json_object_get_uint64(json_object_new_int64(-1))));
	gp_json_print(all);
	return 0;
}
"""

# What meson asks of them: its options and its name for the library.
INIH = {
    "meson.build": "project('inih', 'c')\ninih_dep = declare_dependency(dependencies: meson.get_compiler('c').find_library('inih'))\n",
    "meson_options.txt": "option('distro_install', type: 'boolean', value: true)\noption('with_INIReader', type: 'boolean', value: true)\n",
}

SIMULATED = ["sim", "E", "--device", "h200", "--duration", "2s", "--only", "native,auto"]


def must(*command, **more):
    done = tap.run(*command[1:], program=command[0], stderr=subprocess.STDOUT, timeout=280, **more)
    tap.same(done.returncode, 0, f"{' '.join(command)}:\n{done.stdout[-3000:]}\n")
    return done.stdout


@functools.lru_cache(maxsize=None)
def root():
    """A Debian 11 with the sources in /src, kept for the tests of this file."""
    folder = tempfile.mkdtemp(prefix="gpreempt-old-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = os.path.join(folder, "root")
    done = subprocess.run([ROOT_TOOL, SUITE, made, *PACKAGES], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == SKIPPED:
        raise tap.Skip(done.stderr.strip())
    tap.same(done.returncode, 0, f"root.sh: {done.stderr}")
    kept_out = shutil.ignore_patterns("build*", ".git", "__pycache__")
    shutil.copytree(tap.SOURCE, os.path.join(made, "src"), symlinks=True, ignore=kept_out)
    os.makedirs(os.path.join(made, "old", "json-c"))
    tap.write(os.path.join(made, "old", "json-c", "json.h"), JSON_0_13)
    return made


def inside(*command, **more):
    return must(ROOT_TOOL, "--run", root(), *command, **more)


@functools.lru_cache(maxsize=None)
def built():
    """Into /b: what ninja said."""
    inside("env", "CC=gcc-9", "CFLAGS=-I/old", "meson", "setup", "/b", "/src", "-Dwerror=true", "-Dprefix=/usr")
    return inside("ninja", "-C", "/b", "-j2")


@tap.test("meson 0.56, gcc 9 and json-c 0.13 build all of it and its tests, without a warning")
def _(_folder):
    said = built()
    tap.true("warning:" not in said and "Linking target gpreemptd" in said, said)


@tap.test("what it is linked with there has nothing of glibc that EL8's 2.28 has not")
def _(_folder):
    built()
    libraries = ["libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libjson-c.so.5", "libinih.so.1", "libncursesw.so.6", "libtinfo.so.6"]
    for name in ("gpreempt", "gpreemptd"):
        must(os.path.join(tap.SOURCE, "tools", "check-glibc.sh"), os.path.join(root(), "b", name), *libraries)


@tap.test("its unit tests pass on that Debian")
def _(_folder):
    built()
    said = inside("meson", "test", "-C", "/b", "--no-rebuild", "--suite", "unit", "--num-processes", "4")
    tap.true("Fail:               0" in said, said)


@tap.test("installed there it has its links, and simulates to the byte what it simulates here")
def _(folder):
    built()
    inside("meson", "install", "-C", "/b", "--no-rebuild")
    for name in ("queue_finder", "test_api_availability"):
        tap.same(os.readlink(f"{root()}/usr/bin/{name}"), "gpreempt", name)
    inside("gpreemptd", "--version")
    there = os.path.join(root(), "out")
    inside("gpreempt", *SIMULATED, "--out", "/out")
    tap.good(*SIMULATED, "--out", "out", cwd=folder)
    for name in ("result.json", "trace.json", "index.html"):
        tap.same(tap.read(there, name), tap.read(folder, "out", name), name)
    table = inside("gpreempt", "report", "/out").replace("/out", there)
    tap.same(table, tap.good("report", there).stdout, "table")


@tap.test("a number over INT64_MAX is written in full with json-c 0.13")
def _(_folder):
    built()
    tap.write(os.path.join(root(), "try.c"), TRY)
    inside("gcc-9", "-I/old", "-I/src/src", "/try.c", "/b/libgp-study.a", "/b/libgp-base.a", "-ljson-c", "-lm", "-o", "/try")
    tap.same(json.loads(inside("/try")), [2**64 - 1, 2**63 - 1, 0], "numbers")


@tap.test("what ran in there leaves nothing mounted and nobody running")
def _(_folder):
    inside("sh", "-c", "sleep 4711 & cat /proc/mounts")
    tap.true(root() not in tap.read("/proc/mounts"), "mounts")
    running = [name for name in os.listdir("/proc") if name.isdigit() and command_of(name) == b"sleep\x004711\x00"]
    tap.same(running, [], "processes")


def command_of(pid):
    with contextlib.suppress(OSError):
        return tap.read("/proc", pid, "cmdline", mode="rb")
    return b""


@tap.test("of a release that the archive has not, one line says so")
def _(folder):
    root()
    done = tap.run("nosuchrelease", os.path.join(folder, "root"), program=ROOT_TOOL)
    tap.same((done.returncode, done.stdout), (SKIPPED, ""), done.stderr)
    tap.same(done.stderr, "root.sh: no archive in the sources of apt has Debian's nosuchrelease\n", "line")


@tap.test("without the tests neither cmocka nor any of their programs is asked for")
def _(_folder):
    inside("sh", "-c", "mkdir /found; cp /usr/lib/x86_64-linux-gnu/pkgconfig/*.pc /found; rm /found/cmocka.pc")
    inside("env", "CC=gcc-9", "PKG_CONFIG_LIBDIR=/found", "meson", "setup", "/plain", "/src", "-Dtests=disabled")
    targets = inside("ninja", "-C", "/plain", "-t", "targets", "all")
    tap.true("\ngpreemptd:" in targets and "\ntests/" not in targets, targets)


@tap.test("where there is no inih, its sources in subprojects are taken")
def _(_folder):
    sources = os.path.join(root(), "src", "subprojects", "inih")
    os.makedirs(sources)
    for name, text in INIH.items():
        tap.write(os.path.join(sources, name), text)
    said = inside("env", "CC=gcc-9", "meson", "setup", "/fallback", "/src", "-Dtests=disabled", "--force-fallback-for=inih")
    tap.true("Executing subproject inih" in said, said)


def refused(folder, **env):
    """What meson says when it will not have the tools."""
    done = tap.run("setup", os.path.join(folder, "b"), tap.SOURCE, "-Dtests=disabled", program=shutil.which("meson"),
                   env={**os.environ, **env})
    tap.true(done.returncode != 0, done.stdout)
    return done.stdout


def pc_file(folder, name, version, flags=""):
    tap.write(os.path.join(folder, f"{name}.pc"), f"Name: {name}\nDescription: of a test\nVersion: {version}\nCflags: {flags}\nLibs:\n")
    return {"PKG_CONFIG_PATH": folder}


@tap.test("a gcc older than 8 is refused with both versions")
def _(folder):
    compiler = os.path.join(folder, "gcc-7")
    tap.write(compiler, '#!/bin/sh\ncase "$*" in *-dM*) gcc "$@" | sed "s/__GNUC__ [0-9]*/__GNUC__ 7/" ;; *) exec gcc "$@" ;; esac\n')
    os.chmod(compiler, 0o755)
    said = refused(folder, CC=compiler)
    tap.true("gcc is 7." in said and "needs 8 or later" in said, said)


@tap.test("a json-c older than 0.13 is refused with both versions")
def _(folder):
    said = refused(folder, **pc_file(folder, "json-c", "0.12.1"))
    tap.true("json-c" in said and "0.12.1" in said and ">=0.13" in said, said)


@tap.test("an inih too old to read from memory is refused with the function that it lacks")
def _(folder):
    tap.write(os.path.join(folder, "ini.h"), "int ini_parse(void);\n")
    said = refused(folder, **pc_file(folder, "inih", "10", f"-I{folder}"))
    tap.true("inih has no ini_parse_stream()" in said, said)


@tap.test("every setting of the service and of its socket is known to the systemd of EL8")
def _(_folder):
    units = "".join(tap.read(tap.SOURCE, "share", name) for name in ("gpreemptd.service.in", "gpreemptd.socket"))
    used = re.findall(r"^(\w+)=", units, re.MULTILINE)
    tap.same([name for name in used if SETTINGS.get(name, SYSTEMD + 1) > SYSTEMD], [], "not in the list, or too new")


def without_apt(folder, purpose, *programs):
    """deps.sh with only what it needs itself, and these programs, in its path."""
    for name in ("sh", "awk", "sed", "grep", "tr", *programs):
        os.symlink(shutil.which(name), os.path.join(folder, name))
    return tap.run(purpose, program=os.path.join(tap.SOURCE, "tools", "deps.sh"), env={"PATH": folder})


@tap.test("without apt, what is missing to build is told by its names on EL8, and with the repositories that have it")
def _(folder):
    done = without_apt(folder, "build", "gcc", "pkg-config")
    tap.same(done.returncode, 1, "exit status")
    command = done.stderr.splitlines()[-1].split()
    tap.same(command, ["dnf", "install", "meson", "ninja-build", "python3"], "command")
    tap.true("epel-release" in done.stderr and "powertools" in done.stderr, done.stderr)


@tap.test("without apt, what EL8 has no package for is told by Debian's name and not put into the command")
def _(folder):
    done = without_apt(folder, "check")
    tap.true("  mmdebstrap: " in done.stderr and "  libcmocka-devel: " in done.stderr, done.stderr)
    tap.true("mmdebstrap" not in done.stderr.splitlines()[-1], done.stderr)


@tap.test("without apt and with all that is needed, nothing is said")
def _(folder):
    done = without_apt(folder, "build", "gcc", "pkg-config", "meson", "ninja", "python3")
    tap.same((done.returncode, done.stdout, done.stderr), (0, "", ""), "deps.sh build")


tap.main()
