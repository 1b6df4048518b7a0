// SPDX-License-Identifier: MIT
/* What the core counts on a device, and tells. */
#include "core_host.h"

#define SLO_NS (20 * MS)

/* Client 1 is online and has an objective, client 2 is offline. */
static void start_with(struct host *h, const struct gp_core_opts *opts)
{
	host_init(h, opts);
	device(h, 0, CAPS_STOP);
	client_with(h, 1, GP_CLASS_ONLINE, SLO_NS, 0);
	queue(h, 10, 1, 0);
	offline(h, 2);
}

static void start(struct host *h)
{
	struct gp_core_opts opts = { .max_starve_ns = GP_NEVER };

	start_with(h, &opts);
}

static struct gp_stats stats_of(struct host *h, uint32_t dev)
{
	struct gp_stats s;

	assert_int_equal(gp_core_device_stats(h->core, dev, &s, h->now), 0);
	assert_int_equal(s.size, sizeof(s));
	assert_int_equal(s.has_details, 1);
	assert_int_equal(s.device, dev);
	return s;
}

static void request(struct host *h, uint64_t client, uint64_t took_ns)
{
	hint(h, client);
	pass(h, took_ns);
	hint_over(h, client);
}

static void a_device_that_is_not_there_has_no_stats(void **state)
{
	struct gp_stats s;
	struct host h;

	(void)state;
	start(&h);
	assert_int_equal(gp_core_device_stats(h.core, 7, &s, h.now), -ENOENT);
	host_free(&h);
}

static void what_was_done_is_told_with_how_long_it_took(void **state)
{
	struct gp_stats s;
	struct host h;

	(void)state;
	start(&h);
	busy(&h, 10);
	pass(&h, MS);
	idle(&h, 10);
	pass(&h, 2 * MS);
	s = stats_of(&h, 0);
	assert_string_equal(s.policy, "priority");
	assert_string_equal(s.reason, "");
	assert_int_equal(s.preemptions, 1);
	assert_int_equal(s.suspend.count, 1);
	assert_int_equal(s.suspend.sum_ns, 100 * US);
	assert_int_equal(s.suspend_p50_ns, 100 * US);
	assert_int_equal(s.suspend_p99_ns, 100 * US);
	assert_int_equal(s.suspend_max_ns, 100 * US);
	assert_int_equal(s.resume.count, 1);
	assert_int_equal(s.resume.sum_ns, 50 * US);
	assert_int_equal(s.resume_p50_ns, 50 * US);
	assert_int_equal(s.resume_max_ns, 50 * US);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	busy(&h, 10);
	pass(&h, 100 * US);
	assert_int_equal(stats_of(&h, 0).reason_age_ns, 0);
	idle(&h, 10);
	pass(&h, 3 * SEC);
	assert_in_range(stats_of(&h, 0).reason_age_ns, 3 * SEC - 10 * MS, 3 * SEC);
	assert_non_null(strstr(stats_of(&h, 0).reason, "client 2 was not stopped: Input/output error"));
	host_free(&h);
}

/* Nobody was told that it stood still, so giving it back takes no time that says anything of resumes. */
static void what_undoes_a_stop_that_nobody_saw_done_is_no_resume(void **state)
{
	const struct gp_core_opts opts = { .max_starve_ns = GP_NEVER };
	const struct gp_hold drain = {
		.holder = 1, .owner = 2, .queue = 20, .until_ns = GP_NO_LEASE, .most = 1, .gentle = 1
	};
	struct host h;

	(void)state;
	host_init(&h, &opts);
	device(&h, 0, CAPS_STOP | GP_CORE_OVERTAKES);
	offline(&h, 2);
	h.stop_ns[GP_MECH_INTERRUPT] = 10 * SEC;
	assert_int_equal(gp_core_hold(h.core, &drain, h.now), 0);
	pass(&h, MS);
	assert_int_equal(core_release(h.core, 20, h.now), 0); /* it is called off */
	pass(&h, MS);
	assert_int_equal(h.count[0].runs, 1);
	h.stop_ns[GP_MECH_INTERRUPT] = 100 * US;
	h.stop_error[GP_MECH_INTERRUPT] = -ETIMEDOUT;
	assert_int_equal(gp_core_hold(h.core, &drain, h.now), 0);
	pass(&h, MS);
	assert_int_equal(h.count[0].runs, 2);
	assert_int_equal(stats_of(&h, 0).resumes, 0);
	assert_int_equal(stats_of(&h, 0).resume.count, 0);
	h.stop_error[GP_MECH_INTERRUPT] = 0;
	assert_int_equal(gp_core_hold(h.core, &drain, h.now), 0);
	pass(&h, MS);
	assert_int_equal(core_release(h.core, 20, h.now), 0);
	pass(&h, MS);
	assert_int_equal(stats_of(&h, 0).resumes, 1); /* the next one was done, and so is what follows */
	host_free(&h);
}

static void a_resume_that_nobody_answered_at_first_is_one_when_it_works(void **state)
{
	struct host h;

	(void)state;
	start(&h);
	busy(&h, 10);
	pass(&h, MS);
	h.resume_error = -ETIMEDOUT;
	idle(&h, 10);
	pass(&h, 2 * MS);
	h.resume_error = 0;
	pass(&h, 2 * SEC);
	assert_int_equal(have(&h, 20), GP_RUN);
	assert_int_equal(stats_of(&h, 0).resumes, 1);
	assert_int_equal(stats_of(&h, 0).resume.count, 1);
	host_free(&h);
}

static void a_request_takes_from_the_begin_of_its_hint_to_its_end(void **state)
{
	struct gp_stats s;
	struct host h;

	(void)state;
	start(&h);
	request(&h, 1, 5 * MS);
	request(&h, 1, 30 * MS);
	s = stats_of(&h, 0);
	assert_int_equal(s.online.count, 2);
	assert_int_equal(s.online.sum_ns, 35 * MS);
	assert_int_equal(s.hints_expired, 0);
	host_free(&h);
}

/* The bounds are 10 us, 20, 50, 100, 200, 500 us, 1 ms, 2, 5, 10, 20, 50 ms and so on to 10 s. */
static void a_latency_counts_at_its_bound_and_at_all_above(void **state)
{
	struct gp_stats s;
	struct host h;

	(void)state;
	start(&h);
	request(&h, 1, 5 * MS);
	request(&h, 1, 5 * MS + 50 * US); /* more than 1/256 above the bound */
	request(&h, 1, 11 * US);
	s = stats_of(&h, 0);
	assert_int_equal(s.online.at_most[0], 0);
	for (int i = 1; i < 8; i++)
		assert_int_equal(s.online.at_most[i], 1);
	assert_int_equal(s.online.at_most[8], 2);
	for (int i = 9; i < GP_LATENCY_BOUNDS; i++)
		assert_int_equal(s.online.at_most[i], 3);
	host_free(&h);
}

static void the_bounds_of_latencies_go_from_ten_microseconds_to_ten_seconds(void **state)
{
	(void)state;
	assert_int_equal(gp_hist_decade_ns(0), 10 * US);
	assert_int_equal(gp_hist_decade_ns(1), 20 * US);
	assert_int_equal(gp_hist_decade_ns(2), 50 * US);
	assert_int_equal(gp_hist_decade_ns(3), 100 * US);
	assert_int_equal(gp_hist_decade_ns(8), 5 * MS);
	assert_int_equal(gp_hist_decade_ns(GP_LATENCY_BOUNDS - 1), 10 * SEC);
}

static void an_objective_is_met_by_what_ends_within_it_and_not_by_what_is_later_or_never_ends(void **state)
{
	struct gp_stats s;
	struct host h;

	(void)state;
	start(&h);
	request(&h, 1, SLO_NS);
	request(&h, 1, SLO_NS + 1);
	hint(&h, 1);
	pass(&h, 2 * SEC);
	s = stats_of(&h, 0);
	assert_int_equal(s.slo_requests, 3);
	assert_int_equal(s.slo_met, 1);
	assert_int_equal(s.hints_expired, 1);
	assert_int_equal(s.online.count, 2); /* how long the third takes nobody knows */
	host_free(&h);
}

static void a_hint_that_expires_sooner_than_its_objective_does_not_meet_it(void **state)
{
	struct gp_stats s;
	struct host h;

	(void)state;
	start(&h);
	client_with(&h, 3, GP_CLASS_ONLINE, 60 * SEC, 0);
	queue(&h, 30, 3, 0);
	hint(&h, 3);
	pass(&h, 2 * SEC);
	s = stats_of(&h, 0);
	assert_int_equal(s.hints_expired, 1);
	assert_int_equal(s.slo_requests, 1);
	assert_int_equal(s.slo_met, 0);
	host_free(&h);
}

static void who_has_no_objective_neither_meets_nor_misses_it(void **state)
{
	struct gp_stats s;
	struct host h;

	(void)state;
	start(&h);
	online(&h, 3);
	request(&h, 3, 500 * MS);
	hint(&h, 3);
	pass(&h, 2 * SEC);
	s = stats_of(&h, 0);
	assert_int_equal(s.online.count, 1);
	assert_int_equal(s.hints_expired, 1);
	assert_int_equal(s.slo_requests + s.slo_met, 0);
	host_free(&h);
}

static void a_hint_of_one_device_is_counted_there_alone(void **state)
{
	const struct gp_core_hint on_second = { .client = 1, .number = 9, .device = 1 };
	struct host h;

	(void)state;
	start(&h);
	device(&h, 1, CAPS_STOP);
	queue(&h, 11, 1, 1);
	assert_int_equal(gp_core_hint_begin(h.core, &on_second, h.now), 0);
	pass(&h, MS);
	assert_int_equal(gp_core_hint_end(h.core, &on_second, h.now), 0);
	assert_int_equal(stats_of(&h, 0).online.count, 0);
	assert_int_equal(stats_of(&h, 1).online.count, 1);
	assert_int_equal(stats_of(&h, 1).slo_met, 1);
	host_free(&h);
}

static void a_request_is_counted_where_its_client_has_queues_and_not_where_a_hint_kept_a_place(void **state)
{
	struct gp_core_opts opts = { .max_starve_ns = GP_NEVER };
	struct host h;

	(void)state;
	host_init(&h, &opts);
	device(&h, 0, CAPS_STOP);
	device(&h, 1, CAPS_STOP | GP_CORE_APART);
	client_with(&h, 1, GP_CLASS_ONLINE, SLO_NS, 0);
	request(&h, 1, MS); /* it has none yet: it is awaited on the only device that is not apart */
	assert_int_equal(stats_of(&h, 0).online.count, 1);
	queue(&h, 11, 1, 1);
	request(&h, 1, MS);
	assert_int_equal(stats_of(&h, 0).online.count, 1);
	assert_int_equal(stats_of(&h, 1).online.count, 1);
	host_free(&h);
}

static const struct {
	int status;
	enum gp_failure why;
} failures[] = {
	{ -ETIMEDOUT, GP_FAILURE_TIMEOUT }, { -ESRCH, GP_FAILURE_GONE },
	{ -EPERM, GP_FAILURE_REFUSED },     { -EBUSY, GP_FAILURE_BUSY },
	{ -ENOMEM, GP_FAILURE_BUSY },       { -ECANCELED, GP_FAILURE_CANCELED },
	{ -EIO, GP_FAILURE_DRIVER },        { -ENXIO, GP_FAILURE_DRIVER },
	{ -ENOENT, GP_FAILURE_GONE },       { -ENODEV, GP_FAILURE_GONE },
	{ -ECONNRESET, GP_FAILURE_GONE },   { -EACCES, GP_FAILURE_REFUSED },
	{ -EINVAL, GP_FAILURE_REFUSED },    { -ENODATA, GP_FAILURE_REFUSED },
	{ -EAGAIN, GP_FAILURE_BUSY },       { -ENOSPC, GP_FAILURE_BUSY },
};

#define NFAILURES (sizeof(failures) / sizeof(failures[0]))

static void sums_up(const struct gp_stats *s)
{
	uint64_t n = 0;

	for (int i = 0; i < GP_ATTEMPTS; i++)
		for (int j = 0; j < GP_FAILURES; j++)
			n += s->failed[i][j];
	assert_int_equal(n, s->failures);
}

static void a_stop_that_fails_is_counted_by_why_and_its_client_backs_off(void **state)
{
	(void)state;
	for (size_t i = 0; i < NFAILURES; i++) {
		struct gp_stats s;
		struct host h;

		start(&h);
		h.stop_error[GP_MECH_INTERRUPT] = failures[i].status;
		busy(&h, 10);
		pass(&h, 100 * US);
		s = stats_of(&h, 0);
		assert_int_equal(s.failed[GP_ATTEMPT_SUSPEND][failures[i].why], 1);
		assert_int_equal(s.backing_off, 1);
		sums_up(&s);
		h.stop_error[GP_MECH_INTERRUPT] = 0;
		idle(&h, 10);
		pass(&h, 10 * MS);
		assert_int_equal(stats_of(&h, 0).backing_off, 0);
		host_free(&h);
	}
}

static void a_resume_that_fails_is_counted_by_why_each_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < NFAILURES; i++) {
		struct gp_stats s;
		struct host h;

		start(&h);
		busy(&h, 10);
		pass(&h, MS);
		h.resume_error = failures[i].status;
		idle(&h, 10);
		pass(&h, 100 * MS);
		s = stats_of(&h, 0);
		assert_true(s.failures > 1);
		assert_int_equal(s.failed[GP_ATTEMPT_RESUME][failures[i].why], s.failures);
		host_free(&h);
	}
}

static void a_program_that_cannot_yield_is_counted_as_refused(void **state)
{
	struct gp_stats s;
	struct host h;

	(void)state;
	host_init(&h, NULL);
	device(&h, 0, CAPS_YIELD);
	online(&h, 1);
	h.resume_error = -ENOTSUP;
	offline(&h, 2);
	pass(&h, MS);
	s = stats_of(&h, 0);
	assert_int_equal(s.failed[GP_ATTEMPT_YIELD][GP_FAILURE_REFUSED], 1);
	sums_up(&s);
	host_free(&h);
}

static void who_waited_too_long_is_counted_each_time(void **state)
{
	struct gp_core_opts opts = { .max_starve_ns = 100 * MS, .starve_slice_ns = 10 * MS };
	struct host h;

	(void)state;
	start_with(&h, &opts);
	busy(&h, 10);
	pass(&h, 99 * MS);
	assert_int_equal(stats_of(&h, 0).starved, 0);
	pass(&h, 2 * MS);
	assert_int_equal(stats_of(&h, 0).starved, 1);
	pass(&h, 120 * MS);
	assert_int_equal(stats_of(&h, 0).starved, 2);
	host_free(&h);
}

/* An offline queue of which nobody knows whether it is busy counts as if it were. */
static void offline_runs_or_waits_and_the_time_of_each_is_told_while_it_goes_on(void **state)
{
	struct gp_stats s;
	struct host h;

	(void)state;
	start(&h);
	pass(&h, 10 * MS);
	assert_int_equal(stats_of(&h, 0).offline_run_ns, 10 * MS);
	assert_int_equal(stats_of(&h, 0).offline_wait_ns, 0);
	busy(&h, 10);
	pass(&h, 7 * MS);
	s = stats_of(&h, 0);
	assert_int_equal(s.offline_run_ns, 10 * MS);
	assert_int_equal(s.offline_wait_ns, 7 * MS);
	assert_int_equal(s.online_run_ns, 7 * MS);
	assert_int_equal(s.online_wait_ns, 0);
	idle(&h, 10);
	pass(&h, 5 * MS);
	s = stats_of(&h, 0);
	assert_int_equal(s.offline_run_ns + s.offline_wait_ns, 22 * MS);
	assert_int_equal(s.online_run_ns, 8 * MS); /* with the linger */
	assert_int_equal(s.offline_wait_ns, 8 * MS);
	host_free(&h);
}

static void who_yields_to_online_work_runs_and_does_not_wait(void **state)
{
	struct gp_stats s;
	struct host h;

	(void)state;
	host_init(&h, NULL);
	device(&h, 0, CAPS_YIELD);
	online(&h, 1);
	offline(&h, 2);
	hint(&h, 1);
	pass(&h, 10 * MS);
	s = stats_of(&h, 0);
	assert_int_equal(s.offline_run_ns, 10 * MS);
	assert_int_equal(s.offline_wait_ns, 0);
	assert_int_equal(s.online_run_ns, 10 * MS);
	host_free(&h);
}

static void two_clients_of_a_class_that_run_at_once_take_the_time_of_one(void **state)
{
	struct gp_stats s;
	struct host h;

	(void)state;
	start(&h);
	offline(&h, 3);
	pass(&h, 10 * MS);
	assert_int_equal(gp_core_queue_remove(h.core, 20, h.now), 0);
	pass(&h, 10 * MS);
	assert_int_equal(gp_core_queue_remove(h.core, 30, h.now), 0);
	pass(&h, 10 * MS);
	s = stats_of(&h, 0);
	assert_int_equal(s.offline_run_ns, 20 * MS);
	assert_int_equal(s.offline_wait_ns, 0);
	host_free(&h);
}

static void a_client_that_changes_its_class_takes_its_time_along(void **state)
{
	const struct gp_core_client now_online = { .id = 2, .client_class = GP_CLASS_ONLINE };
	struct gp_stats s;
	struct host h;

	(void)state;
	start(&h);
	busy(&h, 20);
	pass(&h, 10 * MS);
	assert_int_equal(gp_core_client_change(h.core, &now_online, h.now), 0);
	pass(&h, 5 * MS);
	s = stats_of(&h, 0);
	assert_int_equal(s.offline_run_ns, 10 * MS);
	assert_int_equal(s.online_run_ns, 5 * MS);
	host_free(&h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_device_that_is_not_there_has_no_stats),
	cmocka_unit_test(what_was_done_is_told_with_how_long_it_took),
	cmocka_unit_test(what_undoes_a_stop_that_nobody_saw_done_is_no_resume),
	cmocka_unit_test(a_resume_that_nobody_answered_at_first_is_one_when_it_works),
	cmocka_unit_test(a_request_takes_from_the_begin_of_its_hint_to_its_end),
	cmocka_unit_test(a_latency_counts_at_its_bound_and_at_all_above),
	cmocka_unit_test(the_bounds_of_latencies_go_from_ten_microseconds_to_ten_seconds),
	cmocka_unit_test(an_objective_is_met_by_what_ends_within_it_and_not_by_what_is_later_or_never_ends),
	cmocka_unit_test(a_hint_that_expires_sooner_than_its_objective_does_not_meet_it),
	cmocka_unit_test(who_has_no_objective_neither_meets_nor_misses_it),
	cmocka_unit_test(a_hint_of_one_device_is_counted_there_alone),
	cmocka_unit_test(a_request_is_counted_where_its_client_has_queues_and_not_where_a_hint_kept_a_place),
	cmocka_unit_test(a_stop_that_fails_is_counted_by_why_and_its_client_backs_off),
	cmocka_unit_test(a_resume_that_fails_is_counted_by_why_each_time),
	cmocka_unit_test(a_program_that_cannot_yield_is_counted_as_refused),
	cmocka_unit_test(who_waited_too_long_is_counted_each_time),
	cmocka_unit_test(offline_runs_or_waits_and_the_time_of_each_is_told_while_it_goes_on),
	cmocka_unit_test(who_yields_to_online_work_runs_and_does_not_wait),
	cmocka_unit_test(two_clients_of_a_class_that_run_at_once_take_the_time_of_one),
	cmocka_unit_test(a_client_that_changes_its_class_takes_its_time_along),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
