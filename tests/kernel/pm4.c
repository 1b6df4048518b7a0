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

	return kfd_wait_value((volatile uint32_t *)q->rptr, want, 10 * SECOND) == 0;
}

static void a_write_arrives(struct kfd_queue *q)
{
	kfd_put(q, kfd_pm4_write(&words[1], 0x12345678));
	ok(kfd_wait_value(&words[1], 0x12345678, 5 * SECOND) == 0, "WRITE_DATA writes a dword");
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
			  type2 = { .n = 1, .dwords = { 2u << 30 } };
	struct kfd_packet acquire = { .n = 7, .dwords = { 3u << 30 | 5 << 16 | 0x58 << 8 } };

	kfd_put(q, nop);
	kfd_put(q, one);
	kfd_put(q, type2);
	kfd_put(q, acquire);
	kfd_put(q, kfd_pm4_write(&words[20], 20));
	ok(settles(q) && words[20] == 20, "NOPs of every kind and ACQUIRE_MEM are passed over");
}

static void a_release_writes(struct kfd_queue *q)
{
	volatile uint64_t *wide = (volatile uint64_t *)&words[30], before = kfd_now() / 10;
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
	ok(*(volatile uint64_t *)&words[42] >= before && *(volatile uint64_t *)&words[42] <= kfd_now() / 10,
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
	ok(kfd_queue_update(q, 100, 7) == 0 && kfd_wait_value(&words[60], 1, 5 * SECOND) == 0,
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
	ok(kfd_wait_value(&words[70], 1, 5 * SECOND) == 0, "the packet before %s is taken", what);
	ok(kfd_wait_value(&words[71], 1, 100 * MS) == -ETIMEDOUT, "the one after is not");
	ok(kfd_queue_update(&broken, 0, 7) == 0 && kfd_queue_update(&broken, 100, 7) == 0,
	   "the queue is stopped and started");
	kfd_put(q, kfd_pm4_write(&words[72], 1));
	ok(kfd_wait_value(&words[72], 1, 5 * SECOND) == 0, "another queue goes on");
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
	it_stops_its_queue_alone(q, kfd_pm4_write((void *)0x10000, 1), "a write to nowhere");
	it_stops_its_queue_alone(q, kfd_pm4_release((void *)&words[WORDS - 1], 1, 0),
				 "a write across the end");
	it_stops_its_queue_alone(q, kfd_pm4_indirect((void *)&words[WORDS - 8], 9), "packets across the end");
	ok(kfd_stat(0, "bad_addresses") > bad + 2, "these had");
}

static void a_write_pointer_that_lies_stops_its_queue_alone(struct kfd_queue *q)
{
	struct kfd_queue liar;

	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_COMPUTE, 7, &liar) == 0, "a queue is created");
	*liar.wptr = ~0ull / 2;
	*liar.doorbell = ~0ull / 2;
	kfd_put(q, kfd_pm4_write(&words[80], 1));
	ok(kfd_wait_value(&words[80], 1, 5 * SECOND) == 0,
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
	a_write_pointer_that_lies_stops_its_queue_alone(&q);
	ok(kfd_queue_destroy(&q) == 0, "the queue is destroyed");
	kfd_close(&kfd);
	return tap_done();
}
