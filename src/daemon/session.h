/* SPDX-License-Identifier: MIT */
/*
 * A scheduling session of one device, in a thread of its own: a call lasts as long as the GPU takes to
 * answer, which may be seconds.  All that came since the last call goes with the next one.  The session is
 * opened again when its lease has ended, and what was asked for then is done in the new one.
 */
#ifndef GP_DAEMON_SESSION_H
#define GP_DAEMON_SESSION_H

#include <pthread.h>

#include "backend/kfd/session.h"
#include "base/list.h"
#include "daemon/loop.h"

/* One entry of a call. */
struct gp_session_item {
	uint64_t queue; /* whose it is; 0: nobody waits for what becomes of it */
	struct kfd_session_queue entry;
};

/*
 * What is asked for together, and what became of it.  Without items the driver is told the setting, or the
 * lease is renewed, or the session opened.  has_ended: so had the session before, and all that it stopped
 * runs; the items were for the next.
 */
struct gp_session_batch {
	struct gp_list in;
	int status; /* of the call, or of opening the session */
	int has_ended;
	uint64_t latency_ns; /* of the call */
	uint32_t cycles;     /* that it cost the device, with all that was done by the same call */
	struct kfd_session_args setting; /* op 0: none */
	uint32_t serial, n;              /* n: KFD_SESSION_MAX_QUEUES at most */
	struct gp_session_item items[];
};

struct gp_session {
	const struct gp_session_ops *ops;
	struct gp_loop *loop;
	uint64_t lease_ns;
	void (*fn)(void *arg, struct gp_session_batch *done); /* in the loop's thread */
	void *arg;
	pthread_t thread;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t came;
	struct gp_list todo, doing, done;
	int ends, is_over;
	struct gp_watch watch; /* something is done */
	uint64_t end_ns;       /* until then its end is waited for; 0: nobody has ended it */

	/* The thread's own: */
	int fd; /* -1: it is not open */
	struct kfd_session_args setting;
	uint32_t n;
	struct kfd_session_queue entries[KFD_SESSION_MAX_QUEUES];
};

/* Begins to open it. fn is told of each batch in turn, first of one without items that opens it. */
int gp_session_new(struct gp_loop *loop, const struct gp_session_ops *ops, uint64_t lease_ns,
		   void (*fn)(void *arg, struct gp_session_batch *done), void *arg, struct gp_session **ret);
/* Begins to end it, and does not wait: who has several ends them together. */
void gp_session_end(struct gp_session *s);
/* Everything that it stopped runs. One that does not answer is left to end with the process. */
void gp_session_free(struct gp_session *s);

/* Room for n items; NULL: no memory. */
struct gp_session_batch *gp_session_batch(uint32_t n);
void gp_session_give(struct gp_session *s, struct gp_session_batch *batch); /* takes it */
void gp_session_renew(struct gp_session *s); /* unless it has a call under way */

#endif
