// SPDX-License-Identifier: MIT
/* No arrival trace, however broken, may crash the parser, and what it takes is in order. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "study/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1);
	struct gp_trace trace;
	struct gp_diag diag;
	int r;

	if (!text)
		return 0;
	memcpy(text, data, size);
	r = gp_trace_parse(text, "trace", 4, &trace, &diag);
	free(text);
	if (r < 0) {
		if (strncmp(diag.text, "trace:", 6))
			abort(); /* refused without a word */
		return 0;
	}
	for (uint64_t i = 0; i < trace.len; i++)
		if (trace.client[i] >= 4 || (i && trace.time_ns[i] < trace.time_ns[i - 1]))
			abort();
	gp_trace_free(&trace);
	return 0;
}
