// SPDX-License-Identifier: MIT
#include "metrics/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hist.h"
#include "base/time.h"

/* Names of what is counted, in the order of their enums. */
static const char *const classes[] = { "offline", "online" };
static const char *const states[] = { "idle", "running", "waiting", "held" };
static const char *const attempts[GP_ATTEMPTS] = { "suspend", "resume", "yield" };
static const char *const failures[GP_FAILURES] = {
	"timeout", "gone", "refused", "busy", "canceled", "driver"
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Names come from others: a quote in one must not end the label. */
static void put_label(FILE *out, const char *label, const char *value)
{
	fprintf(out, "%s=\"", label);
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '"' || *value == '\\')
			fprintf(out, "\\%c", *value);
		else
			fputc(*value, out);
	}
	fputc('"', out);
}

/* "NAME{device="0"": labels and the brace that ends them follow. */
static void begin(FILE *out, const char *name, uint32_t device)
{
	if (device == GP_ALL_DEVICES)
		fprintf(out, "%s{device=\"none\"", name); /* a client that has none yet, or an unknown one */
	else
		fprintf(out, "%s{device=\"%" PRIu32 "\"", name, device);
}

static void put_seconds(FILE *out, uint64_t ns)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64, ns / GP_S, ns % GP_S);
}

static void end_seconds(FILE *out, uint64_t ns)
{
	fputs("} ", out);
	put_seconds(out, ns);
	fputc('\n', out);
}

/* One number of each device */

enum number_kind { WIDE, NARROW, TRUTH };

/* Where a number is in struct gp_stats. */
static const struct number {
	const char *name, *type, *help;
	size_t offset;
	enum number_kind kind;
	int is_detail;
} numbers[] = {
#define STAT(field) offsetof(struct gp_stats, field)
	{ "gpreempt_preemptions_total", "counter", "Times offline work was taken off for online work.",
	  STAT(preemptions), WIDE, 0 },
	{ "gpreempt_device_cycles_total", "counter",
	  "Times the device was made to unmap and map queues again, or to switch contexts.", STAT(cycles),
	  WIDE, 0 },
	{ "gpreempt_stops_put_off_total", "counter",
	  "Stops that had to wait: for the device's budget of cycles, "
	  "or after one of the client had failed.",
	  STAT(limited), WIDE, 0 },
	{ "gpreempt_backing_off", "gauge",
	  "1 while a stop waits because the device's budget of cycles is used up, else 0.",
	  STAT(backoff_until_ns), TRUTH, 0 },
	{ "gpreempt_clients_backing_off", "gauge",
	  "Clients that are left alone now because a stop of theirs failed, or was refused: "
	  "who can be no more than made to yield is one of them while online is there.",
	  STAT(backing_off), NARROW, 1 },
	{ "gpreempt_policy_ejections_total", "counter", "Policies that were ejected: fifo went on.",
	  STAT(policy_ejected), WIDE, 0 },
	{ "gpreempt_starvation_slices_total", "counter",
	  "Times a client had waited for max_starve, and got a slice.", STAT(starved), WIDE, 1 },
	{ "gpreempt_hints_expired_total", "counter", "Requests whose hint was not ended before it expired.",
	  STAT(hints_expired), WIDE, 1 },
	{ "gpreempt_slo_requests_total", "counter",
	  "Requests of clients with a latency objective that ended or expired.", STAT(slo_requests), WIDE,
	  1 },
	{ "gpreempt_slo_met_total", "counter", "Those of them that ended within the objective.",
	  STAT(slo_met), WIDE, 1 },
	{ "gpreempt_yield_changes_total", "counter", "Times a queue was made to yield by itself, or not to.",
	  STAT(slices), WIDE, 0 },
	{ "gpreempt_queues_yielding", "gauge",
	  "Queues that run now and that the device itself takes off for online work.", STAT(yielding), NARROW,
	  0 },
#undef STAT
};

static uint64_t number_of(const struct number *n, const struct gp_stats *stats)
{
	const char *at = (const char *)stats + n->offset;
	uint64_t wide;
	uint32_t narrow;

	if (n->kind == NARROW) {
		memcpy(&narrow, at, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, at, sizeof(wide));
	return n->kind == TRUTH ? wide != 0 : wide;
}

/* What an older gpreemptd does not know is not there: it is no 0. */
static void put_numbers(FILE *out, const struct gp_snapshot *s)
{
	for (size_t i = 0; i < COUNT(numbers); i++) {
		head(out, numbers[i].name, numbers[i].type, numbers[i].help);
		for (size_t d = 0; d < s->ndevices; d++) {
			if (numbers[i].is_detail && !s->devices[d].stats.has_details)
				continue;
			begin(out, numbers[i].name, s->devices[d].info.device);
			fprintf(out, "} %" PRIu64 "\n", number_of(&numbers[i], &s->devices[d].stats));
		}
	}
}

/* Histograms */

static const struct histogram {
	const char *name, *help;
	size_t offset;
} histograms[] = {
	{ "gpreempt_suspend_duration_seconds",
	  "How long it took to stop a queue, from the request to the last wave off.",
	  offsetof(struct gp_stats, suspend) },
	{ "gpreempt_resume_duration_seconds", "How long it took to give a queue back.",
	  offsetof(struct gp_stats, resume) },
	{ "gpreempt_online_request_duration_seconds",
	  "How long online requests took, from the begin of their hint to its end.",
	  offsetof(struct gp_stats, online) },
};

static void put_histogram(FILE *out, const char *name, uint32_t device, const struct gp_latencies *l)
{
	char bucket[64], sum[64], count[64];

	snprintf(bucket, sizeof(bucket), "%s_bucket", name);
	snprintf(sum, sizeof(sum), "%s_sum", name);
	snprintf(count, sizeof(count), "%s_count", name);
	for (size_t i = 0; i < GP_LATENCY_BOUNDS; i++) {
		begin(out, bucket, device);
		fprintf(out, ",le=\"%g\"} %" PRIu64 "\n", (double)gp_hist_decade_ns(i) / (double)GP_S,
			l->at_most[i]);
	}
	begin(out, bucket, device);
	fprintf(out, ",le=\"+Inf\"} %" PRIu64 "\n", l->count);
	begin(out, sum, device);
	end_seconds(out, l->sum_ns);
	begin(out, count, device);
	fprintf(out, "} %" PRIu64 "\n", l->count);
}

static void put_histograms(FILE *out, const struct gp_snapshot *s)
{
	for (size_t i = 0; i < COUNT(histograms); i++) {
		const struct histogram *h = &histograms[i];

		head(out, h->name, "histogram", h->help);
		for (size_t d = 0; d < s->ndevices; d++) {
			const struct gp_stats *stats = &s->devices[d].stats;

			if (stats->has_details)
				put_histogram(out, h->name, s->devices[d].info.device,
					      (const struct gp_latencies *)((const char *)stats + h->offset));
		}
	}
}

/* What has more labels than a device */

static void put_infos(FILE *out, const struct gp_snapshot *s)
{
	head(out, "gpreempt_device_info", "gauge", "What a device is; always 1.");
	for (size_t d = 0; d < s->ndevices; d++) {
		const struct gp_device_info *info = &s->devices[d].info;

		begin(out, "gpreempt_device_info", info->device);
		fputc(',', out);
		put_label(out, "name", info->name);
		fputc(',', out);
		put_label(out, "backend", info->backend);
		fputc(',', out);
		put_label(out, "pci", info->pci);
		fputs("} 1\n", out);
	}
	head(out, "gpreempt_policy_info", "gauge", "What schedules a device; always 1.");
	for (size_t d = 0; d < s->ndevices; d++) {
		begin(out, "gpreempt_policy_info", s->devices[d].info.device);
		fputc(',', out);
		put_label(out, "policy", s->devices[d].stats.policy);
		fputs("} 1\n", out);
	}
}

/* The reason is a label: there is one at a time, and it goes when another policy is chosen. */
static void put_ejected(FILE *out, const struct gp_snapshot *s)
{
	static const char name[] = "gpreempt_policy_ejected";

	head(out, name, "gauge",
	     "1 while fifo schedules in the place of a policy that was ejected for that reason, else 0.");
	for (size_t d = 0; d < s->ndevices; d++) {
		const char *why = s->devices[d].stats.ejection;

		begin(out, name, s->devices[d].info.device);
		fputc(',', out);
		put_label(out, "reason", why);
		fprintf(out, "} %d\n", *why != '\0');
	}
}

static void put_activations(FILE *out, const struct gp_snapshot *s)
{
	static const char name[] = "gpreempt_online_activations_total";

	head(out, name, "counter",
	     "Times an online client became active: by a hint, or by what its queues showed.");
	for (size_t d = 0; d < s->ndevices; d++) {
		begin(out, name, s->devices[d].info.device);
		fprintf(out, ",source=\"hint\"} %" PRIu64 "\n", s->devices[d].stats.hints);
		begin(out, name, s->devices[d].info.device);
		fprintf(out, ",source=\"sample\"} %" PRIu64 "\n", s->devices[d].stats.samples);
	}
}

static void put_class_time(FILE *out, const struct gp_snapshot *s, const char *name, const char *help,
			   size_t offline, size_t online)
{
	head(out, name, "counter", help);
	for (size_t d = 0; d < s->ndevices; d++) {
		const char *stats = (const char *)&s->devices[d].stats;

		if (!s->devices[d].stats.has_details)
			continue;
		begin(out, name, s->devices[d].info.device);
		fputs(",class=\"offline\"", out);
		end_seconds(out, *(const uint64_t *)(stats + offline));
		begin(out, name, s->devices[d].info.device);
		fputs(",class=\"online\"", out);
		end_seconds(out, *(const uint64_t *)(stats + online));
	}
}

static void put_class_times(FILE *out, const struct gp_snapshot *s)
{
	put_class_time(out, s, "gpreempt_class_run_seconds_total",
		       "Time in which at least one client of the class had work and was let run.",
		       offsetof(struct gp_stats, offline_run_ns), offsetof(struct gp_stats, online_run_ns));
	put_class_time(out, s, "gpreempt_class_wait_seconds_total",
		       "Time in which at least one client of the class had work and was made to wait.",
		       offsetof(struct gp_stats, offline_wait_ns), offsetof(struct gp_stats, online_wait_ns));
}

static void put_failures(FILE *out, const struct gp_snapshot *s)
{
	static const char name[] = "gpreempt_failures_total";

	head(out, name, "counter",
	     "Stops, resumes and changes of yielding that failed, by what was tried and why.");
	for (size_t d = 0; d < s->ndevices; d++) {
		for (size_t i = 0; s->devices[d].stats.has_details && i < (size_t)GP_ATTEMPTS * GP_FAILURES;
		     i++) {
			size_t attempt = i / GP_FAILURES, why = i % GP_FAILURES;

			begin(out, name, s->devices[d].info.device);
			fprintf(out, ",action=\"%s\",reason=\"%s\"} %" PRIu64 "\n", attempts[attempt],
				failures[why], s->devices[d].stats.failed[attempt][why]);
		}
	}
}

static void put_slots(FILE *out, const struct gp_snapshot *s)
{
	head(out, "gpreempt_queue_slots", "gauge",
	     "Slots of the hardware for compute queues; not there: none are known.");
	for (size_t d = 0; d < s->ndevices; d++) {
		if (!s->devices[d].info.queue_slots)
			continue;
		begin(out, "gpreempt_queue_slots", s->devices[d].info.device);
		fprintf(out, "} %" PRIu32 "\n", s->devices[d].info.queue_slots);
	}
	head(out, "gpreempt_reserved_ratio", "gauge",
	     "Share of the slots that is reserved for a class; both 0: nothing is.");
	for (size_t d = 0; d < s->ndevices; d++) {
		begin(out, "gpreempt_reserved_ratio", s->devices[d].info.device);
		fprintf(out, ",class=\"offline\"} %g\n", s->devices[d].info.offline_percent / 100.0);
		begin(out, "gpreempt_reserved_ratio", s->devices[d].info.device);
		fprintf(out, ",class=\"online\"} %g\n", s->devices[d].info.online_percent / 100.0);
	}
}

/* Clients, added up */

/* Of a device, by class. */
struct sums {
	uint64_t clients[COUNT(classes)][COUNT(states)];
	uint64_t queues[COUNT(classes)][2]; /* running, stopped */
};

static size_t class_of(const struct gp_client_info *c)
{
	return c->client_class == GP_CLASS_ONLINE; /* unknown is treated as offline */
}

static struct sums sum_up(const struct gp_snapshot *s, uint32_t device)
{
	struct sums sums = { 0 };

	for (size_t i = 0; i < s->nclients; i++) {
		const struct gp_client_info *c = &s->clients[i];

		if (c->device != device || c->state >= COUNT(states))
			continue;
		sums.clients[class_of(c)][c->state]++;
		sums.queues[class_of(c)][0] += c->queues - c->stopped;
		sums.queues[class_of(c)][1] += c->stopped;
	}
	return sums;
}

static void put_sums(FILE *out, const struct gp_snapshot *s)
{
	static const char *const queue_states[] = { "running", "stopped" };

	head(out, "gpreempt_clients", "gauge", "Clients, by what they do.");
	for (size_t d = 0; d < s->ndevices; d++) {
		struct sums sums = sum_up(s, s->devices[d].info.device);

		for (size_t i = 0; i < COUNT(classes) * COUNT(states); i++) {
			begin(out, "gpreempt_clients", s->devices[d].info.device);
			fprintf(out, ",class=\"%s\",state=\"%s\"} %" PRIu64 "\n", classes[i / COUNT(states)],
				states[i % COUNT(states)],
				sums.clients[i / COUNT(states)][i % COUNT(states)]);
		}
	}
	head(out, "gpreempt_queues", "gauge", "Queues of clients, by whether they are stopped.");
	for (size_t d = 0; d < s->ndevices; d++) {
		struct sums sums = sum_up(s, s->devices[d].info.device);

		for (size_t i = 0; i < COUNT(classes) * 2; i++) {
			begin(out, "gpreempt_queues", s->devices[d].info.device);
			fprintf(out, ",class=\"%s\",state=\"%s\"} %" PRIu64 "\n", classes[i / 2],
				queue_states[i % 2], sums.queues[i / 2][i % 2]);
		}
	}
}

/* Clients, one by one */

static void begin_client(FILE *out, const char *name, const struct gp_client_info *c)
{
	begin(out, name, c->device);
	fprintf(out, ",pid=\"%" PRIu32 "\",class=\"%s\",", c->pid, classes[class_of(c)]);
	put_label(out, "name", c->name);
}

static void put_share(FILE *out, const char *name, const struct gp_client_info *c)
{
	begin_client(out, name, c);
	fprintf(out, "} %g\n", c->share_permille / 1000.0);
}

static void put_client_queues(FILE *out, const char *name, const struct gp_client_info *c)
{
	begin_client(out, name, c);
	fprintf(out, ",state=\"running\"} %" PRIu32 "\n", c->queues - c->stopped);
	begin_client(out, name, c);
	fprintf(out, ",state=\"stopped\"} %" PRIu32 "\n", c->stopped);
}

static void put_open_hints(FILE *out, const char *name, const struct gp_client_info *c)
{
	begin_client(out, name, c);
	fprintf(out, "} %" PRIu32 "\n", c->hints);
}

static void put_client_activations(FILE *out, const char *name, const struct gp_client_info *c)
{
	begin_client(out, name, c);
	fprintf(out, ",source=\"hint\"} %" PRIu64 "\n", c->hinted);
	begin_client(out, name, c);
	fprintf(out, ",source=\"sample\"} %" PRIu64 "\n", c->sampled);
}

static void put_objective(FILE *out, const char *name, const struct gp_client_info *c)
{
	if (!c->slo_ns)
		return;
	begin_client(out, name, c);
	end_seconds(out, c->slo_ns);
}

static const struct of_client {
	const char *name, *type, *help;
	void (*put)(FILE *out, const char *name, const struct gp_client_info *c);
} of_clients[] = {
	{ "gpreempt_client_share_ratio", "gauge",
	  "Share of the last ten seconds in which the client had work and was let run.", put_share },
	{ "gpreempt_client_queues", "gauge", "Queues of the client, by whether they are stopped.",
	  put_client_queues },
	{ "gpreempt_client_open_hints", "gauge", "Requests of the client that are on their way.",
	  put_open_hints },
	{ "gpreempt_client_activations_total", "counter",
	  "Times the client became active: by a hint, or by what its queues showed.",
	  put_client_activations },
	{ "gpreempt_client_slo_seconds", "gauge", "The client's latency objective; not there: it has none.",
	  put_objective },
};

static void put_clients(FILE *out, const struct gp_snapshot *s)
{
	const size_t n = s->nclients < GP_METRICS_CLIENTS ? s->nclients : GP_METRICS_CLIENTS;

	for (size_t i = 0; i < COUNT(of_clients); i++) {
		head(out, of_clients[i].name, of_clients[i].type, of_clients[i].help);
		for (size_t c = 0; c < n; c++)
			of_clients[i].put(out, of_clients[i].name, &s->clients[c]);
	}
	head(out, "gpreempt_clients_left_out", "gauge",
	     "Clients that are not among those told one by one: there are too many.");
	fprintf(out, "gpreempt_clients_left_out %zu\n", s->nclients - n);
}

static void put_all(FILE *out, const struct gp_snapshot *s, int per_client)
{
	head(out, "gpreempt_up", "gauge", "1 if gpreemptd answered, else 0.");
	fprintf(out, "gpreempt_up %d\n", s->is_up);
	head(out, "gpreempt_build_info", "gauge", "The version of the exporter; always 1.");
	fputs("gpreempt_build_info{version=\"" GPREEMPT_VERSION "\"} 1\n", out);
	if (!s->is_up)
		return;
	put_infos(out, s);
	put_ejected(out, s);
	put_numbers(out, s);
	put_histograms(out, s);
	put_activations(out, s);
	put_class_times(out, s);
	put_failures(out, s);
	put_sums(out, s);
	put_slots(out, s);
	if (per_client)
		put_clients(out, s);
}

char *gp_metrics_text(const struct gp_snapshot *s, int per_client, size_t *ret_size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_size);
	int is_whole;

	if (!out)
		return NULL;
	put_all(out, s, per_client);
	is_whole = !ferror(out);
	if (fclose(out) == 0 && is_whole)
		return text;
	free(text);
	return NULL;
}
