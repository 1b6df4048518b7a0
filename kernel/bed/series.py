# SPDX-License-Identifier: GPL-2.0
"""The series as commits: a git tree of the base, and its way there and back."""

import os
import re
import subprocess
import tarfile

import bed

# What somebody who works on the series reads and changes.
WIDE = (f"{bed.AMD}/", "include/uapi/", "Documentation/gpu/", "Documentation/ABI/", "scripts/", "MAINTAINERS")
# Numbers and dates of the moment are left out: a patch that did not change is the same file.
FORMAT = ["format-patch", "--zero-commit", "--no-signature", "--no-numbered", "--full-index", "-q"]


def git(tree, *words):
    """Whoever calls need not be known to git."""
    command = ["git", "-C", tree, "-c", "gc.auto=0", *words]
    names = {"GIT_COMMITTER_NAME": "series", "GIT_COMMITTER_EMAIL": "series@localhost"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**names, **os.environ})
    if done.returncode:
        raise bed.Failed(f"{done.stdout}{done.stderr}git {words[0]} failed in {tree}")
    return done.stdout


def unpack(folder, is_wanted):
    """Of the base, the files whose names are wanted."""
    with tarfile.open(bed.tarball(), "r|xz") as archive:
        for member in archive:
            name = member.name.partition("/")[2]
            if member.isfile() and is_wanted(name):
                member.name = name
                archive.extract(member, folder)


def base_tree(folder, is_wanted):
    """A git tree with one commit, tagged base."""
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        raise bed.Failed(f"{folder} is not empty.")
    unpack(folder, is_wanted)
    git(folder, "init", "-q", "-b", "series")
    git(folder, "add", "-A", "-f")
    git(folder, "-c", "user.name=series", "-c", "user.email=series@localhost",
        "commit", "-q", "-m", f"{bed.base('package')} {bed.base('version')}")
    git(folder, "tag", "base")


def write_back(tree):
    """kernel/series becomes what the commits are."""
    for name in os.listdir(bed.SERIES) if os.path.isdir(bed.SERIES) else []:
        if name.endswith(".patch") and not name.startswith("0000-"):
            os.unlink(os.path.join(bed.SERIES, name))
    git(tree, *FORMAT, "-o", bed.SERIES, "base")
    write_cover(tree, os.path.join(bed.SERIES, "0000-cover-letter.patch"))


def write_cover(tree, path):
    """How many patches there are and what they change, at its end; the words are written by hand."""
    number = git(tree, "rev-list", "--count", "base..HEAD").strip()
    words = re.sub(r"^(Subject: \[PATCH 0+/)\d+", rf"\g<1>{number}", bed.read(path).partition("\n---\n")[0])
    bed.write(path, f"{words.rstrip()}\n\n---\n{git(tree, 'diff', '--stat=79', 'base', 'HEAD')}")
