// SPDX-License-Identifier: GPL-2.0
/*
 * Memory.  GPU addresses of the driver's memory are no CPU addresses, with a guard
 * page between any two: a mix-up fails instead of working by accident.
 */
#include "softgpu.h"

#define SG_GART_BASE 0x7f0000000000ULL
#define SG_MMAP_BASE 0x100000000ULL
#define SG_MOST_BYTES (1ULL << 40) /* of a buffer: sums of sizes stay far from overflowing */

/* amdkfd reserves a buffer by its dma_resv, through TTM's inline functions. */
void sg_bo_init(struct sg_bo *bo, struct softgpu *sg)
{
	bo->sg = sg;
	refcount_set(&bo->refs, 1);
	INIT_LIST_HEAD(&bo->node);
	bo->bo.tbo.bdev = &sg->adev.mman.bdev;
	bo->bo.tbo.base.size = bo->size;
	dma_resv_init(&bo->bo.tbo.base._resv);
	bo->bo.tbo.base.resv = &bo->bo.tbo.base._resv;
}

/* How much there is */

static atomic64_t sg_system_used = ATOMIC64_INIT(0);
static atomic64_t sg_host_used = ATOMIC64_INIT(0); /* VRAM is the host's memory, too */

static u64 sg_host_memory(void)
{
	struct sysinfo host;

	si_meminfo(&host);
	return (u64)host.totalram * host.mem_unit;
}

u64 sg_system_memory_used(void)
{
	return atomic64_read(&sg_system_used);
}

/* What amdgpu allows on a host of less than 12 GiB: amdgpu_amdkfd_gpuvm_init_mem_limits(), 6.12. */
u64 sg_system_memory_limit(void)
{
	u64 host = sg_host_memory();

	return (host - (host >> 6)) / 2;
}

static bool sg_take(atomic64_t *used, u64 size, u64 limit)
{
	if (atomic64_add_return(size, used) <= limit)
		return true;
	atomic64_sub(size, used);
	return false;
}

static atomic64_t *sg_counter(struct sg_bo *bo)
{
	return bo->is_vram ? &bo->sg->vram_used : &sg_system_used;
}

static int sg_charge_memory(struct sg_bo *bo)
{
	u64 limit = bo->is_vram ? bo->sg->adev.gmc.real_vram_size : sg_system_memory_limit();

	if (!sg_take(&sg_host_used, bo->size, sg_host_memory() / 4 * 3))
		return -ENOMEM;
	if (sg_take(sg_counter(bo), bo->size, limit))
		return 0;
	atomic64_sub(bo->size, &sg_host_used);
	return -ENOMEM;
}

static void sg_discharge_memory(struct sg_bo *bo)
{
	atomic64_sub(bo->size, sg_counter(bo));
	atomic64_sub(bo->size, &sg_host_used);
}

static void sg_bo_free(struct sg_bo *bo)
{
	if (bo->owner && !bo->is_doorbell)
		sg_discharge_memory(bo);
	if (bo->pages) {
		vunmap(bo->cpu);
		unpin_user_pages(bo->pages, bo->npages);
		kvfree(bo->pages);
	} else if (!bo->is_doorbell) {
		vfree(bo->cpu);
	}
	dma_resv_fini(&bo->bo.tbo.base._resv);
	kfree(bo);
}

void sg_bo_put(struct sg_bo *bo)
{
	if (refcount_dec_and_test(&bo->refs))
		sg_bo_free(bo);
}

struct amdgpu_bo *amdgpu_bo_ref(struct amdgpu_bo *bo)
{
	if (bo)
		refcount_inc(&container_of(bo, struct sg_bo, bo)->refs);
	return bo;
}

void amdgpu_bo_unref(struct amdgpu_bo **bo)
{
	if (*bo)
		sg_bo_put(container_of(*bo, struct sg_bo, bo));
	*bo = NULL;
}

u64 amdgpu_bo_gpu_offset(struct amdgpu_bo *bo)
{
	return container_of(bo, struct sg_bo, bo)->gpu_addr;
}

/* The driver's memory */

int amdgpu_amdkfd_alloc_gtt_mem(struct amdgpu_device *adev, size_t size, void **mem_obj, uint64_t *gpu_addr,
				void **cpu_ptr, bool mqd_gfx9)
{
	struct softgpu *sg = to_softgpu(adev);
	struct sg_bo *bo = kzalloc(sizeof(*bo), GFP_KERNEL);

	if (!bo)
		return -ENOMEM;
	bo->size = PAGE_ALIGN(size);
	bo->cpu = vzalloc(bo->size);
	if (!bo->cpu) {
		kfree(bo);
		return -ENOMEM;
	}
	sg_bo_init(bo, sg);
	spin_lock(&sg->gart_lock);
	bo->gpu_addr = sg->gart_next;
	sg->gart_next += bo->size + PAGE_SIZE;
	list_add_tail(&bo->node, &sg->gart);
	spin_unlock(&sg->gart_lock);
	*mem_obj = bo;
	*gpu_addr = bo->gpu_addr;
	*cpu_ptr = bo->cpu;
	return 0;
}

void amdgpu_amdkfd_free_gtt_mem(struct amdgpu_device *adev, void **mem_obj)
{
	struct softgpu *sg = to_softgpu(adev);
	struct sg_bo *bo = *mem_obj;

	spin_lock(&sg->gart_lock);
	list_del(&bo->node);
	spin_unlock(&sg->gart_lock);
	sg_cp_memory_gone(sg, bo->cpu, bo->size);
	*mem_obj = NULL;
	sg_bo_put(bo);
}

void *sg_gart_to_cpu(struct softgpu *sg, u64 addr, size_t size)
{
	struct sg_bo *bo;
	void *cpu = NULL;

	spin_lock(&sg->gart_lock);
	list_for_each_entry(bo, &sg->gart, node)
	{
		if (addr >= bo->gpu_addr && addr - bo->gpu_addr + size <= bo->size) {
			cpu = bo->cpu + (addr - bo->gpu_addr);
			break;
		}
	}
	spin_unlock(&sg->gart_lock);
	if (!cpu)
		sg->stats.bad_addresses++;
	return cpu;
}

/* Doorbells: pages of RAM that stand for a BAR, and that the command processor looks at */

int amdgpu_bo_create_kernel(struct amdgpu_device *adev, unsigned long size, int align, u32 domain,
			    struct amdgpu_bo **bo_ptr, u64 *gpu_addr, void **cpu_addr)
{
	struct softgpu *sg = to_softgpu(adev);
	unsigned long n = DIV_ROUND_UP(size, PAGE_SIZE), page;
	struct sg_bo *bo;

	if (domain != AMDGPU_GEM_DOMAIN_DOORBELL)
		return -EINVAL;
	bo = kzalloc(sizeof(*bo), GFP_KERNEL);
	if (!bo)
		return -ENOMEM;
	mutex_lock(&sg->doorbell_lock);
	page = bitmap_find_next_zero_area(sg->doorbell_used, SG_DOORBELL_PAGES, 0, n,
					  roundup_pow_of_two(n) - 1);
	if (page < SG_DOORBELL_PAGES)
		bitmap_set(sg->doorbell_used, page, n);
	mutex_unlock(&sg->doorbell_lock);
	if (page >= SG_DOORBELL_PAGES) {
		kfree(bo);
		return -ENOSPC;
	}
	bo->is_doorbell = true;
	bo->doorbell_page = page;
	bo->size = n << PAGE_SHIFT;
	bo->cpu = sg->doorbells + (page << PAGE_SHIFT);
	memset(bo->cpu, 0, bo->size);
	sg_bo_init(bo, sg);
	*bo_ptr = &bo->bo;
	if (cpu_addr)
		*cpu_addr = bo->cpu;
	return 0;
}

void amdgpu_bo_free_kernel(struct amdgpu_bo **bo_ptr, u64 *gpu_addr, void **cpu_addr)
{
	struct sg_bo *bo;

	if (!*bo_ptr)
		return;
	bo = container_of(*bo_ptr, struct sg_bo, bo);
	mutex_lock(&bo->sg->doorbell_lock);
	bitmap_clear(bo->sg->doorbell_used, bo->doorbell_page, bo->size >> PAGE_SHIFT);
	mutex_unlock(&bo->sg->doorbell_lock);
	sg_bo_put(bo);
	*bo_ptr = NULL;
}

uint32_t amdgpu_doorbell_index_on_bar(struct amdgpu_device *adev, struct amdgpu_bo *db_bo, uint32_t index,
				      uint32_t db_size)
{
	u32 page = container_of(db_bo, struct sg_bo, bo)->doorbell_page;

	return page * (PAGE_SIZE / sizeof(u32)) + index * DIV_ROUND_UP(db_size, sizeof(u32));
}

/* The user's memory */

static int sg_pin_user(struct sg_bo *bo, u64 user_addr)
{
	int pinned;

	bo->npages = bo->size >> PAGE_SHIFT;
	bo->pages = kvcalloc(bo->npages, sizeof(*bo->pages), GFP_KERNEL);
	if (!bo->pages)
		return -ENOMEM;
	pinned = pin_user_pages_fast(user_addr, bo->npages, FOLL_WRITE | FOLL_LONGTERM, bo->pages);
	if (pinned == bo->npages)
		bo->cpu = vmap(bo->pages, bo->npages, VM_MAP, PAGE_KERNEL);
	if (bo->cpu)
		return 0;
	if (pinned > 0)
		unpin_user_pages(bo->pages, pinned);
	kvfree(bo->pages);
	bo->pages = NULL;
	return pinned < 0 ? pinned : -ENOMEM;
}

/* The pages of the process: amdkfd says where they are on the bus. */
static int sg_find_doorbells(struct sg_bo *bo, u64 bus_addr)
{
	u64 at = bus_addr - bo->sg->adev.doorbell.base, end = PAGE_SIZE << SG_DOORBELL_ORDER;

	if (at >= end || bo->size > end - at)
		return -EINVAL;
	bo->is_doorbell = true;
	bo->cpu = bo->sg->doorbells + at;
	return 0;
}

static int sg_fill_user(struct sg_bo *bo, u32 flags, u64 at)
{
	int r;

	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL)
		return sg_find_doorbells(bo, at);
	bo->is_vram = flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
	r = sg_charge_memory(bo);
	if (r)
		return r;
	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
		r = sg_pin_user(bo, at);
	else
		bo->cpu = vmalloc_user(bo->size);
	if (!r && bo->cpu)
		return 0;
	sg_discharge_memory(bo);
	return r ? r : -ENOMEM;
}

struct sg_bo *sg_bo_new_user(struct softgpu *sg, void *owner, u64 size, u32 flags, u64 at)
{
	struct sg_bo *bo;
	int r;

	if (!size || size > SG_MOST_BYTES)
		return ERR_PTR(-ENOMEM);
	bo = kzalloc(sizeof(*bo), GFP_KERNEL);
	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->sg = sg;
	bo->size = PAGE_ALIGN(size);
	bo->owner = owner;
	r = sg_fill_user(bo, flags, at);
	if (r) {
		kfree(bo);
		return ERR_PTR(r);
	}
	sg_bo_init(bo, sg);
	mutex_lock(&sg->bo_lock);
	bo->mmap_offset = sg->mmap_next;
	sg->mmap_next += bo->size;
	list_add(&bo->node, &sg->bos);
	mutex_unlock(&sg->bo_lock);
	return bo;
}

/* As DRM does it: a buffer may be mapped through the file it was allocated for, and no other. */
int sg_bo_mmap(struct softgpu *sg, void *owner, struct vm_area_struct *vma)
{
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	struct sg_bo *bo;
	int r = -EINVAL;

	mutex_lock(&sg->bo_lock);
	list_for_each_entry(bo, &sg->bos, node)
	{
		if (bo->mmap_offset == offset && !bo->is_doorbell && !bo->pages) {
			r = bo->owner == owner ? remap_vmalloc_range(vma, bo->cpu, 0) : -EACCES;
			break;
		}
	}
	mutex_unlock(&sg->bo_lock);
	return r;
}

int sg_memory_init(struct softgpu *sg)
{
	spin_lock_init(&sg->gart_lock);
	mutex_init(&sg->bo_lock);
	mutex_init(&sg->doorbell_lock);
	INIT_LIST_HEAD(&sg->gart);
	INIT_LIST_HEAD(&sg->bos);
	sg->gart_next = SG_GART_BASE;
	sg->mmap_next = SG_MMAP_BASE;
	sg->doorbell_pages = alloc_pages(GFP_KERNEL | __GFP_ZERO, SG_DOORBELL_ORDER);
	if (!sg->doorbell_pages)
		return -ENOMEM;
	sg->doorbells = page_address(sg->doorbell_pages);
	return 0;
}

void sg_memory_fini(struct softgpu *sg)
{
	WARN_ON(!list_empty(&sg->gart)); /* the driver left memory behind */
	WARN_ON(!list_empty(&sg->bos));
	__free_pages(sg->doorbell_pages, SG_DOORBELL_ORDER);
}
