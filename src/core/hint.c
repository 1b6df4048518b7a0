// SPDX-License-Identifier: MIT
/* Requests that are on their way, as clients say before any work reaches a queue. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "core/internal.h"

static int is_for(const struct hint *h, const struct device *d)
{
	return h->device == GP_ALL_DEVICES || h->device == d->id;
}

uint64_t gp_hint_oldest(const struct client *c, const struct device *d)
{
	for (uint32_t i = 0; i < c->nhints; i++)
		if (is_for(&c->hints[i], d))
			return c->hints[i].begin_ns;
	return GP_NEVER;
}

int gp_hint_open_for(const struct client *c, const struct device *d)
{
	return gp_hint_oldest(c, d) != GP_NEVER;
}

uint32_t gp_hint_count(const struct client *c, const struct device *d)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->nhints; i++)
		n += (uint32_t)is_for(&c->hints[i], d);
	return n;
}

/* Few are open at a time, and each may expire at a time of its own. */
static uint64_t next_expiry(const struct client *c)
{
	uint64_t next = GP_NEVER;

	for (uint32_t i = 0; i < c->nhints; i++)
		next = c->hints[i].end_ns < next ? c->hints[i].end_ns : next;
	return next;
}

static void update(struct gp_core *core, struct client *c, uint64_t now)
{
	gp_core_arm(core, &c->hint_timer, next_expiry(c));
	gp_list_each(pos, &c->seats)
		gp_seat_update(gp_container(pos, struct seat, in_client), now);
	gp_client_deadline(c, now);
}

/* One ends: in order, if no older one of the same seat is open. */
static void learn(struct client *c, uint32_t i, uint64_t now)
{
	gp_list_each(pos, &c->seats) {
		struct seat *s = gp_container(pos, struct seat, in_client);

		if (s->open_hints && is_for(&c->hints[i], s->device))
			gp_learn_end(s, gp_hint_oldest(c, s->device) == c->hints[i].begin_ns, now);
	}
}

static uint32_t count_on(const struct client *c, const struct hint *h, int has_ended, int with_queues,
			 uint64_t now)
{
	uint32_t n = 0;

	gp_list_each(pos, &c->seats) {
		struct seat *s = gp_container(pos, struct seat, in_client);

		if (s->view.client_class != GP_CLASS_ONLINE || !is_for(h, s->device) ||
		    (s->nqueues != 0) != with_queues)
			continue;
		gp_stats_request(s->device, now - h->begin_ns, c->slo_ns, has_ended);
		n++;
	}
	return n;
}

/* It has ended or expired: on the devices where its client has queues, else where the hint kept it a place.
 */
static void count(const struct client *c, const struct hint *h, int has_ended, uint64_t now)
{
	if (!count_on(c, h, has_ended, 1, now))
		(void)count_on(c, h, has_ended, 0, now);
}

/* What nobody ended says nothing of what the next one takes. */
static void spoil(struct client *c)
{
	gp_list_each(pos, &c->seats)
		gp_container(pos, struct seat, in_client)->requests.is_spoilt = 1;
}

static void close_hint(struct client *c, uint32_t i)
{
	c->nhints--;
	memmove(&c->hints[i], &c->hints[i + 1], (c->nhints - i) * sizeof(c->hints[0]));
}

/* nhints: there is none. */
static uint32_t find(const struct client *c, uint64_t giver, uint64_t number)
{
	uint32_t i = 0;

	while (i < c->nhints && (c->hints[i].number != number || c->hints[i].giver != giver))
		i++;
	return i;
}

int gp_hint_may(const struct client *c)
{
	if (c->client_class == GP_CLASS_ONLINE)
		return 1;
	gp_list_each(pos, &c->seats) {
		const struct seat *s = gp_container(pos, struct seat, in_client);

		if (s->nqueues && s->view.client_class == GP_CLASS_ONLINE)
			return 1;
	}
	return 0;
}

static int make_room(struct client *c)
{
	uint32_t capacity = c->hints_capacity ? 2 * c->hints_capacity : 4;
	struct hint *hints;

	if (c->nhints < c->hints_capacity)
		return 0;
	if (c->nhints == MAX_OPEN_HINTS)
		return -EBUSY;
	hints = realloc(c->hints, capacity * sizeof(*hints));
	if (!hints)
		return -ENOMEM;
	c->hints = hints;
	c->hints_capacity = capacity;
	return 0;
}

/*
 * The device on which a hint's work will be: the one that it names, or the only one.  Those that stand apart
 * anybody may bring: they count only where there is no other.  NULL: who knows.
 */
static struct device *expected_on(struct gp_core *core, uint32_t id)
{
	struct device *only[2] = { NULL };
	uint32_t n[2] = { 0 };

	if (id != GP_ALL_DEVICES)
		return gp_core_find_device(core, id);
	gp_list_each(pos, &core->devices) {
		struct device *d = gp_container(pos, struct device, node);
		int apart = !!(d->caps & GP_CORE_APART);

		if (d->id == GP_ALL_DEVICES) /* the host's, for queues whose device nobody knows */
			continue;
		only[apart] = n[apart]++ ? NULL : d;
	}
	return n[0] ? only[0] : only[1];
}

/* Before its first queue there a client has a seat for as long as its hints last. Without memory for that the
 * hint counts once there is a queue. */
static void take_seat(struct gp_core *core, struct client *c, uint32_t device)
{
	struct device *d = expected_on(core, device);

	if (d && c->client_class == GP_CLASS_ONLINE && !gp_seat_get(c, d, GP_CLASS_ONLINE))
		(void)gp_seat_new(c, d, GP_CLASS_ONLINE);
}

int gp_core_hint_begin(struct gp_core *core, const struct gp_core_hint *hint, uint64_t now)
{
	struct client *c = gp_map_get(&core->clients, hint->client);
	uint64_t expiry = hint->expiry_ns ? hint->expiry_ns : core->opts.hint_expiry_ns;
	uint32_t i;
	int r;

	if (!c)
		return -ENOENT;
	if (!gp_hint_may(c))
		return -EPERM;
	i = hint->number ? find(c, hint->giver, hint->number) : c->nhints;
	if (i == c->nhints) {
		r = make_room(c);
		if (r < 0)
			return r;
		c->hints[c->nhints++] =
			(struct hint){ .giver = hint->giver, .number = hint->number, .begin_ns = now };
	}
	c->hints[i].device = hint->device;
	c->hints[i].end_ns = gp_time_add(now, expiry);
	take_seat(core, c, hint->device);
	update(core, c, now);
	return 0;
}

int gp_core_hint_end(struct gp_core *core, const struct gp_core_hint *hint, uint64_t now)
{
	struct client *c = gp_map_get(&core->clients, hint->client);
	uint64_t took;
	uint32_t i;

	if (!c)
		return -ENOENT;
	i = find(c, hint->giver, hint->number);
	if (i == c->nhints)
		return -EALREADY;
	took = now - c->hints[i].begin_ns;
	c->service_ns = c->service_ns ? (7 * c->service_ns + took) / 8 : took;
	learn(c, i, now);
	count(c, &c->hints[i], 1, now);
	close_hint(c, i);
	update(core, c, now);
	if (core->opts.note)
		core->opts.note(core->opts.note_arg, &(struct gp_core_note){ .kind = GP_NOTE_REQUEST,
									     .device = hint->device,
									     .client = c->id,
									     .latency_ns = took });
	return 0;
}

void gp_core_hints_gone(struct gp_core *core, uint64_t client, uint64_t giver, uint64_t now)
{
	struct client *c = gp_map_get(&core->clients, client);

	if (!c)
		return;
	for (uint32_t i = c->nhints; i-- > 0;)
		if (c->hints[i].giver == giver)
			close_hint(c, i);
	spoil(c);
	update(core, c, now);
}

void gp_hint_expired(struct gp_core *core, struct client *c, uint64_t now)
{
	for (uint32_t i = c->nhints; i-- > 0;) {
		if (c->hints[i].end_ns > now)
			continue;
		count(c, &c->hints[i], 0, now);
		close_hint(c, i);
	}
	spoil(c);
	update(core, c, now);
}

/* The seats are not looked at: they go, or are looked at anyway. */
void gp_hint_drop_all(struct gp_core *core, struct client *c)
{
	c->nhints = 0;
	gp_core_arm(core, &c->hint_timer, GP_NEVER);
}
