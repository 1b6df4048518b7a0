// SPDX-License-Identifier: MIT
/* Every section and key of a scenario file, with its range and default: the one place for them. */
#include <errno.h>
#include <string.h>

#include "model/gpu.h"
#include "study/draft.h"
#include "base/units.h"
#include "ini/words.h"

#define MAX_LENGTH (10000 * GP_S)
#define MAX_DURATION (100000 * GP_S)
#define MAX_FACTOR 10000 /* permille of a rate */
/* The largest whole number that every reader of JSON keeps exactly. */
#define MAX_SEED ((1ull << 53) - 1)

#define CONFIGS_PRESET \
	"exclusive native throttle throttle+hints gate gate+hints interrupt-single interrupt-single+hints " \
	"interrupt-batched interrupt-batched+hints yield yield+hints auto auto+hints"

#define LEN(array) (sizeof(array) / sizeof((array)[0]))
#define IN_SCENARIO(field) .offset = offsetof(struct gp_draft, scenario.field)
#define IN_GROUP(field) .offset = offsetof(struct gp_group_draft, group.field)
#define IN_CURVE(field) .offset = offsetof(struct gp_group_draft, curve.field)
#define IN_CLUSTER(field) .offset = offsetof(struct gp_draft, cluster.field)
#define IN_WORK(field) .offset = offsetof(struct gp_work_draft, work.field)

static int set_configs(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	struct gp_scenario *sc = field;

	(void)key;
	return gp_configs_parse(value, at, sc->configs, &sc->nconfigs);
}

/* One value of a sweep's list, by the setter of a single value. */
static int set_list(const struct gp_key *one, const struct gp_place *at, const char *value, void *field,
		    uint32_t sweep)
{
	struct gp_scenario *sc = field;
	char word[32];
	uint32_t n = 0;
	int r;

	if (sc->sweep != GP_SWEEP_NONE)
		return gp_complain(at, "a second sweep; keep one of: load length queues");
	while (gp_word_next(&value, word, sizeof(word))) {
		if (n == GP_MAX_SWEEP)
			return gp_complain(at, "more than %d values; write fewer", GP_MAX_SWEEP);
		r = one->set(one, at, word, &sc->sweep_values[n++]);
		if (r < 0)
			return r;
	}
	if (!n)
		return gp_complain(at, "%s is empty; write values, as in: %s = %s", one->name, one->name,
				   one->example);
	sc->sweep = sweep;
	sc->nsweep = n;
	return 0;
}

static int set_loads(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	struct gp_key one = *key;

	one.set = gp_set_percent;
	return set_list(&one, at, value, field, GP_SWEEP_LOAD);
}

static int set_lengths(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	struct gp_key one = *key;

	one.set = gp_set_time;
	return set_list(&one, at, value, field, GP_SWEEP_LENGTH);
}

static int set_queues(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	struct gp_key one = *key;

	one.set = gp_set_count;
	return set_list(&one, at, value, field, GP_SWEEP_QUEUES);
}

static int set_curve(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	struct gp_curve *curve = field;
	char word[32];
	int r;

	while (gp_word_next(&value, word, sizeof(word))) {
		if (curve->npoints == GP_CURVE_POINTS)
			return gp_complain(at, "more than %d points; write fewer", GP_CURVE_POINTS);
		r = gp_set_percent(key, at, word, &curve->permille[curve->npoints++]);
		if (r < 0)
			return r;
	}
	if (!curve->npoints)
		return gp_complain(at, "curve is empty; write the rate over a day, as in: curve = %s",
				   key->example);
	return 0;
}

static int set_placements(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	struct gp_cluster *cl = field;
	char word[32], known[128];

	(void)key;
	while (gp_word_next(&value, word, sizeof(word))) {
		const struct gp_placement *p = gp_placement_find(word);

		gp_placement_names(known, sizeof(known));
		if (!p)
			return gp_complain_unknown(at, "placement", word, known);
		if (cl->nplacements == GP_MAX_PLACEMENTS)
			return gp_complain(at, "more than %d placements; write fewer", GP_MAX_PLACEMENTS);
		cl->placements[cl->nplacements++] = p;
	}
	if (!cl->nplacements)
		return gp_complain(at, "placement is empty; write it as in: placement = spread");
	return 0;
}

static const struct gp_key scenario_keys[] = {
	{ .name = "name",
	  .set = gp_set_name,
	  IN_SCENARIO(name),
	  .size = GP_SCENARIO_NAME,
	  .example = "mine" },
	{ .name = "device",
	  .set = gp_set_text,
	  .offset = offsetof(struct gp_draft, device),
	  .size = GP_PATH_TEXT,
	  .preset = "mi308x",
	  .example = "mi308x" },
	{ .name = "devices", .set = gp_set_count, IN_SCENARIO(devices), .min = 1, .max = 16, .preset = "1" },
	{ .name = "duration",
	  .set = gp_set_time,
	  IN_SCENARIO(duration_ns),
	  .min = GP_MS,
	  .max = MAX_DURATION,
	  .preset = "60s",
	  .example = "60s" },
	{ .name = "warmup",
	  .set = gp_set_time,
	  IN_SCENARIO(warmup_ns),
	  .min = 0,
	  .max = MAX_DURATION,
	  .preset = "1s",
	  .example = "1s" },
	{ .name = "seed", .set = gp_set_count, IN_SCENARIO(seed), .min = 0, .max = MAX_SEED, .preset = "1" },
	{ .name = "policy",
	  .set = gp_set_policy,
	  IN_SCENARIO(policy),
	  .size = GP_SCENARIO_NAME,
	  .preset = "priority" },
	{ .name = "configs",
	  .set = set_configs,
	  .offset = offsetof(struct gp_draft, scenario),
	  .preset = CONFIGS_PRESET },
	{ .name = "throttle_depth",
	  .set = gp_set_count,
	  IN_SCENARIO(throttle_depth),
	  .min = 1,
	  .max = GPM_MAX_DEPTH,
	  .preset = "2" },
	{ .name = "max_starve",
	  .set = gp_set_time,
	  IN_SCENARIO(max_starve_ns),
	  .min = GP_MS,
	  .max = 1000 * GP_S,
	  .preset = "1s",
	  .example = "1s",
	  .word = "never",
	  .word_value = UINT64_MAX },
	{ .name = "rotate", .set = gp_set_yes, IN_SCENARIO(rotate), .preset = "yes" },
	{ .name = "quantum",
	  .set = gp_set_time,
	  IN_SCENARIO(quantum_ns),
	  .min = GP_MS,
	  .max = 10 * GP_S,
	  .preset = "250ms",
	  .example = "250ms" },
	{ .name = "park", .set = gp_set_count, IN_SCENARIO(park), .min = 0, .max = 64, .preset = "2" },
	{ .name = "yield_slice",
	  .set = gp_set_time,
	  IN_SCENARIO(yield_slice_ns),
	  .min = GP_US,
	  .max = 10 * GP_S,
	  .preset = "device",
	  .example = "1us",
	  .word = "device",
	  .word_value = 0 },
};

/* What online and offline groups have in common. */
#define GROUP_KEYS \
	{ .name = "work", \
	  .set = gp_set_name, \
	  .offset = offsetof(struct gp_group_draft, work), \
	  .size = GP_SCENARIO_NAME, \
	  .example = "infer-1ms" }, \
		{ .name = "clients", \
		  .set = gp_set_count, \
		  IN_GROUP(clients), \
		  .min = 1, \
		  .max = GP_MAX_CLIENTS, \
		  .preset = "1" }, \
		{ .name = "queues", \
		  .set = gp_set_count, \
		  IN_GROUP(queues), \
		  .min = 1, \
		  .max = GP_MAX_QUEUES, \
		  .preset = "1" }, \
		{ .name = "idle_queues", \
		  .set = gp_set_count, \
		  IN_GROUP(idle_queues), \
		  .min = 0, \
		  .max = GP_MAX_QUEUES, \
		  .preset = "0" }, \
		{ .name = "priority", \
		  .set = gp_set_count, \
		  IN_GROUP(priority), \
		  .min = 0, \
		  .max = 15, \
		  .preset = "7" }, \
		{ .name = "weight", \
		  .set = gp_set_count, \
		  IN_GROUP(weight), \
		  .min = 1, \
		  .max = 10000, \
		  .preset = "100" }, \
	{ \
		.name = "device", .set = gp_set_count, IN_GROUP(device), .min = 0, .max = 15, .preset = "0" \
	}

#define PREPARE(text) \
	{ \
		.name = "prepare", .set = gp_set_time, IN_GROUP(prepare_ns), .min = 0, .max = GP_S, \
		.preset = text, .example = "300us" \
	}

static const struct gp_key online_keys[] = {
	GROUP_KEYS,
	PREPARE("300us"),
	{ .name = "serial", .set = gp_set_yes, IN_GROUP(serial), .preset = "no" },
	{ .name = "arrival",
	  .set = gp_set_choice,
	  IN_GROUP(arrival),
	  .choices = "periodic poisson burst trace closed", /* in the order of enum gp_arrival */
	  .preset = "poisson" },
	{ .name = "rate",
	  .set = gp_set_rate,
	  IN_GROUP(rate_milli),
	  .min = 1,
	  .max = 1000000000,
	  .example = "10" },
	{ .name = "load",
	  .set = gp_set_percent,
	  .offset = offsetof(struct gp_group_draft, load_permille),
	  .min = 1,
	  .max = 1000,
	  .example = "50%" },
	{ .name = "trace",
	  .set = gp_set_text,
	  .offset = offsetof(struct gp_group_draft, trace),
	  .size = GP_PATH_TEXT,
	  .example = "arrivals.txt" },
	{ .name = "think",
	  .set = gp_set_time,
	  IN_GROUP(think_ns),
	  .min = 0,
	  .max = 1000 * GP_S,
	  .preset = "20ms",
	  .example = "20ms" },
	{ .name = "slo",
	  .set = gp_set_time,
	  IN_GROUP(slo_ns),
	  .min = GP_US,
	  .max = 1000 * GP_S,
	  .preset = "none",
	  .example = "20ms",
	  .word = "none",
	  .word_value = 0 },
	{ .name = "curve",
	  .set = set_curve,
	  .offset = offsetof(struct gp_group_draft, curve),
	  .max = MAX_FACTOR,
	  .example = "20% 100% 60%" },
	{ .name = "day",
	  .set = gp_set_time,
	  IN_CURVE(day_ns),
	  .min = GP_S,
	  .max = MAX_DURATION,
	  .preset = "24h",
	  .example = "24h" },
	{ .name = "day_begin",
	  .set = gp_set_time,
	  IN_CURVE(begin_ns),
	  .max = MAX_DURATION,
	  .preset = "0s",
	  .example = "8h" },
	{ .name = "burst_every",
	  .set = gp_set_time,
	  IN_CURVE(burst_every_ns),
	  .min = GP_MS,
	  .max = MAX_DURATION,
	  .example = "10min" },
	{ .name = "burst_length",
	  .set = gp_set_time,
	  IN_CURVE(burst_length_ns),
	  .min = GP_MS,
	  .max = MAX_DURATION,
	  .preset = "10s",
	  .example = "10s" },
	{ .name = "burst_factor",
	  .set = gp_set_percent,
	  IN_CURVE(burst_permille),
	  .max = MAX_FACTOR,
	  .preset = "300%",
	  .example = "300%" },
	{ .name = "gpus", .set = gp_set_count, IN_GROUP(gpus), .min = 1, .max = GP_MAX_GPUS },
	{ .name = "class",
	  .set = gp_set_choice,
	  IN_GROUP(service_class),
	  .choices = "low normal high", /* in the order of enum gp_service_class */
	  .preset = "normal" },
};

static const struct gp_key offline_keys[] = {
	GROUP_KEYS,
	PREPARE("0us"),
	{ .name = "trace",
	  .set = gp_set_text,
	  .offset = offsetof(struct gp_group_draft, trace),
	  .size = GP_PATH_TEXT,
	  .example = "jobs.txt" },
	{ .name = "trace_begin",
	  .set = gp_set_text,
	  .offset = offsetof(struct gp_group_draft, trace_begin),
	  .size = GP_SCENARIO_NAME,
	  .example = "2026-03-02T00:00:00" },
};

static const struct gp_key cluster_keys[] = {
	{ .name = "gpus", .set = gp_set_count, IN_CLUSTER(gpus), .min = 1, .max = GP_MAX_GPUS },
	{ .name = "slots",
	  .set = gp_set_count,
	  IN_CLUSTER(slots),
	  .min = 1,
	  .max = GP_MAX_SLOTS,
	  .preset = "1" },
	{ .name = "placement",
	  .set = set_placements,
	  .offset = offsetof(struct gp_draft, cluster),
	  .preset = "spread" },
	{ .name = "tick",
	  .set = gp_set_time,
	  IN_CLUSTER(tick_ns),
	  .min = GP_MS,
	  .max = 60 * GP_S,
	  .preset = "1s",
	  .example = "1s" },
};

static const struct gp_key work_keys[] = {
	{ .name = "kernels", .set = gp_set_count, IN_WORK(kernels), .min = 1, .max = 100000 },
	{ .name = "length",
	  .set = gp_set_time,
	  IN_WORK(length_ns),
	  .min = 1,
	  .max = MAX_LENGTH,
	  .example = "50us" },
	{ .name = "share",
	  .set = gp_set_share,
	  IN_WORK(share_permille),
	  .min = 1,
	  .max = 1000,
	  .example = "0.5",
	  .preset = "1" },
	{ .name = "every", .set = gp_set_count, IN_WORK(every), .min = 1, .max = 100000 },
	{ .name = "every_length",
	  .set = gp_set_time,
	  IN_WORK(every_length_ns),
	  .min = 1,
	  .max = MAX_LENGTH,
	  .example = "2ms" },
	{ .name = "interval",
	  .set = gp_set_time,
	  IN_WORK(interval_ns),
	  .min = 0,
	  .max = GP_S,
	  .preset = "0us",
	  .example = "5us" },
};

static const struct gp_key sweep_keys[] = {
	{ .name = "load",
	  .set = set_loads,
	  .offset = offsetof(struct gp_draft, scenario),
	  .min = 1,
	  .max = 1000,
	  .example = "10% 50% 90%" },
	{ .name = "length",
	  .set = set_lengths,
	  .offset = offsetof(struct gp_draft, scenario),
	  .min = 1,
	  .max = MAX_LENGTH,
	  .example = "100us 1ms" },
	{ .name = "queues",
	  .set = set_queues,
	  .offset = offsetof(struct gp_draft, scenario),
	  .min = 1,
	  .max = GP_MAX_QUEUES,
	  .example = "1 2 4" },
};

_Static_assert(LEN(offline_keys) <= GP_MAX_KEYS && LEN(cluster_keys) <= GP_MAX_KEYS, "key_line too short");
_Static_assert(LEN(scenario_keys) <= GP_MAX_KEYS && LEN(online_keys) <= GP_MAX_KEYS, "key_line too short");

const struct gp_section_kind gp_scenario_kind = { "scenario", scenario_keys, LEN(scenario_keys), 0 };
const struct gp_section_kind gp_online_kind = { "online", online_keys, LEN(online_keys), 1 };
const struct gp_section_kind gp_offline_kind = { "offline", offline_keys, LEN(offline_keys), 1 };
const struct gp_section_kind gp_work_kind = { "work", work_keys, LEN(work_keys), 1 };
const struct gp_section_kind gp_sweep_kind = { "sweep", sweep_keys, LEN(sweep_keys), 0 };
const struct gp_section_kind gp_cluster_kind = { "cluster", cluster_keys, LEN(cluster_keys), 0 };
