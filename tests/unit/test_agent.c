// SPDX-License-Identifier: MIT
/*
 * The agent's thread, at work in this process, on a driver made of a table; the test is the
 * daemon.  One agent lives through all tests: each begins where it connects.
 */
#include "unit.h"

#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/sample.h"
#include "backend/kfd/own.h"
#include "fake_kfd.h"
#include "wire/wire.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define PATIENCE (60 * SECOND) /* for what should come at once: machines are slow */
#define LONG_LEASE (60 * SECOND)
#define QUEUES 64

static char folder[] = "/tmp/gpreempt-agent-XXXXXX", path[64];
static int listener, daemon_fd = -1, fd;
static struct gp_own *own;
static struct gp_msg msg;
static uint64_t pointers[QUEUES][2];
static uint64_t rings[QUEUES][64][8]; /* of AQL packets */
static int64_t signals[QUEUES][2];    /* a signal's kind and value */
static uint32_t serial;
static const struct gp_claim online = { .tag = "ONLINE_AI", .seen = GP_CLASS_ONLINE };
static const struct gp_claim offline = { .tag = "OFFLINE_AI", .seen = GP_CLASS_OFFLINE };
static int inherited[64], ninherited; /* high descriptors that are not the agent's */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND) };

	nanosleep(&t, NULL);
}

/* The daemon's side */

static int readable(int socket, uint64_t timeout_ns)
{
	struct pollfd p = { .fd = socket, .events = POLLIN };

	return poll(&p, 1, (int)(timeout_ns / MS)) > 0;
}

static uint32_t flags; /* of the last packet */

/* 0: the other side has gone; 1: a message; -1: none came. */
static int receive(uint64_t timeout_ns)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	ssize_t size;

	if (!readable(daemon_fd, timeout_ns))
		return -1;
	size = recv(daemon_fd, packet, sizeof(packet), 0);
	if (size <= 0)
		return 0;
	assert_int_equal(gp_wire_decode(packet, (size_t)size, &msg), 0);
	memcpy(&flags, packet + 8, sizeof(flags));
	return 1;
}

static void expect(uint32_t type)
{
	assert_int_equal(receive(PATIENCE), 1);
	assert_int_equal(msg.type, type);
}

static void expect_end(void)
{
	int r;

	do
		r = receive(PATIENCE);
	while (r == 1); /* whatever was under way */
	assert_int_equal(r, 0);
	close(daemon_fd);
	daemon_fd = -1;
}

static void tell(const struct gp_msg *what)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	int size = gp_wire_encode(what, 0, packet, sizeof(packet));

	assert_true(size > 0);
	assert_int_equal(send(daemon_fd, packet, (size_t)size, MSG_NOSIGNAL), size);
}

static void expect_hello(void)
{
	assert_true(readable(listener, PATIENCE));
	daemon_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(daemon_fd >= 0);
	expect(GP_MSG_HELLO);
	assert_int_equal(msg.hello.role, GP_ROLE_AGENT);
}

static void say_welcome(uint64_t lease_ns, uint32_t sample)
{
	msg.type = GP_MSG_WELCOME;
	msg.serial = 0;
	msg.welcome = (struct gp_msg_welcome){ .lease_ns = lease_ns, .sample = sample };
	tell(&msg);
}

static void ping(void)
{
	msg.type = GP_MSG_PING;
	msg.serial = ++serial;
	tell(&msg);
}

static void want(uint64_t queue, uint32_t what, uint32_t type, uint64_t timeout_ns)
{
	msg.type = GP_MSG_WANTS;
	msg.serial = ++serial;
	msg.items = (struct gp_msg_items){ .type = type, .timeout_ns = timeout_ns, .n = 1 };
	msg.item[0] = (struct gp_wire_item){ .queue = queue, .want = what };
	tell(&msg);
}

static void expect_done(uint32_t which, int status)
{
	expect(GP_MSG_DONE);
	assert_int_equal(msg.serial, which);
	assert_int_equal(msg.items.n, 1);
	assert_int_equal(msg.item[0].status, status);
}

/* The application's side */

static struct gp_own_ops ops; /* the driver's, which count how often pointers are read */
static uint64_t looks;

static int count_look(struct gp_own *o, const uint64_t *queues, size_t n, struct gp_activity *ret)
{
	__atomic_add_fetch(&looks, 1, __ATOMIC_SEQ_CST);
	return gp_kfd_own.activity(o, queues, n, ret);
}

static uint32_t create(uint32_t i)
{
	struct kfd_create_queue_args args = { .ring = (uintptr_t)rings[i],
					      .rptr = (uintptr_t)&pointers[i][0],
					      .wptr = (uintptr_t)&pointers[i][1],
					      .ring_size = 4096,
					      .gpu_id = 77,
					      .type = KFD_TYPE_AQL,
					      .percent = 100,
					      .priority = 7 };

	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, -1), 0);
	gp_agent_created(&ops, own, &online);
	return args.queue_id;
}

static void update(uint32_t queue_id, uint32_t percent)
{
	struct kfd_update_queue_args args = {
		.ring = 0x5000, .queue_id = queue_id, .ring_size = 4096, .percent = percent, .priority = 7
	};

	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_UPDATE_QUEUE, &args, -1), 0);
}

static void destroy(uint32_t queue_id)
{
	struct kfd_destroy_queue_args args = { .queue_id = queue_id };

	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_DESTROY_QUEUE, &args, -1), 0);
}

static uint32_t percent_of(uint32_t queue_id)
{
	uint32_t percent;

	pthread_mutex_lock(&driver.lock);
	percent = driver.queues[queue_id].set.percent;
	pthread_mutex_unlock(&driver.lock);
	return percent;
}

static void expect_percent(uint32_t queue_id, uint32_t percent)
{
	uint64_t end = now_ns() + PATIENCE;

	while (percent_of(queue_id) != percent && now_ns() < end)
		sleep_ns(MS);
	assert_int_equal(percent_of(queue_id), percent);
}

/* Connects with one queue of id 0; its number. */
static uint64_t begin(uint64_t lease_ns, uint32_t sample)
{
	create(0);
	expect_hello();
	say_welcome(lease_ns, sample);
	expect(GP_MSG_QUEUE);
	return msg.queue.queue;
}

static uint64_t begin_stopped(uint64_t lease_ns)
{
	uint64_t queue = begin(lease_ns, 0);

	want(queue, GP_STOP, GP_PREEMPT_SAVE, 0);
	expect_done(serial, 0);
	assert_int_equal(percent_of(0), 0);
	return queue;
}

static int set_up(void **state)
{
	(void)state;
	memset(pointers, 0, sizeof(pointers));
	memset(rings, 0, sizeof(rings));
	driver.fail_with = 0;
	return 0;
}

static int tear_down(void **state)
{
	struct gp_own_queue queues[QUEUES];
	int n = gp_kfd_own.queues(own, queues, QUEUES);

	(void)state;
	driver.fail_with = 0;
	for (int i = 0; i < n; i++)
		destroy(queues[i].queue_id);
	if (daemon_fd >= 0)
		close(daemon_fd);
	daemon_fd = -1;
	return 0;
}

static void the_agent_says_who_it_is(void **state)
{
	(void)state;
	create(0);
	expect_hello();
	assert_int_equal(msg.hello.pid, getpid());
	assert_int_equal(msg.hello.ways, GP_KFD_WAY_UPDATE);
	assert_int_equal(msg.hello.seen, GP_CLASS_ONLINE);
	assert_string_equal(msg.hello.tag, "ONLINE_AI");
	assert_string_equal(msg.hello.name, "test_agent");
}

static void expect_ways(uint32_t ways)
{
	close(daemon_fd);
	expect_hello();
	assert_int_equal(msg.hello.ways, ways);
	say_welcome(LONG_LEASE, 0); /* else it comes later each time */
	expect(GP_MSG_QUEUE);
}

static void the_private_way_is_offered_only_where_the_environment_names_it(void **state)
{
	(void)state;
	begin(LONG_LEASE, 0);
	driver.has_private = 1; /* it is not asked: to another driver that number is another call */
	setenv("GPREEMPT_WAYS", "update, private,dbg,nonsense", 1);
	gp_agent_configure();
	expect_ways(GP_KFD_WAY_UPDATE | GP_KFD_WAY_PRIVATE);
	unsetenv("GPREEMPT_WAYS");
	gp_agent_configure();
	expect_ways(GP_KFD_WAY_UPDATE);
	driver.has_private = 0;
}

static void queues_are_told_with_the_welcome_and_when_they_change(void **state)
{
	uint64_t first = begin(LONG_LEASE, 0), second;

	(void)state;
	assert_int_equal(msg.queue.ring, (uintptr_t)rings[0]);
	assert_int_equal(msg.queue.gpu_id, 77);
	assert_int_equal(msg.queue.kind, GP_KIND_COMPUTE);
	assert_int_equal(msg.queue.percent, 100);
	assert_int_equal(msg.queue.stopped, 0);
	create(1);
	expect(GP_MSG_QUEUE);
	second = msg.queue.queue;
	assert_true(second != first);
	assert_int_equal(msg.queue.queue_id, 1);
	update(0, 50);
	expect(GP_MSG_QUEUE);
	assert_int_equal(msg.queue.queue, first);
	assert_int_equal(msg.queue.percent, 50);
	destroy(0);
	expect(GP_MSG_GONE);
	assert_int_equal(msg.queue.queue, first);
	assert_int_equal(receive(50 * MS), -1);
}

static void wants_are_done_and_answered_each(void **state)
{
	uint64_t queue = begin(LONG_LEASE, 0);

	(void)state;
	msg.type = GP_MSG_WANTS;
	msg.serial = 4711;
	msg.items = (struct gp_msg_items){ .way = GP_KFD_WAY_UPDATE, .n = 3 };
	msg.item[0] = (struct gp_wire_item){ .queue = queue, .want = GP_STOP };
	msg.item[1] = (struct gp_wire_item){ .queue = 12345, .want = GP_STOP };
	msg.item[2] = (struct gp_wire_item){ .queue = queue, .want = GP_BACKGROUND };
	tell(&msg);
	expect(GP_MSG_DONE);
	assert_int_equal(percent_of(0), 0);
	assert_int_equal(msg.serial, 4711);
	assert_int_equal(msg.items.n, 3);
	assert_int_equal(msg.items.way, GP_KFD_WAY_UPDATE);
	assert_int_equal(msg.item[0].queue, queue);
	assert_int_equal(msg.item[0].status, 0);
	assert_true(msg.item[0].latency_ns > 0);
	assert_int_equal(msg.item[1].status, -ENOENT);
	assert_int_equal(msg.item[2].status, -ENOTSUP);
	want(queue, GP_RUN, GP_PREEMPT_SAVE, 0);
	expect_done(serial, 0);
	assert_int_equal(percent_of(0), 100);
}

static void a_way_or_type_nobody_has_here_is_refused(void **state)
{
	uint64_t queue = begin(LONG_LEASE, 0);

	(void)state;
	want(queue, GP_STOP, GP_PREEMPT_RESET, 0);
	expect_done(serial, -ENOTSUP);
	msg.type = GP_MSG_WANTS;
	msg.serial = ++serial;
	msg.items = (struct gp_msg_items){ .way = GP_KFD_WAY_DBG, .n = 1 };
	msg.item[0] = (struct gp_wire_item){ .queue = queue, .want = GP_STOP };
	tell(&msg);
	expect_done(serial, -ENOTSUP);
	assert_int_equal(percent_of(0), 100);
}

static void when_the_connection_ends_everything_runs_and_is_registered_anew(void **state)
{
	uint64_t queue = begin_stopped(LONG_LEASE);

	(void)state;
	close(daemon_fd);
	daemon_fd = -1;
	expect_percent(0, 100);
	expect_hello();
	say_welcome(LONG_LEASE, 0);
	expect(GP_MSG_QUEUE);
	assert_int_equal(msg.queue.queue, queue);
	assert_int_equal(msg.queue.stopped, 0);
}

static void when_the_lease_ends_everything_runs_and_the_connection_ends(void **state)
{
	(void)state;
	begin_stopped(200 * MS);
	expect_percent(0, 100);
	expect_end();
}

static void pings_keep_the_lease(void **state)
{
	(void)state;
	begin_stopped(3 * SECOND);
	for (int i = 0; i < 40; i++) {
		ping();
		sleep_ns(100 * MS);
		assert_int_equal(percent_of(0), 0);
	}
}

static void a_silent_daemon_is_kept_while_nothing_is_stopped(void **state)
{
	uint64_t queue = begin(50 * MS, 0);

	(void)state;
	assert_int_equal(receive(300 * MS), -1);
	want(queue, GP_STOP, GP_PREEMPT_SAVE, 0);
	expect_done(serial, 0);
}

static void a_resume_that_fails_is_tried_again_without_a_daemon(void **state)
{
	(void)state;
	begin_stopped(LONG_LEASE);
	driver.fail_nr = 0x07;
	driver.fail_with = EIO;
	close(daemon_fd);
	daemon_fd = -1;
	sleep_ns(100 * MS);
	assert_int_equal(percent_of(0), 0);
	driver.fail_with = 0;
	expect_percent(0, 100);
}

static void nonsense_ends_the_connection(void **state)
{
	(void)state;
	begin_stopped(LONG_LEASE);
	assert_int_equal(send(daemon_fd, "nonsense", 8, 0), 8);
	expect_percent(0, 100);
	expect_end();
}

static void a_message_of_a_later_version_is_skipped(void **state)
{
	/* length, type 999, version 1, flags, serial */
	static const unsigned char later[16] = { 16, 0, 0, 0, 0xe7, 3, 1 };
	uint64_t queue = begin(LONG_LEASE, 0);

	(void)state;
	assert_int_equal(send(daemon_fd, later, sizeof(later), 0), sizeof(later));
	want(queue, GP_STOP, GP_PREEMPT_SAVE, 0);
	expect_done(serial, 0);
}

static void serve_with(uint32_t features)
{
	expect_hello();
	assert_int_equal(msg.hello.features, GP_FEATURES);
	msg.type = GP_MSG_WELCOME;
	msg.welcome = (struct gp_msg_welcome){ .lease_ns = LONG_LEASE, .features = features };
	tell(&msg);
	expect(GP_MSG_QUEUE);
	want(msg.queue.queue, GP_STOP, GP_PREEMPT_SAVE, 0);
	expect_done(serial, 0);
}

static void items_say_where_they_are_to_a_daemon_that_welcomes_that(void **state)
{
	(void)state;
	create(0);
	serve_with(GP_FEATURE_STRIDES);
	assert_int_equal(flags, GP_WIRE_STRIDES);
	close(daemon_fd);
	serve_with(0); /* an older one in its place */
	assert_int_equal(flags, 0);
}

static void refused_by_the_daemon_the_agent_comes_again_later(void **state)
{
	uint64_t refused_ns, told_ns;

	(void)state;
	create(0);
	expect_hello();
	told_ns = now_ns();
	msg.type = GP_MSG_ERROR;
	msg.serial = 0;
	msg.error = (struct gp_msg_error){ .status = -EPERM, .text = "no" };
	tell(&msg);
	expect_end();
	refused_ns = now_ns();
	assert_true(refused_ns - told_ns < 4 * SECOND); /* it did not wait for a welcome */
	expect_hello();
	assert_true(now_ns() - refused_ns > 100 * MS);
}

/* A daemon that does not read: the queues that come and go fill its socket. */
static void a_daemon_that_does_not_read_is_left_and_the_application_does_not_wait(void **state)
{
	uint64_t start, longest = 0;

	(void)state;
	begin_stopped(LONG_LEASE);
	start = now_ns();
	while (percent_of(0) == 0 && now_ns() - start < PATIENCE) {
		uint64_t call = now_ns();

		create(1);
		update(1, 10);
		destroy(1);
		longest = now_ns() - call > longest ? now_ns() - call : longest;
		sleep_ns(MS / 10);
	}
	assert_int_equal(percent_of(0), 100);
	assert_true(longest < SECOND / 2);
	expect_end();
}

/* The first packet of a queue: written; taken; ended. */

static void put_packet(uint32_t i)
{
	signals[i][1] = 1;
	rings[i][0][7] = (uintptr_t)signals[i];
	__atomic_store_n(&pointers[i][1], 1, __ATOMIC_RELEASE);
}

static void take_packet(uint32_t i)
{
	__atomic_store_n(&pointers[i][0], 1, __ATOMIC_RELEASE);
}

static void end_packet(uint32_t i)
{
	__atomic_store_n(&signals[i][1], 0, __ATOMIC_RELEASE);
}

static void a_drain_waits_for_the_work_while_other_things_go_on(void **state)
{
	uint64_t first = begin(LONG_LEASE, 0), second;
	uint32_t drain;

	(void)state;
	create(1);
	expect(GP_MSG_QUEUE);
	second = msg.queue.queue;
	put_packet(0);
	want(first, GP_STOP, GP_PREEMPT_DRAIN, LONG_LEASE);
	drain = serial;
	want(second, GP_STOP, GP_PREEMPT_SAVE, 0);
	expect_done(serial, 0);
	assert_int_equal(percent_of(0), 100);
	assert_int_equal(percent_of(1), 0);
	end_packet(0);
	take_packet(0);
	expect_done(drain, 0);
	assert_int_equal(percent_of(0), 0);
}

static void a_drain_waits_for_the_last_packet_though_the_read_pointer_has_moved(void **state)
{
	uint64_t queue = begin(LONG_LEASE, 0);

	(void)state;
	put_packet(0);
	take_packet(0);
	want(queue, GP_STOP, GP_PREEMPT_DRAIN, LONG_LEASE);
	assert_int_equal(receive(50 * MS), -1);
	assert_int_equal(percent_of(0), 100);
	end_packet(0);
	expect_done(serial, 0);
	assert_int_equal(percent_of(0), 0);
}

static void each_of_several_drains_ends_for_itself(void **state)
{
	uint64_t first = begin(LONG_LEASE, 0), second;
	uint32_t slow;

	(void)state;
	create(1);
	expect(GP_MSG_QUEUE);
	second = msg.queue.queue;
	put_packet(0);
	put_packet(1);
	want(first, GP_STOP, GP_PREEMPT_DRAIN, LONG_LEASE);
	slow = serial;
	want(second, GP_STOP, GP_PREEMPT_DRAIN, 30 * MS);
	expect_done(serial, -ETIMEDOUT);
	assert_int_equal(msg.item[0].queue, second);
	want(second, GP_STOP, GP_PREEMPT_DRAIN, LONG_LEASE);
	end_packet(1);
	take_packet(1);
	expect_done(serial, 0);
	assert_int_equal(percent_of(0), 100);
	end_packet(0);
	take_packet(0);
	expect_done(slow, 0);
	assert_int_equal(msg.item[0].queue, first);
}

static void of_one_message_what_drains_is_answered_later_and_the_rest_at_once(void **state)
{
	uint64_t queue = begin(LONG_LEASE, 0);

	(void)state;
	put_packet(0);
	msg.type = GP_MSG_WANTS;
	msg.serial = ++serial;
	msg.items = (struct gp_msg_items){ .type = GP_PREEMPT_DRAIN, .timeout_ns = LONG_LEASE, .n = 3 };
	msg.item[0] = (struct gp_wire_item){ .queue = 123456, .want = GP_RUN };
	msg.item[1] = (struct gp_wire_item){ .queue = queue, .want = GP_STOP };
	msg.item[2] = (struct gp_wire_item){ .queue = 654321, .want = GP_RUN };
	tell(&msg);
	expect(GP_MSG_DONE);
	assert_int_equal(msg.items.n, 2);
	assert_int_equal(msg.item[0].queue, 123456);
	assert_int_equal(msg.item[1].queue, 654321);
	assert_int_equal(msg.item[1].status, -ENOENT);
	end_packet(0);
	take_packet(0);
	expect_done(serial, 0);
	assert_int_equal(msg.item[0].queue, queue);
}

static void a_drain_that_takes_too_long_leaves_the_queue_running(void **state)
{
	uint64_t queue = begin(LONG_LEASE, 0);

	(void)state;
	put_packet(0);
	want(queue, GP_STOP, GP_PREEMPT_DRAIN, 30 * MS);
	expect_done(serial, -ETIMEDOUT);
	assert_true(msg.item[0].latency_ns >= 30 * MS);
	assert_int_equal(percent_of(0), 100);
}

static void a_drain_of_a_queue_that_cannot_say_whether_it_has_finished_waits_and_says_so(void **state)
{
	uint64_t queue = begin(LONG_LEASE, 0);

	(void)state;
	put_packet(0);
	rings[0][0][7] = 0; /* it has no signal */
	take_packet(0);
	want(queue, GP_STOP, GP_PREEMPT_DRAIN, 30 * MS);
	expect_done(serial, -ENODATA);
	assert_true(msg.item[0].latency_ns >= 30 * MS);
	assert_int_equal(percent_of(0), 100);
}

static void a_drain_of_a_queue_that_goes_or_never_was_ends(void **state)
{
	uint64_t queue = begin(LONG_LEASE, 0);
	uint32_t drain;

	(void)state;
	put_packet(0);
	want(123456, GP_STOP, GP_PREEMPT_DRAIN, LONG_LEASE);
	expect_done(serial, -ENOENT);
	want(queue, GP_STOP, GP_PREEMPT_DRAIN, LONG_LEASE);
	drain = serial;
	destroy(0);
	do
		assert_int_equal(receive(PATIENCE), 1);
	while (msg.type != GP_MSG_DONE);
	assert_int_equal(msg.serial, drain);
	assert_int_equal(msg.item[0].status, -ENOENT);
}

static void want_in_private(uint64_t queue, uint32_t type, uint64_t timeout_ns)
{
	msg.type = GP_MSG_WANTS;
	msg.serial = ++serial;
	msg.items = (struct gp_msg_items){
		.type = type, .way = GP_KFD_WAY_PRIVATE, .timeout_ns = timeout_ns, .n = 1
	};
	msg.item[0] = (struct gp_wire_item){ .queue = queue, .want = GP_STOP };
	tell(&msg);
}

static void in_the_private_way_the_driver_drains_as_often_as_the_time_allows(void **state)
{
	uint64_t queue = begin(SECOND / 10, 0);

	(void)state;
	driver.has_private = 1;
	want_in_private(queue, GP_PREEMPT_DRAIN, SECOND / 20);
	expect_done(serial, 0);
	assert_int_equal(driver.preempt_type, KFD_PRIVATE_DRAIN);
	assert_in_range(driver.preempt_ms, 1, 50);
	want(queue, GP_RUN, GP_PREEMPT_SAVE, 0);
	expect_done(serial, 0);
	driver.fail_nr = 0x87;
	driver.fail_with = ETIME; /* at once, and that is not the time we were given */
	want_in_private(queue, GP_PREEMPT_DRAIN, SECOND / 20);
	expect_done(serial, -ETIMEDOUT);
	assert_true(msg.item[0].latency_ns >= SECOND / 20);
	driver.has_private = 0;
}

static void the_time_of_a_save_in_the_private_way_reaches_the_driver(void **state)
{
	uint64_t queue = begin(LONG_LEASE, 0);

	(void)state;
	driver.has_private = 1;
	want_in_private(queue, GP_PREEMPT_SAVE, 50 * MS);
	expect_done(serial, 0);
	assert_int_equal(driver.preempt_type, KFD_PRIVATE_SAVE);
	assert_int_equal(driver.preempt_ms, 50);
	want(queue, GP_RUN, GP_PREEMPT_SAVE, 0);
	expect_done(serial, 0);
	driver.has_private = 0;
}

static void a_resume_calls_a_drain_off(void **state)
{
	uint64_t queue = begin(LONG_LEASE, 0);
	uint32_t drain;

	(void)state;
	put_packet(0);
	want(queue, GP_STOP, GP_PREEMPT_DRAIN, LONG_LEASE);
	drain = serial;
	want(queue, GP_RUN, GP_PREEMPT_SAVE, 0);
	expect_done(drain, -ECANCELED);
	expect_done(serial, 0);
}

static void a_save_overtakes_a_drain(void **state)
{
	uint64_t queue = begin(LONG_LEASE, 0);
	uint32_t drain;

	(void)state;
	put_packet(0);
	want(queue, GP_STOP, GP_PREEMPT_DRAIN, LONG_LEASE);
	drain = serial;
	want(queue, GP_STOP, GP_PREEMPT_SAVE, 0);
	expect_done(drain, -ECANCELED);
	expect_done(serial, 0);
	assert_int_equal(percent_of(0), 0);
}

static void busy_and_idle_are_told_when_they_change(void **state)
{
	uint64_t queue = begin(LONG_LEASE, 1);

	(void)state;
	expect(GP_MSG_ACTIVITY);
	assert_int_equal(msg.activity.queue, queue);
	assert_int_equal(msg.activity.activity, GP_ACTIVITY_IDLE);
	assert_int_equal(receive(50 * MS), -1);
	__atomic_store_n(&pointers[0][1], 9, __ATOMIC_RELEASE);
	expect(GP_MSG_ACTIVITY);
	assert_int_equal(msg.activity.activity, GP_ACTIVITY_BUSY);
	assert_int_equal(msg.activity.wptr, 9);
	assert_int_equal(msg.activity.rptr, 0);
	__atomic_store_n(&pointers[0][0], 4, __ATOMIC_RELEASE); /* busy still */
	assert_int_equal(receive(150 * MS), -1);
	__atomic_store_n(&pointers[0][0], 9, __ATOMIC_RELEASE);
	expect(GP_MSG_ACTIVITY);
	assert_int_equal(msg.activity.activity, GP_ACTIVITY_IDLE);
}

static void expect_activity(uint32_t activity)
{
	expect(GP_MSG_ACTIVITY);
	assert_int_equal(msg.activity.activity, activity);
}

static void a_queue_whose_last_packet_still_runs_is_not_told_as_idle(void **state)
{
	(void)state;
	begin(LONG_LEASE, 1);
	expect_activity(GP_ACTIVITY_IDLE);
	put_packet(0);
	expect_activity(GP_ACTIVITY_BUSY);
	take_packet(0);
	assert_int_equal(receive(150 * MS), -1);
	end_packet(0);
	expect_activity(GP_ACTIVITY_IDLE);
}

static uint64_t count_looks(void)
{
	return __atomic_load_n(&looks, __ATOMIC_SEQ_CST);
}

static void await_look(void)
{
	uint64_t before = count_looks(), end = now_ns() + PATIENCE;

	while (count_looks() == before && now_ns() < end)
		sleep_ns(MS / 10);
	assert_true(count_looks() > before);
}

/* How long it takes until a ring has been told, just after a look: the next one would be 100 ms later. */
static uint64_t ring_ns(uint64_t packet)
{
	uint64_t since, took;

	await_look();
	sleep_ns(5 * MS); /* so that it is over, and no ring falls into it */
	since = now_ns();
	__atomic_store_n(&pointers[0][1], packet, __ATOMIC_RELEASE);
	gp_agent_rang();
	expect_activity(GP_ACTIVITY_BUSY);
	took = now_ns() - since;
	__atomic_store_n(&pointers[0][0], packet, __ATOMIC_RELEASE);
	expect_activity(GP_ACTIVITY_IDLE);
	return took;
}

static void where_a_door_rings_the_agent_looks_seldom_while_idle_and_tells_of_a_ring_at_once(void **state)
{
	uint64_t since, first, most, at_once = 0;

	(void)state;
	begin(LONG_LEASE, 1);
	expect_activity(GP_ACTIVITY_IDLE);
	gp_agent_rang(); /* from now on */
	await_look();
	await_look();
	since = now_ns();
	first = count_looks();
	assert_int_equal(receive(SECOND), -1);
	most = (now_ns() - since) / (100 * MS) + 3; /* one is due at once, and two with the ring */
	assert_in_range(count_looks() - first, 1, most);
	for (uint64_t i = 1; i <= 10; i++)
		at_once += ring_ns(i) < 50 * MS;
	assert_in_range(at_once, 5,
			10); /* the others are this machine's; without a ring 2 or 3 come so soon */
}

/* How often the agent's thread has gone to sleep. */
static uint64_t sleeps(void)
{
	char name[300], line[128];
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;
	uint64_t n = 0;

	while ((d = readdir(dir))) {
		FILE *file;

		snprintf(name, sizeof(name), "/proc/self/task/%s/status", d->d_name);
		file = atoi(d->d_name) == getpid() ? NULL : fopen(name, "r");
		while (file && fgets(line, sizeof(line), file))
			(void)sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &n);
		if (file)
			fclose(file);
	}
	closedir(dir);
	return n;
}

static void an_online_process_that_does_nothing_is_watched_all_the_same(void **state)
{
	uint64_t end = now_ns() + PATIENCE, before, n = 0;

	(void)state;
	begin(LONG_LEASE, 1);
	sleep_ns(SECOND);
	while (n <= 20 && now_ns() < end) { /* others are looked at ten times a second by now */
		uint64_t start = now_ns();

		before = sleeps();
		sleep_ns(SECOND);
		n = (sleeps() - before) * SECOND / (now_ns() - start);
	}
	assert_true(n > 20);
}

/* The sampler alone, with a vendor that says what it is told to. */

static struct gp_sampler sampler;
static struct gp_activity told;
static uint32_t told_end, asked;

static int tell_activity(struct gp_own *unused, const uint64_t *queues, size_t n, struct gp_activity *ret)
{
	(void)unused, (void)queues;
	for (size_t i = 0; i < n; i++)
		ret[i] = told;
	return 0;
}

static int tell_end(struct gp_own *unused, const uint64_t *queues, size_t n, struct gp_activity *ret)
{
	(void)unused, (void)queues;
	asked++;
	for (size_t i = 0; i < n; i++)
		ret[i].activity = told_end;
	return 0;
}

static const struct gp_own_ops teller = { .activity = tell_activity, .finished = tell_end };

static void begin_sampler(uint32_t is_close)
{
	memset(&sampler, 0, sizeof(sampler));
	asked = 0;
	gp_sampler_reset(&sampler, is_close);
	gp_sampler_add(&sampler, 4711, 0);
}

/* What the daemon is told after a look at a queue with these pointers; GP_ACTIVITY_UNKNOWN: nothing. */
static uint32_t look(uint64_t rptr, uint64_t wptr, uint32_t end)
{
	static uint16_t changed[GP_OWN_MOST];

	told = (struct gp_activity){ .rptr = rptr,
				     .wptr = wptr,
				     .activity = rptr == wptr ? GP_ACTIVITY_IDLE : GP_ACTIVITY_BUSY };
	told_end = end;
	return gp_sampler_look(&sampler, &teller, NULL, changed) ? sampler.last[0].activity
								 : GP_ACTIVITY_UNKNOWN;
}

static void a_queue_that_cannot_say_whether_it_has_finished_is_idle_after_two_looks(void **state)
{
	(void)state;
	begin_sampler(1);
	assert_int_equal(look(9, 9, GP_ACTIVITY_UNKNOWN), GP_ACTIVITY_UNKNOWN); /* never seen before */
	assert_int_equal(look(9, 9, GP_ACTIVITY_UNKNOWN), GP_ACTIVITY_IDLE);
	assert_int_equal(look(9, 10, GP_ACTIVITY_UNKNOWN), GP_ACTIVITY_BUSY);
	assert_int_equal(look(10, 10, GP_ACTIVITY_UNKNOWN), GP_ACTIVITY_UNKNOWN); /* busy still */
	assert_int_equal(look(11, 11, GP_ACTIVITY_UNKNOWN), GP_ACTIVITY_UNKNOWN); /* it has moved */
	assert_int_equal(look(11, 11, GP_ACTIVITY_UNKNOWN), GP_ACTIVITY_IDLE);
	assert_int_equal(look(12, 12, GP_ACTIVITY_UNKNOWN), GP_ACTIVITY_BUSY); /* it has worked since */
	assert_int_equal(look(12, 12, GP_ACTIVITY_UNKNOWN), GP_ACTIVITY_IDLE);
	begin_sampler(1);
	assert_int_equal(look(9, 9, GP_ACTIVITY_UNKNOWN), GP_ACTIVITY_UNKNOWN);
	assert_int_equal(look(10, 10, GP_ACTIVITY_UNKNOWN), GP_ACTIVITY_BUSY);
}

static void whether_a_queue_has_finished_is_asked_until_it_has_and_then_no_more(void **state)
{
	(void)state;
	begin_sampler(1);
	assert_int_equal(look(4, 5, GP_ACTIVITY_BUSY), GP_ACTIVITY_BUSY);
	assert_int_equal(asked, 0);
	assert_int_equal(look(5, 5, GP_ACTIVITY_BUSY), GP_ACTIVITY_UNKNOWN);
	assert_int_equal(look(5, 5, GP_ACTIVITY_BUSY), GP_ACTIVITY_UNKNOWN);
	assert_int_equal(asked, 2);
	assert_int_equal(look(5, 5, GP_ACTIVITY_IDLE), GP_ACTIVITY_IDLE);
	assert_int_equal(look(5, 5, GP_ACTIVITY_BUSY), GP_ACTIVITY_UNKNOWN); /* the signal is another's now */
	assert_int_equal(asked, 3);
	assert_int_equal(look(6, 6, GP_ACTIVITY_BUSY), GP_ACTIVITY_BUSY);
	assert_int_equal(asked, 4);
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* That many looks at a queue that does not move, each of which takes so long of the thread's time. */
static void look_on(uint32_t times, uint64_t cost_ns)
{
	for (uint32_t i = 0; i < times; i++) {
		uint64_t start = thread_ns();

		gp_sampler_rest(&sampler);
		(void)look(5, 5, GP_ACTIVITY_IDLE);
		while (thread_ns() - start < cost_ns)
			;
		gp_sampler_plan(&sampler, sampler.next_ns);
	}
}

static void a_process_that_is_watched_closely_is_looked_at_as_often_while_nothing_moves(void **state)
{
	uint64_t period;

	(void)state;
	begin_sampler(1);
	assert_int_equal(sampler.next_ns, MS / 4);
	look_on(20, 0);
	period = sampler.cost_ns * 120 > MS / 4 ? sampler.cost_ns * 120 : MS / 4;
	assert_int_equal(sampler.period_ns, period < 100 * MS ? period : 100 * MS);
	look_on(200, 200 * 1000);
	assert_true(sampler.cost_ns > 150 * 1000); /* smoothed */
	period = sampler.cost_ns * 120 < 100 * MS ? sampler.cost_ns * 120 : 100 * MS;
	assert_int_equal(sampler.period_ns, period);
	look_on(200, 2 * MS);
	assert_int_equal(sampler.period_ns, 100 * MS);
}

static void a_look_that_takes_much_longer_than_the_others_hardly_moves_the_period(void **state)
{
	(void)state;
	begin_sampler(1);
	look_on(600, 0);
	sampler.cost_ns = MS / 10;
	look_on(1, 2 * MS);
	assert_in_range(sampler.cost_ns, 107 * MS / 1000, 125 * MS / 1000);
	assert_int_equal(sampler.period_ns, sampler.cost_ns * 120);
}

static void looks_that_cost_more_all_at_once_take_no_more_of_a_core(void **state)
{
	uint64_t begun;

	(void)state;
	begin_sampler(1);
	look_on(600, 0);
	sampler.cost_ns = 2000; /* of 600 looks: fifty others hardly move it */
	begun = sampler.next_ns;
	look_on(50, MS / 2);
	/* 25 ms in all, less what was saved up. */
	assert_in_range(sampler.next_ns - begun, 20 * 110 * MS, 60 * 120 * MS);
}

static void a_long_rest_saves_up_no_more_than_half_a_second_does(void **state)
{
	uint64_t begun;

	(void)state;
	begin_sampler(1);
	look_on(600, 0);
	gp_sampler_rest(&sampler);
	gp_sampler_plan(&sampler, sampler.next_ns + 1000 * SECOND);
	sampler.cost_ns = 2000;
	begun = sampler.next_ns;
	look_on(20, MS);
	/* 20 ms in all, of which 4.5 are saved up, and as many may be owed. */
	assert_true(sampler.next_ns - begun >= 10 * 110 * MS);
}

static void one_look_that_takes_very_long_puts_off_the_next_ones_for_a_short_time_only(void **state)
{
	uint64_t before;

	(void)state;
	begin_sampler(1);
	for (int i = 0; i < 20; i++) {
		before = sampler.next_ns;
		look_on(1, i ? 0 : 50 * MS);
		assert_true(sampler.next_ns - before <= 100 * MS);
	}
	assert_true(sampler.credit_ns >= 0); /* they wait no more */
}

static void of_any_other_process_the_looks_become_fewer_until_something_moves(void **state)
{
	uint64_t before, least;

	(void)state;
	begin_sampler(0);
	assert_int_equal(sampler.next_ns, MS);
	look_on(1, 0);
	before = sampler.period_ns;
	look_on(1, 0);
	assert_true(sampler.period_ns >= 2 * before || sampler.period_ns == 100 * MS);
	look_on(8, 0);
	assert_int_equal(sampler.period_ns, 100 * MS);
	(void)look(5, 6, GP_ACTIVITY_IDLE);
	gp_sampler_plan(&sampler, sampler.next_ns);
	least = sampler.cost_ns * 120 > MS ? sampler.cost_ns * 120 : MS;
	assert_int_equal(sampler.period_ns, least < 100 * MS ? least : 100 * MS);
}

static void a_look_that_comes_late_does_not_make_the_next_one_late(void **state)
{
	uint64_t due;

	(void)state;
	begin_sampler(1);
	look_on(1, 0);
	due = sampler.next_ns;
	gp_sampler_rest(&sampler);
	gp_sampler_plan(&sampler, due + sampler.period_ns / 8);
	assert_int_equal(sampler.next_ns, due + sampler.period_ns);
	due = sampler.next_ns;
	gp_sampler_rest(&sampler);
	gp_sampler_plan(&sampler, due + SECOND);
	assert_int_equal(sampler.next_ns,
			 due + SECOND + sampler.period_ns); /* what was missed is not made up for */
}

static void without_being_asked_the_agent_does_not_look(void **state)
{
	(void)state;
	begin(LONG_LEASE, 0);
	__atomic_store_n(&pointers[0][1], 9, __ATOMIC_RELEASE);
	assert_int_equal(receive(150 * MS), -1);
}

static void a_new_tag_registers_the_process_anew(void **state)
{
	(void)state;
	begin_stopped(LONG_LEASE);
	gp_agent_created(&gp_kfd_own, own, &offline);
	expect_percent(0, 100);
	expect_end();
	expect_hello();
	assert_string_equal(msg.hello.tag, "OFFLINE_AI");
	assert_int_equal(msg.hello.seen, GP_CLASS_OFFLINE);
	gp_agent_created(&gp_kfd_own, own, &online);
	expect_end();
}

static void a_new_weight_or_slo_registers_the_process_anew(void **state)
{
	struct gp_claim other = online;

	(void)state;
	begin(LONG_LEASE, 0);
	other.weight = 200;
	gp_agent_created(&gp_kfd_own, own, &other);
	expect_end();
	expect_hello();
	assert_int_equal(msg.hello.weight, 200);
	assert_int_equal(msg.hello.slo_ns, 0);
	say_welcome(LONG_LEASE, 0);
	expect(GP_MSG_QUEUE);
	gp_agent_created(&gp_kfd_own, own, &other); /* nothing new */
	assert_int_equal(receive(50 * MS), -1);
	other.slo_ns = 20 * MS;
	gp_agent_created(&gp_kfd_own, own, &other);
	expect_end();
	expect_hello();
	assert_int_equal(msg.hello.weight, 200);
	assert_int_equal(msg.hello.slo_ns, 20 * MS);
	gp_agent_created(&gp_kfd_own, own, &online);
}

static struct gp_claim identity_with(const char *name, const char *value)
{
	struct gp_claim who;

	setenv(name, value, 1);
	gp_environment_claim(getenv, &who);
	unsetenv(name);
	return who;
}

static void the_class_goes_before_the_tag(void **state)
{
	struct gp_claim who;

	(void)state;
	setenv("AMD_QUEUE_TAG", "ONLINE_AI", 1);
	assert_int_equal(identity_with("GPREEMPT_CLASS", "").seen, GP_CLASS_ONLINE);
	assert_int_equal(identity_with("GPREEMPT_CLASS", "offline").seen, GP_CLASS_OFFLINE);
	assert_int_equal(identity_with("GPREEMPT_CLASS", "Online").seen, GP_CLASS_UNKNOWN);
	assert_string_equal(identity_with("GPREEMPT_CLASS", "offline").tag, "ONLINE_AI");
	setenv("AMD_QUEUE_TAG", "OFFLINE_AI", 1);
	assert_int_equal(identity_with("GPREEMPT_CLASS", "online").seen, GP_CLASS_ONLINE);
	assert_int_equal(identity_with("GPREEMPT_CLASS", "").seen, GP_CLASS_OFFLINE);
	unsetenv("AMD_QUEUE_TAG");
	gp_environment_claim(getenv, &who);
	assert_int_equal(who.seen, GP_CLASS_UNKNOWN);
	assert_string_equal(who.tag, "");
	assert_int_equal(who.weight, 0);
	assert_int_equal(who.slo_ns, 0);
}

static void a_weight_is_a_number_from_1_to_10000(void **state)
{
	static const char *const bad[] = { "",   "0",  "10001", "-1", "+1",
					   " 5", "5 ", "1.5",   "x",  "18446744073709551617" };

	(void)state;
	assert_int_equal(identity_with("GPREEMPT_WEIGHT", "1").weight, 1);
	assert_int_equal(identity_with("GPREEMPT_WEIGHT", "10000").weight, 10000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(identity_with("GPREEMPT_WEIGHT", bad[i]).weight, 0);
}

static void an_slo_is_a_time_up_to_an_hour(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = { { "20ms", 20 * MS },
		      { "500us", 500000 },
		      { "1s", SECOND },
		      { "7ns", 7 },
		      { "20000000", 20 * MS },
		      { "3600s", 3600 * SECOND },
		      { "3601s", 0 },
		      { "3600000000001", 0 },
		      { "18446744073709551617", 0 },
		      { "99999999999999999999s", 0 },
		      { "0", 0 },
		      { "0s", 0 },
		      { "ms", 0 },
		      { "20 ms", 20 * MS },
		      { "1.5ms", 1500000 },
		      { "2min", 120 * SECOND },
		      { "1h", 3600 * SECOND },
		      { "1.1h", 0 },
		      { "1.5", 0 },
		      { "-1s", 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(identity_with("GPREEMPT_SLO", cases[i].text).slo_ns, cases[i].ns);
}

/* Descriptors. The agent's are the ones from 200 on that were not there before. */

static int is_inherited(int number)
{
	for (int i = 0; i < ninherited; i++)
		if (inherited[i] == number)
			return 1;
	return 0;
}

static int agents_fds(int *ret, int most)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;
	int n = 0;

	while ((d = readdir(dir)))
		if (atoi(d->d_name) >= 200 && !is_inherited(atoi(d->d_name)) && n < most)
			ret[n++] = atoi(d->d_name);
	closedir(dir);
	return n;
}

static void an_agent_whose_descriptors_were_closed_opens_new_ones(void **state)
{
	int fds[16], n;

	(void)state;
	begin_stopped(1 * SECOND);
	n = agents_fds(fds, 16);
	assert_int_equal(n, 4);
	for (int i = 0; i < n; i++)
		close(fds[i]);
	expect_percent(0, 100);
	expect_end();
	expect_hello();
	say_welcome(LONG_LEASE, 0);
	expect(GP_MSG_QUEUE);
	assert_int_equal(agents_fds(fds, 16), 4);
}

static void a_program_that_has_closed_its_standard_input_is_connected_and_keeps_that_number(void **state)
{
	int kept = dup(0);

	(void)state;
	begin(LONG_LEASE, 0);
	close(0);
	close(daemon_fd);
	assert_true(readable(listener, PATIENCE));
	assert_int_equal(fcntl(0, F_GETFD), -1);
	assert_int_equal(dup2(kept, 0), 0);
	close(kept);
	expect_hello();
}

static void a_file_that_took_the_place_of_a_descriptor_is_left_alone(void **state)
{
	int fds[16], ends[2], n, at_hand;
	char bytes[8];

	(void)state;
	begin_stopped(1 * SECOND);
	n = agents_fds(fds, 16);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(send(ends[1], "theirs", 6, 0), 6);
	for (int i = 0; i < n; i++)
		assert_int_equal(dup2(ends[0], fds[i]), fds[i]);
	create(1); /* wakes the agent */
	expect_percent(0, 100);
	expect_end();
	expect_hello();
	say_welcome(LONG_LEASE, 0);
	expect(GP_MSG_QUEUE);
	assert_int_equal(recv(ends[0], bytes, sizeof(bytes), MSG_DONTWAIT), 6);
	assert_int_equal(recv(ends[1], bytes, sizeof(bytes), MSG_DONTWAIT), -1);
	for (int i = 0; i < n; i++) {
		at_hand = fcntl(fds[i], F_GETFD);
		assert_true(at_hand >= 0);
		close(fds[i]);
	}
	close(ends[0]);
	close(ends[1]);
}

/* Children */

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;
	int n = 0;

	while ((d = readdir(dir)))
		n += d->d_name[0] != '.';
	closedir(dir);
	return n;
}

static int in_child(void)
{
	int fds[16];

	gp_kfd_own.forget(own);
	gp_agent_forget();
	if (agents_fds(fds, 16) != 0 || threads() != 1)
		return 1;
	memset(driver.queues, 0, sizeof(driver.queues));
	create(0);
	for (uint64_t end = now_ns() + PATIENCE; threads() != 2;)
		if (now_ns() > end)
			return 2;
	sleep_ns(300 * MS); /* until it has said hello */
	return 0;
}

static size_t cpus_of(pid_t thread)
{
	cpu_set_t set;

	return sched_getaffinity(thread, sizeof(set), &set) < 0 ? 0 : (size_t)CPU_COUNT(&set);
}

/* The id of a thread that is not the first. */
static pid_t second_thread(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;
	pid_t found = 0;

	while ((d = readdir(dir)))
		if (atoi(d->d_name) && atoi(d->d_name) != getpid())
			found = atoi(d->d_name);
	closedir(dir);
	return found;
}

static int in_child_on_one_cpu(void)
{
	size_t all = cpus_of(0);
	cpu_set_t one;

	setenv("GPREEMPT_SOCKET", "/nowhere/socket", 1); /* the test listens to its own agent alone */
	gp_agent_configure();
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0 || in_child())
		return 3;
	return cpus_of(0) == 1 && cpus_of(second_thread()) == all ? 0 : 4;
}

static void the_thread_of_a_program_on_one_cpu_runs_on_any(void **state)
{
	pid_t child;
	int status;

	(void)state;
	begin(LONG_LEASE, 0);
	child = fork();
	if (child == 0)
		_exit(in_child_on_one_cpu());
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

static void a_child_has_an_agent_of_its_own_with_its_first_queue(void **state)
{
	pid_t child;
	int status;

	(void)state;
	begin_stopped(LONG_LEASE);
	child = fork();
	if (child == 0)
		_exit(in_child());
	assert_int_equal(receive(100 * MS), -1); /* the parent's connection is as it was */
	assert_int_equal(percent_of(0), 0);
	close(daemon_fd);
	expect_hello();
	if (msg.hello.pid == (uint32_t)getpid()) {
		close(daemon_fd);
		expect_hello();
	}
	assert_int_equal(msg.hello.pid, child);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

/* Threads of the process that are called so. */
static int agents_threads(void)
{
	char name[300], text[64];
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;
	int n = 0;

	while ((d = readdir(dir))) {
		FILE *file;

		snprintf(name, sizeof(name), "/proc/self/task/%s/comm", d->d_name);
		file = fopen(name, "r");
		if (file && fgets(text, sizeof(text), file))
			n += !strcmp(text, "gpreempt-agent\n");
		if (file)
			fclose(file);
	}
	closedir(dir);
	return n;
}

static void there_was_one_thread_all_the_time(void **state)
{
	(void)state;
	assert_int_equal(agents_threads(), 1);
}

static int prepare(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)state;
	ninherited = agents_fds(inherited, 64);
	fake_reset();
	ops = gp_kfd_own;
	ops.activity = count_look;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/sock", folder);
	memcpy(address.sun_path, path, sizeof(path));
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, 8) < 0)
		return -1;
	setenv("GPREEMPT_SOCKET", path, 1);
	setenv("GPREEMPT_KFD", FILE_OF_DRIVER, 1);
	unsetenv("GPREEMPT_WAYS");
	unsetenv("GPREEMPT_CLASS");
	unsetenv("GPREEMPT_WEIGHT");
	unsetenv("GPREEMPT_SLO");
	unsetenv("AMD_QUEUE_TAG");
	gp_agent_configure();
	fd = open(FILE_OF_DRIVER, O_RDWR | O_CLOEXEC);
	return gp_kfd_own.make(fake_ioctl, gp_agent_wake, NULL, &own);
}

static int clean_up(void **state)
{
	(void)state;
	unlink(path);
	rmdir(folder);
	return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void where_a_door_rings_idle_queues_are_looked_at_seldom_until_it_does(void **state)
{
	struct gp_sampler s = { 0 };

	(void)state;
	assert_false(gp_sampler_is_idle(&s)); /* there is none */
	gp_sampler_add(&s, 1, 1000);
	gp_sampler_add(&s, 2, 1000);
	s.last[0].activity = GP_ACTIVITY_IDLE;
	assert_false(gp_sampler_is_idle(&s)); /* of the other nobody knows */
	s.last[1].activity = GP_ACTIVITY_IDLE;
	assert_true(gp_sampler_is_idle(&s));
	gp_sampler_defer(&s, 1000);
	assert_int_equal(s.next_ns, 1000 + 100000000);
	gp_sampler_hurry(&s);
	assert_int_equal(s.next_ns, 0);
	s.next_ns = 7;
	gp_sampler_hurry(&s); /* it was not put off */
	assert_int_equal(s.next_ns, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_a_door_rings_idle_queues_are_looked_at_seldom_until_it_does),
		T(the_agent_says_who_it_is),
		T(the_private_way_is_offered_only_where_the_environment_names_it),
		T(queues_are_told_with_the_welcome_and_when_they_change),
		T(wants_are_done_and_answered_each),
		T(a_way_or_type_nobody_has_here_is_refused),
		T(when_the_connection_ends_everything_runs_and_is_registered_anew),
		T(when_the_lease_ends_everything_runs_and_the_connection_ends),
		T(pings_keep_the_lease),
		T(a_silent_daemon_is_kept_while_nothing_is_stopped),
		T(a_resume_that_fails_is_tried_again_without_a_daemon),
		T(nonsense_ends_the_connection),
		T(a_message_of_a_later_version_is_skipped),
		T(items_say_where_they_are_to_a_daemon_that_welcomes_that),
		T(refused_by_the_daemon_the_agent_comes_again_later),
		T(a_daemon_that_does_not_read_is_left_and_the_application_does_not_wait),
		T(a_drain_waits_for_the_work_while_other_things_go_on),
		T(a_drain_waits_for_the_last_packet_though_the_read_pointer_has_moved),
		T(each_of_several_drains_ends_for_itself),
		T(of_one_message_what_drains_is_answered_later_and_the_rest_at_once),
		T(a_drain_that_takes_too_long_leaves_the_queue_running),
		T(a_drain_of_a_queue_that_cannot_say_whether_it_has_finished_waits_and_says_so),
		T(a_drain_of_a_queue_that_goes_or_never_was_ends),
		T(in_the_private_way_the_driver_drains_as_often_as_the_time_allows),
		T(the_time_of_a_save_in_the_private_way_reaches_the_driver),
		T(a_resume_calls_a_drain_off),
		T(a_save_overtakes_a_drain),
		T(busy_and_idle_are_told_when_they_change),
		T(a_queue_whose_last_packet_still_runs_is_not_told_as_idle),
		T(an_online_process_that_does_nothing_is_watched_all_the_same),
		T(a_queue_that_cannot_say_whether_it_has_finished_is_idle_after_two_looks),
		T(whether_a_queue_has_finished_is_asked_until_it_has_and_then_no_more),
		T(a_process_that_is_watched_closely_is_looked_at_as_often_while_nothing_moves),
		T(a_look_that_takes_much_longer_than_the_others_hardly_moves_the_period),
		T(looks_that_cost_more_all_at_once_take_no_more_of_a_core),
		T(a_long_rest_saves_up_no_more_than_half_a_second_does),
		T(one_look_that_takes_very_long_puts_off_the_next_ones_for_a_short_time_only),
		T(of_any_other_process_the_looks_become_fewer_until_something_moves),
		T(a_look_that_comes_late_does_not_make_the_next_one_late),
		T(without_being_asked_the_agent_does_not_look),
		T(a_new_tag_registers_the_process_anew),
		T(a_new_weight_or_slo_registers_the_process_anew),
		T(the_class_goes_before_the_tag),
		T(a_weight_is_a_number_from_1_to_10000),
		T(an_slo_is_a_time_up_to_an_hour),
		T(an_agent_whose_descriptors_were_closed_opens_new_ones),
		T(a_program_that_has_closed_its_standard_input_is_connected_and_keeps_that_number),
		T(a_file_that_took_the_place_of_a_descriptor_is_left_alone),
		T(the_thread_of_a_program_on_one_cpu_runs_on_any),
		T(where_a_door_rings_the_agent_looks_seldom_while_idle_and_tells_of_a_ring_at_once),
		T(a_child_has_an_agent_of_its_own_with_its_first_queue),
		T(there_was_one_thread_all_the_time),
	};

	return cmocka_run_group_tests(tests, prepare, clean_up);
}
