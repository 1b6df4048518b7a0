// SPDX-License-Identifier: MIT
/*
 * core_cost QUEUES [holds | reservation | leaving]: what an event costs the core, by the number of
 * queues: run under callgrind, which counts the instructions of measured() alone.  One client
 * in ten is online; events are random requests with hints, activity of online queues, the end
 * of every want that follows from them, and the time.
 *
 * holds: half of the offline queues are held, each by one of 16, and within a request ten more
 * are held and let go.  reservation: half of them have a place, and with each request they take
 * turns, as src/daemon/reserve.c has them do.  leaving: only one is online, offline yields to it, and
 * what is counted is that one's going and coming.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "core/core.h"
#include "daemon/decisions.h"

#define MS 1000000ull
#define HOLDERS 16
#define USERS 4

struct bench {
	struct gp_core *core;
	struct gp_random random;
	uint64_t now;
	uint64_t next;
	uint64_t queues;
	uint64_t queue_of_one;
	uint64_t events;
	int has_holds;
	int leaves;
	struct gp_reserve reserve;
	struct gp_candidate *candidates; /* NULL: nothing is reserved */
	size_t ncandidates;
};

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "core_cost: %s: %d\n", what, r);
	exit(1);
}

/* Every want ends at once and well: what is counted is the core, not a backend. */
static void settle(struct bench *b)
{
	struct gp_action action;

	b->next = gp_core_run(b->core, b->now);
	b->events++;
	while (gp_core_take(b->core, &action, b->now)) {
		for (size_t i = 0; i < action.nwants; i++) {
			struct gp_done done = { .want = action.wants[i], .latency_ns = 50000 };

			check(gp_core_done(b->core, &done, b->now), "done");
			b->events++;
		}
	}
}

static void pass_time(struct bench *b, uint64_t ns)
{
	uint64_t until = b->now + ns;

	while (b->next <= until) {
		b->now = b->next > b->now ? b->next : b->now;
		settle(b);
	}
	b->now = until;
}

static uint64_t online(struct bench *b)
{
	return 10 * gp_random_between(&b->random, 0, b->queues / 10 - 1) + 1;
}

/* Every tenth is online. */
static uint64_t offline(struct bench *b)
{
	return online(b) + gp_random_between(&b->random, 1, 9);
}

static void hold(struct bench *b, uint64_t holder, uint64_t queue, uint64_t until_ns)
{
	const struct gp_hold hold = { .holder = holder,
				      .owner = GP_HOLDER_HOST,
				      .queue = queue,
				      .client = GP_HOLDER_HOST - queue,
				      .until_ns = until_ns,
				      .most = UINT32_MAX };

	check(gp_core_hold(b->core, &hold, b->now), "hold");
	b->events++;
}

static void release(struct bench *b, uint64_t holder, uint64_t queue)
{
	check(gp_core_release(b->core, queue, (struct gp_whose){ .holder = holder }, b->now), "release");
	b->events++;
}

static void hold_and_release(struct bench *b)
{
	uint64_t queue = offline(b);

	hold(b, HOLDERS + 1, queue, b->now + 1000 * MS);
	settle(b);
	release(b, HOLDERS + 1, queue);
	settle(b);
}

static void set_parked(struct bench *b, struct gp_candidate *c, uint32_t was)
{
	if (c->parked == was)
		return;
	if (c->parked)
		hold(b, GP_HOLDER_HOST, c->queue, GP_NO_LEASE);
	else
		release(b, GP_HOLDER_HOST, c->queue);
}

static void take_turns(struct bench *b)
{
	uint32_t *was = calloc(b->queues + 1, sizeof(*was)); /* by queue: they are sorted */

	check(was ? 0 : -1, "memory");
	for (size_t i = 0; i < b->ncandidates; i++)
		was[b->candidates[i].queue] = b->candidates[i].parked;
	check(gp_reserve_choose(&b->reserve, b->candidates, b->ncandidates, 1), "choose");
	for (size_t i = 0; i < b->ncandidates; i++)
		set_parked(b, &b->candidates[i], was[b->candidates[i].queue]);
	free(was);
	settle(b);
}

/* Client i has queue i. */
static void one_request(struct bench *b)
{
	uint64_t client = online(b), queue = 0;

	if (b->candidates)
		take_turns(b);

	check(gp_core_hint_begin(
		      b->core, &(struct gp_core_hint){ .client = client, .device = GP_ALL_DEVICES }, b->now),
	      "hint begin");
	settle(b);
	for (int i = 0; i < 20; i++) {
		uint32_t busy = i % 2 == 0;

		/* Busy, then idle again: when the request ends, offline gets the device back. */
		queue = busy ? online(b) : queue;
		check(gp_core_activity(b->core, queue, busy ? GP_ACTIVITY_BUSY : GP_ACTIVITY_IDLE, b->now),
		      "activity");
		settle(b);
		b->events++;
		if (b->has_holds && busy)
			hold_and_release(b);
		pass_time(b, MS / 20);
	}
	check(gp_core_hint_end(b->core, &(struct gp_core_hint){ .client = client, .device = GP_ALL_DEVICES },
			       b->now),
	      "hint end");
	settle(b);
	b->events += 2;
	pass_time(b, 5 * MS);
}

/* The one online client's queue, which has another handle each time. */
static void leave_and_come(struct bench *b)
{
	uint64_t queue = b->queue_of_one ? b->queue_of_one : 1;

	b->queue_of_one = (queue > b->queues ? queue : b->queues) + 1;
	check(gp_core_queue_remove(b->core, queue, b->now), "remove");
	settle(b);
	check(gp_core_queue_add(b->core, &(struct gp_core_queue){ .queue = b->queue_of_one, .client = 1 },
				b->now),
	      "add");
	settle(b);
	b->events += 2;
}

__attribute__((noinline)) static void measured(struct bench *b, uint64_t times)
{
	for (uint64_t i = 0; i < times; i++)
		(b->leaves ? leave_and_come : one_request)(b);
}

static void populate(struct bench *b)
{
	uint32_t yields = b->leaves ? GP_CAP_BACKGROUND : 0;

	check(gp_core_device_add(b->core, 0, GP_CAP_INTERRUPT | GP_CAP_BATCH | yields), "device");
	for (uint64_t id = 1; id <= b->queues; id++) {
		uint32_t is_online = b->leaves ? id == 1 : id % 10 == 1;
		struct gp_core_client c = { .id = id,
					    .client_class = is_online ? GP_CLASS_ONLINE : GP_CLASS_OFFLINE };

		check(gp_core_client_add(b->core, &c), "client");
		check(gp_core_queue_add(b->core, &(struct gp_core_queue){ .queue = id, .client = id }, 0),
		      "queue");
		check(gp_core_activity(b->core, id, is_online ? GP_ACTIVITY_IDLE : GP_ACTIVITY_BUSY, 0),
		      "activity");
	}
	settle(b);
}

static void hold_half(struct bench *b)
{
	b->has_holds = 1;
	for (uint64_t id = 2; id <= b->queues; id += 2)
		if (id % 10 != 1)
			hold(b, 1 + id % HOLDERS, id, GP_NO_LEASE);
	settle(b);
}

static void reserve_half(struct bench *b)
{
	check(gp_reserve_set(&b->reserve, (uint32_t)b->queues, 50, 50), "reserve");
	b->candidates = calloc(b->queues, sizeof(*b->candidates));
	check(b->candidates ? 0 : -1, "memory");
	for (uint64_t id = 1; id <= b->queues; id++)
		if (id % 10 != 1)
			b->candidates[b->ncandidates++] =
				(struct gp_candidate){ .queue = id, .user = id % USERS, .stoppable = 1 };
}

int main(int argc, char **argv)
{
	struct bench b = { .queues = argc > 1 ? strtoull(argv[1], NULL, 10) : 0 };
	const char *with = argc > 2 ? argv[2] : "";

	if (b.queues < 10 || b.queues % 10) {
		fprintf(stderr,
			"usage: core_cost QUEUES (a multiple of 10) [holds | reservation | leaving]\n");
		return 2;
	}
	b.core = gp_core_new(NULL);
	if (!b.core)
		return 1;
	gp_random_init(&b.random, 1, 0);
	b.leaves = strcmp(with, "leaving") == 0;
	populate(&b);
	if (strcmp(with, "holds") == 0)
		hold_half(&b);
	if (strcmp(with, "reservation") == 0)
		reserve_half(&b);
	(b.leaves ? leave_and_come : one_request)(&b); /* warm: tables have grown */
	b.events = 0;
	measured(&b, 20);
	printf("%llu\n", (unsigned long long)b.events);
	free(b.candidates);
	gp_core_free(b.core);
	return 0;
}
