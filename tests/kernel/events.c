// SPDX-License-Identifier: MIT
/*
 * Events: interrupts of every kind of queue wake who waits in the kernel, and only them.
 *
 * bed: timeout=120 param=cus=4
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "dbg.h"
#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define TOO_LONG_MS 100000 /* for whoever is woken */

static struct kfd kfd;
static struct kfd_gpu *gpu;
static struct kfd_mem page;
static volatile uint64_t *slots; /* the page: one for each event */
static volatile uint32_t *words;
static struct kfd_signal *signals;

static int start(void)
{
	struct kfd_mem mem;

	if (!ok(kfd_open(&kfd) == 0 && kfd.ngpus > 0, "the driver opens and has a GPU"))
		return -ENODEV;
	gpu = &kfd.gpus[0];
	if (!ok(kfd_alloc(&kfd, gpu, KFD_EVENT_PAGE_SIZE, &page) == 0 &&
			kfd_alloc(&kfd, gpu, 0x10000, &mem) == 0,
		"memory is allocated and mapped"))
		return -ENOMEM;
	slots = page.addr;
	words = mem.addr;
	signals = (struct kfd_signal *)((char *)mem.addr + 0x8000);
	return 0;
}

static int wait_one(uint32_t id, uint32_t timeout_ms)
{
	struct kfd_event_data data = { .event_id = id };

	return kfd_event_wait(&kfd, &data, 1, 0, timeout_ms);
}

static int event_call(unsigned long request, uint32_t id)
{
	struct kfd_event_args args = { .event_id = id };

	return kfd_ioctl(&kfd, request, &args);
}

static uint32_t new_event(int auto_reset)
{
	uint32_t id = 0;
	int r = kfd_event_create(&kfd, NULL, KFD_EVENT_SIGNAL, auto_reset, &id);

	if (r < 0)
		ok(0, "an event is created (%d)", r);
	return id;
}

static void the_page_comes_with_the_first_event(uint32_t *ret_id)
{
	struct kfd_mem small;
	uint32_t id;

	ok(kfd_alloc(&kfd, gpu, 0x1000, &small) == 0, "a page too small for all events is allocated");
	ok(kfd_event_create(&kfd, &small, KFD_EVENT_SIGNAL, 1, &id) == -EINVAL, "and refused");
	ok(kfd_free(&kfd, gpu, &small) == 0, "it is freed");
	slots[9] = 0;
	ok(kfd_event_create(&kfd, &page, KFD_EVENT_SIGNAL, 1, ret_id) == 0 && *ret_id > 0,
	   "the first event brings the event page");
	ok(slots[*ret_id] == ~0ull && slots[9] == ~0ull, "the driver marks its slots as not signalled");
	ok(kfd_event_create(&kfd, &page, KFD_EVENT_SIGNAL, 1, &id) == -EINVAL, "a second page is refused");
}

static void nobody_may_free_the_page(void)
{
	struct kfd_free_args args = { .handle = page.handle };

	ok(kfd_ioctl(&kfd, KFD_IOC_FREE, &args) == -EPERM, "nobody may free the event page");
}

static void a_wait_ends_in_time(uint32_t id)
{
	uint64_t begin = kfd_now();

	ok(wait_one(id, 0) == KFD_WAIT_TIMEOUT, "a wait of 0 ms does not wait");
	ok(wait_one(id, 200) == KFD_WAIT_TIMEOUT, "one of 200 ms ends with a timeout");
	ok(kfd_now() - begin >= 190 * MS, "after 200 ms, to a tick of the kernel's clock");
}

static void the_cpu_sets_and_resets(void)
{
	uint32_t automatic = new_event(1), manual = new_event(0);

	ok(event_call(KFD_IOC_SET_EVENT, automatic) == 0 && wait_one(automatic, 0) == KFD_WAIT_COMPLETE,
	   "an event that is set ends a wait");
	ok(wait_one(automatic, 0) == KFD_WAIT_TIMEOUT, "one with automatic reset ends one only");
	ok(event_call(KFD_IOC_SET_EVENT, manual) == 0 && wait_one(manual, 0) == KFD_WAIT_COMPLETE &&
		   wait_one(manual, 0) == KFD_WAIT_COMPLETE,
	   "one without ends all that come");
	ok(event_call(KFD_IOC_RESET_EVENT, manual) == 0 && wait_one(manual, 0) == KFD_WAIT_TIMEOUT,
	   "until it is reset");
	ok(event_call(KFD_IOC_DESTROY_EVENT, automatic) == 0 &&
		   event_call(KFD_IOC_DESTROY_EVENT, manual) == 0,
	   "both are destroyed");
}

static void wrong_events_are_refused(void)
{
	uint32_t id = new_event(1), other;

	ok(event_call(KFD_IOC_DESTROY_EVENT, id) == 0, "an event is destroyed");
	ok(event_call(KFD_IOC_DESTROY_EVENT, id) == -EINVAL, "it is not destroyed twice");
	ok(event_call(KFD_IOC_SET_EVENT, id) == -EINVAL && event_call(KFD_IOC_RESET_EVENT, id) == -EINVAL,
	   "nor set, nor reset");
	ok(wait_one(id, 0) == -EINVAL, "nor waited for");
	ok(event_call(KFD_IOC_SET_EVENT, 0) == -EINVAL && wait_one(0, 0) == -EINVAL, "there is no event 0");
	ok(wait_one(0xffffffff, 0) == -EINVAL, "nor 0xffffffff");
	ok(kfd_event_wait(&kfd, (void *)0x10, 1, 0, 0) == -EFAULT, "what to wait for must be readable");
	ok(kfd_event_create(&kfd, NULL, KFD_EVENT_MEMORY, 0, &other) == 0 &&
		   event_call(KFD_IOC_SET_EVENT, other) == -EINVAL &&
		   event_call(KFD_IOC_RESET_EVENT, other) == -EINVAL,
	   "an event that is not a signal is not the user's to set");
	ok(event_call(KFD_IOC_DESTROY_EVENT, other) == 0, "but to destroy");
}

static void more_events_than_memory_are_refused(uint32_t id)
{
	const char *what = "more events to wait for than there can be memory are refused";
	struct kfd_event_data data = { .event_id = id };

	if (kfd_is_patched())
		ok(kfd_event_wait(&kfd, &data, 0xffffffff, 0, 0) == -ENOMEM, "%s", what);
	else
		skip(what, "the stock driver makes the kernel warn");
}

static void there_are_no_more_events_than_slots(void)
{
	static uint32_t ids[KFD_EVENT_PAGE_SIZE / 8 + 1];
	uint32_t n = 0;
	int r = 0, destroyed = 0;

	while (n < sizeof(ids) / sizeof(ids[0])) {
		r = kfd_event_create(&kfd, NULL, KFD_EVENT_SIGNAL, 1, &ids[n]);
		if (r < 0)
			break;
		n++;
	}
	ok(r == -ENOSPC && n > 4000 && n < 4096, "there are no more events than slots: %u and then ENOSPC",
	   n);
	for (uint32_t i = 0; i < n; i++)
		destroyed |= event_call(KFD_IOC_DESTROY_EVENT, ids[i]);
	ok(destroyed == 0, "they are destroyed");
}

struct waiter {
	struct kfd_event_data data[2];
	uint32_t n, timeout_ms;
	int all, result;
	volatile int is_begun, done;
	uint64_t took_ns;
	pthread_t thread;
};

static void *wait_in_thread(void *arg)
{
	struct waiter *w = arg;
	uint64_t begin = kfd_now();

	w->is_begun = 1;
	w->result = kfd_event_wait(&kfd, w->data, w->n, w->all, w->timeout_ms);
	w->took_ns = kfd_now() - begin;
	w->done = 1;
	return NULL;
}

static void begin_wait(struct waiter *w, uint32_t a, uint32_t b, int all)
{
	*w = (struct waiter){ .data = { { .event_id = a }, { .event_id = b } },
			      .n = b ? 2 : 1,
			      .timeout_ms = TOO_LONG_MS,
			      .all = all };
	pthread_create(&w->thread, NULL, wait_in_thread, w);
	while (!w->is_begun)
		kfd_sleep(MS);
	dbg_sits_in(getpid(), "kfd_wait_on_events", KFD_SOON);
	kfd_sleep(200 * MS); /* for the second of two, too */
}

/* It ended, and well before its time. */
static int is_woken(struct waiter *w)
{
	pthread_join(w->thread, NULL);
	return w->result == KFD_WAIT_COMPLETE && w->took_ns < KFD_SOON;
}

static struct kfd_signal *signal_with_event(uint32_t id)
{
	memset(signals, 0, sizeof(*signals));
	signals->value = 1;
	signals->event_mailbox = (uintptr_t)&slots[id];
	signals->event_id = id;
	return signals;
}

static void an_aql_signal_wakes(struct kfd_queue *q, uint32_t id)
{
	struct waiter w;

	begin_wait(&w, id, 0, 0);
	kfd_dispatch(q, 1, 5 * MS, signal_with_event(id));
	ok(is_woken(&w), "AQL: a completion signal with a mailbox wakes a waiter");
	ok(signals->value == 0, "and the value is there before");
	ok(slots[id] == ~0ull, "the driver marks the slot as not signalled again");
}

static void sdma_wakes(struct kfd_queue *q, uint32_t id)
{
	struct waiter w;

	begin_wait(&w, id, 0, 0);
	kfd_put(q, kfd_sdma_fence(&slots[id], id));
	kfd_put(q, kfd_sdma_trap(id));
	ok(is_woken(&w), "SDMA: a fence to the slot and a trap wake a waiter");
}

static void pm4_wakes(struct kfd_queue *q, uint32_t id)
{
	struct waiter w;

	begin_wait(&w, id, 0, 0);
	kfd_put(q, kfd_pm4_release(&slots[id], id, id));
	ok(is_woken(&w), "PM4: RELEASE_MEM to the slot, with its interrupt, wakes a waiter");
}

static void an_interrupt_with_no_signal_behind_it_wakes_nobody(struct kfd_queue *q, uint32_t id)
{
	kfd_put(q, kfd_sdma_trap(id));
	ok(wait_one(id, 100) == KFD_WAIT_TIMEOUT, "an interrupt with no signal in the slot wakes nobody");
}

static void one_event_of_many(struct kfd_queue *q, uint32_t a, uint32_t b)
{
	struct waiter w, other;

	begin_wait(&w, a, b, 0);
	begin_wait(&other, b, 0, 0);
	kfd_put(q, kfd_pm4_release(&slots[a], a, a));
	ok(is_woken(&w), "who waits for any of two is woken by one");
	kfd_sleep(50 * MS);
	ok(!other.done, "who waits for the other is not");
	kfd_put(q, kfd_pm4_release(&slots[b], b, b));
	ok(is_woken(&other), "but by the other");
	begin_wait(&w, a, b, 1);
	kfd_put(q, kfd_pm4_release(&slots[a], a, a));
	kfd_sleep(100 * MS);
	ok(!w.done, "who waits for all of two is not woken by the first");
	kfd_put(q, kfd_pm4_release(&slots[b], b, b));
	ok(is_woken(&w), "but by both");
}

static void a_destroyed_event_wakes_its_waiters(void)
{
	uint32_t id = new_event(1);
	struct waiter w;

	begin_wait(&w, id, 0, 0);
	ok(event_call(KFD_IOC_DESTROY_EVENT, id) == 0, "an event is destroyed while somebody waits for it");
	pthread_join(w.thread, NULL);
	ok(w.result == -EIO && w.took_ns < KFD_SOON, "who is told so: EIO");
}

static void a_lost_interrupt_loses_no_value(struct kfd_queue *aql, struct kfd_queue *sdma, uint32_t id)
{
	int64_t interrupts = kfd_stat(0, "interrupts");

	ok(kfd_fault(0, "lost-irq 2") == 0, "two interrupts are to be lost");
	kfd_dispatch(aql, 1, MS, signal_with_event(id));
	ok(kfd_wait(signals, KFD_SOON) == 0 &&
		   kfd_wait_value((volatile uint32_t *)&slots[id], id, KFD_SOON) == 0,
	   "the values in memory are right");
	ok(wait_one(id, 300) == KFD_WAIT_TIMEOUT, "but the wait for the first ends with a timeout");
	slots[id] = ~0ull;
	kfd_put(sdma, kfd_sdma_fence(&slots[id], id));
	kfd_put(sdma, kfd_sdma_trap(id));
	ok(kfd_wait_value((volatile uint32_t *)&slots[id], id, KFD_SOON) == 0 &&
		   wait_one(id, 300) == KFD_WAIT_TIMEOUT,
	   "and for the second, of SDMA, likewise");
	ok(kfd_stat(0, "interrupts") == interrupts, "none was delivered");
	kfd_dispatch(aql, 1, MS, signal_with_event(id));
	ok(wait_one(id, TOO_LONG_MS) == KFD_WAIT_COMPLETE, "the third comes");
}

static void three_hundred_signals(struct kfd_queue *q, uint32_t id)
{
	int woken = 0;

	for (int i = 0; i < 300; i++) {
		kfd_put(q, kfd_pm4_release(&slots[id], id, id));
		woken += wait_one(id, TOO_LONG_MS) == KFD_WAIT_COMPLETE;
	}
	ok(woken == 300, "300 signals one after the other: none is lost (%d)", woken);
}

int main(void)
{
	struct kfd_queue aql, sdma, pm4;
	uint32_t a, b;

	if (start() < 0)
		return tap_done();
	the_page_comes_with_the_first_event(&a);
	nobody_may_free_the_page();
	b = new_event(1);
	a_wait_ends_in_time(a);
	the_cpu_sets_and_resets();
	wrong_events_are_refused();
	more_events_than_memory_are_refused(a);
	there_are_no_more_events_than_slots();
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &aql) == 0 &&
		   kfd_queue_create(&kfd, gpu, KFD_TYPE_SDMA, 7, &sdma) == 0 &&
		   kfd_queue_create(&kfd, gpu, KFD_TYPE_COMPUTE, 7, &pm4) == 0,
	   "a queue of each kind is created");
	an_aql_signal_wakes(&aql, a);
	sdma_wakes(&sdma, a);
	pm4_wakes(&pm4, a);
	an_interrupt_with_no_signal_behind_it_wakes_nobody(&sdma, a);
	one_event_of_many(&pm4, a, b);
	a_destroyed_event_wakes_its_waiters();
	a_lost_interrupt_loses_no_value(&aql, &sdma, a);
	three_hundred_signals(&pm4, a);
	ok(kfd_queue_destroy(&aql) == 0 && kfd_queue_destroy(&sdma) == 0 && kfd_queue_destroy(&pm4) == 0,
	   "the queues are destroyed");
	kfd_close(&kfd);
	return tap_done();
}
