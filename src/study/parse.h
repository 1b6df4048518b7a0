/* SPDX-License-Identifier: MIT */
/*
 * The parsers of scenarios, devices and arrival traces.  They print nothing and
 * never end the process: 0, or a negative errno and the reason in diag.
 */
#ifndef GP_STUDY_PARSE_H
#define GP_STUDY_PARSE_H

#include "cluster/cluster.h"
#include "machine/scenario.h"
#include "ini/diag.h"

struct gp_device_file {
	char name[GP_SCENARIO_NAME];
	char title[64];
	struct gpm_device device;
};

/*
 * Where a scenario gets what it names.  A callback that finds a fault inside the
 * other file fills diag; one that just cannot get at it leaves diag alone.
 */
struct gp_parse_env {
	void *arg;
	const char *devices; /* the built-in ones, as "a b c" */
	/* A built-in device, or a file beside from. */
	int (*device)(void *arg, const char *name, const char *from, struct gp_device_file *ret,
		      struct gp_diag *diag);
	/* Text of a file beside from, for the parser to free. */
	int (*read)(void *arg, const char *name, const char *from, char **ret_text);
};

struct gp_trace {
	uint64_t *time_ns;
	uint32_t *client;
	uint64_t len;
};

/* Jobs of a Slurm trace, by time of submission. */
struct gp_sacct {
	struct gp_cluster_job *jobs;
	uint64_t njobs;
	uint64_t without_gpu, never_ran, before; /* left out */
};

/* Time begins with begin_s, or with the first job if that is NULL. */
int gp_sacct_parse(const char *text, const char *filename, const int64_t *begin_s, struct gp_sacct *ret,
		   struct gp_diag *diag);
/* A date as 2026-03-02T08:15:00, in seconds. */
int gp_date_parse(const char *text, int64_t *ret_s);

/* A file with a section [cluster]; gp_scenario_parse() takes those without. */
int gp_cluster_parse(const char *text, const char *filename, const struct gp_parse_env *env,
		     struct gp_cluster *ret, struct gp_diag *diag);
void gp_cluster_free(struct gp_cluster *cl);

int gp_scenario_parse(const char *text, const char *filename, const struct gp_parse_env *env,
		      struct gp_scenario *ret, struct gp_diag *diag);
void gp_scenario_free(struct gp_scenario *sc);
/* What is wrong between settings, each of which is fine: for those who change one afterwards. */
int gp_scenario_check_times(const struct gp_scenario *sc, const struct gp_place *at);

int gp_device_parse(const char *text, const char *filename, struct gp_device_file *ret, struct gp_diag *diag);

/* Clients are numbered from 0 to clients - 1. */
int gp_trace_parse(const char *text, const char *filename, uint64_t clients, struct gp_trace *ret,
		   struct gp_diag *diag);
void gp_trace_free(struct gp_trace *trace);

/* A list as "native gate+hints"; written only on success. */
int gp_configs_parse(const char *list, const struct gp_place *at, struct gp_config *ret, uint32_t *ret_n);
/* "gate+hints" */
const char *gp_config_text(const struct gp_config *config, char text[GP_SCENARIO_NAME]);
/* The stem of a path: "e" of "dir/e.ini", cut to size. */
void gp_file_stem(const char *path, char *stem, size_t size);

#endif
