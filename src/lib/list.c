// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/sized.h"
#include "discover/discover.h"
#include "lib/ctx.h"

static int check_list(struct gp_ctx *ctx, const void *infos, size_t n)
{
	if (!ctx || (n && !infos))
		return -EINVAL;
	if (n && *(const size_t *)infos < sizeof(size_t))
		return gp_ctx_fail(ctx, -EINVAL, "set infos[0].size to sizeof(infos[0]) before the call");
	return 0;
}

/* A caller's entry may be shorter or longer than ours; its size stays its own. */
static void put_entry(void *dst, size_t size, const void *info, size_t info_size)
{
	gp_sized_fill(dst, size, info, info_size);
	*(size_t *)dst = size;
}

/* Entries of the caller's array have the size that its first one says. */
static void put_entries(void *infos, size_t n, const void *from, size_t count, size_t each)
{
	size_t size = n ? *(size_t *)infos : 0;

	for (size_t i = 0; i < n && i < count; i++)
		put_entry((char *)infos + i * size, size, (const char *)from + i * each, each);
}

int gp_device_list(struct gp_ctx *ctx, struct gp_device_info *infos, size_t n)
{
	struct gp_device_info *all;
	int count, r = check_list(ctx, infos, n);

	if (r < 0)
		return r;
	count = ctx->ops->devices(ctx, &all);
	if (count < 0)
		return count;
	put_entries(infos, n, all, (size_t)count, sizeof(*all));
	free(all);
	return count;
}

int gp_queue_list(struct gp_ctx *ctx, struct gp_queue_info *infos, size_t n)
{
	struct gp_queue_info *all;
	int count, r = check_list(ctx, infos, n);

	if (r < 0)
		return r;
	count = ctx->ops->queues(ctx, &all);
	if (count < 0)
		return count;
	put_entries(infos, n, all, (size_t)count, sizeof(*all));
	free(all);
	return count;
}

int gp_client_list(struct gp_ctx *ctx, struct gp_client_info *infos, size_t n)
{
	struct gp_client_info *all;
	int count, r = check_list(ctx, infos, n);

	if (r < 0)
		return r;
	count = ctx->ops->clients(ctx, &all);
	if (count < 0)
		return count;
	put_entries(infos, n, all, (size_t)count, sizeof(*all));
	free(all);
	return count;
}

int gp_job_list(struct gp_ctx *ctx, struct gp_job_info *infos, size_t n)
{
	struct gp_job_info *all;
	int count, r = check_list(ctx, infos, n);

	if (r < 0)
		return r;
	count = ctx->ops->jobs(ctx, &all);
	if (count < 0)
		return count;
	put_entries(infos, n, all, (size_t)count, sizeof(*all));
	free(all);
	return count;
}

/* 0: ours is another number on the host, and which one nobody tells a container. */
static uint32_t own_host_pid(void)
{
	return gp_sees_host_pids() ? (uint32_t)getpid() : 0;
}

/* Whether it may be the one at this address: of a process, or of any (pid 0) that is not known to be another
 * than ours. */
static int may_be(const struct gp_queue_info *q, uint32_t pid, uint64_t ring)
{
	if (!(q->known & GP_KNOWN_RING) || q->ring != ring)
		return 0;
	return pid ? q->pid == pid : !q->local_pid || q->local_pid == (uint64_t)getpid();
}

/* Of one process; of any (pid 0): ours, if that is told, else the address must be one alone. */
static int find_ring(struct gp_ctx *ctx, const struct gp_queue_info *all, size_t n, uint32_t pid,
		     uint64_t ring, size_t *ret_at)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		if (!may_be(&all[i], pid, ring))
			continue;
		*ret_at = i;
		found++;
		if (!pid && all[i].local_pid)
			return 0;
	}
	if (found == 1)
		return 0;
	if (found)
		return gp_ctx_fail(ctx, -ENOTUNIQ,
				   "%zu processes have a queue with its ring at 0x%" PRIx64
				   ": give the pid as the host counts",
				   found, ring);
	return gp_ctx_fail(ctx, -ENOENT,
			   "no known queue has its ring at 0x%" PRIx64
			   "; a queue's address is known under gpreempt's agent, or to root from debugfs",
			   ring);
}

int gp_queue_find(struct gp_ctx *ctx, uint32_t pid, uint64_t ring, struct gp_queue_info *ret_info)
{
	struct gp_queue_info *all;
	size_t at = 0;
	int n, r;

	if (!ctx || !ret_info || ret_info->size < sizeof(size_t))
		return -EINVAL;
	n = ctx->ops->queues(ctx, &all);
	if (n < 0)
		return n;
	r = find_ring(ctx, all, (size_t)n, pid ? pid : own_host_pid(), ring, &at);
	if (r == 0)
		put_entry(ret_info, ret_info->size, &all[at], sizeof(all[at]));
	free(all);
	return r;
}
