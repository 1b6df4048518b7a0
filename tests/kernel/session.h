/* SPDX-License-Identifier: MIT */
/* Scheduling sessions of the patched driver, for tests.  Calls return 0 or a count, else -errno. */
#ifndef GP_TESTS_KERNEL_SESSION_H
#define GP_TESTS_KERNEL_SESSION_H

#include <sys/types.h>

#include "backend/kfd/session_uapi.h"
#include "dbg.h"

/* Says so, as a test that is skipped does. */
int session_missing(void);

/* A session's descriptor. */
int session_open(struct kfd *k, uint64_t lease_ns);
/* KFD_SESSION_RIGHT_ of one that this process makes, or -errno. */
int session_rights(struct kfd *k);
int session_call(int fd, struct kfd_session_args *args);

/* An entry: a queue of that process, or KFD_SESSION_ALL_QUEUES of it. */
struct kfd_session_queue session_queue(pid_t pid, uint32_t queue_id, uint32_t want);
/* 0, with a status in each entry; ret_set may be NULL. */
int session_set(int fd, struct kfd_session_queue *queues, uint32_t n, struct kfd_session_set *ret_set);
/* One entry: its status, or -errno. */
int session_one(int fd, pid_t pid, uint32_t queue_id, uint32_t want);
int session_all(int fd, pid_t pid, uint32_t want);
/* KFD_SESSION_ACTIVE and so on, or -errno. */
int session_state(int fd, pid_t pid, uint32_t queue_id);

int session_class(int fd, pid_t pid, uint32_t class);
/* ret_args may be NULL. */
int session_reserve(int fd, uint32_t gpu_id, uint32_t online, uint32_t offline, uint32_t period_ms,
		    struct kfd_session_reservation *ret_args);

/* By this session, and not on the device. */
int session_is_stopped(int fd, pid_t pid, uint32_t queue_id);

/* Packets that the driver sent to device 0 since the last call. */
struct session_packets {
	int64_t unmap, query, runlist;
};

struct session_packets session_packets(void);

/* What the driver's trace says from now on; on 0: no more, and what it has said stays. */
int session_trace(int on);
/* Whether that stands in the file, which a note tells if it does not. */
int session_file_says(const char *path, const char *text);
#define SESSION_TRACE "/sys/kernel/tracing/trace"

/* A process with so many AQL queues on the first device, and work of so many ms on each; 0 ms: none. */
int session_peer(struct dbg_peer *p, uint32_t queues, uint64_t ms);

#endif
