/* SPDX-License-Identifier: MIT */
/*
 * The devices' scheduling sessions, as far as the driver has them: queues of any process are stopped and
 * resumed by gpreemptd itself.  All wants of a step on one device are one call.  A process all of whose
 * queues on a device are to stand still is stopped as a whole, so that what it creates does as well.
 */
#ifndef GP_DAEMON_SESSIONS_H
#define GP_DAEMON_SESSIONS_H

#include <stdbool.h>

#include "daemon/devices.h"
#include "daemon/session.h"

struct gp_client;
struct gp_manager;
struct gp_queue;

struct gp_device_session {
	struct gp_session *session; /* NULL: none was made */
	struct gp_manager *m;
	uint32_t device;
	int status;               /* 0: it is open; 1: nobody knows yet; else why it is not */
	uint64_t cycles, changes; /* of the device, and of queues that it stopped or resumed with them */
};

struct gp_sessions {
	struct gp_device_session of[GP_MOST_DEVICES];
	struct gp_session_item *items; /* what is put together */
	size_t n, room;
	bool is_short; /* of memory for it */
};

/* Of every device that has none; where there are none to be had, nothing. */
void gp_sessions_open(struct gp_manager *m);
void gp_sessions_end(struct gp_manager *m);   /* begins it, of all of them at the same time */
void gp_sessions_close(struct gp_manager *m); /* all that they stopped runs */
/* With every heartbeat: leases, the shortest of which is returned, and processes that need not be stopped as
 * a whole any more. */
uint64_t gp_sessions_renew(struct gp_manager *m);

/* Whether the driver has sessions that name processes as we do. */
bool gp_sessions_may_open(const struct gp_manager *m);
/* Whether it can be stopped so. */
bool gp_sessions_reach(const struct gp_manager *m, const struct gp_queue *q);
/* GP_CAP_* that a device has by its session. */
uint32_t gp_sessions_caps(const struct gp_manager *m, uint32_t device);
/* Why its device has no session. */
const char *gp_sessions_why_not(const struct gp_manager *m, const struct gp_queue *q);
/* Of a list of routes: those are gone that a session was told of, and answers bear the serial. */
void gp_sessions_send(struct gp_manager *m, struct gp_list *outbox, uint32_t serial);
/* They go, or nobody knows them any more: nothing of them stays stopped. */
void gp_sessions_queue_gone(struct gp_manager *m, struct gp_queue *q);
void gp_sessions_client_gone(struct gp_manager *m, struct gp_client *c);

#endif
