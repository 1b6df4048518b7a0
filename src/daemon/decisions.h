/* SPDX-License-Identifier: MIT */
/* What gpreemptd decides: in which way, and whose turn it is. Pure: no I/O, no clock. */
#ifndef GP_DAEMON_DECISIONS_H
#define GP_DAEMON_DECISIONS_H

#include <gpreempt/backend.h>

#define GP_MOST_WAYS 5

/* The ways that may be gone, the first first. */
struct gp_ways {
	uint32_t n;
	struct {
		uint32_t way;   /* one of GP_KFD_WAY_* or GP_NVRM_WAY_* */
		uint32_t named; /* 1: only if a request names it */
	} way[GP_MOST_WAYS];
};

/* As on the command line, "dbg,update": each once, "dbg?" only when named. -EINVAL, with what is wrong. */
int gp_ways_parse(const char *text, struct gp_ways *ret, char *error, size_t size);
int gp_ways_permit(const struct gp_ways *ways, uint32_t way);
uint32_t gp_ways_all(const struct gp_ways *ways); /* their bits */
/*
 * The way to go now: the one asked for first (AUTO: none is), then in order, none twice.
 * has: what the client has; tried: what has failed.  0: there is none.
 */
uint32_t gp_ways_next(const struct gp_ways *ways, uint32_t has, uint32_t asked, uint32_t tried);
/* Whether what failed so in one way may go in another; not if queue or process are gone. */
int gp_ways_may_fall_back(int status);

/*
 * A reservation: how many offline compute queues of a device may be active at a time.  Each
 * user has a share of the places, as large as the others' unless that one needs less; within
 * it queues take turns.  What cannot be stopped takes places of its own user's share, and of
 * nobody else's: who has more such queues than places has them all, and no others.
 */
struct gp_reserve {
	uint32_t online_percent, offline_percent; /* both 0: there is no reservation */
	uint32_t limit;                           /* queues */
	uint64_t turn;
};

/* An offline compute queue that has no other reason to stand still. */
struct gp_candidate {
	uint64_t queue, user;
	uint64_t place; /* gp_reserve_choose()'s own */
	uint32_t stoppable;
	uint32_t parked; /* in: as it is; out: as it is to be */
};

/* -EINVAL: over 100 percent; -EOPNOTSUPP: nobody knows how many slots the device has. */
int gp_reserve_set(struct gp_reserve *r, uint32_t slots, uint32_t online_percent, uint32_t offline_percent);
int gp_reserve_is_set(const struct gp_reserve *r);
/*
 * Who is parked now, of seats that stand in line: who waited longest first.  They are left in
 * the line that the next call expects, by user; one who comes stands behind them.  On a turn
 * those who ran have had theirs, and those run who waited longest; else who runs goes on running
 * if there is a place.  -ENOMEM: nothing is decided.
 */
int gp_reserve_choose(struct gp_reserve *r, struct gp_candidate *seats, size_t n, int is_turn);

#endif
