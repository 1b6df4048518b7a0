/* SPDX-License-Identifier: MIT */
/*
 * The processes that run a cluster's GPUs.  What they and their owner tell each other is in shared memory:
 * each waits while the other writes.
 */
#ifndef GP_CLUSTER_CREW_H
#define GP_CLUSTER_CREW_H

#include "cluster/cluster.h"

/* Room for a job on a GPU. */
struct gp_seat {
	uint64_t job;        /* its number, from 1 on; 0: nobody's */
	uint64_t starts;     /* 1: it is to begin */
	uint64_t end_ns;     /* 0: it has not ended */
	uint64_t is_counted; /* that it has: a gang keeps its seats until all of it has */
};

struct gp_crew {
	const struct gp_cluster *cl;
	const struct gp_config *config;
	uint32_t n; /* processes */
	struct gp_crew_member *members;
	/* shared */
	void *memory;
	size_t memory_size;
	struct gp_seat *seats;                      /* cl->slots of each GPU */
	uint64_t *busy_ns;                          /* of each GPU: so long was its service on it */
	struct gp_gpu_figures *gpus;                /* at the end */
	struct gp_service_figures *services;        /* at the end: of each process, of each group */
	uint64_t (*online_done)[GP_CLUSTER_SLICES]; /* at the end: of each process */
	uint64_t (*offline_wave_us)[GP_CLUSTER_SLICES];
};

int gp_crew_start(struct gp_crew *crew);
/* Jobs that are to start do, and all GPUs go on to that time. -ECHILD: a process is gone. */
int gp_crew_run(struct gp_crew *crew, uint64_t until_ns);
/* The figures; the processes end. */
int gp_crew_finish(struct gp_crew *crew);
void gp_crew_free(struct gp_crew *crew);

/* Adds the figures of one GPU, or of one process. */
void gp_service_add(struct gp_service_figures *sum, const struct gp_hist *latency,
		    const struct gp_online_counts *more);

#endif
