/* SPDX-License-Identifier: MIT */
/*
 * A cluster of simulated machines with one GPU each: services on them, offline jobs that come by a trace, a
 * line in which they wait, and a placement that says where they go.  Between two looks of the placement no
 * GPU hears of another: they run apart, in as many processes as one likes, and the figures do not depend on
 * how many.
 */
#ifndef GP_CLUSTER_H
#define GP_CLUSTER_H

#include "base/hist.h"
#include "cluster/placement.h"
#include "machine/scenario.h"

#define GP_MAX_GPUS 100000
#define GP_MAX_SLOTS 32
#define GP_MAX_PLACEMENTS 8
#define GP_JOB_NAME 24
#define GP_CLUSTER_SLICES 100

struct gp_cluster_job {
	char name[GP_JOB_NAME];
	uint64_t submit_ns;
	uint64_t length_ns; /* what it takes on GPUs of its own */
	uint64_t gpus;      /* at once: a gang */
	uint64_t line;      /* of its trace */
};

/* The scenario's online groups are the services, each on GPUs of its own; its offline group is the jobs'
 * work. */
struct gp_cluster {
	struct gp_scenario scenario;
	uint64_t gpus;
	uint64_t slots;   /* jobs on a GPU, at most */
	uint64_t tick_ns; /* how often the placement looks while jobs wait */
	const struct gp_placement *placements[GP_MAX_PLACEMENTS];
	uint32_t nplacements;
	uint32_t reserved;
	struct gp_cluster_job *jobs; /* by time of submission; owned */
	uint64_t njobs;
	/* jobs of the trace that are left out, and why */
	uint64_t without_gpu, never_ran, before;
};

struct gp_online_counts {
	uint64_t requests, unfinished;
	uint64_t slo_met, slo_requests; /* of those with an SLO */
};

/* One GPU in a row. */
struct gp_gpu_figures {
	struct gp_online_counts online;
	uint64_t p50_ns, p99_ns;
	uint64_t online_busy_ns;
	uint64_t offline_wave_ns;
	uint64_t lost_wave_ns;
	uint64_t preemptions, cycles;
	uint64_t jobs;    /* that began on it */
	uint64_t service; /* its group's number, or UINT64_MAX */
};

/* One service, on all its GPUs. */
struct gp_service_figures {
	struct gp_hist latency;
	struct gp_online_counts online;
};

/* UINT64_MAX: not (yet). */
struct gp_job_figures {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t last_ns; /* when a part of it last ended; 0: none has */
};

struct gp_cluster_result {
	struct gp_gpu_figures *gpus;
	struct gp_service_figures *services; /* as many as the scenario has groups */
	struct gp_job_figures *jobs;
	uint64_t refused; /* jobs that ask for more GPUs than there are */
	uint64_t online_done[GP_CLUSTER_SLICES];
	uint64_t offline_wave_us[GP_CLUSTER_SLICES];                     /* in ns, 64 bits are too few */
	uint64_t waiting[GP_CLUSTER_SLICES], running[GP_CLUSTER_SLICES]; /* jobs, at the end of each slice */
	uint64_t looks;
};

struct gp_cluster_opts {
	uint32_t jobs;                                /* processes */
	void (*progress)(void *arg, uint64_t now_ns); /* or NULL */
	void *arg;
};

/* The steps that a job is made of, and the work of one, alone on a device: wave-ns per ns. */
uint64_t gp_job_steps(const struct gp_cluster_job *job, const struct gp_work *work,
		      const struct gpm_device *dev);
double gp_work_pace(const struct gp_work *work, const struct gpm_device *dev);
/* The group whose clients are on this GPU; NULL: none. Services have the GPUs in the order of the file. */
const struct gp_group *gp_cluster_service(const struct gp_cluster *cl, uint32_t gpu);
/* The offline group that jobs are made of. */
const struct gp_group *gp_cluster_work(const struct gp_cluster *cl);

/* -ECHILD: a process died. */
int gp_cluster_run(const struct gp_cluster *cl, const struct gp_config *config,
		   const struct gp_placement *placement, const struct gp_cluster_opts *opts,
		   struct gp_cluster_result **ret);
struct gp_cluster_result *gp_cluster_result_free(struct gp_cluster_result *r);

#endif
