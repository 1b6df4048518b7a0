// SPDX-License-Identifier: MIT
/* AQL queues on the real driver: dispatch, barrier, preempt by UPDATE_QUEUE, lose nothing. */
#include <errno.h>
#include <string.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define MUCH_RING 0x1000000u

static struct kfd kfd;
static struct kfd_gpu *gpu;
static struct kfd_signal *signals;

static struct kfd_signal *new_signal(void)
{
	static int used;
	struct kfd_signal *s = &signals[used++ % 1024];

	memset(s, 0, sizeof(*s));
	s->value = 1;
	return s;
}

static int start(void)
{
	struct kfd_mem mem;

	if (!ok(kfd_open(&kfd) == 0 && kfd.ngpus > 0, "the driver opens and has a GPU"))
		return -ENODEV;
	gpu = &kfd.gpus[0];
	if (!ok(kfd_alloc(&kfd, gpu, 1024 * sizeof(*signals), &mem) == 0, "memory is allocated and mapped"))
		return -ENOMEM;
	signals = mem.addr;
	return 0;
}

static void a_dispatch_takes_the_time_it_says(struct kfd_queue *q)
{
	struct kfd_signal *s = new_signal();
	uint64_t begin = kfd_now(), took;

	kfd_dispatch(q, 1, 20 * MS, s);
	ok(kfd_wait(s, KFD_SOON) == 0, "a dispatch ends and its signal goes down");
	took = kfd_now() - begin;
	ok(took >= 20 * MS, "it took the 20 ms that its packet says, or more (%llu us)",
	   (unsigned long long)took / 1000);
	ok((s->end_ts - s->start_ts) * 10 >= 20 * MS, "the signal's timestamps say so too");
	ok(*q->rptr == q->written, "the read pointer has followed");
}

static void packets_are_taken_in_order(struct kfd_queue *q)
{
	struct kfd_signal *s[3] = { new_signal(), new_signal(), new_signal() };

	for (int i = 0; i < 3; i++)
		kfd_dispatch(q, 4, 5 * MS, s[i]);
	ok(kfd_wait(s[2], KFD_SOON) == 0 && !s[0]->value && !s[1]->value, "packets are taken in order");
}

static void a_barrier_waits_for_its_signals(struct kfd_queue *a, struct kfd_queue *b)
{
	struct kfd_signal *first = new_signal(), *second = new_signal(), *done = new_signal(),
			  *either = new_signal();
	struct kfd_signal *both[] = { first, second };

	kfd_barrier(b, 3, both, 2, done);
	kfd_dispatch(a, 1, MS, first);
	ok(kfd_wait(first, KFD_SOON) == 0, "the first of two signals goes down");
	ok(kfd_wait(done, 50 * MS) == -ETIMEDOUT, "a barrier-AND waits for the other");
	second->value = 0;
	ok(kfd_wait(done, KFD_SOON) == 0, "and is done when both are");
	second->value = 1;
	kfd_barrier(b, 5, both, 2, either);
	ok(kfd_wait(either, KFD_SOON) == 0, "a barrier-OR is done with one");
}

/* Dispatches, and returns when the device has begun. */
static void run(struct kfd_queue *q, uint64_t wave_ns, struct kfd_signal *s)
{
	int64_t before = kfd_stat(0, "dispatches");

	kfd_dispatch(q, 64, wave_ns, s);
	kfd_wait_stat(0, "dispatches", before + 1, KFD_SOON);
}

static void a_stopped_queue_goes_on_where_it_was(struct kfd_queue *q)
{
	const uint64_t length = 2 * SECOND;
	struct kfd_signal *s = new_signal();
	int64_t saves = kfd_stat(0, "saves"), restores = kfd_stat(0, "restores");
	uint64_t begin = kfd_gpu_now(0), ran, took;

	run(q, length, s);
	kfd_sleep(SECOND);
	ok(kfd_queue_update(q, 0, 7) == 0, "a running queue is stopped (UPDATE_QUEUE, 0 percent)");
	ran = kfd_gpu_now(0) - begin;
	ok(kfd_stat(0, "saves") == saves + 1, "its waves were saved");
	ok(kfd_wait(s, length) == -ETIMEDOUT, "it makes no progress while it is stopped");
	begin = kfd_gpu_now(0);
	ok(kfd_queue_update(q, 100, 7) == 0, "it is started again");
	ok(kfd_wait(s, KFD_SOON) == 0, "and ends");
	took = kfd_gpu_now(0) - begin;
	ok(kfd_stat(0, "restores") == restores + 1, "its waves were restored");
	ok(took < length, "in less than the whole: it went on where it was (%llu ms)",
	   (unsigned long long)(took / MS));
	ok(took + ran >= length, "and in no less than what was left");
}

static void a_read_pointer_may_move_before_the_dispatch_has_ended(struct kfd_queue *q)
{
	struct kfd_signal *s = new_signal(), *next = new_signal();
	char *place = (char *)q->ring.addr + q->written * 64 % q->ring.size;

	ok(kfd_fault(0, "early-rptr") == 0, "the read pointer is to move when a packet is taken");
	run(q, 2 * SECOND, s);
	ok(*q->rptr == q->written && s->value == 1, "it has moved, and the dispatch runs");
	memset(place, 0x5a, 64); /* it is the writer's again */
	ok(kfd_queue_update(q, 0, 7) == 0 && kfd_fault(0, "none") == 0 && kfd_queue_update(q, 100, 7) == 0,
	   "it is stopped and started, and its packet's place overwritten");
	ok(kfd_wait(s, KFD_SOON) == 0 && *q->rptr == q->written, "it ends, and signals, once");
	kfd_dispatch(q, 1, MS, next);
	ok(kfd_wait(next, KFD_SOON) == 0 && *q->rptr == q->written, "and the next one is taken");
}

static void what_is_in_the_save_area_is_what_comes_back(struct kfd_queue *q)
{
	struct kfd_signal *s = new_signal();
	int64_t bad = kfd_stat(0, "bad_restores"), begun;

	run(q, 3 * SECOND, s);
	ok(kfd_queue_update(q, 0, 7) == 0, "a running queue is stopped");
	memset((char *)q->cwsr.addr + gpu->ctl_stack_size, 0x5a, 4096);
	ok(kfd_queue_update(q, 100, 7) == 0, "its save area is overwritten, and it is started again");
	ok(kfd_wait(s, 4 * SECOND) == -ETIMEDOUT, "its waves do not come back");
	ok(kfd_stat(0, "bad_restores") == bad + 1, "and the device noticed");
	begun = kfd_stat(0, "dispatches");
	ok(kfd_queue_update(q, 0, 7) == 0 && kfd_queue_update(q, 100, 7) == 0,
	   "it is stopped and started once more");
	ok(kfd_wait(s, 4 * SECOND) == -ETIMEDOUT && kfd_stat(0, "dispatches") == begun,
	   "what was lost does not begin anew");
}

static void a_queue_on_memory_that_is_not_mapped_is_refused(void)
{
	struct kfd_queue q;

	gpu->cwsr_size -= 4096;
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &q) == -EINVAL,
	   "a save area that is too small is refused");
	gpu->cwsr_size += 4096;
	gpu->ctl_stack_size += 4096;
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &q) == -EINVAL,
	   "a control stack of another size is refused");
	gpu->ctl_stack_size -= 4096;
}

static void fill_with_little(uint64_t (*packets)[8], uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		packets[i][0] = i % 2 ? 3 : 2 | 1ull << 16 | 64ull << 32 | 1ull << 48;
		packets[i][1] = i % 2 ? 0 : 1 | 64ull << 32;
		packets[i][2] = i % 2 ? 0 : 1 | 1ull << 32;
		packets[i][6] = i % 2 ? 0 : 1;
	}
}

/* Barriers that hold, and dispatches of a nanosecond: seconds of work for the host, if done at once. */
static void much_work_keeps_nobody_waiting(struct kfd_queue *q)
{
	const uint64_t n = MUCH_RING / 64;
	struct kfd_signal *s = new_signal();
	int64_t barriers = kfd_stat(0, "barriers");
	struct kfd_queue busy;
	int r;

	ok(kfd_queue_create_ring(&kfd, gpu, KFD_TYPE_AQL, MUCH_RING, &busy) == 0, "a queue is created");
	fill_with_little(busy.ring.addr, n);
	__atomic_store_n(busy.wptr, n, __ATOMIC_RELEASE);
	__atomic_store_n(busy.doorbell, n, __ATOMIC_RELEASE);
	for (uint64_t end = kfd_now() + KFD_SOON; *busy.rptr == 0 && kfd_now() < end;)
		kfd_sleep(100000);
	r = kfd_queue_update(&busy, 0, 7);
	ok(r == 0 && *busy.rptr > 0 && *busy.rptr < n, "it is stopped in the midst of %llu packets (%llu)",
	   (unsigned long long)n, (unsigned long long)*busy.rptr);
	kfd_dispatch(q, 1, MS, s);
	ok(kfd_queue_update(&busy, 100, 7) == 0 && kfd_wait(s, KFD_SOON) == 0, "another queue goes on");
	ok(kfd_wait_stat(0, "barriers", barriers + (int64_t)n / 2, KFD_SOON) == 0 && *busy.rptr == n,
	   "every packet is taken once");
	ok(kfd_queue_destroy(&busy) == 0 && kfd_stat(0, "resets") == 0, "and it can be destroyed");
}

int main(void)
{
	struct kfd_queue a, b, c;

	if (start() < 0)
		return tap_done();
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &a) == 0, "a queue is created");
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &b) == 0, "and another");
	a_dispatch_takes_the_time_it_says(&a);
	packets_are_taken_in_order(&a);
	a_barrier_waits_for_its_signals(&a, &b);
	a_stopped_queue_goes_on_where_it_was(&a);
	a_read_pointer_may_move_before_the_dispatch_has_ended(&a);
	much_work_keeps_nobody_waiting(&a);
	a_queue_on_memory_that_is_not_mapped_is_refused();
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &c) == 0, "a queue to break is created");
	what_is_in_the_save_area_is_what_comes_back(&c);
	ok(kfd_queue_destroy(&c) == 0, "a broken queue is destroyed");
	ok(kfd_queue_destroy(&a) == 0 && kfd_queue_destroy(&b) == 0, "and the others");
	ok(kfd_stat(0, "bad_addresses") == 0, "no address was mixed up");
	kfd_close(&kfd);
	return tap_done();
}
