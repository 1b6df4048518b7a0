// SPDX-License-Identifier: MIT
/* The line of the jobs, and what is looked at when. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cluster/crew.h"

#define NOT UINT64_MAX
/* How far back a GPU's load is looked at; also the longest time between two looks. */
#define WINDOW_NS (60 * GP_S)

struct cluster_run {
	const struct gp_cluster *cl;
	const struct gp_placement *placement;
	const struct gp_cluster_opts *opts;
	struct gp_cluster_result *result;
	struct gp_crew crew;
	struct gp_gpu_view *views;
	uint64_t *busy_before; /* of each GPU, when its load was last taken */
	uint64_t window_ns;    /* that was then */
	uint32_t *picked;
	uint64_t *left; /* of each job: GPUs on which it has not ended */
	uint64_t *line; /* jobs that wait, first come first */
	uint64_t first, last;
	uint64_t next_job; /* the next to come */
	uint64_t running;
	uint64_t now;
	int runs_jobs; /* exclusive: nobody is let in */
};

uint64_t gp_job_steps(const struct gp_cluster_job *job, const struct gp_work *work,
		      const struct gpm_device *dev)
{
	uint64_t step = gp_work_ns(work, dev);

	return job->length_ns > step ? (job->length_ns + step / 2) / step : 1;
}

double gp_work_pace(const struct gp_work *work, const struct gpm_device *dev)
{
	struct gpm_cmd cmd = gp_work_cmd(work, dev);
	uint64_t waves = (uint64_t)cmd.kernel.workgroups * cmd.kernel.waves_per_wg;
	uint64_t busy = gp_work_ns(work, dev) - work->kernels * dev->dispatch_ns;

	return (double)waves * (double)busy / (double)gp_work_ns(work, dev);
}

const struct gp_group *gp_cluster_service(const struct gp_cluster *cl, uint32_t gpu)
{
	uint64_t first = 0;

	for (uint32_t i = 0; i < cl->scenario.ngroups; i++) {
		const struct gp_group *g = &cl->scenario.groups[i];

		if (g->client_class != GP_CLASS_ONLINE)
			continue;
		if (gpu < first + g->gpus)
			return g;
		first += g->gpus;
	}
	return NULL;
}

const struct gp_group *gp_cluster_work(const struct gp_cluster *cl)
{
	const struct gp_group *g = cl->scenario.groups;

	while (g->client_class != GP_CLASS_OFFLINE)
		g++; /* the parser saw that there is one */
	return g;
}

static void come(struct cluster_run *run)
{
	const struct gp_cluster *cl = run->cl;

	for (; run->next_job < cl->njobs && cl->jobs[run->next_job].submit_ns <= run->now; run->next_job++) {
		if (cl->jobs[run->next_job].gpus > cl->gpus)
			run->result->refused++;
		else
			run->line[run->last++] = run->next_job;
	}
}

/* A gang has ended when the last of it has. */
static void count_end(struct cluster_run *run, struct gp_seat *seat)
{
	struct gp_job_figures *job = &run->result->jobs[seat->job - 1];

	seat->is_counted = 1;
	if (!--run->left[seat->job - 1])
		run->running--;
	if (job->last_ns < seat->end_ns)
		job->last_ns = seat->end_ns;
	if (!run->left[seat->job - 1])
		job->end_ns = job->last_ns;
}

static void each_seat(struct cluster_run *run,
		      void (*act)(struct cluster_run *run, uint32_t gpu, struct gp_seat *seat))
{
	for (uint32_t g = 0; g < run->cl->gpus; g++)
		for (uint64_t i = 0; run->views[g].jobs && i < run->cl->slots; i++)
			act(run, g, &run->crew.seats[g * run->cl->slots + i]);
}

static void end_one(struct cluster_run *run, uint32_t gpu, struct gp_seat *seat)
{
	(void)gpu;
	if (seat->end_ns && !seat->is_counted)
		count_end(run, seat);
}

static void leave_one(struct cluster_run *run, uint32_t gpu, struct gp_seat *seat)
{
	if (!seat->is_counted || run->left[seat->job - 1])
		return;
	run->views[gpu].jobs--;
	*seat = (struct gp_seat){ 0 };
}

static void sit_down(struct cluster_run *run, uint64_t job, uint32_t gpu)
{
	struct gp_seat *seat = run->crew.seats + gpu * run->cl->slots;

	while (seat->job)
		seat++; /* it has fewer jobs than seats */
	*seat = (struct gp_seat){ .job = job + 1, .starts = 1 };
	run->views[gpu].jobs++;
	run->result->gpus[gpu].jobs++;
}

static void place(struct cluster_run *run)
{
	const struct gp_cluster *cl = run->cl;

	for (; run->runs_jobs && run->first < run->last; run->first++) {
		uint64_t job = run->line[run->first];
		uint32_t k = (uint32_t)cl->jobs[job].gpus;

		if (gp_placement_pick(run->placement, run->views, (uint32_t)cl->gpus, (uint32_t)cl->slots, k,
				      run->picked) < 0)
			return; /* those behind it wait too */
		for (uint32_t i = 0; i < k; i++)
			sit_down(run, job, run->picked[i]);
		run->result->jobs[job].start_ns = run->now;
		run->left[job] = k;
		run->running++;
	}
}

static void take_loads(struct cluster_run *run)
{
	uint64_t passed = run->now - run->window_ns;

	if (passed < WINDOW_NS)
		return;
	for (uint32_t g = 0; g < run->cl->gpus; g++) {
		uint64_t busy = run->crew.busy_ns[g] - run->busy_before[g];

		run->views[g].online_permille = (uint32_t)(busy * 1000 / passed);
		run->busy_before[g] = run->crew.busy_ns[g];
	}
	run->window_ns = run->now;
}

static uint64_t round_up(uint64_t ns, uint64_t to)
{
	return (ns + to - 1) / to * to;
}

/* Only then can anything be placed that cannot be now. */
static uint64_t next_look(const struct cluster_run *run)
{
	const struct gp_cluster *cl = run->cl;
	uint64_t tick = cl->tick_ns, next = run->window_ns + WINDOW_NS, end = cl->scenario.duration_ns;

	if (run->runs_jobs && run->first < run->last)
		next = round_up(run->now + 1, tick);
	else if (run->next_job < cl->njobs && cl->jobs[run->next_job].submit_ns < next)
		next = round_up(cl->jobs[run->next_job].submit_ns, tick);
	if (next > run->window_ns + WINDOW_NS)
		next = run->window_ns + WINDOW_NS;
	return next < end ? next : end;
}

static void note_line(struct cluster_run *run, uint64_t from)
{
	struct gp_cluster_result *r = run->result;
	uint64_t slice = run->cl->scenario.duration_ns / GP_CLUSTER_SLICES;

	for (uint64_t i = from / (slice + !slice); i < GP_CLUSTER_SLICES; i++) {
		r->waiting[i] = run->last - run->first;
		r->running[i] = run->running;
	}
}

static int run_looks(struct cluster_run *run)
{
	const uint64_t end = run->cl->scenario.duration_ns;
	int r;

	for (;;) {
		come(run);
		each_seat(run, end_one);
		each_seat(run, leave_one);
		take_loads(run);
		if (run->now < end)
			place(run);
		note_line(run, run->now);
		if (run->now >= end)
			return gp_crew_finish(&run->crew);
		run->now = next_look(run);
		run->result->looks++;
		r = gp_crew_run(&run->crew, run->now);
		if (r < 0)
			return r;
		if (run->opts->progress)
			run->opts->progress(run->opts->arg, run->now);
	}
}

static void add_up(struct cluster_run *run)
{
	const uint32_t ngroups = run->cl->scenario.ngroups;
	struct gp_cluster_result *r = run->result;

	for (uint32_t g = 0; g < run->cl->gpus; g++) {
		uint64_t jobs = r->gpus[g].jobs;

		r->gpus[g] = run->crew.gpus[g];
		r->gpus[g].jobs = jobs;
	}
	for (uint32_t m = 0; m < run->crew.n; m++) {
		for (uint32_t i = 0; i < ngroups; i++)
			gp_service_add(&r->services[i], &run->crew.services[m * ngroups + i].latency,
				       &run->crew.services[m * ngroups + i].online);
		for (int i = 0; i < GP_CLUSTER_SLICES; i++) {
			r->online_done[i] += run->crew.online_done[m][i];
			r->offline_wave_us[i] += run->crew.offline_wave_us[m][i];
		}
	}
}

static int set_up(struct cluster_run *run)
{
	const struct gp_cluster *cl = run->cl;
	struct gp_cluster_result *r = calloc(1, sizeof(*r));

	run->result = r;
	if (!r)
		return -ENOMEM;
	r->gpus = calloc(cl->gpus, sizeof(*r->gpus));
	r->services = calloc(cl->scenario.ngroups + 1, sizeof(*r->services));
	r->jobs = malloc((cl->njobs + 1) * sizeof(*r->jobs));
	run->views = calloc(cl->gpus, sizeof(*run->views));
	run->busy_before = calloc(cl->gpus, sizeof(*run->busy_before));
	run->picked = calloc(cl->gpus, sizeof(*run->picked));
	run->left = calloc(cl->njobs + 1, sizeof(*run->left));
	run->line = calloc(cl->njobs + 1, sizeof(*run->line));
	if (!r->gpus || !r->services || !r->jobs || !run->views || !run->busy_before || !run->picked ||
	    !run->left || !run->line)
		return -ENOMEM;
	for (uint64_t i = 0; i < cl->njobs; i++)
		r->jobs[i] = (struct gp_job_figures){ .start_ns = NOT, .end_ns = NOT };
	for (uint32_t g = 0; g < cl->gpus; g++) {
		const struct gp_group *service = gp_cluster_service(cl, g);

		run->views[g].service_class = service ? 1 + service->service_class : 0;
	}
	return 0;
}

int gp_cluster_run(const struct gp_cluster *cl, const struct gp_config *config,
		   const struct gp_placement *placement, const struct gp_cluster_opts *opts,
		   struct gp_cluster_result **ret)
{
	struct cluster_run run = { .cl = cl,
				   .placement = placement,
				   .opts = opts,
				   .crew = { .cl = cl, .config = config, .n = opts->jobs },
				   .runs_jobs = config->kind != GP_CONFIG_EXCLUSIVE };
	int r = set_up(&run);

	if (r == 0)
		r = gp_crew_start(&run.crew);
	if (r == 0)
		r = run_looks(&run);
	if (r == 0)
		add_up(&run);
	gp_crew_free(&run.crew);
	free(run.views);
	free(run.busy_before);
	free(run.picked);
	free(run.left);
	free(run.line);
	if (r < 0)
		gp_cluster_result_free(run.result);
	else
		*ret = run.result;
	return r;
}

struct gp_cluster_result *gp_cluster_result_free(struct gp_cluster_result *r)
{
	if (!r)
		return NULL;
	free(r->gpus);
	free(r->services);
	free(r->jobs);
	free(r);
	return NULL;
}
