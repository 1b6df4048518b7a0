/* SPDX-License-Identifier: MIT */
/* What the command line and the environment ask of gpreemptd. */
#ifndef GP_DAEMON_CONF_H
#define GP_DAEMON_CONF_H

#include <stdint.h>

#include "core/core.h"
#include "daemon/decisions.h"
#include "discover/classes.h"

struct gp_conf {
	char socket[108]; /* as much as an address holds */
	const char *root;
	struct gp_ways ways;
	uint64_t lease_ns;    /* of the agents */
	uint64_t scan_ns;     /* 0: never */
	uint64_t patience_ns; /* how long a stop or a resume may take, beside its drain */
	uint32_t sample;
	uint32_t old_kernel; /* 1: do without what older ones lack */
	struct gp_classes *classes;
	struct gp_core_opts core;
	const char *policy; /* of every device, at first */
	uint32_t dbg_pid;   /* not 0: this process is to debug that one, of that user */
	uint32_t dbg_uid;
};

/* 0; 1: all is said and done, exit with *ret_status. */
int gp_conf_parse(struct gp_conf *conf, int argc, char **argv, int *ret_status);
void gp_conf_free(struct gp_conf *conf);

#endif
