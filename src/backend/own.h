/* SPDX-License-Identifier: MIT */
/*
 * What the agent does for the process it is in: a vendor's driver is one table of these.
 * The application's calls to the driver pass through call(), which keeps a book of its
 * queues; a stop and a resume come from another thread through apply().  Neither waits
 * for the other longer than the driver itself would make it wait.  A signal's handler may
 * call too.  Uses no malloc().
 *
 * A process's queues are one vendor's: of the first driver on which it creates one.
 */
#ifndef GP_BACKEND_OWN_H
#define GP_BACKEND_OWN_H

#include <gpreempt/backend.h>

#define GP_OWN_MOST 1024u /* queues of a process. More run, but we do not see them */

struct gp_own; /* the vendor's own */

/* As ioctl(2): -1 and errno. */
typedef int (*gp_ioctl_fn)(int fd, unsigned long request, void *args);

/* The ring of the queue that this thread has created last; 0: none. */
extern __thread uint64_t gp_own_ring __attribute__((tls_model("initial-exec")));

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

/* What a request is to the table. */
enum gp_own_interest { GP_OWN_NOTHING, GP_OWN_CALL, GP_OWN_CREATE };

struct gp_own_ops {
	const char *name;
	uint32_t usual_way;  /* what no way stands for */
	uint32_t ways;       /* that every driver of the vendor has */
	uint32_t named_ways; /* that some have, and that are not tried unless the environment names them */
	uint32_t drain_ways; /* in which the driver drains; in others ask finished(), and save */
	uint32_t batches;    /* 1: what apply() is given together goes together, where the driver lets it */

	/* next: what reaches the driver. wake: called, if not NULL, after something for events() came; from
	 * the application's thread, with no lock held, signals blocked: it may write to a descriptor and
	 * nothing else. */
	int (*make)(gp_ioctl_fn next, void (*wake)(void *arg), void *arg, struct gp_own **ret);
	/* Everything goes back to what the application set first; NULL is fine. */
	void (*free)(struct gp_own *own);
	/* In a child after fork(): the queues are the parent's. Takes no lock. A child that comes about
	 * without fork() is found by its pid. */
	void (*forget)(struct gp_own *own);

	/* enum gp_own_interest: whether a request is one to bring to call(), of any size the driver has had,
	 * and whether it creates a queue. */
	uint32_t (*wants)(unsigned long request);
	/* In place of ioctl(): the driver's result and errno, whatever becomes of our book-keeping; on a file
	 * that is not the driver's, nothing but that. priority: -1, or what to create a queue with; the
	 * caller's struct keeps its own. */
	int (*call)(struct gp_own *own, int fd, unsigned long request, void *args, int priority);

	/* How many it wrote. A queue appears once, with what is newest; one that came and went in between,
	 * never. */
	int (*events)(struct gp_own *own, struct gp_own_event *events, size_t n);
	int (*queues)(struct gp_own *own, struct gp_own_queue *queues, size_t n); /* how many there are */
	int (*stopped)(struct gp_own *own);                                       /* how many are, by us */
	int (*open)(struct gp_own *own); /* a descriptor of the driver's file, closed on exec; or -errno */

	/*
	 * What follows comes from one thread at a time.  fd: what open() gave, or -1: one is opened for the
	 * call.
	 */

	/* Of opts (NULL: none) way, type and timeout_ns count. Statuses per want: 0 also where nothing
	 * changes, without a call; -ENOENT for a queue that is gone, -ETIMEDOUT for one that the driver did
	 * not drain in time and that runs on, -ENOTSUP for what no driver has; else the driver's error, after
	 * which a queue runs if it should have been stopped, and counts as stopped if it should run: try
	 * again. The first error is returned. */
	int (*apply)(struct gp_own *own, int fd, struct gp_want *wants, size_t n,
		     const struct gp_apply_opts *opts);
	int (*resume_all)(struct gp_own *own, int fd); /* the first error */

	/* Busy: written is ahead of read. An address gone bad is an error, not a crash. Every ret is written,
	 * unknown where there is nothing to know; the first error is returned: -ENOENT, -EFAULT. */
	int (*activity)(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret);
	/* Of the queues that activity() has just called idle, in ret: which have finished. A GPU may move its
	 * read pointer past work that still runs: then busy; or unknown, where the queue cannot tell. Errors
	 * as above. */
	int (*finished)(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret);
};

/* By the type of the driver's ioctls, NULL: no vendor has it. Complete: nothing in a table is NULL. */
extern const struct gp_own_ops *const gp_own_vendors[256];

#endif
