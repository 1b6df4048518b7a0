/* SPDX-License-Identifier: MIT */
/*
 * The thread that talks to gpreemptd on behalf of a process with GPU queues.  It sleeps
 * unless there is something to do; without a daemon that is to look for one now and then.
 * Nothing here prints, ends the process, or keeps the application waiting; whatever fails,
 * the queues run.
 *
 *   ALONE --connected, HELLO--> GREETING --WELCOME, QUEUEs--> AT WORK
 *     ^                             |                            |
 *     '---- resume everything ------+-- the connection ends, ----'
 *           wait 0.2 to 5 s             is stuck for a second, or the lease ends
 */
#ifndef GP_AGENT_AGENT_H
#define GP_AGENT_AGENT_H

#include "wire/environment.h"
#include "backend/own.h"

/* Once, before anything else: GPREEMPT_SOCKET, XDG_RUNTIME_DIR and GPREEMPT_WAYS. */
void gp_agent_configure(void);
/* The application created a queue. Starts the thread if this process has none; who: what its
 * environment says now. May be called by any thread; in a child that was not made by fork() it does nothing.
 */
void gp_agent_created(const struct gp_own_ops *ops, struct gp_own *own, const struct gp_claim *who);
/* For gp_own_ops.make(). */
void gp_agent_wake(void *unused);
/* A queue has got work, says a door in this process. From now on queues without any are not looked at, but
 * now and then: a ring wakes the thread. */
void gp_agent_rang(void);
/* In a child after fork(): the thread and its connection are the parent's. Takes no lock. */
void gp_agent_forget(void);

#endif
