// SPDX-License-Identifier: MIT
#include "lib/compat/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "discover/discover.h"

static int by_id(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_handle(const void *a, const void *b)
{
	const struct gp_queue_info *x = a, *y = b;

	return x->queue < y->queue ? -1 : x->queue > y->queue;
}

static void sort(struct names *names)
{
	if (names->n)
		qsort(names->items, names->n, sizeof(*names->items), by_id);
}

static int is_spent(const struct names *names, uint32_t id)
{
	if (id >= NAMES_FIRST)
		return id - NAMES_FIRST < names->ours;
	return id < NAMES_MOST_DRIVER_ID && names->spent[id / 8] >> id % 8 & 1;
}

int names_find(const struct names *names, uint32_t id, struct name *ret)
{
	const struct name like = { .id = id }, *found = NULL;

	if (names->n)
		found = bsearch(&like, names->items, names->n, sizeof(like), by_id);
	if (!found)
		return is_spent(names, id) ? -ESRCH : -ENOENT;
	*ret = *found;
	return 0;
}

/* 0: nobody can tell, or the pids that gpreemptd tells are none of ours. */
static uint64_t start_of(uint32_t pid)
{
	return gp_sees_host_pids() ? gp_proc_start("", pid) : 0;
}

struct name names_of(const struct gp_queue_info *q, uint32_t id)
{
	return (struct name){ .id = id,
			      .known = q->known,
			      .handle = q->queue,
			      .ring = q->ring,
			      .start = start_of(q->pid),
			      .pid = q->pid,
			      .gpu_id = q->gpu_id,
			      .queue_id = q->queue_id };
}

/* Keeps those for which it is so; the order stays. */
static void keep(struct names *names, int (*so)(const struct name *name, const void *arg), const void *arg)
{
	size_t kept = 0;

	for (size_t i = 0; i < names->n; i++)
		if (so(&names->items[i], arg))
			names->items[kept++] = names->items[i];
	names->n = kept;
}

static int is_of_use(const struct name *name, const void *arg)
{
	(void)arg;
	return name->given || name->held;
}

static int has_handle(const struct name *name, const void *arg)
{
	(void)arg;
	return name->handle != 0;
}

static int has_another(const struct name *name, const void *handle)
{
	return name->handle != *(const uint64_t *)handle;
}

void names_drop(struct names *names, uint64_t handle)
{
	keep(names, has_another, &handle);
}

void names_release(struct names *names, uint64_t handle)
{
	for (size_t i = 0; i < names->n; i++)
		if (names->items[i].handle == handle)
			names->items[i].held = 0;
	keep(names, is_of_use, NULL);
}

void names_part(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		names->items[i].handle = names->items[i].held = 0;
	keep(names, is_of_use, NULL);
}

void names_free(struct names *names)
{
	free(names->items);
	*names = (struct names){ 0 };
}

static int is_the_same(const struct name *name, const struct gp_queue_info *q)
{
	const uint32_t sure = GP_KNOWN_QUEUE_ID | GP_KNOWN_RING;

	return (name->known & q->known & sure) == sure && name->pid == q->pid && name->gpu_id == q->gpu_id &&
	       name->queue_id == q->queue_id && name->ring == q->ring;
}

/* Its handle in this context, or 0. */
static uint64_t recognise(const struct name *name, const struct gp_queue_info *all, size_t n)
{
	uint64_t handle = 0;

	if (!name->start || start_of(name->pid) != name->start)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (!is_the_same(name, &all[i]))
			continue;
		if (handle)
			return 0;
		handle = all[i].queue;
	}
	return handle;
}

static const struct gp_queue_info *find(const struct gp_queue_info *all, size_t n, uint64_t handle)
{
	const struct gp_queue_info like = { .queue = handle };

	return n ? bsearch(&like, all, n, sizeof(like), by_handle) : NULL;
}

void names_refresh(struct names *names, const struct gp_queue_info *all, size_t n)
{
	for (size_t i = 0; i < names->n; i++) {
		struct name *name = &names->items[i];

		if (!name->handle)
			name->handle = recognise(name, all, n);
		else if (!name->held && !find(all, n, name->handle))
			name->handle = 0;
	}
	keep(names, has_handle, NULL);
}

int names_reserve(struct names *names, size_t n)
{
	struct name *more;

	if (names->room - names->n >= n)
		return 0;
	more = realloc(names->items, (names->n + n) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	names->items = more;
	names->room = names->n + n;
	return 0;
}

void names_hold(struct names *names, const struct name *name)
{
	struct name *there = NULL;

	if (names->n)
		there = bsearch(name, names->items, names->n, sizeof(*name), by_id);
	if (there) {
		there->held = 1;
		return;
	}
	names->items[names->n] = *name;
	names->items[names->n++].held = 1;
	sort(names);
}

/* The name of each that has one, at its place in a list; one that was given goes before one that was not. */
static struct name **names_in(const struct names *names, const struct gp_queue_info *list, size_t n)
{
	struct name **ret = calloc(n + 1, sizeof(struct name *));

	for (size_t i = 0; ret && i < names->n; i++) {
		const struct gp_queue_info *q = find(list, n, names->items[i].handle);

		if (q && (!ret[q - list] || !ret[q - list]->given))
			ret[q - list] = &names->items[i];
	}
	return ret;
}

struct census {
	unsigned char count[NAMES_MOST_DRIVER_ID]; /* queues with this driver's id, 2 for more */
};

static void count_one(struct census *c, uint32_t known, uint32_t queue_id)
{
	if (known & GP_KNOWN_QUEUE_ID && queue_id < NAMES_MOST_DRIVER_ID && c->count[queue_id] < 2)
		c->count[queue_id]++;
}

static int next_id(struct names *names, const struct census *c, const struct gp_queue_info *q, uint32_t *ret)
{
	uint32_t id = q->queue_id;

	if (q->known & GP_KNOWN_QUEUE_ID && id < NAMES_MOST_DRIVER_ID && c->count[id] == 1 &&
	    !is_spent(names, id)) {
		names->spent[id / 8] |= (unsigned char)(1 << id % 8);
	} else {
		if (names->ours == UINT32_MAX - NAMES_FIRST)
			return -EOVERFLOW;
		id = NAMES_FIRST + names->ours++;
	}
	*ret = id;
	return 0;
}

static void take_census(const struct names *names, const struct gp_queue_info *found, size_t n,
			struct name *const *named, struct census *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < names->n; i++)
		count_one(ret, names->items[i].known, names->items[i].queue_id);
	for (size_t i = 0; i < n; i++)
		if (!named[i])
			count_one(ret, found[i].known, found[i].queue_id);
}

/* has: by what it is known so far, or NULL. There is room for one more. */
static int give_one(struct names *names, const struct census *c, struct gp_queue_info *q, struct name *has)
{
	uint32_t id;
	int r;

	if (!has || !has->given) {
		r = next_id(names, c, q, &id);
		if (r < 0)
			return r;
		if (!has || has->id != id) {
			names->items[names->n] = names_of(q, id);
			names->items[names->n].held = has ? has->held : 0;
			has = &names->items[names->n++];
		}
		has->given = 1;
	}
	q->queue_id = has->id;
	return 0;
}

int names_give(struct names *names, struct gp_queue_info *found, size_t n)
{
	int r = names_reserve(names, n);
	struct name **named;
	struct census census;

	if (r < 0)
		return r;
	named = names_in(names, found, n);
	if (!named)
		return -ENOMEM;
	take_census(names, found, n, named, &census);
	for (size_t i = 0; i < n && r == 0; i++)
		r = give_one(names, &census, &found[i], named[i]);
	free(named);
	sort(names);
	return r;
}
