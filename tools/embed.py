#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""embed.py OUT.c KIND/NAME=PATH...: put files into the program, as strings.

Each becomes gp_embed_KIND_NAME[], with everything but letters and digits
turned into _, and gp_embeds[] lists them all. study/embed.h declares the table.
"""

import re
import sys


def c_escape(byte):
    """One byte inside a C string; octal, because a hex escape would swallow the digits after it."""
    plain = {0x0A: r"\n", 0x09: r"\t", 0x22: r"\"", 0x5C: r"\\", 0x3F: r"\?"}
    if byte in plain:
        return plain[byte]
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def c_string(data):
    lines = data.split(b"\n")
    texts = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    return "\n".join('\t"' + "".join(map(c_escape, text)) + '"' for text in texts) or '\t""'


def identifier(name):
    return "gp_embed_" + re.sub(r"\W", "_", name)


def embed(files):
    out = ['/* Made by tools/embed.py. */\n#include "study/embed.h"\n']
    for name, path in files:
        with open(path, "rb") as file:
            out.append(f"const char {identifier(name)}[] =\n{c_string(file.read())};\n")
    out.append("const struct gp_embed gp_embeds[] = {")
    for name, _ in files:
        ident = identifier(name)
        kind, own_name = name.split("/", 1)
        out.append(f'\t{{ "{kind}", "{own_name}", {ident}, sizeof({ident}) - 1 }},')
    out.append("};\n\nconst size_t gp_nembeds = sizeof(gp_embeds) / sizeof(gp_embeds[0]);")
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) < 3 or not all(re.match(r"\w+/[^/=]+=", arg) for arg in sys.argv[2:]):
        sys.exit("usage: embed.py OUT.c KIND/NAME=PATH...")
    files = [arg.split("=", 1) for arg in sys.argv[2:]]
    if len({identifier(name) for name, _ in files}) != len(files):
        sys.exit("embed.py: two files of one name")
    try:
        text = embed(files)
    except OSError as error:
        sys.exit(f"embed.py: {error.filename}: {error.strerror}")
    with open(sys.argv[1], "w", encoding="ascii") as file:
        file.write(text)


main()
