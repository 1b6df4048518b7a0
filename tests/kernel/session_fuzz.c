// SPDX-License-Identifier: MIT
/* bed: timeout=240 vm=own memory=3G param=cus=4 param=drain_fix=1 kmemleak=yes */
/*
 * Hostile calls by chance, on sessions of root's and of a user's, by several threads of several processes at
 * once, while queues are made, changed, debugged, evicted and destroyed and processes are killed: the kernel
 * does not complain, hang or leak, and at the end nothing is stopped, reserved or looked for.  Each
 * operation is called, and does what it is for now and then.  Arguments: seconds, 60 if there are none, and a
 * seed.
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

/* What a call asks for. */
enum kind { SET, DRAIN, WHOLE_GPU, QUERY, CLASS, RESERVATION, BACKGROUND, KINDS };

static struct {
	volatile pid_t pids[PROCESSES];
	volatile uint64_t calls[KINDS], done[KINDS], queues, suspends;
} * shared;

static unsigned int first_seed = 1;
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

/* As many entries as a spoilt number of them may say, so that each is in memory that is for it. */
struct call {
	struct kfd_session_args args;
	struct kfd_session_queue queues[KFD_SESSION_MAX_QUEUES];
};

static uint32_t the_gpu(void)
{
	return client.kfd.gpus[0].gpu_id;
}

static struct kfd_session_queue some_queue(unsigned int *seed, enum kind kind)
{
	uint32_t id = chance(seed, QUEUES + 2);
	struct kfd_session_queue queue =
		session_queue(shared->pids[chance(seed, PROCESSES)], id >= QUEUES ? UINT32_MAX : id,
			      kind == QUERY ? 0 : chance(seed, 2));

	if (chance(seed, 8) == 0)
		queue.gpu_id = the_gpu();
	if (id >= QUEUES && chance(seed, 4) == 0)
		queue.flags = KFD_SESSION_COMPUTE_ONLY;
	if (kind == DRAIN && queue.want == KFD_SESSION_STOP)
		queue.type = KFD_SESSION_DRAIN;
	if (chance(seed, 40) == 0)
		spoil(seed, &queue, sizeof(queue));
	return queue;
}

/* All of a GPU stands still while it is stopped: not for long. */
static struct kfd_session_queue whole_gpu(unsigned int *seed)
{
	struct kfd_session_queue queue = session_queue(0, KFD_SESSION_ALL_QUEUES,
						       chance(seed, 4) ? KFD_SESSION_RUN : KFD_SESSION_STOP);

	queue.pid = KFD_SESSION_ALL_PROCESSES;
	queue.gpu_id = the_gpu();
	queue.flags = chance(seed, 2) ? KFD_SESSION_COMPUTE_ONLY : 0;
	return queue;
}

static void make_set(unsigned int *seed, enum kind kind, struct call *call)
{
	struct kfd_session_set *set = &call->args.set;

	*set = (struct kfd_session_set){ .queues = (uintptr_t)call->queues,
					 .n = 1 + chance(seed, MOST_ENTRIES),
					 .queue_size = sizeof(call->queues[0]) };
	for (uint32_t i = 0; i < set->n; i++)
		call->queues[i] = some_queue(seed, kind);
	if (kind == WHOLE_GPU)
		call->queues[chance(seed, set->n)] = whole_gpu(seed);
	if (kind == DRAIN)
		set->timeout_ns = chance(seed, 10) * MS;
	else if (kind != QUERY && chance(seed, 8) == 0)
		set->grace_us = odd_value(seed);
}

static void make_class(unsigned int *seed, struct call *call)
{
	call->args.class = (struct kfd_session_class){ .pid = (uint32_t)shared->pids[chance(seed, PROCESSES)],
						       .class = chance(seed, 3) };
}

/* None, sometimes; and sometimes more than there is. */
static void make_reservation(unsigned int *seed, struct call *call)
{
	uint32_t online = chance(seed, 4) * 25;

	call->args.reservation = (struct kfd_session_reservation){
		.gpu_id = the_gpu(),
		.online_percent = online,
		.offline_percent = online ? chance(seed, 5) * 25 : 0,
		.period_ms = chance(seed, 2) * (10 + chance(seed, 40)),
	};
}

static void make_background(unsigned int *seed, struct call *call)
{
	call->args.background = (struct kfd_session_background){
		.gpu_id = the_gpu(),
		.enable = chance(seed, 2),
		.period_us = chance(seed, 2) * (50 + chance(seed, 2000)),
		.linger_us = chance(seed, 2000),
		.cpu_percent = chance(seed, 101),
	};
}

static void make_call(unsigned int *seed, enum kind kind, struct call *call)
{
	static const uint32_t ops[KINDS] = {
		[SET] = KFD_SESSION_SET,
		[DRAIN] = KFD_SESSION_SET,
		[WHOLE_GPU] = KFD_SESSION_SET,
		[QUERY] = KFD_SESSION_QUERY,
		[CLASS] = KFD_SESSION_SET_CLASS,
		[RESERVATION] = KFD_SESSION_SET_RESERVATION,
		[BACKGROUND] = KFD_SESSION_SET_BACKGROUND,
	};

	call->args = (struct kfd_session_args){ .op = ops[kind] };
	if (kind == CLASS)
		make_class(seed, call);
	else if (kind == RESERVATION)
		make_reservation(seed, call);
	else if (kind == BACKGROUND)
		make_background(seed, call);
	else
		make_set(seed, kind, call);
}

/* Of a stop: some queue was stopped, or let run, and not only looked for. */
static int did_something(enum kind kind, const struct call *call, int r)
{
	if (r < 0 || kind >= QUERY)
		return r == 0;
	for (uint32_t i = 0; i < MOST_ENTRIES && i < call->args.set.n; i++)
		if (call->queues[i].status == KFD_SESSION_DONE &&
		    (kind == SET || call->queues[i].type == KFD_SESSION_DRAIN ||
		     call->queues[i].pid == KFD_SESSION_ALL_PROCESSES))
			return 1;
	return 0;
}

static void call_by_chance(unsigned int *seed, int fd)
{
	static const enum kind kinds[] = { SET,   SET,   SET,   SET,         SET,        SET,   QUERY,
					   QUERY, CLASS, CLASS, RESERVATION, BACKGROUND, DRAIN, WHOLE_GPU };
	static __thread struct call call;
	enum kind kind = kinds[chance(seed, sizeof(kinds) / sizeof(kinds[0]))];

	make_call(seed, kind, &call);
	if (chance(seed, 10) == 0)
		spoil(seed, &call.args, sizeof(call.args));
	__atomic_fetch_add(&shared->done[kind], did_something(kind, &call, session_call(fd, &call.args)),
			   __ATOMIC_RELAXED);
	__atomic_fetch_add(&shared->calls[kind], 1, __ATOMIC_RELAXED);
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
	unsigned int seed =
		first_seed * 1000003 + (unsigned int)getpid() * 31 + (unsigned int)(uintptr_t)number;

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
	unsigned int seed = first_seed + (unsigned int)getpid();

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
	unsigned int seed = first_seed * 7919 + (unsigned int)getpid() * 17 + (unsigned int)(uintptr_t)number;

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

/* What debugfs says of sessions, when it says no more than that no queue is there. */
static int nothing_is_left(void)
{
	FILE *f = fopen("/sys/kernel/debug/kfd/sched", "r");
	int gpus = 0, others = 0;
	uint32_t gpu, queues;
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "gpu %u active queues %u", &gpu, &queues) == 2 && queues == 0)
			gpus++;
		else
			others++;
	}
	if (f)
		fclose(f);
	return gpus > 0 && others == 0;
}

static int nothing_is_left_soon(void)
{
	uint64_t end = kfd_now() + KFD_SOON;

	while (!nothing_is_left() && kfd_now() < end)
		kfd_sleep(100 * MS);
	return nothing_is_left() || session_file_says("/sys/kernel/debug/kfd/sched", "nothing but its GPUs");
}

static void report_calls(void)
{
	static const char *const names[KINDS] = { "stop or run", "drain",       "stop of a GPU", "look",
						  "class",       "reservation", "background" };
	uint64_t all = 0;

	for (int kind = 0; kind < KINDS; kind++) {
		ok(shared->done[kind] > 0, "%s: %llu calls, of which %llu did something", names[kind],
		   (unsigned long long)shared->calls[kind], (unsigned long long)shared->done[kind]);
		all += shared->calls[kind];
	}
	note("%llu calls in all", (unsigned long long)all);
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? (uint64_t)atoi(argv[1]) : 60;
	unsigned int seed;
	int r;

	if (session_missing())
		return 0;
	if (argc > 2)
		first_seed = (unsigned int)atoi(argv[2]);
	seed = first_seed;
	kfd_open_up();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < PROCESSES; i++)
		start(i);
	r = run_for(seconds * SECOND, &seed);
	for (int i = 0; i < PROCESSES && r == 0; i++)
		r = end(i);
	ok(r == 0, "all processes can be killed (%d)", r);
	report_calls();
	ok(shared->queues > 0 && shared->suspends > 0,
	   "%llu queues came and went, %llu times a debugger stopped them",
	   (unsigned long long)shared->queues, (unsigned long long)shared->suspends);
	ok(kfd_wait_stat(0, "mapped", 0, 60 * SECOND) == 0, "nothing is left on the device");
	ok(nothing_is_left_soon(), "nor in what sessions have done");
	tap_in_child(works);
	ok(kfd_stat(0, "bad_restores") == 0, "no wave came back wrong");
	return tap_done();
}
