// SPDX-License-Identifier: MIT
#include "daemon/decisions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/share.h"
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
	int ret = gp_share_limit(slots, online_percent, offline_percent, &r->limit);

	if (ret < 0)
		return ret;
	r->online_percent = online_percent;
	r->offline_percent = offline_percent;
	return 0;
}

int gp_reserve_is_set(const struct gp_reserve *r)
{
	return r->online_percent || r->offline_percent;
}

struct user_share {
	size_t wanted, places;
};

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* By user; of one user, what cannot be stopped first. */
static int by_user(const struct gp_candidate *x, const struct gp_candidate *y)
{
	return x->user != y->user ? compare(x->user, y->user) : compare(x->stoppable, y->stoppable);
}

/* Who waited longest first. */
static int by_wait(const struct gp_candidate *x, const struct gp_candidate *y)
{
	return x->ran != y->ran ? compare(x->ran, y->ran) : compare(x->queue, y->queue);
}

/* Who runs goes before who does not. */
static int by_place(const void *a, const void *b)
{
	const struct gp_candidate *x = a, *y = b;
	int r = by_user(x, y);

	r = r ? r : compare(x->parked, y->parked);
	return r ? r : by_wait(x, y);
}

/* Behind: who runs has had a turn. */
static int by_turn(const void *a, const void *b)
{
	const struct gp_candidate *x = a, *y = b;
	int r = by_user(x, y);

	r = r ? r : compare(y->parked, x->parked);
	return r ? r : by_wait(x, y);
}

/* Each goes to the end of the line, the first of them first, as they are sorted. */
static void line_up(struct gp_reserve *r, struct gp_candidate *seats, size_t n)
{
	r->turn++;
	for (size_t i = 0; i < n; i++)
		if (!seats[i].parked)
			seats[i].ran = ++r->last_ran;
}

/* What each user wants, of seats by user. How many users there are. */
static size_t count_wanted(const struct gp_candidate *seats, size_t n, struct user_share *shares)
{
	size_t users = 0;

	for (size_t i = 0; i < n; i++) {
		users += !i || seats[i].user != seats[i - 1].user;
		shares[users - 1].wanted++;
	}
	return users;
}

/* One place each, as long as somebody wants one; with each turn another begins. */
static void deal(size_t places, uint64_t turn, struct user_share *shares, size_t users)
{
	size_t dealt;

	do {
		dealt = 0;
		for (size_t k = 0; k < users && places; k++) {
			struct user_share *share = &shares[(turn + k) % users];
			size_t one = share->places < share->wanted;

			share->places += one;
			places -= one;
			dealt += one;
		}
	} while (places && dealt);
}

static void seat_them(struct gp_candidate *seats, size_t n, const struct user_share *shares)
{
	size_t user = 0, taken = 0;

	for (size_t i = 0; i < n; i++) {
		if (i && seats[i].user != seats[i - 1].user) {
			user++;
			taken = 0;
		}
		seats[i].parked = seats[i].stoppable && taken >= shares[user].places;
		taken++;
	}
}

int gp_reserve_choose(struct gp_reserve *r, struct gp_candidate *seats, size_t n, int is_turn)
{
	size_t places = gp_reserve_is_set(r) ? r->limit : n, users;
	struct user_share *shares = calloc(n + 1, sizeof(*shares));

	if (!shares)
		return -ENOMEM;
	if (n)
		qsort(seats, n, sizeof(*seats), is_turn ? by_turn : by_place);
	if (is_turn)
		line_up(r, seats, n);
	users = count_wanted(seats, n, shares);
	deal(places, r->turn, shares, users);
	seat_them(seats, n, shares);
	free(shares);
	return 0;
}
