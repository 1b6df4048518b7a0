/* SPDX-License-Identifier: MIT */
/*
 * amdkfd's debugger interface, and processes to use it on.  Calls return 0 or a count,
 * else -errno; none is repeated after a signal.
 */
#ifndef GP_TESTS_KERNEL_DBG_H
#define GP_TESTS_KERNEL_DBG_H

#include <sys/types.h>

#include "kfd.h"

#define DBG_MS 1000000ull
#define DBG_SECOND (1000 * DBG_MS)
#define DBG_QUEUES 24
#define DBG_SOON_MS (KFD_SOON / DBG_MS)
#define DBG_WORKGROUPS 4

/* mode: KFD_RUNTIME_ENABLE, or 0 to end it. */
int dbg_runtime(struct kfd *k, uint32_t mode);

int dbg_enable(struct kfd *k, pid_t pid, int fd, uint64_t exceptions, struct kfd_runtime_info *ret_info);
int dbg_disable(struct kfd *k, pid_t pid);
/* Of the exceptions in request those in mask trap from now on; which of all did before. */
int dbg_set_traps(struct kfd *k, pid_t pid, uint32_t mask, uint32_t request, uint32_t *ret_before);
int dbg_send_runtime(struct kfd *k, pid_t pid); /* EC_PROCESS_RUNTIME: lets it go on */
/* Put KFD_DBG_ID_ bits into the ids. */
int dbg_suspend(struct kfd *k, pid_t pid, uint32_t *ids, uint32_t n, uint32_t grace, uint64_t exceptions);
int dbg_resume(struct kfd *k, pid_t pid, uint32_t *ids, uint32_t n);
/* Returns how many queues there are, which may be more than n. */
int dbg_snapshot(struct kfd *k, pid_t pid, uint64_t exceptions, struct kfd_dbg_queue *queues, uint32_t n);
/* ret_exceptions: raised ones of one queue, device or process. */
int dbg_query_event(struct kfd *k, pid_t pid, uint64_t clear, uint64_t *ret_exceptions);

/* Seizes a process, enables and lets it go: the driver remembers who did it.  KFD_RUNTIME_STATE_. */
int dbg_attach(struct kfd *k, pid_t pid, int fd, uint64_t exceptions);
/* All queues that the process has, new ones too; how many. */
int dbg_suspend_all(struct kfd *k, pid_t pid);
int dbg_resume_all(struct kfd *k, pid_t pid);

/* A process's queues, AQL all of them, and a signal for each. */
struct dbg_client {
	struct kfd kfd;
	struct kfd_gpu *gpu; /* for new queues */
	struct kfd_mem signal_memory;
	struct kfd_signal *signals;
	uint32_t nqueues;
	struct kfd_queue queues[DBG_QUEUES];
};

int dbg_client_open(struct dbg_client *c);
/* New queues are on the GPU of that number from now on. */
int dbg_client_choose(struct dbg_client *c, uint32_t gpu);
int dbg_client_add(struct dbg_client *c, uint32_t n);
/* Work for a queue, whose signal goes down after it. */
void dbg_client_run(struct dbg_client *c, uint32_t queue, uint64_t ns);
int dbg_client_wait(struct dbg_client *c, uint32_t queue, uint64_t timeout_ns);
/* Whether none of the queues' signals goes down in that time. */
int dbg_client_stands_still(struct dbg_client *c, uint64_t ns);
int dbg_client_end(struct dbg_client *c, uint64_t timeout_ns); /* all of them, and destroys them */

/* Another process with queues of its own, that does as it is told. */
enum dbg_order {
	DBG_NOTHING,
	DBG_OPEN, /* the driver */
	DBG_RUNTIME_ENABLE,
	DBG_RUNTIME_DISABLE,
	DBG_GPU,     /* the GPU of that number is for new queues */
	DBG_CREATE,  /* so many queues */
	DBG_DESTROY, /* the last queue */
	DBG_UPDATE,  /* all queues to so many percent, one after the other; ns that took */
	DBG_RUN,     /* on each queue, for so many ms */
	DBG_WAIT,    /* for all of them, so many ms at most */
	DBG_THREADS, /* so many more */
	DBG_EXIT,    /* with its queues as they are */
	/* As a debugger, of the process of that number. */
	DBG_ATTACH,
	DBG_SUSPEND, /* all queues; how many */
	DBG_RESUME,
	DBG_CLOSE, /* its own file of the driver */
};

struct dbg_peer_state; /* shared with it */

struct dbg_peer {
	pid_t pid;
	struct dbg_peer_state *state;
};

int dbg_peer_start(struct dbg_peer *p);
void dbg_peer_tell(struct dbg_peer *p, enum dbg_order order, uint64_t value);
/* What came of the last order, or -ETIMEDOUT. */
int dbg_peer_result(struct dbg_peer *p, uint64_t timeout_ns);
int dbg_peer_do(struct dbg_peer *p, enum dbg_order order, uint64_t value); /* both */
/* 0 when it has ended, else -ETIMEDOUT. */
int dbg_ends(pid_t pid, uint64_t timeout_ns);

/* Ends the calling thread, its process's first; another stays, and says so by a byte. */
void dbg_leave_to_a_thread(int told);

/* Whether a thread of the process waits in that kernel function, within the time. */
int dbg_sits_in(pid_t pid, const char *function, uint64_t timeout_ns);

#endif
