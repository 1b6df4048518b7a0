// SPDX-License-Identifier: MIT
#include "lib/ctx.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/registry.h"
#include "backend/sim/presets.h"
#include "base/sized.h"

#define MS 1000000ull
#define SECOND 1000000000ull

uint32_t gp_version(void)
{
	return GP_MAKE_VERSION(GP_VERSION_MAJOR, GP_VERSION_MINOR);
}

const char *gp_strerror(int r)
{
	return r >= 0 ? "no error" : strerror(-r);
}

int gp_ctx_fail(struct gp_ctx *ctx, int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(ctx->error, sizeof(ctx->error), format, args);
	va_end(args);
	return r;
}

const char *gp_ctx_errmsg(const struct gp_ctx *ctx)
{
	return ctx ? ctx->error : "";
}

static uint64_t real_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

void gp_ctx_catch_up(struct gp_ctx *ctx)
{
	uint64_t now = real_now(), passed = now - ctx->real_ns;

	ctx->real_ns = now;
	if (passed > SECOND)
		passed = SECOND;
	gp_machine_run_until(ctx->machine, gp_machine_now(ctx->machine) + passed);
}

/* Who lives on the simulated machine: one that serves, two that train. */
static void populate(struct gp_scenario *sc)
{
	struct gp_group *serve = &sc->groups[0], *train = &sc->groups[1];

	sc->ngroups = 2;
	*serve = (struct gp_group){ .name = "serve",
				    .client_class = GP_CLASS_ONLINE,
				    .arrival = GP_ARRIVAL_POISSON,
				    .clients = 1,
				    .queues = 1,
				    .priority = 11,
				    .weight = 100,
				    .rate_milli = 20000,
				    .prepare_ns = MS / 4 };
	*train = (struct gp_group){ .name = "train",
				    .client_class = GP_CLASS_OFFLINE,
				    .arrival = GP_ARRIVAL_ALWAYS,
				    .clients = 2,
				    .queues = 2,
				    .priority = 7,
				    .weight = 100 };
	(void)gp_work_by_name("infer-10ms", &serve->work);
	(void)gp_work_by_name("train", &train->work);
}

static int start_machine(const char *device, struct gp_machine **ret)
{
	const struct gp_config config = { .way = GP_WAY_AUTO };
	const struct gp_preset *preset = gp_preset_find(device);
	struct gp_scenario *sc;
	int r;

	if (!preset)
		return -ENOENT;
	sc = calloc(1, sizeof(*sc));
	if (!sc)
		return -ENOMEM;
	(void)snprintf(sc->name, sizeof(sc->name), "library");
	(void)snprintf(sc->device_name, sizeof(sc->device_name), "%s", device);
	(void)snprintf(sc->policy, sizeof(sc->policy), "priority");
	sc->device = preset->device;
	sc->devices = 1;
	sc->seed = 1;
	sc->rotate = 1;
	populate(sc);
	r = gp_machine_new(sc, &config, NULL, ret);
	free(sc);
	return r;
}

static int is_here(const char *backend)
{
	if (!backend || !strcmp(backend, "auto"))
		return 1;
	for (size_t i = 0; gp_backend_name(i); i++)
		if (!strcmp(backend, gp_backend_name(i)))
			return 1;
	return 0;
}

int gp_ctx_open(const struct gp_open_opts *opts, struct gp_ctx **ret_ctx)
{
	struct gp_open_opts o = { .size = sizeof(o) };
	struct gp_ctx *ctx;
	int r = opts ? gp_sized_copy(&o, sizeof(o), opts, opts->size) : 0;

	if (r < 0)
		return r;
	if (o.flags || !ret_ctx)
		return -EINVAL;
	if (!is_here(o.backend))
		return -ENOENT;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	r = start_machine(o.device ? o.device : "mi308x", &ctx->machine);
	if (r < 0) {
		free(ctx);
		return r;
	}
	ctx->real_ns = real_now();
	gp_machine_run_until(ctx->machine, MS); /* the queues are mapped */
	*ret_ctx = ctx;
	return 0;
}

struct gp_ctx *gp_ctx_close(struct gp_ctx *ctx)
{
	if (ctx)
		gp_machine_free(ctx->machine);
	free(ctx);
	return NULL;
}
