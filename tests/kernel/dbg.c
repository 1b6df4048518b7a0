// SPDX-License-Identifier: MIT
#include "dbg.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* kfd_ioctl() would go on for ever: an empty event queue is EAGAIN. */
static int trap(struct kfd *k, struct kfd_dbg_args *args)
{
	int r = ioctl(k->fd, KFD_IOC_DBG_TRAP, args);

	return r < 0 ? -errno : r;
}

int dbg_runtime(struct kfd *k, uint32_t mode)
{
	struct kfd_runtime_args args = { .mode = mode };
	int r = ioctl(k->fd, KFD_IOC_RUNTIME_ENABLE, &args);

	return r < 0 ? -errno : r;
}

int dbg_enable(struct kfd *k, pid_t pid, int fd, uint64_t exceptions, struct kfd_runtime_info *ret_info)
{
	struct kfd_dbg_args args = { .pid = (uint32_t)pid,
				     .op = KFD_DBG_ENABLE,
				     .enable = { .exceptions = exceptions,
						 .info = (uintptr_t)ret_info,
						 .info_size = sizeof(*ret_info),
						 .fd = (uint32_t)fd } };

	return trap(k, &args);
}

int dbg_disable(struct kfd *k, pid_t pid)
{
	struct kfd_dbg_args args = { .pid = (uint32_t)pid, .op = KFD_DBG_DISABLE };

	return trap(k, &args);
}

int dbg_set_traps(struct kfd *k, pid_t pid, uint32_t mask, uint32_t request, uint32_t *ret_before)
{
	struct kfd_dbg_args args = { .pid = (uint32_t)pid,
				     .op = KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE,
				     .override = { .mask = mask, .request = request } };
	int r = trap(k, &args);

	*ret_before = args.override.mask;
	return r;
}

int dbg_send_runtime(struct kfd *k, pid_t pid)
{
	struct kfd_dbg_args args = { .pid = (uint32_t)pid,
				     .op = KFD_DBG_SEND_RUNTIME_EVENT,
				     .event = { .exceptions = KFD_EC_PROCESS_RUNTIME } };

	return trap(k, &args);
}

int dbg_suspend(struct kfd *k, pid_t pid, uint32_t *ids, uint32_t n, uint32_t grace, uint64_t exceptions)
{
	struct kfd_dbg_args args = {
		.pid = (uint32_t)pid,
		.op = KFD_DBG_SUSPEND_QUEUES,
		.suspend = { .exceptions = exceptions, .ids = (uintptr_t)ids, .n = n, .grace = grace }
	};

	return trap(k, &args);
}

int dbg_resume(struct kfd *k, pid_t pid, uint32_t *ids, uint32_t n)
{
	struct kfd_dbg_args args = { .pid = (uint32_t)pid,
				     .op = KFD_DBG_RESUME_QUEUES,
				     .resume = { .ids = (uintptr_t)ids, .n = n } };

	return trap(k, &args);
}

int dbg_snapshot(struct kfd *k, pid_t pid, uint64_t exceptions, struct kfd_dbg_queue *queues, uint32_t n)
{
	struct kfd_dbg_args args = { .pid = (uint32_t)pid,
				     .op = KFD_DBG_GET_QUEUE_SNAPSHOT,
				     .snapshot = { .exceptions = exceptions,
						   .buffer = (uintptr_t)queues,
						   .n = n,
						   .entry_size = queues ? sizeof(*queues) : 0 } };
	int r = trap(k, &args);

	return r < 0 ? r : (int)args.snapshot.n;
}

int dbg_query_event(struct kfd *k, pid_t pid, uint64_t clear, uint64_t *ret_exceptions)
{
	struct kfd_dbg_args args = { .pid = (uint32_t)pid,
				     .op = KFD_DBG_QUERY_DEBUG_EVENT,
				     .event = { .exceptions = clear } };
	int r = trap(k, &args);

	if (r < 0)
		return r;
	*ret_exceptions = args.event.exceptions;
	return 0;
}

int dbg_attach(struct kfd *k, pid_t pid, int fd, uint64_t exceptions)
{
	struct kfd_runtime_info info = { 0 };
	int r;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0)
		return -errno;
	r = dbg_enable(k, pid, fd, exceptions, &info);
	/* A process that is not stopped cannot be let go. */
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	waitpid(pid, NULL, __WALL);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	return r < 0 ? r : (int)info.state;
}

static int all_queues(struct kfd *k, pid_t pid, uint32_t *ids)
{
	struct kfd_dbg_queue queues[DBG_QUEUES];
	int n = dbg_snapshot(k, pid, KFD_EC_QUEUE_NEW, queues, DBG_QUEUES);

	for (int i = 0; i < n && i < DBG_QUEUES; i++)
		ids[i] = queues[i].queue_id;
	return n;
}

int dbg_suspend_all(struct kfd *k, pid_t pid)
{
	uint32_t ids[DBG_QUEUES];
	int n = all_queues(k, pid, ids);

	return n < 0 ? n : dbg_suspend(k, pid, ids, (uint32_t)n, KFD_DBG_DEFAULT_GRACE, 0);
}

int dbg_resume_all(struct kfd *k, pid_t pid)
{
	uint32_t ids[DBG_QUEUES];
	int n = all_queues(k, pid, ids);

	return n < 0 ? n : dbg_resume(k, pid, ids, (uint32_t)n);
}

int dbg_client_open(struct dbg_client *c)
{
	int r;

	memset(c, 0, sizeof(*c));
	r = kfd_open(&c->kfd);
	if (r < 0)
		return r;
	if (!c->kfd.ngpus)
		return -ENODEV;
	c->gpu = &c->kfd.gpus[0];
	r = kfd_alloc(&c->kfd, c->gpu, DBG_QUEUES * sizeof(*c->signals), &c->signal_memory);
	if (r < 0)
		return r;
	c->signals = c->signal_memory.addr;
	return 0;
}

int dbg_client_choose(struct dbg_client *c, uint32_t gpu)
{
	if (gpu >= c->kfd.ngpus)
		return -ENODEV;
	c->gpu = &c->kfd.gpus[gpu];
	/* Where they are mapped already nothing happens. */
	return kfd_map(&c->kfd, c->gpu, KFD_IOC_MAP, &c->signal_memory);
}

int dbg_client_add(struct dbg_client *c, uint32_t n)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		if (c->nqueues == DBG_QUEUES)
			return -ENOSPC;
		r = kfd_queue_create(&c->kfd, c->gpu, KFD_TYPE_AQL, 7, &c->queues[c->nqueues]);
		c->nqueues += r == 0;
	}
	return r;
}

void dbg_client_run(struct dbg_client *c, uint32_t queue, uint64_t ns)
{
	c->signals[queue].value = 1;
	kfd_dispatch(&c->queues[queue], DBG_WORKGROUPS, ns, &c->signals[queue]);
}

int dbg_client_wait(struct dbg_client *c, uint32_t queue, uint64_t timeout_ns)
{
	return kfd_wait(&c->signals[queue], timeout_ns);
}

static uint32_t running(const struct dbg_client *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->nqueues; i++)
		n += c->signals[i].value > 0;
	return n;
}

int dbg_client_stands_still(struct dbg_client *c, uint64_t ns)
{
	uint32_t before = running(c);

	kfd_sleep(ns);
	return running(c) == before;
}

int dbg_client_end(struct dbg_client *c, uint64_t timeout_ns)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < c->nqueues; i++)
		r = dbg_client_wait(c, i, timeout_ns);
	while (r == 0 && c->nqueues)
		r = kfd_queue_destroy(&c->queues[--c->nqueues]);
	return r;
}

struct dbg_peer_state {
	volatile int order, done; /* counted */
	volatile int result;
	enum dbg_order what;
	uint64_t value;
};

static void *sleep_for_ever(void *nothing)
{
	(void)nothing;
	while (1)
		pause();
	return NULL;
}

static int start_threads(uint64_t n)
{
	pthread_t thread;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = -pthread_create(&thread, NULL, sleep_for_ever, NULL);
	return r;
}

static int run_all(struct dbg_client *c, uint64_t ms)
{
	for (uint32_t i = 0; i < c->nqueues; i++)
		dbg_client_run(c, i, ms * DBG_MS);
	return 0;
}

static int wait_all(struct dbg_client *c, uint64_t ms)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < c->nqueues; i++)
		r = dbg_client_wait(c, i, ms * DBG_MS);
	return r;
}

static int update_all(struct dbg_client *c, uint32_t percent)
{
	uint64_t begin = kfd_now();
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < c->nqueues; i++)
		r = kfd_queue_update(&c->queues[i], percent, 7);
	return r < 0 ? r : (int)(kfd_now() - begin);
}

static int obey_debugger(struct dbg_client *c, enum dbg_order what, pid_t pid)
{
	int wake[2];

	switch (what) {
	case DBG_ATTACH:
		/* The driver keeps the file. */
		return pipe2(wake, O_NONBLOCK | O_CLOEXEC) < 0 ? -errno
							       : dbg_attach(&c->kfd, pid, wake[1], 0);
	case DBG_SUSPEND:
		return dbg_suspend_all(&c->kfd, pid);
	case DBG_RESUME:
		return dbg_resume_all(&c->kfd, pid);
	case DBG_CLOSE:
		return close(c->kfd.fd) < 0 ? -errno : 0;
	default:
		return -EINVAL;
	}
}

static int obey(struct dbg_client *c, enum dbg_order what, uint64_t value)
{
	switch (what) {
	case DBG_OPEN:
		return dbg_client_open(c);
	case DBG_RUNTIME_ENABLE:
		return dbg_runtime(&c->kfd, KFD_RUNTIME_ENABLE);
	case DBG_RUNTIME_DISABLE:
		return dbg_runtime(&c->kfd, 0);
	case DBG_GPU:
		return dbg_client_choose(c, (uint32_t)value);
	case DBG_CREATE:
		return dbg_client_add(c, (uint32_t)value);
	case DBG_DESTROY:
		return kfd_queue_destroy(&c->queues[--c->nqueues]);
	case DBG_UPDATE:
		return update_all(c, (uint32_t)value);
	case DBG_RUN:
		return run_all(c, value);
	case DBG_WAIT:
		return wait_all(c, value);
	case DBG_THREADS:
		return start_threads(value);
	case DBG_EXIT:
		_exit(0);
	default:
		return obey_debugger(c, what, (pid_t)value);
	}
}

static void serve(struct dbg_peer_state *state)
{
	struct dbg_client client;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (1) {
		if (state->order == state->done) {
			kfd_sleep(DBG_MS);
			continue;
		}
		state->result = obey(&client, state->what, state->value);
		__atomic_add_fetch(&state->done, 1, __ATOMIC_RELEASE);
	}
}

int dbg_peer_start(struct dbg_peer *p)
{
	void *shared =
		mmap(NULL, sizeof(*p->state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return -errno;
	p->state = shared;
	p->pid = fork();
	if (p->pid == 0)
		serve(p->state);
	return p->pid < 0 ? -errno : 0;
}

void dbg_peer_tell(struct dbg_peer *p, enum dbg_order order, uint64_t value)
{
	p->state->what = order;
	p->state->value = value;
	__atomic_add_fetch(&p->state->order, 1, __ATOMIC_RELEASE);
}

int dbg_peer_result(struct dbg_peer *p, uint64_t timeout_ns)
{
	uint64_t end = kfd_now() + timeout_ns;

	while (__atomic_load_n(&p->state->done, __ATOMIC_ACQUIRE) != p->state->order) {
		if (kfd_now() > end)
			return -ETIMEDOUT;
		kfd_sleep(DBG_MS);
	}
	return p->state->result;
}

int dbg_peer_do(struct dbg_peer *p, enum dbg_order order, uint64_t value)
{
	dbg_peer_tell(p, order, value);
	return dbg_peer_result(p, 2 * KFD_SOON); /* what it does may have a limit of its own */
}

int dbg_ends(pid_t pid, uint64_t timeout_ns)
{
	uint64_t end = kfd_now() + timeout_ns;
	int status = 0;

	/* A process that is traced may only have stopped. */
	while (waitpid(pid, &status, WNOHANG) != pid || WIFSTOPPED(status)) {
		if (kfd_now() > end)
			return -ETIMEDOUT;
		kfd_sleep(5 * DBG_MS);
	}
	return 0;
}

static int file_has(const char *path, const char *text)
{
	char line[256];
	FILE *f = fopen(path, "r");
	int found = 0;

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return found;
}

/* Of a process that ends, the first thread may be gone already, and the last one do the waiting. */
static int some_stack_has(pid_t pid, const char *function)
{
	char path[64];
	int found = 0;
	glob_t stacks;

	snprintf(path, sizeof(path), "/proc/%d/task/*/stack", pid);
	if (glob(path, 0, NULL, &stacks))
		return 0;
	for (size_t i = 0; i < stacks.gl_pathc; i++)
		found |= file_has(stacks.gl_pathv[i], function);
	globfree(&stacks);
	return found;
}

int dbg_sits_in(pid_t pid, const char *function, uint64_t timeout_ns)
{
	uint64_t end = kfd_now() + timeout_ns;

	while (!some_stack_has(pid, function)) {
		if (kfd_now() > end)
			return 0;
		kfd_sleep(10 * DBG_MS);
	}
	return 1;
}

static pthread_t first;

static void *stay(void *told)
{
	pthread_join(first, NULL);
	if (write(*(int *)told, "x", 1) != 1)
		_exit(1);
	while (1)
		pause();
	return NULL;
}

void dbg_leave_to_a_thread(int told)
{
	static int to;
	pthread_t thread;

	to = told;
	first = pthread_self();
	pthread_create(&thread, NULL, stay, &to);
	pthread_exit(NULL);
}
