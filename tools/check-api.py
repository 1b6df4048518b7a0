#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check-api.py ROOT LIBRARY VERSION: declared = mapped = exported = has a man page, and one version everywhere.

ROOT holds include/, src/lib/libgpreempt.map and man/; LIBRARY is the built .so;
VERSION is the build's. Prints each mismatch, exits 1 if there is one.
"""

import os
import re
import subprocess
import sys

HEADER = "include/gpreempt/gpreempt.h"
MAP = "src/lib/libgpreempt.map"


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def declared(header):
    text = without_comments(header)
    text = re.sub(r"^\s*#.*(?:\\\n.*)*", "", text, flags=re.MULTILINE)
    return set(re.findall(r"\bGP_API\b[^;(]*?(\w+)\s*\(", text))


def mapped(text):
    """{symbol: node} of a version script, and its nodes in order."""
    text = re.sub(r"#.*", "", without_comments(text))
    symbols = {}
    nodes = []
    for node, body in re.findall(r"(\w[\w.]*)\s*\{(.*?)\}", text, re.DOTALL):
        nodes.append(node)
        public = re.sub(r"\blocal\s*:.*?(?=\bglobal\s*:|$)", "", body, flags=re.DOTALL)
        for symbol in re.findall(r"([\w*]+)\s*;", public):
            symbols[symbol] = node
    return symbols, nodes


def exported(library):
    """{symbol: version} that the dynamic linker sees."""
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
    symbols = {}
    for line in out.stdout.splitlines():
        name, _, version = line.split()[-1].partition("@")
        if line.split()[-2] != "A":
            symbols[name] = version.lstrip("@")
    return symbols


def header_version(header):
    parts = [re.search(rf"#define GP_VERSION_{part} (\d+)", header) for part in ("MAJOR", "MINOR")]
    return ".".join(part[1] if part else "?" for part in parts)


def missing(names, have, what):
    return [f"{name}: {what}" for name in sorted(set(names) - set(have))]


def check(root, library, version):
    header = read(root, HEADER)
    functions = declared(header)
    symbols, nodes = mapped(read(root, MAP))
    exports = exported(library)
    wrong = []
    if not functions:
        wrong.append(f"{HEADER}: declares nothing with GP_API")
    wrong += missing(functions, symbols, f"declared in {HEADER}, not in {MAP}")
    wrong += missing(symbols, functions, f"in {MAP}, not declared with GP_API in {HEADER}")
    wrong += missing(symbols, exports, f"in {MAP}, not exported by {os.path.basename(library)}")
    wrong += missing(exports, symbols, f"exported by {os.path.basename(library)}, not in {MAP}")
    for name in sorted(set(exports) & set(symbols)):
        if exports[name] != symbols[name]:
            wrong.append(f"{name}: exported as {exports[name] or 'no version'}, mapped as {symbols[name]}")
    for name in sorted(functions):
        if not os.path.exists(os.path.join(root, "man", f"{name}.3")):
            wrong.append(f"{name}: declared in {HEADER}, has no man/{name}.3")
    short = header_version(header)
    if not nodes or nodes[-1] != f"GPREEMPT_{short}":
        wrong.append(f"{MAP}: newest node is {nodes[-1] if nodes else 'none'}, the header says {short}")
    if ".".join(version.split(".")[:2]) != short:
        wrong.append(f"meson.build: version is {version}, the header says {short}")
    return wrong


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: check-api.py ROOT LIBRARY VERSION")
    try:
        wrong = check(*sys.argv[1:])
    except FileNotFoundError as error:
        wrong = [f"{error.filename}: {error.strerror}"]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


main()
