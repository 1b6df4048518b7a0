// SPDX-License-Identifier: MIT
/*
 * debugfs hqds: the registers of every hardware slot (amdkfd/kfd_device_queue_manager.c, dqm_debugfs_hqds()).
 * All slots are printed, the empty ones too.  Reading it selects each slot in turn under a lock of the
 * driver's.
 */
#include <errno.h>

#include "discover/mqd.h"
#include "discover/scan.h"

enum slot_kind { NO_SLOT, COMPUTE_SLOT, SDMA_SLOT };

struct reader {
	struct gp_scan *scan;
	uint32_t gpu_id; /* 0: before the first device */
	enum slot_kind kind;
	uint32_t have; /* words of this slot so far */
	uint32_t words[HQD_WORDS];
};

static int add_slot(struct reader *rd, uint64_t mqd, uint64_t ring)
{
	struct gp_mapping *m = gp_array_add(&rd->scan->slots, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->gpu_id = rd->gpu_id;
	m->mqd = mqd;
	m->ring = ring;
	return 0;
}

static uint64_t pair(const uint32_t *words, uint32_t at)
{
	return (uint64_t)words[at + 1] << 32 | words[at];
}

static int end_slot(struct reader *rd)
{
	const uint32_t *w = rd->words;
	enum slot_kind kind = rd->kind;

	rd->kind = NO_SLOT;
	if (kind == COMPUTE_SLOT && rd->have > HQD_WORD(MQD_RING) + 1 &&
	    (w[HQD_WORD(MQD_ACTIVE)] & MQD_ACTIVE_MASK))
		return add_slot(rd, pair(w, 0), pair(w, HQD_WORD(MQD_RING)) << 8);
	if (kind == SDMA_SLOT && rd->have > SDMA_RING / 4 + 1 && (w[0] & SDMA_ENABLE_MASK))
		return add_slot(rd, 0, pair(w, SDMA_RING / 4) << 8);
	return 0;
}

static int begin_slot(struct reader *rd, enum slot_kind kind)
{
	int r = end_slot(rd);

	rd->kind = kind;
	rd->have = 0;
	return r < 0 ? r : 1;
}

/* "Node 1, gpu_id 96ab:" */
static int device_line(struct reader *rd, struct gp_span s)
{
	uint64_t gpu;
	uint32_t *id;
	int r;

	if (!gp_span_find(&s, "gpu_id ") || !gp_span_hex(&s, &gpu) || gpu == 0 || gpu > UINT32_MAX)
		return 0;
	r = begin_slot(rd, NO_SLOT);
	if (r < 0)
		return r;
	id = gp_array_add(&rd->scan->slot_gpus, sizeof(*id));
	if (!id)
		return -ENOMEM;
	*id = rd->gpu_id = (uint32_t)gpu;
	return 1;
}

static int heading(struct reader *rd, struct gp_span s)
{
	struct gp_span rest = s;

	if (gp_span_take(&rest, "node "))
		return device_line(rd, rest);
	if (gp_span_find(&rest, "HIQ on MEC "))
		return begin_slot(rd, NO_SLOT);
	if (gp_span_find(&rest, "CP Pipe "))
		return begin_slot(rd, rd->gpu_id ? COMPUTE_SLOT : NO_SLOT);
	if (gp_span_find(&rest, "SDMA Engine "))
		return begin_slot(rd, rd->gpu_id ? SDMA_SLOT : NO_SLOT);
	return gp_span_take(&rest, "device is stopped");
}

static int read_line(struct reader *rd, struct gp_span s)
{
	uint32_t words[GP_HEX_WORDS], offset;
	uint32_t n = gp_hex_line(s.at, gp_span_len(&s), &offset, words);

	if (!n) {
		gp_span_trim(&s);
		return heading(rd, s);
	}
	for (uint32_t i = 0; i < n && rd->have < HQD_WORDS; i++)
		rd->words[rd->have++] = words[i];
	return 1;
}

int gp_hqds_parse(struct gp_lines *in, struct gp_scan *scan)
{
	struct gp_found_source *source = &scan->sources[GP_SOURCE_HQDS];
	struct reader rd = { .scan = scan };
	struct gp_span line;

	while (gp_lines_next(in, &line)) {
		int r = read_line(&rd, line);

		if (r < 0)
			return r;
		source->skipped += !r && line.at < line.end;
	}
	source->truncated = in->partial || (rd.kind == COMPUTE_SLOT && rd.have < HQD_WORDS);
	if (source->truncated && rd.gpu_id)
		scan->slot_gpus.count--; /* does not say who is in no slot */
	return end_slot(&rd);
}
