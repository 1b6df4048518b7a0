// SPDX-License-Identifier: MIT
#include "backend/registry.h"

#include <errno.h>
#include <string.h>

#include "backend/sim/sim.h"
#include "base/sized.h"

static const struct gp_backend_ops *const backends[] = { &gp_sim_ops };

#define NBACKENDS (sizeof(backends) / sizeof(backends[0]))

static int no_open(const struct gp_backend_opts *opts, struct gp_backend **ret)
{
	(void)opts;
	(void)ret;
	return -ENOTSUP;
}

static void no_close(struct gp_backend *be)
{
	(void)be;
}

static int no_devices(struct gp_backend *be, struct gp_device_info *infos, size_t n)
{
	(void)be;
	(void)infos;
	(void)n;
	return -ENOTSUP;
}

static int no_queues(struct gp_backend *be, struct gp_queue_info *infos, size_t n)
{
	(void)be;
	(void)infos;
	(void)n;
	return -ENOTSUP;
}

static int no_apply(struct gp_backend *be, struct gp_want *wants, size_t n, const struct gp_apply_opts *opts)
{
	(void)be;
	(void)opts;
	for (size_t i = 0; i < n; i++)
		wants[i].status = -ENOTSUP;
	return -ENOTSUP;
}

static int no_complete(struct gp_backend *be, struct gp_done *done, size_t n)
{
	(void)be;
	(void)done;
	(void)n;
	return -ENOTSUP;
}

static int no_reserve(struct gp_backend *be, uint32_t device, uint32_t online, uint32_t offline)
{
	(void)be;
	(void)device;
	(void)online;
	(void)offline;
	return -ENOTSUP;
}

static int no_activity(struct gp_backend *be, uint64_t queue, struct gp_activity *ret)
{
	(void)be;
	(void)queue;
	(void)ret;
	return -ENOTSUP;
}

int gp_backend_complete(struct gp_backend_ops *dst, const struct gp_backend_ops *src)
{
	int r = gp_sized_copy(dst, sizeof(*dst), src, src->size);

	if (r < 0)
		return r;
	if (dst->abi != GP_BACKEND_ABI)
		return -EPROTO;
	if (!dst->name || dst->flags)
		return -EINVAL;
	dst->open = dst->open ? dst->open : no_open;
	dst->close = dst->close ? dst->close : no_close;
	dst->devices = dst->devices ? dst->devices : no_devices;
	dst->queues = dst->queues ? dst->queues : no_queues;
	dst->apply = dst->apply ? dst->apply : no_apply;
	dst->complete = dst->complete ? dst->complete : no_complete;
	dst->reserve = dst->reserve ? dst->reserve : no_reserve;
	dst->activity = dst->activity ? dst->activity : no_activity;
	return 0;
}

const char *gp_backend_name(size_t i)
{
	return i < NBACKENDS ? backends[i]->name : NULL;
}

int gp_backend_open(const char *name, const struct gp_backend_opts *opts, struct gp_backend_ops *ret_ops,
		    struct gp_backend **ret)
{
	int any = !name || !strcmp(name, "auto"), r = any ? -ENODEV : -ENOENT;
	struct gp_backend_ops ops;

	for (size_t i = 0; i < NBACKENDS; i++) {
		if (!any && strcmp(name, backends[i]->name) != 0)
			continue;
		r = gp_backend_complete(&ops, backends[i]);
		if (r == 0)
			r = ops.open(opts, ret);
		if (r == 0)
			*ret_ops = ops;
		if (r != -ENODEV || !any)
			break;
	}
	return r;
}
