// SPDX-License-Identifier: MIT
/* bed: timeout=240 vm=own memory=3G param=cus=4 param=drain_fix=1 kmemleak=yes */
/*
 * Hostile calls by chance, on sessions of root's and of a user's, by several threads of several processes at
 * once, while queues are made, changed, debugged, evicted and destroyed and processes are killed: the kernel
 * does not complain, hang or leak, and at the end nothing is stopped.  Arguments: seconds, 60 if there are
 * none, and a seed.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define TENANTS 3
#define SCHEDULERS 2
#define PROCESSES (TENANTS + SCHEDULERS)
#define FILES 4
#define QUEUES 6
#define MOST_ENTRIES 12
#define NOBODY 65534
#define MS DBG_MS
#define SECOND DBG_SECOND

static struct {
	volatile pid_t pids[PROCESSES];
	volatile uint64_t calls, done, queues, suspends;
} * shared;

static struct dbg_client client;
static volatile int files[FILES]; /* the process's sessions, some of them closed by another thread */

static uint32_t chance(unsigned int *seed, uint32_t n)
{
	return (uint32_t)rand_r(seed) % n;
}

static uint32_t odd_value(unsigned int *seed)
{
	static const uint32_t values[] = { 0,  1,    2,    3,         7,           8,
					   40, 1024, 1025, INT32_MAX, 0x80000000u, UINT32_MAX };

	return values[chance(seed, sizeof(values) / sizeof(values[0]))];
}

/* One word of it is something else. */
static void spoil(unsigned int *seed, void *what, size_t size)
{
	uint32_t *words = what;

	words[chance(seed, (uint32_t)(size / sizeof(*words)))] = odd_value(seed);
}

static struct kfd_session_queue some_queue(unsigned int *seed, uint32_t op)
{
	uint32_t id = chance(seed, QUEUES + 2);
	struct kfd_session_queue queue =
		session_queue(shared->pids[chance(seed, PROCESSES)], id >= QUEUES ? UINT32_MAX : id,
			      op == KFD_SESSION_SET ? chance(seed, 2) : 0);

	if (chance(seed, 8) == 0)
		queue.gpu_id = client.kfd.gpus[0].gpu_id;
	if (id >= QUEUES && chance(seed, 4) == 0)
		queue.flags = KFD_SESSION_COMPUTE_ONLY;
	if (chance(seed, 40) == 0)
		spoil(seed, &queue, sizeof(queue));
	return queue;
}

static void call_by_chance(unsigned int *seed, int fd)
{
	struct kfd_session_queue queues[MOST_ENTRIES];
	uint32_t op = chance(seed, 3) ? KFD_SESSION_SET : KFD_SESSION_QUERY,
		 n = 1 + chance(seed, MOST_ENTRIES);
	struct kfd_session_args args = {
		.op = op, .set = { .queues = (uintptr_t)queues, .n = n, .queue_size = sizeof(queues[0]) }
	};

	for (uint32_t i = 0; i < n; i++)
		queues[i] = some_queue(seed, op);
	if (op == KFD_SESSION_SET && chance(seed, 8) == 0)
		args.set.grace_us = odd_value(seed);
	if (chance(seed, 10) == 0)
		spoil(seed, &args, sizeof(args));
	shared->done += session_call(fd, &args) == 0;
	shared->calls++;
}

static void open_by_chance(unsigned int *seed)
{
	struct kfd_session_args args = { .op = KFD_SESSION_CREATE };
	volatile int *slot = &files[chance(seed, FILES)];
	int old;

	if (chance(seed, 3) == 0)
		args.create.lease_ns = (1 + chance(seed, 50)) * MS;
	if (chance(seed, 10) == 0)
		spoil(seed, &args, sizeof(args));
	if (session_call(client.kfd.fd, &args) < 0)
		return;
	/* A thread may be in the midst of a call on the old one. */
	old = __atomic_exchange_n(slot, args.create.fd, __ATOMIC_ACQ_REL);
	if (old > 0)
		close(old);
}

static void *be_hostile(void *number)
{
	unsigned int seed = (unsigned int)getpid() * 31 + (unsigned int)(uintptr_t)number;

	while (1) {
		if (chance(&seed, 20) == 0)
			open_by_chance(&seed);
		call_by_chance(&seed, files[chance(&seed, FILES)]);
	}
	return NULL;
}

/* Its own queues, as a debugger.  A queue that is destroyed waits for this thread. */
static void *suspend_and_resume(void *nothing)
{
	unsigned int seed = (unsigned int)getpid();

	(void)nothing;
	while (1) {
		shared->suspends += dbg_suspend_all(&client.kfd, getpid()) > 0;
		kfd_sleep(chance(&seed, 3) * MS);
		dbg_resume_all(&client.kfd, getpid());
		kfd_sleep(chance(&seed, 3) * MS);
	}
	return NULL;
}

static void make_and_destroy(uint32_t type)
{
	struct kfd_queue q;

	if (kfd_queue_create(&client.kfd, client.gpu, type, 7, &q) == 0)
		shared->queues += kfd_queue_destroy(&q) == 0;
}

static void *change_queues(void *number)
{
	unsigned int seed = (unsigned int)getpid() * 17 + (unsigned int)(uintptr_t)number;

	while (1) {
		struct kfd_queue *old = &client.queues[chance(&seed, client.nqueues)];

		switch (chance(&seed, 4)) {
		case 0:
			kfd_queue_update(old, chance(&seed, 2) * 100, chance(&seed, 16));
			break;
		case 1:
			if (old->written - *old->rptr < 64)
				kfd_dispatch(old, 2, MS, NULL);
			break;
		case 2:
			make_and_destroy(KFD_TYPE_SDMA);
			break;
		default:
			make_and_destroy(KFD_TYPE_AQL);
		}
	}
	return NULL;
}

static void debug_itself(void)
{
	struct kfd_runtime_info info = { 0 };
	pthread_t thread;
	int wake[2];

	if (pipe2(wake, O_NONBLOCK | O_CLOEXEC) == 0 &&
	    dbg_enable(&client.kfd, getpid(), wake[1], 0, &info) == 0)
		pthread_create(&thread, NULL, suspend_and_resume, NULL);
}

static void be_tenant(int number)
{
	pthread_t thread;

	if (number == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
			    setresuid(NOBODY, NOBODY, NOBODY) < 0))
		_exit(1);
	if (dbg_client_open(&client) < 0 || dbg_runtime(&client.kfd, KFD_RUNTIME_ENABLE) < 0 ||
	    dbg_client_add(&client, 2) < 0)
		_exit(2);
	if (number == 1)
		debug_itself();
	pthread_create(&thread, NULL, be_hostile, (void *)1);
	change_queues((void *)2);
}

static void be_scheduler(void)
{
	pthread_t thread;

	if (kfd_open(&client.kfd) < 0)
		_exit(2);
	pthread_create(&thread, NULL, be_hostile, (void *)1);
	be_hostile((void *)2);
}

static void start(int number)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (number < TENANTS)
			be_tenant(number);
		be_scheduler();
	}
	shared->pids[number] = pid;
}

static int end(int number)
{
	kill(shared->pids[number], SIGKILL);
	return dbg_ends(shared->pids[number], 60 * SECOND);
}

static void evict(int number, const char *what)
{
	char words[64];

	snprintf(words, sizeof(words), "%s %lld", what,
		 (long long)kfd_proc_value(shared->pids[number], "pasid"));
	kfd_fault(0, words);
}

/* 0, or the first process that did not end. */
static int run_for(uint64_t ns, unsigned int *seed)
{
	uint64_t until = kfd_now() + ns;
	int r = 0;

	while (r == 0 && kfd_now() < until) {
		int number = (int)chance(seed, PROCESSES);

		evict(number, chance(seed, 2) ? "evict" : "restore");
		kfd_sleep(chance(seed, 20) * MS);
		if (chance(seed, 150))
			continue;
		r = end(number);
		start(number);
	}
	return r;
}

static void works(void)
{
	int fd;

	ok(dbg_client_open(&client) == 0 && dbg_client_add(&client, 1) == 0, "a new process has a queue");
	fd = session_open(&client.kfd, 0);
	dbg_client_run(&client, 0, 100 * MS);
	ok(session_all(fd, 0, KFD_SESSION_STOP) == KFD_SESSION_DONE &&
		   session_all(fd, 0, KFD_SESSION_RUN) == KFD_SESSION_DONE &&
		   dbg_client_wait(&client, 0, KFD_SOON) == 0,
	   "which is stopped, runs, and works");
}

int main(int argc, char **argv)
{
	unsigned int seed = argc > 2 ? (unsigned int)atoi(argv[2]) : 1;
	uint64_t seconds = argc > 1 ? (uint64_t)atoi(argv[1]) : 60;
	int r;

	if (session_missing())
		return 0;
	kfd_open_up();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < PROCESSES; i++)
		start(i);
	r = run_for(seconds * SECOND, &seed);
	for (int i = 0; i < PROCESSES && r == 0; i++)
		r = end(i);
	ok(r == 0, "all processes can be killed (%d)", r);
	ok(shared->done > 0 && shared->queues > 0 && shared->suspends > 0,
	   "%llu calls, of which %llu did something; %llu queues came and went, %llu times a debugger stopped them",
	   (unsigned long long)shared->calls, (unsigned long long)shared->done,
	   (unsigned long long)shared->queues, (unsigned long long)shared->suspends);
	ok(kfd_wait_stat(0, "mapped", 0, 60 * SECOND) == 0, "nothing is left on the device");
	tap_in_child(works);
	ok(kfd_stat(0, "bad_restores") == 0, "no wave came back wrong");
	return tap_done();
}
