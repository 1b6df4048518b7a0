// SPDX-License-Identifier: MIT
#include "machine/scenario.h"

#include <errno.h>
#include <string.h>

#define US 1000ull
#define MS 1000000ull
#define WAVES_PER_WG 4

static const char *const config_names[GP_CONFIG_COUNT] = {
	[GP_CONFIG_EXCLUSIVE] = "exclusive",
	[GP_CONFIG_NATIVE] = "native",
	[GP_CONFIG_THROTTLE] = "throttle",
	[GP_CONFIG_GATE] = "gate",
	[GP_CONFIG_FLUSH] = "flush",
	[GP_CONFIG_SINGLE] = "interrupt-single",
	[GP_CONFIG_BATCH] = "interrupt-batched",
	[GP_CONFIG_SLICE] = "slice",
	[GP_CONFIG_YIELD] = "yield",
	[GP_CONFIG_AUTO] = "auto",
};

/* docs/BENCH.md, "Work": defined there so that nobody chooses it to suit himself. */
static const struct gp_work works[] = {
	{ .name = "infer-1ms", .kernels = 60, .length_ns = 20 * US, .share_permille = 500 },
	{ .name = "infer-10ms", .kernels = 200, .length_ns = 50 * US, .share_permille = 600 },
	{ .name = "decode",
	  .kernels = 400,
	  .length_ns = 8 * US,
	  .share_permille = 250,
	  .interval_ns = 5 * US },
	{ .name = "train",
	  .kernels = 300,
	  .length_ns = 200 * US,
	  .share_permille = 1000,
	  .every = 10,
	  .every_length_ns = 2 * MS },
	{ .name = "long", .kernels = 10, .length_ns = 100 * MS, .share_permille = 1000 },
};

const char *gp_config_name(uint32_t kind)
{
	return kind < GP_CONFIG_COUNT ? config_names[kind] : "unknown";
}

int gp_config_kind_parse(const char *name, uint32_t *ret_way)
{
	for (uint32_t i = 0; i < GP_CONFIG_COUNT; i++) {
		if (strcmp(name, config_names[i]) != 0)
			continue;
		*ret_way = i;
		return 0;
	}
	return -ENOENT;
}

int gp_work_by_name(const char *name, struct gp_work *ret)
{
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		if (strcmp(name, works[i].name) != 0)
			continue;
		*ret = works[i];
		return 0;
	}
	return -ENOENT;
}

uint64_t gp_work_ns(const struct gp_work *work, const struct gpm_device *dev)
{
	uint64_t long_ones = work->every && work->every_length_ns ? work->kernels / work->every : 0;

	return (work->kernels - long_ones) * work->length_ns + long_ones * work->every_length_ns +
	       work->kernels * dev->dispatch_ns;
}

struct gpm_cmd gp_work_cmd(const struct gp_work *work, const struct gpm_device *dev)
{
	uint64_t waves = gpm_wave_slots(dev) * work->share_permille / 1000;
	uint64_t groups = waves / WAVES_PER_WG;

	return (struct gpm_cmd){ .kernel = { .wave_ns = work->length_ns,
					     .workgroups = (uint32_t)(groups ? groups : 1),
					     .waves_per_wg = WAVES_PER_WG },
				 .count = work->kernels,
				 .every = work->every,
				 .every_wave_ns = work->every_length_ns,
				 .interval_ns = work->interval_ns };
}

uint64_t gp_group_load_rate(const struct gp_group *group, const struct gpm_device *dev, uint64_t permille)
{
	uint64_t ns = gp_work_ns(&group->work, dev);

	return ns ? permille * 1000 * MS / ns / group->clients : 0;
}

void gp_scenario_set_device(struct gp_scenario *sc, const struct gpm_device *dev)
{
	sc->device = *dev;
	for (uint32_t i = 0; i < sc->ngroups; i++) {
		struct gp_group *g = &sc->groups[i];

		if (g->load_permille)
			g->rate_milli = gp_group_load_rate(g, dev, g->load_permille);
	}
}

int gp_scenario_start(struct gp_scenario *sc)
{
	int r = 0;

	for (uint32_t i = 0; i < sc->ngroups && r == 0; i++)
		if (sc->groups[i].curve)
			r = gp_curve_start(sc->groups[i].curve, sc->seed, i + ((uint64_t)3 << 32),
					   sc->duration_ns);
	return r;
}

void gp_scenario_at(const struct gp_scenario *sc, uint32_t i, struct gp_scenario *ret)
{
	*ret = *sc;
	ret->sweep = GP_SWEEP_NONE;
	for (uint32_t g = 0; sc->sweep != GP_SWEEP_NONE && g < sc->ngroups; g++) {
		struct gp_group *group = &ret->groups[g];
		int online = group->client_class == GP_CLASS_ONLINE;

		if (sc->sweep == GP_SWEEP_LOAD && online)
			group->rate_milli = gp_group_load_rate(group, &sc->device, sc->sweep_values[i]);
		if (sc->sweep == GP_SWEEP_QUEUES && !online)
			group->queues = sc->sweep_values[i];
		if (sc->sweep == GP_SWEEP_LENGTH && !online) {
			group->work.length_ns = sc->sweep_values[i];
			group->work.every = 0;
		}
	}
}
