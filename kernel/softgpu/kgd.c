// SPDX-License-Identifier: GPL-2.0
/* What amdkfd calls on the GPU by its table of functions, under the hardware scheduler. */
#include "softgpu.h"

#define SG_CP_REGS 56   /* from CP_MQD_BASE_ADDR on: what amdgpu dumps of a compute slot */
#define SG_SDMA_REGS 44 /* and of an SDMA slot */
#define SG_CP_REG_BASE 0x3245
#define SG_SDMA_REG_BASE 0x1260

static int sg_init_interrupts(struct amdgpu_device *adev, u32 pipe, u32 inst)
{
	return 0;
}

/* XCC 0 speaks for all of them. */
static int sg_hiq_mqd_load(struct amdgpu_device *adev, void *mqd, u32 pipe, u32 queue, u32 doorbell, u32 inst)
{
	return inst ? 0 : sg_hiq_load(to_softgpu(adev), mqd);
}

int amdgpu_amdkfd_unmap_hiq(struct amdgpu_device *adev, u32 doorbell, u32 inst)
{
	if (!inst)
		sg_hiq_unload(to_softgpu(adev));
	return 0;
}

static int sg_new_dump(u32 n, u32 base, u32 (**ret)[2])
{
	u32 i;

	*ret = kmalloc_array(n, sizeof(**ret), GFP_KERNEL | __GFP_ZERO);
	for (i = 0; *ret && i < n; i++)
		(*ret)[i][0] = (base + i) << 2;
	return *ret ? 0 : -ENOMEM;
}

static int sg_hqd_dump(struct amdgpu_device *adev, u32 pipe, u32 queue, u32 (**dump)[2], u32 *n, u32 inst)
{
	struct softgpu *sg = to_softgpu(adev);
	u32 slot = pipe * 8 + queue, i;
	const u32 *regs;

	*n = SG_CP_REGS;
	if (sg_new_dump(SG_CP_REGS, SG_CP_REG_BASE, dump))
		return -ENOMEM;
	mutex_lock(&sg->lock);
	if (slot < SG_SLOTS && sg->slots[slot].entry) {
		regs = &sg->slots[slot].mqd->cp_mqd_base_addr_lo;
		for (i = 0; i < SG_CP_REGS; i++)
			(*dump)[i][1] = regs[i];
	}
	mutex_unlock(&sg->lock);
	return 0;
}

static int sg_hqd_sdma_dump(struct amdgpu_device *adev, u32 engine, u32 queue, u32 (**dump)[2], u32 *n)
{
	*n = SG_SDMA_REGS;
	return sg_new_dump(SG_SDMA_REGS, SG_SDMA_REG_BASE + engine * 0x600 + queue * 0x60, dump);
}

/* The debugger's hardware: settings that nothing here looks at. */
static u32 sg_debug_trap(struct amdgpu_device *adev, bool restore_dbg_registers, u32 vmid)
{
	return 0;
}

static int sg_validate_trap_override(struct amdgpu_device *adev, u32 override, u32 *mask)
{
	*mask &= KFD_DBG_TRAP_MASK_FP_INVALID | KFD_DBG_TRAP_MASK_FP_INPUT_DENORMAL |
		 KFD_DBG_TRAP_MASK_FP_DIVIDE_BY_ZERO | KFD_DBG_TRAP_MASK_FP_OVERFLOW |
		 KFD_DBG_TRAP_MASK_FP_UNDERFLOW | KFD_DBG_TRAP_MASK_FP_INEXACT |
		 KFD_DBG_TRAP_MASK_INT_DIVIDE_BY_ZERO | KFD_DBG_TRAP_MASK_DBG_ADDRESS_WATCH |
		 KFD_DBG_TRAP_MASK_DBG_MEMORY_VIOLATION;
	return override == KFD_DBG_TRAP_OVERRIDE_OR || override == KFD_DBG_TRAP_OVERRIDE_REPLACE ? 0
												 : -EINVAL;
}

/* Which exceptions trap. What amdkfd keeps for us as the register is the mask itself. */
static u32 sg_set_trap_override(struct amdgpu_device *adev, u32 vmid, u32 override, u32 bits, u32 request,
				u32 *prev, u32 previous)
{
	*prev = previous;
	return (bits & request) | (previous & ~request);
}

static u32 sg_set_launch_mode(struct amdgpu_device *adev, u8 mode, u32 vmid)
{
	return 0;
}

static u32 sg_set_watch(struct amdgpu_device *adev, u64 addr, u32 mask, u32 id, u32 mode, u32 vmid, u32 inst)
{
	return 0;
}

static u32 sg_clear_watch(struct amdgpu_device *adev, u32 id)
{
	return 0;
}

static void sg_get_iq_wait_times(struct amdgpu_device *adev, u32 *wait_times, u32 inst)
{
	*wait_times = 0x40404040;
}

/* As amdgpu does for gfx9: a grace period of 0 would wait for ever, so it is 1. */
static void sg_grace_period(struct amdgpu_device *adev, u32 wait_times, u32 grace, u32 *reg, u32 *data)
{
	*data = REG_SET_FIELD(wait_times, CP_IQ_WAIT_TIME2, SCH_WAVE, grace ? grace : 1);
	*reg = mmCP_IQ_WAIT_TIME2;
}

static void sg_get_cu_occupancy(struct amdgpu_device *adev, struct kfd_cu_occupancy *occupancy,
				int *max_waves, u32 inst)
{
	struct softgpu *sg = to_softgpu(adev);
	u32 i;

	*max_waves = sg->model.waves_per_cu;
	mutex_lock(&sg->lock);
	for (i = 0; i < SG_SLOTS; i++) {
		if (!sg->slots[i].entry)
			continue;
		occupancy[i].wave_cnt = sg->slots[i].ctx.held / sg->xccs;
		occupancy[i].doorbell_off = sg->slots[i].entry->doorbell;
	}
	mutex_unlock(&sg->lock);
}

static void sg_set_page_table(struct amdgpu_device *adev, u32 vmid, u64 base)
{
}

static u64 sg_get_pq_addr(struct amdgpu_device *adev, u32 pipe, u32 queue, u32 inst)
{
	struct softgpu *sg = to_softgpu(adev);
	u32 slot = pipe * 8 + queue;
	u64 addr = 0;

	mutex_lock(&sg->lock);
	if (slot < SG_SLOTS && sg->slots[slot].entry)
		addr = sg_u64(sg->slots[slot].mqd->cp_hqd_pq_base_lo, sg->slots[slot].mqd->cp_hqd_pq_base_hi)
		       << 8;
	mutex_unlock(&sg->lock);
	return addr;
}

/* A queue alone cannot be reset here: amdkfd goes on to the whole GPU. */
static u64 sg_hqd_reset(struct amdgpu_device *adev, u32 pipe, u32 queue, u32 inst, unsigned int timeout)
{
	return 0;
}

#define SG_KGD_CALLS \
	{ \
		.init_interrupts = sg_init_interrupts, .hiq_mqd_load = sg_hiq_mqd_load, \
		.hqd_dump = sg_hqd_dump, .hqd_sdma_dump = sg_hqd_sdma_dump, \
		.enable_debug_trap = sg_debug_trap, .disable_debug_trap = sg_debug_trap, \
		.validate_trap_override_request = sg_validate_trap_override, \
		.set_wave_launch_trap_override = sg_set_trap_override, \
		.set_wave_launch_mode = sg_set_launch_mode, .set_address_watch = sg_set_watch, \
		.clear_address_watch = sg_clear_watch, .get_iq_wait_times = sg_get_iq_wait_times, \
		.build_grace_period_packet_info = sg_grace_period, .get_cu_occupancy = sg_get_cu_occupancy, \
		.set_vm_context_page_table_base = sg_set_page_table, .hqd_get_pq_addr = sg_get_pq_addr, \
		.hqd_reset = sg_hqd_reset, \
	}

const struct kfd2kgd_calls gc_9_4_3_kfd2kgd = SG_KGD_CALLS;
const struct kfd2kgd_calls aldebaran_kfd2kgd = SG_KGD_CALLS;

/* Chips that do not come up here. */
const struct kfd2kgd_calls gfx_v7_kfd2kgd, gfx_v8_kfd2kgd, gfx_v9_kfd2kgd, arcturus_kfd2kgd, gfx_v10_kfd2kgd,
	gfx_v10_3_kfd2kgd, gfx_v11_kfd2kgd, gfx_v12_kfd2kgd;
