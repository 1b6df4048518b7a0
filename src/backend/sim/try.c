// SPDX-License-Identifier: MIT
#include <errno.h>

#include "backend/sim/presets.h"
#include "backend/sim/sim.h"

#define US 1000ull
#define MS 1000000ull
#define PART_NS (10 * MS) /* each part of a round */
#define KERNEL_NS (1000 * MS)

struct run {
	struct gp_backend *be;
	uint64_t queue, now;
	struct gpm_cmd kernel;
	uint64_t whole_ns; /* of all its waves */
};

static void go_to(struct run *run, uint64_t until)
{
	while (run->now < until) {
		uint64_t next = gp_sim_next(run->be);

		run->now = next < until ? next : until;
		gp_sim_advance(run->be, run->now);
	}
}

static uint64_t work(const struct run *run)
{
	return gpm_exec_work(&gp_sim_queue(run->be, run->queue)->ctx, run->now);
}

/* In microseconds of the kernel. */
static uint64_t progress(void *arg, int is_running)
{
	struct run *run = arg;
	uint64_t before = work(run);

	(void)is_running; /* a model keeps nobody waiting */
	go_to(run, run->now + PART_NS);
	return (work(run) - before) / (run->whole_ns / KERNEL_NS) / US;
}

static int want(struct run *run, uint32_t what, uint64_t *ret_ns)
{
	struct gp_want wants = { .queue = run->queue, .want = what };
	struct gp_done done = { 0 };
	int r = gp_sim_ops.apply(run->be, &wants, 1, NULL);

	if (r < 0)
		return r;
	while (wants.status == -EINPROGRESS && !gp_sim_ops.complete(run->be, &done, 1)) {
		run->now = gp_sim_next(run->be);
		gp_sim_advance(run->be, run->now);
	}
	*ret_ns = done.latency_ns;
	return done.want.status;
}

static int stop(void *arg, uint64_t *ret_ns)
{
	return want(arg, GP_STOP, ret_ns);
}

static int resume(void *arg, uint64_t *ret_ns)
{
	return want(arg, GP_RUN, ret_ns);
}

static const struct gp_trial_ops ops = { .progress = progress,
					 .stop = stop,
					 .resume = resume,
					 .stop_step = "stop the queue while its kernel runs",
					 .resume_step = "resume the queue" };

static int run_rounds(struct run *run, struct gp_trial *ret)
{
	int r = gp_trial_go(&ops, run, ret);

	if (r < 0)
		return r;
	ret->step = "see the kernel end with all of its work done once";
	go_to(run, run->now + 2 * KERNEL_NS);
	return gp_sim_finished(run->be) == &run->kernel && work(run) == run->whole_ns ? 0 : -EIO;
}

/* One wave in each slot of the device. */
static int start(struct run *run, const struct gpm_device *device)
{
	const struct gp_sim_queue_opts opts = { .client = 1,
						.client_name = "selftest",
						.client_class = GP_CLASS_OFFLINE };
	const uint64_t waves = gpm_wave_slots(device);
	int r = gp_sim_queue_add(run->be, &opts, &run->queue);

	run->kernel.kernel = (struct gpm_dispatch){ .wave_ns = KERNEL_NS,
						    .workgroups = (uint32_t)waves,
						    .waves_per_wg = 1 };
	run->kernel.count = 1;
	run->whole_ns = KERNEL_NS * waves;
	return r < 0 ? r : gp_sim_submit(run->be, run->queue, &run->kernel);
}

int gp_sim_try_running(struct gp_trial *ret)
{
	const struct gp_preset *preset = gp_preset_find("mi308x");
	const struct gp_backend_opts opts = { .size = sizeof(opts), .device = preset->name };
	struct run run = { 0 };
	int r;

	*ret = (struct gp_trial){ .step = "open the simulated GPU" };
	r = gp_sim_ops.open(&opts, &run.be);
	if (r < 0)
		return r;
	ret->step = "start a kernel";
	r = start(&run, &preset->device);
	if (r == 0)
		r = run_rounds(&run, ret);
	gp_sim_ops.close(run.be);
	return r;
}
