// SPDX-License-Identifier: MIT
#include "backend/kfd/trap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#define EVENTS (KFD_EC_QUEUE_NEW | KFD_EC_DEVICE_QUEUE_DELETE | KFD_EC_PROCESS_RUNTIME)
#define MOST_EVENTS 4096 /* to be asked for in a row */
#define DISABLE_TRIES 20

static int call(struct gp_trap *t, uint32_t op, struct kfd_dbg_args *args)
{
	int r;

	args->pid = t->pid;
	args->op = op;
	r = ioctl(t->kfd, KFD_IOC_DBG_TRAP, args);
	return r < 0 ? -errno : r;
}

int gp_trap_open(struct gp_trap *t, uint32_t pid)
{
	int r;

	*t = (struct gp_trap){ .pid = pid };
	t->kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (t->kfd < 0)
		return -errno;
	if (pipe2(t->wake, O_NONBLOCK | O_CLOEXEC) == 0)
		return 0;
	r = -errno;
	close(t->kfd);
	return r;
}

int gp_trap_enable(struct gp_trap *t, uint32_t *ret_state)
{
	struct kfd_runtime_info info = { 0 };
	struct kfd_dbg_args args = { .enable = { .exceptions = EVENTS,
						 .info = (uintptr_t)&info,
						 .info_size = sizeof(info),
						 .fd = (uint32_t)t->wake[1] } };
	int r = call(t, KFD_DBG_ENABLE, &args);

	if (r < 0)
		return r;
	*ret_state = info.state;
	return 0;
}

static void nothing(int sig)
{
	(void)sig;
}

/* Without SA_RESTART: the wait is to end. */
static void ring(long us)
{
	struct sigaction action = { .sa_handler = nothing };
	struct itimerval every = { { 0, us }, { 0, us } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

int gp_trap_disable(struct gp_trap *t)
{
	struct kfd_dbg_args args = { 0 };
	int r;

	ring(GP_TRAP_SIGNAL_US);
	for (int i = 0; i < DISABLE_TRIES; i++) {
		r = call(t, KFD_DBG_DISABLE, &args);
		if (r != -EINTR)
			break;
	}
	ring(0);
	return r;
}

int gp_trap_snapshot(struct gp_trap *t, struct kfd_dbg_queue *queues, uint32_t n)
{
	struct kfd_dbg_args args = { .snapshot = { .exceptions = KFD_EC_QUEUE_NEW,
						   .buffer = (uintptr_t)queues,
						   .n = n,
						   .entry_size = sizeof(*queues) } };
	int r = call(t, KFD_DBG_GET_QUEUE_SNAPSHOT, &args);

	if (r < 0)
		return r;
	return (int)(args.snapshot.n < n ? args.snapshot.n : n);
}

int gp_trap_suspend(struct gp_trap *t, uint32_t *ids, uint32_t n)
{
	struct kfd_dbg_args args = {
		.suspend = { .ids = (uintptr_t)ids, .n = n, .grace = KFD_DBG_DEFAULT_GRACE }
	};

	return call(t, KFD_DBG_SUSPEND_QUEUES, &args);
}

int gp_trap_resume(struct gp_trap *t, uint32_t *ids, uint32_t n)
{
	struct kfd_dbg_args args = { .resume = { .ids = (uintptr_t)ids, .n = n } };

	/* Of a list with nothing in it the driver would take all queues. */
	return n ? call(t, KFD_DBG_RESUME_QUEUES, &args) : 0;
}

uint64_t gp_trap_events(struct gp_trap *t)
{
	struct kfd_dbg_args args;
	uint64_t all = 0;
	char bytes[64];

	while (read(t->wake[0], bytes, sizeof(bytes)) > 0)
		;
	for (int i = 0; i < MOST_EVENTS; i++) {
		args = (struct kfd_dbg_args){ .event = { .exceptions = EVENTS } };
		if (call(t, KFD_DBG_QUERY_DEBUG_EVENT, &args) < 0)
			break;
		all |= args.event.exceptions;
	}
	return all;
}

int gp_trap_let_runtime_go(struct gp_trap *t)
{
	struct kfd_dbg_args args = { .event = { .exceptions = KFD_EC_PROCESS_RUNTIME } };

	return call(t, KFD_DBG_SEND_RUNTIME_EVENT, &args);
}
