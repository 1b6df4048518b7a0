// SPDX-License-Identifier: MIT
#include "daemon/decisions.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "wire/wire.h"

#define KNOWN_WAYS "known are: update, dbg, private; dbg? is dbg when a request names it"

static int add_way(struct gp_ways *ways, const char *word, size_t len, char *error, size_t size)
{
	char name[16];
	uint32_t way, named = len && word[len - 1] == '?';

	snprintf(name, sizeof(name), "%.*s", (int)(len - named), word);
	if (len >= sizeof(name) || gp_way_by_name(name, &way) < 0 || way == GP_KFD_WAY_AUTO) {
		snprintf(error, size, "\"%.*s\" is no way; %s", (int)len, word, KNOWN_WAYS);
		return -EINVAL;
	}
	if (gp_ways_permit(ways, way)) {
		snprintf(error, size, "%s is named twice", name);
		return -EINVAL;
	}
	ways->way[ways->n].way = way;
	ways->way[ways->n++].named = named;
	return 0;
}

int gp_ways_parse(const char *text, struct gp_ways *ret, char *error, size_t size)
{
	struct gp_ways ways = { 0 };
	int r;

	while (1) {
		size_t len = strcspn(text, ",");

		r = add_way(&ways, text, len, error, size);
		if (r < 0)
			return r;
		if (!text[len])
			break;
		text += len + 1;
	}
	*ret = ways;
	return 0;
}

int gp_ways_permit(const struct gp_ways *ways, uint32_t way)
{
	for (uint32_t i = 0; i < ways->n; i++)
		if (ways->way[i].way == way)
			return 1;
	return 0;
}

uint32_t gp_ways_next(const struct gp_ways *ways, uint32_t has, uint32_t asked, uint32_t tried)
{
	uint32_t can = has & ~tried;

	if (asked & can && gp_ways_permit(ways, asked))
		return asked;
	for (uint32_t i = 0; i < ways->n; i++)
		if (ways->way[i].way & can && !ways->way[i].named)
			return ways->way[i].way;
	return 0;
}

int gp_ways_may_fall_back(int status)
{
	return status < 0 && status != -ENOENT && status != -ESRCH;
}

int gp_reserve_set(struct gp_reserve *r, uint32_t slots, uint32_t online_percent, uint32_t offline_percent)
{
	if ((uint64_t)online_percent + offline_percent > 100)
		return -EINVAL;
	if (!slots)
		return -EOPNOTSUPP;
	r->online_percent = online_percent;
	r->offline_percent = offline_percent;
	r->limit = (uint32_t)((uint64_t)slots * offline_percent / 100);
	return 0;
}

int gp_reserve_is_set(const struct gp_reserve *r)
{
	return r->online_percent || r->offline_percent;
}

/* How many of those that can be stopped may run. */
static size_t free_seats(const struct gp_reserve *r, const struct gp_seat *seats, size_t n)
{
	size_t left = r->limit;

	for (size_t i = 0; i < n && left; i++)
		left -= !seats[i].stoppable;
	return left;
}

/* The first whose turn comes after the last one's; n: the list begins again. */
static size_t after(const struct gp_seat *seats, size_t n, uint64_t last)
{
	size_t i;

	for (i = 0; i < n && seats[i].queue <= last; i++)
		;
	return i;
}

void gp_reserve_choose(const struct gp_reserve *r, struct gp_seat *seats, size_t n)
{
	bool limited = gp_reserve_is_set(r);
	size_t left = free_seats(r, seats, n), first = after(seats, n, r->last);

	for (size_t k = 0; k < n; k++) {
		struct gp_seat *seat = &seats[(first + k) % n];

		seat->parked = limited && seat->stoppable && !left;
		left -= seat->stoppable && left;
	}
}

void gp_reserve_turn(struct gp_reserve *r, const struct gp_seat *seats, size_t n)
{
	size_t first = after(seats, n, r->last);
	uint64_t last = r->last;
	bool waiting = false;

	for (size_t k = 0; k < n; k++) {
		const struct gp_seat *seat = &seats[(first + k) % n];

		waiting |= seat->parked;
		if (seat->stoppable && !seat->parked)
			last = seat->queue;
	}
	if (waiting)
		r->last = last;
}
