// SPDX-License-Identifier: MIT
/* What clusters add to scenarios: services and their GPUs, curves, jobs of a trace. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "study/draft.h"

/* Settings that mean nothing without another one. */
static int check_without(const struct gp_draft *d, const struct gp_section *s, const char *needed,
			 const char *key)
{
	const struct gp_place at = gp_draft_place(d, s, key);

	if (!gp_section_line(s, key) || gp_section_line(s, needed))
		return 0;
	return gp_complain(&at, "%s does nothing without %s; add it, or leave %s out", key, needed, key);
}

static int check_curve_keys(const struct gp_draft *d, const struct gp_section *s)
{
	static const char *const pairs[][2] = {
		{ "curve", "day" },
		{ "curve", "day_begin" },
		{ "burst_every", "burst_length" },
		{ "burst_every", "burst_factor" },
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]) && r == 0; i++)
		r = check_without(d, s, pairs[i][0], pairs[i][1]);
	return r;
}

int gp_draft_finish_curve(struct gp_draft *d, struct gp_group_draft *g)
{
	const struct gp_section *s = g->section;
	const char *key = gp_section_line(s, "curve") ? "curve" : "burst_every";
	const struct gp_place at = gp_draft_place(d, s, key);
	int r;

	if (g->group.client_class != GP_CLASS_ONLINE)
		return 0;
	r = check_curve_keys(d, s);
	if (r < 0 || !gp_section_line(s, key))
		return r;
	if (g->group.arrival != GP_ARRIVAL_POISSON)
		return gp_complain(
			&at,
			"%s changes the rate of random arrivals alone; leave it out, or write: arrival = "
			"poisson",
			key);
	if (!gp_curve_peak(&g->curve))
		return gp_complain(&at, "the curve is 0 all day; write at least one point above");
	g->group.curve = calloc(1, sizeof(*g->group.curve));
	if (!g->group.curve)
		return -ENOMEM;
	*g->group.curve = g->curve;
	return 0;
}

static int read_begin(const struct gp_draft *d, const struct gp_group_draft *g, int64_t *ret_s)
{
	const struct gp_place at = gp_draft_place(d, g->section, "trace_begin");

	if (g->trace_begin[0] && gp_date_parse(g->trace_begin, ret_s) < 0)
		return gp_complain(
			&at, "trace_begin = %s is no date; write it as in: trace_begin = 2026-03-02T00:00:00",
			g->trace_begin);
	return 0;
}

int gp_draft_load_jobs(struct gp_draft *d, struct gp_group_draft *g)
{
	const struct gp_place at = gp_draft_place(d, g->section, "trace");
	struct gp_sacct sacct;
	int64_t begin_s = 0;
	char *text;
	int r;

	if (!d->cluster.gpus)
		return 0;
	r = read_begin(d, g, &begin_s);
	if (r < 0)
		return r;
	r = d->env->read(d->env->arg, g->trace, d->file, &text);
	if (r < 0)
		return gp_complain(&at, "cannot read the trace \"%.80s\": %s", g->trace, strerror(-r));
	r = gp_sacct_parse(text, g->trace, g->trace_begin[0] ? &begin_s : NULL, &sacct, d->diag);
	free(text);
	if (r < 0)
		return r;
	d->cluster.jobs = sacct.jobs;
	d->cluster.njobs = sacct.njobs;
	d->cluster.without_gpu = sacct.without_gpu;
	d->cluster.never_ran = sacct.never_ran;
	d->cluster.before = sacct.before;
	return 0;
}

/* What a plain scenario does not know. */
static int refuse_keys(const struct gp_draft *d)
{
	static const char *const keys[] = { "gpus", "class", "trace_begin" };

	for (size_t i = 0; i < d->ngroups; i++) {
		const struct gp_group_draft *g = &d->groups[i];
		const int offline = g->group.client_class == GP_CLASS_OFFLINE;
		struct gp_place at;

		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			at = gp_draft_place(d, g->section, keys[k]);
			if (gp_section_line(g->section, keys[k]))
				return gp_complain(
					&at, "%s is for clusters; leave it out, or add a section [cluster]",
					keys[k]);
		}
		at = gp_draft_place(d, g->section, "trace");
		if (offline && g->trace[0])
			return gp_complain(
				&at, "an offline group always has work; leave trace out, or add a section "
				     "[cluster]");
	}
	return 0;
}

static int check_settings(struct gp_draft *d, const struct gp_section *s)
{
	struct gp_section *sweep = gp_draft_section(d, &gp_sweep_kind);
	struct gp_place at = gp_draft_place(d, s, "devices");

	if (gp_section_line(s, "devices"))
		return gp_complain(
			&at, "each machine of a cluster has one; leave devices out, and write gpus into "
			     "[cluster]");
	at = gp_draft_place(d, s, "warmup");
	if (d->scenario.warmup_ns)
		return gp_complain(&at, "a cluster counts from the beginning; leave warmup out");
	at = gp_draft_place(d, sweep ? sweep : s, NULL);
	if (sweep)
		return gp_complain(&at, "a cluster has no sweep; leave it out");
	return 0;
}

static int check_service(const struct gp_draft *d, const struct gp_group_draft *g, uint64_t *gpus)
{
	struct gp_place at = gp_draft_place(d, g->section, "gpus");

	if (!g->group.gpus)
		return gp_complain(&at, "service %s is on no GPU; add a line such as: gpus = 4",
				   g->group.name);
	*gpus += g->group.gpus;
	if (*gpus > d->cluster.gpus)
		return gp_complain(&at,
				   "services on %" PRIu64 " GPUs up to here, and the cluster has %" PRIu64
				   "; each has GPUs of its own",
				   *gpus, d->cluster.gpus);
	at = gp_draft_place(d, g->section, "clients");
	if (g->group.clients + d->cluster.slots > GP_MAX_CLIENTS)
		return gp_complain(
			&at, "%" PRIu64 " clients and %" PRIu64 " jobs on a GPU; the most is %d together",
			g->group.clients, d->cluster.slots, GP_MAX_CLIENTS);
	if (g->group.clients * (g->group.queues + g->group.idle_queues) > GP_MAX_QUEUES / 2)
		return gp_complain(&at, "too many queues on a GPU; the most is %d, lower clients or queues",
				   GP_MAX_QUEUES / 2);
	return 0;
}

static int check_jobs(const struct gp_draft *d, const struct gp_group_draft *g, size_t *njobs)
{
	struct gp_place at = gp_draft_place(d, g->section, NULL);

	if (++*njobs > 1)
		return gp_complain(&at, "a second offline group; a cluster has the jobs of one trace");
	if (!g->trace[0])
		return gp_complain(&at, "its jobs come from a trace; add a line such as: trace = jobs.txt");
	at = gp_draft_place(d, g->section, "clients");
	if (g->group.clients != 1)
		return gp_complain(&at, "the trace says how many jobs there are; leave clients out");
	at = gp_draft_place(d, g->section, "queues");
	if ((g->group.queues + g->group.idle_queues) * d->cluster.slots > GP_MAX_QUEUES / 2)
		return gp_complain(&at, "too many queues on a GPU; the most is %d, lower queues or slots",
				   GP_MAX_QUEUES / 2);
	return 0;
}

int gp_draft_check_cluster(struct gp_draft *d)
{
	struct gp_section *s = gp_draft_section(d, &gp_cluster_kind);
	struct gp_section *scenario = gp_draft_section(d, &gp_scenario_kind);
	const struct gp_place all = { .file = d->file, .line = 1, .diag = d->diag };
	struct gp_place at;
	uint64_t gpus = 0;
	size_t njobs = 0;
	int r;

	if (!s)
		return refuse_keys(d);
	at = gp_draft_place(d, s, NULL);
	if (!d->cluster.gpus)
		return gp_complain(&at, "[cluster] has no gpus; add a line such as: gpus = 10");
	if (!gp_section_line(scenario, "configs"))
		(void)gp_configs_parse("auto", &all, d->scenario.configs, &d->scenario.nconfigs);
	r = check_settings(d, scenario);
	for (size_t i = 0; i < d->ngroups && r == 0; i++)
		r = d->groups[i].group.client_class == GP_CLASS_ONLINE
			    ? check_service(d, &d->groups[i], &gpus)
			    : check_jobs(d, &d->groups[i], &njobs);
	if (r == 0 && !njobs)
		return gp_complain(&at,
				   "no jobs; add a section such as [offline train] with work and a trace");
	return r;
}
