// SPDX-License-Identifier: MIT
#include <math.h>

#include "study/output.h"

static const char *arrival_name(uint32_t arrival)
{
	switch (arrival) {
	case GP_ARRIVAL_PERIODIC:
		return "periodic";
	case GP_ARRIVAL_POISSON:
		return "poisson";
	case GP_ARRIVAL_BURST:
		return "burst";
	case GP_ARRIVAL_TRACE:
		return "trace";
	case GP_ARRIVAL_CLOSED:
		return "closed";
	default:
		return "always";
	}
}

static const char *sweep_name(uint32_t sweep)
{
	switch (sweep) {
	case GP_SWEEP_LOAD:
		return "load";
	case GP_SWEEP_LENGTH:
		return "length";
	default:
		return "queues";
	}
}

static struct json_object *work_json(const struct gp_work *work)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_text(o, "name", work->name);
	gp_json_add_int(o, "kernels", work->kernels);
	gp_json_add_int(o, "length_ns", work->length_ns);
	gp_json_add_int(o, "share_permille", work->share_permille);
	gp_json_add_int(o, "every", work->every);
	gp_json_add_int(o, "every_length_ns", work->every_length_ns);
	gp_json_add_int(o, "interval_ns", work->interval_ns);
	return o;
}

/* A trace is a file of its own, so the result carries it: [time_ns, client]. */
static struct json_object *arrivals_json(const struct gp_group *group)
{
	struct json_object *list = json_object_new_array();

	for (uint64_t i = 0; i < group->trace_len; i++) {
		struct json_object *pair = json_object_new_array();

		json_object_array_add(pair, json_object_new_uint64(group->trace_ns[i]));
		json_object_array_add(pair, json_object_new_uint64(group->trace_client[i]));
		json_object_array_add(list, pair);
	}
	return list;
}

static struct json_object *group_json(const struct gp_scenario *sc, const struct gp_group *group)
{
	const int online = group->client_class == GP_CLASS_ONLINE;
	struct json_object *o = json_object_new_object();
	double rate = NAN;

	if (online && group->arrival <= GP_ARRIVAL_BURST && sc->sweep != GP_SWEEP_LOAD)
		rate = (double)group->rate_milli / 1000;
	gp_json_add_text(o, "name", group->name);
	gp_json_add_text(o, "class", online ? "online" : "offline");
	gp_json_add_int(o, "clients", group->clients);
	gp_json_add_int(o, "queues", group->queues);
	gp_json_add_int(o, "idle_queues", group->idle_queues);
	gp_json_add_text(o, "arrival", arrival_name(group->arrival));
	gp_json_add_double(o, "rate_per_s", rate);
	json_object_object_add(o, "work", work_json(&group->work));
	gp_json_add_int(o, "prepare_ns", group->prepare_ns);
	json_object_object_add(o, "serial", json_object_new_boolean(group->serial != 0));
	gp_json_add_int(o, "think_ns", group->arrival == GP_ARRIVAL_CLOSED ? group->think_ns : 0);
	gp_json_add_int(o, "slo_ns", group->slo_ns);
	gp_json_add_int(o, "priority", group->priority);
	gp_json_add_int(o, "weight", group->weight);
	gp_json_add_int(o, "device", group->device);
	if (group->trace_len)
		json_object_object_add(o, "trace", arrivals_json(group));
	return o;
}

struct json_object *gp_scenario_json(const struct gp_scenario *sc, const char *text)
{
	struct json_object *o = json_object_new_object();
	struct json_object *groups = json_object_new_array();

	gp_json_add_text(o, "name", sc->name);
	gp_json_add_text(o, "device", sc->device_name);
	gp_json_add_int(o, "devices", sc->devices);
	gp_json_add_text(o, "policy", sc->policy);
	gp_json_add_int(o, "duration_ns", sc->duration_ns);
	gp_json_add_int(o, "warmup_ns", sc->warmup_ns);
	gp_json_add_int(o, "throttle_depth", sc->throttle_depth);
	json_object_object_add(o, "max_starve_ns",
			       sc->max_starve_ns == UINT64_MAX ? NULL
							       : json_object_new_uint64(sc->max_starve_ns));
	json_object_object_add(o, "rotate", json_object_new_boolean(sc->rotate != 0));
	gp_json_add_int(o, "quantum_ns", sc->quantum_ns);
	gp_json_add_int(o, "park", sc->park);
	gp_json_add_int(o, "yield_slice_ns", sc->yield_slice_ns);
	json_object_object_add(o, "sweep", sc->nsweep ? json_object_new_string(sweep_name(sc->sweep)) : NULL);
	for (uint32_t i = 0; i < sc->ngroups; i++)
		json_object_array_add(groups, group_json(sc, &sc->groups[i]));
	json_object_object_add(o, "groups", groups);
	gp_json_add_text(o, "text", text);
	return o;
}

struct json_object *gp_device_json(const struct gp_device_file *file)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_text(o, "name", file->name);
	gp_json_add_text(o, "title", file->title);
#define ADD(key, min, max) gp_json_add_int(o, #key, file->device.key);
	GPM_DEVICE_KEYS(ADD)
#undef ADD
	return o;
}
