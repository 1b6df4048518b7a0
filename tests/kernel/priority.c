// SPDX-License-Identifier: MIT
/* bed: timeout=120 param=cus=4 */
/*
 * Queue priority, where queues want more wave slots than there are: what comes free goes to the highest, and
 * UPDATE_QUEUE changes who that is.  When a dispatch began and ended is the model's time, in its signal, so a
 * busy host changes nothing.
 */
#include <string.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define FULL 32u /* workgroups, of 4 waves, that the four compute units hold */
#define ROUND (50 * MS)

static struct kfd kfd;
static struct kfd_queue queues[3];
static struct kfd_signal *signals;

static int begin(void)
{
	struct kfd_mem mem;
	int r = kfd_open(&kfd);

	if (r == 0)
		r = kfd_alloc(&kfd, &kfd.gpus[0], 4096, &mem);
	for (int i = 0; i < 3 && r == 0; i++)
		r = kfd_queue_create(&kfd, &kfd.gpus[0], KFD_TYPE_AQL, 0, &queues[i]);
	if (r == 0)
		signals = mem.addr;
	return ok(r == 0, "three queues are created (%d)", r);
}

/* Gives each queue work for so many rounds of the whole device, queue 0 first. */
static void give_work(uint32_t rounds)
{
	int64_t begun = kfd_stat(0, "dispatches");

	memset(signals, 0, 3 * sizeof(*signals));
	for (int i = 0; i < 3; i++) {
		signals[i].value = 1;
		kfd_dispatch(&queues[i], FULL * rounds, ROUND, &signals[i]);
		kfd_wait_stat(0, "dispatches", begun + i + 1, KFD_SOON);
	}
}

static int all_end(void)
{
	return kfd_wait(&signals[0], 60 * SECOND) == 0 && kfd_wait(&signals[1], 60 * SECOND) == 0 &&
	       kfd_wait(&signals[2], 60 * SECOND) == 0;
}

static uint64_t length(int i)
{
	return (signals[i].end_ts - signals[i].start_ts) * 10;
}

static int set_priorities(uint32_t a, uint32_t b, uint32_t c)
{
	int r = kfd_queue_update(&queues[0], 100, a);

	if (r == 0)
		r = kfd_queue_update(&queues[1], 100, b);
	return r < 0 ? r : kfd_queue_update(&queues[2], 100, c);
}

static void equals_share(void)
{
	ok(set_priorities(7, 7, 7) == 0, "three queues have the same priority");
	give_work(6);
	ok(all_end(), "their dispatches end");
	for (int i = 0; i < 3; i++)
		ok(length(i) >= 12 * ROUND, "queue %d had to share: its 6 rounds took %llu", i,
		   (unsigned long long)(length(i) / ROUND));
}

static void the_highest_is_first(void)
{
	ok(set_priorities(0, 7, 11) == 0, "the queue that comes last has the highest priority");
	give_work(6);
	ok(all_end(), "the dispatches end");
	ok(signals[2].end_ts < signals[1].end_ts && signals[1].end_ts < signals[0].end_ts,
	   "the highest first, the lowest last");
	ok(length(2) <= 7 * ROUND,
	   "the highest waited for no more than the waves that ran when it came: %llu rounds for its 6",
	   (unsigned long long)(length(2) / ROUND));
}

/* By how many rounds queue a ended before queue b. */
static long long rounds_before(int a, int b)
{
	return (long long)(signals[b].end_ts - signals[a].end_ts) * 10 / (long long)ROUND;
}

/* Equals end within two rounds of each other; of these one is raised above the others, or lowered. */
static void a_change_takes_effect(uint32_t others, uint32_t changed, int who)
{
	ok(set_priorities(others, others, others) == 0, "all have priority %u", others);
	give_work(10);
	ok(kfd_queue_update(&queues[who], 100, changed) == 0 && signals[who].value == 1,
	   "queue %d gets %u while it works", who, changed);
	ok(all_end(), "the dispatches end");
	for (int i = 0; i < 3; i++) {
		int first = changed > others ? who : i, second = changed > others ? i : who;

		if (i != who)
			ok(rounds_before(first, second) >= 5,
			   "queue %d ends well before queue %d: %lld rounds", first, second,
			   rounds_before(first, second));
	}
}

int main(void)
{
	if (!begin())
		return tap_done();
	equals_share();
	the_highest_is_first();
	a_change_takes_effect(0, 15, 2);
	a_change_takes_effect(7, 0, 0);
	for (int i = 0; i < 3; i++)
		ok(kfd_queue_destroy(&queues[i]) == 0, "queue %d is destroyed", i);
	return tap_done();
}
