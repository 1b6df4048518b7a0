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

#endif
