/* SPDX-License-Identifier: MIT */
/*
 * What gpreempt top shows, as of one moment: devices, what was done on them since the moment before, clients,
 * and how long stops took in the last times.  What nobody told is unknown, and never 0.
 */
#ifndef GP_CLI_TOP_SAMPLE_H
#define GP_CLI_TOP_SAMPLE_H

#include <gpreempt/gpreempt.h>

#include "cli/machine_list.h"

#define GP_TOP_DEVICES 64
#define GP_TOP_SLOTS 120 /* times that are remembered */
#define GP_TOP_UNKNOWN UINT64_MAX

/* By number: time / length. */
struct gp_top_latency {
	uint64_t last;                   /* the newest slot that was noted */
	uint64_t worst_ns[GP_TOP_SLOTS]; /* by number % GP_TOP_SLOTS; 0: nothing was stopped */
};

struct gp_top_device {
	uint32_t device;       /* its number */
	int has_stats;         /* gpreemptd told */
	struct gp_stats stats; /* if it did */
	uint64_t counted;      /* preemptions, when the rate was last counted */
	uint64_t counted_ns;   /* when that was, by a clock that never goes back */
	uint64_t least_ns;     /* a rate is of so long at least */
	uint64_t rate_milli;   /* preemptions in 1000 s; GP_TOP_UNKNOWN */
	struct gp_top_latency latency;
};

struct gp_top {
	uint64_t slot_ns;                        /* length of a slot */
	struct gp_machine_list list;             /* devices and queues */
	struct gp_top_device of[GP_TOP_DEVICES]; /* in no order: gp_top_device() */
	size_t n;                                /* of them that are known */
	struct gp_client_info *clients;          /* as gp_clients_sort() has them */
	size_t nclients;
	int has_list;   /* else nobody told which devices there are */
	int has_daemon; /* else the list is what the machine's files say, and nobody told of clients */
	int has_events, follows;
};

/* Asks for all of it again. -errno: the context has a sentence, and what was known before is gone. */
int gp_top_sample(struct gp_top *t, struct gp_ctx *ctx, uint64_t now_ns);
/* Asks for stops: those that gpreemptd remembers, and with follow those to come. It need not keep any. */
void gp_top_events_open(struct gp_top *t, struct gp_ctx *ctx, int follow);
/* Takes those that are there; if it does not follow, waits for all. */
void gp_top_events_take(struct gp_top *t, struct gp_ctx *ctx);
/* Another gpreemptd may count anew. */
void gp_top_forget(struct gp_top *t);
void gp_top_free(struct gp_top *t);

/* Pure. */

/* NULL: nothing is known of that device. */
const struct gp_top_device *gp_top_device(const struct gp_top *t, uint32_t device);
/* Its own place; NULL: there are too many. */
struct gp_top_device *gp_top_device_add(struct gp_top *t, uint32_t device);
/* Those that are not in the list: another may have their number next. */
void gp_top_drop_gone(struct gp_top *t);
/* What gpreemptd told of a device at that time. The rate since the last time comes with it, or stays if that
 * was a moment ago: who pressed a key meanwhile looked too. */
void gp_top_take_stats(struct gp_top_device *d, const struct gp_stats *stats, uint64_t now_ns);
void gp_top_note(struct gp_top_latency *l, uint64_t slot, uint64_t latency_ns);
/* The longest stop in that slot; GP_TOP_UNKNOWN: there was none, or it is too long ago. */
uint64_t gp_top_worst(const struct gp_top_latency *l, uint64_t slot);
/* Of offline clients, in permille as gpreempt ps shows it, all of them together; GP_TOP_UNKNOWN: there is
 * none. */
uint64_t gp_top_offline_share(const struct gp_top *t, uint32_t device);
/* From one that is told to stop to the last wave off, 99 of 100 stops; GP_TOP_UNKNOWN: none was. */
uint64_t gp_top_p99(const struct gp_top_device *d);

#endif
