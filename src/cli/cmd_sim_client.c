// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/columns.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "simgpu/client.h"
#include "simgpu/proto.h"
#include "study/json.h"
#include "study/result.h"
#include "base/units.h"

static const char usage[] =
	"usage: gpreempt sim-client (--online|--offline) --work NAME [options]\n"
	"\n"
	"Is a program on the simulated GPU that gpreempt sim-gpu is, and a client of gpreemptd if there\n"
	"is one. Prints what it measured when it ends: after its time or requests, or at Ctrl-C.\n"
	"\n"
	"  --online           requests come by the clock, whether the GPU keeps up or not\n"
	"  --offline          steps follow each other, two are always there\n"
	"  --work NAME        of a request or step: infer-1ms, infer-10ms, decode, train or long\n"
	"  --rate R           online: requests per second (10)\n"
	"  --arrival NAME     online: periodic (the default), poisson or burst\n"
	"  --duration TIME    end after that, as 10s\n"
	"  --requests N       end after so many requests or steps\n"
	"  --queues N         so many queues (1), used in turn\n"
	"  --hints            tell gpreemptd of each request before the GPU has it\n"
	"  --weight N         its share beside others of its class (100)\n"
	"  --slo TIME         how long a request may take, as 20ms\n"
	"  --name NAME        what it is called (its work)\n"
	"  --device N         which of the GPU's devices (0)\n"
	"  --seed N           another run of chance (1)\n"
	"  --gpu PATH         the simulated GPU's socket\n"
	"  --socket PATH      gpreemptd's\n"
	"  --verbose          say each request or step when it is done, on standard error\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt sim-client --offline --work train\n"
	"  gpreempt sim-client --online --work infer-10ms --rate 20 --arrival poisson --duration 30s\n";

#define CELL 32

static void say(const char *line)
{
	(void)gp_fail(0, "%s", line);
}

/* NAN: nobody knows. */
static const char *ms_text(double ns, char text[CELL])
{
	if (isnan(ns))
		snprintf(text, CELL, "-");
	else
		snprintf(text, CELL, "%.3f", ns / (double)GP_MS);
	return text;
}

static double largest(const struct gp_hist *h)
{
	return h->count ? (double)h->max : NAN;
}

static double mean(const struct gp_hist *h)
{
	return h->count ? (double)gp_hist_mean(h) : NAN;
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)GP_S;
}

static double per_second(const struct gp_simclient_figures *f)
{
	return f->elapsed_ns ? (double)f->completed / seconds(f->elapsed_ns) : 0;
}

static double stopped_share(const struct gp_simclient_figures *f)
{
	return f->elapsed_ns ? (double)f->stopped_ns / (double)f->elapsed_ns : 0;
}

/* permyriad, as gp_hist_figure() takes it */
static const struct {
	const char *name;
	uint32_t permyriad;
} quantiles[] = { { "p50", 5000 }, { "p95", 9500 }, { "p99", 9900 }, { "p999", 9990 } };

#define NQUANTILES (sizeof(quantiles) / sizeof(quantiles[0]))

static struct json_object *latency_json(const struct gp_hist *h)
{
	struct json_object *o = json_object_new_object();

	for (size_t i = 0; i < NQUANTILES; i++)
		gp_json_add_ns(o, quantiles[i].name, gp_hist_figure(h, quantiles[i].permyriad));
	gp_json_add_ns(o, "max", largest(h));
	gp_json_add_ns(o, "mean", mean(h));
	return o;
}

static struct json_object *late_json(const struct gp_hist *h)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_int(o, "sleeps", h->count);
	gp_json_add_ns(o, "p50", gp_hist_figure(h, 5000));
	gp_json_add_ns(o, "max", largest(h));
	return o;
}

static void print_json(const struct gp_simclient_opts *o, const struct gp_simclient_figures *f)
{
	struct json_object *json = json_object_new_object();
	int online = o->client_class == GP_CLASS_ONLINE;

	gp_json_add_text(json, "schema", "gpreempt-sim-client-1");
	json_object_object_add(json, "simulated", json_object_new_boolean(1));
	gp_json_add_text(json, "name", o->name);
	gp_json_add_text(json, "class", online ? "online" : "offline");
	gp_json_add_text(json, "work", o->work.name);
	gp_json_add_text(json, "device", f->device.name);
	json_object_object_add(json, "scheduled", json_object_new_boolean((int)f->scheduled));
	gp_json_add_int(json, "elapsed_ns", f->elapsed_ns);
	gp_json_add_int(json, "submitted", f->submitted);
	gp_json_add_int(json, "completed", f->completed);
	gp_json_add_double(json, "per_second", per_second(f));
	gp_json_add_int(json, "stops", f->stops);
	gp_json_add_double(json, "stopped_share", stopped_share(f));
	json_object_object_add(json, "latency_ns", online ? latency_json(&f->latency) : NULL);
	json_object_object_add(json, "late_ns", late_json(&f->late));
	if (o->slo_ns) {
		gp_json_add_int(json, "slo_ns", o->slo_ns);
		gp_json_add_int(json, "slo_met", f->slo_met);
	}
	gp_json_print(json);
}

/* Simulated figures say so, and so does the clock they were taken by. */
static void print_head(const struct gp_simclient_opts *o, const struct gp_simclient_figures *f)
{
	printf("%s: %s %s on a simulated %s, %.1f s of simulated time on the real clock%s\n", o->name,
	       o->client_class == GP_CLASS_ONLINE ? "online" : "offline", o->work.name, f->device.name,
	       seconds(f->elapsed_ns), f->scheduled ? "" : "; nobody scheduled it");
}

static void print_online(const struct gp_simclient_opts *o, const struct gp_simclient_figures *f)
{
	static const char *const headings[] = { "requests", "open",   "p50 ms",  "p95 ms",        "p99 ms",
						"p99.9 ms", "max ms", "mean ms", "within the SLO" };
	const struct gp_hist *h = &f->latency;
	char cells[9][CELL] = { "" };
	const char *words[9];
	struct gp_columns columns;

	snprintf(cells[0], sizeof(cells[0]), "%" PRIu64, h->count);
	snprintf(cells[1], sizeof(cells[1]), "%" PRIu64, f->submitted - f->completed);
	for (size_t i = 0; i < NQUANTILES; i++)
		ms_text(gp_hist_figure(h, quantiles[i].permyriad), cells[2 + i]);
	ms_text(largest(h), cells[6]);
	ms_text(mean(h), cells[7]);
	if (o->slo_ns && h->count)
		snprintf(cells[8], sizeof(cells[8]), "%.1f%%", 100.0 * (double)f->slo_met / (double)h->count);
	for (size_t i = 0; i < 9; i++)
		words[i] = cells[i];
	gp_columns_begin(&columns, headings, 9);
	gp_columns_add(&columns, words);
	gp_columns_print(&columns, stdout);
}

static void print_offline(const struct gp_simclient_figures *f)
{
	static const char *const headings[] = { "steps", "steps/s", "stopped", "times" };
	char steps[CELL], rate[CELL], stopped[CELL], times[CELL];
	const char *const words[] = { steps, rate, stopped, times };
	struct gp_columns columns;

	snprintf(steps, sizeof(steps), "%" PRIu64, f->completed);
	snprintf(rate, sizeof(rate), "%.3f", per_second(f));
	snprintf(stopped, sizeof(stopped), "%.1f%%", 100 * stopped_share(f));
	snprintf(times, sizeof(times), "%" PRIu64, f->stops);
	gp_columns_begin(&columns, headings, 4);
	gp_columns_add(&columns, words);
	gp_columns_print(&columns, stdout);
}

/* What the host adds, to be told from what the device and those before did. */
static void print_late(const struct gp_hist *h)
{
	char half[CELL], most[CELL];

	if (h->count)
		printf("Host: woke it late, p50 %s ms, at most %s ms, of %" PRIu64
		       " sleeps; that is in the figures, and no queueing.\n",
		       ms_text(gp_hist_figure(h, 5000), half), ms_text(largest(h), most), h->count);
}

static void print(const struct gp_options *o, const struct gp_simclient_opts *client,
		  const struct gp_simclient_figures *f)
{
	if (o->json) {
		print_json(client, f);
		return;
	}
	print_head(client, f);
	if (client->client_class == GP_CLASS_ONLINE)
		print_online(client, f);
	else
		print_offline(f);
	print_late(&f->late);
}

static int run_client(const struct gp_options *o, struct gp_simclient_opts *client)
{
	struct gp_simclient_figures *figures = calloc(1, sizeof(*figures));
	char why[256] = "";
	int r;

	client->end_fd = gp_signals_fd();
	if (!figures || client->end_fd < 0) {
		free(figures);
		return gp_fail(GP_EXIT_FAILED, "out of memory, or of descriptors");
	}
	r = gp_simclient_run(client, figures, why, sizeof(why));
	if (figures->elapsed_ns)
		print(o, client, figures);
	free(figures);
	close(client->end_fd);
	return r < 0 ? gp_fail(GP_EXIT_FAILED, "%s", why) : GP_EXIT_OK;
}

/* -1 to go on, else the exit code. */
static int check(const struct gp_options *o, uint64_t *ret_device)
{
	if (o->online == o->offline)
		return gp_fail(GP_EXIT_BAD_INPUT, "sim-client: say either --online or --offline");
	if (!o->work)
		return gp_fail(GP_EXIT_BAD_INPUT, "sim-client: say --work, one of: " GP_WORKS);
	if (o->offline && (o->rate_milli || o->hints || o->slo_ns || o->arrival))
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "sim-client: --rate, --arrival, --hints and --slo are for --online");
	*ret_device = 0;
	if (o->device && (gp_count_parse(o->device, ret_device) < 0 || *ret_device > UINT16_MAX))
		return gp_fail(GP_EXIT_BAD_INPUT, "--device: \"%s\" is no number of a device, as 0",
			       o->device);
	return -1;
}

/* The socket, or "" after a complaint. */
static const char *gpu_path(const struct gp_options *o, char *path, size_t size)
{
	if (o->gpu)
		return o->gpu;
	if (gp_simgpu_path(path, size) == 0)
		return path;
	(void)gp_fail(0, "XDG_RUNTIME_DIR is not set, or too long; give --gpu PATH");
	return "";
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_simclient_opts client = { .say = say };
	struct gp_options o;
	uint64_t device = 0;
	char path[108];
	int code = gp_options_parse(verb, argc, argv, 0, 0, &o);

	if (code < 0)
		code = check(&o, &device);
	if (code >= 0)
		return code;
	if (gp_work_by_name(o.work, &client.work) < 0)
		return gp_fail(GP_EXIT_BAD_INPUT, "--work: unknown work \"%s\"; known are: " GP_WORKS,
			       o.work);
	client.gpu = gpu_path(&o, path, sizeof(path));
	if (!*client.gpu)
		return GP_EXIT_BAD_INPUT;
	client.socket = o.socket;
	client.name = o.name ? o.name : client.work.name;
	client.device = (uint32_t)device;
	client.client_class = o.online ? GP_CLASS_ONLINE : GP_CLASS_OFFLINE;
	client.arrival = o.online ? o.arrival : GP_ARRIVAL_ALWAYS;
	client.queues = o.queues ? (uint32_t)o.queues : 1;
	client.hints = (uint32_t)o.hints;
	client.verbose = (uint32_t)o.verbose;
	client.weight = (uint32_t)o.weight;
	client.rate_milli = o.rate_milli ? o.rate_milli : 10 * 1000;
	client.slo_ns = o.slo_ns;
	client.duration_ns = o.duration_ns;
	client.requests = o.requests;
	client.seed = o.has_seed ? o.seed : 1;
	return run_client(&o, &client);
}

const struct gp_verb gp_verb_sim_client = {
	.name = "sim-client",
	.summary = "be a program on a simulated GPU",
	.usage = usage,
	.options =
		"online offline work rate arrival duration requests queues hints weight slo name device seed gpu "
		"socket verbose json",
	.run = run,
};
