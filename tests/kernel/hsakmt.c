// SPDX-License-Identifier: MIT
/* bed: timeout=180 param=gfx=gfx90a */
/*
 * AMD's own library for the driver's calls, as Debian has it (libhsakmt 5.2.3): memory,
 * compute and SDMA queues, AQL and PM4 packets, events.
 */
#include <hsakmt.h>
#include <string.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define RING 0x10000u
#define PAGE 0x1000u

static HSAuint32 node;

static void *memory(HSAuint64 size)
{
	HsaMemFlags flags = {
		.ui32 = { .HostAccess = 1, .NonPaged = 1, .PageSize = HSA_PAGE_SIZE_4KB, .ExecuteAccess = 1 }
	};
	HSAuint64 unused;
	void *addr = NULL;

	if (hsaKmtAllocMemory(node, size, flags, &addr) != HSAKMT_STATUS_SUCCESS)
		return NULL;
	memset(addr, 0, size);
	return hsaKmtMapMemoryToGPU(addr, size, &unused) == HSAKMT_STATUS_SUCCESS ? addr : NULL;
}

static bool find_node(void)
{
	HsaSystemProperties system;
	HsaNodeProperties properties;

	if (hsaKmtAcquireSystemProperties(&system) != HSAKMT_STATUS_SUCCESS)
		return false;
	for (node = 0; node < system.NumNodes; node++)
		if (hsaKmtGetNodeProperties(node, &properties) == HSAKMT_STATUS_SUCCESS &&
		    properties.NumFComputeCores)
			return true;
	return false;
}

static bool becomes(const volatile uint32_t *value, uint32_t wanted)
{
	for (int i = 0; i < 5000 && *value != wanted; i++)
		kfd_sleep(MS);
	return *value == wanted;
}

static void aql_packets_run(void)
{
	HsaQueueResource q = { 0 };
	struct kfd_signal *signal = memory(PAGE);
	uint64_t *pointers = memory(PAGE);
	char *ring = memory(RING);
	uint64_t packet[8] = { 0 };

	for (unsigned int i = 0; i < RING; i += 64)
		*(uint16_t *)(ring + i) = 1;
	q.Queue_read_ptr_aql = pointers;
	q.Queue_write_ptr_aql = pointers + 8;
	ok(hsaKmtCreateQueue(node, HSA_QUEUE_COMPUTE_AQL, 100, HSA_QUEUE_PRIORITY_NORMAL, ring, RING, NULL,
			     &q) == HSAKMT_STATUS_SUCCESS,
	   "an AQL queue is created");
	signal->value = 1;
	packet[0] = 1ull << 16 | 64ull << 32 | 1ull << 48; /* one dimension, 64 work-items */
	packet[1] = 1 | 64ull << 32;
	packet[2] = 1 | 1ull << 32;
	packet[6] = 10 * MS;
	packet[7] = (uintptr_t)signal;
	memcpy(ring + 2, (char *)packet + 2, 62);
	__atomic_store_n((uint16_t *)ring, 2 | 1 << 8, __ATOMIC_RELEASE);
	__atomic_store_n(q.Queue_write_ptr_aql, 1, __ATOMIC_RELEASE);
	__atomic_store_n(q.Queue_DoorBell_aql, 1, __ATOMIC_RELEASE);
	ok(kfd_wait(signal, 10000 * MS) == 0, "its dispatch ends");
	ok(hsaKmtUpdateQueue(q.QueueId, 0, HSA_QUEUE_PRIORITY_NORMAL, ring, RING, NULL) ==
		   HSAKMT_STATUS_SUCCESS,
	   "it is stopped");
	ok(hsaKmtUpdateQueue(q.QueueId, 100, HSA_QUEUE_PRIORITY_HIGH, ring, RING, NULL) ==
		   HSAKMT_STATUS_SUCCESS,
	   "and started, with another priority");
	ok(hsaKmtDestroyQueue(q.QueueId) == HSAKMT_STATUS_SUCCESS, "and destroyed");
}

static HsaEvent *new_event(void)
{
	HsaEventDescriptor descriptor = { .EventType = HSA_EVENTTYPE_SIGNAL, .NodeId = node };
	HsaEvent *event = NULL;

	return hsaKmtCreateEvent(&descriptor, false, false, &event) == HSAKMT_STATUS_SUCCESS ? event : NULL;
}

/* RELEASE_MEM: write the event's number to its mailbox, and interrupt. */
static void pm4_packets_run(void)
{
	uint32_t *ring = memory(RING), *data = memory(PAGE);
	HsaQueueResource q = { 0 };
	HsaEvent *event = new_event();
	uint64_t mailbox = event ? event->EventData.HWData2 : 0;

	ok(event != NULL, "an event is created");
	ok(hsaKmtCreateQueue(node, HSA_QUEUE_COMPUTE, 100, HSA_QUEUE_PRIORITY_NORMAL, ring, RING, NULL, &q) ==
		   HSAKMT_STATUS_SUCCESS,
	   "a PM4 queue is created");
	if (!event || !q.QueueId)
		return;
	uint32_t packets[] = { 3u << 30 | 3 << 16 | 0x37 << 8,
			       5 << 8 | 1 << 20,
			       (uint32_t)(uintptr_t)data,
			       (uint32_t)((uintptr_t)data >> 32),
			       0x12345678,
			       3u << 30 | 6 << 16 | 0x49 << 8,
			       0x14 | 5 << 8,
			       2 << 24 | 2u << 29,
			       (uint32_t)mailbox,
			       (uint32_t)(mailbox >> 32),
			       event->EventId,
			       0,
			       event->EventId };

	memcpy(ring, packets, sizeof(packets));
	*q.Queue_write_ptr = sizeof(packets) / 4;
	__atomic_store_n(q.Queue_DoorBell, sizeof(packets) / 4, __ATOMIC_RELEASE);
	ok(becomes(data, 0x12345678), "WRITE_DATA wrote");
	ok(hsaKmtWaitOnEvent(event, 10000) == HSAKMT_STATUS_SUCCESS,
	   "the event of RELEASE_MEM wakes who waits for it");
	ok(hsaKmtDestroyQueue(q.QueueId) == HSAKMT_STATUS_SUCCESS, "the queue is destroyed");
	ok(hsaKmtDestroyEvent(event) == HSAKMT_STATUS_SUCCESS, "and the event");
}

static void sdma_packets_run(void)
{
	uint32_t *ring = memory(RING), *data = memory(PAGE);
	HsaQueueResource q = { 0 };
	uint64_t from = (uintptr_t)data, to = from + 0x800;
	uint32_t packets[] = { 1,
			       0x3ff,
			       0,
			       (uint32_t)from,
			       (uint32_t)(from >> 32),
			       (uint32_t)to,
			       (uint32_t)(to >> 32),
			       5,
			       (uint32_t)(from + 0xf00),
			       (uint32_t)((from + 0xf00) >> 32),
			       77 };

	for (unsigned int i = 0; i < 0x100; i++)
		data[i] = i * 3 + 1;
	ok(hsaKmtCreateQueue(node, HSA_QUEUE_SDMA, 100, HSA_QUEUE_PRIORITY_NORMAL, ring, RING, NULL, &q) ==
		   HSAKMT_STATUS_SUCCESS,
	   "an SDMA queue is created");
	if (!q.QueueId)
		return;
	memcpy(ring, packets, sizeof(packets));
	*q.Queue_write_ptr_aql = sizeof(packets);
	__atomic_store_n(q.Queue_DoorBell_aql, sizeof(packets), __ATOMIC_RELEASE);
	ok(becomes(&data[0xf00 / 4], 77), "its fence is written");
	ok(memcmp(data, data + 0x200, 0x400) == 0, "after the copy");
	ok(hsaKmtDestroyQueue(q.QueueId) == HSAKMT_STATUS_SUCCESS, "the queue is destroyed");
}

int main(void)
{
	if (!ok(hsaKmtOpenKFD() == HSAKMT_STATUS_SUCCESS, "the driver opens"))
		return tap_done();
	ok(find_node(), "a node has compute cores");
	aql_packets_run();
	pm4_packets_run();
	sdma_packets_run();
	ok(kfd_stat(0, "bad_addresses") == 0, "no address was mixed up");
	ok(hsaKmtCloseKFD() == HSAKMT_STATUS_SUCCESS, "and closes");
	return tap_done();
}
