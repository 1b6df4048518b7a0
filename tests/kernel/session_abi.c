// SPDX-License-Identifier: MIT
/*
 * Not a program: kernel/check-series compiles it with the header that the series makes, and then our own
 * names for scheduling sessions are the driver's.
 */
#define __user /* as they are in the kernel, headers have it */
#include <linux/kfd_ioctl.h>
#include <stddef.h>

/* Names that both have. */
#define kfd_runtime_info our_runtime_info
#define kfd_event_data our_event_data
#include "backend/kfd/session_uapi.h"

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #ours " is not " #theirs)
#define SAME_PLACE(our_struct, our_field, their_struct, their_field) \
	SAME(offsetof(struct our_struct, our_field), offsetof(struct their_struct, their_field))

SAME(KFD_IOC_SESSION, AMDKFD_IOC_SCHED);
SAME(KFD_SESSION_VERSION, KFD_SCHED_VERSION);
SAME(KFD_SESSION_CREATE, KFD_SCHED_OP_CREATE);
SAME(KFD_SESSION_SET, KFD_SCHED_OP_SET);
SAME(KFD_SESSION_QUERY, KFD_SCHED_OP_QUERY);
SAME(KFD_SESSION_SET_CLASS, KFD_SCHED_OP_SET_CLASS);
SAME(KFD_SESSION_SET_RESERVATION, KFD_SCHED_OP_SET_RESERVATION);
SAME(KFD_SESSION_SET_BACKGROUND, KFD_SCHED_OP_SET_BACKGROUND);
SAME(KFD_SESSION_MAX_QUEUES, KFD_SCHED_MAX_QUEUES);
SAME(KFD_SESSION_ALL_QUEUES, KFD_SCHED_ALL_QUEUES);
SAME(KFD_SESSION_ALL_PROCESSES, KFD_SCHED_ALL_PROCESSES);
SAME(KFD_SESSION_MAX_DRAIN_NS, KFD_SCHED_MAX_DRAIN_NS);
SAME(KFD_SESSION_COMPUTE_ONLY, KFD_SCHED_QUEUE_COMPUTE_ONLY);
SAME(KFD_SESSION_RUN, KFD_SCHED_RUN);
SAME(KFD_SESSION_STOP, KFD_SCHED_STOP);
SAME(KFD_SESSION_SAVE, KFD_SCHED_SAVE);
SAME(KFD_SESSION_DRAIN, KFD_SCHED_DRAIN);
SAME(KFD_SESSION_KILL, KFD_SCHED_KILL);
SAME(KFD_SESSION_RIGHT_ALL, KFD_SCHED_RIGHT_ALL);
SAME(KFD_SESSION_RIGHT_ADMIN, KFD_SCHED_RIGHT_ADMIN);
SAME(KFD_SESSION_CLASS_ONLINE, KFD_SCHED_CLASS_ONLINE);
SAME(KFD_SESSION_CLASS_OFFLINE, KFD_SCHED_CLASS_OFFLINE);

SAME(KFD_SESSION_NOT_FOUND, KFD_SCHED_NOT_FOUND);
SAME(KFD_SESSION_NO_CHANGE, KFD_SCHED_NO_CHANGE);
SAME(KFD_SESSION_DONE, KFD_SCHED_DONE);
SAME(KFD_SESSION_DESTROYED, KFD_SCHED_DESTROYED);
SAME(KFD_SESSION_BUSY, KFD_SCHED_BUSY);
SAME(KFD_SESSION_UNSUPPORTED, KFD_SCHED_UNSUPPORTED);
SAME(KFD_SESSION_RESET, KFD_SCHED_RESET);
SAME(KFD_SESSION_FAILED, KFD_SCHED_FAILED);
SAME(KFD_SESSION_DENIED, KFD_SCHED_DENIED);

SAME(KFD_SESSION_ACTIVE, KFD_SCHED_STATE_ACTIVE);
SAME(KFD_SESSION_STOPPED, KFD_SCHED_STATE_STOPPED);
SAME(KFD_SESSION_DEBUG, KFD_SCHED_STATE_DEBUG);
SAME(KFD_SESSION_EVICTED, KFD_SCHED_STATE_EVICTED);
SAME(KFD_SESSION_DISABLED, KFD_SCHED_STATE_DISABLED);
SAME(KFD_SESSION_WAS_RESET, KFD_SCHED_STATE_RESET);
SAME(KFD_SESSION_OWN, KFD_SCHED_STATE_OWN);
SAME(KFD_SESSION_WAITS, KFD_SCHED_STATE_WAITS);
SAME(KFD_SESSION_YIELDS, KFD_SCHED_STATE_YIELDS);

SAME(sizeof(struct kfd_session_queue), sizeof(struct kfd_sched_queue));
SAME_PLACE(kfd_session_queue, pid, kfd_sched_queue, pid);
SAME_PLACE(kfd_session_queue, queue_id, kfd_sched_queue, queue_id);
SAME_PLACE(kfd_session_queue, start_time, kfd_sched_queue, start_time);
SAME_PLACE(kfd_session_queue, gpu_id, kfd_sched_queue, gpu_id);
SAME_PLACE(kfd_session_queue, flags, kfd_sched_queue, flags);
SAME_PLACE(kfd_session_queue, want, kfd_sched_queue, want);
SAME_PLACE(kfd_session_queue, type, kfd_sched_queue, type);
SAME_PLACE(kfd_session_queue, status, kfd_sched_queue, status);
SAME_PLACE(kfd_session_queue, state, kfd_sched_queue, state);

SAME_PLACE(kfd_session_args, create.lease_ns, kfd_ioctl_sched_args, create.lease_ns);
SAME_PLACE(kfd_session_args, create.fd, kfd_ioctl_sched_args, create.fd);
SAME_PLACE(kfd_session_args, create.rights, kfd_ioctl_sched_args, create.rights);
SAME_PLACE(kfd_session_args, set.queues, kfd_ioctl_sched_args, set.queues_ptr);
SAME_PLACE(kfd_session_args, set.n, kfd_ioctl_sched_args, set.num_queues);
SAME_PLACE(kfd_session_args, set.queue_size, kfd_ioctl_sched_args, set.queue_size);
SAME_PLACE(kfd_session_args, set.grace_us, kfd_ioctl_sched_args, set.grace_us);
SAME_PLACE(kfd_session_args, set.cycles, kfd_ioctl_sched_args, set.num_cycles);
SAME_PLACE(kfd_session_args, set.latency_ns, kfd_ioctl_sched_args, set.latency_ns);
SAME_PLACE(kfd_session_args, set.seqno, kfd_ioctl_sched_args, set.seqno);
SAME_PLACE(kfd_session_args, set.timeout_ns, kfd_ioctl_sched_args, set.timeout_ns);
SAME_PLACE(kfd_session_args, class.start_time, kfd_ioctl_sched_args, set_class.start_time);
SAME_PLACE(kfd_session_args, class.pid, kfd_ioctl_sched_args, set_class.pid);
SAME_PLACE(kfd_session_args, class.class, kfd_ioctl_sched_args, set_class.sched_class);
SAME_PLACE(kfd_session_args, reservation.gpu_id, kfd_ioctl_sched_args, reservation.gpu_id);
SAME_PLACE(kfd_session_args, reservation.online_percent, kfd_ioctl_sched_args, reservation.online_percent);
SAME_PLACE(kfd_session_args, reservation.offline_percent, kfd_ioctl_sched_args, reservation.offline_percent);
SAME_PLACE(kfd_session_args, reservation.period_ms, kfd_ioctl_sched_args, reservation.period_ms);
SAME_PLACE(kfd_session_args, reservation.max_queues, kfd_ioctl_sched_args, reservation.max_queues);
SAME_PLACE(kfd_session_args, reservation.max_processes, kfd_ioctl_sched_args, reservation.max_processes);
SAME_PLACE(kfd_session_args, background.gpu_id, kfd_ioctl_sched_args, background.gpu_id);
SAME_PLACE(kfd_session_args, background.enable, kfd_ioctl_sched_args, background.enable);
SAME_PLACE(kfd_session_args, background.period_us, kfd_ioctl_sched_args, background.period_us);
SAME_PLACE(kfd_session_args, background.linger_us, kfd_ioctl_sched_args, background.linger_us);
SAME_PLACE(kfd_session_args, background.cpu_percent, kfd_ioctl_sched_args, background.cpu_percent);
