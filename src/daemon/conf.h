/* SPDX-License-Identifier: MIT */
/* What the command line, the configuration file and the environment ask of gpreemptd. */
#ifndef GP_DAEMON_CONF_H
#define GP_DAEMON_CONF_H

#include <stdint.h>

#include "core/core.h"
#include "daemon/account.h"
#include "daemon/decisions.h"
#include "daemon/devices.h"
#include "discover/classes.h"

#define GP_CONF_NONE "none"

struct gp_conf_device {
	uint32_t device;
	char policy[GP_NAME_LEN];
};

/* One that is read again stays where it is: others may point into it. */
struct gp_conf {
	char socket[108];        /* as much as an address holds */
	char class_sockets[108]; /* the folder of those for each class; "none": there are none */
	char root[256];
	struct gp_ways ways;
	uint64_t lease_ns;    /* of the agents */
	uint64_t scan_ns;     /* 0: never */
	uint64_t patience_ns; /* how long a stop or a resume may take, beside its drain */
	uint32_t sample;
	uint32_t old_kernel; /* 1: do without what older ones lack */

	char policy_file[256];    /* a policy from elsewhere; empty: none */
	char policy[GP_NAME_LEN]; /* of devices that have none of their own */
	struct gp_core_opts core;
	uint32_t stop_sdma;      /* 1: SDMA queues are stopped with the compute queues */
	uint32_t driver_watches; /* 1: the driver is to look for online work itself, if it can */
	struct gp_conf_device devices[GP_MOST_DEVICES];
	uint32_t ndevices;

	struct gp_limits limits; /* of a user */
	uint32_t places;         /* for all users but root; 0: as many as there are descriptors for */

	char classes_file[256];
	const char *classes_said; /* where: an option's name or a setting's; NULL: nowhere */
	struct gp_classes *classes;
	const char *file;   /* that was read; NULL: there was none */
	uint32_t has_rules; /* 1: there is a file of them */

	uint32_t dbg_pid; /* not 0: this process is to debug that one, of that user */
	uint32_t dbg_uid;
	uint32_t attach_pid; /* not 0: this process is to bind a socket for that one */
	int argc;            /* to be read again */
	char **argv;
};

/* 0; 1: all is said and done, exit with *ret_status. */
int gp_conf_parse(struct gp_conf *conf, int argc, char **argv, int *ret_status);
/*
 * Reads the file, the command line and the rules again.  A negative errno, after a line in the log for each
 * thing that is wrong: nothing has changed.  What cannot change while gpreemptd runs stays, with a line.
 */
int gp_conf_reload(struct gp_conf *conf);
void gp_conf_free(struct gp_conf *conf);

#endif
