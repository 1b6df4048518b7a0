// SPDX-License-Identifier: MIT
#include "cluster/crew.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "base/time.h"
#include "machine/machine.h"

#define FINISH UINT64_MAX /* in place of a time: write the figures and end */

struct gp_crew_member {
	pid_t pid;
	int fd; /* a time goes out, an error comes back */
};

/* One GPU, in the process that runs it. */
struct gpu {
	struct gp_machine *machine;
	struct gp_run_result *result;
	uint32_t number;
};

static int share(struct gp_crew *crew)
{
	const struct gp_cluster *cl = crew->cl;
	size_t seats = cl->gpus * cl->slots * sizeof(*crew->seats), busy = cl->gpus * sizeof(*crew->busy_ns);
	size_t gpus = cl->gpus * sizeof(*crew->gpus), slices = crew->n * sizeof(*crew->online_done);
	size_t services = (size_t)crew->n * cl->scenario.ngroups * sizeof(*crew->services);
	char *at;

	crew->memory_size = seats + busy + gpus + services + 2 * slices;
	at = mmap(NULL, crew->memory_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	crew->memory = at;
	crew->seats = (void *)at;
	crew->busy_ns = (void *)(at += seats);
	crew->gpus = (void *)(at += busy);
	crew->services = (void *)(at += gpus);
	crew->online_done = (void *)(at += services);
	crew->offline_wave_us = (void *)(at += slices);
	return 0;
}

/* Chance of its own for each GPU, whatever process has it. */
static uint64_t seed_of(const struct gp_cluster *cl, uint32_t number)
{
	struct gp_random random;

	gp_random_init(&random, cl->scenario.seed, number);
	return gp_random_next(&random);
}

static int gpu_new(const struct gp_crew *crew, uint32_t number, struct gpu *gpu)
{
	const struct gp_group *service = gp_cluster_service(crew->cl, number);
	struct gp_scenario sc = crew->cl->scenario;
	int r;

	sc.seed = seed_of(crew->cl, number);
	sc.ngroups = service != NULL;
	if (service)
		sc.groups[0] = *service;
	gpu->number = number;
	gpu->result = calloc(1, sizeof(*gpu->result));
	if (!gpu->result)
		return -ENOMEM;
	r = gp_machine_new(&sc, crew->config, gpu->result, &gpu->machine);
	if (r == 0)
		gp_machine_measure(gpu->machine);
	return r;
}

static int start_jobs(const struct gp_crew *crew, struct gpu *gpu, struct gp_seat *seats)
{
	const struct gp_cluster *cl = crew->cl;
	const struct gp_group *group = gp_cluster_work(cl);
	int r = 0;

	for (uint64_t i = 0; i < cl->slots && r == 0; i++) {
		if (!seats[i].starts)
			continue;
		seats[i].starts = 0;
		r = gp_machine_job_start(
			gpu->machine, group,
			gp_job_steps(&cl->jobs[seats[i].job - 1], &group->work, &cl->scenario.device), i);
	}
	return r;
}

static int gpu_run(const struct gp_crew *crew, struct gpu *gpu, uint64_t until_ns)
{
	struct gp_seat *seats = crew->seats + gpu->number * crew->cl->slots;
	struct gp_job_end end;
	int r = start_jobs(crew, gpu, seats);

	if (r < 0)
		return r;
	gp_machine_run_until(gpu->machine, until_ns);
	while (gp_machine_job_ended(gpu->machine, &end))
		seats[end.tag].end_ns = end.end_ns;
	crew->busy_ns[gpu->number] = gp_machine_online_busy(gpu->machine);
	return 0;
}

void gp_service_add(struct gp_service_figures *sum, const struct gp_hist *latency,
		    const struct gp_online_counts *more)
{
	gp_hist_merge(&sum->latency, latency);
	sum->online.requests += more->requests;
	sum->online.unfinished += more->unfinished;
	sum->online.slo_met += more->slo_met;
	sum->online.slo_requests += more->slo_requests;
}

static void gpu_finish(const struct gp_crew *crew, uint32_t me, struct gpu *gpu)
{
	const struct gp_cluster *cl = crew->cl;
	const struct gp_group *service = gp_cluster_service(cl, gpu->number);
	struct gp_run_result *run = gpu->result;

	gp_machine_finish(gpu->machine);
	crew->gpus[gpu->number] = (struct gp_gpu_figures){
		.online = { run->requests, run->unfinished, run->slo_met, run->slo_requests },
		.p50_ns = gp_hist_quantile(&run->latency, 5000),
		.p99_ns = gp_hist_quantile(&run->latency, 9900),
		.online_busy_ns = run->online_busy_ns,
		.offline_wave_ns = run->offline_wave_ns,
		.lost_wave_ns = run->lost_wave_ns,
		.preemptions = run->preemptions,
		.cycles = run->cycles,
		.service = service ? (uint64_t)(service - cl->scenario.groups) : UINT64_MAX,
	};
	if (service)
		gp_service_add(&crew->services[me * cl->scenario.ngroups + (service - cl->scenario.groups)],
			       &run->latency, &crew->gpus[gpu->number].online);
	for (int i = 0; i < GP_CLUSTER_SLICES; i++) {
		crew->online_done[me][i] += run->online_done[i];
		crew->offline_wave_us[me][i] += run->offline_done[i] / GP_US;
	}
	gp_machine_free(gpu->machine);
	free(run);
}

static int run_all(const struct gp_crew *crew, uint32_t me, struct gpu *gpus, uint32_t n, uint64_t until_ns)
{
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++) {
		if (until_ns == FINISH)
			gpu_finish(crew, me, &gpus[i]);
		else
			r = gpu_run(crew, &gpus[i], until_ns);
	}
	return r;
}

/* The life of one process. It has every n-th GPU. */
static int work(const struct gp_crew *crew, uint32_t me, int fd)
{
	struct gpu *gpus = calloc(crew->cl->gpus / crew->n + 1, sizeof(*gpus));
	uint64_t until_ns = 0;
	uint32_t n = 0;
	int r = gpus ? 0 : -ENOMEM;

	for (uint32_t i = me; i < crew->cl->gpus && r == 0; i += crew->n)
		r = gpu_new(crew, i, &gpus[n++]);
	while (r == 0 && until_ns != FINISH && read(fd, &until_ns, sizeof(until_ns)) == sizeof(until_ns)) {
		r = run_all(crew, me, gpus, n, until_ns);
		if (r == 0 && write(fd, &r, sizeof(r)) != sizeof(r))
			break;
	}
	if (r < 0)
		(void)!write(fd, &r, sizeof(r));
	return r < 0;
}

static int start_member(struct gp_crew *crew, uint32_t i)
{
	const pid_t parent = getpid();
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(fds[0]);
		_exit(work(crew, i, fds[1]));
	}
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return -errno;
	}
	crew->members[i] = (struct gp_crew_member){ .pid = pid, .fd = fds[0] };
	return 0;
}

int gp_crew_start(struct gp_crew *crew)
{
	int r;

	if (crew->n > crew->cl->gpus)
		crew->n = (uint32_t)crew->cl->gpus;
	crew->members = calloc(crew->n, sizeof(*crew->members));
	r = crew->members ? share(crew) : -ENOMEM;
	for (uint32_t i = 0; i < crew->n && r == 0; i++)
		r = start_member(crew, i);
	return r;
}

int gp_crew_run(struct gp_crew *crew, uint64_t until_ns)
{
	int r = 0;

	for (uint32_t i = 0; i < crew->n; i++)
		if (send(crew->members[i].fd, &until_ns, sizeof(until_ns), MSG_NOSIGNAL) != sizeof(until_ns))
			return -ECHILD;
	for (uint32_t i = 0; i < crew->n && r == 0; i++)
		if (read(crew->members[i].fd, &r, sizeof(r)) != sizeof(r))
			return -ECHILD;
	return r;
}

int gp_crew_finish(struct gp_crew *crew)
{
	return gp_crew_run(crew, FINISH);
}

void gp_crew_free(struct gp_crew *crew)
{
	for (uint32_t i = 0; crew->members && i < crew->n && crew->members[i].pid; i++) {
		close(crew->members[i].fd);
		(void)kill(crew->members[i].pid, SIGKILL);
		(void)waitpid(crew->members[i].pid, NULL, 0);
	}
	free(crew->members);
	if (crew->memory)
		munmap(crew->memory, crew->memory_size);
	*crew = (struct gp_crew){ 0 };
}
