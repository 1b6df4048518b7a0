/* SPDX-License-Identifier: MIT */
/*
 * The second half of the design notes' calls: many queues at once, and a share of the
 * hardware's queue slots.  Where the kernel has no batch call they go the first half's
 * way, and say so once on stderr (not with GPREEMPT_QUIET=1).  See libgpreempt_poc(7).
 */
#ifndef GPREEMPT_POC_V2_H
#define GPREEMPT_POC_V2_H

#include "gpreempt_poc.h"

#ifdef __cplusplus
extern "C" {
#endif

int gpreempt_batch_unmap_queues(uint32_t *qids, uint32_t num, uint32_t grace_us);
/* The way their unmap went. */
int gpreempt_fast_remap_queues(uint32_t *qids, uint32_t num);
/* gpu_id: the driver's, or a device's number as gpreempt list has it. */
int gpreempt_set_hqd_reservation(uint32_t gpu_id, uint32_t online_pct, uint32_t offline_pct);

#ifdef __cplusplus
}
#endif

#endif
