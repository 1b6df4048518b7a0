// SPDX-License-Identifier: MIT
#include "level/rocr_tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Places in the core's table: the same in all releases. */
enum {
	QUEUE_CREATE = 7,
	QUEUE_DESTROY = 9,
	WRITE_INDEX = 14, /* relaxed */
	SIGNAL_CREATE = 37,
	SIGNAL_DESTROY = 38,
	SIGNAL_LOAD = 40,  /* scacquire */
	SIGNAL_STORE = 42, /* screlease */
	SIGNAL_WAIT = 44,  /* scacquire */
	CORE_LAST = SIGNAL_WAIT
};

/*
 * Places in the table of AMD's extensions.  With major id 1 the releases after 5.2 have put entries before
 * these without another id: a table that is longer than 5.2.3's may be one of them.
 */
#define ASYNC_COPY 15 /* the same in both */

static const struct layout {
	uint32_t root, core, amd; /* major ids */
	uint32_t most;            /* entries of amd; 0: any */
	uint32_t intercept_create, intercept_register, set_priority, copy_on;
	int is_strict;
} layouts[] = {
	{ .root = 1,
	  .core = 1,
	  .amd = 1,
	  .most = 48,
	  .intercept_create = 35,
	  .intercept_register = 36,
	  .set_priority = 37,
	  .is_strict = 1 },
	{ .root = 3,
	  .core = 2,
	  .amd = 2,
	  .most = 0,
	  .intercept_create = 37,
	  .intercept_register = 38,
	  .set_priority = 39,
	  .copy_on = 16 },
};

static uint32_t entries_of(const struct gp_hsa_table *t)
{
	size_t size = t->version.minor_id;

	return size > sizeof(t->version) ? (uint32_t)((size - sizeof(t->version)) / sizeof(void *)) : 0;
}

static const struct layout *find_layout(const struct gp_hsa_tables *t)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		const struct layout *l = &layouts[i];

		if (t->version.major_id == l->root && t->core->version.major_id == l->core &&
		    t->amd->version.major_id == l->amd && (!l->most || entries_of(t->amd) <= l->most))
			return l;
	}
	return NULL;
}

/* What an entry holds has some other type there. */
#define AT(table, place) ((void *)&(table)->entry[place])

static int all_there(const struct gp_rocr_entries *e)
{
	return *e->queue_create && *e->intercept_create && *e->queue_destroy && *e->write_index &&
	       *e->intercept_register && *e->set_priority && *e->signal_create && *e->signal_destroy &&
	       *e->signal_load && *e->signal_store && *e->signal_wait && *e->copy &&
	       (!e->copy_on || *e->copy_on);
}

int gp_rocr_entries(struct gp_hsa_tables *t, struct gp_rocr_entries *ret, char *why, size_t size)
{
	const struct layout *l;
	struct gp_rocr_entries e;

	if (!t || t->version.minor_id < sizeof(*t) || !t->core || !t->amd) {
		(void)snprintf(why, size, "ROCr gave no table of its core and of AMD's extensions");
		return -ENOTSUP;
	}
	l = find_layout(t);
	if (!l || entries_of(t->core) <= CORE_LAST || entries_of(t->amd) <= l->set_priority) {
		(void)snprintf(why, size,
			       "ROCr's tables have versions %" PRIu32 ", %" PRIu32 " and %" PRIu32
			       " with %" PRIu32 " and %" PRIu32
			       " entries; known are those of ROCm 5.2 and of 6 and later",
			       t->version.major_id, t->core->version.major_id, t->amd->version.major_id,
			       entries_of(t->core), entries_of(t->amd));
		return -ENOTSUP;
	}
	e = (struct gp_rocr_entries){ .queue_create = AT(t->core, QUEUE_CREATE),
				      .queue_destroy = AT(t->core, QUEUE_DESTROY),
				      .write_index = AT(t->core, WRITE_INDEX),
				      .signal_create = AT(t->core, SIGNAL_CREATE),
				      .signal_destroy = AT(t->core, SIGNAL_DESTROY),
				      .signal_load = AT(t->core, SIGNAL_LOAD),
				      .signal_store = AT(t->core, SIGNAL_STORE),
				      .signal_wait = AT(t->core, SIGNAL_WAIT),
				      .intercept_create = AT(t->amd, l->intercept_create),
				      .intercept_register = AT(t->amd, l->intercept_register),
				      .set_priority = AT(t->amd, l->set_priority),
				      .copy = AT(t->amd, ASYNC_COPY),
				      .copy_on = l->copy_on ? AT(t->amd, l->copy_on) : NULL,
				      .is_strict = l->is_strict };
	if (!all_there(&e)) {
		(void)snprintf(why, size, "an entry of ROCr's tables that is needed is empty");
		return -ENOTSUP;
	}
	*ret = e;
	return 0;
}
