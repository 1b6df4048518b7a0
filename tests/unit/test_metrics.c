// SPDX-License-Identifier: MIT
/* The text that Prometheus reads, of snapshots that no gpreemptd would give. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "metrics/text.h"

static char *text_of(const struct gp_snapshot *s, int per_client)
{
	size_t size;
	char *text = gp_metrics_text(s, per_client, &size);

	assert_non_null(text);
	assert_int_equal(strlen(text), size);
	return text;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}

static void a_label_is_escaped_whatever_is_in_it(void **state)
{
	struct gp_client_info c = { .size = sizeof(c), .pid = 7, .name = "a\"b\\c\nd" };
	const struct gp_snapshot s = { .is_up = 1, .clients = &c, .nclients = 1 };
	char *text = text_of(&s, 1);

	(void)state;
	assert_non_null(strstr(text, "name=\"a\\\"b\\\\c\\nd\""));
	free(text);
}

static void a_thousand_clients_are_told_of_one_by_one_and_how_many_are_not(void **state)
{
	struct gp_client_info *c = calloc(GP_METRICS_CLIENTS + 5, sizeof(*c));
	struct gp_snapshot s = { .is_up = 1, .clients = c, .nclients = GP_METRICS_CLIENTS + 5 };
	char *text;

	(void)state;
	assert_non_null(c);
	for (uint32_t i = 0; i < s.nclients; i++)
		c[i] = (struct gp_client_info){ .size = sizeof(*c), .pid = i + 1 };
	text = text_of(&s, 1);
	assert_int_equal(count(text, "\ngpreempt_client_share_ratio{"), GP_METRICS_CLIENTS);
	assert_non_null(strstr(text, "\ngpreempt_clients_left_out 5\n"));
	free(text);
	text = text_of(&s, 0);
	assert_int_equal(count(text, "pid="), 0);
	free(text);
	free(c);
}

static void a_client_of_no_device_or_in_a_state_of_a_later_release_is_in_no_devices_sum(void **state)
{
	struct gp_told device = { .info = { .device = 0 } };
	struct gp_client_info clients[] = {
		{ .device = GP_ALL_DEVICES, .pid = 1, .queues = 3 },
		{ .device = 0, .pid = 2, .queues = 3, .state = 99 },
		{ .device = 0, .pid = 3, .queues = 3, .stopped = 1, .state = GP_CLIENT_WAITING },
	};
	const struct gp_snapshot s = {
		.is_up = 1, .devices = &device, .ndevices = 1, .clients = clients, .nclients = 3
	};
	char *text = text_of(&s, 1);

	(void)state;
	assert_non_null(
		strstr(text, "gpreempt_clients{device=\"0\",class=\"offline\",state=\"waiting\"} 1\n"));
	assert_non_null(strstr(text, "gpreempt_clients{device=\"0\",class=\"offline\",state=\"idle\"} 0\n"));
	assert_non_null(
		strstr(text, "gpreempt_queues{device=\"0\",class=\"offline\",state=\"running\"} 2\n"));
	assert_non_null(
		strstr(text, "gpreempt_queues{device=\"0\",class=\"offline\",state=\"stopped\"} 1\n"));
	assert_non_null(strstr(text, "gpreempt_client_share_ratio{device=\"none\",pid=\"1\""));
	free(text);
}

static void clients_are_counted_by_class_and_state(void **state)
{
	static const struct {
		uint32_t client_class, state;
		size_t n;
		const char *line;
	} kinds[] = { { GP_CLASS_OFFLINE, GP_CLIENT_IDLE, 1, "class=\"offline\",state=\"idle\"} 1\n" },
		      { GP_CLASS_OFFLINE, GP_CLIENT_RUNNING, 2, "class=\"offline\",state=\"running\"} 2\n" },
		      { GP_CLASS_OFFLINE, GP_CLIENT_WAITING, 3, "class=\"offline\",state=\"waiting\"} 3\n" },
		      { GP_CLASS_OFFLINE, GP_CLIENT_HELD, 4, "class=\"offline\",state=\"held\"} 4\n" },
		      { GP_CLASS_ONLINE, GP_CLIENT_RUNNING, 5, "class=\"online\",state=\"running\"} 5\n" } };
	struct gp_told device = { .info = { .device = 0 } };
	struct gp_client_info clients[15];
	struct gp_snapshot s = { .is_up = 1, .devices = &device, .ndevices = 1, .clients = clients };
	char *text, line[128];

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (size_t n = kinds[i].n; n--;)
			clients[s.nclients++] =
				(struct gp_client_info){ .client_class = kinds[i].client_class,
							 .state = kinds[i].state };
	text = text_of(&s, 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(line, sizeof(line), "\ngpreempt_clients{device=\"0\",%s", kinds[i].line);
		assert_non_null(strstr(text, line));
	}
	free(text);
}

static void times_are_seconds_to_the_nanosecond(void **state)
{
	struct gp_told device = { .info = { .device = 3 },
				  .stats = {
					  .has_details = 1,
					  .offline_run_ns = 1234567890123456789ull,
					  .online_wait_ns = 5,
					  .suspend = { .count = 2, .sum_ns = 30000, .at_most = { 1, 2 } } } };
	const struct gp_snapshot s = { .is_up = 1, .devices = &device, .ndevices = 1 };
	char *text = text_of(&s, 0);

	(void)state;
	assert_non_null(strstr(
		text,
		"gpreempt_class_run_seconds_total{device=\"3\",class=\"offline\"} 1234567890.123456789\n"));
	assert_non_null(strstr(
		text, "gpreempt_class_wait_seconds_total{device=\"3\",class=\"online\"} 0.000000005\n"));
	assert_non_null(
		strstr(text, "gpreempt_suspend_duration_seconds_bucket{device=\"3\",le=\"1e-05\"} 1\n"));
	assert_non_null(
		strstr(text, "gpreempt_suspend_duration_seconds_bucket{device=\"3\",le=\"2e-05\"} 2\n"));
	assert_non_null(
		strstr(text, "gpreempt_suspend_duration_seconds_bucket{device=\"3\",le=\"+Inf\"} 2\n"));
	assert_non_null(strstr(text, "gpreempt_suspend_duration_seconds_sum{device=\"3\"} 0.000030000\n"));
	free(text);
}

static void what_is_so_is_1_and_who_has_no_objective_is_not_told_to_have_one_of_0(void **state)
{
	struct gp_told devices[] = { { .info = { .device = 0 } },
				     { .info = { .device = 1 }, .stats = { .backoff_until_ns = 12345 } } };
	struct gp_client_info clients[] = { { .pid = 1 }, { .pid = 2, .slo_ns = 20000000 } };
	const struct gp_snapshot s = {
		.is_up = 1, .devices = devices, .ndevices = 2, .clients = clients, .nclients = 2
	};
	char *text = text_of(&s, 1);

	(void)state;
	assert_non_null(strstr(text, "\ngpreempt_backing_off{device=\"0\"} 0\n"));
	assert_non_null(strstr(text, "\ngpreempt_backing_off{device=\"1\"} 1\n"));
	assert_int_equal(count(text, "\ngpreempt_client_slo_seconds{"), 1);
	assert_non_null(strstr(text, "pid=\"2\",class=\"offline\",name=\"\"} 0.020000000\n"));
	free(text);
}

static void slots_that_nobody_knows_of_are_not_told_as_0(void **state)
{
	struct gp_told devices[] = { { .info = { .device = 0 } },
				     { .info = { .device = 1, .queue_slots = 24 } } };
	const struct gp_snapshot s = { .is_up = 1, .devices = devices, .ndevices = 2 };
	char *text = text_of(&s, 0);

	(void)state;
	assert_int_equal(count(text, "\ngpreempt_queue_slots{"), 1);
	assert_int_equal(count(text, "\ngpreempt_queue_slots{device=\"1\"} 24\n"), 1);
	free(text);
}

/* All of them differ: no two can change places. */
static struct gp_told different(void)
{
	struct gp_told one = { .info = { .device = 4,
					 .name = "MI308X",
					 .backend = "kfd",
					 .pci = "0000:03:00.0",
					 .queue_slots = 24,
					 .offline_percent = 75,
					 .online_percent = 25 },
			       .stats = { .has_details = 1,
					  .policy = "fair",
					  .preemptions = 101,
					  .cycles = 102,
					  .limited = 103,
					  .backing_off = 104,
					  .policy_ejected = 105,
					  .starved = 106,
					  .hints_expired = 107,
					  .slo_requests = 108,
					  .slo_met = 109,
					  .slices = 110,
					  .yielding = 111,
					  .stopped = 112,
					  .hints = 113,
					  .samples = 114,
					  .suspend = { .count = 115 },
					  .resume = { .count = 116 },
					  .online = { .count = 117 },
					  .offline_run_ns = 118 * GP_S,
					  .online_run_ns = 119 * GP_S,
					  .offline_wait_ns = 120 * GP_S,
					  .online_wait_ns = 121 * GP_S } };

	for (uint64_t i = 0; i < (uint64_t)GP_ATTEMPTS * GP_FAILURES; i++)
		one.stats.failed[i / GP_FAILURES][i % GP_FAILURES] = 200 + i;
	return one;
}

static void each_number_of_a_device_is_told_under_its_own_name(void **state)
{
	static const char *const lines[] = {
		"gpreempt_device_info{device=\"4\",name=\"MI308X\",backend=\"kfd\",pci=\"0000:03:00.0\"} 1",
		"gpreempt_policy_info{device=\"4\",policy=\"fair\"} 1",
		"gpreempt_preemptions_total{device=\"4\"} 101",
		"gpreempt_device_cycles_total{device=\"4\"} 102",
		"gpreempt_stops_put_off_total{device=\"4\"} 103",
		"gpreempt_clients_backing_off{device=\"4\"} 104",
		"gpreempt_policy_ejections_total{device=\"4\"} 105",
		"gpreempt_starvation_slices_total{device=\"4\"} 106",
		"gpreempt_hints_expired_total{device=\"4\"} 107",
		"gpreempt_slo_requests_total{device=\"4\"} 108",
		"gpreempt_slo_met_total{device=\"4\"} 109",
		"gpreempt_yield_changes_total{device=\"4\"} 110",
		"gpreempt_queues_yielding{device=\"4\"} 111",
		"gpreempt_online_activations_total{device=\"4\",source=\"hint\"} 113",
		"gpreempt_online_activations_total{device=\"4\",source=\"sample\"} 114",
		"gpreempt_suspend_duration_seconds_count{device=\"4\"} 115",
		"gpreempt_resume_duration_seconds_count{device=\"4\"} 116",
		"gpreempt_online_request_duration_seconds_count{device=\"4\"} 117",
		"gpreempt_class_run_seconds_total{device=\"4\",class=\"offline\"} 118.000000000",
		"gpreempt_class_run_seconds_total{device=\"4\",class=\"online\"} 119.000000000",
		"gpreempt_class_wait_seconds_total{device=\"4\",class=\"offline\"} 120.000000000",
		"gpreempt_class_wait_seconds_total{device=\"4\",class=\"online\"} 121.000000000",
		"gpreempt_failures_total{device=\"4\",action=\"suspend\",reason=\"timeout\"} 200",
		"gpreempt_failures_total{device=\"4\",action=\"suspend\",reason=\"canceled\"} 204",
		"gpreempt_failures_total{device=\"4\",action=\"resume\",reason=\"gone\"} 207",
		"gpreempt_failures_total{device=\"4\",action=\"yield\",reason=\"driver\"} 217",
		"gpreempt_queue_slots{device=\"4\"} 24",
		"gpreempt_reserved_ratio{device=\"4\",class=\"offline\"} 0.75",
		"gpreempt_reserved_ratio{device=\"4\",class=\"online\"} 0.25",
	};
	struct gp_told device = different();
	const struct gp_snapshot s = { .is_up = 1, .devices = &device, .ndevices = 1 };
	char *text = text_of(&s, 0), line[128];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(line, sizeof(line), "\n%s\n", lines[i]);
		if (!strstr(text, line))
			fail_msg("not there: %s", lines[i]);
	}
	free(text);
}

static void each_number_of_a_client_is_told_under_its_own_name(void **state)
{
	struct gp_client_info c = { .pid = 7,
				    .device = 2,
				    .client_class = GP_CLASS_ONLINE,
				    .name = "serve",
				    .share_permille = 125,
				    .queues = 5,
				    .stopped = 2,
				    .hints = 4,
				    .hinted = 11,
				    .sampled = 12 };
	const struct gp_snapshot s = { .is_up = 1, .clients = &c, .nclients = 1 };
	char *text = text_of(&s, 1);

	(void)state;
#define OF "{device=\"2\",pid=\"7\",class=\"online\",name=\"serve\""
	assert_non_null(strstr(text, "\ngpreempt_client_share_ratio" OF "} 0.125\n"));
	assert_non_null(strstr(text, "\ngpreempt_client_queues" OF ",state=\"running\"} 3\n"));
	assert_non_null(strstr(text, "\ngpreempt_client_queues" OF ",state=\"stopped\"} 2\n"));
	assert_non_null(strstr(text, "\ngpreempt_client_open_hints" OF "} 4\n"));
	assert_non_null(strstr(text, "\ngpreempt_client_activations_total" OF ",source=\"hint\"} 11\n"));
	assert_non_null(strstr(text, "\ngpreempt_client_activations_total" OF ",source=\"sample\"} 12\n"));
#undef OF
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_label_is_escaped_whatever_is_in_it),
		cmocka_unit_test(a_thousand_clients_are_told_of_one_by_one_and_how_many_are_not),
		cmocka_unit_test(a_client_of_no_device_or_in_a_state_of_a_later_release_is_in_no_devices_sum),
		cmocka_unit_test(clients_are_counted_by_class_and_state),
		cmocka_unit_test(times_are_seconds_to_the_nanosecond),
		cmocka_unit_test(what_is_so_is_1_and_who_has_no_objective_is_not_told_to_have_one_of_0),
		cmocka_unit_test(slots_that_nobody_knows_of_are_not_told_as_0),
		cmocka_unit_test(each_number_of_a_device_is_told_under_its_own_name),
		cmocka_unit_test(each_number_of_a_client_is_told_under_its_own_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
