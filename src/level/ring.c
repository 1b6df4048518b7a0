// SPDX-License-Identifier: MIT
#include "level/ring.h"

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* One place stays free: with it ROCr wakes itself when others are. */
uint64_t gp_ring_room_at_rest(const struct gp_ring *r)
{
	return less(r->size - 1, r->put - r->out);
}

uint64_t gp_ring_room(const struct gp_ring *r)
{
	return less(gp_ring_room_at_rest(r), r->size / 8);
}

int gp_ring_is_due(const struct gp_ring *r)
{
	uint64_t last = r->marks ? r->at[(r->marks - 1) % GP_RING_MARKS] : 0;

	return r->put - last >= r->size / 4 && r->marks - r->ended < GP_RING_MARKS;
}

void gp_ring_put(struct gp_ring *r, uint64_t n, int has_mark)
{
	r->put += n;
	if (has_mark)
		r->at[r->marks++ % GP_RING_MARKS] = r->put;
}

void gp_ring_ended(struct gp_ring *r, uint64_t marks)
{
	if (marks <= r->ended || marks > r->marks)
		return;
	r->ended = marks;
	r->out = r->at[(marks - 1) % GP_RING_MARKS];
}
