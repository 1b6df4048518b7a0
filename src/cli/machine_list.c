// SPDX-License-Identifier: MIT
#include "cli/machine_list.h"

#include <errno.h>
#include <stdlib.h>

static int read_devices(struct gp_ctx *ctx, struct gp_machine_list *list)
{
	int n = gp_device_list(ctx, NULL, 0);

	if (n < 0)
		return n;
	list->devices = calloc((size_t)n + 1, sizeof(*list->devices));
	if (!list->devices)
		return -ENOMEM;
	list->devices[0].size = sizeof(*list->devices);
	list->ndevices = (size_t)n;
	n = gp_device_list(ctx, list->devices, list->ndevices);
	if (n >= 0 && (size_t)n < list->ndevices)
		list->ndevices = (size_t)n;
	return n < 0 ? n : 0;
}

/* Queues come and go between the two calls: what came is not shown, what went is not there. */
static int read_queues(struct gp_ctx *ctx, struct gp_machine_list *list)
{
	int n = gp_queue_list(ctx, NULL, 0);

	if (n < 0)
		return n;
	list->queues = calloc((size_t)n + 1, sizeof(*list->queues));
	if (!list->queues)
		return -ENOMEM;
	list->queues[0].size = sizeof(*list->queues);
	list->nqueues = (size_t)n;
	n = gp_queue_list(ctx, list->queues, list->nqueues);
	if (n >= 0 && (size_t)n < list->nqueues)
		list->nqueues = (size_t)n;
	return n < 0 ? n : 0;
}

int gp_machine_list_read(struct gp_ctx *ctx, struct gp_machine_list *ret)
{
	struct gp_machine_list list = { 0 };
	int r;

	r = read_devices(ctx, &list);
	if (r == 0)
		r = read_queues(ctx, &list);
	if (r < 0) {
		gp_machine_list_free(&list);
		return r;
	}
	*ret = list;
	return 0;
}

void gp_machine_list_free(struct gp_machine_list *list)
{
	free(list->devices);
	free(list->queues);
	*list = (struct gp_machine_list){ 0 };
}
