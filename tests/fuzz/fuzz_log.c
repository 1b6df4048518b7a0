// SPDX-License-Identifier: MIT
/* No log, however broken, may crash its parser, or give a queue the driver's id. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_scan scan = { 0 };
	const struct gp_seen *all;

	fuzz_run(&scan, gp_log_parse, data, size);
	all = scan.log.at;
	fuzz_check(&scan.log);
	for (size_t i = 0; i < scan.log.count; i++)
		if (!all[i].q.ring || all[i].q.from[GP_FIELD_ID] ||
		    all[i].q.from[GP_FIELD_RING] != GP_SOURCE_LOG)
			abort();
	fuzz_join(&scan);
	fuzz_free(&scan);
	return 0;
}
