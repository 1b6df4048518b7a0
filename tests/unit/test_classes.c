// SPDX-License-Identifier: MIT
/* Which class a queue has, by which rule, and which rules are refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discover/classes.h"
#include "unit.h"

#define REFUSED " refused: "
#define NOT_TRUSTED REFUSED "a container's root and groups do not count"

struct state {
	struct gp_classes *classes;
	struct gp_found_client client;
	struct gp_found_queue queue;
	struct gp_class_subject subject;
	char path[64], error[256];
};

static int begin(void **arg)
{
	struct state *s = calloc(1, sizeof(*s));

	assert_int_equal(gp_classes_new(&s->classes), 0);
	s->client = (struct gp_found_client){ .pid = 123,
					      .uid = 1000,
					      .name = "train_bert",
					      .cgroup = "/kubepods/burstable/pod1/x",
					      .container = "3f9a0123456789ab",
					      .container_name = "trainer",
					      .pod = "4a1c5c0e-7f1e-4e0b-9a77-2f7f6a0d1e11" };
	s->queue = (struct gp_found_queue){ .pid = 123, .priority = 7, .ring = 0x7f5a00000000 };
	s->queue.from[GP_FIELD_PRIORITY] = s->queue.from[GP_FIELD_RING] = GP_SOURCE_MQDS;
	s->subject = (struct gp_class_subject){ .client = &s->client, .queue = &s->queue };
	snprintf(s->path, sizeof(s->path), "/tmp/gpreempt-classes-XXXXXX");
	close(mkstemp(s->path));
	unsetenv("GPREEMPT_CLASSES");
	unsetenv("GPREEMPT_ONLINE_PRIORITY");
	*arg = s;
	return 0;
}

static int end(void **arg)
{
	struct state *s = *arg;

	gp_classes_free(s->classes);
	unlink(s->path);
	free(s);
	return 0;
}

static void add(struct state *s, const char *rule)
{
	assert_int_equal(gp_classes_add(s->classes, rule, NULL, s->error, sizeof(s->error)), 0);
}

static int read_text(struct state *s, const char *text)
{
	FILE *file = fopen(s->path, "w");

	fputs(text, file);
	fclose(file);
	return gp_classes_read(s->classes, s->path, s->error, sizeof(s->error));
}

static void assert_class(struct state *s, uint32_t client_class, const char *rule)
{
	struct gp_class_verdict verdict;

	gp_classes_judge(s->classes, &s->subject, &verdict);
	assert_int_equal(verdict.client_class, client_class);
	assert_string_equal(verdict.rule, rule);
}

/* The rule alone says whether it matches: priority 7 would say offline otherwise, the tag nothing. */
static void assert_matches(struct state *s, const char *condition, int matches)
{
	struct gp_class_verdict verdict;
	char rule[128];

	gp_classes_free(s->classes);
	assert_int_equal(gp_classes_new(&s->classes), 0);
	snprintf(rule, sizeof(rule), "online:%s", condition);
	add(s, rule);
	gp_classes_judge(s->classes, &s->subject, &verdict);
	if (matches != (verdict.client_class == GP_CLASS_ONLINE))
		fail_msg("%s: class %u by '%s'", condition, verdict.client_class, verdict.rule);
}

static void every_condition_matches_what_it_says_and_nothing_else(void **arg)
{
	struct state *s = *arg;

	s->subject.trusted = 1;
	s->subject.tag = "NIGHTLY";
	assert_matches(s, "pid=123", 1);
	assert_matches(s, "pid=12", 0);
	assert_matches(s, "uid=1000", 1);
	assert_matches(s, "uid=0", 0);
	assert_matches(s, "command=train*", 1);
	assert_matches(s, "command=*bert", 1);
	assert_matches(s, "command=tr?in_b*t", 1);
	assert_matches(s, "command=train", 0);
	assert_matches(s, "command=Train*", 0);
	assert_matches(s, "priority=7", 1);
	assert_matches(s, "priority>=7", 1);
	assert_matches(s, "priority>=8", 0);
	assert_matches(s, "priority<=7", 1);
	assert_matches(s, "priority<=6", 0);
	assert_matches(s, "address=0x7f5a00000000", 1);
	assert_matches(s, "address=0x7f0000000000-0x7fffffffffff", 1);
	assert_matches(s, "address=0x7f5a00000001-0x7fffffffffff", 0);
	assert_matches(s, "address=0x7f0000000000-0x7f59ffffffff", 0);
	assert_matches(s, "cgroup=/kubepods/*", 1);
	assert_matches(s, "cgroup=/docker/*", 0);
	assert_matches(s, "container=trainer", 1);
	assert_matches(s, "container=3f9a", 1);
	assert_matches(s, "container=3f9", 0); /* three digits are too few to mean one container */
	assert_matches(s, "container=*", 1);
	assert_matches(s, "container=serving", 0);
	assert_matches(s, "pod=4a1c5c0e-*", 1);
	assert_matches(s, "pod=5*", 0);
	assert_matches(s, "tag=NIGHT*", 1);
	assert_matches(s, "tag=ONLINE_AI", 0);
	assert_matches(s, " command = train* ", 1);
}

static void a_pods_container_is_named_with_its_namespace_or_in_any(void **arg)
{
	struct state *s = *arg;

	s->subject.trusted = 1;
	strcpy(s->client.container_name, "llm-0/server");
	strcpy(s->client.kube_namespace, "serving");
	assert_matches(s, "container=llm-0/server", 1);
	assert_matches(s, "container=serving/llm-0/server", 1);
	assert_matches(s, "container=serving/llm-*/server", 1);
	assert_matches(s, "container=serving/*/*", 1);
	assert_matches(s, "container=batch/llm-0/server", 0);
	assert_matches(s, "container=batch/*/*", 0);
	assert_matches(s, "container=llm-0", 0);
	assert_matches(s, "container=serving/*", 0); /* that is a pod */
	strcpy(s->client.container_name, "serving/server");
	strcpy(s->client.kube_namespace, "batch");
	assert_matches(s, "container=serving/*", 1);
	assert_matches(s, "container=serving/*/*", 0);
	s->client.kube_namespace[0] = '\0'; /* nobody told it */
	assert_matches(s, "container=*/*/*", 0);
	assert_matches(s, "container=serving/server", 1);
}

static void what_is_unknown_matches_nothing(void **arg)
{
	struct state *s = *arg;

	s->subject.trusted = 1;
	s->client = (struct gp_found_client){ .uid = UINT32_MAX };
	memset(s->queue.from, 0, sizeof(s->queue.from));
	s->queue.pid = 0;
	assert_matches(s, "uid=4294967295", 0);
	assert_matches(s, "command=*", 0);
	assert_matches(s, "cgroup=*", 0);
	assert_matches(s, "container=*", 0);
	assert_matches(s, "pod=*", 0);
	assert_matches(s, "tag=*", 0);
	assert_matches(s, "priority>=0", 0);
	assert_matches(s, "address=0-0xffffffffffffffff", 0);
	s->subject.client = NULL;
	s->queue.pid = 9;
	assert_matches(s, "command=*", 0);
	assert_matches(s, "pid=9", 1);
	s->subject.queue = NULL;
	assert_matches(s, "pid=9", 0);
}

static void patterns_with_many_stars_end(void **arg)
{
	struct state *s = *arg;

	memset(s->client.cgroup, 'a', sizeof(s->client.cgroup) - 1);
	assert_matches(s, "cgroup=*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", 0);
	assert_matches(s, "cgroup=*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a", 1);
	assert_matches(s, "cgroup=**?", 1);
}

static void the_first_rule_that_matches_wins(void **arg)
{
	struct state *s = *arg;

	add(s, "online:command=serve*");
	add(s, "offline:pid=123");
	add(s, "online:pid=123");
	assert_class(s, GP_CLASS_OFFLINE, "pid=123");
}

static void the_command_line_goes_before_the_environment_and_that_before_the_file(void **arg)
{
	struct state *s = *arg;

	assert_int_equal(read_text(s, "[online]\ncommand=train*\n"), 0);
	setenv("GPREEMPT_CLASSES", " ;offline:command=train*; online:uid=1000;", 1);
	assert_int_equal(gp_classes_environment(s->classes, s->error, sizeof(s->error)), 0);
	assert_class(s, GP_CLASS_OFFLINE, "GPREEMPT_CLASSES command=train*");
	assert_int_equal(
		gp_classes_add(s->classes, "online:command=train*", "--class", s->error, sizeof(s->error)),
		0);
	assert_class(s, GP_CLASS_ONLINE, "--class command=train*");
}

static void a_rule_of_a_file_is_named_by_file_and_line(void **arg)
{
	struct state *s = *arg;
	char expected[96];

	assert_int_equal(
		read_text(
			s,
			"\xef\xbb\xbf# a comment\n\n[offline]\n; another\r\n  command = train*   ; with a remark\r\n"
			"[online]\npod=x # no\n[offline]\npriority <= 5"),
		0);
	snprintf(expected, sizeof(expected), "%s:5 command = train*", strrchr(s->path, '/') + 1);
	assert_class(s, GP_CLASS_OFFLINE, expected);
	strcpy(s->client.name, "other");
	s->queue.priority = 5;
	snprintf(expected, sizeof(expected), "%s:9 priority <= 5", strrchr(s->path, '/') + 1);
	assert_class(s, GP_CLASS_OFFLINE, expected);
}

static void of_a_bad_file_nothing_is_kept_and_the_line_is_named(void **arg)
{
	static const struct {
		const char *text, *line, *what;
	} cases[] = {
		{ "[online]\npid=123\n[ofline]\n", ":3: ", "there are [online], [offline] and [settings]" },
		{ "pid=123\n", ":1: ", "under no section" },
		{ "[online]\npid=123\nprio=7\n", ":3: ", "'prio=7' is no condition" },
		{ "[online]\npid=123\npid\n", ":3: ", "is no condition" },
		{ "[online]\npid=123\npid=\n", ":3: ", "the value is missing" },
		{ "[online]\npid=123\npid=abc\n", ":3: ", "a whole number" },
		{ "[online]\npid=123\npid=5x\n", ":3: ", "a whole number" },
		{ "[online]\npid=123\ncommand>=a\n", ":3: ", "only = is possible" },
		{ "[online]\npid=123\npriority=16\n", ":3: ", "from 0 to 15" },
		{ "[online]\npid=123\npriority>7\n", ":3: ", "write =, >= or <=" },
		{ "[online]\npid=123\naddress=0x2-0x1\n", ":3: ", "the lower one first" },
		{ "[online]\npid=123\naddress=0x2-\n", ":3: ", "the lower one first" },
		{ "[online]\npid=123\naddress=here\n", ":3: ", "0x7f0000000000" },
		{ "[online]\npid=123\n[settings]\nonline_priority = 99\n", ":4: ", "from 0 to 15" },
		{ "[online]\npid=123\n[settings]\nthreshold = 9\n", ":4: ", "online_priority" },
		{ "[online]\npid=123\n[online] pid=7\n", ":3: ", "no such section" },
	};
	struct state *s = *arg;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read_text(s, cases[i].text), -EINVAL);
		assert_memory_equal(s->error, s->path, strlen(s->path));
		if (!strstr(s->error, cases[i].line) || !strstr(s->error, cases[i].what))
			fail_msg("'%s' for '%s'", s->error, cases[i].text);
		assert_class(s, GP_CLASS_OFFLINE, "priority 7 < 10");
	}
	assert_int_equal(gp_classes_read(s->classes, "/nonexistent/classes.ini", s->error, sizeof(s->error)),
			 -ENOENT);
	assert_non_null(strstr(s->error, "/nonexistent/classes.ini"));
	assert_int_equal(gp_classes_read(s->classes, "/tmp", s->error, sizeof(s->error)), -EISDIR);
}

static void mistakes_that_do_not_fit_are_left_out_whole(void **arg)
{
	struct state *s = *arg;
	char first[512];

	assert_int_equal(read_text(s, "uid=1\nuid=2\n"), -EINVAL);
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(s->error, "\n"), s->error);
	assert_non_null(strstr(s->error, ":2: "));
	for (size_t room = strlen(first) + 1; room < strlen(s->error) + 1; room++) {
		char error[512];

		assert_int_equal(gp_classes_read(s->classes, s->path, error, room), -EINVAL);
		assert_string_equal(error, first);
	}
}

static void a_file_of_endless_length_is_refused(void **arg)
{
	struct state *s = *arg;
	FILE *file = fopen(s->path, "w");

	for (int i = 0; i < 200000; i++)
		fputs("# words\n", file);
	fclose(file);
	assert_int_equal(gp_classes_read(s->classes, s->path, s->error, sizeof(s->error)), -EINVAL);
	assert_non_null(strstr(s->error, "longer than"));
}

static void a_bad_rule_of_a_caller_is_refused_with_a_sentence(void **arg)
{
	static const char *const bad[] = { "",           "online",       "online:", "pid=1", "maybe:pid=1",
					   "online:pid", "online:pid=-1" };
	struct state *s = *arg;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		s->error[0] = '\0';
		assert_int_equal(gp_classes_add(s->classes, bad[i], NULL, s->error, sizeof(s->error)),
				 -EINVAL);
		assert_true(strlen(s->error) > 10);
	}
	assert_int_equal(gp_classes_add(s->classes, "x", NULL, NULL, 0), -EINVAL);
	setenv("GPREEMPT_CLASSES", "online:pid=123;offline:nonsense=1", 1);
	assert_int_equal(gp_classes_environment(s->classes, s->error, sizeof(s->error)), -EINVAL);
	assert_class(s, GP_CLASS_OFFLINE, "priority 7 < 10");
}

static void priorities_decide_last_by_a_threshold_that_can_be_set_or_switched_off(void **arg)
{
	struct state *s = *arg;

	s->subject.trusted = 1;
	s->queue.priority = 11;
	assert_class(s, GP_CLASS_ONLINE, "priority 11 >= 10");
	assert_int_equal(read_text(s, "[settings]\nonline_priority = 12\n"), 0);
	assert_class(s, GP_CLASS_OFFLINE, "priority 11 < 12");
	setenv("GPREEMPT_ONLINE_PRIORITY", "5", 1);
	assert_int_equal(gp_classes_environment(s->classes, s->error, sizeof(s->error)), 0);
	assert_class(s, GP_CLASS_ONLINE, "priority 11 >= 5");
	setenv("GPREEMPT_ONLINE_PRIORITY", "off", 1);
	assert_int_equal(gp_classes_environment(s->classes, s->error, sizeof(s->error)), 0);
	assert_class(s, GP_CLASS_UNKNOWN, "no rule");
	setenv("GPREEMPT_ONLINE_PRIORITY", "16", 1);
	assert_int_equal(gp_classes_environment(s->classes, s->error, sizeof(s->error)), -EINVAL);
	assert_non_null(strstr(s->error, "GPREEMPT_ONLINE_PRIORITY"));
}

static void a_process_as_a_whole_has_no_priority(void **arg)
{
	struct state *s = *arg;

	s->subject.queue = NULL;
	assert_class(s, GP_CLASS_UNKNOWN, "no rule");
}

static void a_tag_decides_before_the_priority(void **arg)
{
	struct state *s = *arg;

	s->subject.trusted = 1;
	s->subject.tag = "ONLINE_AI";
	assert_class(s, GP_CLASS_ONLINE, "tag ONLINE_AI");
	s->queue.priority = 15;
	s->subject.tag = "OFFLINE_AI";
	assert_class(s, GP_CLASS_OFFLINE, "tag OFFLINE_AI");
	s->subject.tag = "SOMETHING";
	assert_class(s, GP_CLASS_ONLINE, "priority 15 >= 10");
}

static void what_a_process_was_started_as_goes_before_its_tag_and_is_named_as_people_wrote_it(void **arg)
{
	struct state *s = *arg;

	s->subject.trusted = 1;
	s->subject.seen = GP_CLASS_ONLINE;
	assert_class(s, GP_CLASS_ONLINE, "--online (GPREEMPT_CLASS)");
	s->subject.tag = "front";
	assert_class(s, GP_CLASS_ONLINE, "--online (GPREEMPT_CLASS)");
	s->subject.tag = "ONLINE_AI";
	assert_class(s, GP_CLASS_ONLINE, "tag ONLINE_AI");
	s->subject.seen = GP_CLASS_OFFLINE;
	assert_class(s, GP_CLASS_OFFLINE, "--offline (GPREEMPT_CLASS)");
	s->subject.seen = GP_CLASS_ONLINE;
	s->subject.tag = NULL;
	s->subject.trusted = 0;
	assert_class(s, GP_CLASS_OFFLINE, "--online (GPREEMPT_CLASS)" NOT_TRUSTED);
	add(s, "offline:tag=ONLINE_AI");
	assert_class(s, GP_CLASS_OFFLINE, "tag=ONLINE_AI");
}

static void a_process_nobody_trusts_may_make_itself_offline_but_not_online(void **arg)
{
	struct state *s = *arg;

	s->subject.tag = "ONLINE_AI";
	assert_class(s, GP_CLASS_OFFLINE, "tag ONLINE_AI" NOT_TRUSTED);
	s->subject.tag = "OFFLINE_AI";
	s->queue.priority = 15;
	assert_class(s, GP_CLASS_OFFLINE, "tag OFFLINE_AI");
	s->subject.tag = NULL;
	assert_class(s, GP_CLASS_UNKNOWN, "priority 15 >= 10" NOT_TRUSTED);
	add(s, "online:priority>=10");
	assert_class(s, GP_CLASS_UNKNOWN, "priority>=10" NOT_TRUSTED);
	add(s, "online:tag=*");
	s->subject.tag = "a tag";
	assert_class(s, GP_CLASS_UNKNOWN, "priority>=10" NOT_TRUSTED);
	add(s, "online:uid=1000"); /* the administrator's word about something it cannot choose */
	assert_class(s, GP_CLASS_ONLINE, "uid=1000");
}

static void why_its_own_word_does_not_count_is_what_is_so_of_the_process(void **arg)
{
	struct state *s = *arg;

	s->subject.tag = "ONLINE_AI";
	s->client.container[0] = '\0';
	assert_class(s, GP_CLASS_OFFLINE,
		     "tag ONLINE_AI" REFUSED "owner is neither root nor in group gpreempt");
	s->client.uid = 0;
	assert_class(s, GP_CLASS_OFFLINE,
		     "tag ONLINE_AI" REFUSED "root without CAP_SYS_ADMIN does not count");
	s->client.inner_pid = s->client.pid;
	assert_class(s, GP_CLASS_OFFLINE,
		     "tag ONLINE_AI" REFUSED "root without CAP_SYS_ADMIN does not count");
	s->client.inner_pid = 7;
	assert_class(s, GP_CLASS_OFFLINE, "tag ONLINE_AI" NOT_TRUSTED);
	s->subject.client = NULL;
	assert_class(s, GP_CLASS_OFFLINE,
		     "tag ONLINE_AI" REFUSED "owner is neither root nor in group gpreempt");
}

static void a_long_rule_is_cut_in_the_verdict_and_still_matches(void **arg)
{
	struct state *s = *arg;
	struct gp_class_verdict verdict;
	char rule[600];

	snprintf(rule, sizeof(rule), "online:command=%0500d", 0);
	add(s, rule);
	snprintf(rule, sizeof(rule), "online:command=%0513d", 0);
	assert_int_equal(gp_classes_add(s->classes, rule, NULL, s->error, sizeof(s->error)), -EINVAL);
	memset(rule, '*', sizeof(rule));
	memcpy(rule, "online:command=", 15);
	rule[400] = '\0';
	assert_int_equal(gp_classes_add(s->classes, rule,
					"a very long place, longer than anybody would give it, even so",
					s->error, sizeof(s->error)),
			 0);
	gp_classes_judge(s->classes, &s->subject, &verdict);
	assert_int_equal(verdict.client_class, GP_CLASS_ONLINE);
	assert_int_equal(strlen(verdict.rule), sizeof(verdict.rule) - 1);
}

static void the_example_that_is_installed_is_a_good_file(void **arg)
{
	struct state *s = *arg;
	const char *source = getenv("GPREEMPT_SOURCE");
	char path[512];

	snprintf(path, sizeof(path), "%s/share/classes.ini", source ? source : ".");
	if (gp_classes_read(s->classes, path, s->error, sizeof(s->error)) < 0)
		fail_msg("%s", s->error);
	assert_class(s, GP_CLASS_OFFLINE, "priority 7 < 10");
}

#define CLASS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLASS_TEST(every_condition_matches_what_it_says_and_nothing_else),
		CLASS_TEST(a_pods_container_is_named_with_its_namespace_or_in_any),
		CLASS_TEST(what_is_unknown_matches_nothing),
		CLASS_TEST(patterns_with_many_stars_end),
		CLASS_TEST(the_first_rule_that_matches_wins),
		CLASS_TEST(the_command_line_goes_before_the_environment_and_that_before_the_file),
		CLASS_TEST(a_rule_of_a_file_is_named_by_file_and_line),
		CLASS_TEST(of_a_bad_file_nothing_is_kept_and_the_line_is_named),
		CLASS_TEST(mistakes_that_do_not_fit_are_left_out_whole),
		CLASS_TEST(a_file_of_endless_length_is_refused),
		CLASS_TEST(a_bad_rule_of_a_caller_is_refused_with_a_sentence),
		CLASS_TEST(priorities_decide_last_by_a_threshold_that_can_be_set_or_switched_off),
		CLASS_TEST(a_process_as_a_whole_has_no_priority),
		CLASS_TEST(a_tag_decides_before_the_priority),
		CLASS_TEST(what_a_process_was_started_as_goes_before_its_tag_and_is_named_as_people_wrote_it),
		CLASS_TEST(a_process_nobody_trusts_may_make_itself_offline_but_not_online),
		CLASS_TEST(why_its_own_word_does_not_count_is_what_is_so_of_the_process),
		CLASS_TEST(a_long_rule_is_cut_in_the_verdict_and_still_matches),
		CLASS_TEST(the_example_that_is_installed_is_a_good_file),
	};

	return cmocka_run_group_tests_name("classes", tests, NULL, NULL);
}
