// SPDX-License-Identifier: GPL-2.0
/*
 * The command processor: one thread per device.  It reads the HIQ as firmware would,
 * keeps the run list, maps its queues to hardware slots, turn about if there are more
 * than slots, and lets the model say when work ends.
 *
 * It looks at doorbells and rings; nothing wakes it.  Work ends at the model's time,
 * even when the thread comes late.  If it comes very late, the machine stood still, and
 * the GPU with it.
 */
#include <linux/delay.h>

#include "cost.h"
#include "softgpu.h"

#define SG_POLL_IDLE_US 100
#define SG_STOOD_STILL_NS (50 * NSEC_PER_MSEC) /* no thread waits so long in a machine that has a CPU */
#define SG_FIRST_VMID 3
#define SG_NOT_RUNG (~0ull)
#define SG_RING_NOT_PRESENT 8 /* of a page fault, in the ring id of its interrupt */

static unsigned int poll_us = 20;
module_param(poll_us, uint, 0444);
MODULE_PARM_DESC(poll_us, "how often the command processor looks, while a queue is mapped");

/*
 * The model's time.  Programs that the host keeps from running must not find that the GPU went on without
 * them: no more than this counts of the time since somebody looked.
 */
u64 sg_now(struct softgpu *sg)
{
	u64 now, passed;

	spin_lock(&sg->clock_lock);
	passed = ktime_get_ns() - sg->stood_still_ns - sg->now_ns;
	if (passed > SG_STOOD_STILL_NS) {
		sg->stood_still_ns += passed - SG_STOOD_STILL_NS;
		passed = SG_STOOD_STILL_NS;
	}
	sg->now_ns += passed;
	now = sg->now_ns;
	spin_unlock(&sg->clock_lock);
	return now;
}

/* What a program is told: the machine's time.  Of work that stood still it has begun so much later. */
u64 sg_told(struct softgpu *sg, u64 at)
{
	u64 told;

	spin_lock(&sg->clock_lock);
	told = at + sg->stood_still_ns;
	spin_unlock(&sg->clock_lock);
	return told;
}

static void sg_deliver(struct softgpu *sg, const u32 entry[8])
{
	if (sg->faults.lost_irqs) {
		sg->faults.lost_irqs--;
		return;
	}
	sg->stats.interrupts++;
	kgd2kfd_interrupt(sg->adev.kfd.dev, entry);
}

void sg_interrupt(struct sg_slot *slot, u32 client, u32 source, u32 context)
{
	u32 entry[8] = { client | source << 8 | slot->entry->vmid << 24, 0, 0, slot->entry->pasid, context };

	sg_deliver(slot->sg, entry);
}

/* As the memory hub reports it: the page is in the context words. */
void sg_page_fault(struct sg_slot *slot, u64 addr)
{
	u32 entry[8] = { SOC15_IH_CLIENTID_VMC | SG_RING_NOT_PRESENT << 16 | slot->entry->vmid << 24,
			 0,
			 0,
			 slot->entry->pasid,
			 lower_32_bits(addr >> PAGE_SHIFT),
			 upper_32_bits(addr >> PAGE_SHIFT) & 0xf };

	sg_deliver(slot->sg, entry);
}

void *sg_reach(struct sg_slot *slot, u64 addr, size_t size)
{
	void *cpu = sg_at(slot, addr, size);

	if (!cpu)
		sg_page_fault(slot, sg_vm_first_hole(slot->entry->vm, addr));
	return cpu;
}

bool sg_compare(u32 func, u32 value, u32 reference)
{
	switch (func) {
	case 0:
		return true;
	case 1:
		return value < reference;
	case 2:
		return value <= reference;
	case 3:
		return value == reference;
	case 4:
		return value != reference;
	case 5:
		return value >= reference;
	default:
		return value > reference;
	}
}

static void sg_count_busy(struct softgpu *sg, u64 now)
{
	bool busy = sg->exec.free < gpm_wave_slots(&sg->model);

	if (sg->busy_since_ns)
		sg->stats.busy_ns += now - sg->busy_since_ns;
	sg->busy_since_ns = busy ? now : 0;
}

/* Slots */

static bool sg_slot_is_usable(struct softgpu *sg, u32 i)
{
	return !sg->slots[i].entry && (sg->queue_mask >> i & 1);
}

static struct sg_slot *sg_free_slot(struct softgpu *sg, const struct sg_entry *e)
{
	struct sg_slot *engine = &sg->sdma[e->sdma_engine % SG_SDMA_ENGINES * SG_SDMA_QUEUES];
	u32 i;

	for (i = 0; e->is_sdma && i < SG_SDMA_QUEUES; i++)
		if (!engine[i].entry)
			return &engine[i];
	for (i = 0; !e->is_sdma && i < SG_SLOTS; i++)
		if (sg_slot_is_usable(sg, i))
			return &sg->slots[i];
	return NULL;
}

/*
 * Doorbells are memory here, and a write of the value that is there already is a ring, too: a queue made
 * where another was often rings what that one rang last.  So what was seen is replaced by what nobody rings.
 */
static bool sg_take_ring(struct sg_slot *slot, u64 *ret_value)
{
	u64 *doorbell = slot->sg->doorbells + slot->entry->doorbell * sizeof(u32);

	if (READ_ONCE(*doorbell) == SG_NOT_RUNG)
		return false;
	*ret_value = xchg(doorbell, SG_NOT_RUNG);
	return true;
}

/* How far the packet at the read pointer is done. amdkfd leaves these words of the MQDs alone. */
static void sg_load_place(struct sg_slot *slot)
{
	if (slot->sdma) {
		slot->done = slot->sdma->sdmax_rlcx_ib_sub_remain;
	} else {
		slot->ib_at[0] = slot->mqd->cp_hqd_ib_rptr;
		slot->ib_at[1] = slot->mqd->cp_hqd_iq_rptr;
	}
}

static void sg_keep_place(struct sg_slot *slot)
{
	if (slot->sdma) {
		slot->sdma->sdmax_rlcx_ib_sub_remain = slot->done;
	} else {
		slot->mqd->cp_hqd_ib_rptr = slot->ib_at[0];
		slot->mqd->cp_hqd_iq_rptr = slot->ib_at[1];
	}
}

/* Where the reading goes on: the MQD keeps 32 bits of it, and the writer is never so far ahead. */
static void sg_load_pointers(struct sg_slot *slot)
{
	struct sg_entry *e = slot->entry;
	u64 *wptr, rung;

	sg_take_ring(slot, &rung); /* first: a ring that comes after the pointer was read must be seen */
	down_read(&e->vm->lock);
	wptr = sg_vm_to_cpu(slot->sg, e->vm, e->wptr_addr, sizeof(*wptr));
	slot->wptr = wptr ? READ_ONCE(*wptr) : 0;
	slot->halted = !wptr || (slot->mqd && slot->mqd->cp_hqd_error);
	up_read(&e->vm->lock);
	slot->rptr = e->is_sdma ? sg_u64(slot->sdma->sdmax_rlcx_rb_rptr, slot->sdma->sdmax_rlcx_rb_rptr_hi)
				: slot->wptr - (u32)((u32)slot->wptr - slot->mqd->cp_hqd_pq_rptr);
	sg_load_place(slot);
}

/* Wave slots that are not the queue's, by its mask of compute units. */
static u32 sg_denied(struct sg_slot *slot)
{
	const struct amdgpu_cu_info *info = &slot->sg->adev.gfx.cu_info;
	u32 xcc, se, cus = 0;

	for (xcc = 0; xcc < slot->sg->xccs; xcc++) {
		const struct v9_mqd *m = sg_xcc_mqd(slot, xcc);
		u32 masks[] = { m->compute_static_thread_mgmt_se0, m->compute_static_thread_mgmt_se1,
				m->compute_static_thread_mgmt_se2, m->compute_static_thread_mgmt_se3 };

		for (se = 0; se < ARRAY_SIZE(masks); se++)
			cus += hweight32(masks[se] & info->bitmap[xcc][se][0]);
	}
	return (info->number - cus) * slot->sg->model.waves_per_cu;
}

static bool sg_map(struct softgpu *sg, struct sg_entry *e, u64 now)
{
	struct sg_slot *slot = sg_free_slot(sg, e);
	size_t size = e->is_sdma ? sizeof(struct v9_sdma_mqd) : sizeof(struct v9_mqd);
	void *mqd = slot ? sg_gart_to_cpu(sg, e->mqd_addr, size) : NULL;

	if (!mqd || !e->vm)
		return false;
	memset(slot, 0, sizeof(*slot));
	slot->sg = sg;
	slot->entry = e;
	slot->mqd = e->is_sdma ? NULL : mqd;
	slot->sdma = e->is_sdma ? mqd : NULL;
	e->is_mapped = true;
	sg_load_pointers(slot);
	if (e->is_sdma)
		return true;
	slot->is_aql = slot->mqd->cp_hqd_aql_control;
	slot->ctx.priority = slot->mqd->cp_hqd_queue_priority;
	slot->ctx.denied = sg_denied(slot);
	slot->mqd->cp_hqd_active = 1;
	sg_restore(slot, now);
	return true;
}

void sg_charge(struct sg_slot *slot, u64 now)
{
	struct xarray *all = &slot->sg->wave_ns;
	void *had = xa_load(all, slot->entry->pasid);
	u64 work = gpm_exec_work(&slot->ctx, now), more = work - slot->charged_wave_ns;

	slot->charged_wave_ns = work;
	/* No memory: that much is not counted. */
	xa_store(all, slot->entry->pasid, xa_mk_value((had ? xa_to_value(had) : 0) + more), GFP_KERNEL);
}

void sg_charge_anew(struct softgpu *sg, u32 pasid)
{
	mutex_lock(&sg->lock);
	xa_erase(&sg->wave_ns, pasid);
	mutex_unlock(&sg->lock);
}

/* What the queue is to go on with stands in its MQD. cp_hqd_error is the CP's own: amdkfd never reads it. */
static u64 sg_unmap(struct sg_slot *slot, u64 now)
{
	u64 waves = 0;

	sg_keep_place(slot);
	if (slot->sdma) {
		slot->sdma->sdmax_rlcx_rb_rptr = lower_32_bits(slot->rptr);
		slot->sdma->sdmax_rlcx_rb_rptr_hi = upper_32_bits(slot->rptr);
	} else {
		waves = sg_save(slot, now);
		slot->mqd->cp_hqd_pq_rptr = lower_32_bits(slot->rptr);
		slot->mqd->cp_hqd_active = 0;
		slot->mqd->cp_hqd_error = slot->halted;
		sg_charge(slot, now);
	}
	slot->entry->is_mapped = false;
	slot->entry = NULL;
	return waves;
}

/* Off the hardware with nothing saved: what ran there is lost. */
static void sg_drop(struct sg_slot *slot, u64 now)
{
	gpm_exec_stop(&slot->sg->exec, &slot->ctx, now);
	gpm_exec_release(&slot->sg->exec, &slot->ctx, now);
	if (slot->mqd)
		sg_charge(slot, now);
	slot->entry->is_mapped = false;
	slot->entry = NULL;
}

/* Which queues an UNMAP_QUEUES is about. */
static bool sg_is_meant(const struct sg_slot *slot, const struct pm4_mes_unmap_queues *p)
{
	if (!slot->entry)
		return false;
	switch (p->bitfields2.queue_sel) {
	case queue_sel__mes_unmap_queues__perform_request_on_pasid_queues:
		return slot->entry->pasid == p->bitfields3a.pasid;
	case queue_sel__mes_unmap_queues__unmap_all_non_static_queues:
		return !slot->entry->is_static;
	default:
		return true;
	}
}

/* A queue that does not let go names itself in the HIQ's MQD and stays where it is: amdkfd looks there. */
static bool sg_refuses(struct softgpu *sg, struct sg_slot *slot)
{
	if (!sg->faults.no_preempt || !slot->mqd || !slot->ctx.busy)
		return false;
	sg->hiq->queue_doorbell_id0 = slot->entry->doorbell;
	return true;
}

static u32 sg_unmap_meant(struct softgpu *sg, const struct pm4_mes_unmap_queues *p, u64 now)
{
	u64 waves = 0;
	u32 i, n = 0;

	for (i = 0; i < SG_SLOTS + SG_SDMA_SLOTS; i++) {
		struct sg_slot *slot = i < SG_SLOTS ? &sg->slots[i] : &sg->sdma[i - SG_SLOTS];

		if ((p && !sg_is_meant(slot, p)) || !slot->entry || sg_refuses(sg, slot))
			continue;
		waves += sg_unmap(slot, now);
		n++;
	}
	/* What follows in the HIQ waits until the waves are in memory. */
	sg->ready_ns = now + sg->model.unmap_ns + gpm_save_ns(&sg->model, waves) + sg->faults.slow_save_ns;
	return n;
}

/* The run list */

static void sg_put_entries(struct sg_entry *entries, u32 n)
{
	while (n--)
		sg_vm_put(entries[n].vm);
}

static void sg_forget_run_list(struct softgpu *sg)
{
	sg_put_entries(sg->run_list, sg->nentries);
	sg->nentries = 0;
	sg->next_entry = 0;
	sg->quantum_ns = GPM_NEVER;
}

static bool sg_any_mapped(const struct softgpu *sg)
{
	u32 i;

	for (i = 0; i < sg->nentries; i++)
		if (sg->run_list[i].is_mapped)
			return true;
	return false;
}

/* Whether one more process fits beside those that are mapped. */
static bool sg_process_fits(struct softgpu *sg, const struct sg_entry *e)
{
	u32 i, n = 0, seen = 0;

	for (i = 0; i < sg->nentries; i++) {
		if (!sg->run_list[i].is_mapped || sg->run_list[i].pasid == seen)
			continue;
		seen = sg->run_list[i].pasid;
		if (seen == e->pasid)
			return true;
		n++; /* entries of a process stand together */
	}
	return n < sg->process_cnt;
}

/* Maps from where the last turn ended, as many as there is room for. */
static void sg_map_run_list(struct softgpu *sg, u64 now)
{
	u32 i, first = sg->next_entry;

	sg->quantum_ns = GPM_NEVER;
	for (i = 0; i < sg->nentries; i++) {
		struct sg_entry *e = &sg->run_list[(first + i) % sg->nentries];

		if (e->is_mapped || (sg_process_fits(sg, e) && sg_map(sg, e, now)))
			continue;
		if (sg->quantum_ns == GPM_NEVER)
			sg->next_entry = (first + i) % sg->nentries;
		sg->quantum_ns = now + sg->model.quantum_ns;
	}
}

static void sg_turn(struct softgpu *sg, u64 now)
{
	sg->stats.quanta++;
	sg_unmap_meant(sg, NULL, now);
	sg_map_run_list(sg, now);
}

static void sg_add_process(struct softgpu *sg, const struct pm4_mes_map_process_aldebaran *p,
			   struct sg_entry *proto, u32 number)
{
	u64 pd = sg_u64(p->vm_context_page_table_base_addr_lo32, p->vm_context_page_table_base_addr_hi32);

	sg->stats.map_process++;
	if (proto->vm)
		sg_vm_put(proto->vm);
	*proto = (struct sg_entry){ .vm = sg_vm_get_by_cookie(pd >> 12),
				    .pasid = p->bitfields2.pasid,
				    .vmid = SG_FIRST_VMID + number % 13 };
}

static void sg_add_queue(struct softgpu *sg, const struct pm4_mes_map_queues *p, const struct sg_entry *proto)
{
	struct sg_entry *e = &sg->run_list[sg->nentries];
	u32 extended = p->bitfields2.extended_engine_sel, engine = p->bitfields2.engine_sel;

	sg->stats.map_queues++;
	if (sg->nentries == SG_RUN_LIST || !proto->vm)
		return;
	*e = *proto;
	kref_get(&e->vm->refs);
	e->mqd_addr = sg_u64(p->mqd_addr_lo, p->mqd_addr_hi);
	e->wptr_addr = sg_u64(p->wptr_addr_lo, p->wptr_addr_hi);
	e->doorbell = p->bitfields3.doorbell_offset;
	e->is_static = p->bitfields2.queue_type == queue_type__mes_map_queues__normal_latency_static_queue_vi;
	if (extended == extended_engine_sel__mes_map_queues__legacy_engine_sel) {
		e->is_sdma = engine >= engine_sel__mes_map_queues__sdma0_vi;
		e->sdma_engine = engine - engine_sel__mes_map_queues__sdma0_vi;
	} else {
		e->is_sdma = true;
		e->sdma_engine = engine;
		if (extended == extended_engine_sel__mes_map_queues__sdma8_to_15_sel)
			e->sdma_engine += 8;
	}
	sg->nentries++;
}

/* The chain at the end of an over-subscribed list leads back to its beginning: that is what turns are. */
static void sg_read_run_list(struct softgpu *sg, const u32 *ib, u32 ndw)
{
	struct sg_entry proto = {};
	u32 i = 0, processes = 0;

	while (i < ndw) {
		union PM4_MES_TYPE_3_HEADER h = { .u32All = ib[i] };

		if (h.type != 3 || h.opcode == IT_RUN_LIST || i + h.count + 2 > ndw)
			break;
		if (h.opcode == IT_MAP_PROCESS)
			sg_add_process(sg, (const void *)&ib[i], &proto, processes++);
		else if (h.opcode == IT_MAP_QUEUES)
			sg_add_queue(sg, (const void *)&ib[i], &proto);
		i += h.count + 2;
	}
	if (proto.vm)
		sg_vm_put(proto.vm);
}

static struct sg_entry *sg_find_entry(struct softgpu *sg, u64 mqd_addr)
{
	u32 i;

	for (i = 0; i < sg->nentries; i++)
		if (sg->run_list[i].mqd_addr == mqd_addr)
			return &sg->run_list[i];
	return NULL;
}

/* A static queue stays mapped over a new run list, if it is in that, too. */
static void sg_carry_over(struct softgpu *sg, u64 now)
{
	u32 i;

	for (i = 0; i < SG_SLOTS + SG_SDMA_SLOTS; i++) {
		struct sg_slot *slot = i < SG_SLOTS ? &sg->slots[i] : &sg->sdma[i - SG_SLOTS];
		struct sg_entry *e = slot->entry ? sg_find_entry(sg, slot->entry->mqd_addr) : NULL;

		if (e) {
			e->is_mapped = true;
			slot->entry = e;
		} else if (slot->entry) {
			sg_unmap(slot, now);
		}
	}
}

static void sg_run_list(struct softgpu *sg, const struct pm4_mes_runlist *p, u64 now)
{
	struct sg_entry *old = sg->run_list;
	u32 nold = sg->nentries;
	u64 addr = sg_u64(p->ordinal2 & ~3u, p->ib_base_hi);
	u32 ndw = p->bitfields4.ib_size;
	u32 *ib = sg_gart_to_cpu(sg, addr, ndw * sizeof(u32));

	sg->stats.runlist++;
	if (sg->off_since_ns)
		sg->stats.off_ns += now - sg->off_since_ns;
	sg->off_since_ns = 0;
	if (!ib)
		return;
	sg->run_list = sg->spare_list;
	sg->spare_list = old;
	sg->nentries = 0;
	sg->next_entry = 0;
	sg->process_cnt = p->bitfields4.process_cnt;
	sg_read_run_list(sg, ib, ndw);
	sg_carry_over(sg, now);
	sg_put_entries(old, nold);
	sg_map_run_list(sg, now);
}

/* The HIQ */

static void sg_query_status(struct softgpu *sg, const struct pm4_mes_query_status *p)
{
	u64 *fence = sg_gart_to_cpu(sg, sg_u64(p->addr_lo, p->addr_hi), sizeof(*fence));

	sg->stats.query_status++;
	if (fence)
		smp_store_release(fence, sg_u64(p->data_lo, p->data_hi));
}

static void sg_hiq_packet(struct softgpu *sg, const u32 *packet, u32 opcode, u64 now)
{
	const struct pm4_mes_set_resources *resources = (const void *)packet;

	switch (opcode) {
	case IT_SET_RESOURCES:
		sg->stats.set_resources++;
		sg->queue_mask = sg_u64(resources->queue_mask_lo, resources->queue_mask_hi);
		break;
	case IT_RUN_LIST:
		sg_run_list(sg, (const void *)packet, now);
		break;
	case IT_UNMAP_QUEUES:
		sg->stats.unmap++;
		if (sg_unmap_meant(sg, (const void *)packet, now)) {
			sg->stats.cycles++;
			sg->off_since_ns = now;
		}
		sg->quantum_ns = GPM_NEVER; /* the next run list says what comes */
		if (!sg_any_mapped(sg))
			sg_forget_run_list(sg);
		break;
	case IT_QUERY_STATUS:
		sg_query_status(sg, (const void *)packet);
		break;
	case IT_WRITE_DATA:
		sg->stats.write_data++;
		sg->iq_wait_time = packet[4];
		break;
	case IT_NOP:
		break;
	default:
		dev_warn_ratelimited(sg->adev.dev, "HIQ packet 0x%x is not one that firmware knows\n",
				     opcode);
	}
}

static u64 *sg_hiq_wptr(struct softgpu *sg)
{
	struct v9_mqd *m = sg->hiq;

	return sg_gart_to_cpu(sg, sg_u64(m->cp_hqd_pq_wptr_poll_addr_lo, m->cp_hqd_pq_wptr_poll_addr_hi), 8);
}

u64 sg_hiq_unread(struct softgpu *sg)
{
	u64 *wptr = sg->hiq ? sg_hiq_wptr(sg) : NULL;

	return wptr ? smp_load_acquire(wptr) - sg->hiq_rptr : 0;
}

static void sg_hiq_step(struct softgpu *sg, u64 now)
{
	struct v9_mqd *m = sg->hiq;
	u32 ndw = 1 << ((m->cp_hqd_pq_control & CP_HQD_PQ_CONTROL__QUEUE_SIZE_MASK) + 1);
	u32 *ring = sg_gart_to_cpu(sg, sg_u64(m->cp_hqd_pq_base_lo, m->cp_hqd_pq_base_hi) << 8, ndw * 4);
	u64 *wptr = sg_hiq_wptr(sg);
	u32 *rptr = sg_gart_to_cpu(
		sg, sg_u64(m->cp_hqd_pq_rptr_report_addr_lo, m->cp_hqd_pq_rptr_report_addr_hi), 4);

	if (!ring || !wptr || !rptr || sg->faults.hung_hiq)
		return;
	while (now >= sg->ready_ns && sg->hiq_rptr != smp_load_acquire(wptr)) {
		union PM4_MES_TYPE_3_HEADER h = { .u32All = ring[sg->hiq_rptr % ndw] };

		sg_hiq_packet(sg, &ring[sg->hiq_rptr % ndw], h.opcode, now);
		/* amdkfd pads the ring's end with NOPs of one dword each. */
		sg->hiq_rptr += h.opcode == IT_NOP ? 1 : h.count + 2;
		WRITE_ONCE(*rptr, sg->hiq_rptr % ndw);
	}
}

int sg_hiq_load(struct softgpu *sg, struct v9_mqd *mqd)
{
	mutex_lock(&sg->lock);
	sg->hiq = mqd;
	sg->hiq_rptr = 0;
	mutex_unlock(&sg->lock);
	return 0;
}

/* Takes off whatever stands on this memory; any, if start is NULL. */
static void sg_drop_on(struct softgpu *sg, const void *start, size_t size)
{
	u64 now = sg_now(sg);
	u32 i;

	for (i = 0; i < SG_SLOTS + SG_SDMA_SLOTS; i++) {
		struct sg_slot *slot = i < SG_SLOTS ? &sg->slots[i] : &sg->sdma[i - SG_SLOTS];
		const void *mqd = slot->sdma ? (void *)slot->sdma : (void *)slot->mqd;

		if (slot->entry && (!start || (mqd >= start && mqd < start + size)))
			sg_drop(slot, now);
	}
}

void sg_hiq_unload(struct softgpu *sg)
{
	mutex_lock(&sg->lock);
	sg->hiq = NULL;
	sg_drop_on(sg, NULL, 0);
	sg_forget_run_list(sg);
	mutex_unlock(&sg->lock);
}

/* As after power-up, faults included. The driver loads the HIQ anew. */
void sg_cp_reset(struct softgpu *sg)
{
	mutex_lock(&sg->lock);
	sg->hiq = NULL;
	sg->queue_mask = 0;
	sg->ready_ns = 0;
	sg->faults = (struct sg_faults){};
	sg_drop_on(sg, NULL, 0);
	sg_forget_run_list(sg);
	mutex_unlock(&sg->lock);
}

/* amdkfd frees a queue that would not let go, too: hardware would go on with memory that is no longer its
 * own. */
void sg_cp_memory_gone(struct softgpu *sg, const void *start, size_t size)
{
	mutex_lock(&sg->lock);
	sg_drop_on(sg, start, size);
	mutex_unlock(&sg->lock);
}

/* User queues */

void sg_packets_at(struct sg_slot *slot, u64 now)
{
	struct sg_vm *vm = slot->entry->vm;

	if (slot->halted)
		return;
	down_read(&vm->lock);
	if (slot->sdma)
		sg_sdma_step(slot, now);
	else if (slot->is_aql)
		sg_aql_step(slot, now);
	else
		sg_pm4_step(slot, now);
	up_read(&vm->lock);
}

/* A ring of the doorbell is what makes the command processor look at the write pointer. */
static void sg_look_at_doorbell(struct sg_slot *slot)
{
	struct sg_entry *e = slot->entry;
	u64 *wptr, rung;

	if (!sg_take_ring(slot, &rung))
		return;
	if (e->is_sdma) {
		slot->wptr = rung; /* SDMA's doorbell is the write pointer */
		return;
	}
	down_read(&e->vm->lock);
	wptr = sg_vm_to_cpu(slot->sg, e->vm, e->wptr_addr, sizeof(*wptr));
	if (wptr)
		slot->wptr = smp_load_acquire(wptr);
	up_read(&e->vm->lock);
}

/* Returns whether anything is mapped. */
static bool sg_look_at_doorbells(struct sg_slot *slots, u32 n)
{
	bool any = false;
	u32 i;

	for (i = 0; i < n; i++) {
		if (!slots[i].entry)
			continue;
		any = true;
		slots[i].step_left = SG_STEP;
		sg_look_at_doorbell(&slots[i]);
	}
	return any;
}

static void sg_step_slots(struct sg_slot *slots, u32 n, u64 now)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (slots[i].entry && slots[i].rptr != slots[i].wptr)
			sg_packets_at(&slots[i], now);
}

static void sg_kernel_ended(struct sg_slot *slot, u64 at)
{
	if (slot->is_aql)
		sg_aql_kernel_ended(slot, at);
	else
		sg_pm4_kernel_ended(slot, at);
}

/*
 * Lets the model go on to now, kernel by kernel: the next one starts when the last one ended, as long as its
 * queue has something left of the step.
 */
static void sg_advance(struct softgpu *sg, u64 now)
{
	while (sg->exec.next_ns <= now) {
		u64 at = sg->exec.next_ns;
		struct gpm_ctx *ctx;

		gpm_exec_step(&sg->exec, at);
		while ((ctx = gpm_exec_ended(&sg->exec)))
			sg_kernel_ended(container_of(ctx, struct sg_slot, ctx), at);
		sg_count_busy(sg, at);
	}
}

/*
 * Returns whether anything is mapped.  The clock is read again when the rings are known: no work begins
 * before it was rung for.
 */
static bool sg_step(struct softgpu *sg)
{
	u64 now = sg_now(sg);
	bool any;

	sg_advance(sg, now);
	if (sg->hiq)
		sg_hiq_step(sg, now);
	if (sg->quantum_ns <= now)
		sg_turn(sg, now);
	any = sg_look_at_doorbells(sg->slots, SG_SLOTS);
	any |= sg_look_at_doorbells(sg->sdma, SG_SDMA_SLOTS);
	now = sg_now(sg);
	sg_advance(sg, now);
	sg_step_slots(sg->slots, SG_SLOTS, now);
	sg_step_slots(sg->sdma, SG_SDMA_SLOTS, now);
	sg_advance(sg, now);
	return any;
}

static int sg_thread(void *data)
{
	struct softgpu *sg = data;
	bool busy;

	while (!kthread_should_stop()) {
		mutex_lock(&sg->lock);
		busy = sg_step(sg);
		mutex_unlock(&sg->lock);
		if (busy)
			usleep_range(poll_us, 2 * poll_us);
		else
			usleep_range(SG_POLL_IDLE_US, 2 * SG_POLL_IDLE_US);
	}
	return 0;
}

static void sg_free_run_lists(struct softgpu *sg)
{
	kvfree(sg->run_list);
	kvfree(sg->spare_list);
}

int sg_cp_start(struct softgpu *sg)
{
	mutex_init(&sg->lock);
	spin_lock_init(&sg->clock_lock);
	sg->now_ns = ktime_get_ns();
	xa_init(&sg->wave_ns);
	gpm_exec_init(&sg->exec, &sg->model);
	sg->quantum_ns = GPM_NEVER;
	sg->run_list = kvcalloc(SG_RUN_LIST, sizeof(*sg->run_list), GFP_KERNEL);
	sg->spare_list = kvcalloc(SG_RUN_LIST, sizeof(*sg->spare_list), GFP_KERNEL);
	if (!sg->run_list || !sg->spare_list) {
		sg_free_run_lists(sg);
		return -ENOMEM;
	}
	sg->thread = kthread_run(sg_thread, sg, "softgpu-%d", sg->index);
	if (IS_ERR(sg->thread)) {
		sg_free_run_lists(sg);
		return PTR_ERR(sg->thread);
	}
	return 0;
}

void sg_cp_stop(struct softgpu *sg)
{
	kthread_stop(sg->thread);
	sg_forget_run_list(sg);
	sg_free_run_lists(sg);
	xa_destroy(&sg->wave_ns);
}
