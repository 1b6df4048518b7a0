// SPDX-License-Identifier: MIT
#include "backend/kfd/kfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sized.h"
#include "discover/discover.h"

#define CAPS (GP_CAP_INTERRUPT | GP_CAP_ACTIVITY)

struct gp_backend {
	struct gp_own *own;
	int is_ours; /* own is */
	uint32_t ways;
	struct gp_found *found;
	char name[GP_NAME_LEN]; /* of the process */
};

struct gp_own *gp_kfd_own(struct gp_backend *be)
{
	return be->own;
}

static void kfd_close(struct gp_backend *be)
{
	if (be->is_ours)
		gp_own_free(be->own);
	else
		(void)gp_own_resume_all(be->own, -1); /* nobody is left to tell */
	gp_found_free(be->found);
	free(be);
}

static int find_own(struct gp_backend *be, const struct gp_kfd_params *params)
{
	int fd, r = 0;

	be->own = params->own;
	be->ways = params->ways ? params->ways : GP_KFD_WAY_UPDATE;
	if (!be->own) {
		be->is_ours = 1;
		r = gp_own_new(params->next, NULL, NULL, &be->own);
	}
	if (r < 0)
		return r;
	fd = gp_own_open(be->own);
	if (fd < 0)
		return -ENODEV;
	(void)close(fd);
	return 0;
}

static int kfd_open(const struct gp_backend_opts *opts, struct gp_backend **ret)
{
	const struct gp_discover_opts discover = { .pid = (uint32_t)getpid() };
	const struct gp_kfd_params *params = opts ? opts->params : NULL;
	struct gp_backend *be;
	int r;

	if (!params || (!params->own && !params->next))
		return -ENODEV;
	be = calloc(1, sizeof(*be));
	if (!be)
		return -ENOMEM;
	(void)snprintf(be->name, sizeof(be->name), "%s", program_invocation_short_name);
	r = find_own(be, params);
	if (r == 0)
		r = gp_discover(&discover, &be->found);
	if (r < 0) {
		if (be->is_ours)
			gp_own_free(be->own);
		free(be);
		return r;
	}
	*ret = be;
	return 0;
}

static int kfd_devices(struct gp_backend *be, struct gp_device_info *infos, size_t n)
{
	for (size_t i = 0; i < be->found->ndevices && i < n; i++) {
		const struct gp_found_device *d = &be->found->devices[i];

		infos[i] = (struct gp_device_info){ .size = sizeof(*infos),
						    .device = (uint32_t)i,
						    .caps = CAPS,
						    .compute_units = d->compute_units,
						    .queue_slots = d->queue_slots };
		(void)snprintf(infos[i].name, sizeof(infos[i].name), "%s", d->name);
		(void)snprintf(infos[i].backend, sizeof(infos[i].backend), "%s", gp_kfd_ops.name);
	}
	return (int)be->found->ndevices;
}

/* UINT32_MAX: not in the topology, as where a container hides it. */
static uint32_t device_of(const struct gp_backend *be, uint32_t gpu_id)
{
	for (size_t i = 0; i < be->found->ndevices; i++)
		if (be->found->devices[i].gpu_id == gpu_id)
			return (uint32_t)i;
	return UINT32_MAX;
}

static void describe(struct gp_backend *be, const struct gp_own_queue *q, struct gp_queue_info *ret)
{
	struct gp_activity activity;

	(void)gp_own_activity(be->own, &q->queue, 1, &activity); /* unknown is an answer too */
	*ret = (struct gp_queue_info){ .size = sizeof(*ret),
				       .queue = q->queue,
				       .client = (uint64_t)getpid(),
				       .device = device_of(be, q->gpu_id),
				       .priority = q->priority,
				       .state = q->stopped ? GP_QUEUE_SUSPENDED : GP_QUEUE_RUNNING,
				       .activity = activity.activity,
				       .ring = q->ring,
				       .pid = (uint32_t)getpid(),
				       .queue_id = q->queue_id,
				       .gpu_id = q->gpu_id,
				       .kind = q->kind,
				       .active = !q->stopped && q->percent,
				       .known = GP_KNOWN_QUEUE_ID | GP_KNOWN_RING | GP_KNOWN_PRIORITY |
						GP_KNOWN_ACTIVE };
	memcpy(ret->client_name, be->name, sizeof(be->name));
}

static int kfd_queues(struct gp_backend *be, struct gp_queue_info *infos, size_t n)
{
	struct gp_own_queue *queues = calloc(GP_OWN_MOST, sizeof(*queues));
	int count;

	if (!queues)
		return -ENOMEM;
	count = gp_own_queues(be->own, queues, GP_OWN_MOST);
	for (int i = 0; i < count && (size_t)i < n; i++)
		describe(be, &queues[i], &infos[i]);
	free(queues);
	return count;
}

static int check(const struct gp_backend *be, const struct gp_apply_opts *o)
{
	if (o->flags)
		return -EINVAL;
	/* A stop is at once; a lease would need a thread, or a caller that comes in time. */
	if (o->grace_ns || o->lease_ns)
		return -ENOTSUP;
	if (o->mechanism != GP_MECH_NONE && o->mechanism != GP_MECH_INTERRUPT)
		return -ENOTSUP;
	return o->way && !(o->way & be->ways) ? -ENOTSUP : 0;
}

static int kfd_apply(struct gp_backend *be, struct gp_want *wants, size_t n, const struct gp_apply_opts *opts)
{
	struct gp_apply_opts o = { 0 };
	int r = opts ? gp_sized_copy(&o, sizeof(o), opts, opts->size) : 0;

	if (r == 0)
		r = check(be, &o);
	for (size_t i = 0; r < 0 && i < n; i++)
		wants[i].status = r;
	return r < 0 ? r : gp_own_apply(be->own, -1, wants, n, &o);
}

static int kfd_complete(struct gp_backend *be, struct gp_done *done, size_t n)
{
	(void)be, (void)done, (void)n;
	return 0;
}

static int kfd_activity(struct gp_backend *be, uint64_t queue, struct gp_activity *ret)
{
	struct gp_activity activity;
	int r = gp_own_activity(be->own, &queue, 1, &activity);

	if (r == 0)
		*ret = activity;
	return r;
}

const struct gp_backend_ops gp_kfd_ops = {
	.size = sizeof(gp_kfd_ops),
	.abi = GP_BACKEND_ABI,
	.name = "kfd",
	.open = kfd_open,
	.close = kfd_close,
	.devices = kfd_devices,
	.queues = kfd_queues,
	.apply = kfd_apply,
	.complete = kfd_complete,
	.activity = kfd_activity,
};
