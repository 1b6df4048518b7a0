// SPDX-License-Identifier: MIT
/*
 * The driver's calls about queues and memory, well and ill used.  What a refusal is called was read in
 * amdkfd's source, Linux 6.12: set_queue_properties_from_user(), kfd_queue_acquire_buffers(),
 * kfd_process_queue_manager.c.
 *
 * bed: timeout=240 param=cus=4
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define KERNEL_ADDRESS 0xffff888000000000ull
#define NOWHERE 0x10000ull /* a user's address that nothing is mapped at */
#define LINUX_ENOTSUPP 524 /* the kernel's own, not the C library's */
#define RING 0x10000u

static struct kfd kfd;
static struct kfd_gpu *gpu;
static struct kfd_mem ring, pointers, eop, cwsr, memory;

static int start(void)
{
	int r;

	if (!ok(kfd_open(&kfd) == 0 && kfd.ngpus > 0, "the driver opens and has a GPU"))
		return -ENODEV;
	gpu = &kfd.gpus[0];
	r = kfd_alloc(&kfd, gpu, RING, &ring);
	r |= kfd_alloc(&kfd, gpu, 0x1000, &pointers);
	r |= kfd_alloc(&kfd, gpu, 0x1000, &eop);
	r |= kfd_alloc(&kfd, gpu,
		       ((uint64_t)gpu->cwsr_size + gpu->debug_size) * (gpu->num_xcc ? gpu->num_xcc : 1),
		       &cwsr);
	r |= kfd_alloc(&kfd, gpu, 0x10000, &memory);
	return ok(r == 0, "memory is allocated and mapped") ? 0 : -ENOMEM;
}

static struct kfd_create_queue_args good_args(void)
{
	return (struct kfd_create_queue_args){ .ring = (uintptr_t)ring.addr,
					       .wptr = (uintptr_t)pointers.addr + 64,
					       .rptr = (uintptr_t)pointers.addr,
					       .ring_size = RING,
					       .gpu_id = gpu->gpu_id,
					       .type = KFD_TYPE_AQL,
					       .percent = 100,
					       .priority = 7,
					       .eop = (uintptr_t)eop.addr,
					       .eop_size = eop.size,
					       .cwsr = (uintptr_t)cwsr.addr,
					       .cwsr_size = gpu->cwsr_size,
					       .ctl_stack_size = gpu->ctl_stack_size };
}

static int create(const struct kfd_create_queue_args *wanted, uint32_t *ret_id)
{
	struct kfd_create_queue_args args = *wanted;
	int r = kfd_ioctl(&kfd, KFD_IOC_CREATE_QUEUE, &args);

	if (r == 0)
		*ret_id = args.queue_id;
	return r;
}

static int destroy(uint32_t id)
{
	struct kfd_destroy_queue_args args = { .queue_id = id };

	return kfd_ioctl(&kfd, KFD_IOC_DESTROY_QUEUE, &args);
}

static void the_version(void)
{
	struct kfd_version_args version = { 0 };

	ok(kfd_ioctl(&kfd, KFD_IOC_VERSION, &version) == 0 && version.major == 1 && version.minor >= 13,
	   "the driver's interface is 1.%u", version.minor);
}

static int raw(unsigned int number, unsigned int size, void *args)
{
	return ioctl(kfd.fd, _IOC(KFD_RW, 'K', number, size), args) < 0 ? -errno : 0;
}

static void calls_that_do_not_exist(void)
{
	char nothing[256] = { 0 };

	ok(raw(0, 8, nothing) == -ENOTTY, "call 0 does not exist");
	ok(raw(0x2a, 8, nothing) == -ENOTTY && raw(0xff, 8, nothing) == -ENOTTY,
	   "nor do those past the last, also with the series");
}

static void calls_of_another_size(void)
{
	struct kfd_version_args version = { 0, 99 };
	static char large[0x3fff];

	ok(raw(1, 4, &version) == 0 && version.major == 1 && version.minor == 99,
	   "a call with a smaller structure gets that much");
	ok(raw(1, sizeof(large), large) == 0 && large[0] == 1 && large[100] == 0, "one with a larger, zeros");
	ok(raw(2, 0, NULL) == -EINVAL, "CREATE_QUEUE with no structure at all is refused: there is no GPU 0");
	ok(raw(2, 0x3fff, (void *)NOWHERE) == -EFAULT && raw(3, 8, NULL) == -EFAULT &&
		   raw(2, 8, (void *)KERNEL_ADDRESS) == -EFAULT,
	   "structures that cannot be read are refused");
}

/* One field of a good call, changed. */
struct change {
	const char *what;
	size_t offset, size;
	uint64_t value;
	int expected;
};

#define FIELD(name) \
	offsetof(struct kfd_create_queue_args, name), sizeof(((struct kfd_create_queue_args *)0)->name)

static int create_changed(const struct change *c)
{
	struct kfd_create_queue_args args = good_args();
	uint32_t id = 0;
	int r;

	memcpy((char *)&args + c->offset, &c->value, c->size);
	r = create(&args, &id);
	if (r == 0)
		destroy(id);
	return r;
}

static void queues_that_are_refused(void)
{
	const struct change changes[] = {
		{ "a type that is none", FIELD(type), 9, -LINUX_ENOTSUPP },
		{ "a GPU that is none", FIELD(gpu_id), 0xffff, -EINVAL },
		{ "priority 16", FIELD(priority), 16, -EINVAL },
		{ "101 percent", FIELD(percent), 101, -EINVAL },
		{ "a ring that is no power of two", FIELD(ring_size), 0x3000, -EINVAL },
		{ "a ring larger than its buffer", FIELD(ring_size), 0x80000000, -EINVAL },
		{ "a ring smaller than its buffer", FIELD(ring_size), RING / 2, -EINVAL },
		{ "no ring", FIELD(ring), 0, -EINVAL },
		{ "a ring nowhere", FIELD(ring), NOWHERE, -EINVAL },
		{ "a ring inside a buffer", FIELD(ring), (uintptr_t)ring.addr + 0x1000, -EINVAL },
		{ "a ring in the kernel", FIELD(ring), KERNEL_ADDRESS, -EFAULT },
		{ "a write pointer nowhere", FIELD(wptr), NOWHERE, -EINVAL },
		{ "a write pointer in the kernel", FIELD(wptr), KERNEL_ADDRESS, -EFAULT },
		{ "a write pointer in a buffer of more than a page", FIELD(wptr), (uintptr_t)ring.addr,
		  -EINVAL },
		{ "a read pointer nowhere", FIELD(rptr), NOWHERE, -EINVAL },
		{ "a read pointer in the kernel", FIELD(rptr), KERNEL_ADDRESS, -EFAULT },
		{ "an EOP buffer nowhere", FIELD(eop), NOWHERE, -EINVAL },
		{ "an EOP buffer in the kernel", FIELD(eop), KERNEL_ADDRESS, -EFAULT },
		{ "an EOP buffer too small", FIELD(eop_size), 2048, -EINVAL },
		{ "an EOP buffer larger than it is", FIELD(eop_size), 0x2000, -EINVAL },
		{ "no save area", FIELD(cwsr), 0, -EINVAL },
		{ "a save area nowhere", FIELD(cwsr), NOWHERE, -EINVAL },
		{ "a save area in the kernel", FIELD(cwsr), KERNEL_ADDRESS, -EFAULT },
		{ "a save area too small", FIELD(cwsr_size), gpu->cwsr_size - 4096, -EINVAL },
		{ "a save area larger than it is", FIELD(cwsr_size), 0xfffff000, -EINVAL },
		{ "a control stack of another size", FIELD(ctl_stack_size), 0, -EINVAL },
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		int r = create_changed(&changes[i]);

		ok(r == changes[i].expected, "CREATE_QUEUE refuses %s: %d (%d)", changes[i].what, r,
		   changes[i].expected);
	}
}

static void queues_that_are_taken(void)
{
	const struct change changes[] = {
		{ "as it should be", FIELD(pad), 0, 0 },
		{ "with the lowest priority", FIELD(priority), 0, 0 },
		{ "with the highest", FIELD(priority), 15, 0 },
		{ "that is stopped from the start", FIELD(percent), 0, 0 },
		{ "with no EOP buffer", FIELD(eop), 0, 0 },
		{ "with a ring of no size, which means the least", FIELD(ring_size), 0, 0 },
		{ "with a ring that does not begin at a page", FIELD(ring), (uintptr_t)ring.addr + 0x100, 0 },
		{ "with a pointer across the page's end", FIELD(wptr), (uintptr_t)pointers.addr + 0xffd, 0 },
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		int r = create_changed(&changes[i]);

		ok(r == 0, "CREATE_QUEUE takes a queue %s (%d)", changes[i].what, r);
	}
}

static void refusals_keep_no_buffer(void)
{
	struct kfd_map_args args = { .handle = ring.handle,
				     .devices = (uintptr_t)&gpu->gpu_id,
				     .n_devices = 1 };

	ok(kfd_ioctl(&kfd, KFD_IOC_UNMAP, &args) == 0,
	   "after all of them no queue holds the ring: it is unmapped");
	args.n_success = 0;
	ok(kfd_ioctl(&kfd, KFD_IOC_MAP, &args) == 0, "and mapped again");
}

static int update(uint32_t id, uint64_t base, uint32_t size, uint32_t percent, uint32_t priority)
{
	struct kfd_update_queue_args args = {
		.ring = base, .queue_id = id, .ring_size = size, .percent = percent, .priority = priority
	};

	return kfd_ioctl(&kfd, KFD_IOC_UPDATE_QUEUE, &args);
}

static void updates_and_destructions(void)
{
	struct kfd_create_queue_args args = good_args();
	uint64_t base = args.ring;
	uint32_t id = 0;

	ok(create(&args, &id) == 0, "a queue is created");
	ok(update(id, base, RING, 101, 7) == -EINVAL, "UPDATE_QUEUE refuses 101 percent");
	ok(update(id, base, RING, 100, 16) == -EINVAL, "and priority 16");
	ok(update(id, base, 0x3000, 100, 7) == -EINVAL, "and a ring that is no power of two");
	ok(update(id, KERNEL_ADDRESS, RING, 100, 7) == -EFAULT, "and a ring in the kernel");
	ok(update(id, NOWHERE, RING, 100, 7) == -EFAULT, "and a ring nowhere");
	ok(update(id + 1, base, RING, 100, 7) == -EFAULT && update(0xffffffff, base, RING, 100, 7) == -EFAULT,
	   "and queues that are none");
	kfd_settle(0);
	ok(kfd_stat(0, "active") == 1, "the queue is as it was");
	ok(update(id, 0, RING, 100, 7) == 0 && kfd_stat(0, "active") == 0, "no ring stops a queue");
	ok(update(id, base, RING, 100, 15) == 0 && kfd_wait_stat(0, "active", 1, KFD_SOON) == 0,
	   "a ring starts it");
	ok(destroy(id + 1) == -EINVAL, "DESTROY_QUEUE refuses a queue that is none");
	ok(destroy(id) == 0 && destroy(id) == -EINVAL, "and to destroy one twice");
	ok(update(id, base, RING, 100, 7) == -EFAULT, "what is destroyed is not updated");
}

static int set_mask(uint32_t id, uint32_t nbits, const void *mask)
{
	struct kfd_set_cu_mask_args args = { .queue_id = id, .nbits = nbits, .mask = (uintptr_t)mask };

	return kfd_ioctl(&kfd, KFD_IOC_SET_CU_MASK, &args);
}

static void masks_of_compute_units(void)
{
	struct kfd_signal *s = memory.addr;
	uint32_t some = 0x3, many[64];
	struct kfd_queue q;

	memset(many, 0xff, sizeof(many));
	memset(s, 0, sizeof(*s));
	s->value = 1;
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &q) == 0, "a queue is created");
	ok(set_mask(q.id, 32, &some) == 0, "SET_CU_MASK takes a mask");
	ok(set_mask(q.id, 2048, many) == 0, "one with more bits than there are units");
	ok(set_mask(q.id, 33, many) == -EINVAL && set_mask(q.id, 0, many) == -EINVAL,
	   "not one that is not in words of 32 bits, nor one of none");
	ok(set_mask(q.id, 32, (void *)NOWHERE) == -EFAULT, "nor one that cannot be read");
	ok(set_mask(q.id + 1, 32, &some) == -EFAULT, "nor for a queue that is none");
	kfd_dispatch(&q, 1, MS, s);
	ok(kfd_wait(s, KFD_SOON) == 0, "the queue works");
	ok(kfd_queue_destroy(&q) == 0, "and is destroyed");
}

static int map(unsigned long request, uint64_t handle, const void *devices, uint32_t n, uint32_t done)
{
	struct kfd_map_args args = {
		.handle = handle, .devices = (uintptr_t)devices, .n_devices = n, .n_success = done
	};

	return kfd_ioctl(&kfd, request, &args);
}

static int free_handle(uint64_t handle)
{
	struct kfd_free_args args = { .handle = handle };

	return kfd_ioctl(&kfd, KFD_IOC_FREE, &args);
}

static int alloc_raw(uint32_t gpu_id, uint64_t va, uint64_t size, uint64_t *ret_handle)
{
	struct kfd_alloc_args args = {
		.va = va, .size = size, .gpu_id = gpu_id, .flags = KFD_MEM_GTT | KFD_MEM_WRITABLE
	};
	int r = kfd_ioctl(&kfd, KFD_IOC_ALLOC, &args);

	if (r == 0)
		*ret_handle = args.handle;
	return r;
}

static void memory_that_is_refused(void)
{
	uint32_t wrong = 0xffff;
	uint64_t handle;

	ok(alloc_raw(gpu->gpu_id, 0x7000000000, 0, &handle) == -EINVAL, "memory of no size is refused");
	ok(alloc_raw(wrong, 0x7000000000, 4096, &handle) == -EINVAL, "memory of a GPU that is none");
	ok(alloc_raw(gpu->gpu_id, 0x7000000000, 1ull << 40, &handle) == -ENOMEM, "more memory than there is");
	handle = memory.handle;
	ok(map(KFD_IOC_MAP, handle, &gpu->gpu_id, 0, 0) == -EINVAL, "MAP refuses no devices");
	ok(map(KFD_IOC_MAP, handle, &gpu->gpu_id, 1, 2) == -EINVAL, "and more done than to do");
	ok(map(KFD_IOC_MAP, handle, (void *)NOWHERE, 1, 0) == -EFAULT, "and a list that cannot be read");
	ok(map(KFD_IOC_MAP, handle, &wrong, 1, 0) == -EINVAL, "and a GPU that is none");
	ok(map(KFD_IOC_MAP, handle + 1000, &gpu->gpu_id, 1, 0) == -ENOMEM, "and memory that is none");
	ok(map(KFD_IOC_UNMAP, handle + 1000, &gpu->gpu_id, 1, 0) == -ENOMEM, "UNMAP, too");
	ok(free_handle(handle + 1000) == -EINVAL && free_handle(0) == -EINVAL &&
		   free_handle(~0ull) == -EINVAL,
	   "FREE, too");
}

static void memory_is_mapped_once(void)
{
	uint64_t handle = 0, other = 0, va = 0x7000000000;

	ok(alloc_raw(gpu->gpu_id, va, 0x4000, &handle) == 0, "memory is allocated");
	ok(map(KFD_IOC_UNMAP, handle, &gpu->gpu_id, 1, 0) == -EINVAL,
	   "it is not unmapped before it is mapped");
	ok(map(KFD_IOC_MAP, handle, &gpu->gpu_id, 1, 0) == 0 &&
		   map(KFD_IOC_MAP, handle, &gpu->gpu_id, 1, 0) == 0,
	   "it may be mapped twice");
	ok(alloc_raw(gpu->gpu_id, va + 0x2000, 0x4000, &other) == 0 &&
		   map(KFD_IOC_MAP, other, &gpu->gpu_id, 1, 0) == -EINVAL,
	   "other memory may not be mapped over it");
	ok(free_handle(handle) == -EBUSY, "it is not freed while it is mapped");
	ok(map(KFD_IOC_UNMAP, handle, &gpu->gpu_id, 1, 0) == 0, "it is unmapped");
	ok(map(KFD_IOC_MAP, other, &gpu->gpu_id, 1, 0) == 0, "now the other may be mapped there");
	ok(free_handle(handle) == 0 && free_handle(handle) == -EINVAL, "it is freed, once");
	ok(map(KFD_IOC_MAP, handle, &gpu->gpu_id, 1, 0) == -ENOMEM, "and not mapped any more");
	ok(map(KFD_IOC_UNMAP, other, &gpu->gpu_id, 1, 0) == 0 && free_handle(other) == 0,
	   "the other is freed");
}

static void memory_under_a_queue_stays(void)
{
	struct kfd_create_queue_args args = good_args();
	const struct kfd_mem *buffers[] = { &ring, &pointers, &eop, &cwsr };
	uint32_t id, held = 0, released = 0;

	ok(create(&args, &id) == 0, "a queue is created");
	for (int i = 0; i < 4; i++)
		held += map(KFD_IOC_UNMAP, buffers[i]->handle, &gpu->gpu_id, 1, 0) == -EBUSY;
	ok(held == 4, "its ring, pointers, EOP buffer and save area are not unmapped (%u)", held);
	ok(destroy(id) == 0, "it is destroyed");
	for (int i = 0; i < 4; i++)
		released += map(KFD_IOC_UNMAP, buffers[i]->handle, &gpu->gpu_id, 1, 0) == 0 &&
			    map(KFD_IOC_MAP, buffers[i]->handle, &gpu->gpu_id, 1, 0) == 0;
	ok(released == 4, "now they are (%u)", released);
}

static uint32_t queues_until(uint32_t type, uint32_t limit, int *ret_r)
{
	struct kfd_create_queue_args args = good_args();
	uint32_t n = 0, id;

	args.type = type;
	args.percent = 0; /* never on the device: all may share their buffers */
	while (n < limit && (*ret_r = create(&args, &id)) == 0)
		n++;
	return n;
}

static int destroy_all(uint32_t n)
{
	int r = 0;

	for (uint32_t id = 0; id < n; id++)
		r |= destroy(id);
	return r;
}

static void no_more_queues_than_the_limit(void)
{
	uint32_t limit = gpu->gfx_target == 90402 || gpu->gfx_target == 90400 ? 255 : 127, n;
	int r = 0;

	n = queues_until(KFD_TYPE_AQL, 1000, &r);
	ok(n == limit && r == -ENOSPC, "a process has up to %u queues (%u), then ENOSPC (%d)", limit, n, r);
	ok(destroy_all(n) == 0, "they are destroyed");
	n = queues_until(KFD_TYPE_SDMA, 1000, &r);
	ok(n >= 4 && n <= 16 && r == -ENOMEM, "a device of one XCC has %u SDMA queues, then ENOMEM (%d)", n,
	   r);
	ok(destroy_all(n) == 0, "they are destroyed");
	n = queues_until(KFD_TYPE_AQL, 10, &r);
	ok(n == 10 && destroy_all(n) == 0, "and others can be created");
}

static int queue_value(uint32_t id, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "queues/%u/%s", id, name);
	return (int)kfd_proc_value(getpid(), path);
}

static void sysfs_shows_the_queues(void)
{
	struct kfd_queue a, s;

	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &a) == 0 &&
		   kfd_queue_create(&kfd, gpu, KFD_TYPE_SDMA, 7, &s) == 0,
	   "two queues are created");
	ok(kfd_proc_value(getpid(), "pasid") > 0, "sysfs shows the process and its PASID");
	ok(queue_value(a.id, "gpuid") == (int)gpu->gpu_id && queue_value(a.id, "size") == (int)a.ring_size &&
		   queue_value(a.id, "type") == 0,
	   "and a queue's GPU, size and type");
	ok(queue_value(s.id, "type") == 1 && queue_value(s.id, "size") == (int)s.ring_size,
	   "an SDMA queue's, too");
	ok(kfd_queue_destroy(&a) == 0 && queue_value(a.id, "type") == -ENOENT &&
		   queue_value(s.id, "type") == 1,
	   "they go with the queue");
	ok(kfd_queue_destroy(&s) == 0 && queue_value(s.id, "type") == -ENOENT, "each with its own");
}

/* How much there is to read, or -errno. */
static ssize_t read_all(const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t n, total = 0;
	char buffer[4096];

	if (fd < 0)
		return -errno;
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		total += n;
	close(fd);
	return n < 0 ? -errno : total;
}

static void debugfs_can_be_read_while_queues_run(void)
{
	struct kfd_signal *s = memory.addr;
	struct kfd_queue a, copy;
	int good = 0;

	memset(s, 0, sizeof(*s));
	s->value = 1;
	ok(kfd_queue_create(&kfd, gpu, KFD_TYPE_AQL, 7, &a) == 0 &&
		   kfd_queue_create(&kfd, gpu, KFD_TYPE_SDMA, 7, &copy) == 0,
	   "two queues are created");
	kfd_dispatch(&a, 8, 300 * MS, s);
	for (int i = 0; i < 10; i++)
		good += read_all("/sys/kernel/debug/kfd/mqds") > 1000 &&
			read_all("/sys/kernel/debug/kfd/hqds") > 1000 &&
			read_all("/sys/kernel/debug/kfd/rls") > 100;
	ok(good == 10, "mqds, hqds and rls can be read while one runs (%d of 10)", good);
	ok(kfd_wait(s, KFD_SOON) == 0, "which ends as it should");
	ok(kfd_queue_destroy(&a) == 0 && kfd_queue_destroy(&copy) == 0, "the queues are destroyed");
}

/* In a process of its own: returns what to exit with, 0 if all is well. */
static int in_child(int (*what)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(what());
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static uint32_t parents_queue;

static int use_parents_fd(void)
{
	struct kfd_version_args version;

	if (kfd_ioctl(&kfd, KFD_IOC_VERSION, &version) != -EBADF)
		return 1;
	if (destroy(parents_queue) != -EBADF)
		return 2;
	if (mmap(NULL, 0x2000, PROT_READ, MAP_SHARED, kfd.fd, (off_t)(3ull << 62)) != MAP_FAILED)
		return 3;
	return 0;
}

static int use_parents_ids(void)
{
	struct kfd_map_args args = { .handle = memory.handle, .n_devices = 1 };

	if (kfd_open(&kfd) < 0)
		return 1;
	args.devices = (uintptr_t)&kfd.gpus[0].gpu_id;
	if (update(parents_queue, 0, RING, 0, 7) != -EFAULT)
		return 2;
	if (destroy(parents_queue) != -EINVAL)
		return 3;
	if (kfd_ioctl(&kfd, KFD_IOC_MAP, &args) != -ENOMEM)
		return 4;
	if (free_handle(memory.handle) != -EINVAL)
		return 5;
	return 0;
}

static uint64_t parents_offset;

static int map_parents_memory(void)
{
	if (kfd_open(&kfd) < 0)
		return 1;
	if (mmap(NULL, 0x1000, PROT_READ, MAP_SHARED, kfd.gpus[0].render_fd, (off_t)parents_offset) !=
	    MAP_FAILED)
		return 2;
	return errno == EACCES ? 0 : 3;
}

/* The child's address space on the GPU does not have what the parent's has. */
static int copy_to_parents_memory(void)
{
	int64_t bad = kfd_stat(0, "bad_addresses");
	volatile uint32_t *word;
	struct kfd_queue q;
	struct kfd_mem mem;

	if (kfd_open(&kfd) < 0 || kfd_queue_create(&kfd, &kfd.gpus[0], KFD_TYPE_SDMA, 7, &q) < 0 ||
	    kfd_alloc(&kfd, &kfd.gpus[0], 0x1000, &mem) < 0)
		return 1;
	word = mem.addr;
	kfd_put(&q, kfd_sdma_fence(&word[0], 1));
	kfd_put(&q, kfd_sdma_fence((char *)memory.addr + 0x8000, 0xbad));
	kfd_put(&q, kfd_sdma_fence(&word[1], 1));
	if (kfd_wait_value(&word[0], 1, KFD_SOON) < 0)
		return 2;
	if (kfd_wait_value(&word[1], 1, 100 * MS) == 0)
		return 3;
	return kfd_stat(0, "bad_addresses") > bad ? 0 : 4;
}

static void processes_do_not_reach_each_other(void)
{
	struct kfd_create_queue_args args = good_args();
	struct kfd_alloc_args alloc = {
		.va = 0x7000000000, .size = 0x1000, .gpu_id = gpu->gpu_id, .flags = KFD_MEM_GTT
	};
	volatile uint32_t *mine = (volatile uint32_t *)((char *)memory.addr + 0x8000);
	int r;

	*mine = 0x900d;
	ok(create(&args, &parents_queue) == 0, "a queue is created");
	ok(kfd_ioctl(&kfd, KFD_IOC_ALLOC, &alloc) == 0, "and memory allocated");
	parents_offset = alloc.mmap_offset;
	r = in_child(use_parents_fd);
	ok(r == 0, "a child cannot use its parent's file: EBADF (%d)", r);
	r = in_child(use_parents_ids);
	ok(r == 0, "with its own, it cannot use its parent's queues and memory (%d)", r);
	r = in_child(map_parents_memory);
	ok(r == 0, "nor map its parent's memory: EACCES (%d)", r);
	r = in_child(copy_to_parents_memory);
	ok(r == 0, "nor write to it with a GPU (%d)", r);
	ok(*mine == 0x900d, "which is as it was");
	ok(destroy(parents_queue) == 0 && free_handle(alloc.handle) == 0,
	   "queue and memory are the parent's still");
}

static int run_for_ever(int tell)
{
	struct kfd_queue a, b, copy;
	struct kfd_mem mem;

	if (kfd_open(&kfd) < 0 || kfd_queue_create(&kfd, &kfd.gpus[0], KFD_TYPE_AQL, 7, &a) < 0 ||
	    kfd_queue_create(&kfd, &kfd.gpus[0], KFD_TYPE_AQL, 7, &b) < 0 ||
	    kfd_queue_create(&kfd, &kfd.gpus[0], KFD_TYPE_SDMA, 7, &copy) < 0 ||
	    kfd_alloc(&kfd, &kfd.gpus[0], 0x1000, &mem) < 0)
		return 1;
	kfd_dispatch(&a, 64, 1000 * SECOND, NULL);
	if (write(tell, "x", 1) != 1)
		return 2;
	for (uint64_t i = 0;; i++) {
		kfd_put(&copy, kfd_sdma_add(mem.addr, 1));
		if (i % 100 == 0)
			kfd_queue_update(&b, i % 200 ? 0 : 100, 7);
	}
}

/* Returns how long after the process everything of it was gone, in ns, or -1. */
static int64_t kill_one(uint64_t after_ns)
{
	uint64_t begin;
	int pipes[2];
	char told = 0;
	pid_t pid;

	if (pipe(pipes) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		_exit(run_for_ever(pipes[1]));
	close(pipes[1]);
	if (read(pipes[0], &told, 1) != 1)
		told = 0;
	close(pipes[0]);
	kfd_sleep(after_ns);
	kill(pid, SIGKILL);
	if (waitpid(pid, NULL, 0) != pid || !told)
		return -1;
	begin = kfd_now();
	while (kfd_stat(0, "mapped") || kfd_stat(0, "active") || kfd_proc_value(pid, "pasid") >= 0) {
		if (kfd_now() > begin + KFD_SOON)
			return -1;
		kfd_sleep(MS);
	}
	return (int64_t)(kfd_now() - begin);
}

static void killed_processes_leave_nothing(void)
{
	int64_t longest = 0, took;
	int n = 0;

	for (int i = 0; i < 50; i++) {
		took = kill_one((uint64_t)(rand() % 20) * MS);
		n += took >= 0;
		longest = took > longest ? took : longest;
	}
	ok(n == 50, "50 processes are killed with running queues: nothing is left of %d of them", n);
	note("the longest took %lld ms to go", (long long)(longest / (int64_t)MS));
}

static void send_fd(int over, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte = 'x';
	struct iovec io = { &byte, 1 };
	struct msghdr message = { .msg_iov = &io,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	if (sendmsg(over, &message, 0) < 0)
		_exit(9);
}

static int receive_fd(int over)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec io = { &byte, 1 };
	struct msghdr message = { .msg_iov = &io,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	int fd = -1;

	if (recvmsg(over, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* The target of a checkpoint: sends its file, then counts dispatches in memory it shares with its parent. */
static int be_checkpointed(int over, volatile uint32_t *count)
{
	struct kfd_signal *s;
	struct kfd_queue q;
	struct kfd_mem mem;

	if (kfd_open(&kfd) < 0 || kfd_queue_create(&kfd, &kfd.gpus[0], KFD_TYPE_AQL, 7, &q) < 0 ||
	    kfd_alloc(&kfd, &kfd.gpus[0], 0x1000, &mem) < 0)
		return 1;
	s = mem.addr;
	send_fd(over, kfd.fd);
	for (;;) {
		s->value = 1;
		kfd_dispatch(&q, 1, MS, s);
		if (kfd_wait(s, 60 * SECOND) < 0)
			return 2;
		(*count)++;
	}
}

static int makes_progress(const volatile uint32_t *count)
{
	uint32_t before = *count;
	uint64_t end = kfd_now() + KFD_SOON;

	while (*count == before && kfd_now() < end)
		kfd_sleep(MS);
	return *count != before;
}

/* One dispatch may have ended before, and not have been counted yet. */
static int stands_still(const volatile uint32_t *count)
{
	uint32_t before = *count;

	kfd_sleep(2 * SECOND);
	return *count - before <= 1;
}

static void checkpoint(pid_t pid, int fd, const volatile uint32_t *count)
{
	struct kfd target = { .fd = fd };
	struct kfd_criu_args info = { .op = KFD_CRIU_PROCESS_INFO }, go_on = { .op = KFD_CRIU_UNPAUSE },
			     wrong = { .op = 99 };

	ok(kfd_ioctl(&target, KFD_IOC_CRIU, &info) == -EBADF, "a file of another process is no use");
	ok(ptrace(PTRACE_SEIZE, pid, 0, 0) == 0, "unless one traces it");
	ok(kfd_ioctl(&target, KFD_IOC_CRIU, &wrong) == -EINVAL, "CRIU: an operation that is none is refused");
	ok(kfd_ioctl(&target, KFD_IOC_CRIU, &go_on) == -EINVAL, "and to go on with what is not paused");
	ok(makes_progress(count), "the target makes progress");
	ok(kfd_ioctl(&target, KFD_IOC_CRIU, &info) == 0 && info.pid == (uint32_t)pid,
	   "PROCESS_INFO is given");
	ok(info.num_devices == kfd.ngpus && info.num_bos >= 5 && info.priv_data_size > 0,
	   "%u devices, %u buffers, %u objects", info.num_devices, info.num_bos, info.num_objects);
	ok(stands_still(count) && kfd_stat(0, "active") == 0, "and the target's queues stand still");
	ok(kfd_ioctl(&target, KFD_IOC_CRIU, &go_on) == 0, "they are let go on");
	ok(makes_progress(count), "and do");
}

static void a_checkpoint_pauses_a_process(void)
{
	volatile uint32_t *count =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int pair[2], fd, status = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return;
	pid = fork();
	if (pid == 0)
		_exit(be_checkpointed(pair[1], count));
	fd = receive_fd(pair[0]);
	if (ok(fd >= 0, "a process sends its file"))
		checkpoint(pid, fd, count);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	close(fd);
	ok(kfd_wait_stat(0, "mapped", 0, KFD_SOON) == 0, "it is killed, and nothing of it is left");
}

int main(void)
{
	if (start() < 0)
		return tap_done();
	the_version();
	calls_that_do_not_exist();
	calls_of_another_size();
	queues_that_are_refused();
	queues_that_are_taken();
	refusals_keep_no_buffer();
	updates_and_destructions();
	masks_of_compute_units();
	memory_that_is_refused();
	memory_is_mapped_once();
	memory_under_a_queue_stays();
	no_more_queues_than_the_limit();
	sysfs_shows_the_queues();
	debugfs_can_be_read_while_queues_run();
	processes_do_not_reach_each_other();
	a_checkpoint_pauses_a_process();
	killed_processes_leave_nothing();
	ok(kfd_stat(0, "mapped") == 0 && kfd_stat(0, "active") == 0, "no queue is left");
	kfd_close(&kfd);
	return tap_done();
}
