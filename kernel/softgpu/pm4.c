// SPDX-License-Identifier: GPL-2.0
/*
 * User queues of PM4 packets: what a test of the driver writes into them.  Only dispatches take time, and the
 * packets behind one wait for it.  A packet that is none stops its queue where it stands; so does one that
 * names memory that is not there, with a page fault.  Those before it are done, once.  A step does so much
 * and no more: the command processor has others to serve.
 *
 * Nobody but the user keeps packets from changing while they are read: every dword that matters for our
 * safety is read once, and a packet that is taken up again may be another.
 */
#include "softgpu.h"

#define PM4_INDIRECT_BUFFER 0x3F
#define PM4_ACQUIRE_MEM 0x58
#define PM4_TYPE2 2
#define PM4_ONE_DWORD 0x3fff /* the count of a NOP that is its header alone */
#define PM4_DWORD_COST 64u   /* of SG_STEP */

/*
 * The registers that SET_SH_REG names count from PACKET3_SET_SH_REG_START (soc15d.h, 6.12); those of
 * gc_9_0_offset.h from where the graphics core's begin (GC_BASE__INST0_SEG0, vega10_ip_offset.h, 6.12).
 */
#define SH_BASE 0x2c00
#define GC_BASE 0x2000
#define SH_OF(mm) (GC_BASE + (mm)-SH_BASE)

/* dst_sel 5 and 2: memory. One register at a time is all that is not memory, and we have none. */
static int sg_write_data(struct sg_slot *slot, const u32 *p, u32 len)
{
	u32 dst_sel = p[1] >> 8 & 0xf, n = len - 4;
	u32 *dst;

	if (dst_sel != 2 && dst_sel != 5)
		return 0;
	dst = sg_reach(slot, sg_u64(p[2] & ~3u, p[3]), n * 4);
	if (!dst)
		return -EINVAL;
	memcpy(dst, &p[4], n * 4);
	return 0;
}

/* data_sel 1: 32 bits, 2: 64, 3: the clock. int_sel 0: no interrupt. */
static int sg_release_mem(struct sg_slot *slot, const u32 *p)
{
	u32 select = READ_ONCE(p[2]), data_sel = select >> 29, int_sel = select >> 24 & 7;
	u64 addr = sg_u64(p[3] & ~3u, p[4]), data = sg_u64(p[5], p[6]);
	void *dst = data_sel ? sg_reach(slot, addr, data_sel == 1 ? 4 : 8) : NULL;

	if (data_sel && !dst)
		return -EINVAL;
	if (data_sel == 1)
		smp_store_release((u32 *)dst, p[5]);
	else if (data_sel)
		smp_store_release((u64 *)dst, data_sel == 3 ? ktime_get_ns() / 10 : data);
	if (int_sel)
		sg_interrupt(slot, SOC15_IH_CLIENTID_GRBM_CP, SOC15_INTSRC_CP_END_OF_PIPE, p[7]);
	return 0;
}

static int sg_pm4_packet(struct sg_slot *slot, const u32 *p, u32 left, int depth, u64 now);

/* Goes on where it was left. */
static int sg_indirect(struct sg_slot *slot, const u32 *p, int depth, u64 now)
{
	u32 ndw = READ_ONCE(p[3]) & 0xfffff;
	const u32 *ib = depth < SG_IB_DEPTH ? sg_reach(slot, sg_u64(p[1] & ~3u, p[2]), ndw * 4) : NULL;

	if (!ib)
		return -EINVAL;
	while (slot->ib_at[depth] < ndw) {
		u32 at = slot->ib_at[depth];
		int n = sg_pm4_packet(slot, &ib[at], ndw - at, depth + 1, now);

		if (n < 0)
			return n;
		slot->ib_at[depth] += n;
	}
	slot->ib_at[depth] = 0;
	return 0;
}

/* Workgroups have so many work-items, and waves take so long; all other registers mean nothing here. */
static int sg_set_sh_reg(struct sg_slot *slot, const u32 *p, u32 len)
{
	u32 first = READ_ONCE(p[1]) & 0xffff, i;

	for (i = 2; i < len; i++) {
		u32 reg = first + i - 2, threads = reg - SH_OF(mmCOMPUTE_NUM_THREAD_X);

		if (threads < 3)
			(&slot->mqd->compute_num_thread_x)[threads] = p[i];
		else if (reg == SH_OF(mmCOMPUTE_USER_DATA_15))
			slot->mqd->compute_user_data_15 = p[i];
	}
	return 0;
}

/* The packet is done when its waves have ended. */
static int sg_dispatch_direct(struct sg_slot *slot, const u32 *p, u64 now)
{
	const u32 groups[3] = { p[1], p[2], p[3] };
	const u32 items[3] = { slot->mqd->compute_num_thread_x & 0xffff,
			       slot->mqd->compute_num_thread_y & 0xffff,
			       slot->mqd->compute_num_thread_z & 0xffff };

	if (slot->has_ended)
		return 0;
	if (sg_aql_make(slot, groups, items, slot->mqd->compute_user_data_15) || sg_aql_start(slot, now))
		return -EINVAL;
	return -EAGAIN;
}

/* Of registers (bit 4 clear) we have none to wait for. */
static int sg_wait_reg_mem(struct sg_slot *slot, const u32 *p)
{
	u32 how = READ_ONCE(p[1]);
	u32 *mem;

	if (!(how & 1 << 4))
		return 0;
	mem = sg_reach(slot, sg_u64(p[2] & ~3u, p[3]), 4);
	if (!mem)
		return -EINVAL;
	return sg_compare(how & 7, READ_ONCE(*mem) & p[5], p[4]) ? 0 : -EAGAIN;
}

static int sg_pm4_act(struct sg_slot *slot, const u32 *p, u32 opcode, u32 len, int depth, u64 now)
{
	switch (opcode) {
	case IT_NOP:
	case PM4_ACQUIRE_MEM:
	case IT_EVENT_WRITE: /* while packets are read no wave runs that it could wait for */
		return 0;
	case IT_WRITE_DATA:
		return len < 5 ? -EINVAL : sg_write_data(slot, p, len);
	case IT_RELEASE_MEM:
		return len < 8 ? -EINVAL : sg_release_mem(slot, p);
	case PM4_INDIRECT_BUFFER:
		return len < 4 ? -EINVAL : sg_indirect(slot, p, depth, now);
	case IT_SET_SH_REG:
		return sg_set_sh_reg(slot, p, len);
	case IT_DISPATCH_DIRECT:
		return len < 5 ? -EINVAL : sg_dispatch_direct(slot, p, now);
	case IT_WAIT_REG_MEM:
		return len < 7 ? -EINVAL : sg_wait_reg_mem(slot, p);
	default:
		return -EINVAL;
	}
}

static bool sg_is_one_dword(union PM4_MES_TYPE_3_HEADER h)
{
	return h.type == PM4_TYPE2 || (h.type == 3 && h.opcode == IT_NOP && h.count == PM4_ONE_DWORD);
}

/* Returns how many dwords the packet has; -EAGAIN: it is not done yet; -EINVAL: it is none. */
static int sg_pm4_packet(struct sg_slot *slot, const u32 *p, u32 left, int depth, u64 now)
{
	union PM4_MES_TYPE_3_HEADER h = { .u32All = READ_ONCE(*p) };
	u32 len = sg_is_one_dword(h) ? 1 : h.count + 2;
	int r;

	/* What has ended is passed over also if nothing is left of the step: it must not begin again. */
	if (!slot->step_left && !slot->has_ended)
		return -EAGAIN;
	slot->step_left -= min(slot->step_left, len * PM4_DWORD_COST);
	if (len == 1) {
		slot->has_ended = false;
		return 1;
	}
	if (h.type != 3 || len > left)
		return -EINVAL;
	r = sg_pm4_act(slot, p, h.opcode, len, depth, now);
	if (h.opcode != PM4_INDIRECT_BUFFER)
		slot->has_ended = false;
	if (r)
		return r;
	slot->sg->stats.pm4_packets++;
	return len;
}

/* Up to the write pointer. Packets do not cross the ring's end: writers fill it up with NOPs. */
void sg_pm4_step(struct sg_slot *slot, u64 now)
{
	u32 ring = 1 << ((slot->mqd->cp_hqd_pq_control & CP_HQD_PQ_CONTROL__QUEUE_SIZE_MASK) + 1);
	u64 base = sg_u64(slot->mqd->cp_hqd_pq_base_lo, slot->mqd->cp_hqd_pq_base_hi) << 8;
	u64 report =
		sg_u64(slot->mqd->cp_hqd_pq_rptr_report_addr_lo, slot->mqd->cp_hqd_pq_rptr_report_addr_hi);
	u32 *packets = sg_reach(slot, base, (size_t)ring * 4), *rptr = sg_reach(slot, report, sizeof(*rptr));

	if (!packets || !rptr || slot->wptr - slot->rptr > ring) {
		slot->halted = true;
		return;
	}
	while (slot->rptr != slot->wptr && !slot->ctx.busy) {
		u32 at = slot->rptr % ring;
		int n = sg_pm4_packet(slot, &packets[at], min_t(u64, slot->wptr - slot->rptr, ring - at), 0,
				      now);

		if (n == -EAGAIN)
			return;
		if (n < 0) {
			slot->halted = true;
			return;
		}
		slot->rptr += n;
		smp_store_release(rptr, (u32)(slot->rptr % ring));
	}
}

void sg_pm4_kernel_ended(struct sg_slot *slot, u64 now)
{
	slot->has_ended = true;
	sg_packets_at(slot, now);
	slot->has_ended = false; /* whatever is there by now */
}
