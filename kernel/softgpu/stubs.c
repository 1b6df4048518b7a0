// SPDX-License-Identifier: GPL-2.0
/*
 * The rest of amdgpu that amdkfd links against: module parameters it owns, facts about
 * the chip, and functions that have nothing to do here.
 */
#include "amdgpu_ras.h"
#include "amdgpu_reset.h"
#include "amdgpu_xcp.h"
#include "kfd_device_queue_manager.h"
#include "softgpu.h"

/* amdgpu_drv.c's parameters, with its defaults (Linux 6.12) */
int sched_policy = KFD_SCHED_POLICY_HWS;
int hws_max_conc_proc = -1;
int cwsr_enable = 1;
int max_num_of_queues_per_device = KFD_MAX_NUM_OF_QUEUES_PER_DEVICE_DEFAULT;
int send_sigterm;
int halt_if_hws_hang;
bool hws_gws_support;
int queue_preemption_timeout_ms = 9000;
bool debug_evictions;
int amdgpu_no_queue_eviction_on_vm_fault;
int amdgpu_emu_mode;
int amdgpu_use_xgmi_p2p = 1;
uint amdgpu_sdma_phase_quantum = 32;
const char *amdgpu_asic_name[] = { [CHIP_IP_DISCOVERY] = "IP DISCOVERY" };

module_param(queue_preemption_timeout_ms, int, 0644);
module_param(cwsr_enable, int, 0444);
module_param(hws_max_conc_proc, int, 0444);
module_param(max_num_of_queues_per_device, int, 0444);

/* Facts */

uint32_t amdgpu_amdkfd_get_fw_version(struct amdgpu_device *adev, enum kgd_engine_type type)
{
	return 175;
}

void amdgpu_amdkfd_get_local_mem_info(struct amdgpu_device *adev, struct kfd_local_mem_info *info,
				      struct amdgpu_xcp *xcp)
{
	*info = (struct kfd_local_mem_info){ .local_mem_size_public = adev->gmc.real_vram_size,
					     .vram_width = 8192,
					     .mem_clk_max = 1300 };
}

uint64_t amdgpu_amdkfd_get_gpu_clock_counter(struct amdgpu_device *adev)
{
	return ktime_get_ns() / 10;
}

/*
 * adev->pm.mutex, with which amdgpu asks the SMU. Where it allocates with that held, the kernel may reclaim
 * memory, and its MMU notifier takes the queue managers' locks (amdgpu_amdkfd_evict_userptr(), Linux 6.12).
 * That does not happen here, so lockdep is told. Not of all that waits for memory: the stock driver's
 * topology_lock does, and is taken under a queue manager's for a checkpoint.
 */
static DEFINE_MUTEX(sg_pm_lock);

void sg_pm_lock_before_dqm_lock(struct device_queue_manager *dqm)
{
	mutex_lock(&sg_pm_lock);
	dqm_lock(dqm);
	dqm_unlock(dqm);
	mutex_unlock(&sg_pm_lock);
}

uint32_t amdgpu_amdkfd_get_max_engine_clock_in_mhz(struct amdgpu_device *adev)
{
	mutex_lock(&sg_pm_lock);
	mutex_unlock(&sg_pm_lock);
	return 2100;
}

uint8_t amdgpu_amdkfd_get_xgmi_hops_count(struct amdgpu_device *dst, struct amdgpu_device *src)
{
	return 1;
}

int amdgpu_amdkfd_get_xgmi_bandwidth_mbytes(struct amdgpu_device *dst, struct amdgpu_device *src, bool is_min)
{
	return 0;
}

int amdgpu_amdkfd_get_pcie_bandwidth_mbytes(struct amdgpu_device *adev, bool is_min)
{
	return 32000;
}

size_t amdgpu_amdkfd_get_available_memory(struct amdgpu_device *adev, uint8_t xcp_id)
{
	u64 used = atomic64_read(&to_softgpu(adev)->vram_used);

	/* An allocation that will be refused is counted for a moment. */
	return adev->gmc.real_vram_size - min(used, adev->gmc.real_vram_size);
}

u64 amdgpu_amdkfd_xcp_memory_size(struct amdgpu_device *adev, int xcp_id)
{
	return adev->gmc.real_vram_size;
}

bool amdgpu_amdkfd_have_atomics_support(struct amdgpu_device *adev)
{
	return true;
}

int amdgpu_amdkfd_get_tile_config(struct amdgpu_device *adev, struct tile_config *config)
{
	return 0;
}

bool amdgpu_device_is_peer_accessible(struct amdgpu_device *adev, struct amdgpu_device *peer)
{
	return false;
}

bool amdgpu_sriov_xnack_support(struct amdgpu_device *adev)
{
	return true;
}

uint64_t amdgpu_dpm_get_thermal_throttling_counter(struct amdgpu_device *adev)
{
	return 0;
}

int amdgpu_xcp_get_inst_details(struct amdgpu_xcp *xcp, enum AMDGPU_XCP_IP_BLOCK ip, uint32_t *inst_mask)
{
	return 0;
}

int amdgpu_xcp_query_partition_mode(struct amdgpu_xcp_mgr *mgr, u32 flags)
{
	return AMDGPU_SPX_PARTITION_MODE;
}

/* One MEC's queues, counted pipe by pipe. */
void amdgpu_queue_mask_bit_to_mec_queue(struct amdgpu_device *adev, int bit, int *mec, int *pipe, int *queue)
{
	*queue = bit % 8;
	*pipe = bit / 8 % 4;
	*mec = bit / 32;
}

int amdgpu_queue_mask_bit_to_set_resource_bit(struct amdgpu_device *adev, int bit)
{
	return bit;
}

int kfd_debugfs_kfd_mem_limits(struct seq_file *m, void *data)
{
	seq_printf(m, "System mem used %lluM out of %lluM\n", sg_system_memory_used() >> 20,
		   sg_system_memory_limit() >> 20);
	return 0;
}

/* PASIDs are one space for all devices */

static DEFINE_IDA(sg_pasids);

int amdgpu_pasid_alloc(unsigned int bits)
{
	return ida_alloc_range(&sg_pasids, 1 << (bits - 1), (1 << bits) - 1, GFP_KERNEL);
}

void amdgpu_pasid_free(u32 pasid)
{
	ida_free(&sg_pasids, pasid);
}

/*
 * amdkfd 6.12 drops its own drain fence on gfx9.4.3: the cookie has VMID 0, and the
 * interrupt handler wants one of its own.  drain_fix=1 gives it one, as firmware that
 * fills the field would.
 */
int drain_fix;
module_param(drain_fix, int, 0644);

int amdgpu_amdkfd_send_close_event_drain_irq(struct amdgpu_device *adev, uint32_t *payload)
{
	if (drain_fix)
		payload[0] |= 8 << 24;
	kgd2kfd_interrupt(adev->kfd.dev, payload);
	return 0;
}

/* GWS: a token that nothing waits for */

int amdgpu_amdkfd_alloc_gws(struct amdgpu_device *adev, size_t size, void **mem)
{
	*mem = &sg_pasids;
	return 0;
}

void amdgpu_amdkfd_free_gws(struct amdgpu_device *adev, void *mem)
{
}

int amdgpu_amdkfd_add_gws_to_process(void *info, void *gws, struct kgd_mem **mem)
{
	*mem = gws;
	return 0;
}

int amdgpu_amdkfd_remove_gws_from_process(void *info, void *mem)
{
	return 0;
}

/* What this device does not have */

int amdgpu_amdkfd_get_dmabuf_info(struct amdgpu_device *adev, int fd, struct amdgpu_device **ret,
				  uint64_t *size, void **metadata, size_t buffer, uint32_t *metadata_size,
				  uint32_t *flags, int8_t *xcp_id)
{
	return -EOPNOTSUPP;
}

int amdgpu_amdkfd_gpuvm_import_dmabuf_fd(struct amdgpu_device *adev, int fd, uint64_t va, void *drm_priv,
					 struct kgd_mem **mem, uint64_t *size, uint64_t *offset)
{
	return -EOPNOTSUPP;
}

int amdgpu_amdkfd_gpuvm_export_dmabuf(struct kgd_mem *mem, struct dma_buf **ret)
{
	return -EOPNOTSUPP;
}

int amdgpu_amdkfd_map_gtt_bo_to_gart(struct amdgpu_bo *bo, struct amdgpu_bo **ret)
{
	return -EOPNOTSUPP;
}

int amdgpu_amdkfd_gpuvm_get_vm_fault_info(struct amdgpu_device *adev, struct kfd_vm_fault_info *info)
{
	return -EINVAL;
}

int amdgpu_ttm_tt_get_userptr(const struct ttm_buffer_object *bo, uint64_t *user_addr)
{
	return -EINVAL;
}

struct amdgpu_task_info *amdgpu_vm_get_task_info_pasid(struct amdgpu_device *adev, u32 pasid)
{
	return NULL;
}

int amdgpu_mes_doorbell_process_slice(struct amdgpu_device *adev)
{
	return 2 * PAGE_SIZE;
}

int amdgpu_mes_flush_shader_debugger(struct amdgpu_device *adev, uint64_t ctx)
{
	return -EOPNOTSUPP;
}

int amdgpu_mes_set_shader_debugger(struct amdgpu_device *adev, uint64_t ctx, uint32_t cntl,
				   const uint32_t *watch, uint32_t flags, bool trap_en)
{
	return -EOPNOTSUPP;
}

int amdgpu_mes_suspend(struct amdgpu_device *adev)
{
	return -EOPNOTSUPP;
}

int amdgpu_mes_resume(struct amdgpu_device *adev)
{
	return -EOPNOTSUPP;
}

/* As amdgpu has it. No GPU here is one of these; the series' KUnit tests make one up. */
bool amdgpu_mes_suspend_resume_all_supported(struct amdgpu_device *adev)
{
	u32 version = amdgpu_ip_version(adev, GC_HWIP, 0);

	return version >= IP_VERSION(11, 0, 0) && version < IP_VERSION(12, 0, 0) &&
	       (adev->mes.sched_version & AMDGPU_MES_VERSION_MASK) >= 0x63;
}

/* Nothing to do: memory is coherent and stays where it is, there is no firmware and no power to save */

void amdgpu_amdkfd_gpuvm_unmap_gtt_bo_from_kernel(struct kgd_mem *mem)
{
}

int amdgpu_amdkfd_gpuvm_sync_memory(struct amdgpu_device *adev, struct kgd_mem *mem, bool intr)
{
	return 0;
}

int amdgpu_amdkfd_gpuvm_dmaunmap_mem(struct kgd_mem *mem, void *drm_priv)
{
	return 0;
}

int amdgpu_amdkfd_gpuvm_restore_process_bos(void *info, struct dma_fence __rcu **ef)
{
	return 0;
}

int amdgpu_vm_flush_compute_tlb(struct amdgpu_device *adev, struct amdgpu_vm *vm, uint32_t type,
				uint32_t xcc_mask)
{
	return 0;
}

void ttm_bo_move_to_lru_tail(struct ttm_buffer_object *bo)
{
}

bool amdgpu_amdkfd_bo_mapped_to_dev(void *drm_priv, struct kgd_mem *mem)
{
	return mem->mapped_to_gpu_memory;
}

void amdgpu_amdkfd_block_mmu_notifications(void *process)
{
}

int amdgpu_amdkfd_criu_resume(void *process)
{
	return 0;
}

void amdgpu_amdkfd_debug_mem_fence(struct amdgpu_device *adev)
{
}

void amdgpu_amdkfd_set_compute_idle(struct amdgpu_device *adev, bool idle)
{
}

int amdgpu_amdkfd_submit_ib(struct amdgpu_device *adev, enum kgd_engine_type engine, uint32_t vmid,
			    uint64_t gpu_addr, uint32_t *ib, uint32_t len)
{
	return 0;
}

void amdgpu_device_flush_hdp(struct amdgpu_device *adev, struct amdgpu_ring *ring)
{
}

void amdgpu_gfx_off_ctrl(struct amdgpu_device *adev, bool enable)
{
}

void amdgpu_vm_put_task_info(struct amdgpu_task_info *info)
{
}

bool amdgpu_amdkfd_is_fed(struct amdgpu_device *adev)
{
	return false;
}

void amdgpu_amdkfd_ras_poison_consumption_handler(struct amdgpu_device *adev, enum amdgpu_ras_block block,
						  uint32_t reset)
{
}

void amdgpu_amdkfd_ras_pasid_poison_consumption_handler(struct amdgpu_device *adev,
							enum amdgpu_ras_block block, uint16_t pasid,
							pasid_notify notify, void *data, uint32_t reset)
{
}

u64 amdgpu_ras_acquire_event_id(struct amdgpu_device *adev, enum ras_event_type type)
{
	return 0;
}

void amdgpu_ras_event_log_print(struct amdgpu_device *adev, u64 id, const char *format, ...)
{
}

int amdgpu_ras_mark_ras_event_caller(struct amdgpu_device *adev, enum ras_event_type type, const void *caller)
{
	return 0;
}

void amdgpu_reset_get_desc(struct amdgpu_reset_context *context, char *text, size_t size)
{
	snprintf(text, size, "software GPU");
}
