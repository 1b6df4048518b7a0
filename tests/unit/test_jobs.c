// SPDX-License-Identifier: MIT
/* Jobs that come and go on a machine. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/units.h"
#include "machine/machine.h"
#include "study/sources.h"

static struct gp_sources sources;
static struct gp_scenario sc;

static void load(const char *name, uint64_t seconds)
{
	struct gp_diag diag;

	assert_int_equal(gp_sources_scenario(&sources, name, &sc, &diag), 0);
	sc.duration_ns = seconds * GP_S;
	sc.warmup_ns = 0;
}

static int unload(void **state)
{
	(void)state;
	gp_scenario_free(&sc);
	gp_sources_free(&sources);
	return 0;
}

/* A row without its offline group, into which jobs come. */
static struct gp_machine *machine_for_jobs(uint32_t kind, struct gp_run_result *result)
{
	const struct gp_config config = { .kind = kind, .hints = 1 };
	struct gp_machine *m;

	load("E", 20);
	sc.ngroups = 1;
	assert_int_equal(gp_machine_new(&sc, &config, result, &m), 0);
	gp_machine_measure(m);
	return m;
}

static const struct gp_group *train(void)
{
	return &sc.groups[1];
}

static void a_job_does_its_steps_and_goes_and_nothing_is_lost(void **state)
{
	static const uint32_t kinds[] = { GP_CONFIG_NATIVE,   GP_CONFIG_SINGLE, GP_CONFIG_BATCH,
					  GP_CONFIG_THROTTLE, GP_CONFIG_GATE,   GP_CONFIG_YIELD,
					  GP_CONFIG_AUTO };

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct gp_run_result *result = calloc(1, sizeof(*result));
		struct gp_machine *m = machine_for_jobs(kinds[i], result);
		struct gp_job_end end;
		uint64_t steps = 0, ended = 0;

		for (uint64_t second = 0; second < 19; second++) {
			assert_int_equal(gp_machine_job_start(m, train(), 1 + second % 4, second), 0);
			steps += 1 + second % 4;
			gp_machine_run_until(m, (second + 1) * GP_S);
			for (; gp_machine_job_ended(m, &end); ended++)
				assert_true(end.end_ns > end.tag * GP_S && end.end_ns <= (second + 1) * GP_S);
		}
		gp_machine_run_until(m, 20 * GP_S);
		while (gp_machine_job_ended(m, &end))
			ended++;
		gp_machine_finish(m);
		assert_int_equal(result->lost_wave_ns, 0);
		assert_true(result->offline_steps <= steps);
		if (kinds[i] != GP_CONFIG_NATIVE) {
			assert_int_equal(ended, 19);
			assert_int_equal(result->offline_steps, steps);
		}
		gp_machine_free(m);
		free(result);
		unload(NULL);
	}
}

static void there_is_room_for_so_many_jobs_and_for_others_when_they_are_done(void **state)
{
	struct gp_run_result *result = calloc(1, sizeof(*result));
	struct gp_machine *m = machine_for_jobs(GP_CONFIG_AUTO, result);
	struct gp_job_end end;
	uint64_t n = 0;

	(void)state;
	while (gp_machine_job_start(m, train(), 1, n) == 0)
		n++;
	assert_int_equal(n, GP_MAX_CLIENTS - 5);
	assert_int_equal(gp_machine_job_start(m, train(), 1, n), -ENOSPC);
	gp_machine_run_until(m, 15 * GP_S);
	assert_int_equal(gp_machine_job_ended(m, &end), 1);
	assert_int_equal(gp_machine_job_start(m, train(), 1, n), 0);
	gp_machine_free(m);
	free(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_job_does_its_steps_and_goes_and_nothing_is_lost, unload),
		cmocka_unit_test_teardown(there_is_room_for_so_many_jobs_and_for_others_when_they_are_done,
					  unload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
