/* SPDX-License-Identifier: MIT */
/*
 * Which GPUs an offline job is put on.  A placement is a table with one decision in it: which of two GPUs
 * comes first. A new one is a function in placement.c and a line of its list.
 */
#ifndef GP_CLUSTER_PLACEMENT_H
#define GP_CLUSTER_PLACEMENT_H

#include <stddef.h>
#include <stdint.h>

/* A GPU, as a placement sees it. */
struct gp_gpu_view {
	uint32_t jobs;            /* on it */
	uint32_t service_class;   /* 0: no service, else 1 + enum gp_service_class */
	uint32_t online_permille; /* of the time until now, that its service kept it busy */
};

struct gp_placement {
	const char *name;
	const char *about;
	/* Negative: a comes first; positive: b does; 0: the one with the lower number. */
	int (*compare)(const struct gp_gpu_view *a, const struct gp_gpu_view *b);
};

const struct gp_placement *gp_placement_at(size_t i);           /* NULL: there are no more */
const struct gp_placement *gp_placement_find(const char *name); /* NULL: none of that name */
/* All names as "a b c", cut to size. */
void gp_placement_names(char *list, size_t size);

/* The k first of the n GPUs that have fewer than slots jobs, best first; -ENOSPC: there are not so many. */
int gp_placement_pick(const struct gp_placement *p, const struct gp_gpu_view *gpus, uint32_t n,
		      uint32_t slots, uint32_t k, uint32_t *ret);

#endif
