/* SPDX-License-Identifier: MIT */
/*
 * How libgpreempt and the agent reach the engine, and the engine the agent: libgpreempt-level.so is in a
 * process only if a runtime was told to load it, so each looks for the other when it runs.
 */
#ifndef GP_LEVEL_API_H
#define GP_LEVEL_API_H

#include "level/level.h"

#define GP_LEVEL_LIBRARY "libgpreempt-level.so" /* its name, as the dynamic linker knows it */
#define GP_LEVEL_API "gpreempt_level"           /* a struct gp_level_api in it */
#define GP_LEVEL_ABI 3u

struct gp_level_api {
	uint32_t abi, reserved;
	struct gp_level_queue *(*find)(const void *stream, uint64_t ring);
	void (*put)(struct gp_level_queue *q);
	int (*hold)(struct gp_level_queue *q, uint32_t holder, uint64_t lease_ns);
	int (*let_go)(struct gp_level_queue *q, uint32_t holder);
	void (*let_all_go)(uint32_t holder);
	int (*set)(struct gp_level_queue *q, uint32_t level);
	int (*set_depth)(struct gp_level_queue *q, uint32_t most);
	int (*set_role)(struct gp_level_queue *q, uint32_t client_class, uint32_t is_manual);
	int (*sync)(struct gp_level_queue *q, uint64_t timeout_ns);
	int (*state)(struct gp_level_queue *q, struct gp_level_state *ret);
	/* Which doors are open, and of one that is shut why: "rocr: open". One line each. */
	void (*doors)(char *text, size_t size);
	/* The queue that the calling thread launched to last; NULL: there is none. To be given back by put().
	 */
	struct gp_level_queue *(*find_last)(void);
};

/* In the agent. Both may be called by any thread. */
#define GP_AGENT_RING \
	"gpreempt_agent_ring" /* uint64_t (void): of the queue that this thread created last; 0 */
#define GP_AGENT_RANG "gpreempt_agent_rang"     /* void (void): a queue has got work */
#define GP_AGENT_QUEUES "gpreempt_agent_queues" /* int (void): whether it has any, of a driver */

typedef uint64_t gp_agent_ring_fn(void);
typedef void gp_agent_rang_fn(void);
typedef int gp_agent_queues_fn(void);

#endif
