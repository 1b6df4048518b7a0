// SPDX-License-Identifier: MIT
#include "cli/device_stats.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "study/json.h"

int gp_devices_run(const struct gp_verb *verb, const struct gp_options *o, const char *word,
		   gp_devices_fn *fn, void *arg)
{
	uint32_t device = GP_ALL_DEVICES;
	struct gp_machine_list list;
	struct gp_ctx *ctx;
	int code = word ? gp_device_check(verb->name, word) : -1;

	if (code < 0)
		code = gp_machine_open(o, NULL, &ctx);
	if (code >= 0)
		return code;
	if (gp_machine_list_read(ctx, &list) < 0) {
		code = gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
	} else {
		if (word)
			code = gp_device_choose(verb->name, word, &list, &device);
		if (code < 0)
			code = fn(arg, o, ctx, &list, device);
		gp_machine_list_free(&list);
	}
	gp_ctx_close(ctx);
	return code;
}

int gp_stats_each(struct gp_ctx *ctx, const struct gp_machine_list *l, uint32_t device, gp_stats_fn *fn,
		  void *arg)
{
	struct gp_stats stats = { .size = sizeof(stats) };

	for (size_t i = 0; i < l->ndevices; i++) {
		if (device != GP_ALL_DEVICES && l->devices[i].device != device)
			continue;
		if (gp_device_stats(ctx, l->devices[i].device, &stats) < 0)
			return gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
		fn(arg, &l->devices[i], &stats);
	}
	return -1;
}

/* As much of it as people read, before what was wrong: that is cut where there is no room. */
const char *gp_reason_text(const struct gp_stats *s, char text[GP_REASON_TEXT])
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "d", 24 * 3600 * GP_S }, { "h", 3600 * GP_S }, { "min", 60 * GP_S }, { "s", GP_S } };
	const size_t finest = sizeof(units) / sizeof(units[0]) - 1;
	size_t i = 0;

	while (i < finest && s->reason_age_ns < units[i].ns)
		i++;
	if (s->reason[0] && s->reason_age_ns)
		snprintf(text, GP_REASON_TEXT, "%" PRIu64 "%s ago: %s", s->reason_age_ns / units[i].ns,
			 units[i].name, s->reason);
	else
		snprintf(text, GP_REASON_TEXT, "%s", s->reason);
	return text;
}

struct json_object *gp_stats_json(const struct gp_device_info *d, const struct gp_stats *s)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_int(o, "device", d->device);
	gp_json_add_text(o, "name", d->name);
	json_object_object_add(o, "simulated", json_object_new_boolean(gp_device_is_simulated(d)));
	gp_json_add_text(o, "policy", s->policy);
	return o;
}

static void add_times(struct json_object *o, const char *key, uint64_t p50, uint64_t p99, uint64_t max)
{
	struct json_object *times = json_object_new_object();

	gp_json_add_int(times, "p50", p50);
	gp_json_add_int(times, "p99", p99);
	gp_json_add_int(times, "max", max);
	json_object_object_add(o, key, times);
}

struct json_object *gp_stats_all_json(const struct gp_device_info *d, const struct gp_stats *s)
{
	struct json_object *o = gp_stats_json(d, s);

	gp_json_add_int(o, "yielding", s->yielding);
	gp_json_add_int(o, "stopped", s->stopped);
	gp_json_add_int(o, "preemptions", s->preemptions);
	gp_json_add_int(o, "cycles", s->cycles);
	gp_json_add_int(o, "suspends", s->suspends);
	gp_json_add_int(o, "resumes", s->resumes);
	gp_json_add_int(o, "failures", s->failures);
	gp_json_add_int(o, "slices", s->slices);
	gp_json_add_int(o, "slice_failures", s->slice_failures);
	gp_json_add_int(o, "limited", s->limited);
	add_times(o, "suspend_ns", s->suspend_p50_ns, s->suspend_p99_ns, s->suspend_max_ns);
	add_times(o, "resume_ns", s->resume_p50_ns, s->resume_p99_ns, s->resume_max_ns);
	gp_json_add_int(o, "hints", s->hints);
	gp_json_add_int(o, "samples", s->samples);
	json_object_object_add(o, "backs_off", json_object_new_boolean(s->backoff_until_ns != 0));
	gp_json_add_text(o, "reason", s->reason);
	gp_json_add_int(o, "reason_age_ns", s->reason_age_ns);
	gp_json_add_int(o, "ejected", s->policy_ejected);
	gp_json_add_text(o, "ejection", s->ejection);
	return o;
}

void gp_stats_json_print(const char *schema, struct json_object *devices)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_text(o, "schema", schema);
	json_object_object_add(o, "devices", devices);
	gp_json_print(o);
}
