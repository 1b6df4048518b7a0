// SPDX-License-Identifier: MIT
/* No scenario or device file, however broken, may crash the parsers, and what they take is within limits. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "study/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same text is offered as the device that a scenario names. */
static int same_text(void *arg, const char *name, const char *from, struct gp_device_file *ret,
		     struct gp_diag *diag)
{
	(void)from;
	if (!strcmp(name, "mi308x")) {
		memset(ret, 0, sizeof(*ret));
		return 0;
	}
	return gp_device_parse(arg, name, ret, diag);
}

static int small_trace(void *arg, const char *name, const char *from, char **ret_text)
{
	(void)arg;
	(void)from;
	if (strcmp(name, "t"))
		return -ENOENT;
	*ret_text = strdup("gpreempt-trace 1\n0 10 0\n1 20 0\n");
	return *ret_text ? 0 : -ENOMEM;
}

static void check(const struct gp_scenario *sc)
{
	uint64_t clients = 0;

	for (uint32_t i = 0; i < sc->ngroups; i++) {
		clients += sc->groups[i].clients;
		if (!sc->groups[i].work.kernels || sc->groups[i].device >= sc->devices)
			abort();
	}
	if (!sc->ngroups || sc->ngroups > GP_MAX_GROUPS || clients > GP_MAX_CLIENTS ||
	    sc->nconfigs > GP_MAX_CONFIGS || sc->nsweep > GP_MAX_SWEEP || sc->duration_ns <= sc->warmup_ns)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1);
	const struct gp_parse_env env = {
		.arg = text, .devices = "mi308x", .device = same_text, .read = small_trace
	};
	struct gp_device_file device;
	struct gp_scenario sc;
	struct gp_diag diag;

	if (!text)
		return 0;
	memcpy(text, data, size);
	if (gp_device_parse(text, "ini", &device, &diag) < 0 && !diag.text[0])
		abort(); /* refused without a word */
	if (gp_scenario_parse(text, "ini", &env, &sc, &diag) == 0) {
		check(&sc);
		gp_scenario_free(&sc);
	} else if (!diag.text[0]) {
		abort();
	}
	free(text);
	return 0;
}
