// SPDX-License-Identifier: GPL-2.0
/*
 * AQL queues (HSA Platform System Architecture, 2.9).  Packets are taken in order, one at a
 * time: as if every packet had its barrier bit set.  A step takes so many and no more, those included that it
 * takes when a dispatch ends: the command processor has others to serve.
 */
#include "softgpu.h"

#define AQL_WAVE 64 /* work-items */
#define AQL_MAX_WORKGROUP 1024
#define AQL_PACKET_COST 512u /* of SG_STEP */

enum { AQL_VENDOR, AQL_INVALID, AQL_DISPATCH, AQL_BARRIER_AND, AQL_AGENT, AQL_BARRIER_OR };

struct aql_dispatch {
	u16 header, setup;
	u16 workgroup[3], reserved0;
	u32 grid[3];
	u32 private_size, group_size;
	u64 kernel_object, kernarg;
	u64 wave_ns; /* reserved2: uapi.h */
	u64 completion_signal;
};

struct aql_barrier {
	u16 header, reserved0;
	u32 reserved1;
	u64 signals[5];
	u64 reserved2;
	u64 completion_signal;
};

/* The runtime's signal object, as far as a packet processor knows it. */
struct hsa_signal {
	s64 kind, value;
	u64 event_mailbox;
	u32 event_id, reserved;
	u64 start_ts, end_ts;
};

static void *sg_packet(struct sg_slot *slot)
{
	u32 ring = 4 << ((slot->mqd->cp_hqd_pq_control & CP_HQD_PQ_CONTROL__QUEUE_SIZE_MASK) + 1);
	u64 base = sg_u64(slot->mqd->cp_hqd_pq_base_lo, slot->mqd->cp_hqd_pq_base_hi) << 8;

	return sg_at(slot, base + slot->rptr * SG_AQL_PACKET % ring, SG_AQL_PACKET);
}

static u64 sg_groups(const struct aql_dispatch *p, int i)
{
	return DIV_ROUND_UP(max(p->grid[i], 1u), max_t(u32, p->workgroup[i], 1));
}

int sg_aql_dispatch(struct sg_slot *slot, struct gpm_dispatch *ret)
{
	const struct aql_dispatch *p = (const void *)slot->packet;
	u64 groups, items;

	if ((p->header & 0xff) != AQL_DISPATCH)
		return -EINVAL;
	groups = sg_groups(p, 0) * sg_groups(p, 1);
	if (groups > U32_MAX)
		return -EINVAL;
	groups *= sg_groups(p, 2);
	items = (u64)max_t(u32, p->workgroup[0], 1) * max_t(u32, p->workgroup[1], 1) *
		max_t(u32, p->workgroup[2], 1);
	if (groups > U32_MAX || items > AQL_MAX_WORKGROUP)
		return -EINVAL;
	*ret = (struct gpm_dispatch){ .wave_ns = p->wave_ns ? p->wave_ns : SOFTGPU_DEFAULT_WAVE_NS,
				      .workgroups = groups,
				      .waves_per_wg = DIV_ROUND_UP(items, AQL_WAVE) };
	return 0;
}

static void sg_signal(struct sg_slot *slot, u64 addr, u64 now)
{
	struct hsa_signal *s = sg_at(slot, addr, sizeof(*s));
	u64 *mailbox;

	if (!s)
		return;
	s->start_ts = sg_told(slot->sg, slot->started_ns) / 10; /* the GPU's clock: 100 MHz */
	s->end_ts = sg_told(slot->sg, now) / 10;
	atomic64_dec_return_release((atomic64_t *)&s->value);
	slot->sg->stats.signals++;
	if (!s->event_mailbox)
		return;
	mailbox = sg_at(slot, s->event_mailbox, sizeof(*mailbox));
	if (mailbox)
		WRITE_ONCE(*mailbox, s->event_id);
	sg_interrupt(slot, SOC15_IH_CLIENTID_GRBM_CP, SOC15_INTSRC_CP_END_OF_PIPE, s->event_id);
}

/* The packet's place in the ring is the writer's again. */
static void sg_retire(struct sg_slot *slot, u16 *header)
{
	u64 addr = sg_u64(slot->mqd->cp_hqd_pq_rptr_report_addr_lo, slot->mqd->cp_hqd_pq_rptr_report_addr_hi);
	u64 *rptr = sg_at(slot, addr, sizeof(*rptr));

	WRITE_ONCE(*header, AQL_INVALID);
	slot->rptr++;
	if (rptr)
		smp_store_release(rptr, slot->rptr);
}

int sg_aql_make(struct sg_slot *slot, const u32 groups[3], const u32 items[3], u64 wave_ns)
{
	struct aql_dispatch *p = (void *)slot->packet;
	u32 i;

	*p = (struct aql_dispatch){ .header = AQL_DISPATCH, .wave_ns = wave_ns };
	for (i = 0; i < 3; i++) {
		if (!groups[i] || !items[i] || items[i] > AQL_MAX_WORKGROUP || groups[i] > U32_MAX / items[i])
			return -EINVAL;
		p->workgroup[i] = items[i];
		p->grid[i] = groups[i] * items[i];
	}
	return 0;
}

int sg_aql_start(struct sg_slot *slot, u64 now)
{
	struct gpm_dispatch dispatch;

	slot->started_ns = now;
	slot->sg->stats.dispatches++;
	if (sg_aql_dispatch(slot, &dispatch))
		return -EINVAL;
	return gpm_exec_dispatch(&slot->sg->exec, &slot->ctx, &dispatch, now) ? -EINVAL : 0;
}

/* As hardware does, the packet is kept: its place may be another's before it ends. */
static void sg_begin(struct sg_slot *slot, struct aql_dispatch *p, u64 now)
{
	memcpy(slot->packet, p, sizeof(slot->packet));
	if (sg_aql_start(slot, now)) {
		slot->halted = true;
		return;
	}
	slot->is_retired = slot->sg->faults.early_rptr;
	if (slot->is_retired)
		sg_retire(slot, &p->header);
}

/* Whoever waits is told. header: NULL if the packet is retired. */
static void sg_end(struct sg_slot *slot, u16 *header, u64 completion_signal, u64 now)
{
	if (header)
		sg_retire(slot, header);
	if (completion_signal)
		sg_signal(slot, completion_signal, now);
}

static bool sg_is_zero(struct sg_slot *slot, u64 addr)
{
	struct hsa_signal *s = sg_at(slot, addr, sizeof(*s));

	return s && !READ_ONCE(s->value);
}

/* AND: all signals it names are 0; OR: one is. None named: both hold. */
static bool sg_barrier_holds(struct sg_slot *slot, const struct aql_barrier *p, bool all)
{
	u32 i, named = 0, zero = 0;

	for (i = 0; i < ARRAY_SIZE(p->signals); i++) {
		if (!p->signals[i])
			continue;
		named++;
		zero += sg_is_zero(slot, p->signals[i]);
	}
	return all ? zero == named : zero || !named;
}

/* Returns whether the next packet may be looked at. */
static bool sg_take(struct sg_slot *slot, void *packet, u16 type, u64 now)
{
	struct aql_barrier *barrier = packet;

	switch (type) {
	case AQL_DISPATCH:
		sg_begin(slot, packet, now);
		return false;
	case AQL_BARRIER_AND:
	case AQL_BARRIER_OR:
		if (!sg_barrier_holds(slot, barrier, type == AQL_BARRIER_AND))
			return false;
		slot->sg->stats.barriers++;
		slot->started_ns = now;
		sg_end(slot, &barrier->header, barrier->completion_signal, now);
		return true;
	case AQL_INVALID:
		return false; /* it is being written */
	default:
		slot->halted = true;
		return false;
	}
}

void sg_aql_step(struct sg_slot *slot, u64 now)
{
	while (!slot->ctx.busy && !slot->halted && slot->rptr != slot->wptr && slot->step_left) {
		u16 *header = sg_packet(slot);

		slot->step_left -= min(slot->step_left, AQL_PACKET_COST);
		if (!header) {
			slot->halted = true;
			return;
		}
		if (!sg_take(slot, header, smp_load_acquire(header) & 0xff, now))
			return;
	}
}

void sg_aql_kernel_ended(struct sg_slot *slot, u64 now)
{
	const struct aql_dispatch *p = (const void *)slot->packet;
	u16 *header;

	down_read(&slot->entry->vm->lock);
	header = slot->is_retired ? NULL : sg_packet(slot);
	if (!header && !slot->is_retired)
		slot->halted = true; /* its ring is gone: the packet would be taken twice when it is back */
	else
		sg_end(slot, header, p->completion_signal, now);
	slot->is_retired = false;
	sg_aql_step(slot, now);
	up_read(&slot->entry->vm->lock);
}
