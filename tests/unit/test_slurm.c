// SPDX-License-Identifier: MIT
/* Words of plugstack.conf and of the command line, and what becomes of a comment. */
#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slurm/account.h"
#include "slurm/words.h"
#include "unit.h"

#define S 1000000000ull
#define MS 1000000ull

static char error[256];

static int read_conf(struct gp_slurm_conf *ret, const char *first, const char *second)
{
	char *words[] = { (char *)first, (char *)second };

	return gp_slurm_conf_read(second ? 2 : 1, words, ret, error, sizeof(error));
}

static void every_setting_is_read_and_others_are_named(void **state)
{
	struct gp_slurm_conf c;

	(void)state;
	assert_int_equal(read_conf(&c, "online_partitions=a,b", "online_qos=high"), 0);
	assert_string_equal(c.online_partitions, "a,b");
	assert_string_equal(c.online_qos, "high");
	assert_int_equal(c.most_weight, 100);
	assert_false(c.is_required);
	assert_int_equal(c.usual_class, GP_CLASS_UNKNOWN);
	assert_int_equal(read_conf(&c, "max_weight=400", "require"), 0);
	assert_int_equal(c.most_weight, 400);
	assert_true(c.is_required);
	assert_int_equal(read_conf(&c, "default=offline", "report=/var/log"), 0);
	assert_int_equal(c.usual_class, GP_CLASS_OFFLINE);
	assert_string_equal(c.report, "/var/log");
	assert_int_equal(read_conf(&c, "socket=/s", "agent=/a"), 0);
	assert_string_equal(c.socket, "/s");
	assert_string_equal(c.agent, "/a");
	assert_int_equal(read_conf(&c, "online_partition=a", NULL), -EINVAL);
	assert_non_null(strstr(error, "online_partitions="));
	assert_int_equal(read_conf(&c, "required", NULL), -EINVAL);
	assert_int_equal(read_conf(&c, "max_weight=0", NULL), -EINVAL);
	assert_int_equal(read_conf(&c, "default=both", NULL), -EINVAL);
}

static void behind_a_mistake_the_rest_is_read_and_the_first_mistake_is_told(void **state)
{
	struct gp_slurm_conf c;

	(void)state;
	assert_int_equal(read_conf(&c, "max_weight=0", "require"), -EINVAL);
	assert_true(c.is_required);
	assert_int_equal(read_conf(&c, "max_weight=0", "default=offline"), -EINVAL);
	assert_int_equal(c.usual_class, GP_CLASS_OFFLINE);
	assert_int_equal(read_conf(&c, "max_weight=0", "report=log"), -EINVAL);
	assert_non_null(strstr(error, "max_weight"));
}

static void a_path_is_a_whole_one(void **state)
{
	static const char *const wrong[] = { "report=",  "report", "report=log", "socket=",
					     "socket=s", "agent",  "agent=a.so" };
	struct gp_slurm_conf c;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(read_conf(&c, wrong[i], NULL), -EINVAL);
		assert_non_null(strstr(error, ": write a whole path"));
	}
	assert_int_equal(read_conf(&c, "online_partitions=", "online_qos="), 0); /* nobody */
}

/* A part of a name, or nobody's, is not in a list. */
static void a_list_has_whole_names_alone(void **state)
{
	(void)state;
	assert_true(gp_slurm_is_listed("a,services,b", "services"));
	assert_true(gp_slurm_is_listed("services", "services"));
	assert_false(gp_slurm_is_listed("services2,2services", "services"));
	assert_false(gp_slurm_is_listed("services", "service"));
	assert_false(gp_slurm_is_listed("a,,b", ""));
	assert_false(gp_slurm_is_listed("", ""));
	assert_false(gp_slurm_is_listed(NULL, "a"));
	assert_false(gp_slurm_is_listed("a", NULL));
}

static int ask(struct gp_slurm_asked *asked, enum gp_slurm_option which, const char *text)
{
	return gp_slurm_ask(asked, which, text, error, sizeof(error));
}

static void what_a_user_asks_is_read_or_refused_with_what_to_write(void **state)
{
	struct gp_slurm_asked asked = { 0 };

	(void)state;
	assert_int_equal(ask(&asked, GP_SLURM_CLASS, "online"), 0);
	assert_int_equal(ask(&asked, GP_SLURM_SLO, "20ms"), 0);
	assert_int_equal(ask(&asked, GP_SLURM_WEIGHT, "10000"), 0);
	assert_int_equal(ask(&asked, GP_SLURM_FLOOR, "5%"), 0);
	assert_int_equal(asked.client_class, GP_CLASS_ONLINE);
	assert_int_equal(asked.slo_ns, 20 * MS);
	assert_int_equal(asked.weight, 10000);
	assert_int_equal(asked.floor_permille, 50);
	assert_int_equal(asked.patience_ns, 600 * S);
	assert_int_equal(ask(&asked, GP_SLURM_CLASS, ""), -EINVAL);
	assert_int_equal(ask(&asked, GP_SLURM_CLASS, "Online"), -EINVAL);
	assert_int_equal(ask(&asked, GP_SLURM_SLO, "0ms"), -EINVAL);
	assert_int_equal(ask(&asked, GP_SLURM_SLO, "-1ms"), -EINVAL);
	assert_int_equal(ask(&asked, GP_SLURM_WEIGHT, "10001"), -EINVAL);
	assert_int_equal(ask(&asked, GP_SLURM_FLOOR, "0%"), -EINVAL);
	assert_int_equal(ask(&asked, GP_SLURM_FLOOR, "101%"), -EINVAL);
}

/* To Slurm's own options 10 and 10:00 are minutes. */
static void a_time_has_a_unit_and_what_has_none_is_refused_with_what_to_write(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = { { "10s", 10 * S },
		     { "10m", 600 * S },
		     { "10min", 600 * S },
		     { "2h", 7200 * S },
		     { "1.5m", 90 * S } };
	static const char *const wrong[] = { "soon", "",  "0m",   "10",   "10:00",       "10M",
					     "10mm", "m", "-10m", "1e3m", "99999999999h" };
	struct gp_slurm_asked asked = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(ask(&asked, GP_SLURM_PATIENCE, good[i].text), 0);
		assert_int_equal(asked.patience_ns, good[i].ns);
		assert_int_equal(ask(&asked, GP_SLURM_SLO, good[i].text), 0);
		assert_int_equal(asked.slo_ns, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char said[256];

		assert_int_equal(ask(&asked, GP_SLURM_PATIENCE, wrong[i]), -EINVAL);
		snprintf(
			said, sizeof(said),
			"--gpreempt-requeue-after: \"%s\" is no time; write a number with ns, us, ms, s, min, m or h, as in: 10m",
			wrong[i]);
		assert_string_equal(error, said);
	}
}

/* The order of the two does not matter. */
static void patience_that_was_said_first_stays(void **state)
{
	struct gp_slurm_asked asked = { 0 };

	(void)state;
	assert_int_equal(ask(&asked, GP_SLURM_PATIENCE, "2s"), 0);
	assert_int_equal(ask(&asked, GP_SLURM_FLOOR, "5%"), 0);
	assert_int_equal(asked.patience_ns, 2 * S);
}

static void what_would_do_nothing_is_refused_with_what_is_missing(void **state)
{
	struct gp_slurm_conf none = { 0 }, usual = { .usual_class = GP_CLASS_OFFLINE };
	const struct gp_slurm_asked alone[] = { { .slo_ns = 1 },
						{ .weight = 1 },
						{ .floor_permille = 1, .patience_ns = 1 },
						{ .patience_ns = 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
		struct gp_slurm_asked with_class = alone[i];

		with_class.client_class = GP_CLASS_ONLINE;
		assert_int_equal(gp_slurm_ask_check(&alone[i], &none, error, sizeof(error)), -EINVAL);
		assert_non_null(strstr(error, "--gpreempt=online"));
		assert_int_equal(gp_slurm_ask_check(&alone[i], &usual, error, sizeof(error)),
				 i < 3 ? 0 : -EINVAL);
		assert_int_equal(gp_slurm_ask_check(&with_class, &none, error, sizeof(error)),
				 i < 3 ? 0 : -EINVAL);
	}
	assert_non_null(strstr(error, "--gpreempt-requeue-below"));
	assert_int_equal(gp_slurm_ask_check(&(struct gp_slurm_asked){ 0 }, &none, error, sizeof(error)), 0);
}

static void the_agent_is_preloaded_once_and_no_file_that_only_begins_like_it_is_taken_for_it(void **state)
{
	static const char *const before_after[][2] = {
		{ "", "/a.so" },
		{ "/b.so", "/a.so:/b.so" },
		{ "/a.so", "/a.so" },
		{ "/a.so:/b.so", "/a.so:/b.so" },
		{ "/a.so /b.so", "/a.so /b.so" },
		{ "/a.so2", "/a.so:/a.so2" },
		{ "/a.s", "/a.so:/a.s" },
	};
	char text[16];

	(void)state;
	for (size_t i = 0; i < sizeof(before_after) / sizeof(before_after[0]); i++) {
		assert_int_equal(gp_slurm_preload("/a.so", before_after[i][0], text, sizeof(text)), 0);
		assert_string_equal(text, before_after[i][1]);
	}
	assert_int_equal(gp_slurm_preload("/a.so", "123456789", text, sizeof(text)), 0);
	assert_int_equal(gp_slurm_preload("/a.so", "1234567890", text, sizeof(text)), -E2BIG);
}

static void an_entry_says_what_there_was(void **state)
{
	const struct gp_slurm_step step = { 7, "0", "n1", "0" };
	struct gp_job_info had = {
		.client_class = GP_CLASS_OFFLINE, .ran_ns = 3100 * MS, .waits = 12, .waited_ns = 1250 * MS
	};
	char text[GP_SLURM_ENTRY];

	(void)state;
	gp_slurm_entry(&step, &had, text);
	assert_string_equal(text, "gpreempt 0@n1: offline, ran 3.1 s, stopped 12 times, 1.25 s");
	had.ran_ns = 1000000123 * MS + 1;
	had.waited_ns = MS / 2;
	gp_slurm_entry(&step, &had, text);
	assert_string_equal(text, "gpreempt 0@n1: offline, ran 1000000.123 s, stopped 12 times, 0 s");
	had = (struct gp_job_info){ .client_class = GP_CLASS_ONLINE,
				    .requests = 300,
				    .with_slo = 300,
				    .within_slo = 299,
				    .p50_ns = 10700000,
				    .p99_ns = 12100000,
				    .is_partial = 1 };
	gp_slurm_entry(&step, &had, text);
	assert_string_equal(text,
			    "gpreempt 0@n1: online, 300 requests, p50 10.7 ms, p99 12.1 ms, 99.67% in time, "
			    "since gpreemptd was started again");
}

static void a_comment_keeps_what_is_not_ours_and_one_entry_of_each_step(void **state)
{
	char text[GP_SLURM_COMMENT];

	(void)state;
	gp_slurm_comment("", "gpreempt 0@n1: a", text);
	assert_string_equal(text, "gpreempt 0@n1: a");
	gp_slurm_comment("mine; too", "gpreempt 0@n1: a", text);
	assert_string_equal(text, "mine; too; gpreempt 0@n1: a");
	gp_slurm_comment("mine; gpreempt 0@n1: a; gpreempt 0@n11: b", "gpreempt 0@n1: c", text);
	assert_string_equal(text, "mine; gpreempt 0@n11: b; gpreempt 0@n1: c");
}

static void of_many_entries_the_last_eight_are_kept(void **state)
{
	char text[GP_SLURM_COMMENT] = "mine", before[GP_SLURM_COMMENT], entry[GP_SLURM_ENTRY];

	(void)state;
	for (int i = 0; i < 20; i++) {
		snprintf(entry, sizeof(entry), "gpreempt %d@n1: x", i);
		memcpy(before, text, sizeof(before));
		gp_slurm_comment(before, entry, text);
	}
	assert_string_equal(
		text, "mine; gpreempt 12@n1: x; gpreempt 13@n1: x; gpreempt 14@n1: x; gpreempt 15@n1: x; "
		      "gpreempt 16@n1: x; gpreempt 17@n1: x; gpreempt 18@n1: x; gpreempt 19@n1: x");
}

static void a_comment_without_room_for_an_entry_is_to_be_left_alone(void **state)
{
	char text[GP_SLURM_COMMENT], before[GP_SLURM_COMMENT];

	(void)state;
	memset(before, 'x', sizeof(before) - 1);
	before[sizeof(before) - 1] = '\0';
	assert_int_equal(gp_slurm_comment(before, "gpreempt 0@n1: a", text), -E2BIG);
	before[sizeof(before) - 1 - strlen("; gpreempt 0@n1: a")] = '\0';
	assert_int_equal(gp_slurm_comment(before, "gpreempt 0@n1: a", text), 0);
	assert_int_equal(strlen(text), GP_SLURM_COMMENT - 1);
}

static void a_report_has_the_gpus_that_slurm_gave_as_gpreemptd_knows_them(void **state)
{
	const struct gp_slurm_step step = { 7, "batch", "n1", "1,2" };
	const struct gp_job_info had = { .client_class = GP_CLASS_OFFLINE, .waits = 12 };
	const struct gp_device_info devices[] = { { .device = 0 }, { .device = 1, .name = "a \"GPU\"" } };
	char folder[] = "/tmp/gpreempt-test-XXXXXX", path[64];
	struct json_object *o, *gpus, *value;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(gp_slurm_report(folder, &step, &had, devices, 2), 0);
	snprintf(path, sizeof(path), "%s/7.batch.n1.json", folder);
	o = json_object_from_file(path);
	assert_non_null(o);
	assert_true(json_object_object_get_ex(o, "waits", &value));
	assert_int_equal(json_object_get_int(value), 12);
	assert_true(json_object_object_get_ex(o, "gpus", &gpus));
	assert_int_equal(json_object_array_length(gpus), 2);
	assert_true(json_object_object_get_ex(json_object_array_get_idx(gpus, 0), "name", &value));
	assert_string_equal(json_object_get_string(value), "a \"GPU\"");
	assert_false(json_object_object_get_ex(json_object_array_get_idx(gpus, 1), "name", &value));
	json_object_put(o);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(gp_slurm_report(folder, &step, &had, devices, 2), -ENOENT);
}

static void a_report_is_written_whole_or_not_at_all_and_not_through_what_is_there(void **state)
{
	const struct gp_slurm_step step = { 7, "0", "n1", "" };
	const struct gp_job_info had = { .client_class = GP_CLASS_OFFLINE };
	char folder[] = "/tmp/gpreempt-test-XXXXXX", path[64], fresh[72], other[64], text[8] = "";
	char deep[PATH_MAX];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/7.0.n1.json", folder);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(symlink(other, fresh), 0);
	assert_int_equal(gp_slurm_report(folder, &step, &had, NULL, 0), 0);
	assert_int_equal(access(other, F_OK), -1);
	assert_int_equal(access(fresh, F_OK), -1);
	assert_true(readlink(path, text, sizeof(text)) < 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(gp_slurm_report(folder, &step, &had, NULL, 0), -EISDIR);
	assert_int_equal(access(fresh, F_OK), -1);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(folder), 0);
	memset(deep, '/', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(gp_slurm_report(deep, &step, &had, NULL, 0), -ENAMETOOLONG);
}

static void a_report_that_there_is_no_room_for_leaves_nothing(void **state)
{
	const struct gp_slurm_step step = { 7, "0", "n1", "" };
	const struct gp_job_info had = { .client_class = GP_CLASS_OFFLINE };
	char folder[] = "/tmp/gpreempt-test-XXXXXX";
	struct rlimit before, none;
	int r;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	r = gp_slurm_report(folder, &step, &had, NULL, 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_setting_is_read_and_others_are_named),
		cmocka_unit_test(behind_a_mistake_the_rest_is_read_and_the_first_mistake_is_told),
		cmocka_unit_test(a_path_is_a_whole_one),
		cmocka_unit_test(a_list_has_whole_names_alone),
		cmocka_unit_test(what_a_user_asks_is_read_or_refused_with_what_to_write),
		cmocka_unit_test(a_time_has_a_unit_and_what_has_none_is_refused_with_what_to_write),
		cmocka_unit_test(patience_that_was_said_first_stays),
		cmocka_unit_test(what_would_do_nothing_is_refused_with_what_is_missing),
		cmocka_unit_test(
			the_agent_is_preloaded_once_and_no_file_that_only_begins_like_it_is_taken_for_it),
		cmocka_unit_test(an_entry_says_what_there_was),
		cmocka_unit_test(a_comment_keeps_what_is_not_ours_and_one_entry_of_each_step),
		cmocka_unit_test(of_many_entries_the_last_eight_are_kept),
		cmocka_unit_test(a_comment_without_room_for_an_entry_is_to_be_left_alone),
		cmocka_unit_test(a_report_is_written_whole_or_not_at_all_and_not_through_what_is_there),
		cmocka_unit_test(a_report_that_there_is_no_room_for_leaves_nothing),
		cmocka_unit_test(a_report_has_the_gpus_that_slurm_gave_as_gpreemptd_knows_them),
	};

	return cmocka_run_group_tests_name("slurm", tests, NULL, NULL);
}
