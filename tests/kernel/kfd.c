// SPDX-License-Identifier: MIT
#include "kfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NODES "/sys/class/kfd/kfd/topology/nodes"
#define RING_SIZE 0x10000u
#define NORMAL_PRIORITY 7
#define AQL_PACKET 64
#define DOORBELL_SLICE 0x2000u /* a process's doorbells on a device */

int kfd_ioctl(struct kfd *k, unsigned long request, void *args)
{
	int r;

	do
		r = ioctl(k->fd, request, args);
	while (r < 0 && (errno == EINTR || errno == EAGAIN));
	return r < 0 ? -errno : r;
}

static uint64_t node_property(const char *node, const char *name)
{
	char path[256], key[64];
	unsigned long long value, found = 0;
	FILE *f;

	snprintf(path, sizeof(path), NODES "/%s/properties", node);
	f = fopen(path, "r");
	while (f && fscanf(f, "%63s %llu", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	if (f)
		fclose(f);
	return found;
}

static uint32_t node_gpu_id(const char *node)
{
	char path[256];
	unsigned int id = 0;
	FILE *f;

	snprintf(path, sizeof(path), NODES "/%s/gpu_id", node);
	f = fopen(path, "r");
	if (f && fscanf(f, "%u", &id) != 1)
		id = 0;
	if (f)
		fclose(f);
	return id;
}

/* What the driver wants behind a save area: kfd_queue_ctx_save_restore_size(), kfd_queue.c, Linux 6.12. */
static uint32_t debug_size(const char *node)
{
	uint64_t xccs = node_property(node, "num_xcc"),
		 per_engine = node_property(node, "simd_arrays_per_engine");
	uint64_t cus =
		node_property(node, "simd_count") / node_property(node, "simd_per_cu") / (xccs ? xccs : 1);
	uint64_t most = node_property(node, "array_count") / per_engine * 512;
	uint64_t waves = cus * 40 < most ? cus * 40 : most;

	return (uint32_t)((waves * 32 + 63) & ~63ull);
}

static int take_gpu(struct kfd *k, const char *node, uint32_t gpu_id)
{
	struct kfd_gpu *g = &k->gpus[k->ngpus];
	struct kfd_acquire_vm_args vm = { .gpu_id = gpu_id };
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/dev/dri/renderD%u",
		 (unsigned int)node_property(node, "drm_render_minor"));
	*g = (struct kfd_gpu){ .gpu_id = gpu_id,
			       .render_fd = open(path, O_RDWR | O_CLOEXEC),
			       .cwsr_size = (uint32_t)node_property(node, "cwsr_size"),
			       .ctl_stack_size = (uint32_t)node_property(node, "ctl_stack_size"),
			       .num_xcc = (uint32_t)node_property(node, "num_xcc"),
			       .num_cp_queues = (uint32_t)node_property(node, "num_cp_queues"),
			       .gfx_target = (uint32_t)node_property(node, "gfx_target_version") };
	if (g->render_fd < 0)
		return -errno;
	g->debug_size = debug_size(node);
	k->ngpus++;
	vm.drm_fd = (uint32_t)g->render_fd;
	r = kfd_ioctl(k, KFD_IOC_ACQUIRE_VM, &vm);
	return r < 0 ? r : 0;
}

int kfd_open(struct kfd *k)
{
	struct dirent *d;
	DIR *nodes;
	int r = 0;

	memset(k, 0, sizeof(*k));
	k->fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (k->fd < 0)
		return -errno;
	nodes = opendir(NODES);
	while (nodes && r == 0 && (d = readdir(nodes)) && k->ngpus < KFD_MAX_GPUS) {
		uint32_t id = d->d_name[0] == '.' ? 0 : node_gpu_id(d->d_name);

		if (id)
			r = take_gpu(k, d->d_name, id);
	}
	if (nodes)
		closedir(nodes);
	return r;
}

void kfd_close(struct kfd *k)
{
	for (uint32_t i = 0; i < k->ngpus; i++)
		close(k->gpus[i].render_fd);
	close(k->fd);
}

int kfd_map(struct kfd *k, struct kfd_gpu *gpu, unsigned long request, const struct kfd_mem *mem)
{
	struct kfd_map_args args = { .handle = mem->handle,
				     .devices = (uintptr_t)&gpu->gpu_id,
				     .n_devices = 1 };

	return kfd_ioctl(k, request, &args);
}

int kfd_alloc(struct kfd *k, struct kfd_gpu *gpu, uint64_t size, struct kfd_mem *ret)
{
	struct kfd_alloc_args args = { .size = (size + 0xfff) & ~0xfffull,
				       .gpu_id = gpu->gpu_id,
				       .flags = KFD_MEM_GTT | KFD_MEM_WRITABLE | KFD_MEM_EXECUTABLE |
						KFD_MEM_COHERENT };
	void *addr = mmap(NULL, args.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct kfd_mem mem;
	int r;

	if (addr == MAP_FAILED)
		return -errno;
	args.va = (uintptr_t)addr;
	r = kfd_ioctl(k, KFD_IOC_ALLOC, &args);
	if (r < 0)
		return r;
	if (mmap(addr, args.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, gpu->render_fd,
		 (off_t)args.mmap_offset) == MAP_FAILED)
		return -errno;
	mem = (struct kfd_mem){ .addr = addr, .size = args.size, .handle = args.handle };
	r = kfd_map(k, gpu, KFD_IOC_MAP, &mem);
	if (r < 0)
		return r;
	*ret = mem;
	return 0;
}

int kfd_free(struct kfd *k, struct kfd_gpu *gpu, struct kfd_mem *mem)
{
	struct kfd_free_args args = { .handle = mem->handle };
	int r = kfd_map(k, gpu, KFD_IOC_UNMAP, mem);

	if (r < 0)
		return r;
	munmap(mem->addr, mem->size);
	return kfd_ioctl(k, KFD_IOC_FREE, &args);
}

static int alloc_buffers(struct kfd_queue *q)
{
	uint64_t cwsr = (uint64_t)q->gpu->cwsr_size + q->gpu->debug_size;
	uint32_t xccs = q->gpu->num_xcc ? q->gpu->num_xcc : 1;
	int r = kfd_alloc(q->kfd, q->gpu, q->ring_size, &q->ring);

	if (r == 0)
		r = kfd_alloc(q->kfd, q->gpu, 0x1000, &q->pointers);
	if (r == 0 && q->type != KFD_TYPE_SDMA)
		r = kfd_alloc(q->kfd, q->gpu, 0x1000, &q->eop);
	if (r == 0 && q->type != KFD_TYPE_SDMA)
		r = kfd_alloc(q->kfd, q->gpu, cwsr * xccs, &q->cwsr);
	return r;
}

static int map_doorbell(struct kfd_queue *q, uint64_t offset)
{
	uint64_t page = offset & ~(uint64_t)(DOORBELL_SLICE - 1);
	char *addr = mmap(NULL, DOORBELL_SLICE, PROT_READ | PROT_WRITE, MAP_SHARED, q->kfd->fd, (off_t)page);

	if (addr == MAP_FAILED)
		return -errno;
	q->doorbell = (volatile uint64_t *)(addr + (offset - page));
	q->doorbell_slice = addr;
	return 0;
}

static void invalidate_ring(struct kfd_queue *q)
{
	for (uint32_t i = 0; i < q->ring_size / AQL_PACKET; i++)
		*(uint16_t *)((char *)q->ring.addr + i * AQL_PACKET) = 1;
}

static int create_queue(struct kfd_queue q, uint32_t priority, struct kfd_queue *ret)
{
	struct kfd_create_queue_args args;
	int r = alloc_buffers(&q);

	if (r < 0)
		return r;
	q.rptr = q.pointers.addr;
	q.wptr = q.rptr + 8;
	if (q.type == KFD_TYPE_AQL)
		invalidate_ring(&q);
	args = (struct kfd_create_queue_args){ .ring = (uintptr_t)q.ring.addr,
					       .wptr = (uintptr_t)q.wptr,
					       .rptr = (uintptr_t)q.rptr,
					       .ring_size = q.ring_size,
					       .gpu_id = q.gpu->gpu_id,
					       .type = q.type,
					       .percent = 100,
					       .priority = priority,
					       .eop = (uintptr_t)q.eop.addr,
					       .eop_size = q.eop.size,
					       .cwsr = (uintptr_t)q.cwsr.addr,
					       .cwsr_size = q.cwsr.addr ? q.gpu->cwsr_size : 0,
					       .ctl_stack_size = q.cwsr.addr ? q.gpu->ctl_stack_size : 0 };
	r = kfd_ioctl(q.kfd, KFD_IOC_CREATE_QUEUE, &args);
	if (r < 0)
		return r;
	q.id = args.queue_id;
	r = map_doorbell(&q, args.doorbell_offset);
	*ret = q;
	return r;
}

int kfd_queue_create(struct kfd *k, struct kfd_gpu *gpu, uint32_t type, uint32_t priority,
		     struct kfd_queue *ret)
{
	struct kfd_queue q = { .kfd = k, .gpu = gpu, .type = type, .ring_size = RING_SIZE };

	return create_queue(q, priority, ret);
}

int kfd_queue_create_ring(struct kfd *k, struct kfd_gpu *gpu, uint32_t type, uint32_t ring_size,
			  struct kfd_queue *ret)
{
	struct kfd_queue q = { .kfd = k, .gpu = gpu, .type = type, .ring_size = ring_size };

	return create_queue(q, NORMAL_PRIORITY, ret);
}

int kfd_queue_destroy(struct kfd_queue *q)
{
	struct kfd_destroy_queue_args args = { .queue_id = q->id };
	struct kfd_mem *buffers[] = { &q->ring, &q->pointers, &q->eop, &q->cwsr };
	int r = kfd_ioctl(q->kfd, KFD_IOC_DESTROY_QUEUE, &args);

	munmap(q->doorbell_slice, DOORBELL_SLICE);
	for (size_t i = 0; r == 0 && i < sizeof(buffers) / sizeof(buffers[0]); i++)
		if (buffers[i]->addr)
			r = kfd_free(q->kfd, q->gpu, buffers[i]);
	return r;
}

int kfd_queue_update(struct kfd_queue *q, uint32_t percent, uint32_t priority)
{
	struct kfd_update_queue_args args = { .ring = (uintptr_t)q->ring.addr,
					      .queue_id = q->id,
					      .ring_size = q->ring_size,
					      .percent = percent,
					      .priority = priority };

	return kfd_ioctl(q->kfd, KFD_IOC_UPDATE_QUEUE, &args);
}

/* The header goes last: it makes the packet valid. */
static void put_packet(struct kfd_queue *q, const void *packet, uint16_t header)
{
	char *slot = (char *)q->ring.addr + q->written % (q->ring_size / AQL_PACKET) * AQL_PACKET;

	while (q->written - *q->rptr >= q->ring_size / AQL_PACKET)
		kfd_sleep(100000);
	memcpy(slot + 2, (const char *)packet + 2, AQL_PACKET - 2);
	__atomic_store_n((uint16_t *)slot, header, __ATOMIC_RELEASE);
	q->written++;
	__atomic_store_n(q->wptr, q->written, __ATOMIC_RELEASE);
	__atomic_store_n(q->doorbell, q->written, __ATOMIC_RELEASE);
}

void kfd_dispatch(struct kfd_queue *q, uint32_t workgroups, uint64_t wave_ns, struct kfd_signal *signal)
{
	struct {
		uint16_t header, setup, workgroup[3], reserved0;
		uint32_t grid[3], private_size, group_size;
		uint64_t kernel_object, kernarg, wave_ns, signal;
	} p = { .setup = 1,
		.workgroup = { 256, 1, 1 },
		.grid = { 256 * workgroups, 1, 1 },
		.wave_ns = wave_ns,
		.signal = (uintptr_t)signal };

	put_packet(q, &p, 2 | 1 << 8);
}

void kfd_barrier(struct kfd_queue *q, int type, struct kfd_signal **signals, int n,
		 struct kfd_signal *completion)
{
	struct {
		uint16_t header, reserved0;
		uint32_t reserved1;
		uint64_t signals[5], reserved2, signal;
	} p = { .signal = (uintptr_t)completion };

	for (int i = 0; i < n && i < 5; i++)
		p.signals[i] = (uintptr_t)signals[i];
	put_packet(q, &p, (uint16_t)(type | 1 << 8));
}

void kfd_submit(struct kfd_queue *q, const uint32_t *dwords, uint32_t n)
{
	uint32_t unit = q->type == KFD_TYPE_SDMA ? 4 : 1, *ring = q->ring.addr;

	for (uint32_t i = 0; i < n; i++)
		ring[(q->written / unit + i) % (q->ring_size / 4)] = dwords[i];
	q->written += (uint64_t)n * unit;
	__atomic_store_n(q->wptr, q->written, __ATOMIC_RELEASE);
	__atomic_store_n(q->doorbell, q->written, __ATOMIC_RELEASE);
}

uint64_t kfd_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

void kfd_sleep(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

	nanosleep(&t, NULL);
}

int kfd_wait(const struct kfd_signal *signal, uint64_t timeout_ns)
{
	uint64_t end = kfd_now() + timeout_ns;

	while (signal->value > 0) {
		if (kfd_now() > end)
			return -ETIMEDOUT;
		kfd_sleep(50000);
	}
	return 0;
}

int64_t kfd_stat(int device, const char *name)
{
	char path[64], key[64];
	long long value, found = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/softgpu/%d/stats", device);
	f = fopen(path, "r");
	while (f && fscanf(f, "%63s %lld", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	if (f)
		fclose(f);
	return found;
}

uint64_t kfd_gpu_now(int device)
{
	return (uint64_t)kfd_stat(device, "clock_ns");
}

int64_t kfd_busy(int device, int64_t pasid)
{
	long long id, value, found = -1;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/softgpu/%d/processes", device);
	f = fopen(path, "r");
	while (f && fscanf(f, "%lld %lld", &id, &value) == 2)
		if (id == pasid)
			found = value;
	if (f)
		fclose(f);
	return found;
}

int kfd_is_patched(void)
{
	const char *driver = getenv("BED_DRIVER");

	return driver && strcmp(driver, "patched") == 0;
}

int kfd_fault(int device, const char *words)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/debug/softgpu/%d/faults", device);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return -errno;
	n = write(fd, words, strlen(words));
	close(fd);
	return n < 0 ? -errno : 0;
}

static void put_address(uint32_t *at, const volatile void *address)
{
	at[0] = (uint32_t)(uintptr_t)address;
	at[1] = (uint32_t)((uintptr_t)address >> 32);
}

#define PM4(opcode, ndw) (3u << 30 | ((ndw)-2) << 16 | (opcode) << 8)

struct kfd_packet kfd_pm4_write(volatile void *dst, uint32_t value)
{
	struct kfd_packet p = { .n = 5, .dwords = { PM4(0x37u, 5u), 5 << 8 | 1 << 20, 0, 0, value } };

	put_address(&p.dwords[2], dst);
	return p;
}

struct kfd_packet kfd_pm4_release(volatile void *dst, uint64_t value, uint32_t event)
{
	struct kfd_packet p = { .n = 8,
				.dwords = { PM4(0x49u, 8u), 0x14 | 5 << 8, 2u << 29 | (event ? 2u << 24 : 0),
					    0, 0, (uint32_t)value, (uint32_t)(value >> 32), event } };

	put_address(&p.dwords[3], dst);
	return p;
}

struct kfd_packet kfd_pm4_indirect(const void *packets, uint32_t ndw)
{
	struct kfd_packet p = { .n = 4, .dwords = { PM4(0x3fu, 4u), 0, 0, ndw | 1 << 23 } };

	put_address(&p.dwords[1], packets);
	return p;
}

struct kfd_packet kfd_sdma_copy(volatile void *dst, const void *src, uint32_t bytes)
{
	struct kfd_packet p = { .n = 7, .dwords = { 1, bytes - 1 } };

	put_address(&p.dwords[3], src);
	put_address(&p.dwords[5], dst);
	return p;
}

struct kfd_packet kfd_sdma_fence(volatile void *dst, uint32_t value)
{
	struct kfd_packet p = { .n = 4, .dwords = { 5, 0, 0, value } };

	put_address(&p.dwords[1], dst);
	return p;
}

struct kfd_packet kfd_sdma_trap(uint32_t event)
{
	return (struct kfd_packet){ .n = 2, .dwords = { 6, event } };
}

struct kfd_packet kfd_sdma_add(volatile void *dst, int64_t value)
{
	struct kfd_packet p = {
		.n = 8, .dwords = { 10 | 47u << 25, 0, 0, (uint32_t)value, (uint32_t)((uint64_t)value >> 32) }
	};

	put_address(&p.dwords[1], dst);
	return p;
}

/* The dwords of a PM4 or SDMA queue that are not read yet: PM4's read pointer counts dwords and wraps. */
static uint32_t in_use(const struct kfd_queue *q)
{
	uint32_t ring = q->ring_size / 4;

	if (q->type == KFD_TYPE_SDMA)
		return (uint32_t)((q->written - *q->rptr) / 4);
	return (uint32_t)(q->written - *(volatile uint32_t *)q->rptr) % ring;
}

int kfd_put(struct kfd_queue *q, struct kfd_packet packet)
{
	uint32_t ring = q->ring_size / 4,
		 at = (uint32_t)(q->written / (q->type == KFD_TYPE_SDMA ? 4 : 1) % ring);
	uint32_t filler = q->type == KFD_TYPE_SDMA ? 0 : 0xffff1000,
		 fill = at + packet.n > ring ? ring - at : 0;
	uint64_t end = kfd_now() + KFD_SOON;

	while (in_use(q) + fill + packet.n >= ring) {
		if (kfd_now() > end)
			return -ETIMEDOUT;
		kfd_sleep(100000);
	}
	while (fill--)
		kfd_submit(q, &filler, 1);
	kfd_submit(q, packet.dwords, packet.n);
	return 0;
}

int kfd_wait_value(const volatile uint32_t *at, uint32_t value, uint64_t timeout_ns)
{
	uint64_t end = kfd_now() + timeout_ns;

	while (*at != value) {
		if (kfd_now() > end)
			return -ETIMEDOUT;
		kfd_sleep(50000);
	}
	return 0;
}

int kfd_wait_stat(int device, const char *name, int64_t value, uint64_t timeout_ns)
{
	uint64_t end = kfd_now() + timeout_ns;

	while (kfd_stat(device, name) != value) {
		if (kfd_now() > end)
			return -ETIMEDOUT;
		kfd_sleep(1000000);
	}
	return 0;
}

void kfd_settle(int device)
{
	(void)kfd_wait_stat(device, "unread", 0, KFD_SOON);
}

int kfd_event_create(struct kfd *k, const struct kfd_mem *page, uint32_t type, int auto_reset,
		     uint32_t *ret_id)
{
	struct kfd_create_event_args args = { .page = page ? page->handle : 0,
					      .type = type,
					      .auto_reset = auto_reset != 0 };
	int r = kfd_ioctl(k, KFD_IOC_CREATE_EVENT, &args);

	if (r == 0)
		*ret_id = args.event_id;
	return r;
}

int kfd_event_wait(struct kfd *k, struct kfd_event_data *events, uint32_t n, int all, uint32_t timeout_ms)
{
	struct kfd_wait_events_args args = {
		.events = (uintptr_t)events, .n = n, .all = all != 0, .timeout_ms = timeout_ms
	};
	int r = kfd_ioctl(k, KFD_IOC_WAIT_EVENTS, &args);

	return r < 0 ? r : (int)args.result;
}

int64_t kfd_proc_value(int pid, const char *name)
{
	long long value = -EINVAL;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/%s", pid, name);
	f = fopen(path, "r");
	if (!f)
		return -errno;
	if (fscanf(f, "%lld", &value) != 1)
		value = -EINVAL;
	fclose(f);
	return value;
}

void kfd_open_up(void)
{
	glob_t nodes;

	chmod("/dev/kfd", 0666);
	if (glob("/dev/dri/renderD*", 0, NULL, &nodes))
		return;
	for (size_t i = 0; i < nodes.gl_pathc; i++)
		chmod(nodes.gl_pathv[i], 0666);
	globfree(&nodes);
}

void kfd_send_file(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS } };
	struct iovec byte = { .iov_base = "", .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	sendmsg(socket, &m, 0);
}

int kfd_receive_file(int socket)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	int fd = -1;

	if (recvmsg(socket, &m, 0) == 1 && m.msg_controllen)
		memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}
