/* SPDX-License-Identifier: MIT */
/*
 * The simulated machine: clients that make requests, GPUs, and the scheduler between
 * them.  Its time is its owner's: gp_machine_step() goes to one instant, which must not
 * be later than gp_machine_next().
 */
#ifndef GP_MACHINE_H
#define GP_MACHINE_H

#include <gpreempt/backend.h>

#include "core/core.h"
#include "machine/run.h"

struct gp_machine;

/* -EINVAL: the scenario does not fit the device. result, if not NULL, is filled while it runs. */
int gp_machine_new(const struct gp_scenario *sc, const struct gp_config *config, struct gp_run_result *result,
		   struct gp_machine **ret);
struct gp_machine *gp_machine_free(struct gp_machine *m);

uint64_t gp_machine_next(const struct gp_machine *m);
void gp_machine_step(struct gp_machine *m, uint64_t now_ns);
/* Step after step, to now_ns. */
void gp_machine_run_until(struct gp_machine *m, uint64_t now_ns);
/* From now on requests and work count. */
void gp_machine_measure(struct gp_machine *m);
/* So long was some online request in the machine, since it measures. */
uint64_t gp_machine_online_busy(const struct gp_machine *m);
/* Closes the figures: what is still open counts as it stands. */
void gp_machine_finish(struct gp_machine *m);

/*
 * Jobs come while the machine runs: an offline client that does so many steps and goes.  The group must
 * outlive the machine.  -ENOSPC: there are GP_MAX_CLIENTS.
 */
int gp_machine_job_start(struct gp_machine *m, const struct gp_group *group, uint64_t steps, uint64_t tag);

struct gp_job_end {
	uint64_t tag;
	uint64_t end_ns;
};

/* 1: one that has ended since, in the order in which they did; 0: no more. */
int gp_machine_job_ended(struct gp_machine *m, struct gp_job_end *ret);

/* For the library: somebody else's wishes. Follow with gp_machine_settle(). */
struct gp_core *gp_machine_core(struct gp_machine *m); /* NULL: nobody schedules */
struct gp_backend *gp_machine_backend(struct gp_machine *m);
const struct gp_backend_ops *gp_machine_ops(const struct gp_machine *m);
uint64_t gp_machine_now(const struct gp_machine *m);
uint64_t gp_machine_cycles(struct gp_machine *m); /* of all devices, since it began */
void gp_machine_settle(struct gp_machine *m);

#endif
