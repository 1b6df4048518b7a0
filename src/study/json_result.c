// SPDX-License-Identifier: MIT
#include <errno.h>

#include "study/output.h"
#include "study/result.h"

#define SLICES 100

/* What a row would need on a real AMD GPU; exclusive and native need nothing. */
static const char *const needs[GP_CONFIG_COUNT] = {
	[GP_CONFIG_THROTTLE] = "a launch hook in the process",
	[GP_CONFIG_GATE] = "a launch hook in the process",
	[GP_CONFIG_FLUSH] = "a launch hook, and kernels that look at a flag",
	[GP_CONFIG_SINGLE] = "the stock driver (UPDATE_QUEUE, one queue per call)",
	[GP_CONFIG_BATCH] = "a kernel with a batch call, not in the stock driver",
	[GP_CONFIG_SLICE] = "time slices, which only NVIDIA has (stock driver)",
	[GP_CONFIG_YIELD] =
		"a scheduler inside the kernel, not in the stock driver (NVIDIA: the stock driver's time slices)",
	[GP_CONFIG_AUTO] = "the best the model has, which is not in the stock driver",
};

/* The same in a row of a table. */
static const char *const on_amd[GP_CONFIG_COUNT] = {
	[GP_CONFIG_EXCLUSIVE] = "no offline", [GP_CONFIG_NATIVE] = "no gpreempt",
	[GP_CONFIG_THROTTLE] = "launch hook", [GP_CONFIG_GATE] = "launch hook",
	[GP_CONFIG_FLUSH] = "hook + flag",    [GP_CONFIG_SINGLE] = GP_ON_STOCK_AMD,
	[GP_CONFIG_BATCH] = "new kernel",     [GP_CONFIG_SLICE] = "NVIDIA only",
	[GP_CONFIG_YIELD] = "new kernel",     [GP_CONFIG_AUTO] = "new kernel",
};

static const char *needs_of(uint32_t kind)
{
	return kind < GP_CONFIG_COUNT && needs[kind] ? needs[kind] : "";
}

static struct json_object *latency_json(const struct gp_figures *f)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_ns(o, "mean", f->mean);
	gp_json_add_ns(o, "min", f->min);
	gp_json_add_ns(o, "p50", f->p50);
	gp_json_add_ns(o, "p95", f->p95);
	gp_json_add_ns(o, "p99", f->p99);
	gp_json_add_ns(o, "p999", f->p999);
	gp_json_add_ns(o, "max", f->max);
	return o;
}

static struct json_object *slo_json(const struct gp_figures *f)
{
	struct json_object *o = json_object_new_object();
	char key[16];

	for (int i = 0; i < GP_SLO_STEPS; i++) {
		snprintf(key, sizeof(key), "%u.%u", gp_slo_percent[i] / 100, gp_slo_percent[i] / 10 % 10);
		gp_json_add_double(o, key, f->slo[i]);
	}
	return o;
}

static struct json_object *part_json(const struct gp_hist *h)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_int(o, "count", h->count);
	gp_json_add_ns(o, "p50", gp_hist_figure(h, 5000));
	gp_json_add_ns(o, "p99", gp_hist_figure(h, 9900));
	json_object_object_add(o, "max", h->count ? json_object_new_uint64(h->max) : NULL);
	return o;
}

static struct json_object *parts_json(const struct gp_run_result *run)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "decision", part_json(&run->to_decision));
	json_object_object_add(o, "call", part_json(&run->to_call));
	json_object_object_add(o, "last_wave_off", part_json(&run->preempt));
	json_object_object_add(o, "first_wave_on", part_json(&run->to_first_wave));
	json_object_object_add(o, "resume", part_json(&run->resume));
	return o;
}

static struct json_object *histogram_json(const struct gp_hist *h)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < GP_HIST_BUCKETS; i++) {
		struct json_object *bar;
		uint64_t low, high;

		if (!h->bucket[i])
			continue;
		gp_hist_bounds(i, &low, &high);
		bar = json_object_new_array();
		json_object_array_add(bar, json_object_new_uint64(low));
		json_object_array_add(bar, json_object_new_uint64(high));
		json_object_array_add(bar, json_object_new_uint64(h->bucket[i]));
		json_object_array_add(list, bar);
	}
	return list;
}

static struct json_object *throughput_json(const struct gp_run_result *run, const struct gp_figures *f)
{
	struct json_object *o = json_object_new_object();
	struct json_object *online = json_object_new_array();
	struct json_object *offline = json_object_new_array();

	for (int i = 0; i < SLICES; i++) {
		double part = (double)run->offline_done[i] * SLICES / f->alone_wave_ns;

		json_object_array_add(online, json_object_new_uint64(run->online_done[i]));
		json_object_array_add(offline, gp_json_double(f->alone_wave_ns > 0 ? part : 0));
	}
	gp_json_add_int(o, "slice_ns", run->measured_ns / SLICES);
	json_object_object_add(o, "online", online);
	json_object_object_add(o, "offline", offline);
	return o;
}

static void add_figures(struct json_object *o, const struct gp_run_result *run, const struct gp_figures *f)
{
	json_object_object_add(o, "latency_ns", latency_json(f));
	gp_json_add_double(o, "ratio_p99", f->ratio_p99);
	gp_json_add_double(o, "ratio_p50", f->ratio_p50);
	json_object_object_add(o, "slo_attainment", slo_json(f));
	gp_json_add_int(o, "slo_met", run->slo_met);
	gp_json_add_int(o, "slo_requests", run->slo_requests);
	gp_json_add_double(o, "be_norm", f->be_norm);
	gp_json_add_double(o, "harvest", f->harvest);
	gp_json_add_double(o, "online_busy", f->online_busy);
	gp_json_add_int(o, "offline_wave_ns", run->offline_wave_ns);
	gp_json_add_int(o, "offline_steps", run->offline_steps);
	gp_json_add_double(o, "lost_work", f->lost_work);
	json_object_object_add(o, "preempt_ns", part_json(&run->preempt));
	json_object_object_add(o, "parts_ns", parts_json(run));
	gp_json_add_int(o, "preemptions", run->preemptions);
	gp_json_add_int(o, "cycles", run->cycles);
	gp_json_add_double(o, "cycles_per_request", f->cycles_per_request);
	gp_json_add_int(o, "limited", run->limited);
}

static struct json_object *row_json(const struct gp_result_input *in, const struct gp_row *row)
{
	struct json_object *o = json_object_new_object();
	const struct gp_run_result *run = row->run;
	struct gp_figures f;

	gp_figures_of(in->rows, row, &f);
	gp_json_add_text(o, "config", gp_config_name(row->config.kind));
	json_object_object_add(o, "hints", json_object_new_boolean(row->config.hints != 0));
	json_object_object_add(
		o, "sweep_value",
		in->scenario->nsweep ? json_object_new_uint64(in->scenario->sweep_values[row->sweep]) : NULL);
	gp_json_add_text(o, "mechanism", run->mechanism);
	gp_json_add_text(o, "needs", needs_of(row->config.kind));
	gp_json_add_text(o, "on_amd", row->config.kind < GP_CONFIG_COUNT ? on_amd[row->config.kind] : "");
	gp_json_add_int(o, "requests", run->requests);
	gp_json_add_int(o, "unfinished", run->unfinished);
	json_object_object_add(o, "keeps_up", json_object_new_boolean(f.keeps_up));
	add_figures(o, run, &f);
	gp_json_add_text(o, "reason", row->error == -ENOTSUP ? "this device cannot do it" : run->reason);
	json_object_object_add(o, "histogram", histogram_json(&run->latency));
	json_object_object_add(o, "throughput", throughput_json(run, &f));
	json_object_object_add(o, "timeline", run->nlanes ? gp_timeline_json(run) : NULL);
	return o;
}

struct json_object *gp_result_json(const struct gp_result_input *in)
{
	struct json_object *o = json_object_new_object();
	struct json_object *rows = json_object_new_array();

	gp_json_add_text(o, "schema", GP_RESULT_SCHEMA);
	json_object_object_add(o, "simulated", json_object_new_boolean(1));
	gp_json_add_text(o, "gpreempt", GPREEMPT_VERSION);
	gp_json_add_text(o, "command", in->command);
	gp_json_add_int(o, "seed", in->scenario->seed);
	json_object_object_add(o, "scenario", gp_scenario_json(in->scenario, in->sources->text));
	json_object_object_add(o, "device", gp_device_json(&in->sources->device));
	for (size_t i = 0; i < in->rows->n; i++)
		if (in->rows->row[i].kind == GP_ROW_SHOWN)
			json_object_array_add(rows, row_json(in, &in->rows->row[i]));
	json_object_object_add(o, "rows", rows);
	return o;
}
