// SPDX-License-Identifier: MIT
#include "daemon/decisions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/share.h"
#include "wire/wire.h"

#define KNOWN_WAYS "known are: session, update, park, dbg, private; dbg? is dbg when a request names it"

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

uint32_t gp_ways_all(const struct gp_ways *ways)
{
	uint32_t all = 0;

	for (uint32_t i = 0; i < ways->n; i++)
		all |= ways->way[i].way;
	return all;
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

/* A user's part of the line. */
struct user_share {
	struct gp_candidate *line;
	size_t wanted, places;
};

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_user(const void *a, const void *b)
{
	const struct gp_candidate *x = a, *y = b;

	return x->user != y->user ? compare(x->user, y->user) : compare(x->place, y->place);
}

/* Nothing is to be done where nobody has come since the last time. */
static void group_by_user(struct gp_candidate *seats, size_t n)
{
	size_t i = 1;

	while (i < n && seats[i - 1].user <= seats[i].user)
		i++;
	if (i >= n)
		return;
	for (i = 0; i < n; i++)
		seats[i].place = i;
	qsort(seats, n, sizeof(*seats), by_user);
}

/* How many users there are. */
static size_t find_users(struct gp_candidate *seats, size_t n, struct user_share *shares)
{
	size_t users = 0;

	for (size_t i = 0; i < n; i++) {
		if (!i || seats[i].user != seats[i - 1].user)
			shares[users++].line = &seats[i];
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

/* Who runs has had a turn, and goes to the end. */
static void line_up(const struct user_share *share, struct gp_candidate *scratch)
{
	size_t waited = 0, ran = 0;

	for (size_t i = 0; i < share->wanted; i++)
		if (share->line[i].parked)
			share->line[waited++] = share->line[i];
		else
			scratch[ran++] = share->line[i];
	memcpy(&share->line[waited], scratch, ran * sizeof(*scratch));
}

/* Those who are parked go before those who run, or after them. */
static void seat_them(const struct user_share *share, uint32_t parked_first)
{
	size_t stoppable[2] = { 0 }, may[2], room = share->places, unstoppable;

	for (size_t i = 0; i < share->wanted; i++)
		stoppable[!!share->line[i].parked] += !!share->line[i].stoppable;
	unstoppable = share->wanted - stoppable[0] - stoppable[1];
	room -= unstoppable < room ? unstoppable : room;
	may[parked_first] = stoppable[parked_first] < room ? stoppable[parked_first] : room;
	may[!parked_first] = room - may[parked_first];
	for (size_t i = 0; i < share->wanted; i++) {
		struct gp_candidate *c = &share->line[i];
		size_t *left = &may[!!c->parked];

		c->parked = c->stoppable && !*left;
		*left -= c->stoppable && *left;
	}
}

int gp_reserve_choose(struct gp_reserve *r, struct gp_candidate *seats, size_t n, int is_turn)
{
	size_t places = gp_reserve_is_set(r) ? r->limit : n, users;
	struct user_share *shares = calloc(n + 1, sizeof(*shares));
	struct gp_candidate *scratch = calloc(n + 1, sizeof(*scratch));

	if (!shares || !scratch) {
		free(shares);
		free(scratch);
		return -ENOMEM;
	}
	r->turn += !!is_turn;
	group_by_user(seats, n);
	users = find_users(seats, n, shares);
	deal(places, r->turn, shares, users);
	for (size_t i = 0; i < users; i++) {
		if (is_turn)
			line_up(&shares[i], scratch);
		seat_them(&shares[i], !!is_turn);
	}
	free(shares);
	free(scratch);
	return 0;
}
