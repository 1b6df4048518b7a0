/* SPDX-License-Identifier: MIT */
/*
 * Levels: how queues of the process we are in are held at a launch, by standing in their runtime's own door.
 *
 * Lv1, throttle: so many launches are in flight, and no more.  Lv2, gate: before each launch the queue itself
 * waits for a flag.  Lv3 is not done here: backend/.  A door (door.h) brings a runtime; it is the engine that
 * knows whose turn it is.  Who holds a queue:
 *
 *   the program, by gp_stream_*; gpreemptd, through the agent; and the engine itself, which holds the offline
 *   queues of a device while an online one of the same process has work there
 *
 * A held queue goes on when the last has let go, or its lease has ended; and when anything here fails.
 * Nothing prints, ends the process, or keeps a launch for longer than the lease.  Any thread may call.
 */
#ifndef GP_LEVEL_LEVEL_H
#define GP_LEVEL_LEVEL_H

#include <gpreempt/gpreempt.h>

#include "base/list.h"
#include "level/depth.h"
#include "level/door.h"

enum gp_holder { GP_HOLDER_PROGRAM, GP_HOLDER_DAEMON, GP_HOLDER_ENGINE, GP_HOLDERS };

struct gp_level_queue {
	struct gp_list link;
	const struct gp_door_ops *ops;
	void *door;      /* the door's own */
	uint64_t serial; /* no other queue of the process has had it; from 1 */
	struct gp_door_queue is;
	uint32_t users; /* the door, while the queue is there, and who has it by gp_level_find() */
	uint32_t calls; /* of ops, that are made without the lock */
	uint32_t is_gone;

	/* Under the engine's lock. */
	uint32_t client_class; /* enum gp_class: unknown is left alone */
	uint32_t levels;       /* that it can have: bits, 1 << enum gp_level */
	uint32_t wanted;       /* the one that it would have if it could */
	uint32_t level;        /* enum gp_level: of the first two; NONE: left alone */
	uint32_t held;         /* bits, 1 << enum gp_holder */
	uint64_t lease_end_ns[GP_HOLDERS];
	uint64_t held_ns, slice_end_ns; /* by the engine: since when, and until when not */
	uint64_t idle_ns;               /* of an online queue: since when */
	uint64_t kept_ns;               /* its runtime takes no launch: since when, */
	uint64_t taken;                 /* and how many it had taken then */
	uint32_t most;                  /* in flight, as it was set; 0: by what is measured */
	uint32_t is_manual;             /* the engine does not hold it, and holds none for it */
	uint32_t is_counted;            /* whatever else it is */
	uint32_t was_held;              /* since its role was set */
	struct gp_depth depth;

	/* Without it. */
	uint64_t begun;   /* launches */
	uint32_t adds;    /* what gp_level_launch() returns, GP_ADD_* */
	uint32_t is_busy; /* of an online queue */
	uint64_t stuck;   /* 1 more than had ended when nothing went on any more; 0: it does */
};

struct gp_level_state {
	const char *door;
	uint32_t levels;       /* that it can have now: bits, 1 << enum gp_level */
	uint32_t door_levels;  /* that it may have again */
	uint32_t client_class; /* as the door says */
	uint32_t reserved;
	uint64_t ring;
	uint32_t level, wanted, held, depth;
	uint64_t begun, ended, length_ns;
};

/* For doors */

/* A queue has come; NULL: it is not looked after. */
struct gp_level_queue *gp_level_add(const struct gp_door_ops *ops, void *door,
				    const struct gp_door_queue *is);
/* It goes: it is let go, and none of ops is called when this has returned. */
void gp_level_remove(struct gp_level_queue *q);

#define GP_ADD_COUNT (1u << 0) /* see to it that ended() counts these launches */
#define GP_ADD_GATE (1u << 1)  /* put a gate before each */
#define GP_ADD_WAIT (1u << 2)  /* of doors that have release(): they begin when that says so */
#define GP_ADD_HELD (1u << 3)  /* and not before it says so again */

/* n launches follow: what the door must add to each. May wait, but for doors that have release(). */
uint32_t gp_level_launch(struct gp_level_queue *q, uint32_t n);
/* Of doors that have release(): a launch has begun or ended, and another may begin. */
void gp_level_ended(struct gp_level_queue *q);
/* Of its door's levels it can have these from now on. One that is at another goes to the highest below, with
 * all who hold it, and back as soon as it can. */
void gp_level_limit(struct gp_level_queue *q, uint32_t levels);
/* The program has told the runtime something else of the queue: enum gp_class. */
void gp_level_set_class(struct gp_level_queue *q, uint32_t client_class);

/* For everybody else */

/* By the program's handle of it, or by its ring; to be given back by gp_level_put(). NULL: there is none. */
struct gp_level_queue *gp_level_find(const void *stream, uint64_t ring);
/* The one that this thread launched to last, the same. */
struct gp_level_queue *gp_level_find_last(void);
void gp_level_put(struct gp_level_queue *q);

/* lease_ns 0: until it is let go. -ENODEV: it is gone; -ENOTSUP: it has no level. */
int gp_level_hold(struct gp_level_queue *q, uint32_t holder, uint64_t lease_ns);
int gp_level_let_go(struct gp_level_queue *q, uint32_t holder);
void gp_level_let_all_go(uint32_t holder);
/* One that it cannot have now it has as soon as it can, and the highest below until then. -ENOTSUP: its door
 * has it for no queue. */
int gp_level_set(struct gp_level_queue *q, uint32_t level);
int gp_level_set_depth(struct gp_level_queue *q, uint32_t most);
int gp_level_set_role(struct gp_level_queue *q, uint32_t client_class, uint32_t is_manual);
int gp_level_sync(struct gp_level_queue *q, uint64_t timeout_ns); /* -ETIMEDOUT */
int gp_level_state(struct gp_level_queue *q, struct gp_level_state *ret);

#endif
