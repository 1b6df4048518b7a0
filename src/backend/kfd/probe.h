/* SPDX-License-Identifier: MIT */
/* What this machine's amdkfd can do: asked of it by calls that change nothing, and tried on a queue of our
 * own. */
#ifndef GP_BACKEND_KFD_PROBE_H
#define GP_BACKEND_KFD_PROBE_H

#include <stdint.h>

struct gp_kfd_answers {
	uint32_t major, minor; /* of the driver's interface */
	int32_t debugger;      /* DBG_TRAP: 0, or -ENOTTY: this driver does not know it */
	int32_t own_calls; /* a private kernel's PREEMPT_QUEUE and RESUME_QUEUE: likewise, by its symbols */
};

/* -ENOENT, -EACCES: of /dev/kfd. The process is one of the driver's from then on, as any that opens it. */
int gp_kfd_ask(struct gp_kfd_answers *ret);

struct gp_kfd_trial {
	uint32_t gpu_id, gfx_target;
	const char *step; /* what was being tried: "create a queue" */
	uint64_t stop_ns; /* what the calls took */
	uint64_t resume_ns;
};

/*
 * On the first GPU that lets us: creates a queue, runs a packet on it, stops it with
 * UPDATE_QUEUE, sees that another packet waits, resumes it and sees that packet end.
 * Everything is given back.  Like any stop it is a device cycle, twice: whatever runs on
 * that GPU is taken off for a moment.  Takes a tenth of a second.
 *
 * 0; -ENODEV: no GPU; -EIO: a packet ran that should not have, or did not that should;
 * else the error of the step.
 */
int gp_kfd_try(struct gp_kfd_trial *ret);

#endif
