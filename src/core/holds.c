// SPDX-License-Identifier: MIT
#include "core/holds.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/map.h"
#include "base/timers.h"

/* A queue or a client, as long as somebody holds it or its change was not asked for. */
struct target {
	uint64_t id;
	bool is_client;
	struct gp_list holds;
	struct gp_list changed; /* queues alone */
};

/* A user, as long as one of the user's connections holds something. */
struct owner {
	uint64_t id;
	size_t n;
};

/* A connection, or an owner for those that ended: as long as it holds something. */
struct holder {
	uint64_t id;
	struct owner *owner;
	struct gp_map by_target;
	struct gp_list holds;
};

struct one {
	struct gp_list of_target, of_holder, of_all;
	struct target *target;
	struct holder *holder;
	struct gp_timer lease; /* set, or it ends with the connection */
	uint32_t most;         /* as it was asked for with */
};

struct gp_holds {
	struct gp_map targets, owners, holders;
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

/* Those that are there for a hold's sake */

static void drop_target(struct gp_holds *h, struct target *t)
{
	if (!t || !gp_list_empty(&t->holds) || !gp_list_empty(&t->changed))
		return;
	gp_map_remove(&h->targets, t->id);
	free(t);
}

static void drop_owner(struct gp_holds *h, struct owner *o)
{
	if (!o || o->n)
		return;
	gp_map_remove(&h->owners, o->id);
	free(o);
}

static void drop_holder(struct gp_holds *h, struct holder *holder)
{
	if (!holder || !gp_list_empty(&holder->holds))
		return;
	gp_map_remove(&h->holders, holder->id);
	gp_map_free(&holder->by_target);
	drop_owner(h, holder->owner);
	free(holder);
}

/* What the map has, or a new one of that size, all zero; NULL: no memory. */
static void *get(struct gp_map *map, uint64_t id, size_t size)
{
	void *entry = gp_map_get(map, id);

	if (entry)
		return entry;
	entry = calloc(1, size);
	if (entry && gp_map_put(map, id, entry) < 0) {
		free(entry);
		return NULL;
	}
	return entry;
}

static struct target *get_target(struct gp_holds *h, uint64_t id, bool is_client)
{
	struct target *t = get(&h->targets, id, sizeof(*t));

	if (t && !t->holds.next) {
		t->id = id;
		t->is_client = is_client;
		gp_list_init(&t->holds);
		gp_list_init(&t->changed);
	}
	return t;
}

static struct holder *get_holder(struct gp_holds *h, uint64_t id, uint64_t owner_id)
{
	struct owner *owner = get(&h->owners, owner_id, sizeof(*owner));
	struct holder *holder = owner ? get(&h->holders, id, sizeof(*holder)) : NULL;

	if (owner)
		owner->id = owner_id;
	if (holder && !holder->holds.next) {
		holder->id = id;
		holder->owner = owner;
		gp_list_init(&holder->holds);
	}
	if (!holder)
		drop_owner(h, owner);
	return holder;
}

/* One hold */

static void note_change(struct gp_holds *h, struct target *t)
{
	if (!t->is_client && gp_list_empty(&t->changed))
		gp_list_append(&h->changed, &t->changed);
}

static void end(struct gp_holds *h, struct one *one)
{
	struct target *t = one->target;
	struct holder *holder = one->holder;

	gp_timer_cancel(&h->leases, &one->lease);
	gp_list_remove(&one->of_target);
	gp_list_remove(&one->of_holder);
	gp_list_remove(&one->of_all);
	gp_map_remove(&holder->by_target, t->id);
	holder->owner->n--;
	free(one);
	if (gp_list_empty(&t->holds))
		note_change(h, t);
	drop_target(h, t);
	drop_holder(h, holder);
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
	gp_map_free(&h->targets);
	gp_map_free(&h->owners);
	gp_map_free(&h->holders);
	gp_timers_free(&h->leases);
	free(h);
}

static struct one *find(const struct gp_holds *h, uint64_t target, uint64_t holder_id)
{
	const struct holder *holder = gp_map_get(&h->holders, holder_id);

	return holder ? gp_map_get(&holder->by_target, target) : NULL;
}

static int set_lease(struct gp_holds *h, struct one *one, uint64_t until_ns)
{
	if (until_ns != GP_NO_LEASE)
		return gp_timer_set(&h->leases, &one->lease, until_ns);
	gp_timer_cancel(&h->leases, &one->lease);
	return 0;
}

static int begin(struct gp_holds *h, struct target *t, struct holder *holder, const struct gp_hold *by)
{
	struct one *one = calloc(1, sizeof(*one));
	bool first = gp_list_empty(&t->holds);

	if (!one || gp_map_put(&holder->by_target, t->id, one) < 0) {
		free(one);
		return -ENOMEM;
	}
	if (set_lease(h, one, by->until_ns) < 0) {
		gp_map_remove(&holder->by_target, t->id);
		free(one);
		return -ENOMEM;
	}
	one->target = t;
	one->holder = holder;
	one->most = by->most;
	holder->owner->n++;
	gp_list_append(&t->holds, &one->of_target);
	gp_list_append(&holder->holds, &one->of_holder);
	gp_list_append(&h->all, &one->of_all);
	if (first)
		note_change(h, t);
	return 0;
}

static int hold(struct gp_holds *h, struct target *t, const struct gp_hold *by)
{
	struct one *one = t ? find(h, t->id, by->holder) : NULL;
	struct holder *holder;
	int r = -ENOMEM;

	if (one)
		return set_lease(h, one, by->until_ns);
	holder = t ? get_holder(h, by->holder, by->owner) : NULL;
	if (holder)
		r = holder->owner->n < by->most ? begin(h, t, holder, by) : -ENOSPC;
	if (r < 0) {
		drop_target(h, t);
		drop_holder(h, holder);
	}
	return r;
}

int gp_holds_add(struct gp_holds *h, const struct gp_hold *by)
{
	bool had = find(h, by->queue, by->holder);
	int r = hold(h, get_target(h, by->queue, false), by);

	if (r < 0 || !by->new_queues)
		return r;
	r = hold(h, get_target(h, by->client, true), by);
	if (r < 0 && !had)
		end(h, find(h, by->queue, by->holder));
	return r;
}

static bool is_of(const struct one *one, struct gp_whose whose)
{
	if (one->holder->id == GP_HOLDER_HOST && whose.holder != GP_HOLDER_HOST)
		return false;
	return (!whose.holder || one->holder->id == whose.holder) &&
	       (!whose.owner || one->holder->owner->id == whose.owner);
}

/* whose: NULL is everybody's and the host's. */
static void let_go(struct gp_holds *h, uint64_t target, const struct gp_whose *whose)
{
	struct target *t = gp_map_get(&h->targets, target);
	struct gp_list *pos, *next;

	if (!t)
		return;
	/* With its last hold the target may go. */
	for (pos = t->holds.next; pos != &t->holds; pos = next) {
		bool is_last = pos->next == &t->holds;

		next = pos->next;
		if (!whose || is_of(gp_container(pos, struct one, of_target), *whose))
			end(h, gp_container(pos, struct one, of_target));
		if (is_last)
			return;
	}
}

void gp_holds_release(struct gp_holds *h, uint64_t queue, uint64_t client, struct gp_whose whose)
{
	let_go(h, queue, &whose);
	let_go(h, client, &whose);
}

/* What its connection leaves behind is the owner's, as one with what others of that owner's have left. */
static void bequeath(struct gp_holds *h, struct one *one)
{
	const struct owner *owner = one->holder->owner;
	struct one *older = find(h, one->target->id, owner->id);
	struct gp_hold left = {
		.holder = owner->id, .owner = owner->id, .until_ns = one->lease.at_ns, .most = UINT32_MAX
	}; /* it counts already */

	if (older && older->lease.at_ns > left.until_ns)
		left.until_ns = older->lease.at_ns;
	(void)hold(h, one->target, &left); /* on no memory it ends, and the queue runs */
}

void gp_holds_close(struct gp_holds *h, uint64_t id)
{
	struct holder *holder = gp_map_get(&h->holders, id);
	bool more = holder != NULL;

	while (more) {
		struct one *one = gp_container(holder->holds.next, struct one, of_holder);

		more = one->of_holder.next != &holder->holds; /* with its last hold the holder goes */
		if (one->lease.place)
			bequeath(h, one);
		end(h, one);
	}
}

void gp_holds_forget(struct gp_holds *h, uint64_t queue)
{
	let_go(h, queue, NULL);
}

void gp_holds_forget_client(struct gp_holds *h, uint64_t client)
{
	let_go(h, client, NULL);
}

int gp_holds_adopt(struct gp_holds *h, uint64_t queue, uint64_t client)
{
	const struct target *t = gp_map_get(&h->targets, client);
	int one_r, r = 0;

	if (!t)
		return 0;
	gp_list_each(pos, &t->holds) {
		const struct one *one = gp_container(pos, struct one, of_target);
		const struct gp_hold by = { .holder = one->holder->id,
					    .owner = one->holder->owner->id,
					    .until_ns = one->lease.place ? one->lease.at_ns : GP_NO_LEASE,
					    .most = one->most };

		one_r = hold(h, get_target(h, queue, false), &by);
		r = r ? r : one_r;
	}
	return r;
}

static int has_holds(const struct gp_holds *h, uint64_t id)
{
	const struct target *t = gp_map_get(&h->targets, id);

	return t && !gp_list_empty(&t->holds);
}

int gp_holds_held(const struct gp_holds *h, uint64_t queue)
{
	return has_holds(h, queue);
}

int gp_holds_held_but(const struct gp_holds *h, uint64_t queue, uint64_t holder)
{
	const struct target *t = gp_map_get(&h->targets, queue);

	return t && !gp_list_empty(&t->holds) && (t->holds.next != t->holds.prev || !find(h, queue, holder));
}

int gp_holds_held_by(const struct gp_holds *h, uint64_t queue, uint64_t holder)
{
	return find(h, queue, holder) != NULL;
}

struct gp_whose gp_holds_whose(const struct gp_holds *h, uint64_t queue)
{
	const struct target *t = gp_map_get(&h->targets, queue);

	if (!t)
		return GP_EVERYBODYS;
	gp_list_each(pos, &t->holds) {
		const struct holder *holder = gp_container(pos, struct one, of_target)->holder;

		if (holder->id != GP_HOLDER_HOST)
			return (struct gp_whose){ .holder = holder->id, .owner = holder->owner->id };
	}
	return GP_EVERYBODYS;
}

size_t gp_holds_of(const struct gp_holds *h, uint64_t owner)
{
	const struct owner *o = gp_map_get(&h->owners, owner);

	return o ? o->n : 0;
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
	drop_target(h, t);
	return 1;
}
