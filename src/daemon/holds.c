// SPDX-License-Identifier: MIT
#include "daemon/holds.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/map.h"
#include "base/timers.h"
#include "wire/wire.h"

/* A queue or a client, as long as somebody holds it or its change was not asked for. */
struct target {
	uint64_t id;
	struct gp_list holds;
	struct gp_list changed; /* queues alone */
	struct gp_map *in;
};

struct one {
	struct gp_list of_target, of_all;
	struct target *target;
	uint64_t holder;
	struct gp_timer lease; /* set, or it ends with the connection */
};

struct gp_holds {
	struct gp_map queues, clients;
	struct gp_list all, changed;
	struct gp_timers leases;
};

int gp_holds_new(struct gp_holds **ret)
{
	struct gp_holds *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	gp_list_init(&h->all);
	gp_list_init(&h->changed);
	*ret = h;
	return 0;
}

static void drop_if_unused(struct target *t)
{
	if (!gp_list_empty(&t->holds) || !gp_list_empty(&t->changed))
		return;
	gp_map_remove(t->in, t->id);
	free(t);
}

static void note_change(struct gp_holds *h, struct target *t)
{
	if (t->in == &h->queues && gp_list_empty(&t->changed))
		gp_list_append(&h->changed, &t->changed);
}

static void end(struct gp_holds *h, struct one *one)
{
	struct target *t = one->target;

	gp_timer_cancel(&h->leases, &one->lease);
	gp_list_remove(&one->of_target);
	gp_list_remove(&one->of_all);
	free(one);
	if (gp_list_empty(&t->holds))
		note_change(h, t);
	drop_if_unused(t);
}

void gp_holds_free(struct gp_holds *h)
{
	uint64_t queue;

	if (!h)
		return;
	gp_list_each_safe(pos, &h->all)
		end(h, gp_container(pos, struct one, of_all));
	while (gp_holds_changed(h, &queue))
		;
	gp_map_free(&h->queues);
	gp_map_free(&h->clients);
	gp_timers_free(&h->leases);
	free(h);
}

static struct target *target_of(struct gp_map *map, uint64_t id)
{
	struct target *t = gp_map_get(map, id);

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->id = id;
	t->in = map;
	gp_list_init(&t->holds);
	gp_list_init(&t->changed);
	if (gp_map_put(map, id, t) < 0) {
		free(t);
		return NULL;
	}
	return t;
}

static struct one *find(const struct target *t, uint64_t holder)
{
	if (!t)
		return NULL;
	gp_list_each(pos, &t->holds) {
		struct one *one = gp_container(pos, struct one, of_target);

		if (one->holder == holder)
			return one;
	}
	return NULL;
}

static int set_lease(struct gp_holds *h, struct one *one, uint64_t until_ns)
{
	if (until_ns != GP_NO_LEASE)
		return gp_timer_set(&h->leases, &one->lease, until_ns);
	gp_timer_cancel(&h->leases, &one->lease);
	return 0;
}

static int hold(struct gp_holds *h, struct gp_map *map, uint64_t id, uint64_t holder, uint64_t until_ns)
{
	struct target *t = target_of(map, id);
	struct one *one = find(t, holder);
	bool first;

	if (!t)
		return -ENOMEM;
	if (one)
		return set_lease(h, one, until_ns);
	one = calloc(1, sizeof(*one));
	if (!one || set_lease(h, one, until_ns) < 0) {
		free(one);
		drop_if_unused(t);
		return -ENOMEM;
	}
	one->target = t;
	one->holder = holder;
	first = gp_list_empty(&t->holds);
	gp_list_append(&t->holds, &one->of_target);
	gp_list_append(&h->all, &one->of_all);
	if (first)
		note_change(h, t);
	return 0;
}

int gp_holds_add(struct gp_holds *h, const struct gp_hold *hd)
{
	int r = hold(h, &h->queues, hd->queue, hd->holder, hd->until_ns);

	if (r == 0 && hd->flags & GP_HOLD_NEW_QUEUES)
		r = hold(h, &h->clients, hd->client, hd->holder, hd->until_ns);
	if (r < 0)
		gp_holds_release(h, hd->queue, hd->client, hd->holder);
	return r;
}

static void let_go(struct gp_holds *h, struct gp_map *map, uint64_t id, uint64_t holder)
{
	struct target *t = gp_map_get(map, id);
	struct one *one = NULL;

	while (t && !gp_list_empty(&t->holds)) {
		one = holder == GP_ALL_HOLDERS ? gp_container(t->holds.next, struct one, of_target)
					       : find(t, holder);
		if (!one)
			return;
		end(h, one);
		t = gp_map_get(map, id);
	}
}

void gp_holds_release(struct gp_holds *h, uint64_t queue, uint64_t client, uint64_t holder)
{
	let_go(h, &h->queues, queue, holder);
	let_go(h, &h->clients, client, holder);
}

void gp_holds_close(struct gp_holds *h, uint64_t holder)
{
	gp_list_each_safe(pos, &h->all) {
		struct one *one = gp_container(pos, struct one, of_all);

		if (one->holder == holder && !one->lease.place)
			end(h, one);
	}
}

void gp_holds_forget(struct gp_holds *h, uint64_t queue)
{
	let_go(h, &h->queues, queue, GP_ALL_HOLDERS);
}

void gp_holds_forget_client(struct gp_holds *h, uint64_t client)
{
	let_go(h, &h->clients, client, GP_ALL_HOLDERS);
}

int gp_holds_adopt(struct gp_holds *h, uint64_t queue, uint64_t client)
{
	struct target *t = gp_map_get(&h->clients, client);
	int r = 0;

	if (!t)
		return 0;
	gp_list_each(pos, &t->holds) {
		struct one *one = gp_container(pos, struct one, of_target);
		uint64_t until = one->lease.place ? one->lease.at_ns : GP_NO_LEASE;

		r = hold(h, &h->queues, queue, one->holder, until);
		if (r < 0)
			break;
	}
	return r;
}

static int has_holds(const struct gp_map *map, uint64_t id)
{
	const struct target *t = gp_map_get(map, id);

	return t && !gp_list_empty(&t->holds);
}

int gp_holds_held(const struct gp_holds *h, uint64_t queue)
{
	return has_holds(&h->queues, queue);
}

int gp_holds_held_by(const struct gp_holds *h, uint64_t queue, uint64_t holder)
{
	return find(gp_map_get(&h->queues, queue), holder) != NULL;
}

int gp_holds_client_held(const struct gp_holds *h, uint64_t client)
{
	return has_holds(&h->clients, client);
}

void gp_holds_expire(struct gp_holds *h, uint64_t now_ns)
{
	struct gp_timer *first;

	while ((first = gp_timers_first(&h->leases)) && first->at_ns <= now_ns)
		end(h, gp_container(first, struct one, lease));
}

uint64_t gp_holds_next(const struct gp_holds *h)
{
	return gp_timers_next(&h->leases);
}

int gp_holds_changed(struct gp_holds *h, uint64_t *ret_queue)
{
	struct target *t;

	if (gp_list_empty(&h->changed))
		return 0;
	t = gp_container(h->changed.next, struct target, changed);
	*ret_queue = t->id;
	gp_list_remove(&t->changed);
	drop_if_unused(t);
	return 1;
}
