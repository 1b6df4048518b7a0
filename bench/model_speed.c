// SPDX-License-Identifier: MIT
/* How fast the simulated machine is: scenario E, every way, on one core. */
#include <stdio.h>
#include <time.h>

#include "machine/run.h"
#include "study/sources.h"

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run(const struct gp_scenario *sc, uint32_t way, double *slowest_events, double *slowest_seconds)
{
	const struct gp_config config = { .kind = way };
	double begin = seconds(), took, events, simulated = (double)sc->duration_ns / 1e9;
	struct gp_run_result *r;
	int e = gp_run(sc, &config, NULL, &r);

	if (e < 0)
		return e;
	took = seconds() - begin;
	events = (double)r->events / took;
	printf("%-18s %6.1f million events/s  %7.0f simulated s per s\n", gp_config_name(way), events / 1e6,
	       simulated / took);
	if (events < *slowest_events)
		*slowest_events = events;
	if (simulated / took < *slowest_seconds)
		*slowest_seconds = simulated / took;
	gp_run_free(r);
	return 0;
}

int main(void)
{
	double slowest_events = 1e30, slowest_seconds = 1e30;
	struct gp_sources sources = { 0 };
	struct gp_scenario sc;
	struct gp_diag diag;

	if (gp_sources_scenario(&sources, "E", &sc, &diag) < 0) {
		fprintf(stderr, "model_speed: %s\n", diag.text);
		return 1;
	}
	for (uint32_t way = 0; way < GP_CONFIG_COUNT; way++)
		if (run(&sc, way, &slowest_events, &slowest_seconds) < 0)
			return 1;
	printf("slowest: %.1f million events/s (bar 2), %.0f simulated s per s (bar 60)\n",
	       slowest_events / 1e6, slowest_seconds);
	gp_scenario_free(&sc);
	gp_sources_free(&sources);
	return slowest_events < 2e6 || slowest_seconds < 60;
}
