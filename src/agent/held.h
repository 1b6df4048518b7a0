/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of ours among somebody else's.  A program may close all it finds, and open
 * its own under the same numbers: each is known by its file, and no number is used before
 * a look at what is behind it.
 */
#ifndef GP_AGENT_HELD_H
#define GP_AGENT_HELD_H

#include <stdint.h>

struct gp_held {
	int fd; /* -1: none */
	uint32_t reserved;
	uint64_t device, inode;
};

#define GP_HELD_NONE ((struct gp_held){ .fd = -1 })

/* Moves fd out of the way of programs that count, to a high number if one is free. None if fd is. */
struct gp_held gp_held_take(int fd);
int gp_held_is_ours(const struct gp_held *held);
void gp_held_drop(struct gp_held *held); /* closes it if it is ours */

#endif
