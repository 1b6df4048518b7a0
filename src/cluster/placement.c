// SPDX-License-Identifier: MIT
#include "cluster/placement.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int by_number(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int fewest_jobs(const struct gp_gpu_view *a, const struct gp_gpu_view *b)
{
	return by_number(a->jobs, b->jobs);
}

static int most_jobs(const struct gp_gpu_view *a, const struct gp_gpu_view *b)
{
	return by_number(b->jobs, a->jobs);
}

/* What the service leaves is shared by the jobs that are there, and the new one. */
static int most_idle(const struct gp_gpu_view *a, const struct gp_gpu_view *b)
{
	uint64_t of_a = (uint64_t)(1000 - a->online_permille) * (b->jobs + 1);
	uint64_t of_b = (uint64_t)(1000 - b->online_permille) * (a->jobs + 1);

	return of_a > of_b ? -1 : of_a < of_b;
}

static int lowest_class(const struct gp_gpu_view *a, const struct gp_gpu_view *b)
{
	int r = by_number(a->service_class, b->service_class);

	return r ? r : fewest_jobs(a, b);
}

static const struct gp_placement placements[] = {
	{ "pack", "fill one GPU after the other", most_jobs },
	{ "spread", "the GPU with the fewest jobs", fewest_jobs },
	{ "most-idle", "where the service leaves the most time for each job", most_idle },
	{ "by-class", "no service first, then services of low class; among equals the fewest jobs",
	  lowest_class },
};

#define NPLACEMENTS (sizeof(placements) / sizeof(placements[0]))

const struct gp_placement *gp_placement_at(size_t i)
{
	return i < NPLACEMENTS ? &placements[i] : NULL;
}

const struct gp_placement *gp_placement_find(const char *name)
{
	for (size_t i = 0; i < NPLACEMENTS; i++)
		if (!strcmp(placements[i].name, name))
			return &placements[i];
	return NULL;
}

void gp_placement_names(char *list, size_t size)
{
	size_t used = 0;

	list[0] = '\0';
	for (size_t i = 0; i < NPLACEMENTS && used < size; i++)
		used += (size_t)snprintf(list + used, size - used, "%s%s", i ? " " : "", placements[i].name);
}

/* Puts GPU i in its place among the best, of which there are kept so far; the last of k falls out. */
static uint32_t keep(const struct gp_placement *p, const struct gp_gpu_view *gpus, uint32_t i, uint32_t kept,
		     uint32_t k, uint32_t *best)
{
	uint32_t at = kept;

	while (at && p->compare(&gpus[i], &gpus[best[at - 1]]) < 0)
		at--;
	if (at == k)
		return kept;
	if (kept < k)
		kept++;
	memmove(best + at + 1, best + at, (kept - 1 - at) * sizeof(*best));
	best[at] = i;
	return kept;
}

int gp_placement_pick(const struct gp_placement *p, const struct gp_gpu_view *gpus, uint32_t n,
		      uint32_t slots, uint32_t k, uint32_t *ret)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (gpus[i].jobs < slots)
			kept = keep(p, gpus, i, kept, k, ret);
	return kept == k ? 0 : -ENOSPC;
}
