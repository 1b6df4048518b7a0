/* SPDX-License-Identifier: MIT */
/*
 * Scheduling sessions of amdkfd, as kernel/series adds them to include/uapi/linux/kfd_ioctl.h, where what
 * they promise is written down.  A driver that has them says so in KFD_SESSION_VERSION_FILE; no call is to be
 * tried on one that does not.  Fields the driver writes are marked out, and are 0 in a call.
 */
#ifndef GP_BACKEND_KFD_SESSION_UAPI_H
#define GP_BACKEND_KFD_SESSION_UAPI_H

#include "uapi.h"

#define KFD_SESSION_VERSION_FILE "/sys/class/kfd/kfd/sched_version"
#define KFD_SESSION_VERSION 1

enum {
	KFD_SESSION_CREATE = 1, /* on /dev/kfd; the others on what it returns */
	KFD_SESSION_SET,
	KFD_SESSION_QUERY,
	KFD_SESSION_SET_CLASS,
	KFD_SESSION_SET_RESERVATION,
	KFD_SESSION_SET_BACKGROUND,
};

#define KFD_SESSION_MAX_QUEUES 1024
#define KFD_SESSION_ALL_QUEUES UINT32_MAX
#define KFD_SESSION_ALL_PROCESSES UINT32_MAX /* of the GPU that is named */
#define KFD_SESSION_MAX_DRAIN_NS 60000000000ull
#define KFD_SESSION_COMPUTE_ONLY 1u /* kfd_session_queue.flags */

enum {
	KFD_SESSION_RUN, /* kfd_session_queue.want */
	KFD_SESSION_STOP,
};

enum {
	KFD_SESSION_SAVE, /* kfd_session_queue.type */
	KFD_SESSION_DRAIN,
	KFD_SESSION_KILL, /* EOPNOTSUPP */
};

/* kfd_session_queue.status; of several queues, the highest */
enum {
	KFD_SESSION_NOT_FOUND,
	KFD_SESSION_NO_CHANGE,
	KFD_SESSION_DONE,
	KFD_SESSION_DESTROYED,
	KFD_SESSION_BUSY,
	KFD_SESSION_UNSUPPORTED,
	KFD_SESSION_RESET,
	KFD_SESSION_FAILED,
	KFD_SESSION_DENIED,
};

/* kfd_session_queue.state */
#define KFD_SESSION_ACTIVE (1u << 0)
#define KFD_SESSION_STOPPED (1u << 1)
#define KFD_SESSION_DEBUG (1u << 2)
#define KFD_SESSION_EVICTED (1u << 3)
#define KFD_SESSION_DISABLED (1u << 4)
#define KFD_SESSION_WAS_RESET (1u << 5)
#define KFD_SESSION_OWN (1u << 6)
#define KFD_SESSION_WAITS (1u << 7)  /* for its turn, beside a reservation */
#define KFD_SESSION_YIELDS (1u << 8) /* to online queues, in the background */

enum {
	KFD_SESSION_CLASS_NONE,
	KFD_SESSION_CLASS_ONLINE,
	KFD_SESSION_CLASS_OFFLINE,
};

struct kfd_session_queue {
	uint32_t pid, queue_id;
	uint64_t start_time; /* clock ticks, field 22 of /proc/PID/stat as the caller reads it; 0: any */
	uint32_t gpu_id;     /* 0: any */
	uint32_t flags, want, type;
	uint32_t status, state; /* out */
};

/* kfd_session_create.rights */
#define KFD_SESSION_RIGHT_ALL (1u << 0)   /* to the queues of all processes */
#define KFD_SESSION_RIGHT_ADMIN (1u << 1) /* to reservations, and a GPU as a whole */

struct kfd_session_create {
	uint64_t lease_ns;
	int32_t fd;      /* out */
	uint32_t rights; /* out */
};

struct kfd_session_set {
	uint64_t queues;
	uint32_t n, queue_size;
	uint32_t grace_us; /* in and out; out 0: not known */
	uint32_t cycles;   /* out, as what follows */
	uint64_t latency_ns, seqno;
	uint64_t timeout_ns; /* in: for queues that are drained */
};

struct kfd_session_class {
	uint64_t start_time;
	uint32_t pid, class;
};

struct kfd_session_reservation {
	uint32_t gpu_id, online_percent, offline_percent;
	uint32_t period_ms;                 /* of a turn; 0: the driver's default */
	uint32_t max_queues, max_processes; /* out */
};

struct kfd_session_background {
	uint32_t gpu_id, enable;
	uint32_t period_us, linger_us, cpu_percent; /* 0: the driver's defaults */
	uint32_t pad;
};

struct kfd_session_args {
	uint32_t op, flags;
	union {
		struct kfd_session_create create;
		struct kfd_session_set set; /* for KFD_SESSION_QUERY as well */
		struct kfd_session_class class;
		struct kfd_session_reservation reservation;
		struct kfd_session_background background;
		uint64_t pad[7];
	};
};

#define KFD_IOC_SESSION KFD_IOC(KFD_RW, 0x29, struct kfd_session_args)

#endif
