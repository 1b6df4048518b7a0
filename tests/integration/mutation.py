#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tools/mutants.py: the changes that it makes, and those that it leaves out."""

import glob
import os
import sys

import tap

sys.path.append(os.path.join(tap.SOURCE, "tools"))
import mutants
import mutate

CODE = r"""
#include <a.h>
#define GUARD
#define MOST 16u /* of them */

/* if (a < b) return c; */
static int first(struct one *a, int b)
{
	const char *text = "if (x < y) z();";

	if (a && !strcmp(text, "&&"))
		call(a->b,
		     '!');
	if (b != 3)
		return b + 1;
	else
		a->ops->end(a);
	for (int i = 0; i < b; i++)
		r = call(i) << 1;
	return 0;
}

int *second(
	void)
{
	if (!p)
		return -ENOMEM;
	free(p);
	gp_log("said");
}
"""

WANT = {
    ("MOST", "#define MOST 16u /* of them */", "#define MOST 0 /* of them */"),
    ("MOST", "#define MOST 16u /* of them */", "#define MOST 123456789 /* of them */"),
    ("first", 'if (a && !strcmp(text, "&&"))', 'if (!(a && !strcmp(text, "&&")))'),
    ("first", 'if (a && !strcmp(text, "&&"))', 'if (a || !strcmp(text, "&&"))'),
    ("first", 'if (a && !strcmp(text, "&&"))', 'if (a && strcmp(text, "&&"))'),
    ("first", "call(a->b, '!');", ";"),
    ("first", "if (b != 3)", "if (b == 3)"),
    ("first", "return b + 1;", "return b - 1;"),
    ("first", "return b + 1;", "return 0;"),
    ("first", "a->ops->end(a);", ";"),
    ("first", "for (int i = 0; i < b; i++)", "for (int i = 0; i <= b; i++)"),
    ("second", "if (!p)", "if (p)"),
}


@tap.test("of a file each place is changed in each way once; comments, strings and what no test can see are left alone")
def _(folder):
    found = mutate.mutants("src/x/x.c", CODE)
    tap.same({(mutant.function or "MOST", mutant.was, mutant.now) for mutant in found}, WANT, "mutants")
    tap.same(len(found), len(WANT), "how many")
    tap.same([mutant.start for mutant in found], sorted(mutant.start for mutant in found), "order")
    for mutant in found:
        tap.same(CODE.splitlines()[mutant.line - 1].strip().split("(")[0], mutant.was.split("(")[0], "the line it names")
        tap.same(len(mutant.apply(CODE)), len(CODE) + len(mutant.new) - (mutant.end - mutant.start), "the change")


@tap.test("a header has no code, only constants")
def _(folder):
    tap.same(len(mutate.mutants("src/x/x.h", CODE)), 2, "mutants")


@tap.test("what is accepted has a reason, and is a mutant of the tree as it is")
def _(folder):
    there = set()
    for path in glob.glob(f"{tap.SOURCE}/src/**/*.[ch]", recursive=True):
        there |= {mutant.name() for mutant in mutate.mutants(os.path.relpath(path, tap.SOURCE), tap.read(path))}
    tap.same(sorted(set(mutants.accepted()) - there), [], "accepted, and not there")
    mutants.ACCEPTED = tap.write(f"{folder}/accepted", "# a comment\n\nsrc/x.c: f: a -> b\n")
    try:
        mutants.accepted()
    except mutants.Failed as why:
        tap.true("no reason" in str(why) and "src/x.c: f: a -> b" in str(why), why)
    else:
        raise AssertionError("it is taken without a reason")


@tap.test("every folder of src has its tests named, and those are there but for what is to come")
def _(folder):
    layers = {f"src/{name}" for name in os.listdir(f"{tap.SOURCE}/src") if os.path.isdir(f"{tap.SOURCE}/src/{name}")}
    tap.same(set(mutants.TESTS), layers, "folders")
    for units, scripts in mutants.TESTS.values():
        for name in units:
            tap.true(os.path.exists(f"{tap.SOURCE}/tests/unit/test_{name}.c"), name)
        tap.true(not scripts or os.path.exists(f"{tap.SOURCE}/tests/integration/{scripts[0]}"), scripts)


tap.main()
