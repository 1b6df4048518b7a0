/* SPDX-License-Identifier: MIT */
/*
 * The calls of the design notes, over libgpreempt.  New programs should use
 * <gpreempt/gpreempt.h>; these are here so that programs written to the notes run.
 *
 * 0 on success, -1 on failure with errno set; libgpreempt_poc(7) has the numbers.  Any
 * thread may call.  Queue ids are the driver's, which are unique within a process alone:
 * a call acts on the queues that were last found.  What is suspended runs again after
 * the last gpreempt_poc_cleanup(), and when the process ends.
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
	uint32_t queue_id;
	uint32_t priority; /* UINT32_MAX: unknown */
	uint32_t gpu_id;
	pid_t process_id;
	bool is_active;
	uint64_t queue_address; /* of the ring; 0: unknown */
} gpreempt_queue_info_t;
#pragma GCC diagnostic pop

int gpreempt_poc_init(void);
void gpreempt_poc_cleanup(void);

/* grace_period_us is a wish: the hardware has none, or at most about 121. */
int gpreempt_suspend_queues(uint32_t *queue_ids, uint32_t num_queues, uint32_t grace_period_us);
int gpreempt_resume_queues(uint32_t *queue_ids, uint32_t num_queues);

/* What they return is freed with gpreempt_free_queue_info(); with no queue it is NULL. */
int gpreempt_get_all_queues(gpreempt_queue_info_t **queues, uint32_t *num_queues);
int gpreempt_find_queues_by_priority(uint32_t min_prio, uint32_t max_prio, gpreempt_queue_info_t **queues,
				     uint32_t *num_queues);
int gpreempt_find_queues_by_process(pid_t pid, gpreempt_queue_info_t **queues, uint32_t *num_queues);
/* Asks anew, of a queue that was found. The notes name the call and not its form. */
int gpreempt_get_queue_status(uint32_t queue_id, gpreempt_queue_info_t *info);
void gpreempt_free_queue_info(gpreempt_queue_info_t *queues);

#ifdef __cplusplus
}
#endif

#endif
