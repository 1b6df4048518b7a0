// SPDX-License-Identifier: MIT
/* bed: timeout=120 param=cus=4 */
/*
 * What the software GPU says each process has had of it (debugfs, "processes"): exactly the waves it gave
 * it times their length, however often it was stopped, and nothing of the process that had its PASID before.
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define WAVES 4 /* of a workgroup */

struct work {
	uint32_t dispatches, workgroups;
	uint64_t wave_ns;
	int stops; /* by UPDATE_QUEUE, meanwhile */
};

struct child {
	pid_t pid;
	int64_t pasid; /* it says so itself */
	int done, go[2];
};

static int stop_and_start(struct kfd_queue *q, int times)
{
	int r = 0;

	for (int i = 0; i < times && r == 0; i++) {
		kfd_sleep(5 * MS);
		r = kfd_queue_update(q, 0, 7);
		if (r == 0)
			r = kfd_queue_update(q, 100, 7);
	}
	return r;
}

static int do_work(struct child *me, const struct work *work)
{
	struct kfd_signal *s;
	struct kfd_queue q;
	struct kfd_mem mem;
	struct kfd k;
	char byte;

	if (kfd_open(&k) < 0 || kfd_alloc(&k, &k.gpus[0], 4096, &mem) < 0 ||
	    kfd_queue_create(&k, &k.gpus[0], KFD_TYPE_AQL, 7, &q) < 0)
		return 1;
	me->pasid = kfd_proc_value(getpid(), "pasid");
	s = mem.addr;
	s->value = work->dispatches;
	for (uint32_t i = 0; i < work->dispatches; i++)
		kfd_dispatch(&q, work->workgroups, work->wave_ns, s);
	if (stop_and_start(&q, work->stops) < 0 || kfd_wait(s, 60 * SECOND) < 0)
		return 2;
	__atomic_store_n(&me->done, 1, __ATOMIC_RELEASE);
	return read(me->go[0], &byte, 1) == 1 ? 0 : 3;
}

static void start(struct child *c, const struct work *work)
{
	pid_t pid;

	*c = (struct child){ .pasid = -1 };
	if (pipe(c->go) < 0)
		return;
	pid = fork();
	if (pid == 0)
		_exit(do_work(c, work));
	c->pid = pid;
}

static int is_done(const struct child *c)
{
	for (int i = 0; i < 6000 && !__atomic_load_n(&c->done, __ATOMIC_ACQUIRE); i++)
		kfd_sleep(10 * MS);
	return c->done;
}

static int let_end(struct child *c)
{
	int status;

	return write(c->go[1], "x", 1) == 1 && waitpid(c->pid, &status, 0) == c->pid && status == 0;
}

static int64_t wave_ns(const struct work *w)
{
	return (int64_t)(w->dispatches * w->workgroups * WAVES * w->wave_ns);
}

static void two_at_once(struct child *c, const char *name, int stops)
{
	/* Three times the work, in pieces of another shape; together more than the device holds. */
	const struct work some = { 10, 32, 80 * MS, stops }, more = { 6, 80, 160 * MS, stops };
	int64_t saves = kfd_stat(0, "saves");

	start(&c[0], &some);
	start(&c[1], &more);
	ok(is_done(&c[0]) && is_done(&c[1]), "two processes have done their work, %s", name);
	ok(c[0].pasid > 0 && c[0].pasid != c[1].pasid, "they have PASIDs of their own");
	ok(kfd_stat(0, "saves") - saves >= stops, "waves were saved meanwhile, %lld times",
	   (long long)(kfd_stat(0, "saves") - saves));
	ok(kfd_busy(0, c[0].pasid) == wave_ns(&some), "the first had what it gave (%lld wave-ns)",
	   (long long)kfd_busy(0, c[0].pasid));
	ok(kfd_busy(0, c[1].pasid) == wave_ns(&more), "the second, too: three times as much (%lld)",
	   (long long)kfd_busy(0, c[1].pasid));
	ok(let_end(&c[0]) && let_end(&c[1]), "they end");
	ok(kfd_busy(0, c[0].pasid) == wave_ns(&some) && kfd_busy(0, c[1].pasid) == wave_ns(&more),
	   "that stays when they have ended");
}

static void a_new_process_begins_at_nothing(struct child *c, int64_t before)
{
	const struct work little = { 1, 1, MS, 0 };

	start(c, &little);
	ok(is_done(c) && c->pasid == before, "a new process has the PASID of one that ended");
	ok(kfd_busy(0, c->pasid) == wave_ns(&little), "but not its time (%lld wave-ns)",
	   (long long)kfd_busy(0, c->pasid));
	ok(let_end(c), "it ends");
}

static void what_runs_counts_while_it_runs(struct child *c)
{
	const struct work once = { 1, 8, 2 * SECOND, 0 };
	int64_t had, later;

	start(c, &once);
	for (int i = 0; i < 6000 && kfd_busy(0, c->pasid) <= 0; i++)
		kfd_sleep(10 * MS);
	had = kfd_busy(0, c->pasid);
	kfd_sleep(100 * MS);
	later = kfd_busy(0, c->pasid);
	ok(had > 0 && later > had && later <= wave_ns(&once), "a dispatch counts while it runs");
	ok(is_done(c) && kfd_busy(0, c->pasid) == wave_ns(&once), "and all of it when it has ended");
	ok(let_end(c), "the process ends");
}

int main(void)
{
	struct child *c = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (c == MAP_FAILED)
		return 1;
	ok(kfd_busy(0, 12345) == -1, "a process that has no queue has had nothing");
	two_at_once(c, "undisturbed", 0);
	two_at_once(c, "stopped again and again", 20);
	a_new_process_begins_at_nothing(c, c[0].pasid < c[1].pasid ? c[0].pasid : c[1].pasid);
	what_runs_counts_while_it_runs(c);
	return tap_done();
}
