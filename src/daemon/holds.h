/* SPDX-License-Identifier: MIT */
/*
 * Who holds which queue, and until when.  A queue is to stand still while it has a hold.
 * State alone: no I/O, and the time is an argument.
 *
 * A hold without a lease ends with its holder's connection.  One with a lease ends with
 * the lease, whether the connection lasts or not.  Several may hold one queue: it goes on
 * when the last lets go.
 */
#ifndef GP_DAEMON_HOLDS_H
#define GP_DAEMON_HOLDS_H

#include <stdint.h>

#define GP_NO_LEASE UINT64_MAX
#define GP_ALL_HOLDERS 0ull

struct gp_holds;

struct gp_hold {
	uint64_t holder; /* never GP_ALL_HOLDERS, and never used for two connections */
	uint64_t queue;
	uint64_t client;   /* it belongs to */
	uint64_t until_ns; /* or GP_NO_LEASE */
	uint32_t flags; /* GP_HOLD_*: of NEW_QUEUES the client is held too, until a queue of it is released */
};

int gp_holds_new(struct gp_holds **ret); /* -ENOMEM */
void gp_holds_free(struct gp_holds *h);

/* Held by that holder already: it is now until_ns. -ENOMEM: nothing is held. */
int gp_holds_add(struct gp_holds *h, const struct gp_hold *hold);
/* Lets go of a queue, and of what its client creates; of all holders, or of one's own hold. */
void gp_holds_release(struct gp_holds *h, uint64_t queue, uint64_t client, uint64_t holder);
/* A connection ended. */
void gp_holds_close(struct gp_holds *h, uint64_t holder);
/* A queue is gone, or could not be stopped. */
void gp_holds_forget(struct gp_holds *h, uint64_t queue);
void gp_holds_forget_client(struct gp_holds *h, uint64_t client);
/* The queue is new: whoever holds its client's new queues holds it from now on. */
int gp_holds_adopt(struct gp_holds *h, uint64_t queue, uint64_t client);

int gp_holds_held(const struct gp_holds *h, uint64_t queue);
int gp_holds_held_by(const struct gp_holds *h, uint64_t queue, uint64_t holder);
int gp_holds_client_held(const struct gp_holds *h, uint64_t client); /* its new queues are */

/* Ends the leases that are over. */
void gp_holds_expire(struct gp_holds *h, uint64_t now_ns);
uint64_t gp_holds_next(const struct gp_holds *h); /* when one is over; UINT64_MAX: none is running */
/* One of the queues that have become held or free since they were asked for here. 0: there are no more. */
int gp_holds_changed(struct gp_holds *h, uint64_t *ret_queue);

#endif
