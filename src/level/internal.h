/* SPDX-License-Identifier: MIT */
/* What the engine's files share. */
#ifndef GP_LEVEL_INTERNAL_H
#define GP_LEVEL_INTERNAL_H

#include <pthread.h>

#include "base/time.h"
#include "level/level.h"

#define GP_LEVEL_WAIT_NS GP_MS /* unless GPREEMPT_LEVEL_WAIT says another */
#define GP_LEVEL_LEAST_WAIT_NS (10 * GP_US)
#define GP_LEVEL_MOST_WAIT_NS GP_S     /* the engine takes what is in flight for longer as stuck */
#define GP_LEVEL_CHUNK_NS (10 * GP_MS) /* the longest sleep in a runtime: the queue may have gone */

struct gp_engine {
	pthread_mutex_t lock;
	struct gp_list queues;
	uint32_t changes;    /* a futex: something has changed, for whoever waits for that */
	uint32_t is_awake;   /* the thread is there */
	uint32_t is_foreign; /* in a child after fork(): the queues are the parent's */
	uint64_t serials;    /* of queues, so far */
	uint64_t wait_ns;    /* what a launch of others may wait for those in flight */
};

extern struct gp_engine gp_engine;

uint64_t gp_level_now(void);
void gp_engine_lock(void);
void gp_engine_unlock(void);
/* Whoever sleeps in gp_engine_sleep() looks again. */
void gp_engine_changed(void);
/* Sleeps while changes is what it was, or so long; or less long. */
void gp_engine_sleep(uint32_t changes, uint64_t ns);

/* With the lock held: users has one less. */
void gp_engine_put(struct gp_level_queue *q);
/* With it: the queue is, or is not, held by this one. */
void gp_engine_mark(struct gp_level_queue *q, uint32_t holder, int is_held);
/* The same, until then. -ENODEV, -ENOTSUP: as gp_level_hold(). */
int gp_engine_hold(struct gp_level_queue *q, uint32_t holder, uint64_t end_ns);
/* With it: a call of ops follows that is made without it; gp_engine_leave() then. -ENODEV: the queue is gone.
 */
int gp_engine_enter(struct gp_level_queue *q);
void gp_engine_leave(struct gp_level_queue *q);
/* Whether nothing has gone on since then, for so long that what is in flight may wait for the program, which
 * is kept here; and from then on until something does. stuck: 0 at first. */
int gp_engine_is_stuck(uint64_t *stuck, uint64_t progress, uint64_t since_ns);
int gp_engine_has_ended(const struct gp_level_queue *q);
/* Without it: what it may release is released. */
void gp_engine_release(struct gp_level_queue *q);

/* arbiter.c. -errno: there is no thread, and nothing may be held. */
int gp_arbiter_start(void);
/* With the lock held: whom the engine holds, and since when an online queue has no work. */
void gp_arbiter_look(uint64_t now_ns);

#endif
