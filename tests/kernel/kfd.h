/* SPDX-License-Identifier: MIT */
/*
 * Just enough of a runtime to talk to amdkfd without one: memory, queues, packets.
 * Calls return 0 or a count, else -errno.
 */
#ifndef GP_TESTS_KERNEL_KFD_H
#define GP_TESTS_KERNEL_KFD_H

#include <stddef.h>
#include <stdint.h>

#include "backend/kfd/uapi.h"

#define KFD_MAX_GPUS 8
/* For what comes at once: longer than a busy host keeps the machine from running.  It only ends a test that
 * hangs. */
#define KFD_SOON 60000000000ull

struct kfd_gpu {
	uint32_t gpu_id;
	int render_fd;
	uint32_t cwsr_size, ctl_stack_size, debug_size, num_xcc, num_cp_queues, gfx_target;
};

struct kfd {
	int fd;
	uint32_t ngpus;
	struct kfd_gpu gpus[KFD_MAX_GPUS];
};

struct kfd_mem {
	void *addr; /* the same for CPU and GPU */
	uint64_t size;
	uint64_t handle;
};

/* The runtime's signal object: its value goes down by one when a packet is done. */
struct kfd_signal {
	int64_t kind;
	volatile int64_t value;
	uint64_t event_mailbox;
	uint32_t event_id, reserved;
	uint64_t start_ts, end_ts;
	uint64_t reserved2[2];
};

struct kfd_queue {
	struct kfd *kfd;
	struct kfd_gpu *gpu;
	uint32_t id, type, ring_size; /* type: KFD_TYPE_ */
	struct kfd_mem ring, pointers, cwsr, eop;
	volatile uint64_t *rptr, *wptr, *doorbell;
	void *doorbell_slice; /* the mapping it is in */
	uint64_t written;     /* packets, dwords or bytes, by type */
};

int kfd_open(struct kfd *k); /* takes every GPU's address space */
void kfd_close(struct kfd *k);
int kfd_ioctl(struct kfd *k, unsigned long request, void *args);

int kfd_alloc(struct kfd *k, struct kfd_gpu *gpu, uint64_t size, struct kfd_mem *ret);
int kfd_free(struct kfd *k, struct kfd_gpu *gpu, struct kfd_mem *mem);
/* KFD_IOC_MAP or KFD_IOC_UNMAP of what kfd_alloc() has mapped. */
int kfd_map(struct kfd *k, struct kfd_gpu *gpu, unsigned long request, const struct kfd_mem *mem);

int kfd_queue_create(struct kfd *k, struct kfd_gpu *gpu, uint32_t type, uint32_t priority,
		     struct kfd_queue *ret);
/* The same with a ring of so many bytes, a power of two. */
int kfd_queue_create_ring(struct kfd *k, struct kfd_gpu *gpu, uint32_t type, uint32_t ring_size,
			  struct kfd_queue *ret);
int kfd_queue_destroy(struct kfd_queue *q);
int kfd_queue_update(struct kfd_queue *q, uint32_t percent, uint32_t priority);

/* A dispatch of so many workgroups of 256 work-items (4 waves), each wave so long. signal may be NULL. */
void kfd_dispatch(struct kfd_queue *q, uint32_t workgroups, uint64_t wave_ns, struct kfd_signal *signal);
/* type 3: wait for all of the signals; 5: for one. */
void kfd_barrier(struct kfd_queue *q, int type, struct kfd_signal **signals, int n,
		 struct kfd_signal *completion);
/* Puts dwords into a PM4 or SDMA queue and rings. */
void kfd_submit(struct kfd_queue *q, const uint32_t *dwords, uint32_t n);

/* 0, or -ETIMEDOUT: the value did not come down to zero. */
int kfd_wait(const struct kfd_signal *signal, uint64_t timeout_ns);
uint64_t kfd_now(void);
void kfd_sleep(uint64_t ns);
/* A counter of the software GPU; -1: there is none of that name. */
int64_t kfd_stat(int device, const char *name);
/* The software GPU's own time in ns, which stands still while the host keeps the machine from running. */
uint64_t kfd_gpu_now(int device);
/* Whether the driver has the series: kernel/bed/run --patched. */
int kfd_is_patched(void);
int kfd_fault(int device, const char *words);
/* Wave-ns that a process has had on the software GPU; -1: it had no queue there. */
int64_t kfd_busy(int device, int64_t pasid);

/* A packet for a PM4 or SDMA queue, as kfd_put() wants it. */
struct kfd_packet {
	uint32_t n, dwords[16];
};

struct kfd_packet kfd_pm4_write(volatile void *dst, uint32_t value);
/* event 0: no interrupt */
struct kfd_packet kfd_pm4_release(volatile void *dst, uint64_t value, uint32_t event);
struct kfd_packet kfd_pm4_indirect(const void *packets, uint32_t ndw);
struct kfd_packet kfd_sdma_copy(volatile void *dst, const void *src, uint32_t bytes);
struct kfd_packet kfd_sdma_fence(volatile void *dst, uint32_t value);
struct kfd_packet kfd_sdma_trap(uint32_t event);
struct kfd_packet kfd_sdma_add(volatile void *dst, int64_t value);

/* Waits for room, fills the ring up to its end if the packet would cross it, and rings. -ETIMEDOUT: no room
 * came. */
int kfd_put(struct kfd_queue *q, struct kfd_packet packet);

/* 0, or -ETIMEDOUT: the value did not come. */
int kfd_wait_value(const volatile uint32_t *at, uint32_t value, uint64_t timeout_ns);
int kfd_wait_stat(int device, const char *name, int64_t value, uint64_t timeout_ns);
/* Nobody waits for a run list: returns when the device has counted all that the driver has sent it. */
void kfd_settle(int device);

/* page: with the first event, or NULL. */
int kfd_event_create(struct kfd *k, const struct kfd_mem *page, uint32_t type, int auto_reset,
		     uint32_t *ret_id);
/* KFD_WAIT_, or -errno. */
int kfd_event_wait(struct kfd *k, struct kfd_event_data *events, uint32_t n, int all, uint32_t timeout_ms);

/* A value of the driver's sysfs about a process (/sys/class/kfd/kfd/proc), or -errno. */
int64_t kfd_proc_value(int pid, const char *name);

/* Everybody may use the GPUs. */
void kfd_open_up(void);

/* An open file, to and from whoever has the other end of a socket; -1: none came. */
void kfd_send_file(int socket, int fd);
int kfd_receive_file(int socket);

#endif
