/* SPDX-License-Identifier: MIT */
#ifndef GP_MACHINE_INTERNAL_H
#define GP_MACHINE_INTERNAL_H

#include "backend/sim/sim.h"
#include "base/list.h"
#include "base/timers.h"
#include "machine/load.h"
#include "machine/machine.h"

enum event_kind {
	EVENT_ARRIVAL,
	EVENT_PREPARED,
	EVENT_HINT_BEGIN,
	EVENT_HINT_END,
	EVENT_SAMPLE,
	EVENT_RENEW,
	EVENT_SLICE
};

struct event {
	struct gp_timer timer; /* must be first */
	uint32_t kind;
	void *owner;
};

struct client {
	uint64_t id;
	const struct gp_group *group;
	uint64_t *queues; /* the idle ones last */
	struct gp_load load;
	struct event arrival, sample;
	uint64_t arrival_ns; /* of the event that is set */
	uint64_t look_ns;    /* when its queues were last looked at, or will be next */
	uint32_t seen_busy;  /* then */
	/* streams of their own, so that every way sees the same arrivals */
	struct gp_random prepare_random, sample_random;
	struct gp_list line; /* serial: requests that wait for the one that was sent */
	uint32_t is_serving; /* serial: there is one */
	uint32_t next_queue;
	uint32_t lane;       /* of the timeline, or UINT32_MAX */
	uint32_t is_job;     /* it goes when its steps are done */
	uint32_t steps_open; /* in its queues */
	uint64_t steps_left; /* to put there */
	uint64_t tag;        /* the job's, by who started it */
};

struct request {
	struct gpm_cmd cmd; /* must be first */
	struct event prepared, hint;
	struct client *client;
	struct gp_list node; /* open online requests, or the free ones */
	struct gp_list in_line;
	uint64_t arrival_ns;
	uint64_t hint_ns;   /* when the scheduler heard of it */
	uint64_t demand_ns; /* when the scheduler was first told, or could have seen it */
	uint64_t wave_ns;   /* all its work */
	uint32_t alone;     /* no other online work was on the device when it came */
	uint32_t hinted;
	uint32_t is_next; /* serial: its turn has come */
	uint32_t reserved;
};

/* One preemption on a device, from the demand for it to the last wave off. */
struct episode {
	uint64_t demand_ns; /* 0: nobody waits for one */
	uint64_t action_ns;
	uint64_t called_ns;
	uint64_t off_ns;
	uint32_t under_way; /* stops */
	uint32_t stopped;   /* queues that are, or are being */
};

struct gp_machine {
	struct gp_scenario sc;
	struct gp_config config;
	struct gp_backend_ops ops;
	struct gp_backend *be;
	struct gp_core *core;
	const struct gp_policy_ops *policy;
	struct gp_timers timers;
	struct client *clients;
	uint32_t nclients;
	uint32_t nended; /* in ended */
	uint64_t last_id;
	uint64_t gone_wave_ns; /* done by jobs that are gone */
	struct gp_job_end ended[GP_MAX_CLIENTS];
	uint64_t now;
	uint64_t core_next_ns;
	struct event renew, slice;
	struct gp_list open;
	struct gp_list unused;
	/* figures */
	struct gp_run_result *result; /* NULL: none are kept */
	uint32_t measuring;
	uint32_t next_slice;
	uint64_t from_ns;
	struct episode *episodes;   /* per device */
	uint32_t *online_on_device; /* requests that the device has, per device */
	uint64_t *online_since_ns;
	uint64_t finished_wave_ns; /* of kernels that ended, by what they were to do */
	uint64_t slice_work_ns;
	uint64_t work_at_start_ns;
	uint64_t max_spans;
	uint32_t lane_kind[GP_TIMELINE_LANES];
	uint64_t lane_since_ns[GP_TIMELINE_LANES];
	struct gpm_counters counters_at_start;
};

/* observe.c: the figures */
int gp_observe_init(struct gp_machine *m);
void gp_observe_free(struct gp_machine *m);
void gp_observe_demand(struct gp_machine *m, struct request *r);
void gp_observe_action(struct gp_machine *m, const struct gp_action *action);
void gp_observe_done(struct gp_machine *m, const struct gp_done *done);
void gp_observe_submitted(struct gp_machine *m, struct request *r);
void gp_observe_finished(struct gp_machine *m, struct request *r);
void gp_observe_gone(struct gp_machine *m, uint64_t queue); /* before it goes */
void gp_observe_hint(struct gp_machine *m, const struct request *r);
void gp_observe_slice(struct gp_machine *m);
int gp_observe_is_drawing(const struct gp_machine *m); /* the timeline */
void gp_observe_step(struct gp_machine *m);
struct gpm_counters gp_observe_counters(struct gp_machine *m);

#endif
