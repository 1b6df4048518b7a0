/* SPDX-License-Identifier: MIT */
/*
 * The calls of amdkfd that anything here makes.  Layouts and numbers were read from
 * include/uapi/linux/kfd_ioctl.h, Linux 6.12.115; Debian's linux-libc-dev has an older
 * one.  Fields the driver writes are marked out.
 */
#ifndef GP_BACKEND_KFD_UAPI_H
#define GP_BACKEND_KFD_UAPI_H

#include <stdint.h>
#include <sys/ioctl.h>

struct kfd_version_args {
	uint32_t major, minor; /* out */
};

struct kfd_create_queue_args {
	uint64_t ring, wptr, rptr;
	uint64_t doorbell_offset; /* out */
	uint32_t ring_size, gpu_id, type, percent, priority;
	uint32_t queue_id; /* out */
	uint64_t eop, eop_size, cwsr;
	uint32_t cwsr_size, ctl_stack_size, sdma_engine, pad;
};

struct kfd_destroy_queue_args {
	uint32_t queue_id, pad;
};

struct kfd_update_queue_args {
	uint64_t ring;
	uint32_t queue_id, ring_size, percent, priority;
};

struct kfd_acquire_vm_args {
	uint32_t drm_fd, gpu_id;
};

struct kfd_alloc_args {
	uint64_t va, size;
	uint64_t handle, mmap_offset; /* out; mmap_offset in for user memory */
	uint32_t gpu_id, flags;
};

struct kfd_free_args {
	uint64_t handle;
};

struct kfd_available_args {
	uint64_t available;
	uint32_t gpu_id, pad;
};

struct kfd_map_args {
	uint64_t handle, devices;
	uint32_t n_devices, n_success;
};

#define KFD_IOC(dir, number, type) _IOC(dir, 'K', number, sizeof(type))
#define KFD_RW (_IOC_READ | _IOC_WRITE)

#define KFD_IOC_VERSION KFD_IOC(_IOC_READ, 0x01, struct kfd_version_args)
#define KFD_IOC_CREATE_QUEUE KFD_IOC(KFD_RW, 0x02, struct kfd_create_queue_args)
#define KFD_IOC_DESTROY_QUEUE KFD_IOC(KFD_RW, 0x03, struct kfd_destroy_queue_args)
#define KFD_IOC_UPDATE_QUEUE KFD_IOC(_IOC_WRITE, 0x07, struct kfd_update_queue_args)
#define KFD_IOC_ACQUIRE_VM KFD_IOC(_IOC_WRITE, 0x15, struct kfd_acquire_vm_args)
#define KFD_IOC_ALLOC KFD_IOC(KFD_RW, 0x16, struct kfd_alloc_args)
#define KFD_IOC_FREE KFD_IOC(_IOC_WRITE, 0x17, struct kfd_free_args)
#define KFD_IOC_MAP KFD_IOC(KFD_RW, 0x18, struct kfd_map_args)
#define KFD_IOC_UNMAP KFD_IOC(KFD_RW, 0x19, struct kfd_map_args)
#define KFD_IOC_AVAILABLE KFD_IOC(KFD_RW, 0x23, struct kfd_available_args)

/* kfd_create_queue_args.type */
#define KFD_TYPE_COMPUTE 0
#define KFD_TYPE_SDMA 1
#define KFD_TYPE_AQL 2
#define KFD_TYPE_SDMA_XGMI 3
#define KFD_TYPE_SDMA_BY_ENGINE 4

/* kfd_alloc_args.flags */
#define KFD_MEM_VRAM (1u << 0)
#define KFD_MEM_GTT (1u << 1)
#define KFD_MEM_USERPTR (1u << 2)
#define KFD_MEM_DOORBELL (1u << 3)
#define KFD_MEM_COHERENT (1u << 26)
#define KFD_MEM_EXECUTABLE (1u << 30)
#define KFD_MEM_WRITABLE (1u << 31)

/* The debugger's interface. */

struct kfd_runtime_args {
	uint64_t r_debug;
	uint32_t mode; /* KFD_RUNTIME_ */
	uint32_t capabilities;
};

struct kfd_runtime_info {
	uint64_t r_debug;
	uint32_t state; /* KFD_RUNTIME_STATE_ */
	uint32_t ttmp_setup;
};

struct kfd_dbg_queue {
	uint64_t exceptions;
	uint64_t ring, wptr, rptr, cwsr;
	uint32_t queue_id, gpu_id, ring_size, type, cwsr_size, reserved;
};

/* At the beginning of each XCC's part of a save area, after SUSPEND_QUEUES. */
struct kfd_save_header {
	uint32_t control_stack_offset, control_stack_size;
	uint32_t wave_state_offset, wave_state_size;
	uint32_t debug_offset, debug_size;
	uint64_t error_payload;
	uint32_t error_event, reserved;
};

struct kfd_dbg_args {
	uint32_t pid, op; /* KFD_DBG_ */
	union {
		struct {
			uint64_t exceptions, info;
			uint32_t info_size, fd;
		} enable;
		struct {
			uint64_t exceptions;
			uint32_t gpu_id, queue_id;
		} event; /* sent to the runtime, or out: raised */
		struct {
			uint32_t mode, mask, request, pad; /* mask: KFD_DBG_MASK_; out: what it was */
		} override;
		struct {
			uint64_t exceptions, ids;
			uint32_t n, grace;
		} suspend;
		struct {
			uint64_t ids;
			uint32_t n, pad;
		} resume;
		struct {
			uint64_t exceptions, buffer;
			uint32_t n, entry_size;
		} snapshot;
		uint64_t largest[3];
	};
};

#define KFD_IOC_RUNTIME_ENABLE KFD_IOC(KFD_RW, 0x25, struct kfd_runtime_args)
#define KFD_IOC_DBG_TRAP KFD_IOC(KFD_RW, 0x26, struct kfd_dbg_args)

/* kfd_runtime_args.mode; 0 ends it */
#define KFD_RUNTIME_ENABLE 1u
#define KFD_RUNTIME_TTMP 2u

/* kfd_runtime_info.state */
#define KFD_RUNTIME_STATE_DISABLED 0
#define KFD_RUNTIME_STATE_ENABLED 1

/* kfd_dbg_args.op */
#define KFD_DBG_ENABLE 0
#define KFD_DBG_DISABLE 1
#define KFD_DBG_SEND_RUNTIME_EVENT 2
#define KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE 4
#define KFD_DBG_SUSPEND_QUEUES 6
#define KFD_DBG_RESUME_QUEUES 7
#define KFD_DBG_QUERY_DEBUG_EVENT 11
#define KFD_DBG_GET_QUEUE_SNAPSHOT 13

/* Exceptions: bits of the masks. */
#define KFD_EC_QUEUE_NEW (1ull << 30)
#define KFD_EC_DEVICE_QUEUE_DELETE (1ull << 31)
#define KFD_EC_PROCESS_RUNTIME (1ull << 47)

/* What SUSPEND_QUEUES and RESUME_QUEUES put into the ids they could do nothing with. */
#define KFD_DBG_ID_ERROR (1u << 30)
#define KFD_DBG_MASK_FP_INVALID (1u << 0)
#define KFD_DBG_MASK_FP_DIVIDE_BY_ZERO (1u << 2)
#define KFD_DBG_ID_INVALID (1u << 31)
#define KFD_DBG_DEFAULT_GRACE 0xffffffffu
#define KFD_DBG_MOST_IDS 1024

/* Events */

struct kfd_create_event_args {
	uint64_t page;         /* in: the handle of the event page, with the first event */
	uint32_t trigger_data; /* out */
	uint32_t type, auto_reset, node_id;
	uint32_t event_id, slot; /* out */
};

struct kfd_event_args { /* of destroy, set and reset */
	uint32_t event_id, pad;
};

struct kfd_memory_exception {
	uint32_t not_present, read_only, no_execute, imprecise;
	uint64_t va;
	uint32_t gpu_id, error_type;
};

struct kfd_hw_exception {
	uint32_t reset_type, reset_cause, memory_lost, gpu_id;
};

struct kfd_event_data {
	union {
		struct kfd_memory_exception memory;
		struct kfd_hw_exception hw;
		uint64_t last_age;
	};
	uint64_t more;
	uint32_t event_id, pad;
};

struct kfd_wait_events_args {
	uint64_t events;
	uint32_t n, all, timeout_ms;
	uint32_t result; /* out: KFD_WAIT_ */
};

#define KFD_IOC_CREATE_EVENT KFD_IOC(KFD_RW, 0x08, struct kfd_create_event_args)
#define KFD_IOC_DESTROY_EVENT KFD_IOC(_IOC_WRITE, 0x09, struct kfd_event_args)
#define KFD_IOC_SET_EVENT KFD_IOC(_IOC_WRITE, 0x0a, struct kfd_event_args)
#define KFD_IOC_RESET_EVENT KFD_IOC(_IOC_WRITE, 0x0b, struct kfd_event_args)
#define KFD_IOC_WAIT_EVENTS KFD_IOC(KFD_RW, 0x0c, struct kfd_wait_events_args)

#define KFD_EVENT_SIGNAL 0
#define KFD_EVENT_HW_EXCEPTION 3
#define KFD_EVENT_MEMORY 8
#define KFD_EVENT_PAGE_SIZE (4096 * 8)

#define KFD_WAIT_COMPLETE 0
#define KFD_WAIT_TIMEOUT 1
#define KFD_WAIT_FAIL 2

struct kfd_set_cu_mask_args {
	uint32_t queue_id, nbits; /* a multiple of 32 */
	uint64_t mask;
};

#define KFD_IOC_SET_CU_MASK KFD_IOC(_IOC_WRITE, 0x1a, struct kfd_set_cu_mask_args)

struct kfd_criu_args {
	uint64_t devices, bos, priv_data, priv_data_size;
	uint32_t num_devices, num_bos, num_objects, pid, op;
};

#define KFD_IOC_CRIU KFD_IOC(KFD_RW, 0x22, struct kfd_criu_args)
#define KFD_CRIU_PROCESS_INFO 0
#define KFD_CRIU_UNPAUSE 2

/*
 * A private kernel's own pair: the numbers are its author's.  A vendor's driver may mean something else by
 * them, so they are never tried unless somebody names this way.
 */
struct kfd_private_preempt_args {
	uint32_t queue_id, type, timeout_ms, pad;
};

struct kfd_private_resume_args {
	uint32_t queue_id, pad[3];
};

#define KFD_IOC_PRIVATE_PREEMPT KFD_IOC(KFD_RW, 0x87, struct kfd_private_preempt_args)
#define KFD_IOC_PRIVATE_RESUME KFD_IOC(KFD_RW, 0x88, struct kfd_private_resume_args)
#define KFD_PRIVATE_DRAIN 0
#define KFD_PRIVATE_RESET 1
#define KFD_PRIVATE_SAVE 2

#endif
