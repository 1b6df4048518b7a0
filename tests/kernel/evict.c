// SPDX-License-Identifier: MIT
/* bed: timeout=180 param=cus=4 */
/*
 * A process whose queues are evicted, as for want of memory: nothing of it runs, nothing is lost, and it can
 * do everything else meanwhile, exit too.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define WORKGROUPS 16
#define WAVES (4 * WORKGROUPS)

static struct kfd kfd;
static struct kfd_gpu *gpu;
static struct kfd_queue queue, sdma;
static struct kfd_signal *signals;
static volatile uint32_t *word;

static int begin(void)
{
	struct kfd_mem mem;
	int r = kfd_open(&kfd);

	gpu = &kfd.gpus[0];
	if (r == 0)
		r = kfd_alloc(&kfd, gpu, 0x2000, &mem);
	if (r == 0)
		r = kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &queue);
	if (r == 0)
		r = kfd_queue_create(&kfd, gpu, KFD_TYPE_SDMA, 7, &sdma);
	if (r < 0)
		return r;
	signals = mem.addr;
	word = (volatile uint32_t *)((char *)mem.addr + 0x1000);
	return 0;
}

/* Returns when the device has begun. */
static struct kfd_signal *run(struct kfd_queue *q, int i, uint64_t wave_ns)
{
	int64_t begun = kfd_stat(0, "dispatches");

	memset(&signals[i], 0, sizeof(signals[i]));
	signals[i].value = 1;
	kfd_dispatch(q, WORKGROUPS, wave_ns, &signals[i]);
	kfd_wait_stat(0, "dispatches", begun + 1, KFD_SOON);
	return &signals[i];
}

static int64_t pasid_of(pid_t pid)
{
	return kfd_proc_value(pid, "pasid");
}

static int order(const char *what, int64_t pasid)
{
	char words[64];

	snprintf(words, sizeof(words), "%s %lld", what, (long long)pasid);
	return kfd_fault(0, words);
}

static int64_t had(void)
{
	return kfd_busy(0, pasid_of(getpid()));
}

static void nothing_runs_and_nothing_is_lost(void)
{
	const uint64_t length = 2 * SECOND;
	int64_t saves = kfd_stat(0, "saves"), restores = kfd_stat(0, "restores"), before = had(), then;
	struct kfd_signal *s = run(&queue, 0, length);

	kfd_sleep(100 * MS);
	ok(order("evict", pasid_of(getpid())) == 0, "a process that runs is evicted");
	then = had();
	ok(kfd_stat(0, "mapped") == 0 && kfd_stat(0, "active") == 0, "its queues are off the device");
	ok(kfd_stat(0, "saves") == saves + 1, "its waves are saved");
	kfd_put(&sdma, kfd_sdma_fence(word, 1));
	ok(kfd_wait(s, length + SECOND / 2) == -ETIMEDOUT && had() == then,
	   "its dispatch makes no progress (%lld wave-ns)", (long long)(then - before));
	ok(*word == 0, "nor do its copies");
	ok(order("restore", pasid_of(getpid())) == 0, "it comes back");
	ok(kfd_wait(s, KFD_SOON) == 0 && kfd_wait_value(word, 1, KFD_SOON) == 0, "both are done");
	ok(kfd_stat(0, "restores") == restores + 1 && had() - before == (int64_t)(WAVES * length),
	   "every wave went on where it was: %lld wave-ns in all", (long long)(had() - before));
}

static void evictions_nest(void)
{
	struct kfd_signal *s = run(&queue, 0, SECOND);
	int64_t me = pasid_of(getpid()), then;

	ok(order("evict", me) == 0 && order("evict", me) == 0, "a process is evicted for two reasons");
	then = had();
	ok(order("restore", me) == 0, "one of them is gone");
	ok(kfd_wait(s, SECOND + SECOND / 2) == -ETIMEDOUT && had() == then && kfd_stat(0, "mapped") == 0,
	   "it still does not run");
	ok(order("restore", me) == 0 && kfd_wait(s, KFD_SOON) == 0, "it does when the other is gone, too");
	ok(order("restore", me) == -EINVAL, "it cannot come back once more");
	ok(order("evict", 12345) == -ESRCH, "who is not there is not evicted");
}

static void stop_and_start(struct kfd_signal *s, int64_t me)
{
	ok(kfd_queue_update(&queue, 0, 7) == 0, "UPDATE_QUEUE stops a queue of it");
	ok(order("restore", me) == 0 && kfd_wait(s, 300 * MS) == -ETIMEDOUT,
	   "which does not run when the others come back");
	ok(order("evict", me) == 0 && kfd_queue_update(&queue, 100, 7) == 0 &&
		   kfd_wait(s, 300 * MS) == -ETIMEDOUT,
	   "nor when it is started in the next eviction");
}

static void everything_else_works_meanwhile(void)
{
	struct kfd_signal *s = run(&queue, 0, SECOND), *later = &signals[1];
	int64_t me = pasid_of(getpid());
	struct kfd_queue more, gone;
	struct kfd_mem mem;
	uint32_t event;

	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &gone) == 0 && order("evict", me) == 0,
	   "a process is evicted");
	ok(kfd_alloc(&kfd, gpu, 0x4000, &mem) == 0 && kfd_free(&kfd, gpu, &mem) == 0,
	   "it has memory mapped and unmapped");
	ok(kfd_event_create(&kfd, NULL, KFD_EVENT_SIGNAL, 0, &event) == 0, "it creates an event");
	ok(kfd_queue_destroy(&gone) == 0, "it destroys a queue");
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &more) == 0, "and creates one");
	memset(later, 0, sizeof(*later));
	later->value = 1;
	kfd_dispatch(&more, 1, MS, later);
	ok(kfd_wait(later, 300 * MS) == -ETIMEDOUT && kfd_stat(0, "mapped") == 0, "which does not run");
	stop_and_start(s, me);
	ok(order("restore", me) == 0 && kfd_wait(s, KFD_SOON) == 0 && kfd_wait(later, KFD_SOON) == 0,
	   "the old queue and the new one go on when it comes back");
	ok(kfd_queue_destroy(&more) == 0, "the new one is destroyed");
}

/* How a process that is evicted ends. */
enum end { BY_KILL, BY_EXIT, BY_DESTROY };

static void be_evicted(int tell, int go, enum end how)
{
	char byte;

	if (begin() < 0)
		_exit(1);
	run(&queue, 0, 1000 * SECOND);
	if (write(tell, "x", 1) != 1 || read(go, &byte, 1) != 1)
		_exit(2);
	if (how == BY_DESTROY && (kfd_queue_destroy(&queue) < 0 || kfd_queue_destroy(&sdma) < 0))
		_exit(3);
	while (how == BY_KILL)
		pause();
	_exit(0);
}

/* Soon: the driver does not wait until a queue is back on the device. */
static int is_mapped(int64_t n)
{
	return kfd_wait_stat(0, "mapped", n, KFD_SOON) == 0;
}

static void an_evicted_process_ends(enum end how, const char *name)
{
	int tell[2], go[2], status = -1;
	int64_t pasid;
	char byte;
	pid_t pid;

	if (!ok(pipe(tell) == 0 && pipe(go) == 0, "another process is started"))
		return;
	pid = fork();
	if (pid == 0)
		be_evicted(tell[1], go[0], how);
	ok(read(tell[0], &byte, 1) == 1 && is_mapped(4), "it runs, beside this one");
	pasid = pasid_of(pid);
	ok(order("evict", pasid) == 0 && is_mapped(2), "it is evicted, and this one is not");
	ok(kfd_wait(run(&queue, 0, MS), KFD_SOON) == 0, "which works meanwhile");
	ok(write(go[1], "x", 1) == 1 && (how != BY_KILL || kill(pid, SIGKILL) == 0) &&
		   waitpid(pid, &status, 0) == pid && (how == BY_KILL ? WIFSIGNALED(status) : status == 0),
	   "it %s", name);
	ok(order("restore", pasid) == -ESRCH, "nothing is left of it that could come back");
	ok(is_mapped(2) && kfd_wait(run(&queue, 0, MS), KFD_SOON) == 0, "this one works on");
	for (int i = 0; i < 2; i++) {
		close(tell[i]);
		close(go[i]);
	}
}

int main(void)
{
	int r = begin();

	if (!ok(r == 0, "a process has two queues (%d)", r))
		return tap_done();
	nothing_runs_and_nothing_is_lost();
	evictions_nest();
	everything_else_works_meanwhile();
	an_evicted_process_ends(BY_KILL, "is killed");
	an_evicted_process_ends(BY_EXIT, "exits");
	an_evicted_process_ends(BY_DESTROY, "destroys its queues and exits");
	ok(kfd_queue_destroy(&queue) == 0 && kfd_queue_destroy(&sdma) == 0, "the queues are destroyed");
	ok(kfd_stat(0, "mapped") == 0 && kfd_stat(0, "bad_restores") == 0,
	   "nothing is left, nothing was lost");
	return tap_done();
}
