// SPDX-License-Identifier: MIT
/* bed: timeout=120 param=cus=4 */
/*
 * SET_CU_MASK: a queue with fewer compute units takes longer, by exactly as much.  How long a dispatch took
 * is the model's time, in its signal, so a busy host changes nothing.
 */
#include <errno.h>
#include <string.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define CUS 4 /* of an XCC, as above; each has room for 8 workgroups of 4 waves */
#define ROUND (10 * MS)

static struct kfd kfd;
static struct kfd_gpu *gpu;
static struct kfd_queue queue, other;
static struct kfd_signal *signals;
static uint32_t cus;

static int begin(void)
{
	struct kfd_mem mem;
	int r = kfd_open(&kfd);

	gpu = &kfd.gpus[0];
	if (r == 0)
		r = kfd_alloc(&kfd, gpu, 4096, &mem);
	if (r == 0)
		r = kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &queue);
	if (r == 0)
		r = kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &other);
	if (r < 0)
		return ok(0, "queues are created (%d)", r);
	signals = mem.addr;
	cus = CUS * (gpu->num_xcc ? gpu->num_xcc : 1);
	return ok(1, "queues are created on %u compute units", cus);
}

static int set_mask(uint32_t first, uint32_t n)
{
	uint32_t mask = (n < 32 ? (1u << n) - 1 : ~0u) << first;
	struct kfd_set_cu_mask_args args = { .queue_id = queue.id, .nbits = 32, .mask = (uintptr_t)&mask };

	return kfd_ioctl(&kfd, KFD_IOC_SET_CU_MASK, &args);
}

/* Work for so many rounds of the whole device. */
static void give_work(struct kfd_queue *q, struct kfd_signal *s, uint32_t rounds, uint64_t round)
{
	int64_t begun = kfd_stat(0, "dispatches");

	memset(s, 0, sizeof(*s));
	s->value = 1;
	kfd_dispatch(q, 8 * cus * rounds, round, s);
	kfd_wait_stat(0, "dispatches", begun + 1, KFD_SOON);
}

static uint64_t length(const struct kfd_signal *s)
{
	return (s->end_ts - s->start_ts) * 10;
}

/* How many rounds the work of four takes; 0: it does not end. */
static unsigned int rounds_of_four(void)
{
	give_work(&queue, &signals[0], 4, ROUND);
	if (kfd_wait(&signals[0], KFD_SOON) < 0 || length(&signals[0]) % ROUND)
		return 0;
	return (unsigned int)(length(&signals[0]) / ROUND);
}

static void takes(unsigned int rounds, int r, const char *with)
{
	unsigned int n = r == 0 ? rounds_of_four() : 0;

	ok(n == rounds, "with %s a dispatch of 4 rounds takes %u (%u, %d)", with, rounds, n, r);
}

static void time_follows_the_mask(void)
{
	takes(4, 0, "no mask");
	takes(8, set_mask(0, cus / 2), "half of the units");
	takes(8, set_mask(cus / 2, cus / 2), "the other half");
	takes(4 * cus, set_mask(cus - 1, 1), "one unit");
	ok(kfd_queue_update(&queue, 0, 7) == 0, "the queue is stopped");
	takes(4 * cus, kfd_queue_update(&queue, 100, 7), "one unit, after a stop and a start,");
	takes(4, set_mask(0, 32), "all of them");
}

static void a_mask_leaves_room_for_others(void)
{
	ok(set_mask(0, cus / 2) == 0, "one queue has half of the units");
	give_work(&queue, &signals[0], 20, 50 * MS);
	give_work(&other, &signals[1], 1, 50 * MS);
	ok(kfd_wait(&signals[1], KFD_SOON) == 0 && signals[0].value == 1,
	   "another works while it does, on the rest");
	ok(length(&signals[1]) == 2 * 50 * MS, "at once, in two rounds of half the device (%llu ms)",
	   (unsigned long long)(length(&signals[1]) / MS));
	ok(set_mask(0, 32) == 0 && signals[0].value == 1, "the mask is lifted while the first still works");
	ok(kfd_wait(&signals[0], KFD_SOON) == 0, "it ends");
	ok(length(&signals[0]) < 38 * 50 * MS, "sooner than the 40 rounds that were to come (%llu)",
	   (unsigned long long)(length(&signals[0]) / (50 * MS)));
}

static void a_mask_of_nothing_stops_the_queue(void)
{
	ok(set_mask(0, 0) == 0, "a mask of no unit is taken");
	give_work(&queue, &signals[0], 1, ROUND);
	ok(kfd_wait(&signals[0], 300 * MS) == -ETIMEDOUT, "nothing runs with it");
	ok(set_mask(0, 32) == 0 && kfd_wait(&signals[0], KFD_SOON) == 0, "until there is another");
}

int main(void)
{
	if (!begin())
		return tap_done();
	time_follows_the_mask();
	a_mask_leaves_room_for_others();
	a_mask_of_nothing_stops_the_queue();
	ok(kfd_queue_destroy(&queue) == 0 && kfd_queue_destroy(&other) == 0, "the queues are destroyed");
	return tap_done();
}
