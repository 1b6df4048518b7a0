/* SPDX-License-Identifier: MIT */
/*
 * Runs one row of a scenario: the load, the simulated machine, the scheduler.
 * Same scenario, same seed: same result, to the byte.
 */
#ifndef GP_MACHINE_RUN_H
#define GP_MACHINE_RUN_H

#include "base/hist.h"
#include "machine/scenario.h"

#define GP_TIMELINE_LANES 16

/* One stretch of a lane of the timeline. */
enum gp_span_kind { GP_SPAN_REQUEST, GP_SPAN_WORK, GP_SPAN_SUSPENDED, GP_SPAN_CYCLE, GP_SPAN_HINT };

struct gp_span {
	uint64_t begin_ns;
	uint64_t end_ns;
	uint32_t kind;
	uint32_t lane;
};

struct gp_lane {
	char name[2 * GP_SCENARIO_NAME];
	uint32_t client_class; /* GP_CLASS_UNKNOWN: the device itself */
	uint32_t device;
};

struct gp_run_result {
	/* online */
	uint64_t requests;
	uint64_t unfinished;    /* of those, still open at the end: they count as they stand */
	struct gp_hist latency; /* completion minus intended arrival */
	uint64_t slo_met;       /* of clients with an SLO of their own */
	uint64_t slo_requests;
	uint64_t online_busy_ns; /* some online request was in the machine */
	/* offline: work done, in wave-ns, and whole steps */
	uint64_t offline_wave_ns;
	uint64_t offline_steps;
	/* preemption, from the request (or its hint) to ... */
	struct gp_hist preempt;       /* ... the last offline wave off */
	struct gp_hist to_decision;   /* ... the scheduler's decision */
	struct gp_hist to_call;       /* ... the call issued */
	struct gp_hist to_first_wave; /* ... the first online wave on */
	struct gp_hist resume;        /* decision to give back until offline is on again */
	uint64_t preemptions;
	uint64_t cycles;
	uint64_t lost_wave_ns;
	uint64_t limited; /* preemptions the rate limit refused */
	uint64_t measured_ns;
	uint64_t events;                  /* the model's */
	char reason[128];                 /* why a policy was ejected or preemption backed off */
	char mechanism[GP_SCENARIO_NAME]; /* what the core used */
	/* per 100 slices of the measured time: requests done, offline wave-ns */
	uint64_t online_done[100];
	uint64_t offline_done[100];
	/* the first part of the run, drawn */
	struct gp_lane lanes[GP_TIMELINE_LANES];
	uint32_t nlanes;
	uint32_t nspans;
	struct gp_span *spans;
	uint64_t timeline_from_ns;
	uint64_t timeline_to_ns;
};

/* What to record beside the figures. */
struct gp_run_opts {
	uint64_t timeline_ns; /* 0: no timeline */
	uint64_t max_spans;
};

int gp_run(const struct gp_scenario *sc, const struct gp_config *config, const struct gp_run_opts *opts,
	   struct gp_run_result **ret);
struct gp_run_result *gp_run_free(struct gp_run_result *r);

#endif
