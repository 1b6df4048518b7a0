#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""presets.py OUT.c FILE.ini...: device files as C, for a library that reads no files.

The keys are those of GPM_DEVICE_KEYS in src/model/device.h, no more and no
fewer, and each value must be within the bounds given there.
"""

import os
import re
import sys

HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../src/model/device.h")
SHARING = {"concurrent": 0, "timeslice": 1}


class Wrong(Exception):
    """What is wrong with a file, as the line to print."""


def c_integer(text):
    """The few forms that bounds take: 64, 1ull << 40."""
    match = re.fullmatch(r"(\d+)u?l*(?:\s*<<\s*(\d+))?", text.strip(), re.IGNORECASE)
    if not match:
        raise Wrong(f"presets.py: bound {text!r} is not an integer or a shift of one")
    return int(match[1]) << int(match[2] or 0)


def known_keys(header):
    with open(header, encoding="utf-8") as file:
        text = file.read()
    macro = re.search(r"#define GPM_DEVICE_KEYS\(X\)(.*?[^\\])\n", text, re.DOTALL)
    found = re.findall(r"\bX\((\w+), ([^,]+), ([^)]+)\)", macro[1]) if macro else []
    if not found:
        raise Wrong(f"{header}: GPM_DEVICE_KEYS is not there")
    return {key: (c_integer(low), c_integer(high)) for key, low, high in found}


def value_of(where, key, text, bounds):
    if key == "sharing":
        if text not in SHARING:
            raise Wrong(f"{where}: sharing is {text!r}; write concurrent or timeslice")
        return SHARING[text]
    if not re.fullmatch(r"\d+", text):
        raise Wrong(f"{where}: {key} is {text!r}; write a whole number")
    low, high = bounds
    if not low <= int(text) <= high:
        raise Wrong(f"{where}: {key} is {text}; write {low} to {high}")
    return int(text)


def pairs(path):
    """(line number, key, value) of section [device]."""
    section = None
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = re.sub(r"^\s*#.*|(^|\s);.*", "", line).strip()
            if not line:
                continue
            if line.startswith("["):
                section = line
                if section != "[device]":
                    raise Wrong(f"{path}:{number}: section {section}; only [device] is known")
                continue
            key, equals, value = (part.strip() for part in line.partition("="))
            if not equals or section is None:
                raise Wrong(f"{path}:{number}: {line!r}; write KEY = VALUE below [device]")
            yield number, key, value


def read_device(path, keys):
    values = {}
    last = 0
    for last, key, text in pairs(path):
        where = f"{path}:{last}"
        if key in values:
            raise Wrong(f"{where}: {key} is given twice")
        if key == "title":
            values[key] = text
        elif key in keys:
            values[key] = value_of(where, key, text, keys[key])
        else:
            raise Wrong(f"{where}: unknown key {key}")
    for key in ["title", *keys]:
        if key not in values:
            raise Wrong(f"{path}:{last}: {key} is missing")
    return values


def c_entry(path, values):
    name = os.path.splitext(os.path.basename(path))[0]
    title = values["title"].replace("\\", "\\\\").replace('"', '\\"')
    fields = "".join(f"\t\t\t.{key} = {value}ull,\n" for key, value in values.items() if key != "title")
    return f'\t{{\n\t\t.name = "{name}",\n\t\t.title = "{title}",\n\t\t.device = {{\n{fields}\t\t}},\n\t}},\n'


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: presets.py OUT.c FILE.ini...")
    try:
        keys = known_keys(HEADER)
        entries = [c_entry(path, read_device(path, keys)) for path in sys.argv[2:]]
    except (Wrong, UnicodeDecodeError) as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"presets.py: {error.filename}: {error.strerror}")
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write('/* Made by tools/presets.py. */\n#include "backend/sim/presets.h"\n\n')
        file.write("const struct gp_preset gp_presets[] = {\n" + "".join(entries) + "};\n\n")
        file.write("const size_t gp_npresets = sizeof(gp_presets) / sizeof(gp_presets[0]);\n")


main()
