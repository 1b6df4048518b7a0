// SPDX-License-Identifier: MIT
/* The world as the scheduler sees it, and what it says has become of a queue. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend/registry.h"
#include "daemon/log.h"
#include "daemon/manager.h"
#include "policy/registry.h"

/* One device for all queues whose GPU nobody knows: there they can be held, and nobody is stopped for
 * another. */
#define UNKNOWN_DEVICE UINT32_MAX
#define CAPS (GP_CAP_INTERRUPT | GP_CAP_CROSS_PROCESS | GP_CAP_ACTIVITY | GP_CORE_OVERTAKES)

/* What came of it */

static void stopped(struct gp_manager *m, struct gp_queue *q, const struct gp_core_note *note)
{
	if (note->status == 0)
		gp_queue_note_active(q, 0);
	else if (q->parked)
		gp_reserve_failed(m, q);
	gp_request_ended(q, GP_STOP, note->status, note->latency_ns);
}

static void runs(struct gp_manager *m, struct gp_queue *q, const struct gp_core_note *note)
{
	if (note->status == 0)
		gp_queue_note_active(q, !q->agent.peer || q->agent.told.percent);
	else if (!q->cannot_resume)
		gp_account_log(
			gp_queue_account(q), m->loop.now_ns,
			"cannot resume queue %llu of process %u (%s): %s; it is tried again every second",
			(unsigned long long)q->handle, q->client->pid, q->client->name,
			strerror(-note->status));
	q->cannot_resume = note->status < 0;
	if (q->cannot_resume)
		snprintf(q->route.why, sizeof(q->route.why),
			 "cannot resume: %s; it is tried again every second", strerror(-note->status));
	gp_request_ended(q, GP_RUN, note->status, note->latency_ns);
	if (q->cannot_resume && gp_schedule_status(m, q).wanted == GP_STOP)
		gp_request_ended(q, GP_STOP, 0, 0); /* it stands still, as somebody wants by now */
}

static void note(void *arg, const struct gp_core_note *note)
{
	struct gp_manager *m = arg;
	struct gp_queue *q = note->queue ? gp_world_queue(&m->world, note->queue) : NULL;

	if (note->kind == GP_NOTE_POLICY_EJECTED)
		gp_log("device %u: %s; fifo goes on", note->device, note->text);
	if (!q)
		return;
	switch (note->kind) {
	case GP_NOTE_STOPPED:
		stopped(m, q, note);
		break;
	case GP_NOTE_RUNS:
		runs(m, q, note);
		break;
	case GP_NOTE_HELD:
		m->reserves_changed = true;
		gp_request_ended(q, GP_RUN, 0, 0); /* it was let go, and somebody else wants it still */
		break;
	case GP_NOTE_HOLD_ENDED:
		m->reserves_changed = true;
		gp_reserve_park(m, q, false);
		gp_request_ended(q, GP_STOP, -ECANCELED, 0);
		break;
	default:
		break;
	}
}

/* Devices */

static int add_device(struct gp_manager *m, uint32_t device, const struct gp_policy_ops *policy)
{
	int r = gp_core_device_add(m->core, device, CAPS);

	if (r < 0)
		return r == -EEXIST ? 0 : r;
	return gp_core_set_policy(m->core, device, policy, m->loop.now_ns);
}

/* The core's number of a queue's device. */
static uint32_t device_of(struct gp_manager *m, const struct gp_queue *q)
{
	uint32_t device = gp_world_device(&m->world, q->found.gpu_id);

	if (!q->found.from[GP_FIELD_GPU] || device >= GP_MOST_DEVICES)
		return UNKNOWN_DEVICE;
	return add_device(m, device, gp_policy_find(m->conf->policy)) == 0 ? device : UNKNOWN_DEVICE;
}

/* Clients and queues */

int gp_schedule_client(struct gp_manager *m, const struct gp_client *c)
{
	const struct gp_core_client client = { .id = c->handle, .client_class = GP_CLASS_OFFLINE };

	return gp_core_client_add(m->core, &client);
}

void gp_schedule_client_gone(struct gp_manager *m, const struct gp_client *c)
{
	gp_core_free_client(m->core, c->handle, m->loop.now_ns);
	(void)gp_core_client_remove(m->core, c->handle, m->loop.now_ns);
}

static uint32_t class_of(const struct gp_queue *q)
{
	return q->verdict.client_class == GP_CLASS_ONLINE ? GP_CLASS_ONLINE : GP_CLASS_OFFLINE;
}

static enum gp_reach reach_of(const struct gp_manager *m, const struct gp_queue *q)
{
	if (gp_route_way(m, q, GP_KFD_WAY_AUTO))
		return GP_REACH_ALL;
	return gp_route_way(m, q, GP_KFD_WAY_DBG) ? GP_REACH_HOLDS : GP_REACH_NONE;
}

/* Where it is now. One that stands still, or is about to, or is held, stays where it was. */
static int enter(struct gp_manager *m, struct gp_queue *q)
{
	struct gp_core_queue_status status;
	const struct gp_core_queue queue = { .queue = q->handle,
					     .client = q->client->handle,
					     .device = device_of(m, q),
					     .client_class = class_of(q) };
	int r = gp_core_queue_status(m->core, q->handle, &status);

	if (r == 0 && (status.device == queue.device || status.held || status.state != GP_QUEUE_RUNNING))
		return 0;
	(void)gp_core_queue_remove(m->core, q->handle, m->loop.now_ns);
	r = gp_core_queue_add(m->core, &queue, m->loop.now_ns);
	if (r == 0)
		(void)gp_core_activity(m->core, q->handle, q->activity, m->loop.now_ns);
	return r;
}

/* -ENOMEM: it is not scheduled, and runs. */
int gp_schedule_queue(struct gp_manager *m, struct gp_queue *q)
{
	int r = enter(m, q);

	if (r < 0)
		return r;
	(void)gp_core_queue_class(m->core, q->handle, class_of(q), m->loop.now_ns);
	return gp_core_queue_reach(m->core, q->handle, reach_of(m, q), m->loop.now_ns);
}

void gp_schedule_queue_gone(struct gp_manager *m, struct gp_queue *q)
{
	gp_request_ended(q, GP_STOP, -ENOENT, 0);
	gp_request_ended(q, GP_RUN, 0, 0);
	gp_route_gone(m, q);
	gp_reserve_park(m, q, false);
	(void)gp_core_queue_remove(m->core, q->handle, m->loop.now_ns);
	m->reserves_changed = true;
}

void gp_schedule_reach(struct gp_manager *m, struct gp_client *c)
{
	gp_list_each(pos, &c->queues)
		(void)gp_schedule_queue(m, gp_container(pos, struct gp_queue, of_client));
}

struct gp_core_queue_status gp_schedule_status(const struct gp_manager *m, const struct gp_queue *q)
{
	struct gp_core_queue_status status = { 0 };

	(void)gp_core_queue_status(m->core, q->handle, &status); /* one that there was no memory for runs */
	return status;
}

/* Steps */

void gp_schedule_step(struct gp_manager *m)
{
	const struct gp_core_host host = { .ops = &m->ops, .backend = m->route };

	gp_route_flush(m->route);
	gp_alarm_at(&m->loop, &m->core_alarm, gp_core_step(m->core, &host, m->loop.now_ns));
}

static void nothing(void *manager)
{
	(void)manager; /* the step that follows does it */
}

int gp_schedule_open(struct gp_manager *m)
{
	const struct gp_backend_opts opts = { .size = sizeof(opts), .params = m };
	struct gp_core_opts core = m->conf->core;
	int r = gp_backend_complete(&m->ops, &gp_route_ops);

	if (r == 0)
		r = m->ops.open(&opts, &m->route);
	if (r == 0)
		r = gp_alarm_init(&m->loop, &m->core_alarm, nothing, m);
	if (r < 0)
		return r;
	core.note = note;
	core.note_arg = m;
	m->core = gp_core_new(&core);
	return m->core ? add_device(m, UNKNOWN_DEVICE, &gp_policy_fifo) : -ENOMEM;
}

void gp_schedule_close(struct gp_manager *m)
{
	m->core = gp_core_free(m->core);
	if (m->route)
		m->ops.close(m->route);
	m->route = NULL;
}

bool gp_schedule_at_rest(const struct gp_manager *m)
{
	gp_list_each(pos, &m->world.all_queues)
		if (gp_schedule_status(m, gp_container(pos, struct gp_queue, all)).state != GP_QUEUE_RUNNING)
			return false;
	return true;
}

/* Nobody is stopped any more. */
void gp_schedule_end(struct gp_manager *m)
{
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++)
		(void)gp_core_set_policy(m->core, i, &gp_policy_fifo, m->loop.now_ns);
	gp_list_each(pos, &m->world.all_clients)
		gp_core_free_client(m->core, gp_container(pos, struct gp_client, all)->handle,
				    m->loop.now_ns);
}
