/* SPDX-License-Identifier: MIT */
/*
 * Gates that gpreemptd closes, where the driver cannot stop a process's queues: clients of MPS share the
 * server's, a container may have no agent.  For each GPU it is told of one queue, which stands for all
 * streams that the process has there.  The agent's thread (agent/agent.h) runs in this library then, with a
 * table that closes gates in the place of a driver's; when gpreemptd goes, or its lease ends, it opens them.
 */
#ifndef GP_LEVEL_GATES_H
#define GP_LEVEL_GATES_H

#include "level/level.h"

/* With the engine's lock held: a queue has come. It is held if those of its GPU are. */
void gp_gates_add(struct gp_level_queue *q);
/* Without it, then: gpreemptd is looked for, unless an agent is here that has the driver's queues. */
void gp_gates_tell(void);
/* In a child after fork(). */
void gp_gates_forget(void);

#endif
