// SPDX-License-Identifier: MIT
#include "discover/watch.h"

#include <string.h>

#include "discover/scan.h"

#define known(q, field) ((q)->from[GP_FIELD_##field] != GP_SOURCE_UNKNOWN)

/* An id that has another ring now was given to another queue. */
static int is_another(const struct gp_found_queue *x, const struct gp_found_queue *y)
{
	return known(x, RING) && known(y, RING) && x->ring != y->ring;
}

static int is_different(const struct gp_found_queue *x, const struct gp_found_queue *y)
{
	return memcmp(x->from, y->from, sizeof(x->from)) || x->kind != y->kind ||
	       x->priority != y->priority || x->active != y->active || x->mapped != y->mapped ||
	       x->doorbell != y->doorbell || x->runtime_id != y->runtime_id || x->ring_size != y->ring_size ||
	       x->rptr_address != y->rptr_address || x->wptr_address != y->wptr_address ||
	       x->mqd_address != y->mqd_address;
}

static void compare_one(const struct gp_found_queue *x, const struct gp_found_queue *y, gp_change_fn fn,
			void *arg)
{
	if (is_another(x, y)) {
		fn(arg, GP_CHANGE_WENT, x);
		fn(arg, GP_CHANGE_CAME, y);
	} else if (is_different(x, y)) {
		fn(arg, GP_CHANGE_CHANGED, y);
	}
}

/* As the lists are sorted; but two queues with an id are the same whatever their rings. */
static int order(const struct gp_found_queue *x, const struct gp_found_queue *y)
{
	if (x->pid == y->pid && x->gpu_id == y->gpu_id && known(x, GPU) && known(y, GPU) && known(x, ID) &&
	    known(y, ID) && x->queue_id == y->queue_id)
		return 0;
	return gp_queue_order(x, y);
}

void gp_found_compare(const struct gp_found *before, const struct gp_found *after, gp_change_fn fn, void *arg)
{
	static const struct gp_found nothing;
	size_t i = 0, j = 0;

	if (!before)
		before = &nothing;
	while (i < before->nqueues || j < after->nqueues) {
		const struct gp_found_queue *x = i < before->nqueues ? &before->queues[i] : NULL;
		const struct gp_found_queue *y = j < after->nqueues ? &after->queues[j] : NULL;
		int which = !x ? 1 : !y ? -1 : order(x, y);

		if (which < 0)
			fn(arg, GP_CHANGE_WENT, x);
		else if (which > 0)
			fn(arg, GP_CHANGE_CAME, y);
		else
			compare_one(x, y, fn, arg);
		i += which <= 0;
		j += which >= 0;
	}
}
