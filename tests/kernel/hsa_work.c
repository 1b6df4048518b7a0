// SPDX-License-Identifier: MIT
#include "hsa_work.h"

#include <errno.h>
#include <hsa/amd_hsa_signal.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kfd.h"

#define TICK 10 /* ns of the GPU's clock */
#define MINUTE 60000000000ull

static hsa_agent_t gpu;

hsa_agent_t hsa_work_gpu(void)
{
	return gpu;
}

static hsa_status_t find_gpu(hsa_agent_t agent, void *unused)
{
	hsa_device_type_t type;

	(void)unused;
	hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
	if (type == HSA_DEVICE_TYPE_GPU)
		gpu = agent;
	return HSA_STATUS_SUCCESS;
}

/* This program is in tests/kernel of the build. */
static void name_tools(const char *const *tools)
{
	char exe[PATH_MAX] = "", list[4 * PATH_MAX] = "";
	size_t used = 0;
	const char *build;

	if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0)
		return;
	build = dirname(dirname(dirname(exe)));
	for (; *tools; tools++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s/%s", used ? " " : "", build,
					 *tools);
	setenv("HSA_TOOLS_LIB", list, 1);
}

int hsa_work_start(const char *const *tools)
{
	hsa_status_t status;

	if (tools)
		name_tools(tools);
	status = hsa_init();
	if (status == HSA_STATUS_SUCCESS)
		status = hsa_iterate_agents(find_gpu, NULL);
	return status == HSA_STATUS_SUCCESS && gpu.handle ? 0 : -ENODEV;
}

hsa_queue_t *hsa_work_queue(uint32_t size)
{
	hsa_queue_t *queue = NULL;

	(void)hsa_queue_create(gpu, size, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue);
	return queue;
}

hsa_signal_t hsa_work_signal(int64_t value)
{
	hsa_signal_t signal = { 0 };

	(void)hsa_signal_create(value, 0, NULL, &signal);
	return signal;
}

/* A place in the ring; waits for one. */
static void *claim(hsa_queue_t *queue, uint64_t *ret_index)
{
	*ret_index = hsa_queue_add_write_index_scacq_screl(queue, 1);
	while (*ret_index - hsa_queue_load_read_index_scacquire(queue) >= queue->size)
		kfd_sleep(100000);
	return (hsa_kernel_dispatch_packet_t *)queue->base_address + *ret_index % queue->size;
}

static void ring(hsa_queue_t *queue, uint16_t *header, uint32_t type, uint32_t flags, uint64_t index)
{
	uint16_t value = (uint16_t)(type << HSA_PACKET_HEADER_TYPE |
				    (flags & HSA_WORK_BARRIER ? 1u : 0u) << HSA_PACKET_HEADER_BARRIER |
				    HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);

	__atomic_store_n(header, value, __ATOMIC_RELEASE);
	hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

void hsa_work_launch(hsa_queue_t *queue, uint32_t workgroups, uint64_t wave_ns, hsa_signal_t signal,
		     uint32_t flags)
{
	uint64_t index;
	hsa_kernel_dispatch_packet_t *p = claim(queue, &index);

	memset((char *)p + 2, 0, sizeof(*p) - 2);
	p->workgroup_size_x = 256;
	p->workgroup_size_y = p->workgroup_size_z = 1;
	p->grid_size_x = workgroups * 256;
	p->grid_size_y = p->grid_size_z = 1;
	p->setup = 1;
	p->reserved2 = wave_ns; /* where the software GPU reads it */
	p->completion_signal = signal;
	ring(queue, &p->header, HSA_PACKET_TYPE_KERNEL_DISPATCH, flags, index);
}

void hsa_work_wait_for(hsa_queue_t *queue, hsa_signal_t waits_for, hsa_signal_t signal)
{
	uint64_t index;
	hsa_barrier_and_packet_t *p = claim(queue, &index);

	memset((char *)p + 2, 0, sizeof(*p) - 2);
	p->dep_signal[0] = waits_for;
	p->completion_signal = signal;
	ring(queue, &p->header, HSA_PACKET_TYPE_BARRIER_AND, HSA_WORK_BARRIER, index);
}

static const amd_signal_t *object(hsa_signal_t signal)
{
	return (const amd_signal_t *)(uintptr_t)signal.handle;
}

uint64_t hsa_work_began(hsa_signal_t signal)
{
	return object(signal)->start_ts * TICK;
}

uint64_t hsa_work_ended(hsa_signal_t signal)
{
	return object(signal)->end_ts * TICK;
}

int hsa_work_await(hsa_signal_t signal)
{
	return hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, MINUTE, HSA_WAIT_STATE_BLOCKED) <
			       1
		       ? 0
		       : -ETIMEDOUT;
}
