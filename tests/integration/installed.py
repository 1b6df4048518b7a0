#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The program and its files as meson installs them; tools/check-install.sh looks at the library."""

import glob
import json
import os
import re
import shutil
import subprocess

import tap
from preload import need_preload


def install(folder):
    meson = shutil.which("meson")
    if not meson:
        raise tap.Skip("meson is not in the path")
    subprocess.run([meson, "install", "-C", tap.BUILD, "--no-rebuild", "--destdir", folder], check=True, capture_output=True)


def find(folder, pattern):
    found = glob.glob(f"{folder}/**/{pattern}", recursive=True)
    tap.same(len(found), 1, f"{pattern} under the folder: {found}")
    return found[0]


@tap.test("installing leaves the program of the build as it is")
def _(folder):
    before = os.stat(tap.PROGRAM)
    install(folder)
    after = os.stat(tap.PROGRAM)
    tap.same((after.st_mtime_ns, after.st_size, after.st_ino), (before.st_mtime_ns, before.st_size, before.st_ino), "the program")


@tap.test("the installed program gives from the installed files what it gives from those built in")
def _(folder):
    install(folder)
    program = find(folder, "bin/gpreempt")
    args = ("--duration", "2s", "--only", "native,auto", "--json")
    files = ("sim", find(folder, "gpreempt/scenarios/e.ini"), "--device", find(folder, "gpreempt/devices/h200.ini"))
    one = json.loads(tap.good(*files, *args, program=program, cwd="/").stdout)
    other = json.loads(tap.good("sim", "E", "--device", "h200", *args).stdout)
    one["command"] = other["command"]
    tap.same(one, other, "result")


@tap.test("every built-in scenario is installed, with the same text")
def _(folder):
    install(folder)
    program = find(folder, "bin/gpreempt")
    for entry in json.loads(tap.good("sim", "--list", "--json", program=program).stdout):
        text = tap.good("sim", "--show", entry["name"], program=program).stdout
        tap.same(tap.read(find(folder, f"gpreempt/scenarios/{entry['name']}.ini")), text, entry["name"])


def python_package(folder):
    return os.path.dirname(os.path.dirname(find(folder, "gpreempt/python/gpreempt/__init__.py")))


@tap.test("the installed Python package is what stands in python/")
def _(folder):
    install(folder)
    package = python_package(folder)
    theirs = {os.path.relpath(path, package) for path in glob.glob(f"{package}/**/*.*", recursive=True)}
    source = os.path.join(tap.SOURCE, "python")
    ours = {os.path.relpath(path, source) for path in glob.glob(f"{source}/**/*.*", recursive=True) if "__pycache__" not in path}
    tap.same(theirs, ours, "files")


@tap.test("the installed Python package finds the library it was installed with")
def _(folder):
    need_preload()  # nor does Python load what is instrumented
    install(folder)
    env = {**os.environ, "PYTHONPATH": python_package(folder), "GPREEMPT_LIBRARY": "", "PYTHONDONTWRITEBYTECODE": "1"}
    code = "from gpreempt import _library; _library.library(); print(_library.candidates()[0])"
    tap.true(tap.good("-c", code, program="/usr/bin/python3", env=env).stdout.startswith(folder), "the library's place")


@tap.test("every link of the installed documents leads to a file that is installed too")
def _(folder):
    install(folder)
    documents = glob.glob(f"{folder}/**/share/doc/gpreempt/**/*.md", recursive=True)
    tap.true(len(documents) > 20, f"documents: {documents}")
    dead = []
    for document in documents:
        links = re.findall(r"\]\(([^)#\s]+)", tap.read(document))
        dead += [(os.path.relpath(document, folder), link) for link in links
                 if "://" not in link and not os.path.exists(os.path.join(os.path.dirname(document), link))]
    tap.same(dead, [], "links to nowhere")


tap.main()
