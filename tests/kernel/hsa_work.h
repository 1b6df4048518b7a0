/* SPDX-License-Identifier: MIT */
/* Queues and packets of AMD's own runtime, for programs that launch to them: through libgpreempt-level.so. */
#ifndef GP_TESTS_KERNEL_HSA_WORK_H
#define GP_TESTS_KERNEL_HSA_WORK_H

#include <hsa/hsa.h>
#include <stdint.h>

#define HSA_WORK_BARRIER (1u << 0) /* the packet waits for those before it */

/* Runtime and GPU. tools: for HSA_TOOLS_LIB, names of files in the build's folder, or NULL. */
int hsa_work_start(const char *const *tools);
hsa_agent_t hsa_work_gpu(void);
hsa_queue_t *hsa_work_queue(uint32_t size);
hsa_signal_t hsa_work_signal(int64_t value);

/* As many waves as the device has room for, or fewer; each so long. The doorbell rings. */
void hsa_work_launch(hsa_queue_t *queue, uint32_t workgroups, uint64_t wave_ns, hsa_signal_t signal,
		     uint32_t flags);
void hsa_work_wait_for(hsa_queue_t *queue, hsa_signal_t waits_for,
		       hsa_signal_t signal); /* a barrier packet */
/* By the device's clock, in ns of the monotonic one. */
uint64_t hsa_work_began(hsa_signal_t signal);
uint64_t hsa_work_ended(hsa_signal_t signal);
int hsa_work_await(hsa_signal_t signal); /* until it is 0; -ETIMEDOUT after a minute */

#endif
