/* SPDX-License-Identifier: MIT */
/*
 * The backend that reaches queues through sessions, agents and proxies: apply() in, exactly one done
 * out for each want, by complete(), unless another want overtook it.  Which way a stop goes,
 * what is tried after one that failed, a debugger that has to be started first, a drain that
 * becomes a save, an answer that does not come: all that is nobody else's business.
 */
#ifndef GP_DAEMON_ROUTE_H
#define GP_DAEMON_ROUTE_H

#include <gpreempt/backend.h>

#include <stdbool.h>

#include "base/list.h"
#include "daemon/loop.h"

struct gp_client;
struct gp_manager;
struct gp_msg;
struct gp_peer;
struct gp_queue;

/* How a stop is asked for. A drain that does not come to its end becomes a save. */
struct gp_manner {
	uint32_t way, type;
	uint32_t strict; /* 1: it does not */
	uint32_t reserved;
	uint64_t timeout_ns;
};

/* A queue's, on its way from running to standing still or back. */
struct gp_route {
	bool under_way;
	bool awaits_proxy; /* before the stop can be asked for */
	bool doubtful;     /* nobody answered */
	bool yields;       /* it was made to, and has not its own slice again; stopped or not */
	uint32_t want;     /* enum gp_want_kind */
	struct gp_manner manner;
	uint32_t way;              /* that is gone; or was, by the stop that a resume undoes */
	uint32_t device, queue_id; /* by which a session knows it, if that is the way */
	uint32_t tried;            /* ways this stop failed in */
	int status;                /* of the first of those; then how it ended */
	char *why;                 /* what there is to say of it; NULL: nothing, as of most */
	uint64_t begun_ns, latency_ns;
	struct gp_list outbox; /* what is to be sent at the end of this step */
	struct gp_list ended;  /* what complete() tells next */
	uint32_t sent_serial;  /* of the WANTS that is under way; 0: none is */
	struct gp_peer *sent_to;
	struct gp_alarm overdue; /* an answer */
};

extern const struct gp_backend_ops gp_route_ops; /* opts.params: struct gp_manager */

/* The way a queue would be stopped; 0: nobody can. */
uint32_t gp_route_way(const struct gp_manager *m, const struct gp_queue *q, uint32_t asked);
/* Whether none of --ways can stop anything on a device, whatever runs there, and why. */
bool gp_route_unreached(const struct gp_manager *m, uint32_t device, char *text, size_t size);
const char *gp_route_why_not(const struct gp_manager *m, const struct gp_queue *q, char *text, size_t size);
/* Another hold: a save, or a drain that ends earlier, overtakes a drain that is under way. */
void gp_route_hurry(struct gp_manager *m, struct gp_queue *q, uint32_t type, uint64_t timeout_ns);

void gp_route_answered(struct gp_backend *be, struct gp_peer *p, const struct gp_msg *msg); /* DONE came */
/* Its agent or proxy says that it runs or stands still, and nobody asked for that. */
void gp_route_found(struct gp_manager *m, struct gp_queue *q, const struct gp_peer *p, bool is_stopped);
void gp_route_lost(struct gp_manager *m, struct gp_peer *p);  /* an agent or a proxy is gone */
void gp_route_gone(struct gp_manager *m, struct gp_queue *q); /* the queue is about to go */
void gp_route_overdue(void *queue);
void gp_route_proxy_ready(struct gp_manager *m, struct gp_client *c);
void gp_route_proxy_failed(struct gp_manager *m, struct gp_client *c, int status, const char *text);
/* A session's answer, by gp_session_status(). */
void gp_route_session_did(struct gp_manager *m, struct gp_queue *q, int status, const char *why,
			  uint64_t latency_ns);
void gp_route_session_ended(struct gp_manager *m, uint32_t device); /* what it stopped runs */
void gp_route_flush(struct gp_backend *be);                         /* sends what is to be sent */
const char *gp_route_why(const struct gp_route *r); /* what there is to say of it, or an empty text */
/* That, and nothing that was said before. */
__attribute__((format(printf, 2, 3))) void gp_route_say(struct gp_route *r, const char *fmt, ...);

#endif
