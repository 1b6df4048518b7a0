/* SPDX-License-Identifier: MIT */
/* A queue that was stopped and resumed to see whether that works, and what came of it. */
#ifndef GP_BACKEND_TRIAL_H
#define GP_BACKEND_TRIAL_H

#include <stdint.h>

struct gp_trial {
	const char *step;              /* what was being tried: "create a queue" */
	uint32_t gpu_id, gfx_target;   /* 0: simulated */
	uint64_t stop_ns, resume_ns;   /* what the calls took; of several the longest */
	uint64_t end_ns;               /* what it took the debugger to let go */
	uint64_t before, still, after; /* progress in all rounds: running, stopped, resumed */
	uint32_t rounds;
	uint32_t hung; /* 1: the debugger was let go only after a signal */
};

/* A queue that has work all the time. */
struct gp_trial_ops {
	uint64_t (*progress)(void *arg, int is_running); /* in a while; is_running: some is expected */
	int (*stop)(void *arg, uint64_t *ret_ns);
	int (*resume)(void *arg, uint64_t *ret_ns);
	const char *stop_step, *resume_step;
};

/* Stops and resumes it ten times. 0; -EIO: it did not stand still while it was stopped, or did not run when
 * it was not; else the error of the step. */
int gp_trial_go(const struct gp_trial_ops *ops, void *arg, struct gp_trial *ret);

#endif
