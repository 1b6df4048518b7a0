// SPDX-License-Identifier: MIT
/* bed: timeout=240 memory=3G param=cus=8 */
/*
 * A thousand preemptions at random, over 24 queues in 4 processes, by what a stock driver
 * has for one's own process: UPDATE_QUEUE with 0 percent.  Every dispatch ends exactly
 * once, and every wave that was saved came back.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define PROCESSES 4
#define QUEUES 6
#define DISPATCHES 12
#define PREEMPTIONS 250 /* of each process */

/* Of the device, since the machine started: others have used it before. */
static const char *const counters[] = { "dispatches",     "cycles",       "bytes_saved",  "waves_saved",
					"waves_restored", "bad_restores", "bad_addresses" };
#define COUNTERS (sizeof(counters) / sizeof(counters[0]))

static int64_t before[COUNTERS];
static struct kfd kfd;
static struct kfd_queue queues[QUEUES];
static struct kfd_signal *signals; /* DISPATCHES for each queue */

static int prepare(void)
{
	struct kfd_mem mem;
	int r = kfd_open(&kfd);

	if (r == 0)
		r = kfd_alloc(&kfd, &kfd.gpus[0], QUEUES * DISPATCHES * sizeof(*signals), &mem);
	for (int i = 0; i < QUEUES && r == 0; i++)
		r = kfd_queue_create(&kfd, &kfd.gpus[0], KFD_TYPE_AQL, 7, &queues[i]);
	signals = r == 0 ? mem.addr : NULL;
	return r;
}

static void fill_queues(void)
{
	for (int i = 0; i < QUEUES * DISPATCHES; i++) {
		signals[i].value = 1;
		kfd_dispatch(&queues[i / DISPATCHES], 1 + (unsigned int)rand() % 64,
			     (1 + (unsigned int)rand() % 8) * MS, &signals[i]);
	}
}

static int preempt(struct kfd_queue *q)
{
	int r = kfd_queue_update(q, 0, 7);

	if (r == 0 && rand() % 2)
		kfd_sleep((unsigned int)rand() % 1000 * 1000);
	return r < 0 ? r : kfd_queue_update(q, 100, 7);
}

/* How many dispatches did not end exactly once. */
static int wrong_ends(void)
{
	int wrong = 0;

	for (int i = 0; i < QUEUES * DISPATCHES; i++)
		wrong += kfd_wait(&signals[i], 60 * SECOND) != 0 || signals[i].value != 0;
	return wrong;
}

/* The exit status says what went wrong. */
static int process(unsigned int seed)
{
	srand(seed);
	if (prepare() < 0)
		return 1;
	fill_queues();
	for (int i = 0; i < PREEMPTIONS; i++)
		if (preempt(&queues[rand() % QUEUES]) < 0)
			return 2;
	if (wrong_ends())
		return 3;
	for (int i = 0; i < QUEUES; i++)
		if (kfd_queue_destroy(&queues[i]) < 0)
			return 4;
	return 0;
}

static void begin_to_count(void)
{
	for (size_t i = 0; i < COUNTERS; i++)
		before[i] = kfd_stat(0, counters[i]);
}

static long long counted(const char *name)
{
	for (size_t i = 0; i < COUNTERS; i++)
		if (strcmp(counters[i], name) == 0)
			return kfd_stat(0, name) - before[i];
	return -1;
}

int main(void)
{
	pid_t children[PROCESSES];
	int status;

	begin_to_count();
	for (unsigned int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		if (children[i] == 0)
			_exit(process(i + 1));
	}
	for (int i = 0; i < PROCESSES; i++) {
		waitpid(children[i], &status, 0);
		ok(status == 0, "process %d: every dispatch of its queues ended exactly once (status %d)", i,
		   status >> 8);
	}
	ok(counted("dispatches") == PROCESSES * QUEUES * DISPATCHES, "no dispatch was begun twice");
	ok(counted("cycles") >= PROCESSES * PREEMPTIONS,
	   "there were a thousand preemptions (%lld device cycles)", counted("cycles"));
	ok(counted("bytes_saved") > 0, "waves ran when they were preempted (%lld bytes saved)",
	   counted("bytes_saved"));
	ok(counted("waves_saved") == counted("waves_restored"), "every wave that was saved came back (%lld)",
	   counted("waves_restored"));
	ok(counted("bad_restores") == 0, "every save area held what was put there");
	ok(counted("bad_addresses") == 0, "no address was mixed up");
	ok(kfd_stat(0, "mapped") == 0, "nothing is left mapped");
	return tap_done();
}
