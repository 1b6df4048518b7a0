/* SPDX-License-Identifier: MIT */
/*
 * How full a ring may be at most, for one who puts packets into it and cannot read its pointers.  Now and
 * then a packet is a mark: when it has ended, it and all before it are out.
 */
#ifndef GP_LEVEL_RING_H
#define GP_LEVEL_RING_H

#include <stdint.h>

#define GP_RING_MARKS 8u /* twice as many as a ring has room for */

struct gp_ring {
	uint32_t size;     /* packets; 0: nobody counts them */
	uint64_t put, out; /* packets so far; so many at least */
	uint64_t marks, ended;
	uint64_t at[GP_RING_MARKS]; /* how many packets were put with each of the last marks */
};

/* Packets that still fit, though its read pointer may be seen late; and if that has stood for long. */
uint64_t gp_ring_room(const struct gp_ring *r);
uint64_t gp_ring_room_at_rest(const struct gp_ring *r);

/* A quarter has no mark: the next packets shall have one. */
int gp_ring_is_due(const struct gp_ring *r);
void gp_ring_put(struct gp_ring *r, uint64_t n, int has_mark);
/* So many marks have ended. */
void gp_ring_ended(struct gp_ring *r, uint64_t marks);

#endif
