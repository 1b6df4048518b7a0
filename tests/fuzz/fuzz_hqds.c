// SPDX-License-Identifier: MIT
/* No text in place of debugfs hqds may crash the parser. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_scan scan = { 0 };
	const struct gp_mapping *all;

	fuzz_run(&scan, gp_hqds_parse, data, size);
	all = scan.slots.at;
	for (size_t i = 0; i < scan.slots.count; i++)
		if (!all[i].gpu_id)
			abort();
	fuzz_free(&scan);
	return 0;
}
