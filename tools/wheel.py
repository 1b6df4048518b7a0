#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""wheel.py ARCHIVE DIR: make DIR/gpreempt-VERSION-py3-none-manylinux_2_28_x86_64.whl from the archive that `make dist` made.

The package and the notes' modules, with libgpreempt and the notes' two libraries beside them. The same archive gives the same bytes.
"""

import base64
import hashlib
import os
import re
import sys
import tarfile
import zipfile

TAG = "py3-none-manylinux_2_28_x86_64"
MODULES = "share/gpreempt/python/"
LIBRARY = re.compile(r"lib/(libgpreempt(?:_poc(?:_v2)?)?\.so\.\d+)\.\d+\.\d+")
NEEDED = ("__init__.py", "libgpreempt.so.0", "libgpreempt_poc.so.0", "libgpreempt_poc_v2.so.0")
LICENCE = "share/doc/gpreempt/LICENSE"

METADATA = """Metadata-Version: 2.1
Name: gpreempt
Version: {version}
Summary: Latency-critical GPU work takes the GPU from best-effort work and gives it back
License: MIT
Requires-Python: >=3.6
Description-Content-Type: text/markdown
Classifier: Operating System :: POSIX :: Linux

{description}"""

WHEEL = """Wheel-Version: 1.0
Generator: gpreempt
Root-Is-Purelib: false
Tag: {tag}
"""


def read(path):
    """The archive's files, by their paths below its folder."""
    with tarfile.open(path) as archive:
        members = [member for member in archive if member.isfile()]
        return {member.name.partition("/")[2]: archive.extractfile(member).read() for member in members}


def place(path):
    """Where a file of the archive goes, or None."""
    if path.startswith(MODULES):
        return path[len(MODULES):]
    library = LIBRARY.fullmatch(path)
    return "gpreempt/" + library.group(1) if library else None


def recorded(path, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return "{},sha256={},{}\n".format(path, digest, len(data))


def contents(files):
    version = files["VERSION"].decode().strip()
    info = "gpreempt-{}.dist-info/".format(version)
    description = files["share/doc/gpreempt/docs/PYTHON.md"].decode()
    made = {place(path): data for path, data in files.items() if place(path)}
    missing = [name for name in NEEDED if "gpreempt/" + name not in made]
    if missing:
        sys.exit("wheel.py: there is no {} in it: take the archive of make dist".format(" and no ".join(missing)))
    made[info + "LICENSE"] = files[LICENCE]
    made[info + "METADATA"] = METADATA.format(version=version, description=description).encode()
    made[info + "WHEEL"] = WHEEL.format(tag=TAG).encode()
    record = "".join(recorded(path, made[path]) for path in sorted(made))
    made[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    return version, made


def write(path, made):
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in sorted(made, key=lambda name: (".dist-info/" in name, name)):  # the record comes last, as pip wants it
            entry = zipfile.ZipInfo(name)  # of 1980: no time of today's in it
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if ".so" in name else 0o100644) << 16
            wheel.writestr(entry, made[name])
    os.rename(path + ".new", path)


def main():
    if len(sys.argv) != 3:
        print("usage: wheel.py ARCHIVE DIR", file=sys.stderr)
        sys.exit(2)
    archive, folder = sys.argv[1:]
    if not re.search(r"gpreempt-[^/]*-x86_64\.tar\.xz$", archive) or not os.path.isfile(archive):
        sys.exit("wheel.py: {} is no archive of make dist; that is build/dist/gpreempt-VERSION-x86_64.tar.xz".format(archive))
    version, made = contents(read(archive))
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "gpreempt-{}-{}.whl".format(version, TAG))
    write(path, made)
    print(path)


main()
