/* SPDX-License-Identifier: MIT */
/*
 * Where the words of memory queue descriptors and packets are.  All from Linux 6.12.115,
 * drivers/gpu/drm/amd/.
 */
#ifndef GP_DISCOVER_MQD_H
#define GP_DISCOVER_MQD_H

/*
 * Compute: include/v9_structs.h, struct v9_mqd.  vi_mqd, v10_compute_mqd, v11_compute_mqd and v12_compute_mqd
 * have these words at the same places; cik_mqd (gfx7) does not.  Offsets in bytes.
 */
#define MQD_HEADER 0x000
#define MQD_BASE 0x200        /* its own address */
#define MQD_ACTIVE 0x208      /* bit 0 */
#define MQD_PRIORITY 0x218    /* bits 0-3 */
#define MQD_RING 0x220        /* address >> 8 */
#define MQD_RPTR_REPORT 0x22c /* address */
#define MQD_WPTR_POLL 0x234   /* address */
#define MQD_DOORBELL 0x23c    /* dword offset in the BAR << 2, in bits 2-27 */
#define MQD_RING_CONTROL 0x244
#define MQD_SIZE 0x800

#define MQD_HEADER_VALUE 0xc0310800 /* amdkfd/kfd_mqd_manager_v9.c, init_mqd(); the same in v10, v11, v12 */
#define MQD_ACTIVE_MASK 0x1         /* include/asic_reg/gc/gc_9_4_3_sh_mask.h, CP_HQD_ACTIVE__ACTIVE_MASK */
#define MQD_PRIORITY_MASK 0xf       /* CP_HQD_QUEUE_PRIORITY__PRIORITY_LEVEL_MASK */
#define MQD_RING_SIZE_MASK 0x3f     /* CP_HQD_PQ_CONTROL__QUEUE_SIZE_MASK: log2(dwords) - 1 */
#define MQD_DOORBELL_MASK 0x0ffffffc

/* SDMA: include/v9_structs.h, struct v9_sdma_mqd; v10_sdma_mqd begins the same, v11 and v12 do not. */
#define SDMA_RING_CONTROL 0x000 /* bits 1-5: log2(dwords) */
#define SDMA_RING 0x004         /* address >> 8 */
#define SDMA_RPTR_HIGH 0x020
#define SDMA_RPTR_LOW 0x024
#define SDMA_DOORBELL 0x058 /* bits 2-27 */
#define SDMA_ENGINE 0x1f8   /* the driver's own: sdma_engine_id */
#define SDMA_SIZE 0x200

#define SDMA_ENABLE_MASK \
	0x1 /* include/asic_reg/sdma/sdma_4_4_2_sh_mask.h, SDMA_RLC0_RB_CNTL__RB_ENABLE_MASK */
#define SDMA_RING_SIZE_SHIFT 1
#define SDMA_RING_SIZE_MASK 0x1f

/* As in gfx_target_version. From gfx11 on SDMA descriptors differ, and MES keeps no run lists. */
#define GFX11 110000
#define GFX8 80000

/* hqds: amdgpu/amdgpu_amdkfd_gfx_v9.c, kgd_gfx_v9_hqd_dump(): registers, in the order of the MQD's words. */
#define HQD_WORD(mqd_offset) (((mqd_offset)-MQD_BASE) / 4)
#define HQD_WORDS 56

/* rls: amdkfd/kfd_pm4_headers_ai.h, kfd_pm4_opcodes.h. Type 3: count in bits 16-29, opcode in bits 8-15. */
#define PM4_TYPE(header) ((header) >> 30)
#define PM4_OPCODE(header) (((header) >> 8) & 0xff)
#define PM4_WORDS(header) ((((header) >> 16) & 0x3fff) + 2)
#define PM4_MAP_QUEUES \
	0xa2 /* IT_MAP_QUEUES; words: header, selectors, doorbell << 2, MQD low, high, wptr low, high */
#define PM4_MAP_QUEUES_WORDS 7

#endif
