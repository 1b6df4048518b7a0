/* SPDX-License-Identifier: MIT */
/*
 * What the notes' calls stand on: one context, the queues that were last found, and
 * those that are suspended.  The caller keeps others out meanwhile.
 */
#ifndef GP_LIB_COMPAT_SESSION_H
#define GP_LIB_COMPAT_SESSION_H

#include <gpreempt/gpreempt.h>
#include <sys/types.h>

/* Who is looked for. */
struct search {
	pid_t pid; /* 0: anybody */
	uint32_t any_priority, min_priority, max_priority;
};

/* A queue under the number the notes know it by. */
struct entry {
	uint32_t queue_id, pid;
	uint64_t handle;
};

/* By queue_id, then pid. */
struct entries {
	struct entry *items;
	size_t n;
};

struct session {
	struct gp_ctx *ctx; /* NULL: closed */
	pid_t owner;        /* who opened it: a child after fork() begins anew */
	uint32_t users;     /* inits less cleanups */
	int searched;
	struct search last;
	struct entries found, held;
	int batch;             /* 1: every device has a batch call, -1: not every, 0: not asked yet */
	char way[GP_NAME_LEN]; /* how queues are stopped without, "" if none is known */
};

/* All of these: 0 or -errno. */

/* Before anything else: -ENOTCONN without an init. */
int session_enter(struct session *s);
int session_open(struct session *s);
void session_close(struct session *s);
/* Looks, and remembers what it found. ret: NULL, or the queues, for the caller to free, and how many. */
int session_search(struct session *s, const struct search *what, struct gp_queue_info **ret, size_t *ret_n);
/* One that was found, as it is now. -ENOENT, -ENOTUNIQ; -ESRCH: it has gone. */
int session_look(struct session *s, uint32_t queue_id, struct gp_queue_info *ret);
/* Nothing is done if one id is unknown (-ENOENT) or two processes' (-ENOTUNIQ); -ESRCH: one has gone. */
int session_suspend(struct session *s, const uint32_t *ids, size_t n, const struct gp_suspend_opts *opts);
int session_resume(struct session *s, const uint32_t *ids, size_t n);
/* The number that gp_device_reserve() takes, of a gpu_id or such a number. -ENODEV */
int session_device(struct session *s, uint32_t gpu_id, uint32_t *ret_device);
/* Whether every device takes any number of queues at once, and how queues are stopped, "" if none is known.
 */
int session_has_batch(struct session *s, const char **ret_way);

#endif
