// SPDX-License-Identifier: MIT
/* No text in place of debugfs rls may crash the parser. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_scan scan = { 0 };
	const struct gp_mapping *all;

	fuzz_run(&scan, gp_rls_parse, data, size);
	all = scan.run_list.at;
	for (size_t i = 0; i < scan.run_list.count; i++)
		if (!all[i].gpu_id)
			abort();
	fuzz_free(&scan);
	return 0;
}
