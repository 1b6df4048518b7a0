// SPDX-License-Identifier: MIT
#include "machine/run.h"

#include <errno.h>
#include <stdlib.h>

#include "machine/internal.h"

static struct gp_run_result *new_result(const struct gp_run_opts *opts)
{
	struct gp_run_result *r = calloc(1, sizeof(*r));

	if (!r || !opts || !opts->timeline_ns)
		return r;
	r->spans = calloc(opts->max_spans, sizeof(*r->spans));
	if (!r->spans)
		return gp_run_free(r);
	r->timeline_to_ns = opts->timeline_ns; /* an end, once the beginning is known */
	return r;
}

int gp_run(const struct gp_scenario *sc, const struct gp_config *config, const struct gp_run_opts *opts,
	   struct gp_run_result **ret)
{
	struct gp_run_result *result = new_result(opts);
	struct gp_machine *m;
	int r;

	if (!result)
		return -ENOMEM;
	r = gp_machine_new(sc, config, result, &m);
	if (r < 0) {
		gp_run_free(result);
		return r;
	}
	m->max_spans = opts ? opts->max_spans : 0;
	gp_machine_run_until(m, sc->warmup_ns);
	gp_machine_measure(m);
	gp_machine_run_until(m, sc->duration_ns);
	gp_machine_finish(m);
	gp_machine_free(m);
	*ret = result;
	return 0;
}

struct gp_run_result *gp_run_free(struct gp_run_result *r)
{
	if (r)
		free(r->spans);
	free(r);
	return NULL;
}
