// SPDX-License-Identifier: MIT
/* Policies from files, and beside those that are built in. */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/load.h"
#include "policy/registry.h"

static char why[256];

static int load(const char *path, const struct gp_policy_ops **ret)
{
	*ret = NULL;
	why[0] = '\0';
	return gp_policy_load(path, ret, why, sizeof(why));
}

/* tests/unit/mine.c, built that way. */
static int load_built(const char *name, const struct gp_policy_ops **ret)
{
	char path[PATH_MAX];

	assert_non_null(getenv("GPREEMPT_BUILD"));
	snprintf(path, sizeof(path), "%s/tests/%s.so", getenv("GPREEMPT_BUILD"), name);
	return load(path, ret);
}

static void assert_refused(const char *name, int status, const char *said)
{
	const struct gp_policy_ops *ops;

	assert_int_equal(load_built(name, &ops), status);
	assert_null(ops);
	assert_non_null(strstr(why, said));
}

static void a_policys_file_is_loaded_and_stays(void **state)
{
	const struct gp_policy_ops *ops, *again;

	(void)state;
	assert_int_equal(load_built("mine", &ops), 0);
	assert_string_equal(ops->name, "mine");
	assert_int_equal(load_built("mine", &again), 0);
	assert_ptr_equal(ops, again);
}

static void what_is_wrong_with_a_file_is_said_with_what_to_do(void **state)
{
	(void)state;
	assert_refused("mine-no-table", -ENOENT, "no gp_policy");
	assert_refused("mine-no-size", -EINVAL, "0 bytes; write .size");
	assert_refused("mine-abi", -EPROTO, "build it with this one's policy.h");
	assert_refused("mine-no-name", -EINVAL, "write .name");
	assert_refused("mine-empty-name", -EINVAL, "write .name");
	assert_refused("mine-not-there", -ENOENT, "give a policy's shared object");
}

/* The path is the caller's to show: it is not said twice. */
static void a_file_that_is_no_shared_object_is_told_from_a_missing_one(void **state)
{
	char path[] = "/tmp/gpreempt-load-XXXXXX";
	const struct gp_policy_ops *ops;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "text", 4), 4);
	close(fd);
	assert_int_equal(load(path, &ops), -ENOEXEC);
	unlink(path);
	assert_non_null(strstr(why, "cc -shared"));
	assert_null(strstr(why, path));
}

static void a_name_without_a_slash_is_a_file_here_and_no_library(void **state)
{
	char here[PATH_MAX], longest[PATH_MAX + 8];
	const struct gp_policy_ops *ops;

	(void)state;
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(load("libc.so.6", &ops), -ENOENT);
	assert_int_equal(chdir(getenv("GPREEMPT_BUILD")) || chdir("tests"), 0);
	assert_int_equal(load("mine.so", &ops), 0);
	assert_int_equal(chdir(here), 0);
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(load(longest, &ops), -ENAMETOOLONG);
}

static void a_policy_is_added_once_and_never_in_the_place_of_another(void **state)
{
	static const struct gp_policy_ops added = { .name = "added" }, same_name = { .name = "added" },
					  fifo = { .name = "fifo" };
	char names[128];

	(void)state;
	assert_int_equal(gp_policy_add(&added), 0);
	assert_int_equal(gp_policy_add(&added), 0);
	assert_int_equal(gp_policy_add(&same_name), -EEXIST);
	assert_int_equal(gp_policy_add(&fifo), -EEXIST);
	assert_ptr_equal(gp_policy_find("added"), &added);
	gp_policy_names(names, sizeof(names));
	assert_string_equal(names, "fifo priority fair deadline added");
	assert_true(gp_policy_is_built_in(&gp_policy_fair));
	assert_false(gp_policy_is_built_in(&added));
	assert_false(gp_policy_is_built_in(&fifo));
}

/* "added" of the test before is there. */
static void there_is_room_for_eight_policies_more(void **state)
{
	static const struct gp_policy_ops more[] = { { .name = "2" }, { .name = "3" }, { .name = "4" },
						     { .name = "5" }, { .name = "6" }, { .name = "7" },
						     { .name = "8" }, { .name = "9" } };

	(void)state;
	for (int i = 0; i < 7; i++)
		assert_int_equal(gp_policy_add(&more[i]), 0);
	assert_int_equal(gp_policy_add(&more[7]), -ENOSPC);
	assert_ptr_equal(gp_policy_find("8"), &more[6]);
	assert_null(gp_policy_find("9"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_policys_file_is_loaded_and_stays),
		cmocka_unit_test(what_is_wrong_with_a_file_is_said_with_what_to_do),
		cmocka_unit_test(a_file_that_is_no_shared_object_is_told_from_a_missing_one),
		cmocka_unit_test(a_name_without_a_slash_is_a_file_here_and_no_library),
		cmocka_unit_test(a_policy_is_added_once_and_never_in_the_place_of_another),
		cmocka_unit_test(there_is_room_for_eight_policies_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
