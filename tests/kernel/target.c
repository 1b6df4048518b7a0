// SPDX-License-Identifier: MIT
/*
 * Not a test: a process for tests to act on.  It keeps its queues busy and does what it
 * is told, a line at a time:
 *
 *   target QUEUES [runtime]   says "ready ID:RING ..."; runtime: a debugger may come
 *   progress                  says how many dispatches each queue has ended
 *   update QUEUE PERCENT PRIORITY, create, destroy QUEUE, churn TIMES
 *   drop QUEUE                destroys it with what it has under way
 *   idle, busy                ends what is under way; goes on
 *   long MS [N]               as idle, and then N dispatches (1) of that length on each queue
 *   mute MS                   one, and nothing signals its end
 *   bare TIMES                stops and resumes all queues itself; says p50 and p99 of stops and resumes
 *   exec                      becomes this program again, with no queue of its own kept
 *   end                       ends what is under way and says "end BEGUN ENDED WRONG ERROR"
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dbg.h"
#include "kfd.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define MOST 64
#define MOST_TIMES 10000
/* Dispatches under way on each queue: work for 64 ms, if this process is not let run meanwhile. */
#define DEPTH 32
#define WORKGROUPS 8
#define WAVE_NS (2 * MS)

static struct kfd kfd;
static struct kfd_signal *signals;

static struct slot {
	struct kfd_queue queue;
	uint32_t used;
	uint64_t begun, ended;
} slots[MOST];

static uint64_t wrong; /* dispatches that ended more than once */
static int idle;

static struct kfd_signal *signal_of(struct slot *s, uint64_t i)
{
	return &signals[(size_t)(s - slots) * DEPTH + i % DEPTH];
}

static int add_queue(void)
{
	struct slot *s = slots;
	int r;

	while (s < slots + MOST && s->used)
		s++;
	if (s == slots + MOST)
		return -ENOSPC;
	r = kfd_queue_create(&kfd, &kfd.gpus[0], KFD_TYPE_AQL, 7, &s->queue);
	if (r < 0)
		return r;
	s->used = 1;
	s->begun = s->ended = 0;
	return (int)(s - slots);
}

static void collect(struct slot *s)
{
	while (s->ended < s->begun && signal_of(s, s->ended)->value <= 0) {
		wrong += signal_of(s, s->ended)->value < 0;
		s->ended++;
	}
}

static void feed(struct slot *s)
{
	while (!idle && s->begun - s->ended < DEPTH) {
		signal_of(s, s->begun)->value = 1;
		kfd_dispatch(&s->queue, WORKGROUPS, WAVE_NS, signal_of(s, s->begun));
		s->begun++;
	}
}

/* Whether there will be more to do without an order. */
static int work(void)
{
	int more = 0;

	for (struct slot *s = slots; s < slots + MOST; s++) {
		if (!s->used)
			continue;
		collect(s);
		feed(s);
		more |= s->ended < s->begun;
	}
	return more;
}

static int settle(struct slot *s, uint64_t timeout_ns)
{
	uint64_t end = kfd_now() + timeout_ns;

	for (collect(s); s->ended < s->begun; collect(s)) {
		if (kfd_now() > end)
			return -ETIMEDOUT;
		kfd_sleep(MS / 4);
	}
	return 0;
}

static int settle_all(void)
{
	int r = 0;

	idle = 1;
	for (struct slot *s = slots; s < slots + MOST; s++)
		if (s->used && r == 0)
			r = settle(s, 60 * SECOND);
	return r;
}

static int run_mute(uint64_t ns)
{
	int r = settle_all();

	for (struct slot *s = slots; s < slots + MOST && r == 0; s++)
		if (s->used)
			kfd_dispatch(&s->queue, 1, ns, NULL);
	return r;
}

static int run_long(uint64_t ns, uint32_t n)
{
	int r = settle_all();

	for (struct slot *s = slots; s < slots + MOST && r == 0; s++) {
		for (uint32_t i = 0; s->used && i < n && i < DEPTH; i++) {
			signal_of(s, s->begun)->value = 1;
			kfd_dispatch(&s->queue, 1, ns, signal_of(s, s->begun));
			s->begun++;
		}
	}
	return r;
}

static struct slot *slot_by_id(uint32_t id)
{
	for (struct slot *s = slots; s < slots + MOST; s++)
		if (s->used && s->queue.id == id)
			return s;
	return NULL;
}

static int destroy(uint32_t id)
{
	struct slot *s = slot_by_id(id);
	int r = s ? settle(s, 60 * SECOND) : -ENOENT;

	if (r == 0)
		r = kfd_queue_destroy(&s->queue);
	if (r == 0)
		s->used = 0;
	return r;
}

static int drop(uint32_t id)
{
	struct slot *s = slot_by_id(id);
	int r = s ? kfd_queue_destroy(&s->queue) : -ENOENT;

	if (r == 0)
		s->used = 0;
	return r;
}

static int churn(uint32_t times)
{
	int r = 0;

	for (uint32_t i = 0; i < times && r >= 0; i++) {
		r = add_queue();
		if (r < 0)
			return r;
		feed(&slots[r]);
		r = destroy(slots[r].queue.id);
		work();
	}
	return r;
}

static int update(uint32_t id, uint32_t percent, uint32_t priority)
{
	struct slot *s = slot_by_id(id);

	return s ? kfd_queue_update(&s->queue, percent, priority) : -ENOENT;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint64_t update_all(uint32_t percent)
{
	uint64_t begin = kfd_now();

	for (struct slot *s = slots; s < slots + MOST; s++)
		if (s->used)
			(void)kfd_queue_update(&s->queue, percent, 7);
	return kfd_now() - begin;
}

static void say_bare(uint32_t times)
{
	static uint64_t stops[MOST_TIMES], resumes[MOST_TIMES];
	uint32_t n = times < MOST_TIMES ? times : MOST_TIMES;

	for (uint32_t i = 0; i < n; i++) {
		stops[i] = update_all(0);
		resumes[i] = update_all(100);
		work();
	}
	qsort(stops, n, sizeof(*stops), by_value);
	qsort(resumes, n, sizeof(*resumes), by_value);
	printf("bare %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", stops[n / 2],
	       stops[(n * 99 - 1) / 100], resumes[n / 2], resumes[(n * 99 - 1) / 100]);
}

static void say_progress(void)
{
	printf("progress");
	for (struct slot *s = slots; s < slots + MOST; s++) {
		if (!s->used)
			continue;
		collect(s);
		printf(" %u:%" PRIu64, s->queue.id, s->ended);
	}
	printf("\n");
}

static void say_end(void)
{
	uint64_t begun = 0, ended = 0;
	int r = settle_all();

	for (struct slot *s = slots; s < slots + MOST; s++) {
		begun += s->begun;
		ended += s->ended;
	}
	printf("end %" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n", begun, ended, wrong, r);
}

/* 1: that was the last. */
static int obey(char *line, char **argv)
{
	uint32_t a = 0, b = 0, c = 0;
	char word[16] = "";

	if (sscanf(line, "%15s %" SCNu32 " %" SCNu32 " %" SCNu32, word, &a, &b, &c) < 1)
		return 0;
	if (!strcmp(word, "progress"))
		say_progress();
	else if (!strcmp(word, "update"))
		printf("update %d\n", update(a, b, c));
	else if (!strcmp(word, "create"))
		printf("create %d\n", add_queue());
	else if (!strcmp(word, "destroy"))
		printf("destroy %d\n", destroy(a));
	else if (!strcmp(word, "drop"))
		printf("drop %d\n", drop(a));
	else if (!strcmp(word, "churn"))
		printf("churn %d\n", churn(a));
	else if (!strcmp(word, "idle"))
		printf("idle %d\n", settle_all());
	else if (!strcmp(word, "long"))
		printf("long %d\n", run_long(a * MS, b ? b : 1));
	else if (!strcmp(word, "mute"))
		printf("mute %d\n", run_mute(a * MS));
	else if (!strcmp(word, "busy"))
		printf("busy %d\n", idle = 0);
	else if (!strcmp(word, "bare"))
		say_bare(a);
	else if (!strcmp(word, "exec"))
		execv("/proc/self/exe", argv);
	else if (!strcmp(word, "end"))
		say_end();
	else
		printf("unknown\n");
	fflush(stdout);
	return !strcmp(word, "end");
}

static int prepare(int queues, int with_runtime)
{
	struct kfd_mem mem;
	int r = kfd_open(&kfd);

	if (r == 0)
		r = kfd_alloc(&kfd, &kfd.gpus[0], (uint64_t)MOST * DEPTH * sizeof(*signals), &mem);
	if (r == 0 && with_runtime)
		r = dbg_runtime(&kfd, KFD_RUNTIME_ENABLE);
	if (r < 0)
		return r;
	signals = mem.addr;
	for (int i = 0; i < queues && r >= 0; i++)
		r = add_queue();
	return r;
}

int main(int argc, char **argv)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	char line[256];
	int r = prepare(argc > 1 ? atoi(argv[1]) : 1, argc > 2);

	if (r < 0) {
		printf("failed %d\n", r);
		return 1;
	}
	printf("ready");
	for (struct slot *s = slots; s < slots + MOST; s++)
		if (s->used)
			printf(" %u:%#" PRIx64, s->queue.id, (uint64_t)(uintptr_t)s->queue.ring.addr);
	printf("\n");
	fflush(stdout);
	setvbuf(stdin, NULL, _IONBF, 0);
	for (;;) {
		if (poll(&in, 1, work() ? 1 : -1) == 1 &&
		    (!fgets(line, sizeof(line), stdin) || obey(line, argv)))
			return 0;
	}
}
