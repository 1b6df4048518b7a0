/* SPDX-License-Identifier: MIT */
/*
 * The calls of the design notes, over libgpreempt.  New programs should use
 * <gpreempt/gpreempt.h>; these are here so that programs written to the notes run.
 *
 * 0 on success, -1 on failure with errno set; libgpreempt_poc(7) has the numbers.  Any
 * thread may call.  What is suspended runs again after the last gpreempt_poc_cleanup(),
 * and when the process ends.
 *
 * The driver's queue ids are unique within a process alone.  A queue_id that these calls
 * return means that queue as long as the process lives: it is the driver's id where no
 * other queue that was found has it, else a number of this library's own, from 1000000 on.
 * When the queue has gone it is ESRCH, never another queue.  An id that was not returned
 * is looked up as a driver's id, and refused with ENOTUNIQ if queues of two processes have it.
 */
#ifndef GPREEMPT_POC_H
#define GPREEMPT_POC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The notes' own layout, with the hole it has. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpadded"
typedef struct {
	uint32_t queue_id; /* what the calls below take */
	uint32_t priority; /* UINT32_MAX: unknown */
	uint32_t gpu_id;
	pid_t process_id;
	bool is_active;
	uint64_t queue_address; /* of the ring; 0: unknown */
} gpreempt_queue_info_t;
#pragma GCC diagnostic pop

int gpreempt_poc_init(void);
void gpreempt_poc_cleanup(void);
/*
 * A sentence on the last call that failed in this thread, or ""; valid until the next one that fails.  Not
 * one of the notes' calls.
 */
const char *gpreempt_poc_errmsg(void);

/* grace_period_us is not used: the hardware's ends after about 121 us at most, and would make each stop
 * later. */
int gpreempt_suspend_queues(uint32_t *queue_ids, uint32_t num_queues, uint32_t grace_period_us);
int gpreempt_resume_queues(uint32_t *queue_ids, uint32_t num_queues);

/* What they return is freed with gpreempt_free_queue_info(); with no queue it is NULL. */
int gpreempt_get_all_queues(gpreempt_queue_info_t **queues, uint32_t *num_queues);
int gpreempt_find_queues_by_priority(uint32_t min_prio, uint32_t max_prio, gpreempt_queue_info_t **queues,
				     uint32_t *num_queues);
int gpreempt_find_queues_by_process(pid_t pid, gpreempt_queue_info_t **queues, uint32_t *num_queues);
/* One queue as it is now. The notes name the call and not its form. */
int gpreempt_get_queue_status(uint32_t queue_id, gpreempt_queue_info_t *info);
void gpreempt_free_queue_info(gpreempt_queue_info_t *queues);

#ifdef __cplusplus
}
#endif

#endif
