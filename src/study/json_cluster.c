// SPDX-License-Identifier: MIT
/* What a cluster's rows come to. */
#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "study/cluster.h"
#include "study/result.h"

#define NOT UINT64_MAX
#define HOUR_NS (3600.0 * GP_S)

static const char *const class_names[] = { "low", "normal", "high" };

/* Values of jobs, to be sorted. */
struct values {
	double *at;
	size_t n;
};

static int smaller(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The smallest value that so many percent do not exceed; of nothing: NAN. */
static double percentile(const struct values *v, unsigned int percent)
{
	return v->n ? v->at[(v->n * percent + 99) / 100 - 1] : NAN;
}

static double mean(const struct values *v)
{
	double sum = 0;

	for (size_t i = 0; i < v->n; i++)
		sum += v->at[i];
	return v->n ? sum / (double)v->n : NAN;
}

static struct json_object *values_json(struct values *v)
{
	struct json_object *o = json_object_new_object();

	if (v->n)
		qsort(v->at, v->n, sizeof(*v->at), smaller);
	gp_json_add_int(o, "count", v->n);
	gp_json_add_double(o, "mean", mean(v));
	gp_json_add_double(o, "p50", percentile(v, 50));
	gp_json_add_double(o, "p90", percentile(v, 90));
	gp_json_add_double(o, "p99", percentile(v, 99));
	gp_json_add_double(o, "max", percentile(v, 100));
	return o;
}

/* Every hundredth of the values, for a curve of them. */
static struct json_object *curve_json(const struct values *v)
{
	struct json_object *list = json_object_new_array();

	for (unsigned int i = 1; v->n && i <= 100; i++)
		json_object_array_add(list, gp_json_double(percentile(v, i)));
	return list;
}

static int has_come(const struct gp_cluster *cl, uint64_t i)
{
	return cl->jobs[i].submit_ns <= cl->scenario.duration_ns && cl->jobs[i].gpus <= cl->gpus;
}

static uint64_t count_late(const struct gp_cluster *cl)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < cl->njobs; i++)
		n += cl->jobs[i].submit_ns > cl->scenario.duration_ns;
	return n;
}

/* A job that waits still has waited as long as it has. */
static double wait_s(const struct gp_cluster *cl, const struct gp_job_figures *f, uint64_t i)
{
	uint64_t until = f->start_ns == NOT ? cl->scenario.duration_ns : f->start_ns;

	return (double)(until - cl->jobs[i].submit_ns) / GP_S;
}

struct job_sums {
	uint64_t come, started, finished;
	struct values wait, slowdown;
};

static int sum_jobs(const struct gp_cluster *cl, const struct gp_cluster_result *r, struct job_sums *s)
{
	s->wait.at = calloc(cl->njobs + 1, sizeof(double));
	s->slowdown.at = calloc(cl->njobs + 1, sizeof(double));
	for (uint64_t i = 0; s->wait.at && s->slowdown.at && i < cl->njobs; i++) {
		const struct gp_job_figures *f = &r->jobs[i];

		if (!has_come(cl, i))
			continue;
		s->come++;
		s->started += f->start_ns != NOT;
		s->wait.at[s->wait.n++] = wait_s(cl, f, i);
		if (f->end_ns == NOT)
			continue;
		s->finished++;
		s->slowdown.at[s->slowdown.n++] =
			(double)(f->end_ns - cl->jobs[i].submit_ns) / (double)cl->jobs[i].length_ns;
	}
	return s->wait.at && s->slowdown.at;
}

static struct json_object *moment_json(uint64_t ns)
{
	return ns == NOT ? NULL : gp_json_double((double)ns / GP_S);
}

/* Each job that came: name, GPUs, and when it was submitted, began and ended. */
static struct json_object *list_json(const struct gp_cluster *cl, const struct gp_cluster_result *r)
{
	struct json_object *list = json_object_new_array();

	for (uint64_t i = 0; i < cl->njobs; i++) {
		struct json_object *job;

		if (!has_come(cl, i))
			continue;
		job = json_object_new_array();
		json_object_array_add(job, json_object_new_string(cl->jobs[i].name));
		json_object_array_add(job, json_object_new_uint64(cl->jobs[i].gpus));
		json_object_array_add(job, moment_json(cl->jobs[i].submit_ns));
		json_object_array_add(job, moment_json(r->jobs[i].start_ns));
		json_object_array_add(job, moment_json(r->jobs[i].end_ns));
		json_object_array_add(list, job);
	}
	return list;
}

static struct json_object *jobs_json(const struct gp_cluster *cl, const struct gp_cluster_row *row)
{
	struct json_object *o = json_object_new_object();
	struct job_sums s = { 0 };

	if (row->config.kind != GP_CONFIG_EXCLUSIVE && sum_jobs(cl, row->result, &s)) {
		gp_json_add_int(o, "submitted", s.come);
		gp_json_add_int(o, "started", s.started);
		gp_json_add_int(o, "finished", s.finished);
		gp_json_add_int(o, "running", s.started - s.finished);
		gp_json_add_int(o, "waiting", s.come - s.started);
		gp_json_add_int(o, "refused", row->result->refused);
		json_object_object_add(o, "wait_s", values_json(&s.wait));
		json_object_object_add(o, "slowdown", values_json(&s.slowdown));
		json_object_object_add(o, "wait_curve_s", curve_json(&s.wait));
		json_object_object_add(o, "list", list_json(cl, row->result));
	}
	free(s.wait.at);
	free(s.slowdown.at);
	return o;
}

static double part(uint64_t of, uint64_t all)
{
	return all ? (double)of / (double)all : NAN;
}

static void add_online(struct json_object *o, const struct gp_online_counts *c)
{
	gp_json_add_int(o, "requests", c->requests);
	gp_json_add_int(o, "unfinished", c->unfinished);
	gp_json_add_double(o, "slo_attainment", part(c->slo_met, c->slo_requests));
}

static void add_latency(struct json_object *o, const struct gp_hist *h)
{
	struct json_object *l = json_object_new_object();

	gp_json_add_ns(l, "p50", gp_hist_figure(h, 5000));
	gp_json_add_ns(l, "p95", gp_hist_figure(h, 9500));
	gp_json_add_ns(l, "p99", gp_hist_figure(h, 9900));
	gp_json_add_ns(l, "p999", gp_hist_figure(h, 9990));
	gp_json_add_ns(l, "max", h->count ? (double)h->max : NAN);
	json_object_object_add(o, "latency_ns", l);
}

static struct json_object *services_json(const struct gp_cluster *cl, const struct gp_cluster_result *r)
{
	struct json_object *list = json_object_new_array();

	for (uint32_t i = 0; i < cl->scenario.ngroups; i++) {
		const struct gp_group *g = &cl->scenario.groups[i];
		struct json_object *o;

		if (g->client_class != GP_CLASS_ONLINE)
			continue;
		o = json_object_new_object();
		gp_json_add_text(o, "name", g->name);
		add_online(o, &r->services[i].online);
		add_latency(o, &r->services[i].latency);
		json_object_array_add(list, o);
	}
	return list;
}

static double gpu_hours(const struct gp_cluster *cl, double wave_ns)
{
	return wave_ns / gp_work_pace(&gp_cluster_work(cl)->work, &cl->scenario.device) / HOUR_NS;
}

static struct json_object *gpus_json(const struct gp_cluster *cl, const struct gp_cluster_result *r)
{
	struct json_object *list = json_object_new_array();

	for (uint64_t i = 0; i < cl->gpus; i++) {
		const struct gp_gpu_figures *f = &r->gpus[i];
		struct json_object *o = json_object_new_object();

		gp_json_add_text(o, "service", f->service == NOT ? "" : cl->scenario.groups[f->service].name);
		add_online(o, &f->online);
		gp_json_add_ns(o, "p99_ns", f->online.requests < 1000 ? NAN : (double)f->p99_ns);
		gp_json_add_double(o, "online_busy", part(f->online_busy_ns, cl->scenario.duration_ns));
		gp_json_add_double(o, "harvested_gpu_hours", gpu_hours(cl, (double)f->offline_wave_ns));
		gp_json_add_int(o, "jobs", f->jobs);
		gp_json_add_int(o, "preemptions", f->preemptions);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *counts_json(const uint64_t *values, double unit)
{
	struct json_object *list = json_object_new_array();

	for (int i = 0; i < GP_CLUSTER_SLICES; i++)
		json_object_array_add(list, gp_json_double((double)values[i] / unit));
	return list;
}

/* Over time: requests per second, GPUs' worth of offline work, jobs. */
static struct json_object *series_json(const struct gp_cluster *cl, const struct gp_cluster_result *r)
{
	const double slice = (double)cl->scenario.duration_ns / GP_CLUSTER_SLICES;
	const double pace = gp_work_pace(&gp_cluster_work(cl)->work, &cl->scenario.device);
	struct json_object *o = json_object_new_object();

	gp_json_add_ns(o, "slice_ns", slice);
	json_object_object_add(o, "online_per_s", counts_json(r->online_done, slice / GP_S));
	json_object_object_add(o, "offline_gpus", counts_json(r->offline_wave_us, slice * pace / GP_US));
	json_object_object_add(o, "jobs_running", counts_json(r->running, 1));
	json_object_object_add(o, "jobs_waiting", counts_json(r->waiting, 1));
	return o;
}

struct sums {
	struct gp_online_counts online;
	double offline_wave_ns; /* an hour of a thousand MI300X is more than 64 bits have */
	uint64_t busy_ns, lost_wave_ns, preemptions, cycles;
};

static struct sums sum_gpus(const struct gp_cluster *cl, const struct gp_cluster_result *r)
{
	struct sums s = { 0 };

	for (uint64_t i = 0; i < cl->gpus; i++) {
		const struct gp_gpu_figures *f = &r->gpus[i];

		s.online.requests += f->online.requests;
		s.online.unfinished += f->online.unfinished;
		s.online.slo_met += f->online.slo_met;
		s.online.slo_requests += f->online.slo_requests;
		s.busy_ns += f->online_busy_ns;
		s.offline_wave_ns += (double)f->offline_wave_ns;
		s.lost_wave_ns += f->lost_wave_ns;
		s.preemptions += f->preemptions;
		s.cycles += f->cycles;
	}
	return s;
}

/* What services take when nobody is beside them, if that was run; else in the row itself. */
static double online_hours(const struct gp_cluster_input *in, const struct sums *of_row)
{
	uint64_t busy = of_row->busy_ns;

	for (size_t i = 0; i < in->nrows; i++)
		if (in->rows[i].config.kind == GP_CONFIG_EXCLUSIVE)
			busy = sum_gpus(in->cluster, in->rows[i].result).busy_ns;
	return (double)busy / HOUR_NS;
}

static void add_hours(struct json_object *o, const struct gp_cluster_input *in, const struct sums *s)
{
	const struct gp_cluster *cl = in->cluster;
	const double all = (double)cl->gpus * (double)cl->scenario.duration_ns / HOUR_NS;
	const double busy = online_hours(in, s), harvested = gpu_hours(cl, s->offline_wave_ns);

	gp_json_add_double(o, "gpu_hours", all);
	gp_json_add_double(o, "online_gpu_hours", busy);
	gp_json_add_double(o, "harvested_gpu_hours", harvested);
	gp_json_add_double(o, "harvest", all > busy && harvested > 0 ? harvested / (all - busy) : NAN);
}

static struct json_object *all_json(const struct gp_cluster_input *in, const struct gp_cluster_row *row)
{
	const struct gp_cluster *cl = in->cluster;
	const struct gp_cluster_result *r = row->result;
	struct json_object *o = json_object_new_object();
	struct gp_hist *latency = calloc(1, sizeof(*latency));
	const struct sums s = sum_gpus(cl, r);

	for (uint32_t i = 0; latency && i < cl->scenario.ngroups; i++)
		gp_hist_merge(latency, &r->services[i].latency);
	add_hours(o, in, &s);
	add_online(o, &s.online);
	if (latency)
		add_latency(o, latency);
	gp_json_add_int(o, "preemptions", s.preemptions);
	gp_json_add_int(o, "cycles", s.cycles);
	gp_json_add_int(o, "lost_wave_ns", s.lost_wave_ns);
	gp_json_add_int(o, "looks", r->looks);
	free(latency);
	return o;
}

static struct json_object *row_json(const struct gp_cluster_input *in, const struct gp_cluster_row *row)
{
	const struct gp_cluster *cl = in->cluster;
	struct json_object *o = json_object_new_object();

	gp_json_add_text(o, "config", gp_config_name(row->config.kind));
	json_object_object_add(o, "hints", json_object_new_boolean(row->config.hints != 0));
	gp_json_add_text(o, "placement", row->config.kind == GP_CONFIG_EXCLUSIVE ? "" : row->placement->name);
	json_object_object_add(o, "all", all_json(in, row));
	json_object_object_add(o, "jobs", jobs_json(cl, row));
	json_object_object_add(o, "services", services_json(cl, row->result));
	json_object_object_add(o, "series", series_json(cl, row->result));
	json_object_object_add(o, "gpus", gpus_json(cl, row->result));
	return o;
}

static struct json_object *service_json(const struct gp_group *g)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_text(o, "name", g->name);
	gp_json_add_int(o, "gpus", g->gpus);
	gp_json_add_text(o, "class", class_names[g->service_class]);
	gp_json_add_int(o, "clients", g->clients);
	gp_json_add_text(o, "work", g->work.name);
	gp_json_add_double(o, "rate_per_s",
			   g->arrival <= GP_ARRIVAL_BURST ? (double)g->rate_milli / 1000 : NAN);
	json_object_object_add(o, "has_curve", json_object_new_boolean(g->curve && g->curve->npoints));
	gp_json_add_int(o, "bursts", g->curve ? g->curve->nbursts : 0);
	gp_json_add_int(o, "slo_ns", g->slo_ns);
	return o;
}

static struct json_object *cluster_json(const struct gp_cluster *cl, const char *text)
{
	struct json_object *o = json_object_new_object(), *services = json_object_new_array();

	gp_json_add_text(o, "name", cl->scenario.name);
	gp_json_add_text(o, "device", cl->scenario.device_name);
	gp_json_add_text(o, "policy", cl->scenario.policy);
	gp_json_add_int(o, "duration_ns", cl->scenario.duration_ns);
	gp_json_add_int(o, "gpus", cl->gpus);
	gp_json_add_int(o, "slots", cl->slots);
	gp_json_add_int(o, "tick_ns", cl->tick_ns);
	gp_json_add_text(o, "job_work", gp_cluster_work(cl)->work.name);
	gp_json_add_int(o, "jobs_in_trace", cl->njobs);
	gp_json_add_int(o, "without_gpu", cl->without_gpu);
	gp_json_add_int(o, "never_ran", cl->never_ran);
	gp_json_add_int(o, "before_begin", cl->before);
	gp_json_add_int(o, "after_end", count_late(cl));
	for (uint32_t i = 0; i < cl->scenario.ngroups; i++)
		if (cl->scenario.groups[i].client_class == GP_CLASS_ONLINE)
			json_object_array_add(services, service_json(&cl->scenario.groups[i]));
	json_object_object_add(o, "services", services);
	gp_json_add_text(o, "text", text);
	return o;
}

struct json_object *gp_cluster_json(const struct gp_cluster_input *in)
{
	struct json_object *o = json_object_new_object(), *rows = json_object_new_array();

	gp_json_add_text(o, "schema", GP_CLUSTER_SCHEMA);
	json_object_object_add(o, "simulated", json_object_new_boolean(1));
	gp_json_add_text(o, "gpreempt", GPREEMPT_VERSION);
	gp_json_add_text(o, "command", in->command);
	gp_json_add_int(o, "seed", in->cluster->scenario.seed);
	json_object_object_add(o, "cluster", cluster_json(in->cluster, in->sources->text));
	json_object_object_add(o, "device", gp_device_json(&in->sources->device));
	for (size_t i = 0; i < in->nrows; i++)
		json_object_array_add(rows, row_json(in, &in->rows[i]));
	json_object_object_add(o, "rows", rows);
	return o;
}
