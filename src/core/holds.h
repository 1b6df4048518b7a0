/* SPDX-License-Identifier: MIT */
/*
 * Who holds which queue, and until when.  A queue is to stand still while it has a hold.
 * State alone: no I/O, and the time is an argument.  Nothing here takes longer because
 * somebody holds much, but for what ends with the one it was held by.
 *
 * A hold without a lease ends with its holder's connection.  One with a lease ends with
 * the lease; if its holder goes first, it becomes the owner's, who has one such for each
 * queue, until the last of their leases.  Several may hold one queue: it goes on when the
 * last lets go.
 */
#ifndef GP_CORE_HOLDS_H
#define GP_CORE_HOLDS_H

#include <stddef.h>
#include <stdint.h>

#define GP_NO_LEASE UINT64_MAX
#define GP_HOLDER_HOST UINT64_MAX /* who has the holds, for reasons of its own: a reservation */

struct gp_holds;

struct gp_hold {
	uint64_t holder; /* a connection: never 0, never used for two of them, and no owner's number */
	uint64_t owner;  /* its user, never 0 */
	uint64_t queue;
	uint64_t client;     /* it belongs to; no queue's number */
	uint64_t until_ns;   /* or GP_NO_LEASE */
	uint32_t new_queues; /* 1: what the client creates is held too, until a queue of it is released */
	uint32_t most;       /* holds of this owner */
	uint32_t gentle;     /* 1: the queue may run on for long before it stands still (the core's) */
	uint32_t reserved;
};

/* Of whom: 0 is anybody. */
struct gp_whose {
	uint64_t holder, owner;
};

#define GP_EVERYBODYS ((struct gp_whose){ 0, 0 }) /* but not the host's own */

int gp_holds_new(struct gp_holds **ret); /* -ENOMEM */
void gp_holds_free(struct gp_holds *h);

/* Held by that holder already: it is now until_ns. -ENOMEM, -ENOSPC: nothing is held. */
int gp_holds_add(struct gp_holds *h, const struct gp_hold *hold);
/* Lets go of a queue, and of what its client creates. */
void gp_holds_release(struct gp_holds *h, uint64_t queue, uint64_t client, struct gp_whose whose);
/* A connection ended. */
void gp_holds_close(struct gp_holds *h, uint64_t holder);
/* A queue is gone, or could not be stopped. */
void gp_holds_forget(struct gp_holds *h, uint64_t queue);
void gp_holds_forget_client(struct gp_holds *h, uint64_t client);
/* The queue is new: whoever holds its client's new queues holds it from now on. */
int gp_holds_adopt(struct gp_holds *h, uint64_t queue, uint64_t client);

/* A queue; or what a client creates. */
int gp_holds_held(const struct gp_holds *h, uint64_t queue);
int gp_holds_held_but(const struct gp_holds *h, uint64_t queue, uint64_t holder); /* by another than that */
int gp_holds_held_by(const struct gp_holds *h, uint64_t queue, uint64_t holder);
/* Whose the oldest of its holds is but for the host's; both 0: nobody's. */
struct gp_whose gp_holds_whose(const struct gp_holds *h, uint64_t queue);
size_t gp_holds_of(const struct gp_holds *h, uint64_t owner); /* how many */

/* Ends the leases that are over. */
void gp_holds_expire(struct gp_holds *h, uint64_t now_ns);
uint64_t gp_holds_next(const struct gp_holds *h); /* when one is over; UINT64_MAX: none is running */
/* One of the queues that have become held or free since they were asked for here. 0: there are no more. */
int gp_holds_changed(struct gp_holds *h, uint64_t *ret_queue);

#endif
