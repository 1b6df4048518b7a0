/* SPDX-License-Identifier: MIT */
/* What gpreemptd tells of itself at one moment. */
#ifndef GP_METRICS_COLLECT_H
#define GP_METRICS_COLLECT_H

#include <gpreempt/gpreempt.h>

/* gpreemptd, which comes and goes; zeros and a name are one that was not asked yet. */
struct gp_source {
	const char *socket; /* or NULL: where it usually is */
	struct gp_ctx *ctx; /* NULL: it is not connected */
	char why[320];      /* it is not; empty: it is */
};

struct gp_told {
	struct gp_device_info info;
	struct gp_stats stats;
};

struct gp_snapshot {
	int is_up;
	struct gp_told *devices;
	size_t ndevices;
	struct gp_client_info *clients; /* one for each client and device */
	size_t nclients;
};

/*
 * Connects where it must.  Without gpreemptd the snapshot says so and has nothing else; the next call tries
 * again.  Takes no longer than the patience that the library has with one answer.
 */
void gp_collect(struct gp_source *source, struct gp_snapshot *ret);
void gp_snapshot_free(struct gp_snapshot *s);
void gp_source_close(struct gp_source *source);

#endif
