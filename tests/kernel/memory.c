// SPDX-License-Identifier: MIT
/*
 * Memory of the software GPU: what is not mapped is not there, a process's doorbells are its own, and there
 * is only so much of it.
 *
 * bed: timeout=180 param=cus=4 param=vram_mb=64
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define MIB 0x100000ull
#define VRAM (64 * MIB)
#define DOORBELLS 0x2000 /* of a process */
#define MOST_BUFFERS 4096

static struct kfd kfd;
static struct kfd_gpu *gpu;
static struct kfd_mem memory;
static volatile uint32_t *words;

static int begins(void)
{
	int r = kfd_open(&kfd);

	if (r == 0)
		gpu = &kfd.gpus[0];
	if (r == 0)
		r = kfd_alloc(&kfd, gpu, MIB, &memory);
	words = memory.addr;
	return ok(r == 0, "a process begins (%d)", r);
}

/* Addresses without a mapping */

struct reach {
	const char *what;
	uint32_t type;
	struct kfd_packet packet;
	uint64_t page; /* that is not there */
};

static void it_faults(const struct reach *reach)
{
	struct kfd_event_data data = { 0 };
	struct kfd_queue q;

	ok(kfd_event_create(&kfd, NULL, KFD_EVENT_MEMORY, 0, &data.event_id) == 0 &&
		   kfd_queue_create(&kfd, gpu, reach->type, 7, &q) == 0,
	   "it has a queue");
	kfd_put(&q, reach->packet);
	ok(kfd_event_wait(&kfd, &data, 1, 0, 10000) == KFD_WAIT_COMPLETE && data.memory.not_present,
	   "%s is a page fault", reach->what);
	ok(data.memory.va == reach->page, "at the page that is not there (%#llx, expected %#llx)",
	   (unsigned long long)data.memory.va, (unsigned long long)reach->page);
	ok(kfd_queue_destroy(&q) == 0, "the queue is destroyed");
}

static const struct reach *beyond;

static void beyond_any_mapping(void)
{
	if (begins())
		it_faults(beyond);
}

static void across_the_end_of_one(void)
{
	struct reach reach = { .what = "a copy across the end", .type = KFD_TYPE_SDMA };

	if (!begins())
		return;
	reach.page = (uintptr_t)memory.addr + memory.size;
	reach.packet = kfd_sdma_copy(words, (char *)memory.addr + memory.size - 64, 65);
	it_faults(&reach);
}

static void addresses_without_a_mapping_are_page_faults(void)
{
	struct reach all[] = {
		{ "a PM4 write to nowhere", KFD_TYPE_COMPUTE, kfd_pm4_write((void *)0x10000, 1), 0x10000 },
		{ "a PM4 release to nowhere", KFD_TYPE_COMPUTE, kfd_pm4_release((void *)0x12008, 1, 0),
		  0x12000 },
		{ "an indirect buffer that is nowhere", KFD_TYPE_COMPUTE,
		  kfd_pm4_indirect((void *)0x20000, 8), 0x20000 },
		{ "an SDMA fence to nowhere", KFD_TYPE_SDMA, kfd_sdma_fence((void *)0x30004, 1), 0x30000 },
		{ "an SDMA copy from nowhere", KFD_TYPE_SDMA,
		  kfd_sdma_copy((void *)0x40000, (void *)0x50000, 4), 0x50000 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		beyond = &all[i];
		tap_in_child(beyond_any_mapping);
	}
	tap_in_child(across_the_end_of_one);
}

/* Doorbells */

/* All of the process's, in its GPU address space. */
static int map_doorbells(volatile uint64_t **ret)
{
	void *addr = mmap(NULL, DOORBELLS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kfd_alloc_args args = { .va = (uintptr_t)addr,
				       .size = DOORBELLS,
				       .gpu_id = gpu->gpu_id,
				       .flags = KFD_MEM_DOORBELL | KFD_MEM_WRITABLE };
	struct kfd_map_args map = { .devices = (uintptr_t)&gpu->gpu_id, .n_devices = 1 };
	int r = kfd_ioctl(&kfd, KFD_IOC_ALLOC, &args);

	map.handle = args.handle;
	if (r == 0)
		r = kfd_ioctl(&kfd, KFD_IOC_MAP, &map);
	*ret = addr;
	return r;
}

/* The packet is in the ring, and nobody has rung. */
static void put_silently(struct kfd_queue *q, struct kfd_packet p)
{
	memcpy(q->ring.addr, p.dwords, p.n * 4);
	q->written = p.n;
	__atomic_store_n(q->wptr, p.n, __ATOMIC_RELEASE);
}

/*
 * The driver ends a process some time after its exit, and makes a new run list of the queues that are
 * left. Whoever is mapped anew has its write pointer read, rung for or not. How many run lists there
 * were until now.
 */
static int64_t wait_for_ends(int others)
{
	for (int i = 0, n = MOST_BUFFERS; i < 1000 && n > others; i++) {
		DIR *dir = opendir("/sys/class/kfd/kfd/proc");

		for (n = 0; dir && readdir(dir); n++)
			;
		n -= 2; /* itself and the one above */
		if (dir)
			closedir(dir);
		kfd_sleep(10 * MS);
	}
	return kfd_stat(0, "runlist");
}

/* Nobody waits for a run list: a queue may be mapped some time after the driver has created it. */
static void wait_until_mapped(int64_t before, int queues)
{
	(void)kfd_wait_stat(0, "runlist", before + queues, KFD_SOON);
}

static void the_gpu_rings(void)
{
	int64_t before = wait_for_ends(1); /* our parent is there */
	volatile uint64_t *doorbells = NULL;
	struct kfd_queue pm4, sdma;

	if (!begins())
		return;
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_COMPUTE, 7, &pm4) == 0 &&
		   kfd_queue_create(&kfd, gpu, KFD_TYPE_SDMA, 7, &sdma) == 0 &&
		   map_doorbells(&doorbells) == 0,
	   "it has two queues, and its doorbells are mapped for the GPU");
	wait_until_mapped(before, 2);
	put_silently(&pm4, kfd_pm4_write(&words[1], 1));
	ok(kfd_wait_value(&words[1], 1, 100 * MS) == -ETIMEDOUT, "a packet that nobody rang for waits");
	kfd_put(&sdma, kfd_sdma_fence(&doorbells[pm4.doorbell - (volatile uint64_t *)pm4.doorbell_slice], 5));
	ok(kfd_wait_value(&words[1], 1, KFD_SOON) == 0, "a write of the GPU to its doorbell is a ring");
}

/* A process whose GPU writes to all of its doorbells when it is told to. It tells when it can, and when it
 * has. */
static void ring_all(int to_us, int from_us)
{
	volatile uint64_t *doorbells;
	struct kfd_queue sdma;
	char told = 0;

	if (kfd_open(&kfd) < 0 || kfd_alloc(&kfd, gpu, MIB, &memory) < 0 ||
	    kfd_queue_create(&kfd, gpu, KFD_TYPE_SDMA, 7, &sdma) < 0 || map_doorbells(&doorbells) < 0)
		_exit(1);
	words = memory.addr;
	if (write(from_us, "x", 1) != 1 || read(to_us, &told, 1) != 1)
		_exit(1);
	for (uint32_t i = 0; i < DOORBELLS / 8; i++)
		if (i != sdma.doorbell - (volatile uint64_t *)sdma.doorbell_slice) /* it would go back to 5 */
			kfd_put(&sdma, kfd_sdma_fence(&doorbells[i], 5));
	kfd_put(&sdma, kfd_sdma_fence(&words[0], 77));
	if (kfd_wait_value(&words[0], 77, KFD_SOON) < 0 || write(from_us, "x", 1) != 1)
		_exit(1);
	(void)read(to_us, &told,
		   1); /* until its end: a queue that goes makes the driver look at all others */
	_exit(0);
}

static int hears(int from)
{
	char told;

	return read(from, &told, 1) == 1;
}

static void doorbells_are_a_process_s_own(void)
{
	int to[2], from[2], status = -1;
	struct kfd_queue q;
	int64_t before;
	pid_t pid;

	tap_in_child(the_gpu_rings);
	before = wait_for_ends(1); /* we are there */
	ok(pipe(to) == 0 && pipe(from) == 0, "there are pipes");
	pid = fork();
	if (pid == 0) {
		close(to[1]);
		ring_all(to[0], from[1]);
	}
	close(from[1]); /* if it ends, nobody waits for it */
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_COMPUTE, 7, &q) == 0 && hears(from[0]),
	   "two processes have a queue each");
	wait_until_mapped(before, 2);
	put_silently(&q, kfd_pm4_write(&words[2], 1));
	ok(kfd_wait_value(&words[2], 1, 100 * MS) == -ETIMEDOUT, "a packet of the one waits for a ring");
	ok(write(to[1], "x", 1) == 1 && hears(from[0]), "the other's GPU writes to all of its own doorbells");
	ok(kfd_wait_value(&words[2], 1, 100 * MS) == -ETIMEDOUT, "the packet waits");
	*q.doorbell = q.written;
	ok(kfd_wait_value(&words[2], 1, KFD_SOON) == 0, "until its own is rung");
	close(to[1]);
	ok(waitpid(pid, &status, 0) == pid && status == 0 && kfd_queue_destroy(&q) == 0, "both end well");
}

/* How much there is */

static int alloc(uint64_t va, uint64_t size, uint32_t where, uint64_t *ret_handle)
{
	struct kfd_alloc_args args = {
		.va = va, .size = size, .gpu_id = gpu->gpu_id, .flags = where | KFD_MEM_WRITABLE
	};
	int r = kfd_ioctl(&kfd, KFD_IOC_ALLOC, &args);

	*ret_handle = args.handle;
	return r;
}

static int release(uint64_t handle)
{
	struct kfd_free_args args = { .handle = handle };

	return kfd_ioctl(&kfd, KFD_IOC_FREE, &args);
}

static uint64_t available(void)
{
	struct kfd_available_args args = { .gpu_id = gpu->gpu_id };

	ok(kfd_ioctl(&kfd, KFD_IOC_AVAILABLE, &args) == 0, "the driver says how much memory is left");
	return args.available;
}

static void vram_is_used_up(void)
{
	uint64_t handle, other;

	ok(available() == VRAM, "all of %llu MiB is", (unsigned long long)(VRAM / MIB));
	ok(alloc(0x100000000, 48 * MIB, KFD_MEM_VRAM, &handle) == 0, "48 MiB are allocated");
	ok(available() == 16 * MIB, "16 are left");
	ok(alloc(0x200000000, 17 * MIB, KFD_MEM_VRAM, &other) == -ENOMEM, "17 more are refused");
	ok(alloc(0x200000000, 16 * MIB, KFD_MEM_VRAM, &other) == 0 && available() == 0, "16 are not");
	ok(release(handle) == 0 && release(other) == 0 && available() == VRAM, "freed, they are there again");
}

static void the_system_s_memory_is_not_vram(void)
{
	uint64_t handle;

	ok(alloc(0x100000000, VRAM + 32 * MIB, KFD_MEM_GTT, &handle) == 0,
	   "a buffer of the system's memory is larger than the GPU's");
	ok(available() == VRAM, "and takes nothing of that");
	ok(release(handle) == 0, "it is freed");
}

static void an_allocation_loop_ends(uint32_t where, const char *what)
{
	static uint64_t handles[MOST_BUFFERS];
	uint32_t n = 0, freed = 0;
	int r = 0;

	while (n < MOST_BUFFERS && r == 0) {
		r = alloc(0x100000000 + n * 16 * MIB, 16 * MIB, where, &handles[n]);
		n += r == 0;
	}
	ok(r == -ENOMEM && n > 2, "an allocation loop of %s ends after %u MiB (%d)", what, n * 16, r);
	while (freed < n && release(handles[freed]) == 0)
		freed++;
	ok(freed == n, "everything is freed");
	ok(alloc(0x100000000, 16 * MIB, where, &handles[0]) == 0 && release(handles[0]) == 0,
	   "and can be had again");
}

int main(void)
{
	addresses_without_a_mapping_are_page_faults();
	if (!begins())
		return tap_done();
	doorbells_are_a_process_s_own();
	vram_is_used_up();
	the_system_s_memory_is_not_vram();
	an_allocation_loop_ends(KFD_MEM_GTT, "the system's memory");
	an_allocation_loop_ends(KFD_MEM_VRAM, "the GPU's");
	kfd_close(&kfd);
	return tap_done();
}
