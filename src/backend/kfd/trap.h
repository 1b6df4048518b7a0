/* SPDX-License-Identifier: MIT */
/*
 * amdkfd's debugger interface, DBG_TRAP, as far as stopping queues needs it.  Calls return
 * 0 or a count, else -errno.
 */
#ifndef GP_BACKEND_KFD_TRAP_H
#define GP_BACKEND_KFD_TRAP_H

#include "backend/kfd/uapi.h"

#define GP_TRAP_SIGNAL_US 500000 /* how often gp_trap_disable() is sent a signal */

struct gp_trap {
	int kfd;     /* /dev/kfd, opened by this process */
	int wake[2]; /* a pipe: the driver writes a byte into it for each event.  An eventfd never signals */
	uint32_t pid;
};

/* What it opens stays open until the caller's process ends. */
int gp_trap_open(struct gp_trap *t, uint32_t pid);
/* The caller must have the process ptraced, in this thread, or be it. *ret_state: KFD_RUNTIME_STATE_* */
int gp_trap_enable(struct gp_trap *t, uint32_t *ret_state);
/*
 * Resumes everything and lets go.  On gfx9.4.3 the stock driver waits in it for an
 * interrupt that never comes: signals end that, so they are sent while it lasts.
 */
int gp_trap_disable(struct gp_trap *t);
/* Takes the marks of new queues away, which could not be suspended else. How many there are. */
int gp_trap_snapshot(struct gp_trap *t, struct kfd_dbg_queue *queues, uint32_t n);
/* Put KFD_DBG_ID_* into ids they could do nothing with. */
int gp_trap_suspend(struct gp_trap *t, uint32_t *ids, uint32_t n);
int gp_trap_resume(struct gp_trap *t, uint32_t *ids, uint32_t n);
/* What happened since: KFD_EC_*, all together. */
uint64_t gp_trap_events(struct gp_trap *t);
/* The process may go on with RUNTIME_ENABLE or its end: it waits for its debugger's word. */
int gp_trap_let_runtime_go(struct gp_trap *t);

#endif
