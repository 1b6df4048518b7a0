// SPDX-License-Identifier: MIT
/*
 * debugfs rls: the run list of each device, as the packets the firmware reads (amdkfd/kfd_packet_manager.c,
 * pm_debugfs_runlist()).  A queue is runnable if a MAP_QUEUES names it.
 */
#include <errno.h>

#include "discover/mqd.h"
#include "discover/scan.h"

struct reader {
	struct gp_scan *scan;
	uint32_t gpu_id; /* 0: before the first device */
	uint32_t offset; /* of the next line */
	uint32_t left;   /* words of this packet still to come */
	uint32_t have;   /* words of it in packet[] */
	uint32_t packet[PM4_MAP_QUEUES_WORDS];
	int lost; /* something is no packet: nothing that follows on this device can be told */
};

static int end_packet(struct reader *rd)
{
	const uint32_t *w = rd->packet;
	struct gp_mapping *m;

	if (PM4_OPCODE(w[0]) != PM4_MAP_QUEUES || rd->have < PM4_MAP_QUEUES_WORDS)
		return 0;
	m = gp_array_add(&rd->scan->run_list, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->gpu_id = rd->gpu_id;
	m->doorbell = (w[2] & MQD_DOORBELL_MASK) >> 2;
	m->mqd = (uint64_t)w[4] << 32 | w[3];
	m->wptr = (uint64_t)w[6] << 32 | w[5];
	return 0;
}

static int take_word(struct reader *rd, uint32_t word)
{
	if (rd->left == 0) {
		if (PM4_TYPE(word) != 3) {
			rd->lost = 1;
			return 0;
		}
		rd->left = PM4_WORDS(word);
		rd->have = 0;
	}
	if (rd->have < PM4_MAP_QUEUES_WORDS)
		rd->packet[rd->have++] = word;
	rd->left--;
	return rd->left ? 0 : end_packet(rd);
}

/* A list that was cut short does not say who is not in it. */
static void end_device(struct reader *rd)
{
	if (!rd->left && !rd->lost)
		return;
	rd->scan->sources[GP_SOURCE_RLS].truncated = 1;
	if (rd->gpu_id)
		rd->scan->run_list_gpus.count--;
}

/* "Node 1, gpu_id 96ab:" */
static int device_line(struct reader *rd, struct gp_span s)
{
	uint64_t gpu;
	uint32_t *id;

	if (!gp_span_take(&s, "node ") || !gp_span_find(&s, "gpu_id ") || !gp_span_hex(&s, &gpu) ||
	    gpu == 0 || gpu > UINT32_MAX)
		return 0;
	end_device(rd);
	*rd = (struct reader){ .scan = rd->scan, .gpu_id = (uint32_t)gpu };
	id = gp_array_add(&rd->scan->run_list_gpus, sizeof(*id));
	if (!id)
		return -ENOMEM;
	*id = rd->gpu_id;
	return 1;
}

static int read_line(struct reader *rd, struct gp_span s)
{
	uint32_t words[GP_HEX_WORDS], offset;
	uint32_t n = gp_hex_line(s.at, gp_span_len(&s), &offset, words);

	if (!n) {
		gp_span_trim(&s);
		return gp_span_take(&s, "no active runlist") ? 1 : device_line(rd, s);
	}
	if (!rd->gpu_id || rd->lost)
		return 0;
	rd->lost = offset != rd->offset;
	rd->offset = offset + n * 4;
	for (uint32_t i = 0; i < n && !rd->lost; i++)
		if (take_word(rd, words[i]) < 0)
			return -ENOMEM;
	return !rd->lost;
}

int gp_rls_parse(struct gp_lines *in, struct gp_scan *scan)
{
	struct gp_found_source *source = &scan->sources[GP_SOURCE_RLS];
	struct reader rd = { .scan = scan };
	struct gp_span line;

	while (gp_lines_next(in, &line)) {
		int r = read_line(&rd, line);

		if (r < 0)
			return r;
		source->skipped += !r && line.at < line.end;
	}
	if (in->partial) {
		source->truncated = 1;
		rd.lost = 1;
	}
	end_device(&rd);
	return 0;
}
