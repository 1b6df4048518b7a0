// SPDX-License-Identifier: MIT
#include "backend/kfd/packets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "backend/kfd/uapi.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"
#define MS 1000000ull
#define PAGE 4096u
#define RING_SIZE 4096u
#define PACKET 64u
#define DOORBELLS 8192u /* a process's doorbells on a device: 1,024 of 8 bytes */

/* What the topology says of a GPU. 0: nothing. */
struct node {
	uint32_t gpu_id, gfx_target, render_minor;
	uint32_t simds, simds_per_cu, arrays, arrays_per_engine, xccs;
	uint32_t cwsr_size, ctl_stack_size;
};

static const struct {
	const char *name;
	size_t offset;
} properties[] = {
	{ "gfx_target_version", offsetof(struct node, gfx_target) },
	{ "drm_render_minor", offsetof(struct node, render_minor) },
	{ "simd_count", offsetof(struct node, simds) },
	{ "simd_per_cu", offsetof(struct node, simds_per_cu) },
	{ "array_count", offsetof(struct node, arrays) },
	{ "simd_arrays_per_engine", offsetof(struct node, arrays_per_engine) },
	{ "num_xcc", offsetof(struct node, xccs) },
	{ "cwsr_size", offsetof(struct node, cwsr_size) },
	{ "ctl_stack_size", offsetof(struct node, ctl_stack_size) },
};

struct buffer {
	void *addr; /* the same for CPU and GPU */
	uint64_t size, handle;
	int mapped; /* on the GPU */
};

/*
 * The start of a runtime's queue object.  The firmware finds the rest of it from the
 * address of the read index: amd_queue_t, amd_hsa_queue.h of ROCr.
 */
struct queue_object {
	uint32_t type, features;
	uint64_t base_address, doorbell_signal;
	uint32_t packets, reserved0;
	uint64_t id;
	uint32_t reserved1[4];
	uint64_t write_index;
	uint32_t apertures[2], max_cu_id, max_wave_id;
	uint32_t reserved2[12];
	uint64_t read_index;
	uint32_t read_index_offset, tmpring_size;
	uint32_t scratch[9];
	uint32_t properties;
};

_Static_assert(offsetof(struct queue_object, write_index) == 0x38, "amd_queue_t.write_dispatch_id");
_Static_assert(offsetof(struct queue_object, read_index) == 0x80, "amd_queue_t.read_dispatch_id");
_Static_assert(offsetof(struct queue_object, properties) == 0xb4, "amd_queue_t.queue_properties");

#define POINTERS_OF_64_BITS (1u << 1)

/* amd_signal_t: the value goes down by one when a packet is done. */
struct signal_object {
	int64_t kind, value;
	uint64_t mailbox;
	uint32_t event_id, reserved0;
	uint64_t times[2], reserved1[2];
};

#define SIGNAL_OF_USER 1

_Static_assert(GP_PACKETS_MOST * sizeof(struct signal_object) <= PAGE / 2, "signals behind the queue object");
_Static_assert(GP_PACKETS_MOST <= RING_SIZE / PACKET, "a place in the ring for each");

struct gp_packets {
	int kfd, render;
	struct node node;
	struct buffer ring, control, eop, cwsr; /* control: queue object, and signals behind it */
	struct queue_object *object;
	struct signal_object *signals;
	char *doorbells; /* MAP_FAILED: not mapped */
	volatile uint64_t *doorbell;
	uint32_t queue_id, has_queue;
	uint64_t written;
};

uint64_t gp_packets_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

int gp_kfd_call(int fd, unsigned long request, void *args)
{
	int r;

	do
		r = ioctl(fd, request, args);
	while (r < 0 && (errno == EINTR || errno == EAGAIN));
	return r < 0 ? -errno : 0;
}

static void set_property(struct node *node, const char *name, unsigned long long value)
{
	for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++)
		if (!strcmp(properties[i].name, name))
			*(uint32_t *)((char *)node + properties[i].offset) = (uint32_t)value;
}

static int read_node(const char *name, struct node *ret)
{
	char path[512], key[64];
	unsigned long long value;
	FILE *file;

	memset(ret, 0, sizeof(*ret));
	(void)snprintf(path, sizeof(path), NODES "/%s/gpu_id", name);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	if (fscanf(file, "%u", &ret->gpu_id) != 1)
		ret->gpu_id = 0;
	fclose(file);
	(void)snprintf(path, sizeof(path), NODES "/%s/properties", name);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (fscanf(file, "%63s %llu", key, &value) == 2)
		set_property(ret, key, value);
	fclose(file);
	return ret->gpu_id ? 0 : -ENODEV; /* a CPU is a node as well */
}

static uint32_t round_up(uint64_t value, uint32_t to)
{
	return (uint32_t)((value + to - 1) / to * to);
}

/* gfx9's save area, where the driver does not tell: kfd_queue_ctx_save_restore_size(), Linux 6.12. */
static int size_save_area(struct node *n, uint32_t *ret_debug)
{
	uint64_t cus, waves, most;
	uint32_t vgprs = n->gfx_target == 90008 || n->gfx_target == 90010 || n->gfx_target / 100 == 904
				 ? 0x80000
				 : 0x40000;

	if (!n->simds_per_cu || !n->arrays_per_engine || n->gfx_target < 90000)
		return -ENOTSUP;
	if (!n->xccs)
		n->xccs = 1;
	cus = n->simds / n->simds_per_cu / n->xccs;
	most = n->arrays / n->arrays_per_engine * 512;
	waves = n->gfx_target >= 100100 ? cus * 32 : cus * 40 < most ? cus * 40 : most;
	*ret_debug = round_up(waves * 32, 64);
	if (n->cwsr_size && n->ctl_stack_size)
		return 0;
	if (n->gfx_target >= 90500) /* other sizes, and a driver as new tells them */
		return -ENOTSUP;
	n->ctl_stack_size = round_up(40 + waves * 8 + 8, PAGE);
	n->cwsr_size = n->ctl_stack_size + round_up(cus * (vgprs + 0x4000 + 0x10000 + 0x1000), PAGE);
	return 0;
}

static int map_buffer(struct gp_packets *p, struct buffer *b)
{
	struct kfd_map_args args = { .handle = b->handle,
				     .devices = (uintptr_t)&p->node.gpu_id,
				     .n_devices = 1 };
	int r = gp_kfd_call(p->kfd, KFD_IOC_MAP, &args);

	b->mapped = r == 0;
	return r;
}

/* System memory that both see. What is taken before an error is given back by free_buffer(). */
static int alloc_buffer(struct gp_packets *p, uint64_t size, struct buffer *b)
{
	struct kfd_alloc_args args = { .size = round_up(size, PAGE),
				       .gpu_id = p->node.gpu_id,
				       .flags = KFD_MEM_GTT | KFD_MEM_WRITABLE | KFD_MEM_EXECUTABLE |
						KFD_MEM_COHERENT };
	void *addr = mmap(NULL, args.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int r;

	if (addr == MAP_FAILED)
		return -errno;
	b->addr = addr;
	b->size = args.size;
	args.va = (uintptr_t)addr;
	r = gp_kfd_call(p->kfd, KFD_IOC_ALLOC, &args);
	if (r < 0)
		return r;
	b->handle = args.handle;
	if (mmap(addr, args.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->render,
		 (off_t)args.mmap_offset) == MAP_FAILED)
		return -errno;
	return map_buffer(p, b);
}

static void free_buffer(struct gp_packets *p, struct buffer *b)
{
	struct kfd_map_args unmap = { .handle = b->handle,
				      .devices = (uintptr_t)&p->node.gpu_id,
				      .n_devices = 1 };
	struct kfd_free_args args = { .handle = b->handle };

	if (b->mapped)
		(void)gp_kfd_call(p->kfd, KFD_IOC_UNMAP, &unmap);
	if (b->addr)
		(void)munmap(b->addr, b->size);
	if (b->handle)
		(void)gp_kfd_call(p->kfd, KFD_IOC_FREE, &args);
}

static int alloc_buffers(struct gp_packets *p)
{
	uint32_t debug;
	int r = size_save_area(&p->node, &debug);

	if (r == 0)
		r = alloc_buffer(p, RING_SIZE, &p->ring);
	if (r == 0)
		r = alloc_buffer(p, PAGE, &p->control);
	if (r == 0)
		r = alloc_buffer(p, PAGE, &p->eop);
	if (r == 0)
		r = alloc_buffer(p, ((uint64_t)p->node.cwsr_size + debug) * p->node.xccs, &p->cwsr);
	return r;
}

/* An invalid header in each packet: the device waits at the first that is one. */
static void prepare(struct gp_packets *p)
{
	struct node *n = &p->node;

	p->object = p->control.addr;
	p->signals = (void *)((char *)p->control.addr + PAGE / 2);
	*p->object = (struct queue_object){ .features = 1,
					    .base_address = (uintptr_t)p->ring.addr,
					    .packets = RING_SIZE / PACKET,
					    .max_cu_id = n->simds / n->simds_per_cu - 1,
					    .max_wave_id = 40 - 1,
					    .read_index_offset = offsetof(struct queue_object, read_index),
					    .properties = POINTERS_OF_64_BITS };
	for (uint32_t i = 0; i < RING_SIZE / PACKET; i++)
		*(uint16_t *)((char *)p->ring.addr + i * PACKET) = 1;
}

static int create_queue(struct gp_packets *p)
{
	struct kfd_create_queue_args args = { .ring = (uintptr_t)p->ring.addr,
					      .wptr = (uintptr_t)&p->object->write_index,
					      .rptr = (uintptr_t)&p->object->read_index,
					      .ring_size = RING_SIZE,
					      .gpu_id = p->node.gpu_id,
					      .type = KFD_TYPE_AQL,
					      .percent = 100,
					      .priority = 7,
					      .eop = (uintptr_t)p->eop.addr,
					      .eop_size = PAGE,
					      .cwsr = (uintptr_t)p->cwsr.addr,
					      .cwsr_size = p->node.cwsr_size,
					      .ctl_stack_size = p->node.ctl_stack_size };
	uint64_t slice;
	int r = gp_kfd_call(p->kfd, KFD_IOC_CREATE_QUEUE, &args);

	if (r < 0)
		return r;
	p->queue_id = args.queue_id;
	p->has_queue = 1;
	slice = args.doorbell_offset & ~(uint64_t)(DOORBELLS - 1);
	p->doorbells = mmap(NULL, DOORBELLS, PROT_READ | PROT_WRITE, MAP_SHARED, p->kfd, (off_t)slice);
	if (p->doorbells == MAP_FAILED)
		return -errno;
	p->doorbell = (volatile uint64_t *)(p->doorbells + (args.doorbell_offset - slice));
	return 0;
}

int gp_packets_update(struct gp_packets *p, uint32_t percent, uint64_t *ret_ns)
{
	struct kfd_update_queue_args args = { .ring = (uintptr_t)p->ring.addr,
					      .queue_id = p->queue_id,
					      .ring_size = RING_SIZE,
					      .percent = percent,
					      .priority = 7 };
	uint64_t begin = gp_packets_now();
	int r = gp_kfd_call(p->kfd, KFD_IOC_UPDATE_QUEUE, &args);

	if (r == 0)
		*ret_ns = gp_packets_now() - begin;
	return r;
}

/*
 * A barrier with nothing to wait for: no code runs, and its signal goes from 1 to 0.  The
 * header goes last, it makes the packet valid; the doorbell is told the packet's index.
 */
volatile int64_t *gp_packets_put(struct gp_packets *p)
{
	struct {
		uint16_t header, reserved0;
		uint32_t reserved1;
		uint64_t waits_for[5], reserved2, signal;
	} packet = { 0 };
	const uint16_t header = 3 | 1 << 8 | 2 << 9 | 2 << 11; /* barrier-AND, in order, system-wide fences */
	struct signal_object *signal = &p->signals[p->written % GP_PACKETS_MOST];
	char *slot = (char *)p->ring.addr + p->written % (RING_SIZE / PACKET) * PACKET;

	*signal = (struct signal_object){ .kind = SIGNAL_OF_USER, .value = 1 };
	packet.signal = (uintptr_t)signal;
	memcpy(slot + 2, (char *)&packet + 2, PACKET - 2);
	__atomic_store_n((uint16_t *)slot, header, __ATOMIC_RELEASE);
	__atomic_store_n(&p->object->write_index, p->written + 1, __ATOMIC_RELEASE);
	__atomic_store_n(p->doorbell, p->written, __ATOMIC_SEQ_CST);
	p->written++;
	return &signal->value;
}

int gp_packets_ended(const volatile int64_t *value, uint64_t timeout_ns)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	uint64_t end = gp_packets_now() + timeout_ns;

	while (*value > 0 && gp_packets_now() < end)
		(void)nanosleep(&pause, NULL);
	return *value <= 0;
}

uint32_t gp_packets_queue_id(const struct gp_packets *p)
{
	return p->queue_id;
}

static int open_node(struct gp_packets *p, const char **step)
{
	struct kfd_acquire_vm_args vm = { .gpu_id = p->node.gpu_id };
	char path[64];
	int r;

	*step = "open the GPU's render node (/dev/dri/renderD*)";
	(void)snprintf(path, sizeof(path), "/dev/dri/renderD%u", p->node.render_minor);
	p->render = open(path, O_RDWR | O_CLOEXEC);
	if (p->render < 0)
		return -errno;
	*step = "get an address space on the GPU";
	vm.drm_fd = (uint32_t)p->render;
	r = gp_kfd_call(p->kfd, KFD_IOC_ACQUIRE_VM, &vm);
	if (r < 0)
		return r;
	*step = "allocate memory";
	r = alloc_buffers(p);
	if (r < 0)
		return r;
	*step = "create a queue";
	prepare(p);
	return create_queue(p);
}

/* First the queue: its buffers are the device's as long as it is there. */
static void give_back(struct gp_packets *p)
{
	struct kfd_destroy_queue_args args = { .queue_id = p->queue_id };

	if (p->has_queue && gp_kfd_call(p->kfd, KFD_IOC_DESTROY_QUEUE, &args) < 0)
		return; /* the end of the process takes the rest */
	if (p->doorbells != MAP_FAILED)
		(void)munmap(p->doorbells, DOORBELLS);
	free_buffer(p, &p->cwsr);
	free_buffer(p, &p->eop);
	free_buffer(p, &p->control);
	free_buffer(p, &p->ring);
	if (p->render >= 0)
		close(p->render);
}

static int try_node(int kfd, const struct node *node, gp_packets_job *job, struct gp_trial *ret)
{
	struct gp_packets p = { .kfd = kfd, .render = -1, .node = *node, .doorbells = MAP_FAILED };
	int r;

	ret->gpu_id = node->gpu_id;
	ret->gfx_target = node->gfx_target;
	r = open_node(&p, &ret->step);
	if (r == 0)
		r = job(&p, ret);
	give_back(&p);
	return r;
}

/* A GPU that is not ours, by its render node or a device cgroup, is passed over if another is. */
static int try_nodes(int kfd, gp_packets_job *job, struct gp_trial *ret)
{
	DIR *nodes = opendir(NODES);
	struct dirent *d;
	struct node node;
	int r = -ENODEV;

	if (!nodes)
		return -errno;
	while ((d = readdir(nodes))) {
		if (d->d_name[0] == '.' || read_node(d->d_name, &node) < 0)
			continue;
		r = try_node(kfd, &node, job, ret);
		if (r != -EACCES && r != -EPERM && r != -ENOENT)
			break;
	}
	closedir(nodes);
	return r;
}

/* Of the process, whatever GPU it takes then: a second time it is refused. */
static int runtime_enable(int kfd)
{
	struct kfd_runtime_args args = { .mode = KFD_RUNTIME_ENABLE };

	return gp_kfd_call(kfd, KFD_IOC_RUNTIME_ENABLE, &args);
}

int gp_packets_try(gp_packets_job *job, int is_debugged, struct gp_trial *ret)
{
	int r, kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	*ret = (struct gp_trial){ .step = "open /dev/kfd" };
	if (kfd < 0)
		return -errno;
	ret->step = "say that a debugger may come (RUNTIME_ENABLE)";
	r = is_debugged ? runtime_enable(kfd) : 0;
	if (r == 0) {
		ret->step = "find a GPU in the topology (" NODES ")";
		r = try_nodes(kfd, job, ret);
	}
	close(kfd);
	return r;
}
