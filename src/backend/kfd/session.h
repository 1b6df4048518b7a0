/* SPDX-License-Identifier: MIT */
/*
 * Scheduling sessions of amdkfd, for whoever may have one.  Calls return 0 or -errno, and may take as long as
 * a GPU takes to answer.
 */
#ifndef GP_BACKEND_KFD_SESSION_H
#define GP_BACKEND_KFD_SESSION_H

#include "backend/kfd/session_uapi.h"

struct gp_session_ops {
	/* A session's descriptor. -EPERM: it would reach the caller's own queues alone. */
	int (*open)(uint64_t lease_ns);
	/* Stops and resumes what the entries name. -ESTALE: the lease has ended, all runs, and nothing was
	 * done. */
	int (*set)(int fd, struct kfd_session_queue *queues, uint32_t n, uint32_t *ret_cycles);
	int (*tell)(int fd, struct kfd_session_args *setting); /* any other operation. -ESTALE */
	int (*renew)(int fd);                                  /* the lease. -ESTALE */
	void (*close)(int fd);
};

extern const struct gp_session_ops gp_kfd_session;

/* Which the driver says it has, in the sysfs below root; 0: none. A higher one has all that lower ones have.
 */
uint32_t gp_session_version(const char *root);
/* Those of this process alone, for whom that is enough. */
int gp_session_open_own(uint64_t lease_ns);

/* What became of an entry: 0 or -errno, and NULL or what there is to say of it. */
int gp_session_status(const struct kfd_session_queue *entry, const char **ret_why);

#endif
