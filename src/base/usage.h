/* SPDX-License-Identifier: MIT */
/* How much of the last ten seconds something was on. The time is an argument. */
#ifndef GP_BASE_USAGE_H
#define GP_BASE_USAGE_H

#include <stdint.h>

#define GP_USAGE_SECONDS 10

struct gp_usage {
	uint64_t on_ns[GP_USAGE_SECONDS]; /* in each of the last seconds, by their number */
	uint64_t second;                  /* the last that is counted in */
	uint64_t until_ns;                /* what is counted */
	uint32_t is_on;
	uint32_t reserved;
};

void gp_usage_set(struct gp_usage *u, int is_on, uint64_t now_ns);
uint32_t gp_usage_permille(struct gp_usage *u, uint64_t now_ns);

#endif
