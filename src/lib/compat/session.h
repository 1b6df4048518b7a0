/* SPDX-License-Identifier: MIT */
/*
 * What the notes' calls stand on: one context, and which queue each id means.  The caller
 * keeps others out meanwhile.
 */
#ifndef GP_LIB_COMPAT_SESSION_H
#define GP_LIB_COMPAT_SESSION_H

#include <gpreempt/gpreempt.h>
#include <sys/types.h>

#include "lib/compat/names.h"

/* Who is looked for. */
struct search {
	pid_t pid; /* 0: anybody */
	uint32_t any_priority, min_priority, max_priority;
};

struct session {
	struct gp_ctx *ctx; /* NULL: closed */
	pid_t owner;        /* who opened it: a child after fork() opens its own */
	uint32_t users;     /* inits less cleanups */
	struct names names; /* outlive the context */
	int batch;          /* 1: every device has a batch call, -1: not every, 0: not asked yet */
	char why[320];      /* of the last error, a sentence; or empty */
};

/* All of these: 0 or -errno, and a sentence in why. */

/* Before anything else: -ENOTCONN without an init. */
int session_enter(struct session *s);
int session_open(struct session *s);
void session_close(struct session *s);
/* The queues, their queue_id the id that this library gives them, for the caller to free; how many. */
int session_search(struct session *s, const struct search *what, struct gp_queue_info **ret, size_t *ret_n);
/* One queue as it is now. -ENOENT, -ENOTUNIQ; -ESRCH: it has gone. */
int session_look(struct session *s, uint32_t id, struct gp_queue_info *ret);
/*
 * Nothing is done if one id is unknown (-ENOENT) or two processes' (-ENOTUNIQ); -ESRCH: one has gone.
 * ret_stopped: one of those that are suspended now, or 0.
 */
int session_suspend(struct session *s, const uint32_t *ids, size_t n, const struct gp_suspend_opts *opts,
		    uint64_t *ret_stopped);
int session_resume(struct session *s, const uint32_t *ids, size_t n);
/* gpu_id: the driver's, or a device's number. -ENODEV */
int session_reserve(struct session *s, uint32_t gpu_id, uint32_t online_pct, uint32_t offline_pct);
/* Whether every device takes any number of queues at once. */
int session_has_batch(struct session *s);
/* How a queue is stopped: "session", "update", "dbg", "private"; "" if nobody tells. */
void session_way(struct session *s, uint64_t queue, char way[GP_NAME_LEN]);

/* For tests: as in a new process; how many queues are known by an id. */
void poc_forget_ids(void);
size_t poc_known_ids(void);

#endif
