// SPDX-License-Identifier: MIT
/* The library as a program sees it, on the simulated machine. */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <gpreempt/gpreempt.h>

#define MAX 16

static struct gp_ctx *ctx;
static struct gp_queue_info queues[MAX];

static int open_sim(void **state)
{
	const struct gp_open_opts opts = { .size = sizeof(opts), .backend = "sim" };

	(void)state;
	return gp_ctx_open(&opts, &ctx);
}

static int close_sim(void **state)
{
	(void)state;
	ctx = gp_ctx_close(ctx);
	return 0;
}

static int list(void)
{
	queues[0].size = sizeof(queues[0]);
	return gp_queue_list(ctx, queues, MAX);
}

static const struct gp_queue_info *find(uint64_t queue)
{
	int n = list();

	for (int i = 0; i < n; i++)
		if (queues[i].queue == queue)
			return &queues[i];
	return NULL;
}

static uint64_t first_of(uint32_t client_class)
{
	int n = list();

	for (int i = 0; i < n; i++)
		if (queues[i].client_class == client_class)
			return queues[i].queue;
	return 0;
}

static void the_version_reads_as_the_header_says(void **state)
{
	(void)state;
	assert_true(gp_version() >= GP_MAKE_VERSION(0, 1));
	assert_int_equal(gp_version(), GP_MAKE_VERSION(GP_VERSION_MAJOR, GP_VERSION_MINOR));
}

static void a_suspended_queue_is_suspended_until_it_is_resumed(void **state)
{
	uint64_t q = first_of(GP_CLASS_OFFLINE);

	(void)state;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, NULL, NULL), 0);
	assert_int_equal(find(q)->state, GP_QUEUE_SUSPENDED);
	assert_int_equal(find(q)->held, 1);
	assert_int_equal(gp_queue_resume(ctx, &q, 1, NULL), 0);
	assert_int_equal(find(q)->state, GP_QUEUE_RUNNING);
	assert_int_equal(find(q)->held, 0);
}

static void suspending_and_resuming_twice_changes_nothing(void **state)
{
	uint64_t q = first_of(GP_CLASS_OFFLINE);
	struct gp_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };

	(void)state;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, NULL, NULL), 0);
	assert_int_equal(gp_device_stats(ctx, 0, &before), 0);
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, NULL, NULL), 0);
	assert_int_equal(gp_device_stats(ctx, 0, &after), 0);
	assert_int_equal(before.suspends, after.suspends);
	assert_int_equal(before.suspends, 1);
	assert_int_equal(gp_queue_resume(ctx, &q, 1, NULL), 0);
	assert_int_equal(gp_queue_resume(ctx, &q, 1, NULL), 0);
	assert_int_equal(gp_device_stats(ctx, 0, &after), 0);
	assert_int_equal(after.resumes, 1);
	assert_true(after.suspend_p50_ns > 0);
}

static void an_unknown_queue_is_an_error_and_the_others_are_still_done(void **state)
{
	uint64_t q[] = { first_of(GP_CLASS_OFFLINE), 99999, 0 };
	int32_t status[3];

	(void)state;
	q[2] = q[0]; /* the same twice */
	assert_int_equal(gp_queue_suspend(ctx, q, 3, NULL, status), -ENOENT);
	assert_int_equal(status[0], 0);
	assert_int_equal(status[1], -ENOENT);
	assert_int_equal(status[2], 0);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "99999"));
	assert_int_equal(find(q[0])->state, GP_QUEUE_SUSPENDED);
	assert_int_equal(gp_queue_resume(ctx, q, 3, status), -ENOENT);
	assert_int_equal(status[1], -ENOENT);
	assert_int_equal(find(q[0])->state, GP_QUEUE_RUNNING);
}

static void all_queues_are_suspended_in_one_device_cycle(void **state)
{
	struct gp_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	uint64_t q[MAX];
	size_t n = 0;

	(void)state;
	for (int i = 0, all = list(); i < all; i++)
		if (queues[i].client_class == GP_CLASS_OFFLINE)
			q[n++] = queues[i].queue;
	assert_int_equal(n, 4);
	assert_int_equal(gp_device_stats(ctx, 0, &before), 0);
	assert_int_equal(gp_queue_suspend(ctx, q, n, NULL, NULL), 0);
	assert_int_equal(gp_device_stats(ctx, 0, &after), 0);
	/* Another may be the device's own, for a request that came meanwhile. */
	assert_true(after.cycles - before.cycles <= 2);
	assert_int_equal(after.suspends - before.suspends, 4);
}

static void nothing_to_suspend_is_fine(void **state)
{
	(void)state;
	assert_int_equal(gp_queue_suspend(ctx, NULL, 0, NULL, NULL), 0);
	assert_int_equal(gp_queue_suspend(ctx, NULL, 1, NULL, NULL), -EINVAL);
	assert_int_equal(gp_queue_resume(ctx, NULL, 0, NULL), 0);
}

static void a_lease_that_ends_gives_the_queue_back(void **state)
{
	const struct gp_suspend_opts opts = { .size = sizeof(opts), .lease_ns = 1000000 };
	const struct timespec pause = { .tv_nsec = 5000000 };
	uint64_t q = first_of(GP_CLASS_OFFLINE);

	(void)state;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &opts, NULL), 0);
	nanosleep(&pause, NULL);
	assert_int_equal(find(q)->held, 0);
	assert_int_equal(find(q)->state, GP_QUEUE_RUNNING);
}

static void options_from_the_future_are_refused_only_if_they_are_used(void **state)
{
	struct {
		struct gp_open_opts opts;
		uint64_t newer;
	} next = { .opts = { .size = sizeof(next), .backend = "sim" } };
	struct gp_ctx *other = NULL;

	(void)state;
	next.newer = 1;
	assert_int_equal(gp_ctx_open(&next.opts, &other), -E2BIG);
	assert_null(other);
	next.newer = 0;
	assert_int_equal(gp_ctx_open(&next.opts, &other), 0);
	assert_null(gp_ctx_close(other));
}

static void what_is_not_there_cannot_be_opened(void **state)
{
	struct gp_open_opts opts = { .size = sizeof(opts), .backend = "none" };
	struct gp_ctx *other = NULL;

	(void)state;
	assert_int_equal(gp_ctx_open(&opts, &other), -ENOENT);
	opts.backend = "auto";
	opts.device = "no-such-device";
	assert_int_equal(gp_ctx_open(&opts, &other), -ENOENT);
	opts.device = NULL;
	opts.flags = 1;
	assert_int_equal(gp_ctx_open(&opts, &other), -EINVAL);
	opts.size = 0;
	assert_int_equal(gp_ctx_open(&opts, &other), -EINVAL);
	assert_null(other);
	assert_null(gp_ctx_close(NULL));
	assert_string_equal(gp_ctx_errmsg(NULL), "");
}

static void a_shorter_entry_of_an_older_program_is_filled_as_far_as_it_goes(void **state)
{
	struct {
		size_t size;
		uint64_t queue;
		uint64_t client;
		uint64_t canary;
	} old[MAX];

	(void)state;
	memset(old, 0xaa, sizeof(old));
	old[0].size = 24;
	/* Entries of 24 bytes: the array of the older program is denser than ours. */
	assert_int_equal(gp_queue_list(ctx, (struct gp_queue_info *)(void *)old, 2), 5);
	assert_int_equal(old[0].size, 24);
	assert_int_equal(old[0].queue, 1);
	assert_int_equal(((size_t *)old)[3], 24);
	assert_int_equal(((uint64_t *)old)[4], 2);
	assert_int_equal(((uint64_t *)old)[6], 0xaaaaaaaaaaaaaaaaull);
	old[0].size = 0;
	assert_int_equal(gp_queue_list(ctx, (struct gp_queue_info *)(void *)old, 2), -EINVAL);
}

static void the_device_says_what_it_can_do(void **state)
{
	struct gp_device_info info = { .size = sizeof(info) };

	(void)state;
	assert_int_equal(gp_device_list(ctx, NULL, 0), 1);
	assert_int_equal(gp_device_list(ctx, &info, 1), 1);
	assert_string_equal(info.backend, "sim");
	assert_string_equal(info.name, "mi308x");
	assert_string_equal(info.policy, "priority");
	assert_int_equal(info.compute_units, 80);
	assert_int_equal(info.queue_slots, 24);
	assert_true(info.caps & GP_CAP_INTERRUPT);
}

static void hints_are_for_online_clients_and_are_counted(void **state)
{
	uint64_t online = find(first_of(GP_CLASS_ONLINE))->client;
	uint64_t offline = find(first_of(GP_CLASS_OFFLINE))->client;

	(void)state;
	assert_int_equal(gp_hint_begin(ctx, offline), -EPERM);
	assert_int_equal(gp_hint_begin(ctx, 999), -ENOENT);
	assert_int_equal(gp_hint_end(ctx, online), -EALREADY);
	assert_int_equal(gp_hint_begin(ctx, online), 0);
	assert_int_equal(gp_hint_begin(ctx, online), 0);
	assert_int_equal(gp_hint_end(ctx, online), 0);
	assert_int_equal(gp_hint_end(ctx, online), 0);
	assert_int_equal(gp_hint_end(ctx, online), -EALREADY);
}

static void a_client_changes_its_class(void **state)
{
	uint64_t q = first_of(GP_CLASS_OFFLINE), client = find(q)->client;

	(void)state;
	assert_int_equal(gp_client_set_class(ctx, client, GP_CLASS_ONLINE), 0);
	assert_int_equal(find(q)->client_class, GP_CLASS_ONLINE);
	assert_int_equal(gp_hint_begin(ctx, client), 0);
	assert_int_equal(gp_client_set_class(ctx, client, GP_CLASS_OFFLINE), 0);
	assert_int_equal(gp_hint_end(ctx, client), -EALREADY); /* its hints died with its class */
	assert_int_equal(gp_client_set_class(ctx, client, 7), -EINVAL);
	assert_int_equal(gp_client_set_class(ctx, client, GP_CLASS_UNKNOWN), -EINVAL);
	assert_int_equal(gp_client_set_class(ctx, 999, GP_CLASS_ONLINE), -ENOENT);
}

static void a_reservation_is_checked(void **state)
{
	(void)state;
	assert_int_equal(gp_device_reserve(ctx, 0, 50, 50), 0);
	assert_int_equal(gp_device_reserve(ctx, 0, 60, 50), -EINVAL);
	assert_int_equal(gp_device_reserve(ctx, 1, 50, 50), -ENOENT);
	assert_int_equal(gp_device_reserve(ctx, 0, 0, 100), 0);
}

static void a_device_without_slots_has_nothing_to_reserve(void **state)
{
	const struct gp_open_opts opts = { .size = sizeof(opts), .device = "h200" };
	struct gp_ctx *h200;

	(void)state;
	assert_int_equal(gp_ctx_open(&opts, &h200), 0);
	assert_int_equal(gp_device_reserve(h200, 0, 50, 50), -ENOTSUP);
	assert_true(strlen(gp_ctx_errmsg(h200)) > 0);
	gp_ctx_close(h200);
}

static void statistics_of_no_device_and_of_no_size_are_errors(void **state)
{
	struct gp_stats stats = { .size = sizeof(stats) };

	(void)state;
	assert_int_equal(gp_device_stats(ctx, 3, &stats), -ENOENT);
	stats.size = 0;
	assert_int_equal(gp_device_stats(ctx, 0, &stats), -EINVAL);
	assert_int_equal(gp_device_stats(ctx, 0, NULL), -EINVAL);
	assert_string_equal(gp_strerror(-ENOENT), strerror(ENOENT));
	assert_string_equal(gp_strerror(0), "no error");
}

#define ON_SIM(test) cmocka_unit_test_setup_teardown(test, open_sim, close_sim)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_version_reads_as_the_header_says),
		ON_SIM(a_suspended_queue_is_suspended_until_it_is_resumed),
		ON_SIM(suspending_and_resuming_twice_changes_nothing),
		ON_SIM(an_unknown_queue_is_an_error_and_the_others_are_still_done),
		ON_SIM(all_queues_are_suspended_in_one_device_cycle),
		ON_SIM(nothing_to_suspend_is_fine),
		ON_SIM(a_lease_that_ends_gives_the_queue_back),
		cmocka_unit_test(options_from_the_future_are_refused_only_if_they_are_used),
		cmocka_unit_test(what_is_not_there_cannot_be_opened),
		ON_SIM(a_shorter_entry_of_an_older_program_is_filled_as_far_as_it_goes),
		ON_SIM(the_device_says_what_it_can_do),
		ON_SIM(hints_are_for_online_clients_and_are_counted),
		ON_SIM(a_client_changes_its_class),
		ON_SIM(a_reservation_is_checked),
		cmocka_unit_test(a_device_without_slots_has_nothing_to_reserve),
		ON_SIM(statistics_of_no_device_and_of_no_size_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
