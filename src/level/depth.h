/* SPDX-License-Identifier: MIT */
/* How many launches may be in flight so that what comes next waits no longer than a set time. */
#ifndef GP_LEVEL_DEPTH_H
#define GP_LEVEL_DEPTH_H

#include <stdint.h>

#define GP_DEPTH_FIRST 8u /* until a launch was measured */
#define GP_DEPTH_LEAST 2u /* with one the device would stand still between two launches */
#define GP_DEPTH_MOST 64u

struct gp_depth {
	uint64_t at_ns, ended; /* since when that many have ended, with work; at_ns 0: there is none */
	uint64_t length_ns;    /* of a launch, smoothed; 0: unknown */
};

/* Before a launch, or when one has ended: so many had begun until then, and so many ended. */
void gp_depth_note(struct gp_depth *d, uint64_t begun, uint64_t ended, uint64_t now_ns);
uint32_t gp_depth_bound(const struct gp_depth *d, uint64_t wait_ns);

#endif
