// SPDX-License-Identifier: MIT
/*
 * libgpreempt_poc_v2.so: every call of both headers, so that a program needs no other
 * library, passed on to libgpreempt_poc.so, so that both in one process share one state.
 *
 * The versions keep the equal names apart: a call from here is bound to the version of
 * libgpreempt_poc.so, which no definition here has.
 */
#include "gpreempt/compat/gpreempt_poc_v2.h"

#define EXPORT __attribute__((visibility("default")))

#define FORWARD(type, name, parameters, ...) \
	extern type poc_##name parameters; \
	__asm__(".symver poc_" #name ", gpreempt_" #name "@GPREEMPT_POC_0.1"); \
	EXPORT type gpreempt_##name parameters \
	{ \
		return poc_##name(__VA_ARGS__); \
	}

FORWARD(int, poc_init, (void))
FORWARD(void, poc_cleanup, (void))
FORWARD(const char *, poc_errmsg, (void))
FORWARD(int, suspend_queues, (uint32_t * ids, uint32_t n, uint32_t grace_us), ids, n, grace_us)
FORWARD(int, resume_queues, (uint32_t * ids, uint32_t n), ids, n)
FORWARD(int, get_all_queues, (gpreempt_queue_info_t * *queues, uint32_t *n), queues, n)
FORWARD(int, find_queues_by_priority,
	(uint32_t min, uint32_t max, gpreempt_queue_info_t **queues, uint32_t *n), min, max, queues, n)
FORWARD(int, find_queues_by_process, (pid_t pid, gpreempt_queue_info_t **queues, uint32_t *n), pid, queues, n)
FORWARD(int, get_queue_status, (uint32_t id, gpreempt_queue_info_t *info), id, info)
FORWARD(void, free_queue_info, (gpreempt_queue_info_t * queues), queues)
FORWARD(int, batch_unmap_queues, (uint32_t * ids, uint32_t n, uint32_t grace_us), ids, n, grace_us)
FORWARD(int, fast_remap_queues, (uint32_t * ids, uint32_t n), ids, n)
FORWARD(int, set_hqd_reservation, (uint32_t gpu_id, uint32_t online, uint32_t offline), gpu_id, online,
	offline)
