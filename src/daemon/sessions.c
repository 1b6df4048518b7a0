// SPDX-License-Identifier: MIT
#include "daemon/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/manager.h"

#define UNKNOWN 1 /* gp_device_session.status */

/* Who is reached */

static const struct gp_device_session *session_of(const struct gp_manager *m, const struct gp_queue *q)
{
	uint32_t device = gp_queue_device(&m->world, q);

	return device < GP_MOST_DEVICES && m->sessions.of[device].session ? &m->sessions.of[device] : NULL;
}

bool gp_sessions_reach(const struct gp_manager *m, const struct gp_queue *q)
{
	const struct gp_device_session *d = session_of(m, q);

	return d && d->status == 0 && gp_queue_listed(q) && q->found.from[GP_FIELD_ID] && q->client->start;
}

uint32_t gp_sessions_caps(const struct gp_manager *m, uint32_t device)
{
	const struct gp_device_session *d = &m->sessions.of[device];

	return d->session && d->status == 0 ? GP_CAP_INTERRUPT | GP_CAP_CROSS_PROCESS | GP_CAP_BATCH : 0;
}

static const char *say_why(int status)
{
	if (status == -EPERM)
		return "gpreemptd lacks CAP_SYS_NICE";
	return status == UNKNOWN ? "it is being opened" : strerror(-status);
}

const char *gp_sessions_why_not(const struct gp_manager *m, const struct gp_queue *q)
{
	const struct gp_device_session *d = session_of(m, q);

	if (!d)
		return "this driver has no scheduling sessions";
	return d->status ? say_why(d->status) : "its process cannot be told from another with its number";
}

/* What is put together */

static void add(struct gp_manager *m, struct gp_session_item item)
{
	struct gp_sessions *s = &m->sessions;
	size_t room = s->room ? s->room * 2 : 64;
	struct gp_session_item *more;

	if (s->n == s->room) {
		more = realloc(s->items, room * sizeof(*more));
		s->is_short |= !more;
		if (!more)
			return;
		s->items = more;
		s->room = room;
	}
	s->items[s->n++] = item;
}

static struct gp_session_item item_of(const struct gp_manager *m, const struct gp_client *c, uint32_t device,
				      uint32_t want)
{
	return (struct gp_session_item){ .entry = { .pid = c->pid,
						    .start_time = c->start,
						    .gpu_id = m->world.devices.by_number[device]->gpu_id,
						    .queue_id = KFD_SESSION_ALL_QUEUES,
						    .want = want } };
}

static void add_whole(struct gp_manager *m, const struct gp_client *c, uint32_t device, uint32_t want)
{
	struct gp_session_item item = item_of(m, c, device, want);

	item.entry.flags = m->conf->stop_sdma ? 0 : KFD_SESSION_COMPUTE_ONLY;
	add(m, item);
}

static void add_queue(struct gp_manager *m, const struct gp_queue *q, uint32_t want, uint64_t handle)
{
	struct gp_session_item item = item_of(m, q->client, q->route.device, want);

	item.queue = handle;
	item.entry.queue_id = q->route.queue_id;
	add(m, item);
}

/* -ENOMEM: not all of it; it may be given again. */
static int give(struct gp_manager *m, uint32_t device, uint32_t serial)
{
	struct gp_sessions *s = &m->sessions;
	int r = s->is_short ? -ENOMEM : 0;

	for (size_t at = 0, n; r == 0 && at < s->n; at += n) {
		struct gp_session_batch *b;

		n = s->n - at < KFD_SESSION_MAX_QUEUES ? s->n - at : KFD_SESSION_MAX_QUEUES;
		b = gp_session_batch((uint32_t)n);
		r = b ? 0 : -ENOMEM;
		if (!b)
			break;
		b->serial = serial;
		memcpy(b->items, &s->items[at], n * sizeof(*s->items));
		gp_session_give(s->of[device].session, b);
	}
	s->n = 0;
	s->is_short = false;
	return r;
}

/* Processes that are stopped as a whole */

static bool is_left_alone(const struct gp_manager *m, const struct gp_queue *q)
{
	return !m->conf->stop_sdma && (q->found.kind == GP_KIND_SDMA || q->found.kind == GP_KIND_XGMI);
}

static bool is_stopped(const struct gp_manager *m, const struct gp_queue *q, uint32_t device)
{
	return q->route.way == GP_KFD_WAY_SESSION && q->route.device == device &&
	       gp_schedule_status(m, q).state != GP_QUEUE_RUNNING &&
	       !(q->route.under_way && q->route.want != GP_STOP);
}

/* For others' work, or by somebody who wants its new queues stopped too. */
static bool stops_what_comes(const struct gp_manager *m, const struct gp_queue *q)
{
	return gp_schedule_status(m, q).for_others ||
	       gp_holds_held(gp_core_holds(m->core), q->client->handle);
}

static bool is_whole(const struct gp_manager *m, const struct gp_client *c, uint32_t device)
{
	bool any = false;

	gp_list_each(pos, &c->queues) {
		const struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);

		if (gp_queue_device(&m->world, q) != device || is_left_alone(m, q))
			continue;
		if (!is_stopped(m, q, device) || !stops_what_comes(m, q))
			return false;
		any = true;
	}
	return any;
}

/* What else stands still goes on doing so. */
static void let_whole_go(struct gp_manager *m, const struct gp_client *c, uint32_t device)
{
	add_whole(m, c, device, KFD_SESSION_RUN);
	gp_list_each(pos, &c->queues) {
		const struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);

		if (is_stopped(m, q, device))
			add_queue(m, q, KFD_SESSION_STOP, 0);
	}
}

static void add_process(struct gp_manager *m, struct gp_client *c, uint32_t device)
{
	if (is_whole(m, c, device)) {
		add_whole(m, c, device, KFD_SESSION_STOP);
		c->wholes |= 1ull << device;
	} else if (c->wholes >> device & 1) {
		let_whole_go(m, c, device);
	}
}

static void look_at_wholes(struct gp_manager *m, struct gp_client *c)
{
	for (uint32_t i = 0; c->wholes && i < GP_MOST_DEVICES; i++) {
		if (!(c->wholes >> i & 1) || is_whole(m, c, i))
			continue;
		let_whole_go(m, c, i);
		if (give(m, i, 0) == 0)
			c->wholes &= ~(1ull << i);
	}
}

void gp_sessions_client_gone(struct gp_manager *m, struct gp_client *c)
{
	for (uint32_t i = 0; c->wholes && i < GP_MOST_DEVICES; i++) {
		if (!(c->wholes >> i & 1))
			continue;
		add_whole(m, c, i, KFD_SESSION_RUN);
		(void)give(m, i, 0);
	}
	c->wholes = 0;
}

void gp_sessions_queue_gone(struct gp_manager *m, struct gp_queue *q)
{
	if (q->route.way != GP_KFD_WAY_SESSION ||
	    (!q->route.under_way && gp_schedule_status(m, q).state == GP_QUEUE_RUNNING))
		return;
	add_queue(m, q, KFD_SESSION_RUN, 0);
	(void)give(m, q->route.device, 0);
}

/* What is sent */

static struct gp_queue *queue_at(struct gp_list *pos)
{
	return gp_container(gp_container(pos, struct gp_route, outbox), struct gp_queue, route);
}

static void put_together(struct gp_manager *m, struct gp_list *outbox, uint32_t device, uint32_t serial)
{
	gp_list_each(pos, outbox) {
		struct gp_queue *q = queue_at(pos);

		if (q->route.device != device || q->client->session_serial == serial)
			continue;
		q->client->session_serial = serial;
		add_process(m, q->client, device);
	}
	gp_list_each(pos, outbox) {
		struct gp_queue *q = queue_at(pos);

		if (q->route.device == device)
			add_queue(m, q, q->route.want == GP_STOP ? KFD_SESSION_STOP : KFD_SESSION_RUN,
				  q->handle);
	}
}

static void take_out(struct gp_manager *m, struct gp_list *outbox, uint32_t device, uint32_t serial)
{
	gp_list_each_safe(pos, outbox) {
		struct gp_queue *q = queue_at(pos);

		if (q->route.device != device)
			continue;
		gp_list_remove(pos);
		q->route.sent_serial = serial;
		q->route.sent_to = NULL;
		if (q->client->session_serial == serial && !is_whole(m, q->client, device))
			q->client->wholes &= ~(1ull << device);
		q->client->session_serial = 0; /* once is enough for all its queues */
	}
}

void gp_sessions_send(struct gp_manager *m, struct gp_list *outbox, uint32_t serial)
{
	while (!gp_list_empty(outbox)) {
		uint32_t device = queue_at(outbox->next)->route.device;

		put_together(m, outbox, device, serial);
		if (give(m, device, serial) < 0)
			return; /* in the next step */
		take_out(m, outbox, device, serial);
	}
}

/* What comes back */

static void answer(struct gp_manager *m, const struct gp_session_batch *batch)
{
	for (uint32_t i = 0; i < batch->n; i++) {
		const struct gp_session_item *item = &batch->items[i];
		struct gp_queue *q = item->queue ? gp_world_queue(&m->world, item->queue) : NULL;
		int status = batch->status;
		const char *why;

		if (!q || q->route.way != GP_KFD_WAY_SESSION || !batch->serial ||
		    q->route.sent_serial != batch->serial)
			continue; /* we have changed our mind since */
		if (status == 0)
			status = gp_session_status(&item->entry, &why);
		else
			why = strerror(-status);
		gp_route_session_did(m, q, status, why, batch->latency_ns);
	}
}

static void has_changed(struct gp_device_session *d, int status)
{
	struct gp_manager *m = d->m;

	d->status = status;
	if (status == 0)
		gp_log_about(GP_ABOUT_DEVICE(d->device),
			     "device %u: a scheduling session is open, for queues of any process", d->device);
	else
		gp_log_about(GP_ABOUT_DEVICE(d->device), "device %u: no scheduling session: %s", d->device,
			     say_why(status));
	gp_schedule_caps(m, d->device);
	gp_list_each(pos, &m->world.all_clients)
		gp_schedule_reach(m, gp_container(pos, struct gp_client, all));
}

/* Of a call that failed for want of memory the session is still there. */
static bool tells_of_session(const struct gp_session_batch *batch)
{
	return !batch->n || batch->status == 0 || batch->has_ended;
}

static void done(void *arg, struct gp_session_batch *batch)
{
	struct gp_device_session *d = arg;
	struct gp_manager *m = d->m;

	d->cycles += batch->cycles;
	if (batch->has_ended) {
		gp_log_about(GP_ABOUT_DEVICE(d->device),
			     "device %u: the scheduling session has ended, for nothing was heard of it",
			     d->device);
		gp_route_session_ended(m, d->device);
	}
	if (batch->status != d->status && tells_of_session(batch))
		has_changed(d, batch->status);
	answer(m, batch);
}

/* From beginning to end */

static void open_one(struct gp_manager *m, uint32_t device)
{
	struct gp_device_session *d = &m->sessions.of[device];
	int r;

	*d = (struct gp_device_session){ .m = m, .device = device, .status = UNKNOWN };
	r = gp_session_new(&m->loop, &gp_kfd_session, m->conf->lease_ns, done, d, &d->session);
	if (r < 0)
		gp_log_about(GP_ABOUT_DEVICE(device), "device %u: no scheduling session: %s", device,
			     strerror(-r));
}

bool gp_sessions_may_open(const struct gp_manager *m)
{
	return gp_ways_permit(&m->conf->ways, GP_KFD_WAY_SESSION) && gp_session_version(m->conf->root) &&
	       gp_sees_host_pids();
}

void gp_sessions_open(struct gp_manager *m)
{
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++) {
		const struct gp_device *device = gp_devices_at(&m->world.devices, i);

		if (device && gp_device_is_kfd(device) && !m->sessions.of[i].session &&
		    gp_sessions_may_open(m))
			open_one(m, i);
	}
}

uint64_t gp_sessions_renew(struct gp_manager *m)
{
	uint64_t shortest = UINT64_MAX;

	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++) {
		struct gp_device_session *d = &m->sessions.of[i];

		if (!d->session || d->status == UNKNOWN || d->status == -EPERM)
			continue;
		gp_session_renew(d->session);
		shortest = d->session->lease_ns < shortest ? d->session->lease_ns : shortest;
	}
	gp_list_each(pos, &m->world.all_clients)
		look_at_wholes(m, gp_container(pos, struct gp_client, all));
	return shortest;
}

void gp_sessions_end(struct gp_manager *m)
{
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++)
		gp_session_end(m->sessions.of[i].session);
}

void gp_sessions_close(struct gp_manager *m)
{
	gp_sessions_end(m);
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++) {
		gp_session_free(m->sessions.of[i].session);
		m->sessions.of[i].session = NULL;
	}
	free(m->sessions.items);
	m->sessions.items = NULL;
}
