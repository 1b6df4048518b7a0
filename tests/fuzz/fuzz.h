/* SPDX-License-Identifier: MIT */
/* What the fuzz targets of src/discover/ share: a parser run on bytes, and what must hold of its queues. */
#ifndef GP_TESTS_FUZZ_H
#define GP_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "discover/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_run(struct gp_scan *scan, int (*parse)(struct gp_lines *, struct gp_scan *),
			    const uint8_t *data, size_t size)
{
	struct gp_lines in;

	gp_lines_memory(&in, data, size);
	if (parse(&in, scan) < 0)
		abort(); /* nothing but memory is an error */
}

static inline void fuzz_check(const struct gp_array *list)
{
	const struct gp_seen *all = list->at;

	for (size_t i = 0; i < list->count; i++) {
		if (all[i].q.kind > GP_KIND_XGMI || all[i].q.pid > INT32_MAX)
			abort();
		for (int field = 0; field < GP_FIELD_COUNT; field++)
			if (all[i].q.from[field] >= GP_SOURCE_COUNT)
				abort();
	}
}

/* The join of whatever was parsed. */
static inline void fuzz_join(struct gp_scan *scan)
{
	struct gp_array queues = { 0 };
	const struct gp_found_queue *all;
	int unmatched;

	if (gp_join(scan, &queues, &unmatched) < 0)
		abort();
	all = queues.at;
	for (size_t i = 1; i < queues.count; i++)
		if (gp_queue_order(&all[i - 1], &all[i]) > 0)
			abort();
	free(queues.at);
}

static inline void fuzz_free(struct gp_scan *scan)
{
	free(scan->devices.at);
	free(scan->clients.at);
	free(scan->sysfs.at);
	free(scan->mqds.at);
	free(scan->log.at);
	free(scan->run_list.at);
	free(scan->slots.at);
	free(scan->run_list_gpus.at);
	free(scan->slot_gpus.at);
}

#endif
