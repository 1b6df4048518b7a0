// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/sized.h"
#include "lib/ctx.h"
#include "wire/wire.h"

#define FLAGS (GP_SUSPEND_NEW_QUEUES | GP_SUSPEND_STRICT)

static int check_drain(struct gp_ctx *ctx, const struct gp_suspend_opts *o)
{
	uint64_t timeout_ns = o->timeout_ns ? o->timeout_ns : GP_DEFAULT_TIMEOUT_NS;

	if (o->type != GP_PREEMPT_DRAIN)
		return o->flags & GP_SUSPEND_STRICT
			       ? gp_ctx_fail(ctx, -EINVAL, "suspend: strict is for a drain alone")
			       : 0;
	if (o->lease_ns && o->lease_ns < timeout_ns)
		return gp_ctx_fail(ctx, -EINVAL,
				   "suspend: a lease of %g ms would end before the drain's timeout of %g ms",
				   (double)o->lease_ns / 1e6, (double)timeout_ns / 1e6);
	return 0;
}

static int check_suspend(struct gp_ctx *ctx, const struct gp_suspend_opts *o)
{
	if (o->flags & ~(uint64_t)FLAGS || o->reserved)
		return gp_ctx_fail(ctx, -EINVAL, "suspend: a flag that is none, or reserved is set");
	if (o->type > GP_PREEMPT_RESET)
		return gp_ctx_fail(ctx, -EINVAL, "suspend: there is no type %" PRIu32, o->type);
	if (o->type == GP_PREEMPT_RESET)
		return gp_ctx_fail(ctx, -ENOTSUP,
				   "a reset kills the running waves and their work is lost: use save, or "
				   "drain to let them end first");
	return check_drain(ctx, o);
}

int gp_queue_suspend(struct gp_ctx *ctx, const uint64_t *queues, size_t n, const struct gp_suspend_opts *opts,
		     int32_t *ret_status)
{
	struct gp_suspend_opts o = { .size = sizeof(o) };
	int r = opts ? gp_sized_copy(&o, sizeof(o), opts, opts->size) : 0;

	if (!ctx || (n && !queues))
		return -EINVAL;
	if (r < 0)
		return gp_ctx_fail(ctx, r, "options of another size than this library knows");
	r = check_suspend(ctx, &o);
	if (r < 0)
		return r;
	ctx->notice[0] = '\0';
	return ctx->ops->suspend(ctx, queues, n, &o, ret_status);
}

int gp_queue_resume(struct gp_ctx *ctx, const uint64_t *queues, size_t n, int32_t *ret_status)
{
	if (!ctx || (n && !queues))
		return -EINVAL;
	ctx->notice[0] = '\0';
	return ctx->ops->resume(ctx, queues, n, ret_status);
}

int gp_device_reserve(struct gp_ctx *ctx, uint32_t device, uint32_t online_percent, uint32_t offline_percent)
{
	return ctx ? ctx->ops->reserve(ctx, device, online_percent, offline_percent) : -EINVAL;
}

int gp_container_attach(struct gp_ctx *ctx, uint32_t pid, uint64_t start, uint32_t client_class)
{
	if (!ctx)
		return -EINVAL;
	if (!pid || pid > INT32_MAX)
		return gp_ctx_fail(ctx, -EINVAL, "%" PRIu32 " is no process", pid);
	if (client_class != GP_CLASS_OFFLINE && client_class != GP_CLASS_ONLINE)
		return gp_ctx_fail(ctx, -EINVAL, "a container is attached as online or as offline");
	return ctx->ops->attach(ctx, pid, start, client_class);
}

static int check_job(struct gp_ctx *ctx, const struct gp_job *job)
{
	const struct gp_msg_job *sent = NULL;

	if (!job->pid || job->pid > INT32_MAX)
		return gp_ctx_fail(ctx, -EINVAL, "%" PRIu32 " is no process", job->pid);
	if (job->client_class != GP_CLASS_OFFLINE && job->client_class != GP_CLASS_ONLINE)
		return gp_ctx_fail(ctx, -EINVAL, "a job is online or offline");
	if (job->weight > GP_MOST_WEIGHT)
		return gp_ctx_fail(ctx, -EINVAL, "a weight is at most %u", GP_MOST_WEIGHT);
	if (job->floor_permille > 1000)
		return gp_ctx_fail(ctx, -EINVAL, "a share is at most 1000 permille");
	if (!job->name || !*job->name || strlen(job->name) >= sizeof(sent->name))
		return gp_ctx_fail(ctx, -EINVAL, "a job has a name, of at most %zu bytes",
				   sizeof(sent->name) - 1);
	if (job->cgroup && (job->cgroup[0] != '/' || strlen(job->cgroup) >= sizeof(sent->cgroup)))
		return gp_ctx_fail(ctx, -EINVAL, "a cgroup begins with / and has at most %zu bytes",
				   sizeof(sent->cgroup) - 1);
	return 0;
}

int gp_job_declare(struct gp_ctx *ctx, const struct gp_job *job)
{
	struct gp_job own = { .size = sizeof(own) };
	int r;

	if (!ctx || !job)
		return -EINVAL;
	r = gp_sized_copy(&own, sizeof(own), job, job->size);
	if (r < 0)
		return gp_ctx_fail(ctx, r, "a job of another size than this library knows");
	r = check_job(ctx, &own);
	return r < 0 ? r : ctx->ops->declare(ctx, &own);
}

int gp_device_set_policy(struct gp_ctx *ctx, uint32_t device, const char *name)
{
	if (!ctx || !name)
		return -EINVAL;
	if (strlen(name) >= GP_NAME_LEN)
		return gp_ctx_fail(ctx, -ENOENT, "there is no policy with so long a name: \"%s\"", name);
	return ctx->ops->set_policy(ctx, device, name);
}

int gp_device_stats(struct gp_ctx *ctx, uint32_t device, struct gp_stats *ret_stats)
{
	struct gp_stats stats = { .size = sizeof(stats) };
	size_t size;
	int r;

	if (!ctx || !ret_stats || ret_stats->size < sizeof(size_t))
		return -EINVAL;
	r = ctx->ops->stats(ctx, device, &stats);
	if (r < 0)
		return r;
	size = ret_stats->size;
	gp_sized_fill(ret_stats, size, &stats, sizeof(stats));
	ret_stats->size = size;
	return 0;
}

/* Any thread may be here: what is the context's own is not touched. */
static int give_hint(struct gp_ctx *ctx, const struct gp_hint *hint, uint32_t what)
{
	struct gp_hint h = { .size = sizeof(h) };
	int r = hint ? gp_sized_copy(&h, sizeof(h), hint, hint->size) : 0;

	if (!ctx)
		return -EINVAL;
	if (r < 0)
		return r;
	if (h.flags & ~(GP_HINT_DEVICE | GP_HINT_ANSWER))
		return -EINVAL;
	if (!(h.flags & GP_HINT_DEVICE))
		h.device = GP_ALL_DEVICES;
	return ctx->ops->hint(ctx, &h, what);
}

int gp_hint_begin(struct gp_ctx *ctx, const struct gp_hint *hint)
{
	return give_hint(ctx, hint, GP_HINT_BEGIN);
}

int gp_hint_end(struct gp_ctx *ctx, const struct gp_hint *hint)
{
	return give_hint(ctx, hint, GP_HINT_END);
}

int gp_event_open(struct gp_ctx *ctx, const struct gp_event_opts *opts)
{
	struct gp_event_opts o = { .size = sizeof(o) };
	int r = opts ? gp_sized_copy(&o, sizeof(o), opts, opts->size) : 0;

	if (!ctx)
		return -EINVAL;
	if (r < 0)
		return gp_ctx_fail(ctx, r, "options of another size than this library knows");
	if (o.flags & ~(GP_EVENT_FOLLOW | GP_EVENT_NEW))
		return gp_ctx_fail(ctx, -EINVAL, "events: a flag that is none");
	return ctx->ops->event_open(ctx, &o);
}

int gp_event_next(struct gp_ctx *ctx, uint64_t timeout_ns, struct gp_event *ret_event)
{
	struct gp_event event;
	size_t size;
	int r;

	if (!ctx || !ret_event || ret_event->size < sizeof(size_t))
		return -EINVAL;
	r = ctx->ops->event_next(ctx, timeout_ns, &event);
	if (r <= 0)
		return r;
	size = ret_event->size;
	gp_sized_fill(ret_event, size, &event, sizeof(event));
	ret_event->size = size;
	return r;
}

int gp_client_set_class(struct gp_ctx *ctx, uint64_t client, uint32_t client_class)
{
	if (!ctx || client_class == GP_CLASS_UNKNOWN || client_class > GP_CLASS_ONLINE)
		return -EINVAL;
	return ctx->ops->set_class(ctx, client, client_class);
}
