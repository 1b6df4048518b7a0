// SPDX-License-Identifier: MIT
#include "level/depth.h"

#define SMOOTH 8 /* a new length counts for one part in so many */

/* Launches come at a note alone: whoever had work at two of them had it all the time between. */
void gp_depth_note(struct gp_depth *d, uint64_t begun, uint64_t ended, uint64_t now_ns)
{
	uint64_t length;

	if (ended >= begun) {
		d->at_ns = 0;
		return;
	}
	if (d->at_ns && ended == d->ended)
		return;
	if (d->at_ns) {
		length = (now_ns - d->at_ns) / (ended - d->ended);
		d->length_ns = d->length_ns ? (d->length_ns * (SMOOTH - 1) + length) / SMOOTH : length;
	}
	d->at_ns = now_ns;
	d->ended = ended;
}

uint32_t gp_depth_bound(const struct gp_depth *d, uint64_t wait_ns)
{
	uint64_t bound = d->length_ns ? wait_ns / d->length_ns : GP_DEPTH_FIRST;

	if (bound < GP_DEPTH_LEAST)
		return GP_DEPTH_LEAST;
	return bound < GP_DEPTH_MOST ? (uint32_t)bound : GP_DEPTH_MOST;
}
