// SPDX-License-Identifier: MIT
/*
 * SDMA queues: bytes arrive where they should, each operation happens once, whatever happens to the queue.
 *
 * bed: timeout=180 param=cus=4
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define MIB 0x100000u
#define QUEUES 4

static struct kfd kfd;
static struct kfd_gpu *gpu;
static volatile uint32_t *words;
static unsigned char *from, *to; /* QUEUES MiB each */

static int start(void)
{
	struct kfd_mem mem[3];

	if (!ok(kfd_open(&kfd) == 0 && kfd.ngpus > 0, "the driver opens and has a GPU"))
		return -ENODEV;
	gpu = &kfd.gpus[0];
	if (!ok(kfd_alloc(&kfd, gpu, 0x10000, &mem[0]) == 0 &&
			kfd_alloc(&kfd, gpu, QUEUES * MIB, &mem[1]) == 0 &&
			kfd_alloc(&kfd, gpu, QUEUES * MIB, &mem[2]) == 0,
		"memory is allocated and mapped"))
		return -ENOMEM;
	words = mem[0].addr;
	from = mem[1].addr;
	to = mem[2].addr;
	return 0;
}

static int settles(struct kfd_queue *q)
{
	uint64_t end = kfd_now() + 60 * SECOND;

	while (*q->rptr != q->written && kfd_now() < end)
		kfd_sleep(50000);
	return *q->rptr == q->written;
}

/* Than so many bytes. Nothing does between two calls that follow each other at once. */
static int moves_more(int64_t bytes)
{
	uint64_t end = kfd_now() + KFD_SOON;

	while (kfd_stat(0, "sdma_bytes") <= bytes && kfd_now() < end)
		;
	return kfd_stat(0, "sdma_bytes") > bytes;
}

static void scribble(unsigned char *at, uint32_t n, unsigned int seed)
{
	for (uint32_t i = 0; i < n; i++) {
		seed = seed * 1103515245 + 12345;
		at[i] = (unsigned char)(seed >> 16);
	}
}

static void a_copy_copies_every_byte(struct kfd_queue *q)
{
	int64_t bytes = kfd_stat(0, "sdma_bytes");

	scribble(from, MIB, 1);
	memset(to, 0, MIB + 16);
	kfd_put(q, kfd_sdma_copy(to, from, MIB));
	ok(settles(q) && memcmp(to, from, MIB) == 0, "a copy of 1 MiB arrives, byte by byte");
	ok(to[MIB] == 0, "and nothing beyond it");
	ok(kfd_stat(0, "sdma_bytes") == bytes + MIB, "it was counted");
	memset(to, 0, 8192);
	kfd_put(q, kfd_sdma_copy(to + 5, from + 3, 4097));
	ok(settles(q) && memcmp(to + 5, from + 3, 4097) == 0 && to[4] == 0 && to[5 + 4097] == 0,
	   "a copy between odd addresses, too");
}

static struct kfd_packet fill(void *dst, uint32_t value, uint32_t count, uint32_t size)
{
	struct kfd_packet p = kfd_sdma_fence(dst, value);

	p.n = 5;
	p.dwords[0] = 11 | size << 30;
	p.dwords[4] = count;
	return p;
}

static int is_filled(const unsigned char *at, const void *pattern, uint32_t size, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += size)
		if (memcmp(at + i, pattern, size) != 0)
			return 0;
	return 1;
}

static void fills_fill(struct kfd_queue *q)
{
	uint32_t dword = 0x11223344;
	unsigned char byte = 0x44;

	memset(to, 0, 0x4000);
	kfd_put(q, fill(to, dword, 0x1000 - 1, 2));
	ok(settles(q) && is_filled(to, &dword, 4, 0x1000) && to[0x1000] == 0, "a fill by dwords fills");
	kfd_put(q, fill(to + 0x1000, dword, 0x1000 - 4, 2));
	ok(settles(q) && is_filled(to + 0x1000, &dword, 4, 0x1000) && to[0x2000] == 0,
	   "also if its count is that of the last dword");
	kfd_put(q, fill(to + 0x2001, dword, 0xffe - 1, 0));
	ok(settles(q) && is_filled(to + 0x2001, &byte, 1, 0xffe) && to[0x2000] == 0 && to[0x2fff] == 0,
	   "a fill by bytes repeats the lowest");
}

static void a_write_writes(struct kfd_queue *q)
{
	struct kfd_packet p = kfd_sdma_fence(&words[10], 8 - 1);

	p.n = 4 + 8;
	p.dwords[0] = 2;
	for (uint32_t i = 0; i < 8; i++)
		p.dwords[4 + i] = i + 1;
	kfd_put(q, p);
	ok(settles(q) && words[10] == 1 && words[17] == 8 && words[18] == 0 && words[9] == 0,
	   "a write writes");
}

static void a_fence_an_addition_and_the_time(struct kfd_queue *q)
{
	volatile uint64_t *counter = (volatile uint64_t *)&words[30], *time = (volatile uint64_t *)&words[40];
	struct kfd_packet stamp = kfd_sdma_fence(time, 0);
	uint64_t before = kfd_now() / 10;

	stamp.n = 3;
	stamp.dwords[0] = 13 | 2 << 8;
	*counter = 0xffffffff;
	kfd_put(q, kfd_sdma_fence(&words[20], 0xabcd));
	kfd_put(q, kfd_sdma_add(counter, 2));
	kfd_put(q, kfd_sdma_add(counter, -1));
	kfd_put(q, stamp);
	ok(settles(q) && words[20] == 0xabcd && words[21] == 0, "a fence writes a dword");
	ok(*counter == 0x100000000, "an atomic addition adds 64 bits");
	ok(*time >= before && *time <= kfd_now() / 10, "a timestamp is the time");
}

static void a_trap_interrupts(struct kfd_queue *q)
{
	int64_t interrupts = kfd_stat(0, "interrupts");

	kfd_put(q, kfd_sdma_trap(5));
	ok(settles(q) && kfd_stat(0, "interrupts") == interrupts + 1, "a trap interrupts");
}

static struct kfd_packet poll_memory(volatile uint32_t *at, uint32_t function, uint32_t reference,
				     uint32_t mask)
{
	struct kfd_packet p = kfd_sdma_fence(at, reference);

	p.n = 6;
	p.dwords[0] = 8 | function << 28 | 1u << 31;
	p.dwords[4] = mask;
	return p;
}

static void a_poll_waits(struct kfd_queue *q, struct kfd_queue *other)
{
	words[50] = words[51] = words[52] = 0;
	kfd_put(q, poll_memory(&words[50], 3, 7, 0xff));
	kfd_put(q, kfd_sdma_fence(&words[51], 1));
	ok(kfd_wait_value(&words[51], 1, 100 * MS) == -ETIMEDOUT, "a poll waits");
	kfd_put(other, kfd_sdma_fence(&words[52], 1));
	ok(kfd_wait_value(&words[52], 1, KFD_SOON) == 0, "another queue does not");
	ok(kfd_queue_update(q, 0, 7) == 0, "it is stopped while it waits");
	words[50] = 0xf07;
	ok(kfd_wait_value(&words[51], 1, 100 * MS) == -ETIMEDOUT, "and stays stopped when the value comes");
	ok(kfd_queue_update(q, 100, 7) == 0 && kfd_wait_value(&words[51], 1, KFD_SOON) == 0,
	   "it goes on when it is started, as masked bits do not count");
}

static void it_compares(struct kfd_queue *q, uint32_t function, uint32_t value, uint32_t reference,
			int expected)
{
	int through;

	words[60] = value;
	words[61] = 0;
	kfd_put(q, poll_memory(&words[60], function, reference, ~0u));
	kfd_put(q, kfd_sdma_fence(&words[61], 1));
	through = kfd_wait_value(&words[61], 1, expected ? 5 * SECOND : 50 * MS) == 0;
	words[60] = function < 3 ? 0 : function == 3 ? reference : ~0u;
	ok(settles(q) && through == expected, "comparison %u with %u: %u %s", function, reference, value,
	   expected ? "passes" : "waits");
}

static void polls_compare(struct kfd_queue *q)
{
	it_compares(q, 0, 9, 5, 1); /* always */
	it_compares(q, 1, 4, 5, 1); /* less */
	it_compares(q, 1, 5, 5, 0);
	it_compares(q, 2, 5, 5, 1); /* less or equal */
	it_compares(q, 2, 6, 5, 0);
	it_compares(q, 3, 5, 5, 1); /* equal */
	it_compares(q, 3, 4, 5, 0);
	it_compares(q, 4, 6, 5, 1); /* not equal */
	it_compares(q, 4, 5, 5, 0);
	it_compares(q, 5, 5, 5, 1); /* greater or equal */
	it_compares(q, 5, 4, 5, 0);
	it_compares(q, 6, 6, 5, 1); /* greater */
	it_compares(q, 6, 5, 5, 0);
}

static void the_ring_wraps(struct kfd_queue *q)
{
	volatile uint64_t *counter = (volatile uint64_t *)&words[70];
	uint32_t n = 10000, i;
	int r = 0;

	*counter = 0;
	for (i = 0; i < n && r == 0; i++)
		r = kfd_put(q, i % 3 ? kfd_sdma_add(counter, 1) : kfd_sdma_fence(&words[80], i));
	ok(r == 0 && settles(q), "%u packets go through a ring of %u bytes", n, q->ring_size);
	ok(*counter == n - (n + 2) / 3 && words[80] == (n - 1) / 3 * 3, "each was taken once, in order");
}

static void several_queues_copy_at_once(struct kfd_queue *queues)
{
	int good = 1, r = 0;

	memset(to, 0, QUEUES * MIB);
	for (unsigned int i = 0; i < QUEUES; i++)
		scribble(from + i * MIB, MIB, 100 + i);
	for (unsigned int part = 0; part < 16; part++)
		for (unsigned int i = 0; i < QUEUES; i++) {
			uint32_t at = i * MIB + part * (MIB / 16);

			r |= kfd_put(&queues[i], kfd_sdma_copy(to + at, from + at, MIB / 16));
		}
	for (unsigned int i = 0; i < QUEUES; i++)
		good &= settles(&queues[i]);
	ok(r == 0 && good, "%d queues copy at once", QUEUES);
	ok(memcmp(to, from, QUEUES * MIB) == 0, "every byte is where it should be");
}

struct adder {
	struct kfd_queue *q;
	volatile uint64_t *counter;
	uint32_t n;
	volatile int done;
	int r;
};

static void *add(void *arg)
{
	struct adder *a = arg;

	for (uint32_t i = 0; i < a->n && a->r == 0; i++)
		a->r = kfd_put(a->q, kfd_sdma_add(a->counter, 1));
	a->done = 1;
	return NULL;
}

static void stops_lose_and_repeat_nothing(struct kfd_queue *q)
{
	struct adder a = { .q = q, .counter = (volatile uint64_t *)&words[90], .n = 20000 };
	uint32_t stops = 0;
	pthread_t thread;
	int r = 0;

	*a.counter = 0;
	pthread_create(&thread, NULL, add, &a);
	while (r == 0 && !a.done && stops < 1000) {
		r = kfd_queue_update(q, 0, 7);
		kfd_sleep(5 * MS);
		if (r == 0)
			r = kfd_queue_update(q, 100, 7);
		kfd_sleep(2 * MS);
		stops++;
	}
	pthread_join(thread, NULL);
	ok(r == 0 && a.r == 0 && settles(q), "%u additions go through while the queue is stopped %u times",
	   a.n, stops);
	ok(stops >= 3, "which was in their midst");
	ok(*a.counter == a.n, "each was done once: %llu", (unsigned long long)*a.counter);
}

static void it_stops_its_queue_alone(struct kfd_queue *q, struct kfd_packet bad, const char *what)
{
	struct kfd_queue broken;
	volatile uint64_t *counter = (volatile uint64_t *)&words[100];

	*counter = 0;
	words[102] = 0;
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_SDMA, 7, &broken) == 0, "a queue is created");
	kfd_put(&broken, kfd_sdma_add(counter, 1));
	kfd_put(&broken, bad);
	kfd_put(&broken, kfd_sdma_add(counter, 100));
	ok(kfd_wait_value((volatile uint32_t *)counter, 1, KFD_SOON) == 0, "the packet before %s is taken",
	   what);
	kfd_put(q, kfd_sdma_fence(&words[102], 1));
	ok(kfd_wait_value(&words[102], 1, KFD_SOON) == 0, "another queue goes on");
	kfd_sleep(20 * MS);
	ok(kfd_queue_update(&broken, 0, 7) == 0 && kfd_queue_update(&broken, 100, 7) == 0,
	   "the queue is stopped and started");
	kfd_sleep(20 * MS);
	ok(*counter == 1, "nothing after it is taken, nothing before it twice");
	ok(kfd_queue_destroy(&broken) == 0, "the broken one is destroyed");
}

static void bad_packets(struct kfd_queue *q)
{
	int64_t bad = kfd_stat(0, "bad_addresses");

	it_stops_its_queue_alone(q, (struct kfd_packet){ .n = 1, .dwords = { 0xdeadbeef } }, "garbage");
	ok(kfd_stat(0, "bad_addresses") == bad, "that had nothing to do with addresses");
}

/* The same bytes again and again: more than a second of work for the host. */
static void large_copies_keep_nobody_waiting(struct kfd_queue *q)
{
	int64_t bytes = kfd_stat(0, "sdma_bytes");
	struct kfd_queue busy;
	int r = 0;

	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_SDMA, 7, &busy) == 0, "a queue is created");
	for (int i = 0; i < 400; i++)
		kfd_put(&busy, kfd_sdma_copy(to, from, QUEUES * MIB));
	words[120] = 0;
	kfd_put(q, kfd_sdma_fence(&words[120], 1));
	ok(kfd_wait_value(&words[120], 1, KFD_SOON) == 0, "another queue goes on");
	for (int i = 0; i < 20; i++)
		r |= kfd_queue_update(&busy, i % 2 ? 100 : 0, 7);
	ok(r == 0 && *busy.rptr != busy.written, "it is stopped and started in the midst of its copies");
	ok(settles(&busy) && kfd_stat(0, "sdma_bytes") == bytes + 400 * QUEUES * (int64_t)MIB,
	   "every byte is copied once");
	ok(memcmp(to, from, QUEUES * MIB) == 0, "to where it should be");
	ok(kfd_queue_destroy(&busy) == 0, "the queue is destroyed");
}

/* The longest write there is, eight times: a fast host does more than one of them between two calls. */
static void a_long_write_is_stopped_in_its_midst(void)
{
	const uint32_t size = QUEUES * MIB, n = size / 4 - 4, writes = 8;
	const uint32_t head[] = { 2, (uint32_t)(uintptr_t)to, (uint32_t)((uintptr_t)to >> 32), n - 1 };
	const int64_t all = writes * (int64_t)n * 4;
	int64_t bytes = kfd_stat(0, "sdma_bytes"), done = 0;
	struct kfd_queue q;
	int r, stops = 0, parts = 0;

	ok(kfd_queue_create_ring(&kfd, gpu, KFD_TYPE_SDMA, writes * size, &q) == 0, "a queue is created");
	for (uint32_t i = 0; i < writes; i++) {
		scribble((unsigned char *)q.ring.addr + i * size, size, 7);
		memcpy((unsigned char *)q.ring.addr + i * size, head, sizeof(head));
	}
	memset(to, 0, size);
	r = kfd_queue_update(&q, 0, 7);
	q.written += q.ring_size;
	*q.wptr = q.written;
	for (; r == 0 && done < all; stops++) {
		r |= kfd_queue_update(&q, 100, 7);
		r |= !moves_more(bytes + done);
		r |= kfd_queue_update(&q, 0, 7);
		done = kfd_stat(0, "sdma_bytes") - bytes;
		parts += done % (n * 4) != 0;
	}
	ok(r == 0 && parts > 0, "writes of %u bytes are stopped in their midst (%d of %d stops)", n * 4,
	   parts, stops);
	ok(settles(&q) && done == all, "every byte is written once");
	ok(memcmp(to, (char *)q.ring.addr + sizeof(head), n * 4) == 0, "to where it should be");
	ok(kfd_queue_destroy(&q) == 0, "the queue is destroyed");
}

static void a_doorbell_that_lies_stops_its_queue_alone(struct kfd_queue *q)
{
	static const uint64_t lies[] = { 2, 0x7ffffffffffffffc, ~0ull };
	struct kfd_queue liar;

	for (unsigned int i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		words[110] = 0;
		ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_SDMA, 7, &liar) == 0, "a queue is created");
		*liar.doorbell = lies[i];
		kfd_put(q, kfd_sdma_fence(&words[110], 1));
		ok(kfd_wait_value(&words[110], 1, KFD_SOON) == 0,
		   "with its doorbell rung as %#llx it harms nobody", (unsigned long long)lies[i]);
		ok(kfd_queue_destroy(&liar) == 0, "and can be destroyed");
	}
}

int main(void)
{
	struct kfd_queue q[QUEUES];
	int r = 0;

	if (start() < 0)
		return tap_done();
	for (int i = 0; i < QUEUES; i++)
		r |= kfd_queue_create(&kfd, gpu, KFD_TYPE_SDMA, 7, &q[i]);
	ok(r == 0, "%d SDMA queues are created", QUEUES);
	a_copy_copies_every_byte(&q[0]);
	fills_fill(&q[0]);
	a_write_writes(&q[0]);
	a_fence_an_addition_and_the_time(&q[0]);
	a_trap_interrupts(&q[0]);
	a_poll_waits(&q[0], &q[1]);
	polls_compare(&q[0]);
	the_ring_wraps(&q[0]);
	several_queues_copy_at_once(q);
	stops_lose_and_repeat_nothing(&q[0]);
	bad_packets(&q[0]);
	large_copies_keep_nobody_waiting(&q[0]);
	a_long_write_is_stopped_in_its_midst();
	a_doorbell_that_lies_stops_its_queue_alone(&q[0]);
	for (int i = 0; i < QUEUES; i++)
		r |= kfd_queue_destroy(&q[i]);
	ok(r == 0, "the queues are destroyed");
	kfd_close(&kfd);
	return tap_done();
}
