// SPDX-License-Identifier: MIT
/* bed: timeout=300 vm=own memory=4G devices=2 kernel=maxcpus=1 */
/* bed: param=cus=4 param=queue_preemption_timeout_ms=60000 */
/*
 * Hundreds of sessions of one process at a time, that drain or whose leases end: the lease of another ends
 * when it is to, and what it stopped runs.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define MS DBG_MS
#define SECOND DBG_SECOND
#define MANY 600 /* more than a common workqueue of the kernel works on at a time: 512 */
#define LONG_MS 1000000
#define LEASE (2 * SECOND)
#define SAVE "slow-save 12000000000" /* longer than all that is done meanwhile */
#define ENOUGH (60 * SECOND)
/* So long that timers of 4 s end at the same time, on the one CPU before any work begins. */
#define LONG_LEASE (40 * SECOND)

static struct kfd kfd;
static struct kfd_queue queue; /* on the second GPU */
static struct dbg_peer busy;   /* on the first */
static int sessions[MANY], slow, watch;
static int first; /* the software's number of the first GPU */
static pthread_barrier_t all_drain;
static volatile int has_stopped;

static int open_many(uint64_t lease_ns)
{
	int n = 0;

	while (n < MANY && (sessions[n] = session_open(&kfd, lease_ns)) >= 0)
		n++;
	return n;
}

static void close_all(int n)
{
	for (int i = 0; i < n; i++)
		close(sessions[i]);
}

static struct kfd_session_queue on_gpu(int gpu, pid_t pid, uint32_t want)
{
	struct kfd_session_queue q = session_queue(pid, KFD_SESSION_ALL_QUEUES, want);

	q.gpu_id = kfd.gpus[gpu].gpu_id;
	return q;
}

static void *drain(void *descriptor)
{
	struct kfd_session_queue q = on_gpu(0, busy.pid, KFD_SESSION_STOP);
	struct kfd_session_args args = {
		.op = KFD_SESSION_SET,
		.set = { .queues = (uintptr_t)&q, .n = 1, .queue_size = sizeof(q), .timeout_ns = ENOUGH }
	};

	q.type = KFD_SESSION_DRAIN;
	pthread_barrier_wait(&all_drain);
	session_call(*(int *)descriptor, &args);
	return NULL;
}

static void *stop_slowly(void *nothing)
{
	(void)nothing;
	session_all(slow, busy.pid, KFD_SESSION_STOP);
	has_stopped = 1;
	return NULL;
}

/* Of the second GPU alone: the first may be waited for. */
static int second_runs(void)
{
	struct kfd_session_queue q = on_gpu(1, 0, 0);
	struct kfd_session_args args = {
		.op = KFD_SESSION_QUERY, .set = { .queues = (uintptr_t)&q, .n = 1, .queue_size = sizeof(q) }
	};

	return session_call(watch, &args) == 0 && q.state == KFD_SESSION_ACTIVE;
}

/* A session that stops the queue there, until its lease ends. */
static int stop_second(void)
{
	struct kfd_session_queue q = on_gpu(1, 0, KFD_SESSION_STOP);
	int fd = session_open(&kfd, LEASE);

	session_set(fd, &q, 1, NULL);
	return q.status == KFD_SESSION_DONE ? fd : -1;
}

static int start_many(pthread_t *threads, int n)
{
	pthread_attr_t small;
	int i;

	pthread_barrier_init(&all_drain, NULL, (unsigned int)n + 1);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (i = 0; i < n && pthread_create(&threads[i], &small, drain, &sessions[i]) == 0;)
		i++;
	return i;
}

/* While the first GPU saves nobody can look at its queues: all that drain wait there. */
static void many_drain(void)
{
	pthread_t threads[MANY], stopper;
	int n = open_many(0), fd;
	uint64_t end;

	if (!ok(n == MANY && start_many(threads, n) == n, "there are %d sessions", n))
		return;
	kfd_fault(first, SAVE);
	fd = stop_second();
	pthread_create(&stopper, NULL, stop_slowly, NULL);
	kfd_sleep(200 * MS);
	pthread_barrier_wait(&all_drain);
	end = kfd_now() + ENOUGH;
	while (!second_runs() && kfd_now() < end)
		kfd_sleep(10 * MS);
	ok(fd >= 0 && !has_stopped, "while they all drain a queue of one GPU, a lease on another ends");
	pthread_join(stopper, NULL);
	kfd_fault(first, "none");
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	ok(session_is_stopped(slow, busy.pid, 0), "and nobody has changed what was stopped before");
	close(fd);
	close_all(n);
}

static void many_leases_end(void)
{
	int n = open_many(LONG_LEASE), stale = 0, fd;
	uint64_t end;

	kfd_sleep(LONG_LEASE + 6 * SECOND);
	fd = stop_second();
	end = kfd_now() + ENOUGH;
	while (!second_runs() && kfd_now() < end)
		kfd_sleep(10 * MS);
	if (!ok(fd >= 0 && second_runs(), "after %d leases at the same time another one ends", n))
		return;
	for (int i = 0; i < n; i++)
		stale += session_state(sessions[i], 0, 0) == -ESTALE;
	ok(n == MANY && stale == n, "and so have all of these (%d)", stale);
	close(fd);
	close_all(n);
}

/* The other has the only queue that there is. */
static int find_first(void)
{
	uint64_t end = kfd_now() + ENOUGH;

	while (kfd_now() < end)
		for (int i = 0; i < 2; i++)
			if (kfd_stat(i, "mapped") == 1)
				return !i;
	return -ENODEV;
}

int main(void)
{
	struct rlimit files = { 4096, 4096 };
	int r;

	if (session_missing())
		return 0;
	setrlimit(RLIMIT_NOFILE, &files);
	r = kfd_open(&kfd);
	if (r == 0)
		r = kfd_queue_create(&kfd, &kfd.gpus[1], KFD_TYPE_AQL, 7, &queue);
	first = find_first();
	if (r == 0)
		r = session_peer(&busy, 1, LONG_MS);
	slow = session_open(&kfd, 0);
	watch = session_open(&kfd, 0);
	if (!ok(r == 0 && slow >= 0 && watch >= 0, "there are a busy process and another (%d)", r))
		return tap_done();
	many_drain();
	many_leases_end();
	return tap_done();
}
