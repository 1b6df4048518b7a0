// SPDX-License-Identifier: MIT
/* No text in place of debugfs mqds may crash its parser or the join; behind lines "=" come rls and hqds. */
#include <string.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const parsers[])(struct gp_lines *, struct gp_scan *) = { gp_mqds_parse, gp_rls_parse,
									       gp_hqds_parse };
	struct gp_scan scan = { 0 };
	struct gp_found_device *device = gp_array_add(&scan.devices, sizeof(*device));

	if (!device)
		return 0;
	*device = (struct gp_found_device){ .gpu_id = 0x93e0, .gfx_target = 90402, .sdma_engines = 2 };
	for (int i = 0; i < 3 && size; i++) {
		const uint8_t *next = memmem(data, size, "\n=\n", 3);
		size_t len = next ? (size_t)(next - data) + 1 : size;

		fuzz_run(&scan, parsers[i], data, len);
		data += len;
		size -= len;
		len = size < 2 ? size : 2; /* the line itself */
		data += len;
		size -= len;
	}
	fuzz_check(&scan.mqds);
	fuzz_join(&scan);
	fuzz_free(&scan);
	return 0;
}
