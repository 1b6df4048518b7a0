/* SPDX-License-Identifier: MIT */
/*
 * Which queue an id of the notes' calls means.
 *
 * An id that was given out means that queue for ever: the driver's id where no other queue
 * that was found has it, else a number of ours.  When the queue has gone, nothing is kept
 * of it but that its id is spent: a bit for a driver's id, and ours are never given twice.
 * So the memory is that of the queues there are.
 *
 * Within a context a queue is known by its handle.  In the next one (gpreemptd was started
 * again, or the process forked) it is known again by its process, by pid and start time,
 * its GPU, its driver's id and its ring; one that these do not tell for sure has gone.
 */
#ifndef GP_LIB_COMPAT_NAMES_H
#define GP_LIB_COMPAT_NAMES_H

#include <gpreempt/gpreempt.h>

#define NAMES_FIRST 1000000u /* of our own numbers */
/* The driver has 1024 to a process; a queue with a greater one gets ours. */
#define NAMES_MOST_DRIVER_ID 4096

struct name {
	uint32_t id;
	uint32_t given;  /* 0: it was looked up, and is known while the queue is held */
	uint32_t held;   /* suspended by us, and not resumed since */
	uint32_t known;  /* GP_KNOWN_* */
	uint64_t handle; /* 0: of a context before, not known again yet */
	uint64_t ring, start;
	uint32_t pid, gpu_id, queue_id;
};

struct names {
	struct name *items; /* by id */
	size_t n, room;
	uint32_t ours; /* numbers of ours that were given */
	unsigned char spent[NAMES_MOST_DRIVER_ID / 8];
};

/* -ESRCH: the queue with this id has gone; -ENOENT: it was never given. */
int names_find(const struct names *names, uint32_t id, struct name *ret);
/* A queue as it would be named so. */
struct name names_of(const struct gp_queue_info *queue, uint32_t id);

/* From here on lists are by handle, and whole: what is not in one has gone, unless it is held. */
void names_refresh(struct names *names, const struct gp_queue_info *all, size_t n);
/* Puts each queue's id in place of its queue_id. -ENOMEM, -EOVERFLOW */
int names_give(struct names *names, struct gp_queue_info *found, size_t n);

/* Room for so many to be held, so that names_hold() cannot fail. */
int names_reserve(struct names *names, size_t n);
void names_hold(struct names *names, const struct name *name);
void names_release(struct names *names, uint64_t handle);
void names_drop(struct names *names, uint64_t handle); /* it has gone */
/* The context ended, and with it what was held. */
void names_part(struct names *names);
void names_free(struct names *names);

#endif
