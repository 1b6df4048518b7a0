/* SPDX-License-Identifier: MIT */
/* What the administrator says in plugstack.conf, and the user on the command line. */
#ifndef GP_SLURM_WORDS_H
#define GP_SLURM_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Texts are the caller's. */
struct gp_slurm_conf {
	const char *socket;            /* gpreemptd's; NULL: where it usually is */
	const char *agent;             /* NULL: where it was installed */
	const char *online_partitions; /* names with commas between; NULL: none */
	const char *online_qos;        /* the same */
	const char *report;            /* folder for a file of each step; NULL: none are written */
	uint32_t most_weight;
	uint32_t usual_class; /* of jobs that do not ask: enum gp_class; unknown: we leave them alone */
	bool is_required;     /* no job that asks starts where gpreemptd is not */
};

enum gp_slurm_option { GP_SLURM_CLASS, GP_SLURM_SLO, GP_SLURM_WEIGHT, GP_SLURM_FLOOR, GP_SLURM_PATIENCE };

/* 0: not said. */
struct gp_slurm_asked {
	uint32_t client_class; /* enum gp_class */
	uint32_t weight;
	uint64_t slo_ns;
	uint32_t floor_permille;
	uint64_t patience_ns;
};

/*
 * -EINVAL, with a sentence that says what is wrong and what is allowed.  The first mistake is told; the rest
 * is read all the same: whether gpreemptd is required, and of whom, is so whatever else there is.
 */
int gp_slurm_conf_read(int argc, char **argv, struct gp_slurm_conf *ret, char *error, size_t size);
/* -EINVAL, with a sentence that says what is wrong and what is allowed. */
int gp_slurm_ask(struct gp_slurm_asked *asked, enum gp_slurm_option which, const char *text, char *error,
		 size_t size);
/* All of it together: what would do nothing. */
int gp_slurm_ask_check(const struct gp_slurm_asked *asked, const struct gp_slurm_conf *conf, char *error,
		       size_t size);
/* What LD_PRELOAD is to be: the agent once, before what is there. -E2BIG: it does not fit. */
int gp_slurm_preload(const char *agent, const char *before, char *text, size_t size);
/* Whether a list as of online_partitions has the name. */
bool gp_slurm_is_listed(const char *list, const char *name);

#endif
