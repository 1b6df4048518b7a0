/* SPDX-License-Identifier: MIT */
/*
 * The KFD queues of this process: what the application last asked for, and what we
 * make of it.  The application's calls pass through gp_own_call(); a stop and a resume
 * come from another thread through gp_own_apply().  No lock is held while the driver
 * works, so neither waits for the other longer than the driver itself would make it
 * wait; signals are blocked while one is held, so a handler may call too.
 *
 *            application's UPDATE: remembered; while stopped, the driver gets it with 0 percent
 *           .----.
 *           v    |
 *         RUNNING --STOP--> STOPPED (0 percent in the driver)
 *            ^                 |
 *            '------RUN--------'   the driver gets what the application last asked for
 *
 * Whoever finds, after its call returned, that something else is wanted by now calls
 * again: the last call the driver sees is always the last wish.
 *
 * GPREEMPT_KFD names the driver's file; /dev/kfd if it is not set.
 */
#ifndef GP_BACKEND_KFD_OWN_H
#define GP_BACKEND_KFD_OWN_H

#include <gpreempt/backend.h>

#define GP_OWN_MOST \
	1024u /* queues: as many as the driver lets a process have. More run, but we do not see them */

struct gp_own;

/* As ioctl(2): -1 and errno. */
typedef int (*gp_ioctl_fn)(int fd, unsigned long request, void *args);

struct gp_own_queue {
	uint64_t queue; /* our number: never used twice */
	uint64_t ring, ring_size, rptr_address, wptr_address;
	uint32_t queue_id, gpu_id, kind, priority, percent; /* as the application set them */
	uint32_t stopped;                                   /* 1: by us */
	uint32_t way;                                       /* it was stopped in */
};

/* What happened to the queues since the last look, oldest first. */
enum gp_own_event_kind { GP_OWN_ADDED, GP_OWN_CHANGED, GP_OWN_REMOVED };

struct gp_own_event {
	uint32_t kind, reserved;
	struct gp_own_queue queue;
};

/* next: what reaches the driver. wake: called, if not NULL, after something for gp_own_events() came; from
 * the application's thread, with no lock held, signals blocked: it may write to a descriptor and nothing
 * else. Uses no malloc(), here or later. */
int gp_own_new(gp_ioctl_fn next, void (*wake)(void *arg), void *arg, struct gp_own **ret);
void gp_own_free(
	struct gp_own *own); /* everything goes back to what the application set first; NULL is fine */
/* In a child after fork(): the queues are the parent's. Takes no lock. A child that comes about without
 * fork() is found by its pid. */
void gp_own_forget(struct gp_own *own);

/* Whether a request is one to bring to gp_own_call(): CREATE, UPDATE or DESTROY of a queue, of any size the
 * driver has had. */
int gp_own_wants(unsigned long request);
/* In place of ioctl(): the driver's result and errno, whatever becomes of our book-keeping; on a file that is
 * not the driver's, nothing but that. priority: -1, or what to create a queue with; the caller's struct keeps
 * its own. */
int gp_own_call(struct gp_own *own, int fd, unsigned long request, void *args, int priority);

/* How many it wrote. A queue appears once, with what is newest; one that came and went in between, never. */
int gp_own_events(struct gp_own *own, struct gp_own_event *events, size_t n);
int gp_own_queues(struct gp_own *own, struct gp_own_queue *queues, size_t n); /* how many there are */
int gp_own_stopped(struct gp_own *own);                                       /* how many are, by us */
int gp_own_open(struct gp_own *own); /* a descriptor of the driver's file, closed on exec; or -errno */

/*
 * What follows comes from one thread at a time.  fd: an open /dev/kfd of this process, or -1: one is opened
 * for the call.
 */

/* Of opts (NULL: none) way, type and timeout_ns count. Statuses per want: 0 also where nothing changes,
 * without a call; -ENOENT for a queue that is gone, -ETIMEDOUT for one that the driver did not drain in time
 * and that runs on, -ENOTSUP for what no driver has, as a drain by UPDATE: ask gp_own_finished(), and save;
 * else the driver's error, after which a queue runs if it should have been stopped, and counts as stopped if
 * it should run: try again. The first error is returned. */
int gp_own_apply(struct gp_own *own, int fd, struct gp_want *wants, size_t n,
		 const struct gp_apply_opts *opts);
int gp_own_resume_all(struct gp_own *own, int fd); /* the first error */

/* Busy: written is ahead of read. Reads this process's memory so that an address gone bad is an error, not a
 * crash, in one system call for 128 queues. Every ret is written, unknown where there is nothing to know; the
 * first error is returned: -ENOENT, -EFAULT. */
int gp_own_activity(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret);
/*
 * The same, but idle is empty and finished: a GPU may move its read pointer past a packet that still runs.
 * Of an AQL queue the last packet's completion signal must have come down to 0; unknown is also a queue that
 * is empty and whose last packet has none.  Packets before it that it does not wait for (no barrier bit) may
 * still run, and a signal that is set anew, or that others share, keeps the queue busy.  Of PM4 and SDMA
 * queues there are the pointers alone.
 */
int gp_own_finished(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret);

#endif
