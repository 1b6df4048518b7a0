// SPDX-License-Identifier: MIT
/* Clusters: where jobs go, what a trace says, how a rate changes. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "cluster/cluster.h"
#include "cluster/crew.h"
#include "machine/internal.h"
#include "machine/load.h"
#include "study/cluster.h"
#include "study/parse.h"
#include "study/sources.h"

#define HEADING "JobID|Submit|ElapsedRaw|AllocTRES\n"

static uint32_t pick_one(const char *placement, const struct gp_gpu_view *gpus, uint32_t n, uint32_t slots)
{
	uint32_t gpu = UINT32_MAX;

	assert_int_equal(gp_placement_pick(gp_placement_find(placement), gpus, n, slots, 1, &gpu), 0);
	return gpu;
}

static void each_placement_has_its_favourite(void **state)
{
	/* jobs, class, online */
	static const struct gp_gpu_view gpus[] = {
		{ 1, 3, 100 }, { 2, 2, 900 }, { 1, 2, 800 }, { 0, 3, 700 }, { 1, 0, 0 }
	};

	(void)state;
	assert_int_equal(pick_one("pack", gpus, 5, 3), 1);
	assert_int_equal(pick_one("pack", gpus, 5, 2), 0); /* GPU 1 is full */
	assert_int_equal(pick_one("spread", gpus, 5, 3), 3);
	assert_int_equal(pick_one("most-idle", gpus, 5, 3), 4);
	assert_int_equal(pick_one("by-class", gpus, 5, 3), 4);
	assert_int_equal(pick_one("by-class", gpus, 4, 3), 2); /* of class 2 the one with fewer jobs */
}

static void most_idle_counts_those_that_share_what_is_left(void **state)
{
	/* 500 for two, or 300 for one: 250 each against 300 */
	static const struct gp_gpu_view gpus[] = { { 1, 1, 500 }, { 0, 1, 700 } };
	static const struct gp_gpu_view more[] = { { 1, 1, 300 }, { 0, 1, 700 } };

	(void)state;
	assert_int_equal(pick_one("most-idle", gpus, 2, 4), 1);
	assert_int_equal(pick_one("most-idle", more, 2, 4), 0);
}

static void of_equal_gpus_the_lower_number_comes_first(void **state)
{
	static const struct gp_gpu_view gpus[4] = { { 1, 1, 5 }, { 1, 1, 5 }, { 1, 1, 5 }, { 1, 1, 5 } };
	uint32_t picked[3];

	(void)state;
	for (size_t i = 0; gp_placement_at(i); i++) {
		assert_int_equal(gp_placement_pick(gp_placement_at(i), gpus, 4, 2, 3, picked), 0);
		for (uint32_t k = 0; k < 3; k++)
			assert_int_equal(picked[k], k);
	}
}

static void a_gang_has_as_many_different_gpus_as_it_wants_the_best_first(void **state)
{
	static const struct gp_gpu_view gpus[] = { { 2, 1, 0 }, { 0, 1, 0 }, { 3, 1, 0 }, { 1, 1, 0 } };
	uint32_t picked[4];

	(void)state;
	assert_int_equal(gp_placement_pick(gp_placement_find("spread"), gpus, 4, 4, 3, picked), 0);
	assert_int_equal(picked[0], 1);
	assert_int_equal(picked[1], 3);
	assert_int_equal(picked[2], 0);
	assert_int_equal(gp_placement_pick(gp_placement_find("pack"), gpus, 4, 4, 2, picked), 0);
	assert_int_equal(picked[0], 2);
	assert_int_equal(picked[1], 0);
}

static void nothing_is_picked_from_a_full_cluster_or_one_that_is_too_small(void **state)
{
	static const struct gp_gpu_view gpus[] = { { 2, 1, 0 }, { 2, 1, 0 }, { 1, 1, 0 } };
	uint32_t picked[4];

	(void)state;
	assert_int_equal(gp_placement_pick(gp_placement_find("spread"), gpus, 2, 2, 1, picked), -ENOSPC);
	assert_int_equal(gp_placement_pick(gp_placement_find("spread"), gpus, 3, 2, 2, picked), -ENOSPC);
	assert_int_equal(gp_placement_pick(gp_placement_find("spread"), gpus, 3, 3, 4, picked), -ENOSPC);
	assert_null(gp_placement_find("best"));
}

static struct gp_sacct read_trace(const char *text)
{
	struct gp_sacct s;
	struct gp_diag diag;

	if (gp_sacct_parse(text, "jobs.txt", NULL, &s, &diag) < 0)
		fail_msg("%s", diag.text);
	return s;
}

static void jobs_of_a_trace_come_in_the_order_of_submission(void **state)
{
	struct gp_sacct s = read_trace(HEADING "7|2026-03-02T08:00:10|60|cpu=8,gres/gpu=2\n"
					       "8|2026-03-02T08:00:00|3600|gres/gpu=1\n"
					       "9|2026-03-02T08:00:10|61|gres/gpu=1\n");

	(void)state;
	assert_int_equal(s.njobs, 3);
	assert_string_equal(s.jobs[0].name, "8");
	assert_string_equal(s.jobs[1].name, "7");
	assert_string_equal(s.jobs[2].name, "9");
	assert_int_equal(s.jobs[0].submit_ns, 0);
	assert_int_equal(s.jobs[1].submit_ns, 10 * GP_S);
	assert_int_equal(s.jobs[1].length_ns, 60 * GP_S);
	assert_int_equal(s.jobs[1].gpus, 2);
	free(s.jobs);
}

static void a_byte_order_mark_before_the_heading_is_no_part_of_a_column(void **state)
{
	struct gp_sacct s = read_trace("\xef\xbb\xbf" HEADING "7|2026-03-02T08:00:10|60|gres/gpu=2\r\n");

	(void)state;
	assert_int_equal(s.njobs, 1);
	assert_string_equal(s.jobs[0].name, "7");
	assert_int_equal(s.jobs[0].line, 2);
	free(s.jobs);
}

static void what_is_no_job_on_a_gpu_is_left_out_and_counted(void **state)
{
	struct gp_sacct s = read_trace(HEADING "1|2026-03-02T08:00:00|60|gres/gpu=1\n"
					       "1.batch|2026-03-02T08:00:00|60|gres/gpu=1\n"
					       "2|2026-03-02T08:00:00|60|cpu=4,mem=1G\n"
					       "3|2026-03-02T08:00:00|0|gres/gpu=1\n\n");

	(void)state;
	assert_int_equal(s.njobs, 1);
	assert_int_equal(s.without_gpu, 1);
	assert_int_equal(s.never_ran, 1);
	free(s.jobs);
}

static void gpus_are_counted_in_all_forms_that_slurm_has(void **state)
{
	static const struct {
		const char *text;
		uint64_t gpus;
	} forms[] = {
		{ "gres/gpu=4", 4 },
		{ "billing=8,cpu=8,gres/gpu=4,gres/gpu:mi308x=4,node=1", 4 },
		{ "gres/gpu:mi308x=3", 3 },
		{ "gres/gpu:a=1,gres/gpu:b=2", 3 },
		{ "gpu:2", 2 },
		{ "gpu:mi308x:2", 2 },
		{ "gres/shard=3", 1 },
		{ "gres/gpumem=80G,gres/gpu=2", 2 },
		{ "cpu=16,gres/gpuutil=90", 0 },
		{ "", 0 },
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct gp_sacct s;

		snprintf(text, sizeof(text),
			 HEADING "1|2026-03-02T08:00:00|9|gres/gpu=1\n2|2026-03-02T08:00:00|9|%s\n",
			 forms[i].text);
		s = read_trace(text);
		assert_int_equal(s.njobs, 1 + (forms[i].gpus > 0));
		if (forms[i].gpus)
			assert_int_equal(s.jobs[1].gpus, forms[i].gpus);
		free(s.jobs);
	}
}

/* As long as Slurm likes, and not of what comes behind it. */
static void a_list_is_read_to_its_end_and_no_further(void **state)
{
	char text[1024];
	struct gp_sacct s;

	(void)state;
	for (int before = 200; before < 300; before++) {
		snprintf(text, sizeof(text),
			 HEADING "1|2026-03-02T08:00:00|9|license/%0*d=1,gres/gpu=16\n"
				 "2|2026-03-02T08:00:00|9|gres/gpu:a\n"
				 "3|2026-03-02T08:00:00|9|gres/gpu=2\n",
			 before, 1);
		s = read_trace(text);
		assert_int_equal(s.njobs, 2);
		assert_int_equal(s.without_gpu, 1);
		assert_int_equal(s.jobs[0].gpus, 16);
		assert_int_equal(s.jobs[1].gpus, 2);
		free(s.jobs);
	}
}

static void elapsed_is_read_with_days_and_without(void **state)
{
	static const struct {
		const char *text;
		uint64_t seconds;
	} forms[] = {
		{ "1-02:03:04", 93784 }, { "02:03:04", 7384 }, { "03:04", 184 }, { "100:00:00", 360000 }
	};
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct gp_sacct s;

		snprintf(text, sizeof(text),
			 "Submit|AllocTRES|Elapsed|JobID\n2026-03-02T08:00:00|gres/gpu=1|%s|5\n",
			 forms[i].text);
		s = read_trace(text);
		assert_int_equal(s.jobs[0].length_ns, forms[i].seconds * GP_S);
		free(s.jobs);
	}
}

static void a_wrong_trace_is_refused_by_its_line(void **state)
{
	static const struct {
		const char *text, *error;
	} wrong[] = {
		{ "", "jobs.txt: no job" },
		{ "JobID|Submit|ElapsedRaw\n", "jobs.txt:1: a column is missing" },
		{ "1|2026-03-02T08:00:00|60|gres/gpu=1\n", "jobs.txt:1: a column is missing" },
		{ HEADING "1|2026-03-02T08:00:00|60\n", "jobs.txt:2: 3 fields, and 4 columns" },
		{ HEADING "1|Unknown|60|gres/gpu=1\n", "jobs.txt:2: \"Unknown\" is no time of submission" },
		{ HEADING "1|2026-02-30T08:00:00|60|gres/gpu=1\n", "jobs.txt:2: \"2026-02-30T08:00:00\"" },
		{ HEADING "1|1969-12-31T23:59:59|60|gres/gpu=1\n", "jobs.txt:2: \"1969-12-31T23:59:59\"" },
		{ HEADING "1|9999-01-01T00:00:00|60|gres/gpu=1\n", "jobs.txt:2: \"9999-01-01T00:00:00\"" },
		{ HEADING "\n1|2026-03-02T08:00:00|1h|gres/gpu=1\n",
		  "jobs.txt:3: \"1h\" is no time that a job took" },
		{ HEADING "1|2026-03-02T08:00:00|99999999999|gres/gpu=1\n", "jobs.txt:2: \"99999999999\"" },
		{ HEADING "|2026-03-02T08:00:00|60|gres/gpu=1\n", "jobs.txt:2: the job has no number" },
		{ HEADING "1|2026-03-02T08:00:00|60|cpu=1\n", "jobs.txt:2: no job that ran on a GPU" },
		{ "JobID|Submit|Elapsed|ReqTRES\n1|2026-03-02T08:00:00|1:99|gres/gpu=1\n",
		  "jobs.txt:2: \"1:99\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct gp_sacct s;
		struct gp_diag diag;

		assert_true(gp_sacct_parse(wrong[i].text, "jobs.txt", NULL, &s, &diag) < 0);
		if (strncmp(diag.text, wrong[i].error, strlen(wrong[i].error)))
			fail_msg("%s, not %s", diag.text, wrong[i].error);
	}
}

static void time_begins_where_it_is_told_and_earlier_jobs_are_left_out(void **state)
{
	struct gp_diag diag;
	struct gp_sacct s;
	int64_t begin;

	(void)state;
	assert_int_equal(gp_date_parse("2026-03-02T08:00:00", &begin), 0);
	assert_int_equal(gp_sacct_parse(HEADING "1|2026-03-02T07:59:59|60|gres/gpu=1\n"
						"2|2026-03-02T08:00:00|60|gres/gpu=1\n"
						"3|2026-03-03T08:00:00|60|gres/gpu=1\n",
					"jobs.txt", &begin, &s, &diag),
			 0);
	assert_int_equal(s.njobs, 2);
	assert_int_equal(s.before, 1);
	assert_int_equal(s.jobs[0].submit_ns, 0);
	assert_int_equal(s.jobs[1].submit_ns, 86400 * GP_S);
	free(s.jobs);
}

static void a_curve_is_linear_between_its_points_and_goes_round(void **state)
{
	struct gp_curve c = { .permille = { 100, 500, 300 }, .npoints = 3, .day_ns = 3000 };

	(void)state;
	assert_int_equal(gp_curve_at(&c, 0), 100);
	assert_int_equal(gp_curve_at(&c, 500), 300);
	assert_int_equal(gp_curve_at(&c, 1000), 500);
	assert_int_equal(gp_curve_at(&c, 1500), 400);
	assert_int_equal(gp_curve_at(&c, 2500), 200); /* on its way to the next day's first */
	assert_int_equal(gp_curve_at(&c, 3000 + 500), 300);
	assert_int_equal(gp_curve_peak(&c), 500);
	c.begin_ns = 1000;
	assert_int_equal(gp_curve_at(&c, 0), 500);
}

static void bursts_multiply_the_rate_while_they_last(void **state)
{
	struct gp_burst bursts[] = { { 100, 200 }, { 300, 310 } };
	struct gp_curve c = { .burst_permille = 3000, .bursts = bursts, .nbursts = 2 };

	(void)state;
	assert_int_equal(gp_curve_at(&c, 99), 1000);
	assert_int_equal(gp_curve_at(&c, 100), 3000);
	assert_int_equal(gp_curve_at(&c, 199), 3000);
	assert_int_equal(gp_curve_at(&c, 200), 1000);
	assert_int_equal(gp_curve_at(&c, 305), 3000);
	assert_int_equal(gp_curve_at(&c, 310), 1000);
	assert_int_equal(gp_curve_peak(&c), 3000);
}

static void bursts_are_drawn_by_the_seed_one_after_the_other(void **state)
{
	struct gp_curve a = { .burst_every_ns = 100 * GP_S,
			      .burst_length_ns = 10 * GP_S,
			      .burst_permille = 2000 };
	struct gp_curve b = a, other = a;

	(void)state;
	assert_int_equal(gp_curve_start(&a, 1, 5, 10000 * GP_S), 0);
	assert_int_equal(gp_curve_start(&b, 1, 5, 10000 * GP_S), 0);
	assert_int_equal(gp_curve_start(&other, 2, 5, 10000 * GP_S), 0);
	assert_in_range(a.nbursts, 60, 130); /* 91 are to be expected */
	assert_int_equal(a.nbursts, b.nbursts);
	assert_memory_equal(a.bursts, b.bursts, a.nbursts * sizeof(*a.bursts));
	assert_int_not_equal(a.bursts[0].begin_ns, other.bursts[0].begin_ns);
	for (size_t i = 1; i < a.nbursts; i++)
		assert_true(a.bursts[i - 1].end_ns < a.bursts[i].begin_ns);
	gp_curve_free(&other);
	other.burst_length_ns = 1000000 * GP_S; /* one that is not over at the end */
	assert_int_equal(gp_curve_start(&other, 2, 5, 1000 * GP_S), 0);
	assert_int_equal(other.nbursts, 1);
	gp_curve_free(&a);
	gp_curve_free(&b);
	gp_curve_free(&other);
}

/* Arrivals of the first and of the second half of 2000 s. */
static void count_arrivals(struct gp_curve *curve, uint64_t halves[2])
{
	struct gp_group group = { .arrival = GP_ARRIVAL_POISSON, .rate_milli = 50000, .curve = curve };
	struct gp_load load;
	uint64_t at;

	halves[0] = halves[1] = 0;
	gp_load_init(&load, &group, 0, 1, 1);
	while ((at = gp_load_next(&load)) < 2000 * GP_S)
		halves[at >= 1000 * GP_S]++;
}

static void arrivals_follow_the_curve(void **state)
{
	struct gp_curve c = { .permille = { 200, 200, 1000, 1000 }, .npoints = 4, .day_ns = 2000 * GP_S };
	uint64_t n[2];

	(void)state;
	count_arrivals(&c, n);
	/* 500 s each at 10/s, from 10/s to 50/s, at 50/s, and from 50/s to 10/s */
	assert_in_range(n[0], 19000, 21000);
	assert_in_range(n[1], 39000, 41000);
	c = (struct gp_curve){ .npoints = 0 };
	count_arrivals(&c, n);
	assert_in_range(n[0], 49000, 51000);
	assert_in_range(n[1], 49000, 51000);
}

static void a_histogram_takes_in_another_as_if_its_values_had_been_added(void **state)
{
	struct gp_hist *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b)), *all = calloc(1, sizeof(*all));

	(void)state;
	for (uint64_t v = 1; v < 1000; v++) {
		gp_hist_add(v % 3 ? a : b, v * v);
		gp_hist_add(all, v * v);
	}
	gp_hist_merge(a, b);
	assert_memory_equal(a, all, sizeof(*a));
	memset(b, 0, sizeof(*b));
	gp_hist_merge(a, b);
	assert_memory_equal(a, all, sizeof(*a));
	gp_hist_merge(b, a);
	assert_memory_equal(b, all, sizeof(*b));
	free(a);
	free(b);
	free(all);
}

static void work_of_many_gpus_is_added_up_beyond_64_bits(void **state)
{
	struct gp_cluster cl = { .gpus = 3, .scenario = { .ngroups = 1, .duration_ns = GP_S } };
	struct gp_gpu_figures gpus[3] = { 0 };
	struct gp_service_figures service = { 0 };
	struct gp_cluster_result result = { .gpus = gpus, .services = &service };
	struct gp_cluster_row row = { .placement = gp_placement_at(0), .result = &result };
	char nothing[] = "";
	struct gp_sources sources = { .text = nothing };
	const struct gp_cluster_input in = { &cl, &sources, &row, 1, "" };
	struct json_object *o, *rows;
	double one, all;

	(void)state;
	row.config.kind = GP_CONFIG_AUTO;
	cl.scenario.device = small_concurrent_device();
	cl.scenario.groups[0].client_class = GP_CLASS_OFFLINE;
	assert_int_equal(gp_work_by_name("train", &cl.scenario.groups[0].work), 0);
	for (int i = 0; i < 3; i++)
		gpus[i] = (struct gp_gpu_figures){ .offline_wave_ns = UINT64_MAX / 2, .service = UINT64_MAX };
	o = gp_cluster_json(&in);
	rows = json_object_array_get_idx(gp_json_get(o, "rows"), 0);
	one = gp_json_get_double(json_object_array_get_idx(gp_json_get(rows, "gpus"), 0),
				 "harvested_gpu_hours");
	all = gp_json_get_double(rows, "all/harvested_gpu_hours");
	assert_true(one > 0);
	assert_true(all > 2.999 * one && all < 3.001 * one);
	json_object_put(o);
}

/* The service and the jobs of scenario E: five clients of ten requests a second, each 10 ms of a GPU. */
static struct gp_cluster small_cluster(struct gp_sources *sources, uint64_t gpus, uint64_t with_service,
				       uint64_t seconds)
{
	static struct gp_cluster_job job = { .name = "1", .length_ns = 10000 * GP_S, .gpus = 1 };
	struct gp_cluster cl = { .gpus = gpus, .slots = 1, .tick_ns = GP_S, .jobs = &job, .njobs = 1 };
	struct gp_diag diag;

	assert_int_equal(gp_sources_scenario(sources, "E", &cl.scenario, &diag), 0);
	cl.scenario.duration_ns = seconds * GP_S;
	cl.scenario.warmup_ns = 0; /* a cluster counts from the beginning */
	cl.scenario.groups[0].gpus = with_service;
	return cl;
}

static struct gp_cluster_result *run_cluster(const struct gp_cluster *cl, uint32_t way)
{
	const struct gp_config config = { .kind = way };
	const struct gp_cluster_opts opts = { .jobs = 2 };
	struct gp_cluster_result *r;

	assert_int_equal(gp_cluster_run(cl, &config, gp_placement_find("spread"), &opts, &r), 0);
	return r;
}

static void end_cluster(struct gp_cluster *cl, struct gp_sources *sources, struct gp_cluster_result *r)
{
	gp_cluster_result_free(r);
	gp_scenario_free(&cl->scenario);
	gp_sources_free(sources);
}

static void two_gpus_of_a_service_have_days_of_their_own(void **state)
{
	struct gp_sources sources = { 0 };
	struct gp_cluster cl = small_cluster(&sources, 2, 2, 20);
	struct gp_cluster_result *r = run_cluster(&cl, GP_CONFIG_EXCLUSIVE);

	(void)state;
	assert_int_not_equal(r->gpus[0].online_busy_ns, r->gpus[1].online_busy_ns);
	assert_int_not_equal(r->gpus[0].p99_ns, r->gpus[1].p99_ns);
	end_cluster(&cl, &sources, r);
}

static void a_service_on_one_gpu_has_the_figures_of_that_gpu(void **state)
{
	struct gp_sources sources = { 0 };
	struct gp_cluster cl = small_cluster(&sources, 1, 1, 60);
	struct gp_cluster_result *r = run_cluster(&cl, GP_CONFIG_NATIVE);
	const struct gp_hist *latency = &r->services[0].latency;

	(void)state;
	assert_int_equal(r->gpus[0].p50_ns, gp_hist_quantile(latency, 5000));
	assert_int_equal(r->gpus[0].p99_ns, gp_hist_quantile(latency, 9900));
	assert_true(r->gpus[0].p50_ns < r->gpus[0].p99_ns);
	assert_int_equal(r->gpus[0].online.requests, latency->count);
	end_cluster(&cl, &sources, r);
}

static void what_is_open_at_the_end_is_counted_on_each_gpu_and_in_the_service(void **state)
{
	struct gp_sources sources = { 0 };
	struct gp_cluster cl = small_cluster(&sources, 3, 2, 20);
	struct gp_online_counts *all;
	struct gp_cluster_result *r;
	uint64_t done = 0;

	(void)state;
	cl.scenario.groups[0].rate_milli *= 4; /* more than a GPU can do */
	r = run_cluster(&cl, GP_CONFIG_EXCLUSIVE);
	all = &r->services[0].online;
	for (int i = 0; i < GP_CLUSTER_SLICES; i++)
		done += r->online_done[i];
	assert_true(r->gpus[0].online.unfinished > 100 && r->gpus[1].online.unfinished > 100);
	assert_int_equal(r->gpus[2].online.requests, 0);
	assert_int_equal(all->requests, r->gpus[0].online.requests + r->gpus[1].online.requests);
	assert_int_equal(all->unfinished, r->gpus[0].online.unfinished + r->gpus[1].online.unfinished);
	assert_int_equal(all->requests - all->unfinished, done);
	end_cluster(&cl, &sources, r);
}

static void a_preemption_of_one_queue_is_two_cycles_one_to_stop_it_and_one_to_resume_it(void **state)
{
	struct gp_sources sources = { 0 };
	struct gp_cluster cl = small_cluster(&sources, 1, 1, 60);
	struct gp_cluster_result *r = run_cluster(&cl, GP_CONFIG_SINGLE);

	(void)state;
	assert_true(r->gpus[0].preemptions > 100);
	assert_in_range(r->gpus[0].cycles, 2 * r->gpus[0].preemptions - 2, 2 * r->gpus[0].preemptions + 2);
	end_cluster(&cl, &sources, r);
}

/* The model loses none, so this takes some away: only then is a 0 that the figures say worth anything. */
static uint64_t taken_wave_ns;

void __real_gp_machine_finish(struct gp_machine *m);
void __wrap_gp_machine_finish(struct gp_machine *m);
void __wrap_gp_machine_finish(struct gp_machine *m)
{
	m->finished_wave_ns += taken_wave_ns;
	__real_gp_machine_finish(m);
}

static void work_that_a_gpu_loses_is_told_of_that_gpu(void **state)
{
	struct gp_sources sources = { 0 };
	struct gp_cluster cl = small_cluster(&sources, 1, 1, 10);
	struct gp_cluster_result *r = run_cluster(&cl, GP_CONFIG_SINGLE);

	(void)state;
	assert_int_equal(r->gpus[0].lost_wave_ns, 0);
	gp_cluster_result_free(r);
	taken_wave_ns = 12345;
	r = run_cluster(&cl, GP_CONFIG_SINGLE);
	taken_wave_ns = 0;
	assert_int_equal(r->gpus[0].lost_wave_ns, 12345);
	end_cluster(&cl, &sources, r);
}

static void there_are_no_more_processes_than_gpus(void **state)
{
	const struct gp_config config = { .kind = GP_CONFIG_EXCLUSIVE };
	struct gp_sources sources = { 0 };
	struct gp_cluster cl = small_cluster(&sources, 2, 2, 1);
	struct gp_crew crew = { .cl = &cl, .config = &config, .n = 7 };

	(void)state;
	assert_int_equal(gp_crew_start(&crew), 0);
	assert_int_equal(crew.n, 2);
	gp_crew_free(&crew);
	crew = (struct gp_crew){ .cl = &cl, .config = &config, .n = 1 };
	assert_int_equal(gp_crew_start(&crew), 0);
	assert_int_equal(crew.n, 1);
	gp_crew_free(&crew);
	end_cluster(&cl, &sources, NULL);
}

/* Says so when the crew is there, and has it run for far longer than anybody waits. */
static void own_a_crew(const struct gp_cluster *cl, int fd)
{
	const struct gp_config config = { .kind = GP_CONFIG_EXCLUSIVE };
	struct gp_crew crew = { .cl = cl, .config = &config, .n = 2 };

	(void)setpgid(0, 0);
	if (gp_crew_start(&crew) == 0 && write(fd, "", 1) == 1)
		(void)gp_crew_run(&crew, 100 * 86400 * GP_S);
	_exit(1);
}

static void with_their_parent_the_processes_end_in_the_middle_of_their_work(void **state)
{
	struct gp_sources sources = { 0 };
	struct gp_cluster cl = small_cluster(&sources, 2, 2, 1);
	struct pollfd end = { 0 };
	int fds[2], ended;
	pid_t parent;
	char there;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	parent = fork();
	assert_true(parent >= 0);
	if (parent == 0)
		own_a_crew(&cl, fds[1]);
	close(fds[1]);
	assert_int_equal(read(fds[0], &there, 1), 1);
	(void)usleep(200000); /* they are at work */
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	end.fd = fds[0]; /* all of them have the other end */
	ended = poll(&end, 1, 5000);
	(void)kill(-parent, SIGKILL);
	close(fds[0]);
	assert_int_equal(ended, 1);
	end_cluster(&cl, &sources, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_placement_has_its_favourite),
		cmocka_unit_test(most_idle_counts_those_that_share_what_is_left),
		cmocka_unit_test(of_equal_gpus_the_lower_number_comes_first),
		cmocka_unit_test(a_gang_has_as_many_different_gpus_as_it_wants_the_best_first),
		cmocka_unit_test(nothing_is_picked_from_a_full_cluster_or_one_that_is_too_small),
		cmocka_unit_test(jobs_of_a_trace_come_in_the_order_of_submission),
		cmocka_unit_test(a_byte_order_mark_before_the_heading_is_no_part_of_a_column),
		cmocka_unit_test(what_is_no_job_on_a_gpu_is_left_out_and_counted),
		cmocka_unit_test(gpus_are_counted_in_all_forms_that_slurm_has),
		cmocka_unit_test(a_list_is_read_to_its_end_and_no_further),
		cmocka_unit_test(elapsed_is_read_with_days_and_without),
		cmocka_unit_test(a_wrong_trace_is_refused_by_its_line),
		cmocka_unit_test(time_begins_where_it_is_told_and_earlier_jobs_are_left_out),
		cmocka_unit_test(a_curve_is_linear_between_its_points_and_goes_round),
		cmocka_unit_test(bursts_multiply_the_rate_while_they_last),
		cmocka_unit_test(bursts_are_drawn_by_the_seed_one_after_the_other),
		cmocka_unit_test(arrivals_follow_the_curve),
		cmocka_unit_test(a_histogram_takes_in_another_as_if_its_values_had_been_added),
		cmocka_unit_test(work_of_many_gpus_is_added_up_beyond_64_bits),
		cmocka_unit_test(two_gpus_of_a_service_have_days_of_their_own),
		cmocka_unit_test(a_service_on_one_gpu_has_the_figures_of_that_gpu),
		cmocka_unit_test(what_is_open_at_the_end_is_counted_on_each_gpu_and_in_the_service),
		cmocka_unit_test(a_preemption_of_one_queue_is_two_cycles_one_to_stop_it_and_one_to_resume_it),
		cmocka_unit_test(work_that_a_gpu_loses_is_told_of_that_gpu),
		cmocka_unit_test(there_are_no_more_processes_than_gpus),
		cmocka_unit_test(with_their_parent_the_processes_end_in_the_middle_of_their_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
