// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "lib/ctx.h"

/* Entry i of an array whose entries have the size its first one says. */
static void *entry(void *infos, size_t i)
{
	return (char *)infos + i * *(size_t *)infos;
}

static int check_list(struct gp_ctx *ctx, const void *infos, size_t n)
{
	if (!ctx || (n && !infos))
		return -EINVAL;
	if (n && *(const size_t *)infos < sizeof(size_t))
		return gp_ctx_fail(ctx, -EINVAL, "set infos[0].size to sizeof(infos[0]) before the call");
	return 0;
}

/* A caller's entry may be shorter or longer than ours; its size stays its own. */
static void put_entry(void *infos, size_t i, size_t size, const void *info, size_t info_size)
{
	void *dst = entry(infos, i);

	gp_sized_fill(dst, size, info, info_size);
	*(size_t *)dst = size;
}

int gp_device_list(struct gp_ctx *ctx, struct gp_device_info *infos, size_t n)
{
	const struct gp_backend_ops *ops;
	struct gp_device_info info;
	struct gp_core_status status;
	size_t size;
	int r = check_list(ctx, infos, n);

	if (r < 0)
		return r;
	gp_ctx_catch_up(ctx);
	ops = gp_machine_ops(ctx->machine);
	size = n ? infos[0].size : 0;
	r = ops->devices(gp_machine_backend(ctx->machine), &info, 1); /* the machine has one */
	if (r < 0 || !n)
		return r;
	if (gp_core_device_status(gp_machine_core(ctx->machine), 0, &status) == 0)
		(void)snprintf(info.policy, sizeof(info.policy), "%s", status.policy);
	put_entry(infos, 0, size, &info, sizeof(info));
	return r;
}

/* The scheduler knows more of a queue's state than the device does. */
static void add_scheduling(struct gp_ctx *ctx, struct gp_queue_info *info)
{
	struct gp_core_queue_status status;

	if (gp_core_queue_status(gp_machine_core(ctx->machine), info->queue, &status) < 0)
		return;
	info->state = status.state;
	info->client_class = status.client_class;
	info->held = status.held;
}

int gp_queue_list(struct gp_ctx *ctx, struct gp_queue_info *infos, size_t n)
{
	struct gp_queue_info *all;
	struct gp_backend *be;
	size_t size;
	int count, r = check_list(ctx, infos, n);

	if (r < 0)
		return r;
	gp_ctx_catch_up(ctx);
	be = gp_machine_backend(ctx->machine);
	count = gp_machine_ops(ctx->machine)->queues(be, NULL, 0);
	if (count <= 0 || !n)
		return count;
	all = calloc((size_t)count, sizeof(*all));
	if (!all)
		return -ENOMEM;
	count = gp_machine_ops(ctx->machine)->queues(be, all, (size_t)count);
	size = infos[0].size;
	for (size_t i = 0; count > 0 && i < n && i < (size_t)count; i++) {
		add_scheduling(ctx, &all[i]);
		put_entry(infos, i, size, &all[i], sizeof(all[i]));
	}
	free(all);
	return count;
}
