// SPDX-License-Identifier: GPL-2.0
/*
 * The device: QEMU's pci-testdev, which does nothing, is what it hangs on.  The module is
 * named amdgpu, because user space looks for that name.
 */
#include <drm/drm_drv.h>

#include "amdgpu_reset.h"
#include "softgpu.h"

#define SG_MAX_XCCS 8
#define SG_MAX_CUS 38 /* of an XCC of an MI300X: 10 + 10 + 9 + 9 in its four shader engines */
#define SG_MOST_VRAM_MB (1 << 20)

static unsigned int xccs = 1;
module_param(xccs, uint, 0444);
MODULE_PARM_DESC(xccs, "XCCs of each device, 1 to 8");

static unsigned int cus = SG_MAX_CUS;
module_param(cus, uint, 0444);
MODULE_PARM_DESC(cus, "compute units of each XCC, 4 to 38: save areas grow with them");

static unsigned int vram_mb = 2048;
module_param(vram_mb, uint, 0444);
MODULE_PARM_DESC(vram_mb, "memory of each device; what is used of it is the host's");

static char *gfx = "gfx942";
module_param(gfx, charp, 0444);
MODULE_PARM_DESC(gfx, "gfx942 (MI300) or gfx90a (MI200)");

/* share/devices/mi300x.ini says where the numbers come from. */
static const struct gpm_device sg_model = {
	.sharing = GPM_CONCURRENT,
	.waves_per_cu = 32,
	.queue_slots = 24,
	.save_bytes_per_wave = 19078,
	.save_bytes_per_us = 5300000,
	.save_fixed_ns = 10000,
	.restore_fixed_ns = 10000,
	.unmap_ns = 15000,
	.quantum_ns = 10000000,
};

static enum amdgpu_pkg_type sg_get_pkg_type(struct amdgpu_device *adev)
{
	return AMDGPU_PKG_TYPE_OAM;
}

static enum amdgpu_memory_partition sg_get_partition(struct amdgpu_device *adev)
{
	return AMDGPU_NPS1_PARTITION_MODE;
}

static const struct amdgpu_gmc_funcs sg_gmc_funcs = { .query_mem_partition_mode = sg_get_partition };
static const struct amdgpu_smuio_funcs sg_smuio_funcs = { .get_pkg_type = sg_get_pkg_type };

static bool sg_is_gfx90a(void)
{
	return !strcmp(gfx, "gfx90a");
}

static void sg_describe_chip(struct softgpu *sg)
{
	struct amdgpu_device *adev = &sg->adev;
	u32 i, j;

	adev->asic_type = CHIP_IP_DISCOVERY;
	adev->rev_id = 1;
	adev->ip_versions[GC_HWIP][0] = sg_is_gfx90a() ? IP_VERSION(9, 4, 2) : IP_VERSION(9, 4, 3);
	adev->ip_versions[SDMA0_HWIP][0] = sg_is_gfx90a() ? IP_VERSION(4, 4, 0) : IP_VERSION(4, 4, 2);
	adev->gfx.xcc_mask = (1 << sg->xccs) - 1;
	adev->gfx.num_xcc_per_xcp = sg->xccs;
	adev->sdma.num_instances = 2 * sg->xccs;
	for (i = 0; i < sg->xccs; i++)
		adev->ip_map.dev_inst[GC_HWIP][i] = i;
	adev->gfx.cu_info.number = cus * sg->xccs;
	for (i = 0; i < sg->xccs; i++)
		for (j = 0; j < 4; j++)
			adev->gfx.cu_info.bitmap[i][j][0] = (1 << (cus / 4 + (j < cus % 4))) - 1;
	for (i = 0; i < ARRAY_SIZE(adev->doorbell_index.sdma_engine); i++)
		adev->doorbell_index.sdma_engine[i] = 0x100 + i * 10;
}

static void sg_describe_gfx(struct amdgpu_device *adev)
{
	adev->gfx.config.max_shader_engines = 4;
	adev->gfx.config.max_sh_per_se = 1;
	adev->gfx.config.max_cu_per_sh = 10;
	adev->gfx.config.gc_tcp_size_per_cu = 32;
	adev->gfx.config.gc_num_cu_per_sqc = 2;
	adev->gfx.config.gc_l1_instruction_cache_size_per_sqc = 64;
	adev->gfx.config.gc_l1_data_cache_size_per_sqc = 16;
	adev->gfx.config.gc_tcc_size = 4096;
	adev->gfx.cu_info.simd_per_cu = 4;
	adev->gfx.cu_info.max_waves_per_simd = 8;
	adev->gfx.cu_info.wave_front_size = 64;
	adev->gfx.cu_info.max_scratch_slots_per_cu = 32;
	adev->gfx.cu_info.lds_size = 64;
}

static void sg_describe_memory(struct softgpu *sg)
{
	struct amdgpu_device *adev = &sg->adev;

	adev->smuio.funcs = &sg_smuio_funcs;
	adev->gmc.gmc_funcs = &sg_gmc_funcs;
	adev->gmc.real_vram_size = (u64)vram_mb << 20;
	adev->gmc.visible_vram_size = adev->gmc.real_vram_size;
	adev->gmc.aper_size = adev->gmc.real_vram_size;
	adev->gmc.noretry = 1;
	adev->gds.gws_size = 64;
	adev->vm_manager.first_kfd_vmid = 3;
	adev->vm_manager.max_pfn = 1ULL << 36;
	spin_lock_init(&adev->mman.bdev.lru_lock);
	adev->doorbell.base = page_to_phys(sg->doorbell_pages);
	adev->doorbell.size = PAGE_SIZE << SG_DOORBELL_ORDER;
}

/*
 * As amdgpu_device_gpu_recover() does it: amdkfd gives everything up, the GPU forgets, amdkfd starts anew.
 * With the semaphore held amdkfd sends no packet and waits for none: queues that hang do not hang the reset.
 */
static void sg_reset_work(struct work_struct *work)
{
	struct amdgpu_device *adev = container_of(work, struct amdgpu_device, kfd.reset_work);
	struct softgpu *sg = to_softgpu(adev);
	int r;

	down_write(&adev->reset_domain->sem);
	kgd2kfd_pre_reset(adev->kfd.dev, NULL);
	sg_cp_reset(sg);
	r = kgd2kfd_post_reset(adev->kfd.dev);
	up_write(&adev->reset_domain->sem);
	mutex_lock(&sg->lock);
	sg->stats.resets++;
	mutex_unlock(&sg->lock);
	dev_info(adev->dev, "reset done: %d\n", r);
}

void amdgpu_amdkfd_gpu_reset(struct amdgpu_device *adev)
{
	dev_warn(adev->dev, "amdkfd asks for a reset\n");
	queue_work(adev->reset_domain->wq, &adev->kfd.reset_work);
}

static int sg_reset_init(struct amdgpu_device *adev)
{
	adev->reset_domain = devm_kzalloc(adev->dev, sizeof(*adev->reset_domain), GFP_KERNEL);
	if (!adev->reset_domain)
		return -ENOMEM;
	init_rwsem(&adev->reset_domain->sem);
	INIT_WORK(&adev->kfd.reset_work, sg_reset_work);
	adev->reset_domain->wq = alloc_ordered_workqueue("softgpu-reset", 0);
	return adev->reset_domain->wq ? 0 : -ENOMEM;
}

static int sg_kfd_start(struct softgpu *sg)
{
	struct amdgpu_device *adev = &sg->adev;
	struct kgd2kfd_shared_resources res = {
		.compute_vmid_bitmap = 0xfff8, /* 3 to 15 */
		.num_pipe_per_mec = 4,
		.num_queue_per_pipe = 8,
		.gpuvm_size = 1ULL << 47,
		.drm_render_minor = adev->ddev.render->index,
		.sdma_doorbell_idx = adev->doorbell_index.sdma_engine,
		.non_cp_doorbells_start = 0x100,
		.non_cp_doorbells_end = 0x1ff,
		.doorbell_physical_address = adev->doorbell.base,
		.doorbell_aperture_size = adev->doorbell.size,
	};

	bitmap_set(res.cp_queue_bitmap, 8, 24); /* the first pipe is the driver's */
	adev->kfd.dev = kgd2kfd_probe(adev, false);
	if (!adev->kfd.dev)
		return -ENODEV;
	adev->kfd.init_complete = kgd2kfd_device_init(adev->kfd.dev, &res);
	if (!adev->kfd.init_complete)
		return -ENODEV;
	sg_pm_lock_before_dqm_lock(adev->kfd.dev->nodes[0]->dqm);
	return 0;
}

static void sg_kfd_stop(struct softgpu *sg)
{
	if (!sg->adev.kfd.dev)
		return;
	if (sg->adev.kfd.init_complete)
		kgd2kfd_suspend(sg->adev.kfd.dev, false);
	kgd2kfd_device_exit(sg->adev.kfd.dev);
}

static atomic_t sg_count = ATOMIC_INIT(0);

static struct softgpu *sg_new(struct pci_dev *pdev)
{
	struct softgpu *sg = devm_drm_dev_alloc(&pdev->dev, &sg_drm_driver, struct softgpu, adev.ddev);

	if (IS_ERR(sg))
		return sg;
	sg->index = atomic_inc_return(&sg_count) - 1;
	sg->xccs = xccs;
	sg->model = sg_model;
	sg->model.xccs = xccs;
	sg->model.cus_per_xcc = cus;
	sg->adev.dev = &pdev->dev;
	sg->adev.pdev = pdev;
	pci_set_drvdata(pdev, sg);
	return sg;
}

static int sg_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct softgpu *sg = sg_new(pdev);
	int r;

	if (IS_ERR(sg))
		return PTR_ERR(sg);
	r = sg_memory_init(sg);
	if (r)
		return r;
	sg_describe_chip(sg);
	sg_describe_gfx(&sg->adev);
	sg_describe_memory(sg);
	r = sg_reset_init(&sg->adev);
	if (r)
		goto free_memory;
	r = sg_cp_start(sg);
	if (r)
		goto stop_reset;
	r = drm_dev_register(&sg->adev.ddev, 0);
	if (r)
		goto stop_cp;
	r = sg_kfd_start(sg);
	if (r)
		goto stop_kfd;
	sg_debugfs_add(sg);
	dev_info(&pdev->dev, "software GPU %d: %s, %u XCCs\n", sg->index, gfx, sg->xccs);
	return 0;

stop_kfd:
	sg_kfd_stop(sg);
	drm_dev_unplug(&sg->adev.ddev);
stop_cp:
	sg_cp_stop(sg);
stop_reset:
	destroy_workqueue(sg->adev.reset_domain->wq);
free_memory:
	sg_memory_fini(sg);
	return r;
}

static void sg_remove(struct pci_dev *pdev)
{
	struct softgpu *sg = pci_get_drvdata(pdev);

	sg_debugfs_remove(sg);
	flush_workqueue(sg->adev.reset_domain->wq);
	sg_kfd_stop(sg);
	drm_dev_unplug(&sg->adev.ddev);
	sg_cp_stop(sg);
	destroy_workqueue(sg->adev.reset_domain->wq);
	sg_memory_fini(sg);
}

static const struct pci_device_id sg_ids[] = {
	{ PCI_DEVICE(0x1b36, 0x0005) }, /* QEMU pci-testdev */
	{},
};
MODULE_DEVICE_TABLE(pci, sg_ids);

static struct pci_driver sg_pci_driver = {
	.name = "amdgpu",
	.id_table = sg_ids,
	.probe = sg_probe,
	.remove = sg_remove,
};

static int __init sg_init(void)
{
	int r;

	if (!xccs || xccs > SG_MAX_XCCS || (sg_is_gfx90a() && xccs != 1)) {
		pr_err("amdgpu: xccs must be 1 to %d, and 1 for gfx90a\n", SG_MAX_XCCS);
		return -EINVAL;
	}
	if (cus < 4 || cus > SG_MAX_CUS) {
		pr_err("amdgpu: cus must be 4 to %d\n", SG_MAX_CUS);
		return -EINVAL;
	}
	if (!vram_mb || vram_mb > SG_MOST_VRAM_MB) {
		pr_err("amdgpu: vram_mb must be 1 to %d\n", SG_MOST_VRAM_MB);
		return -EINVAL;
	}
	if (strcmp(gfx, "gfx942") && !sg_is_gfx90a()) {
		pr_err("amdgpu: gfx must be gfx942 or gfx90a\n");
		return -EINVAL;
	}
	r = kgd2kfd_init();
	if (r)
		return r;
	r = pci_register_driver(&sg_pci_driver);
	if (r)
		kgd2kfd_exit();
	return r;
}

static void __exit sg_exit(void)
{
	pci_unregister_driver(&sg_pci_driver);
	kgd2kfd_exit();
	sg_debugfs_exit();
}

module_init(sg_init);
module_exit(sg_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A GPU made of software, under the unmodified amdkfd");
MODULE_IMPORT_NS(DMA_BUF);
