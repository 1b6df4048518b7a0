/* SPDX-License-Identifier: MIT */
/* What this machine's amdkfd can do: asked of it by calls that change nothing, and tried on a queue of our
 * own. */
#ifndef GP_BACKEND_KFD_PROBE_H
#define GP_BACKEND_KFD_PROBE_H

#include <stdint.h>

#include "backend/trial.h"

struct gp_kfd_answers {
	uint32_t major, minor;  /* of the driver's interface */
	int32_t debugger;       /* DBG_TRAP: 0, or -ENOTTY: this driver does not know it */
	uint32_t private_names; /* 1: the kernel has functions named as a private kernel's calls, which proves
				   nothing */
};

/* -ENOENT, -EACCES: of /dev/kfd. The process is one of the driver's from then on, as any that opens it. */
int gp_kfd_ask(struct gp_kfd_answers *ret);

/*
 * On the first GPU that lets us: creates a queue, runs a packet on it, stops it with
 * UPDATE_QUEUE, sees that another packet waits, resumes it and sees that packet end.
 * Everything is given back.  Like any stop it is a device cycle, twice: whatever runs on
 * that GPU is taken off for a moment.  Takes a tenth of a second.
 *
 * 0; -ENODEV: no GPU; -EIO: a packet ran that should not have, or did not that should;
 * else the error of the step.
 */
int gp_kfd_try(struct gp_trial *ret);
/*
 * Likewise of a queue that has packets to run all the time, ten times: it stands still while
 * it is stopped, goes on afterwards, and no packet is lost.  Progress is in packets.
 */
int gp_kfd_try_running(struct gp_trial *ret);
/*
 * The first one with the debugger's SUSPEND_QUEUES and RESUME_QUEUES, in a process of its own
 * that is its own debugger.  To enable and disable that takes everybody's work off the GPU, and
 * with some drivers DISABLE hangs: ret->hung, if a signal could end that.
 *
 * -ETIMEDOUT: something hung, and the process was killed; -EDEADLK: not even that could be done.
 */
int gp_kfd_try_debugger(struct gp_trial *ret);

#endif
