/* SPDX-License-Identifier: MIT */
/*
 * What the driver itself keeps, where it has scheduling sessions and lets us: reservations, and the look for
 * online work in the background; for both it is told the classes of processes.  One session for all devices,
 * made when there is something to tell.  What it ends for is told again.
 */
#ifndef GP_DAEMON_SETTINGS_H
#define GP_DAEMON_SETTINGS_H

#include <stdbool.h>

#include "daemon/devices.h"
#include "daemon/session.h"

struct gp_client;
struct gp_manager;

struct gp_setting {
	uint32_t told; /* what the driver was told last; 0: nothing */
	int status;    /* 0: it keeps that; 1: nobody knows yet; else why it does not */
};

struct gp_settings {
	struct gp_session *session; /* NULL: nothing was to be told */
	int status;                 /* of the session, as that of a setting */
	struct gp_setting reserves[GP_MOST_DEVICES], backgrounds[GP_MOST_DEVICES];
};

/* Tells the driver what has changed. */
void gp_settings_look(struct gp_manager *m);
void gp_settings_renew(struct gp_manager *m); /* the lease, with every heartbeat */
void gp_settings_close(struct gp_manager *m);

/* Whether the driver keeps it on this device, or has not answered yet: nothing is stopped for that while. */
bool gp_settings_reserve(const struct gp_manager *m, uint32_t device);
/* Whether it does. */
bool gp_settings_background(const struct gp_manager *m, uint32_t device);

#endif
