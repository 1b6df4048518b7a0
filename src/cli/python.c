// SPDX-License-Identifier: MIT
#include "cli/python.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/owned.h"
#include "cli/near.h"
#include "cli/options.h"

/*
 * The package in place of the folder we are in, where anybody may have put a module: before any import but
 * those of what is in the interpreter.  Until main() has its own way, Ctrl-C just ends it: no traceback.
 */
static const char start[] =
	"import sys, _signal; sys.path = [sys.argv.pop(1)] + [path for path in sys.path if path]; "
	"_signal.getsignal(2) == _signal.SIG_IGN or _signal.signal(2, _signal.SIG_DFL); "
	"import importlib; "
	"sys.exit(importlib.import_module(sys.argv.pop(1)).main(sys.argv[1:]))";

/* Below the folder that the program is in: of an installation, and of a build. */
static const char *const places[] = { "../share/gpreempt/python", "../python", "../../python" };

static bool find_package(char path[PATH_MAX])
{
	char file[64];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(file, sizeof(file), "%s/gpreempt/__init__.py", places[i]);
		if (gp_near_find(file, path)) {
			path[strlen(path) - strlen("/gpreempt/__init__.py")] = '\0';
			return true;
		}
	}
	return gp_owned_path(GPREEMPT_DATADIR "/gpreempt/python", path) == 0;
}

/* What Python finds us and, in a build, the library by. */
static int set_environment(const char *program)
{
	char library[PATH_MAX];

	if (setenv("GPREEMPT_PROGRAM", program, 1) < 0)
		return -errno;
	if (gp_near_find("libgpreempt.so.0", library) && setenv("GPREEMPT_LIBRARY", library, 0) < 0)
		return -errno;
	return 0;
}

static size_t count(char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

static int become(const char *module, const char *package, char *const *words)
{
	const char *first[] = { "python3", "-B", "-c", start, package, module };
	const size_t more = count(words) + 1; /* with the end */
	const char *all[sizeof(first) / sizeof(first[0]) + more];

	memcpy(all, first, sizeof(first));
	memcpy((char *)all + sizeof(first), words, more * sizeof(*words));
	execvp(all[0], (char *const *)all);
	if (errno == ENOENT)
		return gp_fail(
			GP_EXIT_FAILED,
			"this verb needs Python 3.6 or newer, and there is no python3 in PATH; install it");
	return gp_fail(GP_EXIT_FAILED, "python3 cannot be executed: %s", strerror(errno));
}

int gp_python_run(const char *module, char *const *words)
{
	char program[PATH_MAX], package[PATH_MAX];
	int r;

	r = gp_near_self(program);
	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, "/proc/self/exe: %s", strerror(-r));
	if (!find_package(package))
		return gp_fail(GP_EXIT_FAILED,
			       "the Python package gpreempt is not in ../share/gpreempt/python beside this "
			       "program's folder, or others can write there; install gpreempt whole");
	r = set_environment(program);
	return r < 0 ? gp_fail(GP_EXIT_FAILED, "cannot set the environment: %s", strerror(-r))
		     : become(module, package, words);
}
