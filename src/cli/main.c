// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "ini/words.h"

#define ADDRESS(name) &gp_verb_##name,
const struct gp_verb *const gp_verbs[] = { GP_EACH_VERB(ADDRESS) NULL };
#undef ADDRESS

static const struct gp_verb *find_verb(const char *name)
{
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		return &gp_verb_help;
	if (!strcmp(name, "--version"))
		return &gp_verb_version;
	for (size_t i = 0; gp_verbs[i]; i++)
		if (!strcmp(gp_verbs[i]->name, name))
			return gp_verbs[i];
	return NULL;
}

int gp_complain_verb(const char *name)
{
	char list[256] = "", near[32];
	size_t used = 0;

	for (size_t i = 0; gp_verbs[i] && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? " " : "",
					 gp_verbs[i]->name);
	if (gp_word_near(list, name, near, sizeof(near)))
		return gp_fail(GP_EXIT_BAD_INPUT, "unknown verb \"%s\"; did you mean %s?", name, near);
	return gp_fail(GP_EXIT_BAD_INPUT, "unknown verb \"%s\"; known are: %s", name, list);
}

/* The design notes' programs are verbs here, under their own names. */
static const struct gp_verb *verb_of_program(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (!strcmp(name, "queue_finder"))
		return &gp_verb_find;
	if (!strcmp(name, "test_cwsr_lv3"))
		return &gp_verb_selftest;
	if (gp_word_find("test_batch_unmap test_fast_remap test_hqd_reservation", name) >= 0)
		return &gp_verb_verify;
	return strcmp(name, "test_api_availability") ? NULL : &gp_verb_doctor;
}

/* The exit code. */
static int run(int argc, char **argv)
{
	const struct gp_verb *verb = argc ? verb_of_program(argv[0]) : NULL;

	if (verb == &gp_verb_find && argc < 2) {
		fputs(verb->usage, stderr);
		return GP_EXIT_BAD_INPUT;
	}
	if (verb)
		return verb->run(verb, argc, argv);
	if (argc < 2)
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "say what to do, as in: gpreempt demo; see gpreempt --help");
	verb = find_verb(argv[1]);
	return verb ? verb->run(verb, argc - 1, argv + 1) : gp_complain_verb(argv[1]);
}

int main(int argc, char **argv)
{
	int code = run(argc, argv);

	if (fflush(stdout) != 0 || ferror(stdout))
		return gp_fail(GP_EXIT_FAILED, "cannot write the output: %s", strerror(errno));
	return code;
}
