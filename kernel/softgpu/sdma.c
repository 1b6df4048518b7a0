// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA queues: copies really copy.  Pointers count bytes and never wrap; packets do not cross the ring's end.
 * A packet that is none stops its queue where it stands; so does one that names memory that is not there,
 * with a page fault.  A step does so much and no more: the command processor has others to serve.
 */
#include "softgpu.h"

enum {
	SDMA_NOP = 0,
	SDMA_COPY = 1,
	SDMA_WRITE = 2,
	SDMA_FENCE = 5,
	SDMA_TRAP = 6,
	SDMA_POLL_REGMEM = 8,
	SDMA_ATOMIC = 10,
	SDMA_CONST_FILL = 11,
	SDMA_TIMESTAMP = 13,
	SDMA_SRBM_WRITE = 14,
};

#define SDMA_ATOMIC_ADD64 47
#define SDMA_PACKET_BYTES 64u /* what a packet counts for besides its data */
#define SDMA_HEAD 8u          /* dwords of the longest packet, but for the data of a write */

/* How many bytes of so many this step does, from slot->done on. */
static u32 sg_part(struct sg_slot *slot, u32 n)
{
	u32 left = n > slot->done ? n - slot->done : 0, part = min(left, slot->step_left & ~3u);

	slot->step_left -= part;
	slot->sg->stats.sdma_bytes += part;
	return part;
}

/* How long the packet is if all its bytes are done; else it goes on with the next step. */
static int sg_done_with(struct sg_slot *slot, u32 part, u32 n, int ndw)
{
	slot->done += part;
	return slot->done < n ? 0 : ndw;
}

static int sg_copy(struct sg_slot *slot, const u32 *p)
{
	u32 n = (p[1] & 0x3fffffff) + 1, part;
	void *src, *dst;

	if (p[0] >> 8 & 0xff) /* linear copies alone */
		return -EINVAL;
	src = sg_reach(slot, sg_u64(p[3], p[4]), n);
	dst = src ? sg_reach(slot, sg_u64(p[5], p[6]), n) : NULL;
	if (!dst)
		return -EINVAL;
	part = sg_part(slot, n);
	memmove(dst + slot->done, src + slot->done, part);
	return sg_done_with(slot, part, n, 7);
}

static int sg_write(struct sg_slot *slot, const u32 *p, const u32 *data, u32 left)
{
	u32 ndw = (p[3] & 0xfffff) + 1, n = ndw * 4, part;
	void *dst = 4 + ndw <= left ? sg_reach(slot, sg_u64(p[1], p[2]), n) : NULL;

	if (!dst)
		return -EINVAL;
	part = sg_part(slot, n);
	memcpy(dst + slot->done, (const void *)data + slot->done, part);
	return sg_done_with(slot, part, n, 4 + ndw);
}

/*
 * fillsize 2: dwords; 0: bytes.  The count is in bytes, less one; of dwords the lowest two bits do not count:
 * writers put there what they like (ROCr: the offset of the last dword, kfdtest: of the last byte).
 */
static int sg_fill(struct sg_slot *slot, const u32 *p)
{
	u32 count = p[4] & 0x3fffffff;
	bool dwords = p[0] >> 30 == 2;
	u32 n = (dwords ? count | 3 : count) + 1, part;
	void *dst = sg_reach(slot, sg_u64(p[1], p[2]), n);

	if (!dst)
		return -EINVAL;
	part = sg_part(slot, n);
	if (dwords)
		memset32(dst + slot->done, p[3], part / 4);
	else
		memset(dst + slot->done, p[3], part);
	return sg_done_with(slot, part, n, 5);
}

static int sg_fence(struct sg_slot *slot, const u32 *p)
{
	u32 *dst = sg_reach(slot, sg_u64(p[1] & ~3u, p[2]), 4);

	if (!dst)
		return -EINVAL;
	smp_store_release(dst, p[3]);
	return 4;
}

static int sg_trap(struct sg_slot *slot, const u32 *p)
{
	sg_interrupt(slot, SOC15_IH_CLIENTID_SDMA0, SOC15_INTSRC_SDMA_TRAP, p[1] & 0xfffffff);
	return 2;
}

/* 0: not yet. Registers (bit 31 clear) are the host path flush, which needs nothing here. */
static int sg_poll(struct sg_slot *slot, const u32 *p)
{
	u32 *mem;

	if (!(p[0] >> 31))
		return 6;
	mem = sg_reach(slot, sg_u64(p[1] & ~3u, p[2]), 4);
	if (!mem)
		return -EINVAL;
	return sg_compare(p[0] >> 28 & 7, READ_ONCE(*mem) & p[4], p[3]) ? 6 : 0;
}

static int sg_atomic(struct sg_slot *slot, const u32 *p)
{
	s64 *mem = sg_reach(slot, sg_u64(p[1], p[2]), 8);

	if (!mem || p[0] >> 25 != SDMA_ATOMIC_ADD64)
		return -EINVAL;
	atomic64_add_return_release((s64)sg_u64(p[3], p[4]), (atomic64_t *)mem);
	return 8;
}

static int sg_timestamp(struct sg_slot *slot, const u32 *p)
{
	u64 *mem = sg_reach(slot, sg_u64(p[1] & ~7u, p[2]), 8);

	if (!mem)
		return -EINVAL;
	WRITE_ONCE(*mem, ktime_get_ns() / 10);
	return 3;
}

/* How long the packet is, in dwords; 0: it must wait; -EINVAL: not one we know. */
static int sg_sdma_packet(struct sg_slot *slot, const u32 *packet, u32 left)
{
	static const u8 least[256] = {
		[SDMA_COPY] = 7,       [SDMA_WRITE] = 5,       [SDMA_FENCE] = 4,
		[SDMA_TRAP] = 2,       [SDMA_POLL_REGMEM] = 6, [SDMA_ATOMIC] = 8,
		[SDMA_CONST_FILL] = 5, [SDMA_TIMESTAMP] = 3,   [SDMA_SRBM_WRITE] = 3,
	};
	u32 p[SDMA_HEAD] = {}, op;

	/* Nobody keeps the user from changing it meanwhile. */
	memcpy(p, packet, min(left, SDMA_HEAD) * sizeof(*p));
	op = p[0] & 0xff;
	if (left < least[op])
		return -EINVAL;
	switch (op) {
	case SDMA_NOP:
		return (p[0] >> 16 & 0x3fff) + 1;
	case SDMA_COPY:
		return sg_copy(slot, p);
	case SDMA_WRITE:
		return sg_write(slot, p, packet + 4, left);
	case SDMA_FENCE:
		return sg_fence(slot, p);
	case SDMA_TRAP:
		return sg_trap(slot, p);
	case SDMA_POLL_REGMEM:
		return sg_poll(slot, p);
	case SDMA_ATOMIC:
		return sg_atomic(slot, p);
	case SDMA_CONST_FILL:
		return sg_fill(slot, p);
	case SDMA_TIMESTAMP:
		return sg_timestamp(slot, p);
	case SDMA_SRBM_WRITE:
		return 3;
	default:
		return -EINVAL;
	}
}

void sg_sdma_step(struct sg_slot *slot, u64 now)
{
	const struct v9_sdma_mqd *m = slot->sdma;
	u64 ring = 4ULL << (m->sdmax_rlcx_rb_cntl >> 1 & 0x1f);
	u32 *packets = sg_reach(slot, sg_u64(m->sdmax_rlcx_rb_base, m->sdmax_rlcx_rb_base_hi) << 8, ring);
	u64 *rptr = sg_reach(slot, sg_u64(m->sdmax_rlcx_rb_rptr_addr_lo, m->sdmax_rlcx_rb_rptr_addr_hi), 8);

	if (!packets || !rptr || slot->wptr - slot->rptr > ring) {
		slot->halted = true;
		return;
	}
	while (slot->rptr != slot->wptr && slot->step_left > SDMA_PACKET_BYTES) {
		u64 at = slot->rptr % ring, left = min(slot->wptr - slot->rptr, ring - at);
		int n = left < 4 ? -EINVAL : sg_sdma_packet(slot, &packets[at / 4], left / 4);

		if (!n)
			return;
		slot->step_left -= min(slot->step_left, SDMA_PACKET_BYTES);
		if (n < 0 || n * 4 > left) {
			slot->halted = true;
			return;
		}
		slot->sg->stats.sdma_packets++;
		slot->done = 0;
		slot->rptr += n * 4;
		smp_store_release(rptr, slot->rptr);
	}
}
