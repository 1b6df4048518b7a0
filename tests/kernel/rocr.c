// SPDX-License-Identifier: MIT
/* bed: timeout=180 param=gfx=gfx90a */
/*
 * AMD's own runtime, as Debian has it (ROCr 5.2.3, which knows gfx90a), on the software GPU:
 * it finds the device, makes a queue, dispatches, copies by SDMA, and its signals come.
 */
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdlib.h>
#include <string.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define COPY (1u << 20)

static hsa_agent_t gpu, cpu;
static hsa_amd_memory_pool_t gpu_pool, cpu_pool;

static hsa_status_t find_agent(hsa_agent_t agent, void *unused)
{
	hsa_device_type_t type;

	(void)unused;
	hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
	if (type == HSA_DEVICE_TYPE_GPU)
		gpu = agent;
	else if (type == HSA_DEVICE_TYPE_CPU)
		cpu = agent;
	return HSA_STATUS_SUCCESS;
}

static hsa_status_t find_pool(hsa_amd_memory_pool_t pool, void *ret)
{
	hsa_amd_segment_t segment;
	bool allocates = false;

	hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
	hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allocates);
	if (segment != HSA_AMD_SEGMENT_GLOBAL || !allocates)
		return HSA_STATUS_SUCCESS;
	*(hsa_amd_memory_pool_t *)ret = pool;
	return HSA_STATUS_INFO_BREAK;
}

static bool wait_for(hsa_signal_t signal)
{
	return hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, 30 * SECOND,
					 HSA_WAIT_STATE_BLOCKED) < 1;
}

/* 20 ms of work, in the field that the software GPU reads it from. */
static void dispatch(hsa_queue_t *queue, hsa_signal_t signal)
{
	uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
	hsa_kernel_dispatch_packet_t *p =
		(hsa_kernel_dispatch_packet_t *)queue->base_address + index % queue->size;
	uint16_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
			  1 << HSA_PACKET_HEADER_BARRIER |
			  HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;

	memset((char *)p + 2, 0, sizeof(*p) - 2);
	p->workgroup_size_x = 256;
	p->workgroup_size_y = p->workgroup_size_z = 1;
	p->grid_size_x = 4096;
	p->grid_size_y = p->grid_size_z = 1;
	p->setup = 1;
	p->reserved2 = 20 * MS;
	p->completion_signal = signal;
	__atomic_store_n(&p->header, header, __ATOMIC_RELEASE);
	hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

static void a_queue_of_the_runtime_dispatches(void)
{
	hsa_queue_t *queue = NULL;
	hsa_signal_t signal;
	uint64_t begin;

	ok(hsa_queue_create(gpu, 256, HSA_QUEUE_TYPE_SINGLE, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue) ==
		   HSA_STATUS_SUCCESS,
	   "the runtime creates a queue");
	if (!queue)
		return;
	hsa_signal_create(1, 0, NULL, &signal);
	begin = kfd_now();
	dispatch(queue, signal);
	ok(wait_for(signal), "a dispatch ends, and the runtime's signal says so");
	ok(kfd_now() - begin >= 20 * MS, "after the time it takes");
	ok(kfd_stat(0, "interrupts") > 0, "an interrupt woke the waiter");
	hsa_signal_destroy(signal);
	ok(hsa_queue_destroy(queue) == HSA_STATUS_SUCCESS, "the queue is destroyed");
}

static bool copy(void *dst, hsa_agent_t to, const void *src, hsa_agent_t from)
{
	hsa_signal_t signal;
	bool done;

	hsa_signal_create(1, 0, NULL, &signal);
	done = hsa_amd_memory_async_copy(dst, to, src, from, COPY, 0, NULL, signal) == HSA_STATUS_SUCCESS &&
	       wait_for(signal);
	hsa_signal_destroy(signal);
	return done;
}

static void memory_is_copied_by_sdma(void)
{
	unsigned char *host = NULL, *back = NULL;
	void *device = NULL;

	hsa_amd_memory_pool_allocate(cpu_pool, COPY, 0, (void **)&host);
	hsa_amd_memory_pool_allocate(cpu_pool, COPY, 0, (void **)&back);
	hsa_amd_memory_pool_allocate(gpu_pool, COPY, 0, &device);
	ok(host && back && device, "the runtime allocates memory of both sides");
	hsa_amd_agents_allow_access(1, &gpu, NULL, host);
	hsa_amd_agents_allow_access(1, &gpu, NULL, back);
	for (unsigned int i = 0; i < COPY; i++)
		host[i] = (unsigned char)(i * 7 + i / 251);
	memset(back, 0, COPY);
	ok(copy(device, gpu, host, cpu), "memory is copied to the device");
	ok(copy(back, cpu, device, gpu), "and back");
	ok(memcmp(host, back, COPY) == 0, "every byte of it");
	ok(kfd_stat(0, "sdma_bytes") >= 2 * COPY, "SDMA did it (%lld bytes)",
	   (long long)kfd_stat(0, "sdma_bytes"));
	hsa_amd_memory_pool_free(host);
	hsa_amd_memory_pool_free(back);
	hsa_amd_memory_pool_free(device);
}

int main(void)
{
	char name[64] = "";

	if (!ok(hsa_init() == HSA_STATUS_SUCCESS, "the runtime starts"))
		return tap_done();
	hsa_iterate_agents(find_agent, NULL);
	hsa_agent_get_info(gpu, HSA_AGENT_INFO_NAME, name);
	ok(strcmp(name, "gfx90a") == 0, "it finds the device, as %s", name);
	hsa_amd_agent_iterate_memory_pools(gpu, find_pool, &gpu_pool);
	hsa_amd_agent_iterate_memory_pools(cpu, find_pool, &cpu_pool);
	a_queue_of_the_runtime_dispatches();
	memory_is_copied_by_sdma();
	ok(kfd_stat(0, "bad_addresses") == 0, "no address was mixed up");
	ok(hsa_shut_down() == HSA_STATUS_SUCCESS, "the runtime ends");
	return tap_done();
}
