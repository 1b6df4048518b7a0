// SPDX-License-Identifier: MIT
/* The library as a program sees it: on the simulated machine, with a gpreemptd, and without one. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <gpreempt/gpreempt.h>

#include "discover/discover.h"
#include "fake_daemon.h"
#include "lib/kfd.h"
#include "lib/local.h"

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
	assert_true(after.resume_p50_ns > 0 && after.resume_p50_ns <= after.resume_max_ns);
	assert_string_equal(after.policy, "priority");
	assert_string_equal(after.ejection, "");
}

static void an_unknown_queue_is_an_error_and_the_others_are_still_done(void **state)
{
	uint64_t q[] = { first_of(GP_CLASS_OFFLINE), 99999, 0, 88888 };
	int32_t status[4];

	(void)state;
	q[2] = q[0]; /* the same twice */
	assert_int_equal(gp_queue_suspend(ctx, q, 1, NULL, status), 0);
	assert_string_equal(gp_ctx_errmsg(ctx), "");
	assert_int_equal(gp_queue_suspend(ctx, q, 4, NULL, status), -ENOENT);
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
	assert_int_equal(gp_queue_resume(ctx, NULL, 1, NULL), -EINVAL);
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

static void what_is_asked_of_the_simulated_machine_is_asked_now_and_not_when_it_was_last_asked(void **state)
{
	const struct gp_suspend_opts lease = { .size = sizeof(lease), .lease_ns = 2000000000 };
	const struct timespec pause = { .tv_sec = 2, .tv_nsec = 200000000 };
	struct gp_hint hint = { .size = sizeof(hint),
				.client = find(first_of(GP_CLASS_ONLINE))->client,
				.expiry_ns = 2000000000 };
	uint64_t q = first_of(GP_CLASS_OFFLINE);
	struct gp_stats before = { .size = sizeof(before) }, after = before;

	(void)state;
	assert_int_equal(gp_device_stats(ctx, 0, &before), 0);
	nanosleep(&pause, NULL);
	assert_int_equal(gp_device_stats(ctx, 0, &after), 0);
	assert_true(after.samples > before.samples); /* of 20 requests in a second */
	nanosleep(&pause, NULL);
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &lease, NULL), 0);
	assert_int_equal(find(q)->held, 1);
	nanosleep(&pause, NULL);
	assert_int_equal(gp_hint_begin(ctx, &hint), 0);
	assert_int_equal(gp_hint_end(ctx, &hint), 0);
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
	old[0].size = sizeof(size_t); /* and not a field more */
	assert_int_equal(gp_queue_list(ctx, (struct gp_queue_info *)(void *)old, 2), 5);
	assert_int_equal(((size_t *)old)[1], sizeof(size_t));
	old[0].size = 0;
	assert_int_equal(gp_queue_list(ctx, (struct gp_queue_info *)(void *)old, 2), -EINVAL);
	assert_int_equal(gp_queue_list(ctx, NULL, 2), -EINVAL);
	assert_int_equal(gp_queue_list(NULL, NULL, 0), -EINVAL);
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

/* Of a client, without a number. */
static int begin(uint64_t client)
{
	return gp_hint_begin(ctx, &(struct gp_hint){ .size = sizeof(struct gp_hint), .client = client });
}

static int end(uint64_t client)
{
	return gp_hint_end(ctx, &(struct gp_hint){ .size = sizeof(struct gp_hint), .client = client });
}

static void hints_are_for_online_clients_and_are_counted(void **state)
{
	uint64_t online = find(first_of(GP_CLASS_ONLINE))->client;
	uint64_t offline = find(first_of(GP_CLASS_OFFLINE))->client;

	(void)state;
	assert_int_equal(begin(offline), -EPERM);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "is not online"));
	assert_int_equal(begin(999), -ENOENT);
	assert_string_equal(gp_ctx_errmsg(ctx), "there is no client 999");
	assert_int_equal(end(online), -EALREADY);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "has no open hint"));
	assert_int_equal(begin(online), 0);
	assert_int_equal(begin(online), 0);
	assert_int_equal(end(online), 0);
	assert_int_equal(end(online), 0);
	assert_int_equal(end(online), -EALREADY);
}

static void the_simulated_machine_has_no_client_of_this_process_and_says_so(void **state)
{
	(void)state;
	assert_int_equal(gp_hint_begin(ctx, NULL), -ENOENT);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "no client of this process"));
	assert_int_equal(gp_hint_end(ctx, NULL), -ENOENT);
	assert_int_equal(gp_hint_begin(NULL, NULL), -EINVAL);
	assert_int_equal(gp_hint_end(NULL, NULL), -EINVAL);
}

static void a_hint_with_a_number_is_ended_by_that_number_alone(void **state)
{
	struct gp_hint hint = { .size = sizeof(hint),
				.client = find(first_of(GP_CLASS_ONLINE))->client,
				.number = 7 };

	(void)state;
	assert_int_equal(gp_hint_begin(ctx, &hint), 0);
	hint.number = 8;
	assert_int_equal(gp_hint_end(ctx, &hint), -EALREADY);
	hint.number = 7;
	assert_int_equal(gp_hint_end(ctx, &hint), 0);
	hint.flags = 1u << 31;
	assert_int_equal(gp_hint_begin(ctx, &hint), -EINVAL);
	hint.flags = 0;
	hint.size = 0;
	assert_int_equal(gp_hint_begin(ctx, &hint), -EINVAL);
}

static void a_client_changes_its_class(void **state)
{
	uint64_t q = first_of(GP_CLASS_OFFLINE), client = find(q)->client;

	(void)state;
	assert_int_equal(gp_client_set_class(ctx, client, GP_CLASS_ONLINE), 0);
	assert_int_equal(find(q)->client_class, GP_CLASS_ONLINE);
	assert_int_equal(begin(client), 0);
	assert_int_equal(gp_client_set_class(ctx, client, GP_CLASS_OFFLINE), 0);
	assert_int_equal(end(client), -EALREADY); /* its hints died with its class */
	assert_int_equal(gp_client_set_class(ctx, client, 7), -EINVAL);
	assert_int_equal(gp_client_set_class(ctx, client, GP_CLASS_UNKNOWN), -EINVAL);
	assert_int_equal(gp_client_set_class(ctx, 999, GP_CLASS_ONLINE), -ENOENT);
}

static void the_clients_of_the_simulated_machine_are_listed_with_their_queues(void **state)
{
	struct gp_client_info clients[MAX] = { { .size = sizeof(clients[0]) } };
	uint64_t q = first_of(GP_CLASS_OFFLINE);

	(void)state;
	assert_int_equal(gp_client_list(ctx, NULL, 0), 3);
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, NULL, NULL), 0);
	assert_int_equal(gp_client_list(ctx, clients, MAX), 3);
	assert_int_equal(clients[0].client_class, GP_CLASS_ONLINE);
	assert_int_equal(clients[0].queues, 1);
	assert_int_equal(clients[1].client, find(q)->client);
	assert_string_equal(clients[1].name, find(q)->client_name);
	assert_int_equal(clients[1].queues, 2);
	assert_true(clients[1].stopped >= 1);
	assert_int_equal(clients[1].weight, 100);
	assert_int_equal(clients[2].size, sizeof(clients[0]));
	clients[0].size = 0;
	assert_int_equal(gp_client_list(ctx, clients, MAX), -EINVAL);
	assert_int_equal(gp_client_list(NULL, NULL, 0), -EINVAL);
}

static void the_simulated_machine_takes_a_policy_and_names_those_there_are(void **state)
{
	struct gp_device_info info = { .size = sizeof(info) };

	(void)state;
	assert_int_equal(gp_device_set_policy(ctx, 0, "fair"), 0);
	assert_int_equal(gp_device_list(ctx, &info, 1), 1);
	assert_string_equal(info.policy, "fair");
	assert_int_equal(gp_device_set_policy(ctx, GP_ALL_DEVICES, "fifo"), 0);
	assert_int_equal(gp_device_list(ctx, &info, 1), 1);
	assert_string_equal(info.policy, "fifo");
	assert_int_equal(gp_device_set_policy(ctx, 0, "best"), -ENOENT);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "priority"));
	assert_int_equal(gp_device_set_policy(ctx, 0, "re\033d"), -ENOENT);
	assert_null(strchr(gp_ctx_errmsg(ctx), '\033')); /* it may be shown in a terminal */
	assert_int_equal(gp_device_set_policy(ctx, 3, "fair"), -ENOENT);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "device 3"));
	assert_int_equal(gp_device_set_policy(ctx, 0, NULL), -EINVAL);
	assert_int_equal(gp_device_set_policy(ctx, 0, "12345678901234567890123456789012"), -ENOENT);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "so long a name")); /* that no message has room for */
}

static void on_the_simulated_machine_everything_is_allowed(void **state)
{
	uint32_t rights = 0;

	(void)state;
	assert_int_equal(gp_ctx_rights(ctx, &rights), 0);
	assert_int_equal(rights, GP_RIGHT_OTHERS);
}

static void the_simulated_machine_keeps_no_events(void **state)
{
	struct gp_event event = { .size = sizeof(event) };

	(void)state;
	assert_int_equal(gp_event_open(ctx, NULL), -ENOTSUP);
	assert_int_equal(gp_event_next(ctx, 0, &event), -ENOTSUP);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "events"));
}

static void a_reservation_is_checked_and_listed(void **state)
{
	struct gp_device_info info = { .size = sizeof(info) };

	(void)state;
	assert_int_equal(gp_device_reserve(ctx, 0, 60, 30), 0);
	assert_int_equal(gp_device_reserve(ctx, 0, 60, 50), -EINVAL);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "together at most 100"));
	assert_int_equal(gp_device_list(ctx, &info, 1), 1);
	assert_int_equal(info.online_percent, 60);
	assert_int_equal(info.offline_percent, 30);
	assert_int_equal(gp_device_reserve(ctx, 1, 50, 50), -ENOENT);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), strerror(ENOENT)));
	assert_int_equal(gp_device_reserve(ctx, 0, 0, 100), 0);
}

static void refuse_job(struct gp_job job, const char *why)
{
	assert_int_equal(gp_job_declare(ctx, &job), -EINVAL);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), why));
}

static void a_job_has_a_process_a_class_and_a_name_and_is_none_of_a_simulated_machine(void **state)
{
	const struct gp_job good = { .size = sizeof(good),
				     .pid = 17,
				     .client_class = GP_CLASS_OFFLINE,
				     .weight = 10000,
				     .floor_permille = 1000,
				     .name = "slurm 7.0",
				     .cgroup = "/slurm/job_7" };
	struct gp_job job = good;
	char longer[193];

	(void)state;
	memset(longer, '/', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(gp_job_declare(ctx, &good), -ENOTSUP);
	assert_int_equal(gp_job_list(ctx, NULL, 0), -ENOTSUP);
	assert_int_equal(gp_job_declare(ctx, NULL), -EINVAL);
	assert_int_equal(gp_job_declare(NULL, &good), -EINVAL);
	assert_int_equal(gp_job_list(NULL, NULL, 0), -EINVAL);
	job.pid = 0;
	refuse_job(job, "no process");
	job = good;
	job.client_class = GP_CLASS_UNKNOWN;
	refuse_job(job, "online or offline");
	job = good;
	job.weight = 10001;
	refuse_job(job, "weight");
	job = good;
	job.floor_permille = 1001;
	refuse_job(job, "permille");
	job = good;
	job.name = "";
	refuse_job(job, "name");
	job.name = longer;
	refuse_job(job, "name");
	job = good;
	job.cgroup = "slurm";
	refuse_job(job, "begins with /");
	job.cgroup = longer;
	refuse_job(job, "191");
}

static void a_container_is_attached_by_a_process_and_a_class_and_not_on_a_simulated_machine(void **state)
{
	(void)state;
	assert_int_equal(gp_container_attach(ctx, 0, 0, GP_CLASS_ONLINE), -EINVAL);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "no process"));
	assert_int_equal(gp_container_attach(ctx, 17, 0, GP_CLASS_UNKNOWN), -EINVAL);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "online or as offline"));
	assert_int_equal(gp_container_attach(ctx, 17, 0, GP_CLASS_ONLINE), -ENOTSUP);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "no containers"));
}

static void a_device_without_slots_has_nothing_to_reserve(void **state)
{
	const struct gp_open_opts opts = { .size = sizeof(opts), .device = "h200" };
	struct gp_ctx *h200;

	(void)state;
	assert_int_equal(gp_ctx_open(&opts, &h200), 0);
	assert_int_equal(gp_device_reserve(h200, 0, 50, 50), -ENOTSUP);
	assert_non_null(strstr(gp_ctx_errmsg(h200), "no queue slots"));
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

static void a_call_without_a_context_is_an_error(void **state)
{
	struct gp_stats stats = { .size = sizeof(stats) };
	struct gp_event event = { .size = sizeof(event) };
	struct gp_queue_info info = { .size = sizeof(info) };

	(void)state;
	assert_int_equal(gp_device_list(NULL, NULL, 0), -EINVAL);
	assert_int_equal(gp_queue_find(NULL, 0, 1, &info), -EINVAL);
	assert_int_equal(gp_queue_suspend(NULL, NULL, 0, NULL, NULL), -EINVAL);
	assert_int_equal(gp_queue_resume(NULL, NULL, 0, NULL), -EINVAL);
	assert_int_equal(gp_device_reserve(NULL, 0, 50, 50), -EINVAL);
	assert_int_equal(gp_container_attach(NULL, 1, 0, GP_CLASS_ONLINE), -EINVAL);
	assert_int_equal(gp_device_set_policy(NULL, 0, "fair"), -EINVAL);
	assert_int_equal(gp_device_stats(NULL, 0, &stats), -EINVAL);
	assert_int_equal(gp_event_open(NULL, NULL), -EINVAL);
	assert_int_equal(gp_event_next(NULL, 0, &event), -EINVAL);
	assert_int_equal(gp_client_set_class(NULL, 1, GP_CLASS_ONLINE), -EINVAL);
	assert_string_equal(gp_ctx_notice(NULL), "");
}

static struct fake_daemon fake;
static char folder[] = "/tmp/gpreempt-test-XXXXXX", place[64];

#define LONG_NS 5000000000ull /* nothing takes that long */

/* How many there are. What follows the end of one takes a moment: it waits for that many. */
static uint32_t connections(uint32_t want)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t end_ns = fake_now() + LONG_NS;

	while (__atomic_load_n(&fake.connections, __ATOMIC_ACQUIRE) != want && fake_now() < end_ns)
		nanosleep(&pause, NULL);
	return fake.connections;
}

static int open_kfd(struct gp_ctx **ret)
{
	const struct gp_open_opts opts = { .size = sizeof(opts), .socket = place };

	return gp_ctx_open(&opts, ret);
}

/* A gpreemptd with three queues of process 100 and one of 200, that shares an address with one of them. */
static int start_fake(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.ndevices = 1;
	fake.caps = GP_CAP_INTERRUPT | GP_CAP_CROSS_PROCESS;
	for (uint32_t i = 1; i <= 3; i++)
		fake_add(&fake, 100, i, 0x7f0000000000 + i * 0x10000);
	fake_add(&fake, 200, 1, 0x7f0000010000);
	return fake_start(&fake, place);
}

static int start_and_open(void **state)
{
	if (start_fake(state) < 0)
		return -1;
	if (open_kfd(&ctx) == 0)
		return 0;
	fake_stop(&fake); /* nobody tears down what was not set up */
	return -1;
}

static int close_and_stop(void **state)
{
	(void)state;
	ctx = gp_ctx_close(ctx);
	fake_stop(&fake);
	return 0;
}

static void queues_are_listed_suspended_and_resumed_through_gpreemptd(void **state)
{
	struct gp_device_info device = { .size = sizeof(device) };
	uint64_t q;

	(void)state;
	assert_string_equal(gp_ctx_notice(ctx), "");
	assert_int_equal(gp_device_list(ctx, &device, 1), 1);
	assert_string_equal(device.backend, "kfd");
	assert_int_equal(device.queue_slots, 24);
	assert_int_equal(list(), 4);
	assert_int_equal(queues[1].pid, 100);
	assert_int_equal(queues[1].queue_id, 2);
	assert_int_equal(queues[1].ring, 0x7f0000020000);
	assert_string_equal(queues[1].way, "update");
	q = queues[1].queue;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, NULL, NULL), 0);
	assert_int_equal(fake_held(&fake, 1), 1);
	assert_int_equal(find(q)->state, GP_QUEUE_SUSPENDED);
	assert_int_equal(gp_queue_resume(ctx, &q, 1, NULL), 0);
	assert_int_equal(fake_held(&fake, 0), 0);
}

static void auto_takes_gpreemptd_where_there_is_one_unless_the_environment_says_otherwise(void **state)
{
	const struct gp_open_opts opts = { .size = sizeof(opts), .backend = "auto", .socket = place };
	struct gp_device_info device = { .size = sizeof(device) };
	struct gp_ctx *other;

	(void)state;
	assert_int_equal(gp_ctx_open(&opts, &other), 0);
	assert_int_equal(gp_device_list(other, &device, 1), 1);
	assert_string_equal(device.backend, "kfd");
	gp_ctx_close(other);
	setenv("GPREEMPT_BACKEND", "sim", 1);
	assert_int_equal(gp_ctx_open(&opts, &other), 0);
	assert_int_equal(gp_device_list(other, &device, 1), 1);
	assert_string_equal(device.backend, "sim");
	gp_ctx_close(other);
	setenv("GPREEMPT_BACKEND", "none", 1);
	assert_int_equal(gp_ctx_open(&opts, &other), -ENOENT);
	unsetenv("GPREEMPT_BACKEND");
}

static void the_environment_names_the_socket_and_an_option_goes_before_it(void **state)
{
	struct gp_open_opts opts = { .size = sizeof(opts), .backend = "kfd" };
	struct gp_ctx *other;

	(void)state;
	setenv("GPREEMPT_SOCKET", place, 1);
	assert_int_equal(gp_ctx_open(&opts, &other), 0);
	assert_int_equal(gp_queue_list(other, NULL, 0), 4);
	gp_ctx_close(other);
	setenv("GPREEMPT_SOCKET", "/nowhere/else", 1);
	opts.socket = place;
	assert_int_equal(gp_ctx_open(&opts, &other), 0);
	gp_ctx_close(other);
	unsetenv("GPREEMPT_SOCKET");
}

static void what_is_asked_of_a_suspension_reaches_gpreemptd(void **state)
{
	const struct gp_suspend_opts opts = { .size = sizeof(opts),
					      .lease_ns = 7000000000,
					      .flags = GP_SUSPEND_NEW_QUEUES | GP_SUSPEND_STRICT,
					      .timeout_ns = 300000000,
					      .type = GP_PREEMPT_DRAIN,
					      .way = "dbg" };
	uint64_t q = FAKE_HANDLES + 1;

	(void)state;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &opts, NULL), 0);
	assert_int_equal(fake.hold.lease_ns, 7000000000);
	assert_int_equal(fake.hold.timeout_ns, 300000000);
	assert_int_equal(fake.hold.type, GP_PREEMPT_DRAIN);
	assert_int_equal(fake.hold.way, GP_KFD_WAY_DBG);
	assert_int_equal(fake.hold.hold, GP_HOLD_NEW_QUEUES | GP_HOLD_STRICT);
}

static void items_say_where_they_are_to_a_gpreemptd_that_welcomes_that(void **state)
{
	uint64_t q = FAKE_HANDLES + 1;

	(void)state;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, NULL, NULL), 0);
	assert_int_equal(fake.offered, GP_FEATURES);
	assert_int_equal(fake.flags, 0);
	ctx = gp_ctx_close(ctx);
	fake.features = GP_FEATURE_STRIDES;
	assert_int_equal(open_kfd(&ctx), 0);
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, NULL, NULL), 0);
	assert_int_equal(fake.flags, GP_WIRE_STRIDES);
	assert_int_equal(fake_held(&fake, 1), 1);
}

static void the_time_of_a_save_in_the_private_way_reaches_gpreemptd(void **state)
{
	const struct gp_suspend_opts opts = { .size = sizeof(opts),
					      .timeout_ns = 50000000,
					      .way = "private" };
	uint64_t q = FAKE_HANDLES + 1;

	(void)state;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &opts, NULL), 0);
	assert_int_equal(fake.hold.type, GP_PREEMPT_SAVE);
	assert_int_equal(fake.hold.timeout_ns, 50000000);
	assert_int_equal(fake.hold.hold, 0);
}

static void a_lease_that_ends_before_the_drains_timeout_is_refused(void **state)
{
	struct gp_suspend_opts opts = {
		.size = sizeof(opts), .lease_ns = 299000000, .timeout_ns = 300000000, .type = GP_PREEMPT_DRAIN
	};
	uint64_t q = FAKE_HANDLES + 1;

	(void)state;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &opts, NULL), -EINVAL);
	assert_non_null(strstr(gp_ctx_errmsg(ctx),
			       "a lease of 299 ms would end before the drain's timeout of 300 ms"));
	opts.timeout_ns = 0; /* a second */
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &opts, NULL), -EINVAL);
	assert_int_equal(fake.seen[GP_MSG_HOLD], 0);
	opts.lease_ns = 1000000000;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &opts, NULL), 0);
	opts = (struct gp_suspend_opts){ .size = sizeof(opts), .lease_ns = 1, .timeout_ns = 300000000 };
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &opts, NULL), 0); /* a save is not waited for */
}

static void a_reset_is_refused_before_anything_is_asked(void **state)
{
	struct gp_suspend_opts opts = { .size = sizeof(opts), .type = GP_PREEMPT_RESET };
	uint64_t q = FAKE_HANDLES + 1;

	(void)state;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &opts, NULL), -ENOTSUP);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "lost"));
	opts.type = 3;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &opts, NULL), -EINVAL);
	opts = (struct gp_suspend_opts){ .size = sizeof(opts), .way = "magic" };
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &opts, NULL), -EINVAL);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "magic"));
	opts = (struct gp_suspend_opts){ .size = sizeof(opts), .flags = 4 };
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &opts, NULL), -EINVAL);
	opts = (struct gp_suspend_opts){ .size = sizeof(opts), .flags = GP_SUSPEND_STRICT };
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &opts, NULL), -EINVAL);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "drain"));
	opts = (struct gp_suspend_opts){ .size = sizeof(opts), .reserved = 1 };
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, &opts, NULL), -EINVAL);
	assert_int_equal(fake.seen[GP_MSG_HOLD], 0);
}

static void what_gpreemptd_says_to_a_success_is_a_notice_and_to_a_failure_the_error(void **state)
{
	uint64_t q[] = { FAKE_HANDLES + 1, FAKE_HANDLES + 2 };
	int32_t status[2];

	(void)state;
	strcpy(fake.text, "dbg is not there; update was used");
	assert_int_equal(gp_queue_suspend(ctx, q, 1, NULL, NULL), 0);
	assert_string_equal(gp_ctx_notice(ctx), fake.text);
	fake.text[0] = '\0';
	assert_int_equal(gp_queue_resume(ctx, q, 1, NULL), 0);
	assert_string_equal(gp_ctx_notice(ctx), "");
	fake.queues[1].status = -EACCES;
	strcpy(fake.text, "200 is another user's");
	assert_int_equal(gp_queue_suspend(ctx, q, 2, NULL, status), -EACCES);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), fake.text));
	assert_int_equal(status[0], 0);
	assert_int_equal(status[1], -EACCES);
	assert_int_equal(fake_held(&fake, 1), 1);
}

static void more_queues_than_a_message_holds_take_several(void **state)
{
	const size_t n = 2500;
	uint64_t *q = calloc(n, sizeof(*q));
	int32_t *status = calloc(n, sizeof(*status));

	(void)state;
	while (fake.nqueues < n)
		fake_add(&fake, 300, (uint32_t)fake.nqueues, fake.nqueues << 16);
	for (size_t i = 0; i < n; i++)
		q[i] = FAKE_HANDLES + 1 + i;
	q[1500] = 5; /* nobody's */
	q[2400] = 6;
	assert_int_equal(gp_queue_list(ctx, NULL, 0), n);
	assert_int_equal(gp_queue_suspend(ctx, q, n, NULL, status), -ENOENT);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "queue 5 "));
	assert_int_equal(fake.seen[GP_MSG_HOLD], 3);
	assert_int_equal(fake.items[GP_MSG_HOLD], n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(status[i], i == 1500 || i == 2400 ? -ENOENT : 0);
	assert_int_equal(fake_held(&fake, n - 2), n - 2);
	assert_int_equal(gp_queue_resume(ctx, q, n, NULL), -ENOENT);
	assert_int_equal(fake_held(&fake, 0), 0);
	free(q);
	free(status);
}

static void closing_gives_everything_back_but_what_has_a_lease(void **state)
{
	const struct gp_suspend_opts lease = { .size = sizeof(lease), .lease_ns = 60000000000 };
	uint64_t q[] = { FAKE_HANDLES + 1, FAKE_HANDLES + 2 };

	(void)state;
	assert_int_equal(gp_queue_suspend(ctx, q, 1, NULL, NULL), 0);
	assert_int_equal(gp_queue_suspend(ctx, q + 1, 1, &lease, NULL), 0);
	assert_int_equal(fake_held(&fake, 2), 2);
	ctx = gp_ctx_close(ctx);
	assert_int_equal(fake_held(&fake, 1), 1);
	assert_true(fake.queues[1].holder >= 0);
}

static void a_child_may_close_what_its_parent_opened_and_nothing_is_resumed_by_that(void **state)
{
	uint64_t q = FAKE_HANDLES + 1;
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, NULL, NULL), 0);
	child = fork();
	if (child == 0) {
		int r = gp_queue_resume(ctx, &q, 1, NULL);

		gp_ctx_close(ctx);
		_exit(r == -EPERM ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(list(), 4); /* has gone round: gpreemptd has seen whatever the child did */
	assert_int_equal(fake_held(&fake, 1), 1);
	assert_int_equal(fake.seen[GP_MSG_RELEASE], 0);
}

static void a_gpreemptd_of_another_version_is_refused(void **state)
{
	struct gp_ctx *other = NULL;

	(void)state;
	fake.version = GP_WIRE_VERSION + 1;
	assert_int_equal(open_kfd(&other), -EPROTO);
	assert_null(other);
}

/* After it the connection has ended, and with it every hold. */
static void check_lost(int r)
{
	struct gp_queue_info info = { .size = sizeof(info) };
	uint64_t q = FAKE_HANDLES + 2;

	assert_int_equal(fake_held(&fake, 0), 0);
	assert_true(r == -ETIMEDOUT || r == -ECONNRESET || r == -EBADMSG);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "runs again"));
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, NULL, NULL), -ECONNRESET);
	assert_int_equal(list(), -ECONNRESET);
	assert_int_equal(gp_device_list(ctx, NULL, 0), -ECONNRESET);
	assert_int_equal(gp_queue_find(ctx, 100, 1, &info), -ECONNRESET);
}

static void a_gpreemptd_that_hangs_is_given_up_and_nothing_stays_stopped(void **state)
{
	uint64_t q[] = { FAKE_HANDLES + 1, FAKE_HANDLES + 2 };
	int32_t status[2];
	int r;

	(void)state;
	gp_kfd_set_patience(ctx, 50000000, 50000000);
	assert_int_equal(gp_queue_suspend(ctx, q, 1, NULL, NULL), 0);
	assert_int_equal(fake_held(&fake, 1), 1);
	fake.silent_at = GP_MSG_HOLD;
	r = gp_queue_suspend(ctx, q, 2, NULL, status);
	assert_int_equal(r, -ETIMEDOUT);
	assert_int_equal(status[0], -ETIMEDOUT);
	assert_int_equal(status[1], -ETIMEDOUT);
	check_lost(r);
}

static void a_list_that_does_not_come_is_given_up(void **state)
{
	(void)state;
	gp_kfd_set_patience(ctx, 50000000, 50000000);
	fake.silent_at = GP_MSG_LIST;
	assert_int_equal(list(), -ETIMEDOUT);
}

static void a_gpreemptd_that_dies_in_the_middle_is_noticed(void **state)
{
	uint64_t q[] = { FAKE_HANDLES + 1, FAKE_HANDLES + 2 };
	int32_t status[2];
	int r;

	(void)state;
	assert_int_equal(gp_queue_suspend(ctx, q, 1, NULL, NULL), 0);
	fake.drop_at = GP_MSG_HOLD;
	r = gp_queue_suspend(ctx, q, 2, NULL, status);
	assert_int_equal(r, -ECONNRESET);
	assert_int_equal(status[1], -ECONNRESET);
	check_lost(r);
}

static void an_answer_that_does_not_fit_the_question_ends_the_connection(void **state)
{
	uint64_t q[] = { FAKE_HANDLES + 1, FAKE_HANDLES + 2 };
	int r;

	(void)state;
	fake.lie_at = GP_MSG_HOLD;
	r = gp_queue_suspend(ctx, q, 2, NULL, NULL);
	assert_int_equal(r, -EBADMSG);
	check_lost(r);
}

static void a_refusal_is_told_in_its_words_and_the_context_goes_on(void **state)
{
	uint64_t q = FAKE_HANDLES + 1;
	int32_t status = 1;

	(void)state;
	fake.error_at = GP_MSG_HOLD;
	fake.error = -EPERM;
	strcpy(fake.text, "only root and group gpreempt may do that");
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, NULL, &status), -EPERM);
	assert_int_equal(status, -EPERM);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), fake.text));
	fake.error_at = 0;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, NULL, &status), 0);
}

static void pings_between_question_and_answer_are_passed_over(void **state)
{
	uint64_t q = FAKE_HANDLES + 1;

	(void)state;
	fake.pings = 3;
	assert_int_equal(gp_device_list(ctx, NULL, 0), 1);
	assert_int_equal(list(), 4);
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, NULL, NULL), 0);
	assert_int_equal(gp_queue_resume(ctx, &q, 1, NULL), 0);
}

static void a_queue_is_found_by_its_process_and_ring(void **state)
{
	struct gp_queue_info info = { .size = sizeof(info) };

	(void)state;
	assert_int_equal(gp_queue_find(ctx, 200, 0x7f0000010000, &info), 0);
	assert_int_equal(info.queue, FAKE_HANDLES + 4);
	assert_int_equal(info.pid, 200);
	assert_int_equal(gp_queue_find(ctx, 200, 0x7f0000020000, &info), -ENOENT);
	fake_add(&fake, (uint32_t)getpid(), 9, 0x7f0000020000);
	if (gp_sees_host_pids()) {
		assert_int_equal(gp_queue_find(ctx, 0, 0x7f0000020000, &info), 0);
		assert_int_equal(info.queue_id, 9);
	} else { /* the test runs in a container: two processes have such a ring, and neither may be ours */
		assert_int_equal(gp_queue_find(ctx, 0, 0x7f0000020000, &info), -ENOTUNIQ);
	}
	fake.queues[3].info.known &= ~GP_KNOWN_RING;
	assert_int_equal(gp_queue_find(ctx, 200, 0x7f0000010000, &info), -ENOENT);
	info.size = 0;
	assert_int_equal(gp_queue_find(ctx, 0, 1, &info), -EINVAL);
	assert_int_equal(gp_queue_find(ctx, 0, 1, NULL), -EINVAL);
}

static void a_reservation_reaches_gpreemptd_and_a_wrong_one_does_not(void **state)
{
	(void)state;
	assert_int_equal(gp_device_reserve(ctx, 0, 70, 30), 0);
	assert_int_equal(fake.reserve.online_percent, 70);
	assert_int_equal(fake.reserve.offline_percent, 30);
	assert_int_equal(gp_device_reserve(ctx, 0, 70, 40), -EINVAL);
	assert_int_equal(gp_device_reserve(ctx, 0, UINT32_MAX, 1), -EINVAL);
	assert_int_equal(fake.seen[GP_MSG_RESERVE], 1);
}

static void a_class_reaches_a_gpreemptd_that_knows_of_it_and_no_other(void **state)
{
	(void)state;
	assert_int_equal(gp_client_set_class(ctx, 100, GP_CLASS_OFFLINE), -ENOTSUP);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "older"));
	assert_int_equal(fake_seen(&fake, GP_MSG_CLASS, 0), 0);
	ctx = gp_ctx_close(ctx);
	fake.features = GP_FEATURE_CLASS;
	assert_int_equal(open_kfd(&ctx), 0);
	assert_int_equal(gp_client_set_class(ctx, 100, GP_CLASS_ONLINE), 0);
	assert_int_equal(fake.class.client, 100);
	assert_int_equal(fake.class.client_class, GP_CLASS_ONLINE);
}

static void a_hint_reaches_gpreemptd_and_is_not_answered(void **state)
{
	struct gp_hint hint = { .size = sizeof(hint), .client = 5, .number = 7, .expiry_ns = 9 };

	(void)state;
	assert_int_equal(gp_hint_begin(ctx, &hint), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, 1), 1);
	assert_int_equal(fake.hint.client, 5);
	assert_int_equal(fake.hint.number, 7);
	assert_int_equal(fake.hint.expiry_ns, 9);
	assert_int_equal(fake.hint.what, GP_HINT_BEGIN);
	assert_int_equal(fake.hint.device, GP_ALL_DEVICES);
	assert_int_equal(fake.hint_serial, 0);
	hint.flags = GP_HINT_DEVICE;
	hint.device = 0;
	assert_int_equal(gp_hint_end(ctx, &hint), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, 2), 2);
	assert_int_equal(fake.hint.what, GP_HINT_END);
	assert_int_equal(fake.hint.device, 0);
	assert_int_equal(gp_hint_begin(ctx, NULL), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, 3), 3);
	assert_int_equal(fake.hint.client, 0);
	assert_int_equal(fake.connections, 1);
	assert_int_equal(list(), 4);
}

static void a_hint_that_wants_an_answer_tells_what_gpreemptd_says(void **state)
{
	struct gp_hint hint = { .size = sizeof(hint), .client = 5, .flags = GP_HINT_ANSWER };

	(void)state;
	assert_int_equal(gp_hint_begin(ctx, &hint), 0);
	assert_true(fake.hint_serial != 0);
	fake.error_at = GP_MSG_HINT;
	fake.error = -EPERM;
	strcpy(fake.text, "5 is not online");
	assert_int_equal(gp_hint_begin(ctx, &hint), -EPERM);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), fake.text));
	gp_kfd_set_patience(ctx, 50000000, 50000000);
	fake.silent_at = GP_MSG_HINT;
	assert_int_equal(gp_hint_end(ctx, &hint), -ETIMEDOUT);
	assert_int_equal(gp_hint_end(ctx, &hint), -ECONNRESET);
}

/* gpreemptd's answer may be on its way. */
static const char *awaited_notice(void)
{
	uint64_t end_ns = fake_now() + 10000000000ull;

	while (!gp_ctx_notice(ctx)[0] && fake_now() < end_ns)
		usleep(1000);
	return gp_ctx_notice(ctx);
}

static void that_the_hints_of_this_process_count_for_nothing_is_told_once_and_no_call_fails(void **state)
{
	(void)state;
	fake.error_at = GP_MSG_HINT;
	fake.error = -EPERM;
	strcpy(fake.text, "the client is not online");
	assert_int_equal(gp_hint_begin(ctx, NULL), 0);
	assert_string_equal(awaited_notice(),
			    "hints of this process count for nothing: the client is not online");
	fake.error_at = 0;
	fake.text[0] = '\0';
	assert_int_equal(list(), 4);
	assert_int_equal(gp_queue_resume(ctx, NULL, 0, NULL), 0);
	assert_int_equal(gp_hint_begin(ctx, NULL), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, 2), 2);
	assert_int_equal(fake.hint_serial, 0);
	assert_int_equal(list(), 4);
	assert_string_equal(gp_ctx_notice(ctx), "");
}

static void why_gpreemptd_hangs_up_is_told_by_the_next_call_if_a_notice_was_looked_for(void **state)
{
	(void)state;
	fake.drop_at = GP_MSG_HINT;
	fake.last_word = 1;
	fake.error = -EPERM;
	strcpy(fake.text, "it was told too much");
	assert_int_equal(gp_hint_begin(ctx, NULL), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, 1), 1);
	assert_string_equal(gp_ctx_notice(ctx), "");
	assert_int_equal(list(), -EPERM);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), fake.text));
	assert_int_equal(list(), -ECONNRESET);
}

static void hints_that_count_leave_no_notice(void **state)
{
	(void)state;
	assert_int_equal(gp_hint_begin(ctx, NULL), 0);
	assert_int_equal(list(), 4); /* the answer to the hint is before those to that */
	assert_string_equal(gp_ctx_notice(ctx), "");
	assert_int_equal(list(), 4);
}

static void a_notice_of_hints_waits_for_what_was_said_of_a_call(void **state)
{
	uint64_t q[2] = { first_of(GP_CLASS_OFFLINE) };

	(void)state;
	fake.error_at = GP_MSG_HINT;
	fake.error = -EPERM;
	strcpy(fake.text, "it is held by others");
	assert_int_equal(gp_hint_begin(ctx, NULL), 0);
	assert_int_equal(gp_queue_resume(ctx, q, 1, NULL), 0);
	assert_string_equal(gp_ctx_notice(ctx), "it is held by others");
	assert_int_equal(gp_queue_resume(ctx, NULL, 0, NULL), 0);
	assert_memory_equal(awaited_notice(), "hints of this process", 21);
}

/* Until hints get through again: how often it was tried is not the point. */
static int hints_come_back(void)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	uint64_t end_ns = fake_now() + 10000000000ull;
	int r;

	while ((r = gp_hint_begin(ctx, NULL)) < 0 && fake_now() < end_ns) {
		assert_true(r == -EAGAIN || r == -ENODEV);
		nanosleep(&pause, NULL);
	}
	return r;
}

static void hints_find_a_gpreemptd_that_was_started_again_though_the_context_is_lost(void **state)
{
	(void)state;
	assert_int_equal(gp_hint_begin(ctx, NULL), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, 1), 1);
	fake_end(&fake);
	assert_int_equal(gp_hint_begin(ctx, NULL), -ENODEV);
	assert_int_equal(list(), -ECONNRESET);
	assert_int_equal(gp_hint_begin(ctx, NULL), -ENODEV);
	assert_int_equal(fake_start(&fake, place), 0);
	assert_int_equal(hints_come_back(), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, 2), 2);
	assert_int_equal(list(), -ECONNRESET);
	fake_end(&fake); /* and once more: this one is not lent */
	assert_int_equal(fake_start(&fake, place), 0);
	assert_int_equal(hints_come_back(), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, 3), 3);
}

static void hints_go_on_when_the_context_gives_up_a_gpreemptd_that_hangs(void **state)
{
	(void)state;
	gp_kfd_set_patience(ctx, 50000000, 50000000);
	fake.silent_at = GP_MSG_LIST;
	assert_int_equal(list(), -ETIMEDOUT);
	assert_int_equal(hints_come_back(), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, 1), 1);
}

static void a_program_that_has_closed_its_standard_input_gives_hints_too(void **state)
{
	int kept = dup(0);

	(void)state;
	ctx = gp_ctx_close(ctx);
	close(0);
	assert_int_equal(open_kfd(&ctx), 0); /* over descriptor 0 */
	assert_int_equal(gp_hint_begin(ctx, NULL), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, 1), 1);
	assert_int_equal(fake.seen[GP_MSG_HELLO], 2);
	fake_end(&fake);
	assert_int_equal(list(), -ECONNRESET);
	assert_int_equal(dup2(kept, 0), 0);
	assert_int_equal(fake_start(&fake, place), 0);
	close(0);
	assert_int_equal(hints_come_back(), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, 2), 2);
	assert_int_equal(fake.seen[GP_MSG_HELLO], 3);
	ctx = gp_ctx_close(ctx);
	assert_int_equal(connections(0), 0);
	assert_int_equal(dup2(kept, 0), 0);
	close(kept);
}

static void no_hint_gets_through_for_a_while(void)
{
	for (uint64_t end_ns = fake_now() + 500000000; fake_now() < end_ns;)
		assert_true(gp_hint_begin(ctx, NULL) < 0);
}

static void hints_are_not_said_to_who_refuses_us_or_does_not_answer(void **state)
{
	(void)state;
	fake_end(&fake);
	fake.unwelcome = 1;
	fake.error = -EPERM;
	assert_int_equal(fake_start(&fake, place), 0);
	no_hint_gets_through_for_a_while();
	fake.unwelcome = 0;
	fake.error_at = GP_MSG_HELLO; /* and it does not hang up */
	no_hint_gets_through_for_a_while();
	fake_end(&fake);
	fake.seen[GP_MSG_HELLO] = 0;
	fake.error_at = 0;
	fake.silent_at = GP_MSG_HELLO;
	assert_int_equal(fake_start(&fake, place), 0);
	no_hint_gets_through_for_a_while();
	assert_int_equal(fake_seen(&fake, GP_MSG_HELLO, 1), 1); /* it waits */
	assert_int_equal(fake.seen[GP_MSG_HINT], 0);
}

static void a_full_socket_costs_a_hint_and_nothing_else(void **state)
{
	uint32_t sent = 0;
	int r;

	(void)state;
	pthread_mutex_lock(&fake.lock); /* it does not read */
	while ((r = gp_hint_begin(ctx, NULL)) == 0)
		sent++;
	pthread_mutex_unlock(&fake.lock);
	assert_int_equal(r, -EAGAIN);
	assert_true(sent > 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, sent), sent);
	assert_int_equal(gp_hint_end(ctx, NULL), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, sent + 1), sent + 1);
	assert_int_equal(list(), 4);
}

#define HINTS 30000

/* Adds up the numbers of those that went well. */
static void *hint_often(void *arg)
{
	uint64_t *sent = arg, number = 1ull << (16 * *sent);
	const struct gp_hint hint = { .size = sizeof(hint), .number = number };

	*sent = 0;
	for (int i = 0; i < HINTS; i++)
		*sent += gp_hint_begin(ctx, &hint) == 0 ? number : 0;
	return NULL;
}

static void many_threads_give_hints_while_another_lists_and_none_is_lost(void **state)
{
	pthread_t threads[4];
	uint64_t sent[4] = { 0, 1, 2, 3 }, all = 0;
	uint32_t n = 0;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hint_often, &sent[i]), 0);
	for (int i = 0; i < 50; i++)
		assert_int_equal(list(), 4);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		all += sent[i];
		n += (uint32_t)(sent[i] >> (16 * i));
	}
	assert_true(n > 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_HINT, n), n);
	assert_int_equal(fake.hint_numbers, all);
}

static void threads_that_give_hints_survive_the_end_of_gpreemptd(void **state)
{
	pthread_t threads[4];
	uint64_t sent[4] = { 0, 1, 2, 3 };

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hint_often, &sent[i]), 0);
	fake_end(&fake);
	assert_int_equal(list(), -ECONNRESET);
	assert_int_equal(fake_start(&fake, place), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(hints_come_back(), 0);
}

static void a_child_gives_no_hints_in_its_parents_name(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(gp_hint_begin(ctx, NULL) == -EPERM ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(list(), 4);
	assert_int_equal(fake.seen[GP_MSG_HINT], 0);
}

static void what_the_environment_says_of_the_program_is_said_to_gpreemptd(void **state)
{
	static const struct {
		const char *class, *tag, *weight, *slo;
		uint32_t seen, says_weight;
		uint64_t slo_ns;
	} cases[] = {
		{ "online", "", "200", "20ms", GP_CLASS_ONLINE, 200, 20000000 },
		{ "offline", "ONLINE_AI", "10000", "1s", GP_CLASS_OFFLINE, 10000, 1000000000 },
		{ "", "ONLINE_AI", "1", "500us", GP_CLASS_ONLINE, 1, 500000 },
		{ "", "OFFLINE_AI", "10001", "77", GP_CLASS_OFFLINE, 0, 77 },
		{ "Online", "other", "-1", "3601s", GP_CLASS_UNKNOWN, 0, 0 },
		{ "", "", "", "1m", GP_CLASS_UNKNOWN, 0, 60000000000 },
		{ "", "", "5x", "1M", GP_CLASS_UNKNOWN, 0, 0 },
		{ "", "", "99999999999999999999", "99999999999999999999", GP_CLASS_UNKNOWN, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setenv("GPREEMPT_CLASS", cases[i].class, 1);
		setenv("AMD_QUEUE_TAG", cases[i].tag, 1);
		setenv("GPREEMPT_WEIGHT", cases[i].weight, 1);
		setenv("GPREEMPT_SLO", cases[i].slo, 1);
		ctx = gp_ctx_close(ctx);
		assert_int_equal(open_kfd(&ctx), 0);
		assert_int_equal(fake.hello.seen, cases[i].seen);
		assert_string_equal(fake.hello.tag, cases[i].tag);
		assert_int_equal(fake.hello.weight, cases[i].says_weight);
		assert_int_equal(fake.hello.slo_ns, cases[i].slo_ns);
	}
	unsetenv("GPREEMPT_CLASS");
	unsetenv("AMD_QUEUE_TAG");
	unsetenv("GPREEMPT_WEIGHT");
	unsetenv("GPREEMPT_SLO");
}

static void clients_are_listed_as_gpreemptd_tells_them(void **state)
{
	struct gp_client_info clients[2] = { { .size = sizeof(clients[0]) } };

	(void)state;
	assert_int_equal(gp_client_list(ctx, clients, 2), 0);
	fake.nclients = 3;
	fake.clients[1] = (struct gp_client_info){ .client = 9,
						   .name = "serve",
						   .pid = 100,
						   .client_class = GP_CLASS_ONLINE,
						   .share_permille = 250,
						   .sampled = 1ull << 40 };
	assert_int_equal(gp_client_list(ctx, clients, 2), 3);
	assert_int_equal(clients[1].client, 9);
	assert_string_equal(clients[1].name, "serve");
	assert_int_equal(clients[1].share_permille, 250);
	assert_int_equal(clients[1].sampled, 1ull << 40);
	assert_int_equal(clients[1].size, sizeof(clients[0]));
}

static void clients_that_gpreemptd_does_not_tell_are_an_error(void **state)
{
	(void)state;
	fake.error_at = GP_MSG_CLIENTS;
	fake.error = -EINVAL;
	strcpy(fake.text, "CLIENTS is not for you");
	assert_int_equal(gp_client_list(ctx, NULL, 0), -EINVAL);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), fake.text));
	assert_int_equal(list(), 4);
	gp_kfd_set_patience(ctx, 50000000, 50000000);
	fake.error_at = 0;
	fake.lie_at = GP_MSG_CLIENTS; /* no END */
	assert_int_equal(gp_client_list(ctx, NULL, 0), -ETIMEDOUT);
	assert_int_equal(gp_client_list(ctx, NULL, 0), -ECONNRESET);
}

static void the_rights_are_those_that_gpreemptd_gives(void **state)
{
	uint32_t rights = 0;

	(void)state;
	assert_int_equal(gp_ctx_rights(NULL, &rights), -EINVAL);
	assert_int_equal(gp_ctx_rights(ctx, NULL), -EINVAL);
	assert_int_equal(gp_ctx_rights(ctx, &rights), 0);
	assert_int_equal(rights, GP_RIGHT_OTHERS);
	ctx = gp_ctx_close(ctx);
	fake.no_rights = 1;
	assert_int_equal(open_kfd(&ctx), 0);
	assert_int_equal(gp_ctx_rights(ctx, &rights), 0);
	assert_int_equal(rights, 0);
	rights = 7;
	fake.drop_at = GP_MSG_LIST;
	assert_int_equal(gp_queue_list(ctx, NULL, 0), -ECONNRESET);
	assert_int_equal(gp_ctx_rights(ctx, &rights), -ECONNRESET);
	assert_int_equal(rights, 7); /* untouched */
}

static void a_policy_reaches_gpreemptd_and_its_refusal_comes_back(void **state)
{
	(void)state;
	assert_int_equal(gp_device_set_policy(ctx, GP_ALL_DEVICES, "fair"), 0);
	assert_int_equal(fake.policy.device, GP_ALL_DEVICES);
	assert_string_equal(fake.policy.name, "fair");
	fake.error_at = GP_MSG_POLICY;
	fake.error = -EPERM;
	strcpy(fake.text, "only root and group gpreempt may do that");
	assert_int_equal(gp_device_set_policy(ctx, 0, "fifo"), -EPERM);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), fake.text));
	fake.error_at = 0;
	fake.drop_at = GP_MSG_POLICY;
	assert_int_equal(gp_device_set_policy(ctx, 0, "fifo"), -ECONNRESET);
	assert_int_equal(gp_device_set_policy(ctx, 0, "fifo"), -ECONNRESET);
	assert_string_equal(fake.policy.name, "fair");
}

static void statistics_are_those_of_the_device_that_was_asked_for(void **state)
{
	struct gp_stats stats = { .size = sizeof(stats) };

	(void)state;
	fake.stats = (struct gp_stats){ .preemptions = 3, .resume_max_ns = 77, .ejection = "it lied" };
	assert_int_equal(gp_device_stats(ctx, 0, &stats), 0);
	assert_int_equal(stats.preemptions, 3);
	assert_int_equal(stats.resume_max_ns, 77);
	assert_string_equal(stats.ejection, "it lied");
	assert_string_equal(stats.policy, "priority");
	assert_int_equal(gp_device_stats(ctx, 1, &stats), -ENOENT);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "no such device"));
	assert_int_equal(stats.device, 0);
	fake.lie_at = GP_MSG_STATS;
	assert_int_equal(gp_device_stats(ctx, 0, &stats), -EBADMSG);
	assert_int_equal(gp_device_stats(ctx, 0, &stats), -ECONNRESET);
}

static void keep_events(void)
{
	for (uint32_t i = 0; i < 3; i++)
		fake.events[i] = (struct gp_event){ .number = i + 1, .kind = i, .text = "kept" };
	fake.nevents = 3;
}

static void the_events_that_are_kept_come_in_order_and_then_the_end(void **state)
{
	struct gp_event event = { .size = sizeof(event) };

	(void)state;
	keep_events();
	assert_int_equal(gp_event_next(ctx, 0, &event), -ENOTCONN);
	assert_int_equal(gp_event_open(ctx, NULL), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(list(), 4); /* over another connection */
		assert_int_equal(gp_event_next(ctx, LONG_NS, &event), 1);
		assert_int_equal(event.number, i + 1);
		assert_string_equal(event.text, "kept");
		assert_int_equal(event.size, sizeof(event));
	}
	assert_int_equal(connections(2), 2);
	assert_int_equal(gp_event_next(ctx, LONG_NS, &event), 0);
	assert_int_equal(connections(1), 1);
	assert_int_equal(gp_event_next(ctx, LONG_NS, &event), 0);
	assert_int_equal(gp_event_open(ctx, &(struct gp_event_opts){ .size = sizeof(struct gp_event_opts),
								     .kinds = 1u << GP_EVENT_FAILED }),
			 0);
	assert_int_equal(gp_event_next(ctx, LONG_NS, &event), 1);
	assert_int_equal(event.kind, GP_EVENT_FAILED);
	assert_int_equal(gp_event_next(ctx, LONG_NS, &event), 0);
}

static void who_follows_gets_what_comes_and_nothing_before(void **state)
{
	const struct gp_event_opts follow = { .size = sizeof(follow), .flags = GP_EVENT_FOLLOW };
	struct gp_event event = { .size = sizeof(event) };

	(void)state;
	assert_int_equal(gp_event_open(ctx, &follow), 0);
	assert_int_equal(gp_event_next(ctx, 1000000, &event), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_EVENTS, 1), 1);
	fake_tell(&fake, &(struct gp_event){ .number = 4, .kind = GP_EVENT_GONE });
	assert_int_equal(gp_event_next(ctx, UINT64_MAX, &event), 1);
	assert_int_equal(event.number, 4);
	assert_int_equal(gp_event_next(ctx, 0, &event), 0);
	fake_tell(&fake, &(struct gp_event){ .number = 5, .kind = 31 }); /* of a later release */
	assert_int_equal(gp_event_next(ctx, LONG_NS, &event), 1);
	assert_int_equal(event.kind, 31);
	ctx = gp_ctx_close(ctx);
	assert_int_equal(connections(0), 0);
}

static void new_events_alone_are_asked_of_a_gpreemptd_that_knows_that(void **state)
{
	const struct gp_event_opts opts = { .size = sizeof(opts), .flags = GP_EVENT_FOLLOW | GP_EVENT_NEW };

	(void)state;
	assert_int_equal(gp_event_open(ctx, &opts), -ENOTSUP);
	assert_int_equal(fake_seen(&fake, GP_MSG_EVENTS, 0), 0);
	fake.features = GP_FEATURE_NEW_EVENTS;
	assert_int_equal(gp_event_open(ctx, &opts), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_EVENTS, 1), 1);
	assert_int_equal(fake.wanted.only_new, 1);
}

static void jobs_are_refused_at_once_where_gpreemptd_does_not_know_them(void **state)
{
	const struct gp_job job = {
		.size = sizeof(job), .pid = 17, .client_class = GP_CLASS_ONLINE, .name = "a"
	};

	(void)state;
	assert_int_equal(gp_job_declare(ctx, &job), -ENOTSUP);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "restart it"));
	assert_int_equal(gp_job_list(ctx, NULL, 0), -ENOTSUP);
	assert_int_equal(fake_seen(&fake, GP_MSG_JOB, 0), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_JOBS, 0), 0);
}

static void attach_is_refused_at_once_where_gpreemptd_does_not_know_it(void **state)
{
	(void)state;
	assert_int_equal(gp_container_attach(ctx, 17, 0, GP_CLASS_ONLINE), -ENOTSUP);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "restart it"));
	assert_int_equal(fake_seen(&fake, GP_MSG_ATTACH, 0), 0);
}

static void events_end_with_gpreemptd_and_can_be_opened_again(void **state)
{
	const struct gp_event_opts follow = { .size = sizeof(follow), .flags = GP_EVENT_FOLLOW };
	struct gp_event event = { .size = sizeof(event) };

	(void)state;
	assert_int_equal(gp_event_open(ctx, &follow), 0);
	fake_end(&fake);
	assert_int_equal(gp_event_next(ctx, LONG_NS, &event), -ECONNRESET);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "gpreemptd has gone"));
	assert_int_equal(gp_event_next(ctx, LONG_NS, &event), -ENOTCONN);
	assert_true(gp_event_open(ctx, &follow) < 0);
	assert_int_equal(fake_start(&fake, place), 0);
	keep_events();
	assert_int_equal(gp_event_open(ctx, &follow), 0);
	assert_int_equal(gp_event_next(ctx, LONG_NS, &event), 1);
}

static void events_that_are_refused_or_are_none_are_errors(void **state)
{
	struct gp_event_opts opts = { .size = sizeof(opts), .flags = 4 };
	struct gp_event event = { .size = sizeof(event) };

	(void)state;
	keep_events();
	assert_int_equal(gp_event_open(ctx, &opts), -EINVAL);
	opts.flags = 0;
	opts.size = 0;
	assert_int_equal(gp_event_open(ctx, &opts), -EINVAL);
	opts.size = sizeof(opts);
	fake.error_at = GP_MSG_EVENTS;
	fake.error = -EBUSY;
	strcpy(fake.text, "too many follow");
	assert_int_equal(gp_event_open(ctx, &opts), 0);
	assert_int_equal(gp_event_next(ctx, LONG_NS, &event), -EBUSY);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), fake.text));
	assert_int_equal(connections(1), 1);
	fake.error_at = 0;
	fake.lie_at = GP_MSG_EVENTS;
	assert_int_equal(gp_event_open(ctx, &opts), 0);
	assert_int_equal(gp_event_next(ctx, LONG_NS, &event), -EBADMSG);
	assert_int_equal(connections(1), 1);
	assert_int_equal(list(), 4);
	event.size = 0;
	assert_int_equal(gp_event_next(ctx, 0, &event), -EINVAL);
	assert_int_equal(gp_event_next(ctx, 0, NULL), -EINVAL);
}

/* A file of a recorded tree, and the folders above it. */
static void record(const char *path, const char *text)
{
	char full[256];
	int fd;

	snprintf(full, sizeof(full), "%s/%s", folder, path);
	for (char *c = full + strlen(folder) + 1; *c; c++) {
		if (*c != '/')
			continue;
		*c = '\0';
		(void)mkdir(full, 0700);
		*c = '/';
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

#define PROC "sys/class/kfd/kfd/proc/4711/"

static int record_tree(void **state)
{
	const struct gp_open_opts opts = { .size = sizeof(opts), .backend = "kfd" };

	(void)state;
	record("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "38571\n");
	record("sys/class/kfd/kfd/topology/nodes/1/name", "aqua\n");
	record("sys/class/kfd/kfd/topology/nodes/1/properties",
	       "simd_count 320\nsimd_per_cu 4\nnum_cp_queues 24\n");
	record(PROC "pasid", "32769\n");
	record(PROC "queues/1/gpuid", "38571");
	record(PROC "queues/1/type", "0");
	record(PROC "queues/1/size", "65536");
	record("proc/4711/comm", "train\n");
	setenv("GPREEMPT_ROOT", folder, 1);
	return gp_ctx_open(&opts, &ctx);
}

static int remove_tree(void **state)
{
	char command[64];

	ctx = gp_ctx_close(ctx);
	unsetenv("GPREEMPT_ROOT");
	snprintf(command, sizeof(command), "rm -rf %s/*", folder);
	(void)state;
	return system(command);
}

static void without_gpreemptd_queues_are_listed_and_keep_their_handles(void **state)
{
	struct gp_device_info device = { .size = sizeof(device) };
	uint64_t first;

	(void)state;
	assert_int_equal(gp_device_list(ctx, &device, 1), 1);
	assert_int_equal(device.compute_units, 80);
	assert_int_equal(device.caps, 0);
	assert_int_equal(list(), 1);
	first = queues[0].queue;
	assert_int_equal(queues[0].pid, 4711);
	assert_int_equal(queues[0].queue_id, 1);
	assert_int_equal(queues[0].known & GP_KNOWN_QUEUE_ID, GP_KNOWN_QUEUE_ID);
	assert_int_equal(queues[0].known & GP_KNOWN_RING, 0);
	assert_string_equal(queues[0].way, "");
	assert_string_equal(queues[0].client_name, "train");
	record("proc/4711/stat", "4711 (a) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 400 0\n");
	assert_int_equal(list(), 1);
	assert_int_equal(queues[0].queue, first);
	record("proc/4711/stat", "4711 (b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0\n");
	assert_int_equal(list(), 1);
	assert_true(queues[0].queue != first); /* the pid came into other hands */
	first = queues[0].queue;
	record(PROC "queues/0/gpuid", "38571");
	record(PROC "queues/0/type", "5"); /* SDMA on an engine that was asked for */
	assert_int_equal(list(), 2);
	assert_int_equal(queues[0].kind, GP_KIND_SDMA);
	assert_int_equal(queues[1].queue, first);
	assert_true(queues[0].queue != first);
}

/* What the driver's debug file says of queue 1. */
static void record_queue(uint64_t ring, const char *active, uint32_t priority)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "Compute queue on device 0001:01:00.0\n    Queue ID: 1 (0x1)\n    Address: 0x%" PRIx64
		 "\n    Process: pid 4711 pasid 0x8001\n    is active: %s\n    priority: %" PRIu32 "\n",
		 ring, active, priority);
	record("sys/kernel/debug/kfd/mqds", text);
}

static uint64_t only_handle(void)
{
	assert_int_equal(list(), 1);
	return queues[0].queue;
}

static void without_gpreemptd_a_queue_is_the_same_while_nothing_says_otherwise(void **state)
{
	uint64_t first = only_handle();

	(void)state;
	record_queue(0x7f5a00000000, "yes", 2);
	assert_true(only_handle() == first); /* more is known of it */
	assert_int_equal(queues[0].ring, 0x7f5a00000000);
	assert_int_equal(queues[0].state, GP_QUEUE_RUNNING);
	record_queue(0x7f5a00000000, "no", 2);
	assert_true(only_handle() == first);
	assert_int_equal(queues[0].state, GP_QUEUE_SUSPENDED);
	record_queue(0x7f5a00200000, "yes", 2);
	assert_true(only_handle() != first); /* that is another with the same id */
	first = only_handle();
	record("sys/class/kfd/kfd/topology/nodes/2/gpu_id", "77\n");
	record("sys/class/kfd/kfd/topology/nodes/2/properties", "simd_count 320\nsimd_per_cu 4\n");
	record("sys/kernel/debug/kfd/mqds", "");
	assert_true(only_handle() == first);
	record(PROC "queues/1/gpuid", "77");
	assert_true(only_handle() != first);
	assert_int_equal(queues[0].device, 1);
}

#define STAT(pid, start) #pid " (a) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " #start " 0\n"

static void without_gpreemptd_each_process_keeps_its_own_queues(void **state)
{
	uint64_t first, second;

	(void)state;
	record("sys/class/kfd/kfd/proc/4712/pasid", "32770\n");
	record("sys/class/kfd/kfd/proc/4712/queues/1/gpuid", "38571");
	record("sys/class/kfd/kfd/proc/4712/queues/1/type", "0");
	record("proc/4711/stat", STAT(4711, 400));
	record("proc/4712/stat", STAT(4712, 500));
	assert_int_equal(list(), 2);
	first = queues[0].queue;
	second = queues[1].queue;
	assert_true(first != second);
	record("proc/4712/stat", STAT(4712, 600));
	assert_int_equal(list(), 2);
	assert_int_equal(queues[0].queue, first);
	assert_true(queues[1].queue != second);
	second = queues[1].queue;
	record("proc/4712/stat", ""); /* nobody can tell any more */
	assert_int_equal(list(), 2);
	assert_int_equal(queues[1].queue, second);
}

static void without_gpreemptd_the_word_of_a_member_of_the_group_is_taken(void **state)
{
	(void)state;
	record_queue(0x7f5a00000000, "yes", 11);
	record("proc/4711/status", "Name:\ttrain\nUid:\t7 7 7 7\nGid:\t7 7 7 7\nGroups:\t7 4242 \n");
	record("etc/group", "root:x:0:\nother:x:4242:\n");
	assert_int_equal(list(), 1);
	assert_int_equal(queues[0].client_class, GP_CLASS_UNKNOWN);
	record("etc/group", "root:x:0:\ngpreempt:x:4242:\nother:x:77:\n");
	assert_int_equal(list(), 1);
	assert_int_equal(queues[0].client_class, GP_CLASS_ONLINE);
	record("etc/group", "gpreempt:x:0:\n");
	assert_int_equal(list(), 1);
	assert_int_equal(queues[0].client_class, GP_CLASS_UNKNOWN);
}

static void open_tree_again(void)
{
	const struct gp_open_opts opts = { .size = sizeof(opts), .backend = "kfd" };

	ctx = gp_ctx_close(ctx);
	assert_int_equal(gp_ctx_open(&opts, &ctx), 0);
	assert_int_equal(list(), 1);
}

static void without_gpreemptd_wrong_rules_are_told_and_the_queues_all_the_same(void **state)
{
	(void)state;
	assert_string_equal(gp_ctx_notice(ctx), "");
	record(GP_CLASSES_FILE, "nonsense\n");
	open_tree_again();
	assert_non_null(strstr(gp_ctx_notice(ctx), GP_CLASSES_FILE));
	setenv("GPREEMPT_CLASSES", "rubbish", 1);
	open_tree_again();
	assert_non_null(strstr(gp_ctx_notice(ctx), "rubbish")); /* the first of two */
	unsetenv("GPREEMPT_CLASSES");
	record(GP_CLASSES_FILE, "");
	open_tree_again();
	assert_string_equal(gp_ctx_notice(ctx), "");
}

static void without_gpreemptd_everything_that_acts_says_to_start_it(void **state)
{
	uint64_t q = 1;
	uint32_t rights;
	int32_t status = 1;

	(void)state;
	assert_int_equal(gp_queue_suspend(ctx, &q, 1, NULL, &status), -ENODEV);
	assert_int_equal(status, -ENODEV);
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "start"));
	assert_non_null(strstr(gp_ctx_errmsg(ctx), "gpreemptd"));
	assert_int_equal(gp_queue_resume(ctx, &q, 1, NULL), -ENODEV);
	assert_int_equal(gp_device_reserve(ctx, 0, 50, 50), -ENODEV);
	assert_int_equal(gp_device_set_policy(ctx, 0, "fair"), -ENODEV);
	assert_int_equal(gp_ctx_rights(ctx, &rights), -ENODEV);
	assert_int_equal(gp_client_list(ctx, NULL, 0), -ENODEV);
	assert_int_equal(gp_event_open(ctx, NULL), -ENODEV);
	assert_int_equal(gp_hint_begin(ctx, NULL), -ENODEV);
}

static int answers(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), r;

	strcpy(address.sun_path, path);
	r = connect(fd, (struct sockaddr *)&address, sizeof(address));
	close(fd);
	return r == 0;
}

static void without_driver_and_gpreemptd_there_is_no_device_and_a_sentence_says_what_to_do(void **state)
{
	static const char *const backends[] = { "kfd", "auto", NULL };
	char why[320];
	struct gp_open_opts opts = {
		.size = sizeof(opts), .socket = "/nowhere/socket", .errmsg = why, .errmsg_size = sizeof(why)
	};

	(void)state;
	if (access("/dev/kfd", F_OK) == 0)
		return; /* this machine has one */
	for (size_t i = 0; i < 3; i++) {
		opts.backend = backends[i];
		why[0] = '\0';
		assert_int_equal(gp_ctx_open(&opts, &ctx), -ENODEV);
		assert_non_null(strstr(why, "no AMD GPU"));
		assert_non_null(strstr(why, "modprobe amdgpu"));
		assert_non_null(strstr(why, "/nowhere/socket"));
	}
	opts.errmsg_size = 6;
	assert_int_equal(gp_ctx_open(&opts, &ctx), -ENODEV);
	assert_string_equal(why, "no gp");
	opts.errmsg = NULL;
	assert_int_equal(gp_ctx_open(&opts, &ctx), -ENODEV);
	assert_null(ctx);
	if (answers(GP_WIRE_SOCKET))
		return; /* this machine's own */
	opts = (struct gp_open_opts){ .size = sizeof(opts), .errmsg = why, .errmsg_size = sizeof(why) };
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(gp_ctx_open(&opts, &ctx), -ENODEV);
	assert_non_null(strstr(why, GP_WIRE_SOCKET));
}

static void the_simulated_machine_is_opened_by_who_names_it_or_its_device(void **state)
{
	struct gp_open_opts opts = { .size = sizeof(opts), .device = "mi300x" };
	struct gp_device_info device = { .size = sizeof(device) };

	(void)state;
	assert_int_equal(gp_ctx_open(&opts, &ctx), 0);
	assert_int_equal(gp_device_list(ctx, &device, 1), 1);
	assert_string_equal(device.backend, "sim");
	assert_string_equal(device.name, "mi300x");
	ctx = gp_ctx_close(ctx);
	setenv("GPREEMPT_BACKEND", "sim", 1);
	assert_int_equal(gp_ctx_open(NULL, &ctx), 0);
	unsetenv("GPREEMPT_BACKEND");
	ctx = gp_ctx_close(ctx);
}

/* What gp_ctx_open() comes to, and its sentence has this in it. */
static int open_refused(const char *words)
{
	char why[320] = "";
	const struct gp_open_opts opts = {
		.size = sizeof(opts), .socket = place, .errmsg = why, .errmsg_size = sizeof(why)
	};
	struct gp_ctx *other = NULL;
	int r = gp_ctx_open(&opts, &other);

	assert_null(other);
	if (!strstr(why, words))
		print_error("\"%s\" is not in: %s\n", words, why);
	assert_non_null(strstr(why, words));
	return r;
}

static void a_gpreemptd_that_refuses_us_is_an_error_in_its_words_and_not_an_absent_one(void **state)
{
	static const int errors[] = { -EPERM, -EACCES, -ENODEV, -ENOENT, -ECONNREFUSED };

	(void)state;
	strcpy(fake.text, "its user has too many connections");
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		fake.error = errors[i];
		fake.error_at = GP_MSG_HELLO;
		assert_int_equal(open_refused(fake.text), errors[i]);
		fake.error_at = 0;
		fake.unwelcome = 1; /* before it has heard a word */
		assert_int_equal(open_refused(fake.text), errors[i]);
		fake.unwelcome = 2;
		assert_int_equal(open_refused(fake.text), errors[i]);
		fake.unwelcome = 0;
	}
	fake.text[0] = '\0';
	fake.error_at = GP_MSG_HELLO;
	assert_int_equal(open_refused(strerror(ECONNREFUSED)), -ECONNREFUSED);
}

static void a_gpreemptd_that_hangs_up_on_us_cannot_be_reached(void **state)
{
	(void)state;
	fake.drop_at = GP_MSG_HELLO;
	assert_int_equal(open_refused("cannot be reached"), -ECONNRESET);
}

static void a_gpreemptd_of_another_user_is_refused_and_its_user_told(void **state)
{
	(void)state;
	if (geteuid() != 0)
		return; /* nobody else to be */
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(listen(fake.listener, 8), 0); /* the server's user is who calls it */
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(open_refused("user 65534 runs it"), -EKEYREJECTED);
}

static void a_socket_that_is_there_and_of_no_use_is_not_an_absent_one(void **state)
{
	char long_path[200];
	int status;
	pid_t child;

	(void)state;
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	assert_int_equal(gp_ctx_open(&(struct gp_open_opts){ .size = sizeof(struct gp_open_opts),
							     .socket = long_path },
				     &ctx),
			 -ENAMETOOLONG);
	long_path[sizeof(((struct sockaddr_un *)NULL)->sun_path)] = '\0';
	assert_int_equal(gp_ctx_open(&(struct gp_open_opts){ .size = sizeof(struct gp_open_opts),
							     .socket = long_path },
				     &ctx),
			 -ENAMETOOLONG);
	if (geteuid() != 0)
		return; /* nobody else to be */
	chmod(folder, 0700);
	child = fork();
	if (child == 0)
		_exit(setuid(65534) == 0 && open_refused("closed to you") == -EACCES ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* The lowest number that is free. */
static int free_descriptor(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void a_listener_that_does_not_accept_is_given_up(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), first, lowest;

	(void)state;
	strcpy(address.sun_path, place);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 0), 0);
	first = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); /* the one that may wait */
	assert_int_equal(connect(first, (struct sockaddr *)&address, sizeof(address)), 0);
	lowest = free_descriptor();
	alarm(60); /* else it waits for ever */
	assert_int_equal(open_refused("does not answer"), -ETIMEDOUT);
	alarm(0);
	assert_int_equal(free_descriptor(), lowest);
	close(first);
	close(listener);
	unlink(place);
}

static void of_two_places_the_one_that_serves_is_taken_and_else_the_one_that_refuses_is_told(void **state)
{
	char path[128], why[320] = "";
	const struct gp_open_opts opts = { .size = sizeof(opts), .errmsg = why, .errmsg_size = sizeof(why) };
	struct gp_ctx *other;

	(void)state;
	if (answers(GP_WIRE_SOCKET))
		return; /* this machine's own would be asked first */
	snprintf(path, sizeof(path), "%s/gpreempt", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/gpreempt/gpreemptd.sock", folder);
	assert_int_equal(rename(place, path), 0);
	setenv("XDG_RUNTIME_DIR", folder, 1);
	assert_int_equal(gp_ctx_open(&opts, &other), 0);
	assert_string_equal(gp_ctx_errmsg(other), "");
	gp_ctx_close(other);
	fake.error_at = GP_MSG_HELLO;
	fake.error = -EPERM;
	strcpy(fake.text, "not you");
	assert_int_equal(gp_ctx_open(&opts, &other), -EPERM);
	assert_non_null(strstr(why, "not you"));
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(rename(path, place), 0);
	snprintf(path, sizeof(path), "%s/gpreempt", folder);
	rmdir(path);
}

static int make_folder(void **state)
{
	(void)state;
	unsetenv("GPREEMPT_BACKEND");
	unsetenv("GPREEMPT_SOCKET");
	unsetenv("GPREEMPT_ROOT");
	unsetenv("GPREEMPT_CLASS");
	unsetenv("GPREEMPT_CLASSES");
	unsetenv("AMD_QUEUE_TAG");
	unsetenv("GPREEMPT_WEIGHT");
	unsetenv("GPREEMPT_SLO");
	if (!mkdtemp(folder))
		return -1;
	snprintf(place, sizeof(place), "%s/socket", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

#define ON_SIM(test) cmocka_unit_test_setup_teardown(test, open_sim, close_sim)
#define ON_KFD(test) cmocka_unit_test_setup_teardown(test, start_and_open, close_and_stop)
#define ON_TREE(test) cmocka_unit_test_setup_teardown(test, record_tree, remove_tree)

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
		ON_SIM(what_is_asked_of_the_simulated_machine_is_asked_now_and_not_when_it_was_last_asked),
		cmocka_unit_test(options_from_the_future_are_refused_only_if_they_are_used),
		cmocka_unit_test(what_is_not_there_cannot_be_opened),
		ON_SIM(a_shorter_entry_of_an_older_program_is_filled_as_far_as_it_goes),
		ON_SIM(the_device_says_what_it_can_do),
		ON_SIM(hints_are_for_online_clients_and_are_counted),
		ON_SIM(the_simulated_machine_has_no_client_of_this_process_and_says_so),
		ON_SIM(a_hint_with_a_number_is_ended_by_that_number_alone),
		ON_SIM(a_client_changes_its_class),
		ON_SIM(the_clients_of_the_simulated_machine_are_listed_with_their_queues),
		ON_SIM(the_simulated_machine_takes_a_policy_and_names_those_there_are),
		ON_SIM(on_the_simulated_machine_everything_is_allowed),
		ON_SIM(the_simulated_machine_keeps_no_events),
		ON_SIM(a_reservation_is_checked_and_listed),
		ON_SIM(a_job_has_a_process_a_class_and_a_name_and_is_none_of_a_simulated_machine),
		ON_SIM(a_container_is_attached_by_a_process_and_a_class_and_not_on_a_simulated_machine),
		cmocka_unit_test(a_device_without_slots_has_nothing_to_reserve),
		ON_SIM(statistics_of_no_device_and_of_no_size_are_errors),
		cmocka_unit_test(a_call_without_a_context_is_an_error),
		ON_KFD(queues_are_listed_suspended_and_resumed_through_gpreemptd),
		ON_KFD(auto_takes_gpreemptd_where_there_is_one_unless_the_environment_says_otherwise),
		ON_KFD(the_environment_names_the_socket_and_an_option_goes_before_it),
		ON_KFD(what_is_asked_of_a_suspension_reaches_gpreemptd),
		ON_KFD(items_say_where_they_are_to_a_gpreemptd_that_welcomes_that),
		ON_KFD(the_time_of_a_save_in_the_private_way_reaches_gpreemptd),
		ON_KFD(a_lease_that_ends_before_the_drains_timeout_is_refused),
		ON_KFD(a_reset_is_refused_before_anything_is_asked),
		ON_KFD(what_gpreemptd_says_to_a_success_is_a_notice_and_to_a_failure_the_error),
		ON_KFD(more_queues_than_a_message_holds_take_several),
		ON_KFD(closing_gives_everything_back_but_what_has_a_lease),
		ON_KFD(a_child_may_close_what_its_parent_opened_and_nothing_is_resumed_by_that),
		ON_KFD(a_gpreemptd_of_another_version_is_refused),
		ON_KFD(a_gpreemptd_that_hangs_is_given_up_and_nothing_stays_stopped),
		ON_KFD(a_list_that_does_not_come_is_given_up),
		ON_KFD(a_gpreemptd_that_dies_in_the_middle_is_noticed),
		ON_KFD(an_answer_that_does_not_fit_the_question_ends_the_connection),
		ON_KFD(a_refusal_is_told_in_its_words_and_the_context_goes_on),
		ON_KFD(pings_between_question_and_answer_are_passed_over),
		ON_KFD(a_queue_is_found_by_its_process_and_ring),
		ON_KFD(a_reservation_reaches_gpreemptd_and_a_wrong_one_does_not),
		ON_KFD(a_class_reaches_a_gpreemptd_that_knows_of_it_and_no_other),
		ON_KFD(a_hint_reaches_gpreemptd_and_is_not_answered),
		ON_KFD(a_hint_that_wants_an_answer_tells_what_gpreemptd_says),
		ON_KFD(that_the_hints_of_this_process_count_for_nothing_is_told_once_and_no_call_fails),
		ON_KFD(why_gpreemptd_hangs_up_is_told_by_the_next_call_if_a_notice_was_looked_for),
		ON_KFD(hints_that_count_leave_no_notice),
		ON_KFD(a_notice_of_hints_waits_for_what_was_said_of_a_call),
		ON_KFD(hints_find_a_gpreemptd_that_was_started_again_though_the_context_is_lost),
		ON_KFD(hints_go_on_when_the_context_gives_up_a_gpreemptd_that_hangs),
		ON_KFD(a_program_that_has_closed_its_standard_input_gives_hints_too),
		ON_KFD(hints_are_not_said_to_who_refuses_us_or_does_not_answer),
		ON_KFD(a_full_socket_costs_a_hint_and_nothing_else),
		ON_KFD(many_threads_give_hints_while_another_lists_and_none_is_lost),
		ON_KFD(threads_that_give_hints_survive_the_end_of_gpreemptd),
		ON_KFD(a_child_gives_no_hints_in_its_parents_name),
		ON_KFD(what_the_environment_says_of_the_program_is_said_to_gpreemptd),
		ON_KFD(clients_are_listed_as_gpreemptd_tells_them),
		ON_KFD(clients_that_gpreemptd_does_not_tell_are_an_error),
		ON_KFD(the_rights_are_those_that_gpreemptd_gives),
		ON_KFD(a_policy_reaches_gpreemptd_and_its_refusal_comes_back),
		ON_KFD(statistics_are_those_of_the_device_that_was_asked_for),
		ON_KFD(the_events_that_are_kept_come_in_order_and_then_the_end),
		ON_KFD(who_follows_gets_what_comes_and_nothing_before),
		ON_KFD(new_events_alone_are_asked_of_a_gpreemptd_that_knows_that),
		ON_KFD(jobs_are_refused_at_once_where_gpreemptd_does_not_know_them),
		ON_KFD(attach_is_refused_at_once_where_gpreemptd_does_not_know_it),
		ON_KFD(events_end_with_gpreemptd_and_can_be_opened_again),
		ON_KFD(events_that_are_refused_or_are_none_are_errors),
		ON_TREE(without_gpreemptd_queues_are_listed_and_keep_their_handles),
		ON_TREE(without_gpreemptd_a_queue_is_the_same_while_nothing_says_otherwise),
		ON_TREE(without_gpreemptd_each_process_keeps_its_own_queues),
		ON_TREE(without_gpreemptd_the_word_of_a_member_of_the_group_is_taken),
		ON_TREE(without_gpreemptd_wrong_rules_are_told_and_the_queues_all_the_same),
		ON_TREE(without_gpreemptd_everything_that_acts_says_to_start_it),
		cmocka_unit_test(
			without_driver_and_gpreemptd_there_is_no_device_and_a_sentence_says_what_to_do),
		cmocka_unit_test(the_simulated_machine_is_opened_by_who_names_it_or_its_device),
		ON_KFD(a_gpreemptd_that_refuses_us_is_an_error_in_its_words_and_not_an_absent_one),
		ON_KFD(a_gpreemptd_that_hangs_up_on_us_cannot_be_reached),
		ON_KFD(a_gpreemptd_of_another_user_is_refused_and_its_user_told),
		ON_KFD(a_socket_that_is_there_and_of_no_use_is_not_an_absent_one),
		cmocka_unit_test(a_listener_that_does_not_accept_is_given_up),
		ON_KFD(of_two_places_the_one_that_serves_is_taken_and_else_the_one_that_refuses_is_told),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
