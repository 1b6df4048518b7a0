#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kernel/apply.sh puts a series of patches into a source tree, all of it or nothing, and takes it out again."""

import os
import subprocess

import tap

SCRIPT = os.path.join(tap.SOURCE, "kernel", "apply.sh")
DRIVER = "drivers/gpu/drm/amd"
LINES = [f"line {i}\n" for i in range(1, 31)]

FIRST = f"""From 0 Mon Sep 17 00:00:00 2001
Subject: [PATCH 1/2] change a file and add one

---
diff --git a/{DRIVER}/amdkfd/old.c b/{DRIVER}/amdkfd/old.c
--- a/{DRIVER}/amdkfd/old.c
+++ b/{DRIVER}/amdkfd/old.c
@@ -4,5 +4,5 @@
 line 4
 line 5
-line 6
+line six
 line 7
 line 8
diff --git a/{DRIVER}/amdkfd/new.c b/{DRIVER}/amdkfd/new.c
new file mode 100644
--- /dev/null
+++ b/{DRIVER}/amdkfd/new.c
@@ -0,0 +1 @@
+new
"""

SECOND = f"""From 0 Mon Sep 17 00:00:00 2001
Subject: [PATCH 2/2] change it again, and the header, and say so

---
diff --git a/Documentation/gpu/kfd.rst b/Documentation/gpu/kfd.rst
--- a/Documentation/gpu/kfd.rst
+++ b/Documentation/gpu/kfd.rst
@@ -1 +1 @@
-text
+more text
diff --git a/{DRIVER}/amdkfd/old.c b/{DRIVER}/amdkfd/old.c
--- a/{DRIVER}/amdkfd/old.c
+++ b/{DRIVER}/amdkfd/old.c
@@ -24,5 +24,5 @@
 line 24
 line 25
-line 26
+line twenty-six
 line 27
 line 28
diff --git a/include/uapi/linux/kfd_ioctl.h b/include/uapi/linux/kfd_ioctl.h
--- a/include/uapi/linux/kfd_ioctl.h
+++ b/include/uapi/linux/kfd_ioctl.h
@@ -1 +1,2 @@
 header
+more
"""


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    tap.write(path, text)


def contents(tree):
    return {os.path.relpath(os.path.join(folder, name), tree): tap.read(folder, name)
            for folder, _, names in os.walk(tree) for name in names}


class Tree:
    def __init__(self, folder, driver=DRIVER, lines=LINES):
        self.path, self.driver = f"{folder}/tree", driver
        self.series = f"{folder}/series"
        put(f"{self.series}/0000-cover-letter.patch", "not a patch\n")
        put(f"{self.series}/0001-first.patch", FIRST)
        put(f"{self.series}/0002-second.patch", SECOND)
        put(f"{self.path}/{driver}/amdkfd/old.c", "".join(lines))
        put(f"{self.path}/include/uapi/linux/kfd_ioctl.h", "header\n")
        self.before = contents(self.path)

    def run(self, *words):
        return subprocess.run([SCRIPT, *words, self.path], env=dict(os.environ, GPREEMPT_SERIES=self.series), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def good(self, *words):
        done = self.run(*words)
        tap.same((done.returncode, done.stderr), (0, ""), f"apply.sh {words}")
        return done.stdout

    def refused(self, *words):
        before = contents(self.path)
        done = self.run(*words)
        tap.same(done.returncode, 1, "exit status")
        tap.same(contents(self.path), before, "the tree")
        return done.stdout + done.stderr

    def has_series(self):
        old, new = self.read("old.c"), self.read("new.c")
        tap.same(old, "".join(LINES).replace("line 6\n", "line six\n").replace("line 26\n", "line twenty-six\n"), "old.c")
        tap.same((new, tap.read(self.path, "include/uapi/linux/kfd_ioctl.h")), ("new\n", "header\nmore\n"), "what else it changes")

    def read(self, name):
        return tap.read(self.path, self.driver, "amdkfd", name)


@tap.test("into a kernel's source, and into a driver package's, and out again: then everything is as it was")
def _(folder):
    for driver in (DRIVER, "amd"):
        tree = Tree(f"{folder}/{os.path.basename(driver)}-{len(driver)}", driver)
        said = tree.good()
        tap.true("0001-first: fits, 0 of 2 hunks elsewhere" in said and "0002-second: fits, 0 of 2 hunks" in said, said)
        tree.has_series()
        tap.true(not os.path.exists(f"{tree.path}/Documentation"), "documentation is no part of the driver")
        tree.good("--reverse")
        tap.same(contents(tree.path), tree.before, "the tree")


@tap.test("where lines have moved the hunks are found, and it is said how many")
def _(folder):
    tree = Tree(folder, lines=["another\n", *LINES])
    tap.true("0001-first: fits, 1 of 2 hunks elsewhere" in tree.good("--check"), "what it says")
    tree.good()
    tap.true("line six\n" in tree.read("old.c") and tree.read("old.c").startswith("another\n"), tree.read("old.c"))


@tap.test("--check changes nothing")
def _(folder):
    tree = Tree(folder)
    tree.good("--check")
    tap.same(contents(tree.path), tree.before, "the tree")


@tap.test("if one hunk of the last patch does not fit, nothing is changed, and file and hunk are named")
def _(folder):
    tree = Tree(folder, lines=[line.replace("26", "other") for line in LINES])
    for words in ((), ("--check",)):
        said = tree.refused(*words)
        tap.true("0001-first: fits" in said and "0002-second: DOES NOT FIT" in said, said)
        tap.true("old.c" in said and "Hunk #1 FAILED" in said and "Nothing was changed" in said, said)


@tap.test("a hunk whose lines around are others does not fit, though what it changes is there")
def _(folder):
    tree = Tree(folder, lines=[line.replace("line 4\n", "other\n") for line in LINES])
    tap.true("0001-first: DOES NOT FIT" in tree.refused(), "what is said")


@tap.test("where putting it in was interrupted, at any file, it is taken out all the same")
def _(folder):
    tree = Tree(folder)
    tree.good()
    after = contents(tree.path)
    for name in sorted(name for name in after if not name.startswith(".gpreempt-series")):
        if name in tree.before:
            put(f"{tree.path}/{name}", tree.before[name])
        else:
            os.unlink(f"{tree.path}/{name}")
        tree.good("--reverse")
        tap.same(contents(tree.path), tree.before, f"the tree, without {name}")
        tree.good()
        tap.same(contents(tree.path), after, "the tree with it")


@tap.test("the copy that an interrupted put leaves goes with the series, and other files of that kind stay")
def _(folder):
    tree = Tree(folder)
    put(f"{tree.path}/{DRIVER}/amdkfd/mine.c.gpreempt", "mine\n")
    tree.before = contents(tree.path)
    tree.good()
    for name in ("old.c", "new.c"):
        put(f"{tree.path}/{DRIVER}/amdkfd/{name}.gpreempt", "half")
    tree.good("--reverse")
    tap.same(contents(tree.path), tree.before, "the tree")


@tap.test("what --reverse goes by is there before the first file changes")
def _(folder):
    tree = Tree(folder)
    stuck = f"{tree.path}/{DRIVER}/amdkfd/old.c.gpreempt"
    os.makedirs(f"{stuck}/old.c")  # it cannot be put in place
    done = tree.run()
    tap.true(done.returncode != 0 and os.path.exists(f"{tree.path}/.gpreempt-series/after"), f"{done.returncode}: {done.stderr}")
    for path, _, names in os.walk(stuck, topdown=False):
        for name in names:
            os.unlink(os.path.join(path, name))
        os.rmdir(path)
    tree.good("--reverse")
    tap.same(contents(tree.path), tree.before, "the tree")


@tap.test("a second time is refused, and so is taking out what is not there")
def _(folder):
    tree = Tree(folder)
    tap.true("there is no series in" in tree.refused("--reverse"), "what is said")
    tree.good()
    tap.true("--reverse" in tree.refused(), "what is said")
    tree.has_series()


@tap.test("what was changed since is not taken out, and it is said which file")
def _(folder):
    tree = Tree(folder)
    tree.good()
    put(f"{tree.path}/{DRIVER}/amdkfd/new.c", "mine\n")
    tap.true("amdkfd/new.c" in tree.refused("--reverse"), "which file")
    put(f"{tree.path}/{DRIVER}/amdkfd/new.c", "new\n")
    tree.good("--reverse")
    tap.same(contents(tree.path), tree.before, "the tree")


@tap.test("what is no such tree, no folder, or no series is said; bad words are usage")
def _(folder):
    tree = Tree(folder)
    os.makedirs(f"{folder}/empty")
    for path, words in ((f"{folder}/empty", "neither a kernel's source nor a driver package's"), (f"{folder}/none", "is no folder")):
        tree.path = path
        done = tree.run()
        tap.true(done.returncode == 1 and words in done.stderr, done.stderr)
    done = tree.run("--force")
    tap.true(done.returncode == 2 and done.stderr.startswith("usage:"), done.stderr)
    tree = Tree(f"{folder}/other")
    tree.series = f"{folder}/empty"
    tap.true("there is no series in" in tree.refused(), "what is said")


tap.main(jobs=4)
