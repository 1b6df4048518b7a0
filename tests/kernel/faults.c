// SPDX-License-Identifier: MIT
/*
 * What the driver does when the GPU does not do what it should.  After each fault the device works for a new
 * process.
 *
 * bed: vm=own timeout=240 param=cus=4 param=queue_preemption_timeout_ms=8000
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define LONG (1000 * SECOND)
/* The driver's, as above. On a busy host the machine may stand still for a second. */
#define PATIENCE (8 * SECOND)

/* A process with a queue of each kind. */
static struct kfd kfd;
static struct kfd_gpu *gpu;
static struct kfd_queue aql, sdma;
static struct kfd_signal *signals;
static volatile uint32_t *word;

static struct kfd_signal *new_signal(void)
{
	static int used;
	struct kfd_signal *s = &signals[used++ % 64];

	memset(s, 0, sizeof(*s));
	s->value = 1;
	return s;
}

/* While a GPU resets, nobody may begin: the driver says EINVAL. */
static int open_when_unlocked(void)
{
	uint64_t end = kfd_now() + KFD_SOON;
	int r = kfd_open(&kfd);

	while (r == -EINVAL && kfd_now() < end) {
		kfd_close(&kfd);
		kfd_sleep(10 * MS);
		r = kfd_open(&kfd);
	}
	return r;
}

static int begin(void)
{
	struct kfd_mem mem;
	int r = open_when_unlocked();

	if (r < 0)
		return r;
	gpu = &kfd.gpus[0];
	r = kfd_alloc(&kfd, gpu, 0x4000, &mem);
	if (r == 0)
		r = kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &aql);
	if (r == 0)
		r = kfd_queue_create(&kfd, gpu, KFD_TYPE_SDMA, 7, &sdma);
	if (r < 0)
		return r;
	signals = mem.addr;
	word = (volatile uint32_t *)((char *)mem.addr + 0x3000);
	return 0;
}

static int begins(void)
{
	int r = begin();

	return ok(r == 0, "queues are created (%d)", r);
}

static void do_work(void)
{
	struct kfd_signal *s;
	int r = begin();

	if (!ok(r == 0, "a new process creates queues (%d)", r))
		return;
	s = new_signal();
	kfd_dispatch(&aql, 8, MS, s);
	kfd_put(&sdma, kfd_sdma_fence(word, 0x600d));
	ok(kfd_wait(s, KFD_SOON) == 0 && kfd_wait_value(word, 0x600d, KFD_SOON) == 0, "and they work");
	s = new_signal();
	kfd_dispatch(&aql, 8, SECOND, s);
	kfd_sleep(50 * MS);
	ok(kfd_queue_update(&aql, 0, 7) == 0 && kfd_queue_update(&aql, 100, 7) == 0 &&
		   kfd_wait(s, KFD_SOON) == 0,
	   "also if they are stopped and started");
	ok(kfd_queue_destroy(&aql) == 0 && kfd_queue_destroy(&sdma) == 0, "they are destroyed");
}

static void the_device_works(void)
{
	ok(kfd_wait_stat(0, "mapped", 0, KFD_SOON) == 0, "no queue of before is left on the device");
	tap_in_child(do_work);
	ok(kfd_wait_stat(0, "mapped", 0, KFD_SOON) == 0, "and none of now");
}

static void run_for_ever(int tell)
{
	struct kfd_signal *never;
	struct kfd_queue waiting;

	if (begin() < 0 || kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &waiting) < 0)
		_exit(1);
	never = new_signal();
	kfd_dispatch(&aql, 8, LONG, NULL);
	kfd_barrier(&waiting, 3, &never, 1, NULL); /* looked at all the time */
	while (write(tell, "x", 1) == 1)
		pause();
	_exit(2);
}

/* Somebody else, with three queues, who runs a kernel for ever; tells when it does. */
static pid_t another_process(void)
{
	int pipes[2];
	char told;
	pid_t pid;

	if (pipe(pipes) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		run_for_ever(pipes[1]);
	close(pipes[1]);
	if (read(pipes[0], &told, 1) != 1)
		pid = -1;
	close(pipes[0]);
	return pid;
}

static int end_process(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
}

static uint64_t time_to_stop(void)
{
	int64_t begun = kfd_stat(0, "dispatches");
	struct kfd_signal *s = new_signal();
	uint64_t start, took;

	kfd_dispatch(&aql, 8, SECOND, s);
	kfd_wait_stat(0, "dispatches", begun + 1, KFD_SOON);
	start = kfd_gpu_now(0);
	ok(kfd_queue_update(&aql, 0, 7) == 0, "a busy queue is stopped");
	took = kfd_gpu_now(0) - start;
	ok(kfd_queue_update(&aql, 100, 7) == 0 && kfd_wait(s, KFD_SOON) == 0,
	   "it is started, and its work ends");
	return took;
}

/* Of three: a busy host makes any one of them long. */
static uint64_t shortest_stop(void)
{
	uint64_t shortest = ~0ull;

	for (int i = 0; i < 3; i++) {
		uint64_t took = time_to_stop();

		shortest = took < shortest ? took : shortest;
	}
	return shortest;
}

static void a_slow_save_takes_its_time(void)
{
	uint64_t usual, slow;

	if (!begins())
		return;
	usual = shortest_stop();
	ok(kfd_fault(0, "slow-save 300000000") == 0, "a save takes 300 ms more");
	slow = time_to_stop();
	ok(slow >= 300 * MS && slow < PATIENCE, "so does a stop: %llu ms", (unsigned long long)(slow / MS));
	ok(kfd_fault(0, "none") == 0 && usual < 300 * MS, "as usual it is %llu ms",
	   (unsigned long long)(usual / MS));
	ok(shortest_stop() < 300 * MS, "and again when the fault is taken back");
	ok(kfd_queue_destroy(&aql) == 0 && kfd_queue_destroy(&sdma) == 0, "the queues are destroyed");
}

static uint32_t new_exception_event(uint32_t type)
{
	uint32_t id = 0;

	ok(kfd_event_create(&kfd, NULL, type, 0, &id) == 0, "an event for what goes wrong is created");
	return id;
}

/* What a process sees of a reset, whoever caused it: it gets nothing back, but it can clean up. */
static void the_process_is_told_of_the_reset(uint32_t event, int64_t resets)
{
	struct kfd_event_data data = { .event_id = event };
	struct kfd_signal *s = new_signal();

	ok(kfd_event_wait(&kfd, &data, 1, 0, 60000) == KFD_WAIT_COMPLETE && data.hw.memory_lost == 1 &&
		   data.hw.gpu_id == gpu->gpu_id,
	   "the process is told: memory was lost");
	ok(kfd_wait_stat(0, "resets", resets + 1, KFD_SOON) == 0, "the GPU was reset, once");
	kfd_put(&sdma, kfd_sdma_fence(word, 0xdead));
	kfd_dispatch(&aql, 1, MS, s);
	ok(kfd_wait(s, 200 * MS) == -ETIMEDOUT && *word != 0xdead, "its queues do not come back");
	ok(kfd_queue_destroy(&aql) == 0 && kfd_queue_destroy(&sdma) == 0, "but they can be destroyed");
}

static void a_queue_that_does_not_let_go(void)
{
	int64_t resets = kfd_stat(0, "resets");
	uint32_t event;
	int r;

	if (!begins())
		return;
	event = new_exception_event(KFD_EVENT_HW_EXCEPTION);
	kfd_dispatch(&aql, 8, LONG, NULL);
	kfd_sleep(50 * MS);
	ok(kfd_fault(0, "no-preempt") == 0, "a queue is not to let go");
	r = kfd_queue_update(&aql, 0, 7);
	ok(r == -EACCES, "UPDATE_QUEUE says that it will be reset: EACCES (%d)", r);
	the_process_is_told_of_the_reset(event, resets);
}

static void a_hiq_that_hangs(void)
{
	int64_t resets = kfd_stat(0, "resets");
	uint64_t start, took;
	uint32_t event;
	int r;

	if (!begins())
		return;
	event = new_exception_event(KFD_EVENT_HW_EXCEPTION);
	kfd_dispatch(&aql, 8, LONG, NULL);
	kfd_sleep(50 * MS);
	ok(kfd_fault(0, "hung-hiq") == 0, "the HIQ is read no more");
	start = kfd_now();
	r = kfd_queue_update(&aql, 0, 7);
	took = kfd_now() - start;
	ok(r == -EACCES && took >= PATIENCE - 100 * MS,
	   "UPDATE_QUEUE gives up when the driver does: %llu ms, EACCES (%d)",
	   (unsigned long long)(took / MS), r);
	the_process_is_told_of_the_reset(event, resets);
}

/* The fault meets a process that only exits. */
static void a_process_is_killed(const char *fault)
{
	int64_t resets = kfd_stat(0, "resets");
	pid_t pid = another_process();

	ok(pid > 0 && kfd_fault(0, fault) == 0, "%s meets a process that runs", fault);
	ok(end_process(pid), "it is killed");
	ok(kfd_wait_stat(0, "resets", resets + 1, KFD_SOON) == 0, "the GPU is reset");
}

static void a_page_fault(void)
{
	struct kfd_event_data data;
	struct kfd_signal *s;
	char fault[64];

	if (!begins())
		return;
	data = (struct kfd_event_data){ .event_id = new_exception_event(KFD_EVENT_MEMORY) };
	s = new_signal();
	kfd_dispatch(&aql, 1, MS, s);
	ok(kfd_wait(s, KFD_SOON) == 0, "its queues are on the GPU");
	snprintf(fault, sizeof(fault), "vm-fault %d 0x7f0123456789", (int)kfd_proc_value(getpid(), "pasid"));
	ok(kfd_fault(0, fault) == 0, "the process has a page fault");
	ok(kfd_event_wait(&kfd, &data, 1, 0, 60000) == KFD_WAIT_COMPLETE && data.memory.gpu_id == gpu->gpu_id,
	   "it is told");
	ok(data.memory.va == 0x7f0123456000 && data.memory.not_present,
	   "also which page was not there (0x%llx)", (unsigned long long)data.memory.va);
	s = new_signal();
	kfd_dispatch(&aql, 1, MS, s);
	ok(kfd_wait(s, 300 * MS) == -ETIMEDOUT, "its queues stand still");
	ok(kfd_queue_destroy(&aql) == 0 && kfd_queue_destroy(&sdma) == 0, "but can be destroyed");
}

static void a_page_fault_is_its_process_s_own(void)
{
	pid_t pid = another_process();

	ok(pid > 0 && kfd_wait_stat(0, "mapped", 3, KFD_SOON) == 0, "somebody else runs");
	tap_in_child(a_page_fault);
	ok(kfd_wait_stat(0, "mapped", 3, KFD_SOON) == 0 && kfd_stat(0, "resets") == 0,
	   "and goes on, on the same GPU");
	ok(end_process(pid), "until it is killed");
	ok(kfd_fault(0, "vm-fault 12345 0x1000") == -ESRCH, "a process that has no queue has no page fault");
}

static void resets_of_an_idle_gpu(void)
{
	int64_t resets = kfd_stat(0, "resets");

	for (int i = 1; i <= 5; i++)
		if (kfd_fault(0, "reset") < 0 || kfd_wait_stat(0, "resets", resets + i, KFD_SOON) < 0)
			break;
	ok(kfd_stat(0, "resets") == resets + 5, "an idle GPU is reset five times");
}

static void a_reset_of_a_busy_gpu(void)
{
	int64_t resets = kfd_stat(0, "resets");
	uint32_t event;

	if (!begins())
		return;
	event = new_exception_event(KFD_EVENT_HW_EXCEPTION);
	kfd_dispatch(&aql, 8, LONG, NULL);
	kfd_sleep(50 * MS);
	ok(kfd_fault(0, "reset") == 0, "the GPU is reset while it runs");
	the_process_is_told_of_the_reset(event, resets);
}

/* Calls that meet a reset may fail, each in its own way; they must return. */
static void call_and_call(void)
{
	uint64_t end = kfd_now() + 4 * SECOND;
	int n = 0, failed = 0;

	if (begin() < 0)
		_exit(1);
	while (kfd_now() < end) {
		struct kfd_queue q;

		failed += kfd_queue_update(&aql, n % 2 ? 100 : 0, 7) < 0;
		if (kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &q) < 0)
			failed++;
		else
			failed += kfd_queue_destroy(&q) < 0;
		n++;
	}
	_exit(n > failed ? 0 : 2);
}

static void resets_in_the_midst_of_calls(void)
{
	int64_t resets = kfd_stat(0, "resets");
	int status, good = 0;
	pid_t pids[3];

	for (int i = 0; i < 3; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			call_and_call();
	}
	for (int i = 0; i < 4; i++) {
		kfd_sleep(700 * MS);
		kfd_fault(0, "reset");
	}
	for (int i = 0; i < 3; i++)
		good += waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status);
	ok(good == 3, "resets in the midst of three processes' calls: all return (%d)", good);
	ok(kfd_stat(0, "resets") >= resets + 4, "there were four or more");
}

static void send_impossible_dispatches(void)
{
	struct kfd_signal *s;
	uint32_t *packet;

	if (!begins())
		return;
	s = new_signal();
	packet = aql.ring.addr;
	kfd_dispatch(&aql, 1, MS, s);
	ok(kfd_wait(s, KFD_SOON) == 0, "a dispatch runs");
	packet += 16;
	memset(packet, 0, 64);
	packet[1] = 0x20002000; /* 8192 x 8192 x 4096 work-items in a group */
	packet[2] = 0x1000;
	packet[3] = packet[4] = packet[5] = 0xffffffff;
	__atomic_store_n(packet, 3u << 16 | 2 | 1 << 8, __ATOMIC_RELEASE);
	aql.written++;
	*aql.wptr = aql.written;
	*aql.doorbell = aql.written;
	s = new_signal();
	kfd_dispatch(&aql, 1, MS, s);
	ok(kfd_wait(s, 200 * MS) == -ETIMEDOUT, "one that no hardware could run stops its queue");
	kfd_put(&sdma, kfd_sdma_fence(word, 1));
	ok(kfd_wait_value(word, 1, KFD_SOON) == 0, "no other");
	ok(kfd_queue_destroy(&aql) == 0 && kfd_queue_destroy(&sdma) == 0, "the queues are destroyed");
}

int main(void)
{
	ok(kfd_fault(0, "earthquake") == -EINVAL, "a fault that is none is refused");
	tap_in_child(a_slow_save_takes_its_time);
	the_device_works();
	tap_in_child(send_impossible_dispatches);
	the_device_works();
	a_page_fault_is_its_process_s_own();
	the_device_works();
	tap_in_child(a_queue_that_does_not_let_go);
	the_device_works();
	tap_in_child(a_hiq_that_hangs);
	the_device_works();
	a_process_is_killed("hung-hiq");
	the_device_works();
	a_process_is_killed("no-preempt");
	the_device_works();
	resets_of_an_idle_gpu();
	the_device_works();
	tap_in_child(a_reset_of_a_busy_gpu);
	the_device_works();
	resets_in_the_midst_of_calls();
	the_device_works();
	return tap_done();
}
