// SPDX-License-Identifier: GPL-2.0
/*
 * Compute wave save and restore.  A stopped queue's waves are written into the user's
 * save area, a part for each XCC, with the control stack behind the MQD and the offsets
 * in it as the debugger's interface expects; they are restored from there and nowhere
 * else.
 *
 *	save area of an XCC:  [ control stack | wave state ... )
 *	                      0               cntl_stack_size  wg_state_offset
 */
#include "cost.h"
#include "softgpu.h"

#define SG_WAVE_MAGIC 0x45564157u /* "WAVE" */

/* The wave state: a head, and a record for each cohort. */
struct sg_saved_head {
	u32 magic;
	u32 ncohorts;
	u32 pending; /* workgroups that never ran; XCC 0 has them all */
	u32 xcc;
	u64 started_ns; /* the dispatch */
	u64 packet[SG_AQL_PACKET / 8];
	u64 is_retired;
};

struct sg_saved_cohort {
	u32 magic;
	u32 waves; /* on this XCC */
	u64 left_ns;
};

struct sg_saved {
	struct sg_saved_head head;
	struct sg_saved_cohort cohorts[GPM_COHORTS];
};

struct v9_mqd *sg_xcc_mqd(struct sg_slot *slot, u32 xcc)
{
	return (void *)slot->mqd + (size_t)xcc * slot->mqd->cp_mqd_stride_size;
}

static struct sg_saved *sg_area(struct sg_slot *slot, const struct v9_mqd *m)
{
	u64 base = sg_u64(m->cp_hqd_ctx_save_base_addr_lo, m->cp_hqd_ctx_save_base_addr_hi);

	if (!base || m->cp_hqd_ctx_save_size < m->cp_hqd_cntl_stack_size + sizeof(struct sg_saved))
		return NULL;
	return sg_at(slot, base + m->cp_hqd_cntl_stack_size, sizeof(struct sg_saved));
}

static void sg_stamp(u32 *lo, u32 *hi)
{
	u64 now = ktime_get_ns();

	*lo = lower_32_bits(now);
	*hi = upper_32_bits(now);
}

static u32 sg_share(u32 waves, u32 xcc, u32 xccs)
{
	return waves / xccs + (xcc < waves % xccs);
}

/* The control stack grows down, two dwords for a cohort. */
static void sg_save_control_stack(struct v9_mqd *m, const struct sg_saved *saved)
{
	u32 *stack = (void *)m + PAGE_SIZE, used = saved->head.ncohorts * 8, i;

	m->cp_hqd_cntl_stack_offset = m->cp_hqd_cntl_stack_size - used;
	for (i = 0; i < saved->head.ncohorts; i++) {
		stack[m->cp_hqd_cntl_stack_offset / 4 + 2 * i] = saved->cohorts[i].magic;
		stack[m->cp_hqd_cntl_stack_offset / 4 + 2 * i + 1] = saved->cohorts[i].waves;
	}
}

static void sg_save_xcc(struct sg_slot *slot, u32 xcc)
{
	struct v9_mqd *m = sg_xcc_mqd(slot, xcc);
	struct sg_saved *area = sg_area(slot, m);
	const struct gpm_ctx *ctx = &slot->ctx;
	u32 i;

	if (!area)
		return;
	sg_stamp(&m->cp_mqd_save_start_time_lo, &m->cp_mqd_save_start_time_hi);
	area->head = (struct sg_saved_head){ .magic = SG_WAVE_MAGIC,
					     .ncohorts = ctx->ncohorts,
					     .pending = xcc ? 0 : ctx->pending,
					     .xcc = xcc,
					     .started_ns = slot->started_ns,
					     .is_retired = slot->is_retired };
	memcpy(area->head.packet, slot->packet, sizeof(slot->packet));
	for (i = 0; i < ctx->ncohorts; i++)
		area->cohorts[i] =
			(struct sg_saved_cohort){ SG_WAVE_MAGIC,
						  sg_share(ctx->cohorts[i].waves, xcc, slot->sg->xccs),
						  ctx->cohorts[i].end_ns };
	sg_save_control_stack(m, area);
	m->cp_hqd_wg_state_offset =
		m->cp_hqd_cntl_stack_size + sizeof(area->head) + i * sizeof(area->cohorts[0]);
	sg_stamp(&m->cp_mqd_save_end_time_lo, &m->cp_mqd_save_end_time_hi);
}

static void sg_mark_empty(struct sg_slot *slot)
{
	u32 xcc;

	for (xcc = 0; xcc < slot->sg->xccs; xcc++) {
		struct v9_mqd *m = sg_xcc_mqd(slot, xcc);

		m->cp_hqd_cntl_stack_offset = m->cp_hqd_cntl_stack_size;
		m->cp_hqd_wg_state_offset = m->cp_hqd_cntl_stack_size;
	}
}

/* Returns how many waves ran, and so have to be moved. */
u64 sg_save(struct sg_slot *slot, u64 now)
{
	struct softgpu *sg = slot->sg;
	u64 waves = gpm_exec_stop(&sg->exec, &slot->ctx, now);
	u32 xcc;

	gpm_exec_release(&sg->exec, &slot->ctx, now);
	sg_mark_empty(slot);
	if (!slot->ctx.busy)
		return 0;
	down_read(&slot->entry->vm->lock);
	for (xcc = 0; xcc < sg->xccs; xcc++)
		sg_save_xcc(slot, xcc);
	up_read(&slot->entry->vm->lock);
	sg->stats.saves++;
	sg->stats.waves_saved += slot->ctx.saved;
	sg->stats.bytes_saved += waves * sg->model.save_bytes_per_wave;
	return waves;
}

/* All XCCs' parts of each cohort together. */
static int sg_collect(struct sg_slot *slot, u32 *ret_pending, struct gpm_cohort *cohorts, u32 *ret_n)
{
	u32 xcc, i;

	for (xcc = 0; xcc < slot->sg->xccs; xcc++) {
		const struct sg_saved *area = sg_area(slot, sg_xcc_mqd(slot, xcc));

		if (!area || area->head.magic != SG_WAVE_MAGIC || area->head.ncohorts > GPM_COHORTS)
			return -EINVAL;
		if (!xcc) {
			slot->started_ns = area->head.started_ns;
			slot->is_retired = area->head.is_retired;
			memcpy(slot->packet, area->head.packet, sizeof(slot->packet));
			*ret_pending = area->head.pending;
			*ret_n = area->head.ncohorts;
		}
		for (i = 0; i < *ret_n; i++) {
			if (area->cohorts[i].magic != SG_WAVE_MAGIC)
				return -EINVAL;
			cohorts[i].waves += area->cohorts[i].waves;
			cohorts[i].end_ns = area->cohorts[i].left_ns;
		}
	}
	return 0;
}

static int sg_reload(struct sg_slot *slot)
{
	struct gpm_cohort cohorts[GPM_COHORTS] = {};
	struct gpm_dispatch dispatch;
	u32 pending = 0, n = 0;

	if (sg_collect(slot, &pending, cohorts, &n) || sg_aql_dispatch(slot, &dispatch))
		return -EINVAL;
	return gpm_exec_load(&slot->sg->exec, &slot->ctx, &dispatch, pending, cohorts, n);
}

/* Waves that cannot be read back are gone, and their queue with them: nothing is made up. */
void sg_restore(struct sg_slot *slot, u64 now)
{
	struct softgpu *sg = slot->sg;
	struct v9_mqd *m = slot->mqd;
	int r;

	if (m->cp_hqd_wg_state_offset > m->cp_hqd_cntl_stack_size) {
		sg_stamp(&m->cp_mqd_restore_start_time_lo, &m->cp_mqd_restore_start_time_hi);
		down_read(&slot->entry->vm->lock);
		r = sg_reload(slot);
		up_read(&slot->entry->vm->lock);
		if (r) {
			sg->stats.bad_restores++;
			slot->halted = true;
		} else {
			sg->stats.restores++;
			sg->stats.waves_restored += slot->ctx.saved;
		}
		sg_mark_empty(slot);
		sg_stamp(&m->cp_mqd_restore_end_time_lo, &m->cp_mqd_restore_end_time_hi);
	}
	gpm_exec_map(&sg->exec, &slot->ctx, now, now + gpm_restore_ns(&sg->model, slot->ctx.saved));
}
