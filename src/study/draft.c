// SPDX-License-Identifier: MIT
/* Makes a scenario of its sections: defaults, work, devices, traces, and what must fit together. */
#include "study/draft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

unsigned int gp_section_line(const struct gp_section *s, const char *key)
{
	for (size_t i = 0; i < s->kind->nkeys; i++)
		if (!strcmp(s->kind->keys[i].name, key))
			return s->key_line[i];
	return 0;
}

struct gp_place gp_draft_place(const struct gp_draft *d, const struct gp_section *s, const char *key)
{
	unsigned int line = key ? gp_section_line(s, key) : 0;

	return (struct gp_place){ .file = d->file, .line = line ? line : s->line, .diag = d->diag };
}

struct gp_section *gp_draft_section(struct gp_draft *d, const struct gp_section_kind *kind)
{
	for (size_t i = 0; i < d->nsections; i++)
		if (d->sections[i].kind == kind)
			return &d->sections[i];
	return NULL;
}

void gp_file_stem(const char *path, char *stem, size_t size)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	const char *dot = strrchr(base, '.');
	size_t len = dot && dot != base ? (size_t)(dot - base) : strlen(base);

	if (len >= size)
		len = size - 1;
	memcpy(stem, base, len);
	stem[len] = '\0';
}

/* Defaults are written as a user would write them, so they go the same way. */
static int apply_presets(struct gp_draft *d, struct gp_section *s)
{
	const struct gp_place at = gp_draft_place(d, s, NULL);

	for (size_t i = 0; i < s->kind->nkeys; i++) {
		const struct gp_key *key = &s->kind->keys[i];
		int r;

		if (s->key_line[i] || !key->preset)
			continue;
		r = key->set(key, &at, key->preset, (char *)s->object + key->offset);
		if (r < 0)
			return r;
	}
	return 0;
}

static int finish_sections(struct gp_draft *d)
{
	if (!gp_draft_section(d, &gp_scenario_kind))
		d->sections[d->nsections++] =
			(struct gp_section){ .kind = &gp_scenario_kind, .line = 1, .object = d };
	for (size_t i = 0; i < d->nsections; i++) {
		int r = apply_presets(d, &d->sections[i]);

		if (r < 0)
			return r;
	}
	if (!d->scenario.name[0])
		gp_file_stem(d->file, d->scenario.name, sizeof(d->scenario.name));
	return 0;
}

static int load_device(struct gp_draft *d)
{
	const struct gp_place at = gp_draft_place(d, gp_draft_section(d, &gp_scenario_kind), "device");
	struct gp_device_file file;
	int r;

	r = d->env->device(d->env->arg, d->device, d->file, &file, d->diag);
	if (r == -ENOENT)
		(void)gp_complain(
			&at, "no device \"%.60s\"; write one of: %s, or a file, as in: device = ./mine.ini",
			d->device, d->env->devices);
	if (r < 0) {
		(void)gp_complain(&at, "cannot read the device \"%.60s\": %s", d->device, strerror(-r));
		return -EINVAL;
	}
	d->scenario.device = file.device;
	memcpy(d->scenario.device_name, file.name, sizeof(d->scenario.device_name));
	return 0;
}

static int finish_work(struct gp_draft *d, const struct gp_work_draft *w)
{
	static const char *const needed[] = { "kernels", "length" };
	struct gp_place at;

	for (size_t i = 0; i < 2; i++) {
		at = gp_draft_place(d, w->section, NULL);
		if (!gp_section_line(w->section, needed[i]))
			return gp_complain(&at, "work %s has no %s; add a line such as: %s = %s",
					   w->work.name, needed[i], needed[i], i ? "50us" : "100");
	}
	if (!w->work.every == !w->work.every_length_ns)
		return 0;
	at = gp_draft_place(d, w->section, w->work.every ? "every" : "every_length");
	return gp_complain(&at, "every and every_length go together; write both, as in: every = 10 and "
				"every_length = 2ms");
}

static int find_work(const struct gp_draft *d, struct gp_group_draft *g)
{
	const struct gp_place at = gp_draft_place(d, g->section, "work");

	if (!g->work[0])
		return gp_complain(&at, "group %s has no work; add a line such as: work = infer-1ms",
				   g->group.name);
	for (size_t i = 0; i < d->nworks; i++) {
		if (!strcmp(d->works[i].work.name, g->work)) {
			g->group.work = d->works[i].work;
			return 0;
		}
	}
	if (gp_work_by_name(g->work, &g->group.work) < 0)
		return gp_complain(&at,
				   "no work \"%s\"; write infer-1ms, infer-10ms, decode, train or long, or "
				   "add a section [work %s]",
				   g->work, g->work);
	return 0;
}

static int set_load(const struct gp_draft *d, struct gp_group_draft *g, uint64_t permille)
{
	const struct gp_place at = gp_draft_place(d, g->section, "load");

	g->group.load_permille = permille;
	g->group.rate_milli = gp_group_load_rate(&g->group, &d->scenario.device, permille);
	if (!g->group.rate_milli)
		return gp_complain(&at,
				   "the load is less than one request in 1000 s of each client; raise load "
				   "or take shorter work");
	return 0;
}

/* Each load of the sweep must be possible; the runner puts them in one after the other. */
static int check_loads(const struct gp_draft *d, struct gp_group_draft *g)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < d->scenario.nsweep; i++)
		r = set_load(d, g, d->scenario.sweep_values[i]);
	return r;
}

/* Open loops need one of rate and load, unless the sweep sets it. */
static int finish_rate(struct gp_draft *d, struct gp_group_draft *g)
{
	const int has_rate = gp_section_line(g->section, "rate") != 0;
	const int has_load = gp_section_line(g->section, "load") != 0;
	struct gp_place at = gp_draft_place(d, g->section, has_load ? "load" : "rate");

	if (has_rate && has_load)
		return gp_complain(&at, "rate and load say the same; leave one out");
	if (g->group.arrival == GP_ARRIVAL_TRACE || g->group.arrival == GP_ARRIVAL_CLOSED) {
		if (has_rate || has_load)
			return gp_complain(&at,
					   "this arrival has no rate of its own; leave %s out, or write: "
					   "arrival = poisson",
					   has_rate ? "rate" : "load");
		return 0;
	}
	if (d->scenario.sweep == GP_SWEEP_LOAD) {
		if (has_rate || has_load)
			return gp_complain(&at, "[sweep] sets the load; leave %s out here",
					   has_rate ? "rate" : "load");
		return check_loads(d, g);
	}
	if (!has_rate && !has_load)
		return gp_complain(&at, "group %s has neither rate nor load; add a line such as: rate = 10",
				   g->group.name);
	return has_load ? set_load(d, g, g->load_permille) : 0;
}

static int load_trace(struct gp_draft *d, struct gp_group_draft *g)
{
	const struct gp_place at = gp_draft_place(d, g->section, "trace");
	struct gp_trace trace;
	char *text;
	int r;

	if (g->group.client_class == GP_CLASS_OFFLINE)
		return gp_draft_load_jobs(d, g);
	if (g->group.arrival != GP_ARRIVAL_TRACE) {
		if (g->trace[0])
			return gp_complain(&at, "a trace is read only with: arrival = trace");
		return 0;
	}
	if (!g->trace[0])
		return gp_complain(&at,
				   "arrival = trace needs a file; add a line such as: trace = arrivals.txt");
	r = d->env->read(d->env->arg, g->trace, d->file, &text);
	if (r < 0)
		return gp_complain(&at, "cannot read the trace \"%.80s\": %s", g->trace, strerror(-r));
	r = gp_trace_parse(text, g->trace, g->group.clients, &trace, d->diag);
	free(text);
	if (r < 0)
		return r;
	g->group.trace_ns = trace.time_ns;
	g->group.trace_client = trace.client;
	g->group.trace_len = trace.len;
	return 0;
}

static int finish_group(struct gp_draft *d, struct gp_group_draft *g)
{
	struct gp_place at = gp_draft_place(d, g->section, "device");
	int r;

	if (g->group.device >= d->scenario.devices)
		return gp_complain(&at,
				   "no device %" PRIu64 "; with devices = %" PRIu64 " the last is %" PRIu64,
				   g->group.device, d->scenario.devices, d->scenario.devices - 1);
	r = find_work(d, g);
	if (r == 0 && g->group.client_class == GP_CLASS_ONLINE)
		r = finish_rate(d, g);
	if (r == 0)
		r = gp_draft_finish_curve(d, g);
	if (r == 0)
		r = load_trace(d, g);
	return r;
}

static uint64_t largest_sweep(const struct gp_scenario *sc)
{
	uint64_t largest = 0;

	for (uint32_t i = 0; i < sc->nsweep; i++)
		if (sc->sweep_values[i] > largest)
			largest = sc->sweep_values[i];
	return largest;
}

/* Clients and queues of all groups up to this one, at the largest value of a sweep. */
static int check_sums(const struct gp_draft *d)
{
	uint64_t clients = 0, queues = 0;

	for (size_t i = 0; i < d->ngroups; i++) {
		const struct gp_group_draft *g = &d->groups[i];
		uint64_t each = g->group.queues;
		struct gp_place at;

		if (d->scenario.sweep == GP_SWEEP_QUEUES && g->group.client_class == GP_CLASS_OFFLINE)
			each = largest_sweep(&d->scenario);
		clients += g->group.clients;
		queues += g->group.clients * (each + g->group.idle_queues);
		at = gp_draft_place(d, g->section, "clients");
		if (clients > GP_MAX_CLIENTS)
			return gp_complain(&at, "%" PRIu64 " clients in all; the most is %d", clients,
					   GP_MAX_CLIENTS);
		if (queues > GP_MAX_QUEUES)
			return gp_complain(
				&at, "%" PRIu64 " queues in all; the most is %d, lower clients or queues",
				queues, GP_MAX_QUEUES);
	}
	return 0;
}

static int has_class(const struct gp_draft *d, uint32_t client_class)
{
	for (size_t i = 0; i < d->ngroups; i++)
		if (d->groups[i].group.client_class == client_class)
			return 1;
	return 0;
}

static int check_sweep(struct gp_draft *d)
{
	struct gp_section *s = gp_draft_section(d, &gp_sweep_kind);
	struct gp_place at;

	if (!s)
		return 0;
	at = gp_draft_place(d, s, NULL);
	if (d->scenario.sweep == GP_SWEEP_NONE)
		return gp_complain(&at, "[sweep] is empty; add a line such as: queues = 1 2 4");
	if (d->scenario.sweep == GP_SWEEP_LOAD && !has_class(d, GP_CLASS_ONLINE))
		return gp_complain(
			&at, "load is swept, but there is no online group; add one, as in: [online serve]");
	if (d->scenario.sweep != GP_SWEEP_LOAD && !has_class(d, GP_CLASS_OFFLINE))
		return gp_complain(&at, "this sweep is of offline groups, and there is none; add one, as in: "
					"[offline train]");
	return 0;
}

int gp_scenario_check_times(const struct gp_scenario *sc, const struct gp_place *at)
{
	char duration[GP_TIME_TEXT], warmup[GP_TIME_TEXT];

	if (sc->duration_ns > sc->warmup_ns)
		return 0;
	return gp_complain(
		at,
		at->is_option ? "%s leaves nothing after the scenario's warmup of %s; give more than that"
			      : "duration %s leaves nothing after a warmup of %s; make it longer, or write a "
				"shorter warmup",
		gp_time_text(sc->duration_ns, duration), gp_time_text(sc->warmup_ns, warmup));
}

static int check_whole(struct gp_draft *d)
{
	const struct gp_section *s = gp_draft_section(d, &gp_scenario_kind);
	struct gp_place at = gp_draft_place(d, s, gp_section_line(s, "duration") ? "duration" : "warmup");
	int r;

	if (d->cluster.gpus && !gp_section_line(s, "warmup"))
		d->scenario.warmup_ns = 0;
	r = gp_scenario_check_times(&d->scenario, &at);
	if (r < 0)
		return r;
	at = gp_draft_place(d, s, NULL);
	if (!d->ngroups)
		return gp_complain(&at, "no group; add a section such as: [online serve]");
	r = check_sweep(d);
	if (r == 0)
		r = gp_draft_check_cluster(d);
	return r < 0 || d->cluster.gpus ? r : check_sums(d);
}

int gp_draft_finish(struct gp_draft *d)
{
	int r;

	r = finish_sections(d);
	if (r == 0)
		r = check_whole(d);
	if (r == 0)
		r = load_device(d);
	for (size_t i = 0; r == 0 && i < d->nworks; i++)
		r = finish_work(d, &d->works[i]);
	for (size_t i = 0; r == 0 && i < d->ngroups; i++) {
		r = finish_group(d, &d->groups[i]);
		d->scenario.groups[i] = d->groups[i].group;
		d->scenario.ngroups++;
	}
	d->cluster.scenario = d->scenario;
	if (r < 0)
		gp_cluster_free(&d->cluster);
	return r;
}
