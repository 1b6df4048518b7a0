/* SPDX-License-Identifier: MIT */
/* A program on a simulated GPU that runs as a process (simgpu/gpu.h), and a client of gpreemptd. */
#ifndef GP_SIMGPU_CLIENT_H
#define GP_SIMGPU_CLIENT_H

#include <gpreempt/gpreempt.h>

#include "base/hist.h"
#include "machine/scenario.h"

struct gp_simclient_opts {
	const char *gpu;    /* the simulated GPU's socket */
	const char *socket; /* gpreemptd's; NULL: the environment's, or the usual ones; "": none */
	const char *name;
	struct gp_work work;
	uint32_t device;
	uint32_t client_class; /* online: open loop; offline: always two steps ahead in each queue */
	uint32_t arrival;      /* periodic, Poisson or burst */
	uint32_t queues;
	uint32_t hints;
	uint32_t weight;
	uint32_t verbose;    /* says each request or step when it is done */
	uint64_t rate_milli; /* requests per 1000 s */
	uint64_t slo_ns;
	uint64_t duration_ns; /* 0: until end_fd */
	uint64_t requests;    /* 0: any number */
	uint64_t seed;
	int end_fd; /* readable: it ends */
	void (*say)(const char *line);
};

/* Simulated time, on the real clock. */
struct gp_simclient_figures {
	struct gp_device_info device;
	uint64_t elapsed_ns;
	uint64_t submitted;
	uint64_t completed; /* of these: each once, or the run fails */
	struct gp_hist
		latency; /* online: completion minus intended arrival; what is open counts as it stands */
	struct gp_hist
		late; /* how late the host woke it from its sleeps: in the latencies, and no device's */
	uint64_t slo_met;
	uint64_t stops;      /* of queues */
	uint64_t stopped_ns; /* the queues' mean */
	uint32_t scheduled;  /* there was a gpreemptd, if only for a while */
	uint32_t reserved;
};

/* 0, or -errno and why in text; the figures are those up to then. */
int gp_simclient_run(const struct gp_simclient_opts *opts, struct gp_simclient_figures *ret, char *text,
		     size_t size);

#endif
