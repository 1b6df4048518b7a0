/* SPDX-License-Identifier: MIT */
/*
 * amdkfd as a backend, for the queues of the process it is in.  A stop and a resume are
 * each one device cycle for each queue and have ended when apply() returns: nothing is
 * ever in progress.  The registry does not have it, because it has to be told whose calls
 * it sees; without params it does not open (-ENODEV).
 */
#ifndef GP_BACKEND_KFD_KFD_H
#define GP_BACKEND_KFD_KFD_H

#include "backend/kfd/own.h"

/* gp_backend_opts.params */
struct gp_kfd_params {
	struct gp_own *own; /* stays its owner's, and outlives the backend; or NULL: one is made of next */
	gp_ioctl_fn next;   /* what reaches the driver */
	uint32_t ways;      /* GP_KFD_WAY_* that may be used; 0: update alone */
};

extern const struct gp_backend_ops gp_kfd_ops;

/* Through which the calls must pass. */
struct gp_own *gp_kfd_own(struct gp_backend *be);

#endif
