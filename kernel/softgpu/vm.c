// SPDX-License-Identifier: GPL-2.0
/* A process's GPU address space. It hangs on an open render node, as amdgpu's does. */
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_ioctl.h>

#include "softgpu.h"

static DEFINE_IDR(sg_vms);
static DEFINE_SPINLOCK(sg_vms_lock);

static struct sg_vm *to_sg_vm(struct amdgpu_vm *vm)
{
	return container_of(vm, struct sg_vm, fpriv.vm);
}

static void sg_vm_free(struct kref *refs)
{
	struct sg_vm *vm = container_of(refs, struct sg_vm, refs);

	dma_resv_fini(&vm->root.bo.tbo.base._resv);
	kfree(vm);
}

void sg_vm_put(struct sg_vm *vm)
{
	kref_put(&vm->refs, sg_vm_free);
}

struct sg_vm *sg_vm_get_by_cookie(u32 cookie)
{
	struct sg_vm *vm;

	spin_lock(&sg_vms_lock);
	vm = idr_find(&sg_vms, cookie);
	if (vm)
		kref_get(&vm->refs);
	spin_unlock(&sg_vms_lock);
	return vm;
}

static int sg_vm_name(struct sg_vm *vm)
{
	int cookie;

	idr_preload(GFP_KERNEL);
	spin_lock(&sg_vms_lock);
	cookie = idr_alloc(&sg_vms, vm, 1, 0x100000, GFP_NOWAIT);
	spin_unlock(&sg_vms_lock);
	idr_preload_end();
	if (cookie < 0)
		return cookie;
	vm->cookie = cookie;
	return 0;
}

static int sg_open(struct drm_device *ddev, struct drm_file *file)
{
	struct softgpu *sg = to_softgpu(drm_to_adev(ddev));
	struct sg_vm *vm = kzalloc(sizeof(*vm), GFP_KERNEL);
	int r;

	if (!vm)
		return -ENOMEM;
	kref_init(&vm->refs);
	init_rwsem(&vm->lock);
	INIT_LIST_HEAD(&vm->mappings);
	vm->root.size = PAGE_SIZE;
	sg_bo_init(&vm->root, sg);
	vm->fpriv.vm.root.bo = &vm->root.bo;
	r = sg_vm_name(vm);
	if (r) {
		sg_vm_put(vm);
		return r;
	}
	file->driver_priv = &vm->fpriv;
	return 0;
}

static void sg_postclose(struct drm_device *ddev, struct drm_file *file)
{
	struct sg_vm *vm = container_of(file->driver_priv, struct sg_vm, fpriv);
	struct sg_mapping *m, *next;

	spin_lock(&sg_vms_lock);
	idr_remove(&sg_vms, vm->cookie);
	spin_unlock(&sg_vms_lock);
	down_write(&vm->lock);
	list_for_each_entry_safe(m, next, &vm->mappings, node)
	{
		list_del(&m->node);
		kfree(m);
	}
	up_write(&vm->lock);
	amdgpu_amdkfd_gpuvm_destroy_cb(drm_to_adev(ddev), &vm->fpriv.vm);
	sg_vm_put(vm);
}

static int sg_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct drm_file *file = filp->private_data;

	return sg_bo_mmap(to_softgpu(drm_to_adev(file->minor->dev)), file, vma);
}

static const struct file_operations sg_fops = {
	.owner = THIS_MODULE,
	.open = drm_open,
	.release = drm_release,
	.unlocked_ioctl = drm_ioctl,
	.poll = drm_poll,
	.read = drm_read,
	.llseek = noop_llseek,
	.mmap = sg_mmap,
	.fop_flags = FOP_UNSIGNED_OFFSET,
};

const struct drm_driver sg_drm_driver = {
	.driver_features = DRIVER_RENDER,
	.open = sg_open,
	.postclose = sg_postclose,
	.fops = &sg_fops,
	.name = "amdgpu",
	.desc = "a GPU made of software",
	.date = "20260101",
	.major = 3,
	.minor = 59,
};

int amdgpu_file_to_fpriv(struct file *filp, struct amdgpu_fpriv **fpriv)
{
	struct drm_file *file;

	if (filp->f_op != &sg_fops)
		return -EINVAL;
	file = filp->private_data;
	*fpriv = file->driver_priv;
	return 0;
}

static struct sg_mapping *sg_vm_find(struct sg_vm *vm, u64 page)
{
	struct sg_mapping *m;

	list_for_each_entry(m, &vm->mappings,
			    node) if (page >= m->range.start && page <= m->range.last) return m;
	return NULL;
}

void *sg_vm_to_cpu(struct softgpu *sg, struct sg_vm *vm, u64 addr, size_t size)
{
	struct sg_mapping *m = vm ? sg_vm_find(vm, addr >> PAGE_SHIFT) : NULL;
	u64 offset;

	lockdep_assert_held(&vm->lock);
	if (m) {
		offset = addr - (m->range.start << PAGE_SHIFT);
		if (offset + size <= m->bo->size)
			return m->bo->cpu + offset;
	}
	sg->stats.bad_addresses++;
	return NULL;
}

u64 sg_vm_first_hole(struct sg_vm *vm, u64 addr)
{
	struct sg_mapping *m;

	while ((m = sg_vm_find(vm, addr >> PAGE_SHIFT)))
		addr = (m->range.last + 1) << PAGE_SHIFT;
	return addr;
}

/* What amdkfd asks of a process's address space */

/* One for a process, however many devices it uses; it goes with the last address space. */
struct sg_process {
	refcount_t vms;
};

int amdgpu_amdkfd_gpuvm_acquire_process_vm(struct amdgpu_device *adev, struct amdgpu_vm *avm,
					   void **process_info, struct dma_fence **ef)
{
	struct sg_process *p = *process_info;

	if (avm->process_info)
		return -EINVAL;
	if (p) {
		refcount_inc(&p->vms);
	} else {
		p = kzalloc(sizeof(*p), GFP_KERNEL);
		if (!p)
			return -ENOMEM;
		refcount_set(&p->vms, 1);
		*process_info = p;
		if (ef)
			*ef = dma_fence_get_stub();
	}
	avm->process_info = (void *)p;
	return 0;
}

void amdgpu_amdkfd_gpuvm_destroy_cb(struct amdgpu_device *adev, struct amdgpu_vm *avm)
{
	struct sg_process *p = (void *)avm->process_info;

	avm->process_info = NULL;
	if (p && refcount_dec_and_test(&p->vms))
		kfree(p);
}

void amdgpu_amdkfd_gpuvm_release_process_vm(struct amdgpu_device *adev, void *drm_priv)
{
	to_sg_vm(drm_priv_to_vm(drm_priv))->pasid = 0;
}

int amdgpu_amdkfd_gpuvm_set_vm_pasid(struct amdgpu_device *adev, struct amdgpu_vm *avm, u32 pasid)
{
	to_sg_vm(avm)->pasid = pasid;
	sg_charge_anew(to_softgpu(adev), pasid);
	return 0;
}

uint64_t amdgpu_amdkfd_gpuvm_get_process_page_dir(void *drm_priv)
{
	return (u64)to_sg_vm(drm_priv_to_vm(drm_priv))->cookie << 12 | AMDGPU_PTE_VALID;
}

int amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu(struct amdgpu_device *adev, uint64_t va, uint64_t size,
					    void *drm_priv, struct kgd_mem **mem, uint64_t *offset,
					    uint32_t flags, bool criu_resume)
{
	bool userptr = flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR;
	struct kgd_mem *m = kzalloc(sizeof(*m), GFP_KERNEL);
	struct sg_bo *bo;

	if (!m)
		return -ENOMEM;
	bo = sg_bo_new_user(to_softgpu(adev), drm_priv, size, flags, offset ? *offset : 0);
	if (IS_ERR(bo)) {
		kfree(m);
		return PTR_ERR(bo);
	}
	mutex_init(&m->lock);
	INIT_LIST_HEAD(&m->attachments);
	m->bo = &bo->bo;
	m->va = va;
	m->alloc_flags = flags;
	m->domain = flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM ? AMDGPU_GEM_DOMAIN_VRAM : AMDGPU_GEM_DOMAIN_GTT;
	if (offset && !userptr)
		*offset = bo->mmap_offset;
	*mem = m;
	return 0;
}

int amdgpu_amdkfd_gpuvm_free_memory_of_gpu(struct amdgpu_device *adev, struct kgd_mem *mem, void *drm_priv,
					   uint64_t *size)
{
	struct sg_bo *bo = container_of(mem->bo, struct sg_bo, bo);

	if (mem->mapped_to_gpu_memory)
		return -EBUSY;
	mutex_lock(&bo->sg->bo_lock);
	list_del_init(&bo->node);
	mutex_unlock(&bo->sg->bo_lock);
	if (size)
		*size = mem->domain == AMDGPU_GEM_DOMAIN_VRAM ? bo->size : 0;
	sg_bo_put(bo);
	kfree(mem);
	return 0;
}

/* 1: it is mapped already, which is well; -EINVAL: something else is there. */
static int sg_vm_add(struct sg_vm *vm, struct sg_mapping *wanted)
{
	struct sg_mapping *m;

	list_for_each_entry(m, &vm->mappings, node)
	{
		if (m->mem == wanted->mem)
			return 1;
		if (m->range.start <= wanted->range.last && wanted->range.start <= m->range.last)
			return -EINVAL;
	}
	list_add(&wanted->node, &vm->mappings);
	wanted->mem->mapped_to_gpu_memory++;
	return 0;
}

int amdgpu_amdkfd_gpuvm_map_memory_to_gpu(struct amdgpu_device *adev, struct kgd_mem *mem, void *drm_priv)
{
	struct sg_vm *vm = to_sg_vm(drm_priv_to_vm(drm_priv));
	struct sg_mapping *m = kzalloc(sizeof(*m), GFP_KERNEL);
	int r;

	if (!m)
		return -ENOMEM;
	m->bo = container_of(mem->bo, struct sg_bo, bo);
	m->mem = mem;
	m->bo_va.base.bo = mem->bo;
	m->range.bo_va = &m->bo_va;
	m->range.start = mem->va >> PAGE_SHIFT;
	m->range.last = (mem->va + m->bo->size - 1) >> PAGE_SHIFT;
	down_write(&vm->lock);
	r = sg_vm_add(vm, m);
	up_write(&vm->lock);
	if (r)
		kfree(m);
	return min(r, 0);
}

int amdgpu_amdkfd_gpuvm_unmap_memory_from_gpu(struct amdgpu_device *adev, struct kgd_mem *mem, void *drm_priv)
{
	struct sg_vm *vm = to_sg_vm(drm_priv_to_vm(drm_priv));
	struct sg_mapping *m, *next;
	int r = -EINVAL; /* it is not mapped */

	down_write(&vm->lock);
	list_for_each_entry_safe(m, next, &vm->mappings, node)
	{
		if (m->mem != mem)
			continue;
		if (m->bo_va.queue_refcount) {
			r = -EBUSY; /* a queue stands on it */
			continue;
		}
		list_del(&m->node);
		kfree(m);
		mem->mapped_to_gpu_memory--;
		r = 0;
	}
	up_write(&vm->lock);
	return r;
}

/* Both are called with the address space's root reserved: nobody maps or unmaps meanwhile. */
struct amdgpu_bo_va_mapping *amdgpu_vm_bo_lookup_mapping(struct amdgpu_vm *avm, uint64_t page)
{
	struct sg_vm *vm = to_sg_vm(avm);
	struct sg_mapping *m;

	down_read(&vm->lock);
	m = sg_vm_find(vm, page);
	up_read(&vm->lock);
	return m ? &m->range : NULL;
}

struct amdgpu_bo_va *amdgpu_vm_bo_find(struct amdgpu_vm *avm, struct amdgpu_bo *bo)
{
	struct sg_vm *vm = to_sg_vm(avm);
	struct amdgpu_bo_va *found = NULL;
	struct sg_mapping *m;

	down_read(&vm->lock);
	list_for_each_entry(m, &vm->mappings, node) if (&m->bo->bo == bo) found = &m->bo_va;
	up_read(&vm->lock);
	return found;
}

int amdgpu_amdkfd_gpuvm_map_gtt_bo_to_kernel(struct kgd_mem *mem, void **kptr, uint64_t *size)
{
	struct sg_bo *bo = container_of(mem->bo, struct sg_bo, bo);

	*kptr = bo->cpu;
	if (size)
		*size = bo->size;
	return 0;
}
