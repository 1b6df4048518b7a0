/* SPDX-License-Identifier: MIT */
/* What is to be run: the scenario file, parsed. */
#ifndef GP_MACHINE_SCENARIO_H
#define GP_MACHINE_SCENARIO_H

#include <gpreempt/gpreempt.h>
#include <gpreempt/policy.h>

#include "machine/curve.h"
#include "model/gpu.h"

#define GP_SCENARIO_NAME 32
#define GP_MAX_GROUPS 8
#define GP_MAX_CLIENTS 64  /* of all groups together */
#define GP_MAX_QUEUES 1024 /* of all clients together */
#define GP_MAX_SWEEP 24
#define GP_MAX_CONFIGS 24

/* Kernels x length x share of the CUs, alone on the device. */
struct gp_work {
	char name[GP_SCENARIO_NAME];
	uint64_t kernels;
	uint64_t length_ns;
	uint64_t share_permille;
	uint64_t every;           /* every n-th kernel ... */
	uint64_t every_length_ns; /* ... takes this long instead; 0: none does */
	uint64_t interval_ns;     /* the CPU launches one kernel each interval; 0: all at once */
};

enum gp_arrival {
	GP_ARRIVAL_PERIODIC,
	GP_ARRIVAL_POISSON,
	GP_ARRIVAL_BURST,  /* Poisson whose rate switches between 0.2 and 3 times its mean */
	GP_ARRIVAL_TRACE,  /* at the times of a file */
	GP_ARRIVAL_CLOSED, /* exponential think time after each completion */
	GP_ARRIVAL_ALWAYS, /* offline: the next begins when the last is done */
};

/* How much a service's latency is worth; placement by class sends offline work to the lower ones. */
enum gp_service_class { GP_SERVICE_LOW, GP_SERVICE_NORMAL, GP_SERVICE_HIGH };

/* Clients that are alike. */
struct gp_group {
	char name[GP_SCENARIO_NAME];
	uint32_t client_class; /* enum gp_class */
	uint32_t arrival;      /* enum gp_arrival */
	struct gp_work work;
	uint64_t clients;
	uint64_t queues;        /* per client; requests go to them in turn */
	uint64_t idle_queues;   /* per client, besides: nothing comes to them */
	uint64_t priority;      /* 0 to 15 */
	uint64_t weight;        /* 100 is normal */
	uint64_t rate_milli;    /* requests per 1000 s and client */
	uint64_t load_permille; /* of the device's time, where the rate follows from it; 0: it was given */
	uint64_t think_ns;      /* closed loop: mean */
	uint64_t prepare_ns;    /* CPU work from a request's arrival to its first kernel: mean, +- a half */
	uint64_t serial;        /* 1: a request is sent when the one before is done, launch_ns later */
	uint64_t slo_ns;        /* 0: none */
	uint64_t device;        /* number of the device it runs on */
	uint64_t *trace_ns;     /* arrival times, ascending, owned by the scenario */
	uint32_t *trace_client; /* which client of the group each goes to */
	uint64_t trace_len;
	struct gp_curve *curve; /* of a Poisson rate; NULL: it stays what it is. Owned by the scenario */
	/* in a cluster */
	uint64_t gpus;          /* that each have the group's clients */
	uint32_t service_class; /* enum gp_service_class */
	uint32_t reserved;
};

enum gp_sweep { GP_SWEEP_NONE, GP_SWEEP_LOAD, GP_SWEEP_LENGTH, GP_SWEEP_QUEUES };

/* How offline work is kept out of the way: a row of the table. */
enum gp_config_kind {
	GP_CONFIG_EXCLUSIVE, /* online alone */
	GP_CONFIG_NATIVE,    /* nobody schedules */
	GP_CONFIG_THROTTLE,
	GP_CONFIG_GATE,
	GP_CONFIG_FLUSH,  /* gate, and what waits in the hardware queue is turned away and replayed */
	GP_CONFIG_SINGLE, /* interrupt, one queue per call */
	GP_CONFIG_BATCH,  /* interrupt, all queues in one call */
	GP_CONFIG_SLICE,  /* the slice is shortened when online work comes, and put back */
	GP_CONFIG_YIELD,
	GP_CONFIG_AUTO, /* whatever the core picks from all of the above */
	GP_CONFIG_COUNT,
};

struct gp_config {
	uint32_t kind;  /* enum gp_config_kind */
	uint32_t hints; /* 1: online clients say that a request is coming */
};

struct gp_scenario {
	char name[GP_SCENARIO_NAME];
	char device_name[GP_SCENARIO_NAME];
	char policy[GP_SCENARIO_NAME];
	const struct gp_policy_ops *policy_ops; /* NULL: the one of that name that is built in */
	struct gpm_device device;
	uint64_t devices;
	uint64_t duration_ns;
	uint64_t warmup_ns; /* not counted */
	uint64_t seed;
	uint64_t throttle_depth; /* commands in flight under throttle */
	uint64_t max_starve_ns;  /* UINT64_MAX: no guard */
	uint64_t rotate;         /* 0: offline clients do not take turns under yield */
	uint64_t quantum_ns;     /* of those turns; 0: the core's */
	uint64_t park;           /* open requests for which what yields by its slice is stopped; 0: never */
	uint64_t yield_slice_ns; /* 0: the device's */

	uint32_t ngroups;
	uint32_t nconfigs;
	uint32_t sweep; /* enum gp_sweep */
	uint32_t nsweep;
	struct gp_group groups[GP_MAX_GROUPS];
	struct gp_config configs[GP_MAX_CONFIGS];
	uint64_t sweep_values[GP_MAX_SWEEP]; /* permille of load, ns of kernel length, or queues */
};

const char *gp_config_name(uint32_t kind); /* "interrupt-batched" and so on */
int gp_config_kind_parse(const char *name, uint32_t *ret_way);
/* The work BENCH names: infer-1ms, infer-10ms, decode, train, long. -ENOENT: no such. */
int gp_work_by_name(const char *name, struct gp_work *ret);
/* What one request of this work takes alone on the device. */
uint64_t gp_work_ns(const struct gp_work *work, const struct gpm_device *dev);
/* The kernels of one request, in waves of this device. */
struct gpm_cmd gp_work_cmd(const struct gp_work *work, const struct gpm_device *dev);
/* The rate at which the group's clients together use this share of the device's time; 0: less than one. */
uint64_t gp_group_load_rate(const struct gp_group *group, const struct gpm_device *dev, uint64_t permille);
/* Another device: rates that follow from a load follow from the new one. */
void gp_scenario_set_device(struct gp_scenario *sc, const struct gpm_device *dev);
/* Once its seed and duration are what they will be: draws the bursts of its curves. -ENOMEM. */
int gp_scenario_start(struct gp_scenario *sc);
/* A scenario with the sweep's value i put in. */
void gp_scenario_at(const struct gp_scenario *sc, uint32_t i, struct gp_scenario *ret);

#endif
