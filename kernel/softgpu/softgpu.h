/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A GPU made of software, in amdgpu's place under the unmodified amdkfd.
 *
 * main.c     the PCI device: comes up, goes away
 * memory.c   GPU addresses of the driver's own memory, doorbells, buffer objects
 * vm.c       a process's GPU address space, and the render node it hangs on
 * cp.c       the command processor: HIQ, run list, hardware slots, time
 * cwsr.c     waves saved into the user's area, and restored from it
 * aql.c      user queues of AQL packets;  pm4.c: of PM4 packets;  sdma.c: SDMA queues
 * kgd.c      what amdkfd calls by its table of functions
 * stubs.c    the rest of amdgpu that amdkfd links against
 * debugfs.c  counters and faults
 *
 * How long work takes, who gets wave slots and what saving costs is src/model's.
 *
 * Locks, outermost first: the driver's own (process, event, dqm), sg->lock (the
 * command processor's state), vm->lock (a process's mappings), sg->gart_lock.
 */
#ifndef SOFTGPU_H
#define SOFTGPU_H

#include <linux/idr.h>
#include <linux/kref.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/vmalloc.h>
#include <linux/xarray.h>

#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "kfd_priv.h"
#include "kfd_pm4_headers_ai.h"
#include "kfd_pm4_headers_aldebaran.h"
#include "kfd_pm4_opcodes.h"
#include "soc15_int.h"
#include "v9_structs.h"
#include "gc/gc_9_0_offset.h"
#include "gc/gc_9_0_sh_mask.h"

#include "exec.h"
#include "uapi.h"

#define SG_SLOTS 32 /* of the first MEC: 4 pipes of 8 queues */
#define SG_SDMA_ENGINES 16
#define SG_SDMA_QUEUES 8 /* of one engine */
#define SG_SDMA_SLOTS (SG_SDMA_ENGINES * SG_SDMA_QUEUES)
#define SG_RUN_LIST 2048 /* queues in it */
#define SG_AQL_PACKET 64
#define SG_IB_DEPTH 2
/* What a queue may do in a step, whatever it asks for: others wait.  In bytes that SDMA moves. */
#define SG_STEP 0x100000u
#define SG_DOORBELL_ORDER 9
#define SG_DOORBELL_PAGES (1 << SG_DOORBELL_ORDER)

struct softgpu;

/* Memory that has a GPU address, or is mapped into GPU address spaces. */
struct sg_bo {
	struct amdgpu_bo bo; /* must be first: amdkfd's handle */
	struct softgpu *sg;
	struct list_head node; /* driver memory: sg->gart; user memory: sg->bos */
	refcount_t refs;
	void *cpu;
	size_t size;
	u64 gpu_addr;        /* driver memory */
	u64 mmap_offset;     /* user memory */
	struct page **pages; /* pinned user pages */
	unsigned long npages;
	void *owner;  /* user memory: the render node that may map it */
	bool is_vram; /* user memory: counted as such; else as the system's */
	u32 doorbell_page;
	bool is_doorbell;
};

/* A buffer at a place in a process's GPU address space. */
struct sg_mapping {
	struct list_head node;
	struct amdgpu_bo_va bo_va;
	struct amdgpu_bo_va_mapping range; /* pages */
	struct sg_bo *bo;
	struct kgd_mem *mem;
};

/* A process's GPU address space on one device: one open render node. */
struct sg_vm {
	struct amdgpu_fpriv fpriv; /* must be first: amdkfd's handle */
	struct kref refs;
	struct rw_semaphore lock;
	struct list_head mappings;
	struct sg_bo root;
	u32 cookie; /* what stands for its page directory */
	u32 pasid;
};

/* A queue, as the run list names it. */
struct sg_entry {
	u64 mqd_addr;
	u64 wptr_addr;    /* user's */
	struct sg_vm *vm; /* a reference */
	u32 pasid;
	u32 vmid;
	u32 doorbell; /* in dwords, on the BAR */
	u32 sdma_engine;
	bool is_sdma;
	bool is_static;
	bool is_mapped;
};

/* A hardware slot: what is mapped on it. */
struct sg_slot {
	struct gpm_ctx ctx; /* must be first */
	struct softgpu *sg;
	struct sg_entry *entry; /* NULL: free */
	struct v9_mqd *mqd;     /* of XCC 0 */
	struct v9_sdma_mqd *sdma;
	u64 rptr; /* AQL: packets; PM4: dwords; SDMA: bytes */
	u64 wptr;
	u64 started_ns;
	u64 packet[SG_AQL_PACKET / 8]; /* AQL: the dispatch that runs, as it was taken */
	u64 charged_wave_ns;           /* how much of its work is in sg->wave_ns */
	u32 step_left;                 /* of SG_STEP: how much this step may still do */
	u32 done;                      /* SDMA: bytes of the packet that is under way */
	u32 ib_at[SG_IB_DEPTH];        /* PM4: dwords done of the indirect buffers that are under way */
	bool has_ended;                /* PM4: the dispatch at the read pointer */
	bool is_aql;
	bool is_retired; /* the packet's place in the ring is the writer's again, though it runs */
	bool halted;     /* a packet it could not read, waves that did not come back: nothing more happens */
};

/* One line of the file "stats" each: uapi.h says what they count. */
#define SG_STATS(X) \
	X(runlist) \
	X(map_process) \
	X(map_queues) \
	X(unmap) X(query_status) X(set_resources) X(write_data) X(cycles) X(saves) X(restores) \
		X(waves_saved) X(waves_restored) X(bytes_saved) X(quanta) X(dispatches) X(barriers) \
			X(signals) X(interrupts) X(pm4_packets) X(sdma_packets) X(sdma_bytes) X(busy_ns) \
				X(off_ns) X(resets) X(bad_restores) X(bad_addresses)

struct sg_stats {
#define SG_STAT(name) u64 name;
	SG_STATS(SG_STAT)
#undef SG_STAT
};

struct sg_faults {
	bool no_preempt;
	bool hung_hiq;
	u64 slow_save_ns;
	u32 lost_irqs;
	bool early_rptr;
};

struct softgpu {
	struct amdgpu_device adev; /* must be first: amdkfd's handle */
	int index;
	u32 xccs;
	struct gpm_device model;

	spinlock_t gart_lock;
	struct list_head gart;
	u64 gart_next;
	struct mutex bo_lock;
	struct list_head bos;
	u64 mmap_next;
	struct page *doorbell_pages;
	void *doorbells;
	struct mutex doorbell_lock;
	DECLARE_BITMAP(doorbell_used, SG_DOORBELL_PAGES);
	atomic64_t vram_used;

	spinlock_t clock_lock; /* of these two */
	u64 now_ns;
	u64 stood_still_ns; /* in all, with the machine */

	struct mutex lock; /* everything below */
	struct task_struct *thread;
	struct gpm_exec exec;
	struct v9_mqd *hiq;
	u64 hiq_rptr;
	u64 queue_mask;
	u32 process_cnt;
	u32 iq_wait_time;
	u64 ready_ns; /* the HIQ's next packet waits until then: a save takes time */
	u64 quantum_ns;
	struct sg_entry *run_list;
	struct sg_entry *spare_list; /* where the next one is read into, while slots point into this one */
	u32 nentries;
	u32 next_entry; /* where the next turn begins */
	struct sg_slot slots[SG_SLOTS];
	struct sg_slot sdma[SG_SDMA_SLOTS];
	struct sg_stats stats;
	struct sg_faults faults;
	u64 busy_since_ns;
	u64 off_since_ns;      /* 0: no run list is awaited */
	struct xarray wave_ns; /* of each process that was ever mapped, by PASID */
	struct dentry *debugfs;
};

static inline struct softgpu *to_softgpu(struct amdgpu_device *adev)
{
	return container_of(adev, struct softgpu, adev);
}

static inline u64 sg_u64(u32 lo, u32 hi)
{
	return (u64)hi << 32 | lo;
}

extern int drain_fix;

/* memory.c */
void sg_bo_init(struct sg_bo *bo, struct softgpu *sg);
void *sg_gart_to_cpu(struct softgpu *sg, u64 addr, size_t size); /* NULL: nothing is there */
void sg_bo_put(struct sg_bo *bo);
/* at: the user's address of a user's pages, the bus address of doorbells. */
struct sg_bo *sg_bo_new_user(struct softgpu *sg, void *owner, u64 size, u32 flags, u64 at);
u64 sg_system_memory_used(void);
u64 sg_system_memory_limit(void);
int sg_bo_mmap(struct softgpu *sg, void *owner, struct vm_area_struct *vma);
int sg_memory_init(struct softgpu *sg);
void sg_memory_fini(struct softgpu *sg);

/* vm.c; callers of sg_vm_to_cpu() hold vm->lock */
extern const struct drm_driver sg_drm_driver;
void *sg_vm_to_cpu(struct softgpu *sg, struct sg_vm *vm, u64 addr, size_t size);
u64 sg_vm_first_hole(struct sg_vm *vm, u64 addr); /* where nothing is mapped, from there on */
struct sg_vm *sg_vm_get_by_cookie(u32 cookie);    /* with a reference, or NULL */
void sg_vm_put(struct sg_vm *vm);

/* Memory of the slot's process. */
static inline void *sg_at(struct sg_slot *slot, u64 addr, size_t size)
{
	return sg_vm_to_cpu(slot->sg, slot->entry->vm, addr, size);
}

/* cp.c */
u64 sg_now(struct softgpu *sg);
u64 sg_told(struct softgpu *sg, u64 at);
int sg_cp_start(struct softgpu *sg);
void sg_cp_stop(struct softgpu *sg);
int sg_hiq_load(struct softgpu *sg, struct v9_mqd *mqd);
u64 sg_hiq_unread(struct softgpu *sg); /* dwords; the caller holds sg->lock */
void sg_hiq_unload(struct softgpu *sg);
void sg_cp_reset(struct softgpu *sg);
void sg_cp_memory_gone(struct softgpu *sg, const void *start, size_t size);
void sg_interrupt(struct sg_slot *slot, u32 client, u32 source, u32 context);
void sg_page_fault(struct sg_slot *slot, u64 addr);
void *sg_reach(struct sg_slot *slot, u64 addr,
	       size_t size);                         /* sg_at(), with a page fault if nothing is there */
bool sg_compare(u32 func, u32 value, u32 reference); /* as packets that wait for memory do */
void sg_packets_at(struct sg_slot *slot, u64 now);
void sg_charge(struct sg_slot *slot, u64 now);      /* its process has had what it did up to now */
void sg_charge_anew(struct softgpu *sg, u32 pasid); /* a process begins: the PASID may have been another's */

/* cwsr.c */
struct v9_mqd *sg_xcc_mqd(struct sg_slot *slot, u32 xcc);
u64 sg_save(struct sg_slot *slot, u64 now);
void sg_restore(struct sg_slot *slot, u64 now);

/* aql.c, pm4.c, sdma.c: take what packets there are, as of now */
void sg_aql_step(struct sg_slot *slot, u64 now);
void sg_aql_kernel_ended(struct sg_slot *slot, u64 now);
int sg_aql_dispatch(struct sg_slot *slot, struct gpm_dispatch *ret); /* of the packet taken */
int sg_aql_start(struct sg_slot *slot, u64 now);                     /* its waves; -EINVAL: no dispatch */
/* Takes a packet that nobody wrote: so many workgroups of so many work-items. */
int sg_aql_make(struct sg_slot *slot, const u32 groups[3], const u32 items[3], u64 wave_ns);
void sg_pm4_kernel_ended(struct sg_slot *slot, u64 now);
void sg_pm4_step(struct sg_slot *slot, u64 now);
void sg_sdma_step(struct sg_slot *slot, u64 now);

/* stubs.c */
void sg_pm_lock_before_dqm_lock(struct device_queue_manager *dqm);

/* debugfs.c */
void sg_debugfs_add(struct softgpu *sg);
void sg_debugfs_remove(struct softgpu *sg);
void sg_debugfs_exit(void);

#endif
