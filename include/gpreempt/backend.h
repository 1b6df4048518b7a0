/* SPDX-License-Identifier: MIT */
/*
 * What a vendor's GPU must offer. A backend is one table of these; the registry
 * copies it and fills what is missing with -ENOTSUP, so callers never test for
 * NULL.
 */
#ifndef GPREEMPT_BACKEND_H
#define GPREEMPT_BACKEND_H

#include <gpreempt/gpreempt.h>

/*
 * Grows when an entry that a backend fills does: arrays of them have no stride of their own.
 * 2: online_percent and offline_percent of struct gp_device_info.  3: its gpu_id and pci, and local_pid of
 * struct gp_queue_info.  4: instances of struct gp_device_info.
 */
#define GP_BACKEND_ABI 4

struct gp_backend; /* the backend's own */

/* How a stop is done; also the rows of every table we print. */
enum gp_mechanism {
	GP_MECH_NONE,
	GP_MECH_THROTTLE,
	GP_MECH_GATE,
	GP_MECH_INTERRUPT,
	GP_MECH_YIELD,
	GP_MECH_COUNT
};

/* How a KFD queue is stopped. Bits, because an agent says which it has. AUTO: the best the client has. */
#define GP_KFD_WAY_AUTO 0u
#define GP_KFD_WAY_UPDATE (1u << 0)  /* UPDATE_QUEUE with 0 percent, by its own process */
#define GP_KFD_WAY_DBG (1u << 1)     /* the debugger's SUSPEND_QUEUES, by gpreemptd */
#define GP_KFD_WAY_PRIVATE (1u << 2) /* PREEMPT_QUEUE and RESUME_QUEUE of a private kernel */
#define GP_KFD_WAY_SESSION (1u << 3) /* a scheduling session of gpreemptd's, in a kernel that has them */
#define GP_NVRM_WAY_PARK (1u << 4)   /* NVIDIA's DISABLE_CHANNELS, by its own process */

struct gp_want {
	uint64_t queue;
	uint32_t want;  /* enum gp_want_kind */
	int32_t status; /* out: 0, -EINPROGRESS or another -errno */
};

/* How one want ended, and how long that took from apply() to the last wave off (or on). */
struct gp_done {
	struct gp_want want;
	uint64_t latency_ns;
	uint32_t doubtful; /* 1: it failed, because nobody answered, and may have been done all the same */
	uint32_t reserved;
};

struct gp_apply_opts {
	size_t size;
	uint64_t lease_ns;   /* stops undo themselves after this, unless renewed; 0: never */
	uint32_t mechanism;  /* enum gp_mechanism; NONE: the backend's best */
	uint32_t flags;      /* none yet: must be 0 */
	uint64_t timeout_ns; /* of a drain; kfd: and of the driver's call in the private way */
	uint32_t way;        /* kfd: one of GP_KFD_WAY_* */
	uint32_t type;       /* enum gp_preempt_type */
};

struct gp_activity {
	uint64_t rptr; /* packets read and written, where the queue has such pointers */
	uint64_t wptr;
	uint32_t activity; /* enum gp_activity_kind */
	uint32_t reserved;
};

struct gp_backend_opts {
	size_t size;
	const char *device; /* backend's own: which device, or which model of one */
	const void *params; /* backend's own */
};

struct gp_backend_ops {
	size_t size;
	uint32_t abi;
	uint32_t flags;
	const char *name; /* the only mandatory field */

	/* -ENODEV: not on this machine, try the next backend. */
	int (*open)(const struct gp_backend_opts *opts, struct gp_backend **ret);
	/* Everything it changed goes back to GP_RUN. */
	void (*close)(struct gp_backend *be);
	/* Both fill at most n and return how many there are. */
	int (*devices)(struct gp_backend *be, struct gp_device_info *infos, size_t n);
	int (*queues)(struct gp_backend *be, struct gp_queue_info *infos, size_t n);
	/*
	 * Stops and resumes together, any number of queues and devices; at most
	 * one device cycle per device where the hardware allows, none where
	 * nothing changes.  Every want gets a status: 0, it is so already;
	 * -EINPROGRESS, complete() will say; else nothing was done about it.
	 * Returns the first of these errors, or 0.  opts may be NULL: all zero.
	 * n of 0 renews every lease that opts of an earlier call gave.
	 */
	int (*apply)(struct gp_backend *be, struct gp_want *wants, size_t n,
		     const struct gp_apply_opts *opts);
	/* What was in progress and has ended since the last call: at most n, their number is returned. */
	int (*complete)(struct gp_backend *be, struct gp_done *done, size_t n);
	int (*reserve)(struct gp_backend *be, uint32_t device, uint32_t online_percent,
		       uint32_t offline_percent);
	int (*activity)(struct gp_backend *be, uint64_t queue, struct gp_activity *ret);
};

#endif
