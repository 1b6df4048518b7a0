// SPDX-License-Identifier: MIT
/*
 * Compute queues of PM4 packets: each packet does what it says, once, whatever happens to the queue.
 *
 * bed: timeout=120 param=cus=4
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define WORDS 0x40000u
#define CLOCK_NS 10 /* of the GPU's clock, 100 MHz */

static struct kfd kfd;
static struct kfd_gpu *gpu;
static volatile uint32_t *words, *packets;

static int start(void)
{
	struct kfd_mem memory, indirect;

	if (!ok(kfd_open(&kfd) == 0 && kfd.ngpus > 0, "the driver opens and has a GPU"))
		return -ENODEV;
	gpu = &kfd.gpus[0];
	if (!ok(kfd_alloc(&kfd, gpu, WORDS * 4, &memory) == 0 && kfd_alloc(&kfd, gpu, 0x4000, &indirect) == 0,
		"memory is allocated and mapped"))
		return -ENOMEM;
	words = memory.addr;
	packets = indirect.addr;
	return 0;
}

/* Everything put so far was read. */
static int settles(struct kfd_queue *q)
{
	uint32_t want = (uint32_t)(q->written % (q->ring_size / 4));

	return kfd_wait_value((volatile uint32_t *)q->rptr, want, KFD_SOON) == 0;
}

static void a_write_arrives(struct kfd_queue *q)
{
	kfd_put(q, kfd_pm4_write(&words[1], 0x12345678));
	ok(kfd_wait_value(&words[1], 0x12345678, KFD_SOON) == 0, "WRITE_DATA writes a dword");
	ok(words[0] == 0 && words[2] == 0, "and no other");
	ok(settles(q), "the read pointer follows");
}

static void a_write_of_many_dwords_arrives(struct kfd_queue *q)
{
	struct kfd_packet p = kfd_pm4_write(&words[10], 1);

	p.n = 12;
	p.dwords[0] += 7 << 16;
	for (uint32_t i = 0; i < 8; i++)
		p.dwords[4 + i] = 100 + i;
	kfd_put(q, p);
	ok(settles(q) && words[10] == 100 && words[17] == 107 && words[18] == 0,
	   "WRITE_DATA writes many dwords");
}

static void nops_do_nothing(struct kfd_queue *q)
{
	struct kfd_packet nop = { .n = 6, .dwords = { 3u << 30 | 4 << 16 | 0x10 << 8 } };
	struct kfd_packet one = { .n = 1, .dwords = { 0xffff1000 } },
			  predicated = { .n = 1, .dwords = { 0xffff1002 } },
			  type2 = { .n = 1, .dwords = { 2u << 30 } };
	struct kfd_packet acquire = { .n = 7, .dwords = { 3u << 30 | 5 << 16 | 0x58 << 8 } };

	kfd_put(q, nop);
	kfd_put(q, one);
	kfd_put(q, predicated);
	kfd_put(q, type2);
	kfd_put(q, acquire);
	kfd_put(q, kfd_pm4_write(&words[20], 20));
	ok(settles(q) && words[20] == 20, "NOPs of every kind and ACQUIRE_MEM are passed over");
}

static void a_release_writes(struct kfd_queue *q)
{
	volatile uint64_t *wide = (volatile uint64_t *)&words[30], before = kfd_now() / CLOCK_NS;
	struct kfd_packet narrow = kfd_pm4_release(&words[40], 0x1111222233334444, 0);
	struct kfd_packet clock = kfd_pm4_release(&words[42], 0, 0);

	narrow.dwords[2] = 1u << 29;
	clock.dwords[2] = 3u << 29;
	kfd_put(q, kfd_pm4_release(wide, 0x1111222233334444, 0));
	kfd_put(q, narrow);
	kfd_put(q, clock);
	ok(settles(q), "RELEASE_MEM is taken");
	ok(*wide == 0x1111222233334444, "it writes 64 bits");
	ok(words[40] == 0x33334444 && words[41] == 0, "or 32");
	ok(*(volatile uint64_t *)&words[42] >= before &&
		   *(volatile uint64_t *)&words[42] <= kfd_now() / CLOCK_NS,
	   "or the time");
}

static void a_release_interrupts(struct kfd_queue *q)
{
	int64_t interrupts = kfd_stat(0, "interrupts");

	kfd_put(q, kfd_pm4_release(&words[50], 1, 0));
	ok(settles(q) && kfd_stat(0, "interrupts") == interrupts, "RELEASE_MEM does not interrupt unasked");
	kfd_put(q, kfd_pm4_release(&words[50], 2, 77));
	ok(settles(q) && kfd_stat(0, "interrupts") == interrupts + 1, "and does if it is asked to");
}

static uint32_t put_indirect(uint32_t at, struct kfd_packet p)
{
	for (uint32_t i = 0; i < p.n; i++)
		packets[at + i] = p.dwords[i];
	return at + p.n;
}

static void an_indirect_buffer_is_read(struct kfd_queue *q)
{
	uint32_t n = 0, inner;

	for (uint32_t i = 0; i < 50; i++)
		n = put_indirect(n, kfd_pm4_write(&words[100 + i], i + 1));
	kfd_put(q, kfd_pm4_indirect((void *)packets, n));
	ok(settles(q) && words[100] == 1 && words[149] == 50, "INDIRECT_BUFFER: the packets there are read");
	inner = put_indirect(n, kfd_pm4_indirect((void *)packets, n));
	memset((void *)&words[100], 0, 200);
	kfd_put(q, kfd_pm4_indirect((void *)&packets[n], inner - n));
	ok(settles(q) && words[149] == 50, "one may lead to another");
}

static void a_buffer_that_calls_itself_stops_its_queue(void)
{
	struct kfd_queue q;
	uint32_t n = put_indirect(0, kfd_pm4_indirect((void *)packets, 4));

	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_COMPUTE, 7, &q) == 0, "a queue is created");
	kfd_put(&q, kfd_pm4_indirect((void *)packets, n));
	kfd_put(&q, kfd_pm4_write(&words[151], 1));
	ok(kfd_wait_value(&words[151], 1, 100 * MS) == -ETIMEDOUT,
	   "an indirect buffer that calls itself stops it");
	ok(kfd_queue_destroy(&q) == 0, "and it can be destroyed");
}

static void the_ring_wraps(struct kfd_queue *q)
{
	int64_t before = kfd_stat(0, "pm4_packets");
	uint32_t n = 10000, wrong = 0, i;
	int r = 0;

	for (i = 0; i < n && r == 0; i++)
		r = kfd_put(q, kfd_pm4_write(&words[1000 + i], i ^ 0x5a5a));
	ok(r == 0 && settles(q), "%u packets go through a ring of %u", n, q->ring_size / 20);
	for (i = 0; i < n; i++)
		wrong += words[1000 + i] != (i ^ 0x5a5a);
	ok(wrong == 0, "each has written its word (%u have not)", wrong);
	ok(kfd_stat(0, "pm4_packets") == before + n, "and each was taken once");
}

struct writer {
	struct kfd_queue *q;
	uint32_t n;
	int r;
};

static void *write_words(void *arg)
{
	struct writer *w = arg;

	for (uint32_t i = 0; i < w->n && w->r == 0; i++)
		w->r = kfd_put(w->q, kfd_pm4_write(&words[20000 + i], i + 1));
	return NULL;
}

static void stops_lose_and_repeat_nothing(struct kfd_queue *q)
{
	struct writer w = { .q = q, .n = 20000 };
	int64_t before = kfd_stat(0, "pm4_packets");
	uint32_t stops = 0, wrong = 0;
	pthread_t thread;
	int r = 0;

	pthread_create(&thread, NULL, write_words, &w);
	while (r == 0 && words[20000 + w.n - 1] != w.n && stops < 1000) {
		r = kfd_queue_update(q, 0, 7);
		kfd_sleep(5 * MS);
		if (r == 0)
			r = kfd_queue_update(q, 100, 7);
		kfd_sleep(2 * MS);
		stops++;
	}
	pthread_join(thread, NULL);
	ok(r == 0 && w.r == 0 && settles(q), "%u packets go through while the queue is stopped %u times", w.n,
	   stops);
	ok(stops >= 1, "which was in their midst"); /* on a busy host they may be through after the first */
	for (uint32_t i = 0; i < w.n; i++)
		wrong += words[20000 + i] != i + 1;
	ok(wrong == 0, "each has written its word (%u have not)", wrong);
	ok(kfd_stat(0, "pm4_packets") == before + w.n, "and each was taken once");
}

static void a_stopped_queue_takes_nothing(struct kfd_queue *q)
{
	words[60] = 0;
	ok(kfd_queue_update(q, 0, 7) == 0, "the queue is stopped");
	kfd_put(q, kfd_pm4_write(&words[60], 1));
	ok(kfd_wait_value(&words[60], 1, 100 * MS) == -ETIMEDOUT, "a packet waits while it is");
	ok(kfd_queue_update(q, 100, 7) == 0 && kfd_wait_value(&words[60], 1, KFD_SOON) == 0,
	   "and is taken when it is started, with no ring of the doorbell");
}

/* What: a sentence. The other queue q goes on. */
static void it_stops_its_queue_alone(struct kfd_queue *q, struct kfd_packet bad, const char *what)
{
	int64_t packets_before;
	struct kfd_queue broken;

	words[70] = words[71] = words[72] = 0;
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_COMPUTE, 7, &broken) == 0, "a queue is created");
	packets_before = kfd_stat(0, "pm4_packets");
	kfd_put(&broken, kfd_pm4_write(&words[70], 1));
	kfd_put(&broken, bad);
	kfd_put(&broken, kfd_pm4_write(&words[71], 1));
	ok(kfd_wait_value(&words[70], 1, KFD_SOON) == 0, "the packet before %s is taken", what);
	ok(kfd_wait_value(&words[71], 1, 100 * MS) == -ETIMEDOUT, "the one after is not");
	ok(kfd_queue_update(&broken, 0, 7) == 0 && kfd_queue_update(&broken, 100, 7) == 0,
	   "the queue is stopped and started");
	kfd_put(q, kfd_pm4_write(&words[72], 1));
	ok(kfd_wait_value(&words[72], 1, KFD_SOON) == 0, "another queue goes on");
	ok(words[71] == 0 && kfd_stat(0, "pm4_packets") == packets_before + 2, "nothing was taken twice");
	ok(kfd_queue_destroy(&broken) == 0, "the broken one is destroyed");
}

static void bad_packets(struct kfd_queue *q)
{
	int64_t bad = kfd_stat(0, "bad_addresses");

	it_stops_its_queue_alone(q, (struct kfd_packet){ .n = 1, .dwords = { 0xdeadbeef } }, "garbage");
	it_stops_its_queue_alone(q, (struct kfd_packet){ .n = 2, .dwords = { 3u << 30 | 0x99 << 8 } },
				 "an opcode that is none");
	ok(kfd_stat(0, "bad_addresses") == bad, "none of them had to do with addresses");
}

/* Dispatches */

static struct kfd_packet set_register(uint32_t reg, uint32_t value)
{
	return (struct kfd_packet){ .n = 3, .dwords = { 3u << 30 | 1 << 16 | 0x76 << 8, reg, value } };
}

/* Workgroups of four waves. */
static struct kfd_packet set_threads(void)
{
	struct kfd_packet threads = set_register(0x207, 256);

	threads.n = 5;
	threads.dwords[0] += 2 << 16;
	threads.dwords[3] = threads.dwords[4] = 1;
	return threads;
}

/* Of so many workgroups, whose waves take so long. */
static void put_dispatch(struct kfd_queue *q, uint32_t workgroups, uint32_t wave_ns)
{
	struct kfd_packet dispatch = { .n = 5,
				       .dwords = { 3u << 30 | 3 << 16 | 0x15 << 8, workgroups, 1, 1, 1 } };

	kfd_put(q, set_threads());
	kfd_put(q, set_register(0x24f, wave_ns));
	kfd_put(q, dispatch);
}

static struct kfd_packet wait_for(volatile uint32_t *at, uint32_t value)
{
	return (struct kfd_packet){ .n = 7,
				    .dwords = { 3u << 30 | 5 << 16 | 0x3c << 8, 1 << 4 | 3,
						(uint32_t)(uintptr_t)at, (uint32_t)((uintptr_t)at >> 32),
						value, ~0u, 4 } };
}

static void a_dispatch_takes_its_time(struct kfd_queue *q)
{
	struct kfd_packet flush = { .n = 2, .dwords = { 3u << 30 | 0x46 << 8, 7 | 4 << 8 } };
	struct kfd_packet before = kfd_pm4_release(&words[200], 0, 0), after;
	volatile uint64_t *times = (volatile uint64_t *)&words[200];
	int64_t dispatches = kfd_stat(0, "dispatches");

	before.dwords[2] = 3u << 29;
	after = before;
	after.dwords[3] += 8;
	kfd_put(q, before);
	put_dispatch(q, 1, 50 * MS);
	kfd_put(q, flush);
	kfd_put(q, after);
	ok(settles(q) && kfd_stat(0, "dispatches") == dispatches + 1, "a dispatch is taken");
	ok(times[1] - times[0] >= 50 * MS / CLOCK_NS, "what is behind it waits until its waves have ended");
}

static void a_dispatch_is_saved_and_restored(struct kfd_queue *q)
{
	int64_t dispatches = kfd_stat(0, "dispatches"), saved = kfd_stat(0, "waves_saved");
	int64_t restored = kfd_stat(0, "waves_restored");
	int r = 0;

	words[210] = 0;
	put_dispatch(q, 8, 2000 * MS);
	kfd_put(q, kfd_pm4_write(&words[210], 1));
	ok(kfd_wait_stat(0, "dispatches", dispatches + 1, KFD_SOON) == 0, "a long dispatch begins");
	for (int i = 0; i < 5; i++) {
		r |= kfd_queue_update(q, 0, 7);
		kfd_sleep(20 * MS);
		r |= kfd_queue_update(q, 100, 7);
		kfd_sleep(20 * MS);
	}
	ok(r == 0 && kfd_stat(0, "waves_saved") - saved == 5 * 32,
	   "stopped five times, its 32 waves are saved");
	ok(settles(q) && words[210] == 1, "it ends, and what is behind it is done");
	ok(kfd_stat(0, "waves_restored") - restored == 5 * 32, "as many were restored");
	ok(kfd_stat(0, "dispatches") == dispatches + 1, "it was dispatched once");
}

static void a_wait_waits(struct kfd_queue *q)
{
	words[220] = words[221] = 0;
	kfd_put(q, wait_for(&words[220], 7));
	kfd_put(q, kfd_pm4_write(&words[221], 1));
	ok(kfd_wait_value(&words[221], 1, 100 * MS) == -ETIMEDOUT, "WAIT_REG_MEM waits");
	ok(kfd_queue_update(q, 0, 7) == 0 && kfd_queue_update(q, 100, 7) == 0, "it is stopped and started");
	words[220] = 7;
	ok(kfd_wait_value(&words[221], 1, KFD_SOON) == 0, "and goes on when the value is there");
}

static void a_dispatch_in_an_indirect_buffer(struct kfd_queue *q)
{
	struct kfd_packet dispatch = { .n = 5, .dwords = { 3u << 30 | 3 << 16 | 0x15 << 8, 1, 1, 1, 1 } };
	int64_t dispatches = kfd_stat(0, "dispatches"), taken = kfd_stat(0, "pm4_packets");
	uint32_t n = put_indirect(0, set_register(0x24f, 20 * MS));
	int r = 0;

	for (uint32_t i = 0; i < 10; i++) {
		n = put_indirect(n, dispatch);
		n = put_indirect(n, kfd_pm4_write(&words[230 + i], i + 1));
	}
	kfd_put(q, kfd_pm4_indirect((void *)packets, n));
	for (uint32_t i = 0; i < 20 && words[239] != 10; i++) {
		r |= kfd_queue_update(q, 0, 7);
		r |= kfd_queue_update(q, 100, 7);
		kfd_sleep(10 * MS);
	}
	ok(r == 0 && settles(q) && words[239] == 10,
	   "ten dispatches in an indirect buffer, stopped meanwhile");
	ok(kfd_stat(0, "dispatches") == dispatches + 10, "each was dispatched once");
	ok(kfd_stat(0, "pm4_packets") == taken + 22, "and each packet taken once");
}

/* A buffer that leads to the words up to this one as often as there is room: minutes, if done at once. */
static void much_work_keeps_nobody_waiting(struct kfd_queue *q, uint32_t end)
{
	struct kfd_queue busy;
	uint64_t begun;
	uint32_t n = 0, inner = WORDS / 2;
	int r = 0;

	while (n + 4 <= 0x1000)
		n = put_indirect(n, kfd_pm4_indirect((void *)&words[inner], end - inner));
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_COMPUTE, 7, &busy) == 0, "a queue is created");
	kfd_put(&busy, kfd_pm4_indirect((void *)packets, n));
	kfd_sleep(50 * MS);
	words[240] = 0;
	begun = kfd_gpu_now(0);
	kfd_put(q, kfd_pm4_write(&words[240], 1));
	ok(kfd_wait_value(&words[240], 1, KFD_SOON) == 0, "another queue goes on");
	for (int i = 0; i < 5; i++)
		r |= kfd_queue_update(&busy, i % 2 ? 100 : 0, 7);
	ok(r == 0 && kfd_gpu_now(0) - begun < 5 * SECOND, "the driver's packets are read");
	ok(*busy.rptr == 0, "while the first packet is not done");
	ok(kfd_queue_destroy(&busy) == 0 && kfd_stat(0, "resets") == 0, "and it can be destroyed");
}

static uint32_t put_at(uint32_t at, struct kfd_packet p)
{
	for (uint32_t i = 0; i < p.n; i++)
		words[at + i] = p.dwords[i];
	return at + p.n;
}

static void nops_without_end(struct kfd_queue *q)
{
	for (uint32_t i = WORDS / 2; i < WORDS; i++)
		words[i] = 0xffff1000;
	much_work_keeps_nobody_waiting(q, WORDS);
}

/* Each takes the GPU a nanosecond, and its command processor a thousand times that. */
static void dispatches_without_end(struct kfd_queue *q)
{
	struct kfd_packet dispatch = { .n = 5, .dwords = { 3u << 30 | 3 << 16 | 0x15 << 8, 1, 1, 1, 1 } };
	int64_t dispatches = kfd_stat(0, "dispatches");
	uint32_t at = put_at(WORDS / 2, set_threads());

	at = put_at(at, set_register(0x24f, 1));
	while (at + dispatch.n <= WORDS)
		at = put_at(at, dispatch);
	much_work_keeps_nobody_waiting(q, at);
	ok(kfd_stat(0, "dispatches") - dispatches > 1000, "it has done some of its dispatches");
}

static void a_write_pointer_that_lies_stops_its_queue_alone(struct kfd_queue *q)
{
	struct kfd_queue liar;

	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_COMPUTE, 7, &liar) == 0, "a queue is created");
	*liar.wptr = ~0ull / 2;
	*liar.doorbell = ~0ull / 2;
	kfd_put(q, kfd_pm4_write(&words[80], 1));
	ok(kfd_wait_value(&words[80], 1, KFD_SOON) == 0,
	   "with a write pointer far beyond its ring it harms nobody");
	ok(kfd_queue_destroy(&liar) == 0, "and can be destroyed");
}

int main(void)
{
	struct kfd_queue q;

	if (start() < 0)
		return tap_done();
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_COMPUTE, 7, &q) == 0, "a PM4 queue is created");
	a_write_arrives(&q);
	a_write_of_many_dwords_arrives(&q);
	nops_do_nothing(&q);
	a_release_writes(&q);
	a_release_interrupts(&q);
	an_indirect_buffer_is_read(&q);
	a_buffer_that_calls_itself_stops_its_queue();
	the_ring_wraps(&q);
	stops_lose_and_repeat_nothing(&q);
	a_stopped_queue_takes_nothing(&q);
	bad_packets(&q);
	a_dispatch_takes_its_time(&q);
	a_dispatch_is_saved_and_restored(&q);
	a_wait_waits(&q);
	a_dispatch_in_an_indirect_buffer(&q);
	nops_without_end(&q);
	dispatches_without_end(&q);
	a_write_pointer_that_lies_stops_its_queue_alone(&q);
	ok(kfd_queue_destroy(&q) == 0, "the queue is destroyed");
	kfd_close(&kfd);
	return tap_done();
}
