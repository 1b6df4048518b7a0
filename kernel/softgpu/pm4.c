// SPDX-License-Identifier: GPL-2.0
/*
 * User queues of PM4 packets: what a test of the driver writes into them.  They take no time.  A packet that
 * is none, or that names memory that is not there, stops its queue where it stands; those before it are done,
 * once.  Nobody but the user keeps packets from changing while they are read: every dword that matters for
 * our safety is read once.
 */
#include "softgpu.h"

#define PM4_INDIRECT_BUFFER 0x3F
#define PM4_ACQUIRE_MEM 0x58
#define PM4_TYPE2 2
#define PM4_FILLER 0xffff1000 /* a NOP of one dword */
#define PM4_MAX_DEPTH 2

/* dst_sel 5 and 2: memory. One register at a time is all that is not memory, and we have none. */
static int sg_write_data(struct sg_slot *slot, const u32 *p, u32 len)
{
	u32 dst_sel = p[1] >> 8 & 0xf, n = len - 4;
	u32 *dst;

	if (dst_sel != 2 && dst_sel != 5)
		return 0;
	dst = sg_at(slot, sg_u64(p[2] & ~3u, p[3]), n * 4);
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
	void *dst = data_sel ? sg_at(slot, addr, data_sel == 1 ? 4 : 8) : NULL;

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

static int sg_pm4_packet(struct sg_slot *slot, const u32 *p, u32 left, int depth);

static int sg_indirect(struct sg_slot *slot, const u32 *p, int depth)
{
	u32 ndw = READ_ONCE(p[3]) & 0xfffff, i = 0;
	const u32 *ib = sg_at(slot, sg_u64(p[1] & ~3u, p[2]), ndw * 4);

	if (!ib || depth == PM4_MAX_DEPTH)
		return -EINVAL;
	while (i < ndw) {
		int n = sg_pm4_packet(slot, &ib[i], ndw - i, depth + 1);

		if (n < 0)
			return n;
		i += n;
	}
	return 0;
}

static int sg_pm4_act(struct sg_slot *slot, const u32 *p, u32 opcode, u32 len, int depth)
{
	switch (opcode) {
	case IT_NOP:
	case PM4_ACQUIRE_MEM:
		return 0;
	case IT_WRITE_DATA:
		return len < 5 ? -EINVAL : sg_write_data(slot, p, len);
	case IT_RELEASE_MEM:
		return len < 8 ? -EINVAL : sg_release_mem(slot, p);
	case PM4_INDIRECT_BUFFER:
		return len < 4 ? -EINVAL : sg_indirect(slot, p, depth);
	default:
		return -EINVAL;
	}
}

/* Returns how many dwords the packet has, or -EINVAL: it is none. */
static int sg_pm4_packet(struct sg_slot *slot, const u32 *p, u32 left, int depth)
{
	union PM4_MES_TYPE_3_HEADER h = { .u32All = READ_ONCE(*p) };
	u32 len = h.count + 2;
	int r;

	if (h.type == PM4_TYPE2 || h.u32All == PM4_FILLER)
		return 1;
	if (h.type != 3 || len > left)
		return -EINVAL;
	r = sg_pm4_act(slot, p, h.opcode, len, depth);
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
	u32 *packets = sg_at(slot, base, (size_t)ring * 4), *rptr = sg_at(slot, report, sizeof(*rptr));

	if (!packets || !rptr || slot->wptr - slot->rptr > ring) {
		slot->halted = true;
		return;
	}
	while (slot->rptr != slot->wptr) {
		u32 at = slot->rptr % ring;
		int n = sg_pm4_packet(slot, &packets[at], min_t(u64, slot->wptr - slot->rptr, ring - at), 0);

		if (n < 0) {
			slot->halted = true;
			return;
		}
		slot->rptr += n;
		smp_store_release(rptr, (u32)(slot->rptr % ring));
	}
}
