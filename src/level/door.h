/* SPDX-License-Identifier: MIT */
/*
 * A door: how a runtime lets us stand in front of its launches.  It tells the engine of queues and launches
 * (level.h) and brings this table.  What is NULL the runtime cannot do; levels says so too.
 */
#ifndef GP_LEVEL_DOOR_H
#define GP_LEVEL_DOOR_H

#include <stdint.h>

struct gp_door_queue {
	const void *stream;    /* what the program calls it */
	uint64_t device;       /* the runtime's handle: queues of one device compete */
	uint64_t ring;         /* as the agent knows it; 0: it does not */
	uint32_t client_class; /* enum gp_class, as far as the program says */
	uint32_t gpu_id;       /* as gpreemptd knows it: it may close the gates there; 0: it may not */
};

struct gp_door_ops {
	const char *name;
	uint32_t levels; /* bits, 1 << enum gp_level */
	uint32_t most;   /* launches in flight at Lv1; 0: by what is measured */
	uint32_t deep;   /* at Lv2; 0: any number. More would fill the runtime's own queue, and whoever waits
			  * for room there may keep a lock that every other thread needs */

	/* Lv2: launches with GP_ADD_GATE that have not begun wait, or go on. Returns at once; comes with the
	 * engine's lock held. */
	void (*gate)(void *door, int is_closed);
	/* How many launches with GP_ADD_COUNT have ended, in order. */
	uint64_t (*ended)(void *door);
	/* How many of them the runtime has taken; NULL: it takes each at once. */
	uint64_t (*taken)(void *door);
	/* Sleeps until so many have ended, or so long; or less long. */
	void (*wait)(void *door, uint64_t ended, uint64_t timeout_ns);
	/* Lv1 of a runtime that can wait itself: its first so many launches may begin. Without it the engine
	 * keeps the launching thread. Comes without a lock, from several threads; what it has let begin it
	 * does not call back. */
	void (*release)(void *door, uint64_t launches);
	/* The queue has work again; for who looks at its pointers. */
	void (*active)(void *door);
};

#endif
