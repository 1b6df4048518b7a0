/* SPDX-License-Identifier: MIT */
/*
 * The scheduler. It makes no system call, starts no thread and reads no clock: its
 * host (the daemon, or the simulated machine) tells it what happened and when, calls
 * gp_core_run(), and carries out the wants that gp_core_take() hands out.
 *
 * What it keeps, whatever a policy does:
 *  - a queue is stopped only while somebody else needs the device (or somebody holds
 *    it), and is given back as soon as that ends;
 *  - a client that waits gets a slice at least every max_starve;
 *  - a client whose stop failed is left alone for a while, longer each time; nobody else is;
 *  - stops are capped per second, and clients take turns to pay for theirs, a cycle each: on
 *    a device with n clients one that has paid for its last stop is stopped within n cycles'
 *    time, whatever the others do; resumes and holds are never capped;
 *  - one want per queue is under way at a time.
 *
 * Times are on the host's clock and never go back.
 */
#ifndef GP_CORE_H
#define GP_CORE_H

#include <gpreempt/backend.h>
#include <gpreempt/policy.h>

#include "base/hist.h"

struct gp_core;

/* Zero means the default in brackets. */
struct gp_core_opts {
	uint64_t linger_ns;       /* online stays active this long after its last work [auto: see core.c] */
	uint64_t hint_expiry_ns;  /* a hint that is never ended is [1 s] */
	uint64_t max_starve_ns;   /* [1 s]; GP_NEVER: offline may wait for ever */
	uint64_t starve_slice_ns; /* what a starved client gets [10 ms] */
	uint64_t quantum_ns;      /* a turn, where background clients take turns [250 ms] */
	uint64_t stall_ns;        /* a policy that runs nobody for so long is ejected [250 ms] */
	uint64_t lease_ns;        /* of every stop [3 s] */
	uint32_t max_stops_per_s; /* cycles to stop, per device [2000] */
	uint32_t no_turns; /* 1: background clients do not take turns (for measuring why they should) */
	uint32_t yield_on_demand; /* 1: background only while online is active, one call per request */
	uint32_t reserved;
};

struct gp_core_client {
	uint64_t id;
	uint64_t slo_ns;
	uint32_t client_class;
	uint32_t weight; /* 0: 100 */
};

/* What the host is to carry out now, on one device. Valid until the next gp_core_take(). */
struct gp_action {
	uint32_t device;
	uint32_t stops; /* how many of the wants are stops */
	struct gp_want *wants;
	size_t nwants;
	struct gp_apply_opts opts;
};

struct gp_core_status {
	char policy[GP_NAME_LEN];
	char reason[128];   /* why a stop was last put off, or a stop or resume failed */
	char ejection[128]; /* why the last policy was ejected */
	uint32_t mechanism; /* enum gp_mechanism: what a stop would use now */
	uint32_t ejected;
	uint64_t preemptions; /* actions to stop somebody for somebody else */
	uint64_t suspends;
	uint64_t resumes;
	uint64_t failures;
	uint64_t limited;              /* times a stop was put off */
	uint64_t backoff_until_ns;     /* 0, or when the budget allows a stop that waits for it */
	const struct gp_hist *suspend; /* latency of each stop; the core's */
	const struct gp_hist *resume;
};

struct gp_core_queue_status {
	uint64_t client;
	uint32_t device;
	uint32_t state; /* enum gp_queue_state */
	uint32_t client_class;
	uint32_t held;
	uint64_t backoff_until_ns; /* 0, or when its client, of which a stop failed, may be stopped again */
};

struct gp_core *gp_core_new(const struct gp_core_opts *opts); /* NULL: no memory */
struct gp_core *gp_core_free(struct gp_core *core);

/* -EEXIST, -ENOENT and -ENOMEM as one would expect; devices begin with the policy priority. */
int gp_core_device_add(struct gp_core *core, uint32_t device, uint32_t caps);
int gp_core_client_add(struct gp_core *core, const struct gp_core_client *client);
int gp_core_client_get(struct gp_core *core, uint64_t client, struct gp_core_client *ret);
int gp_core_client_change(struct gp_core *core, const struct gp_core_client *client, uint64_t now);
int gp_core_client_remove(struct gp_core *core, uint64_t client, uint64_t now);
int gp_core_queue_add(struct gp_core *core, uint64_t queue, uint64_t client, uint32_t device, uint64_t now);
int gp_core_queue_remove(struct gp_core *core, uint64_t queue, uint64_t now);

int gp_core_activity(struct gp_core *core, uint64_t queue, uint32_t activity, uint64_t now);
int gp_core_hint_begin(struct gp_core *core, uint64_t client, uint64_t now);
int gp_core_hint_end(struct gp_core *core, uint64_t client, uint64_t now); /* -EALREADY: none is open */
/* Somebody with the right to do so wants it stopped until then, whatever the policy says. */
int gp_core_hold(struct gp_core *core, uint64_t queue, uint64_t until_ns, uint64_t now);
int gp_core_release(struct gp_core *core, uint64_t queue, uint64_t now);
/* A want that was taken has ended; want.status says how. One nobody asked for (a lease ended) counts too. */
int gp_core_done(struct gp_core *core, const struct gp_done *done, uint64_t now);

/* The new policy takes over the clients that wait. -E2BIG, -EPROTO, -EINVAL: not such a table. */
int gp_core_set_policy(struct gp_core *core, uint32_t device, const struct gp_policy_ops *ops, uint64_t now);

/* Decides. Returns when to call again if nothing happens, GP_NEVER if there is nothing to wait for. */
uint64_t gp_core_run(struct gp_core *core, uint64_t now);
/* 1: an action; 0: no more for now. Every want handed out must be answered by gp_core_done(). */
int gp_core_take(struct gp_core *core, struct gp_action *ret);

int gp_core_device_status(struct gp_core *core, uint32_t device, struct gp_core_status *ret);
int gp_core_queue_status(struct gp_core *core, uint64_t queue, struct gp_core_queue_status *ret);

#endif
