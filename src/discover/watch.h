/* SPDX-License-Identifier: MIT */
/* Queues that come and go, between two looks. The caller keeps the time: once a second is the custom. */
#ifndef GP_DISCOVER_WATCH_H
#define GP_DISCOVER_WATCH_H

#include "discover/discover.h"

enum gp_change { GP_CHANGE_CAME, GP_CHANGE_WENT, GP_CHANGE_CHANGED };

/* queue is valid during the call alone. */
typedef void (*gp_change_fn)(void *arg, enum gp_change change, const struct gp_found_queue *queue);

/* before may be NULL: everything came. Linear in the number of queues (both are sorted). */
void gp_found_compare(const struct gp_found *before, const struct gp_found *after, gp_change_fn fn,
		      void *arg);

#endif
