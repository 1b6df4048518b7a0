// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/manager.h"

struct gp_request;

/* One item of a request, while its queue has not got there. */
struct waiter {
	struct gp_list of_queue;
	struct gp_request *request;
	uint32_t goal;   /* GP_RUN or GP_STOP */
	uint64_t holder; /* of a RELEASE: whose hold ends */
};

struct gp_request {
	struct gp_list all;
	struct gp_manager *m;
	struct gp_peer *peer;
	struct gp_alarm overdue;
	uint32_t serial, n, pending;
	uint32_t way; /* that was gone; AUTO: none, or several */
	bool gone_any;
	bool complete; /* all of its items are in: it may end */
	char text[192];
	struct gp_wire_item *items;
	struct waiter *waiters;
};

bool gp_may_act(const struct gp_peer *p, const struct gp_client *c)
{
	return p->rights & GP_RIGHT_OTHERS || (c->uid != UINT32_MAX && c->uid == p->uid);
}

static void free_request(struct gp_request *r)
{
	for (uint32_t i = 0; r->waiters && i < r->n; i++)
		gp_list_remove(&r->waiters[i].of_queue);
	gp_alarm_free(&r->m->loop, &r->overdue);
	gp_list_remove(&r->all);
	free(r->items);
	free(r->waiters);
	free(r);
}

static void finish(struct gp_request *r)
{
	static struct gp_msg msg;

	memset(&msg, 0, offsetof(struct gp_msg, item));
	msg.type = GP_MSG_RESULT;
	msg.serial = r->serial;
	msg.items.n = r->n;
	msg.items.way = r->way;
	snprintf(msg.items.text, sizeof(msg.items.text), "%s", r->text);
	memcpy(msg.item, r->items, r->n * sizeof(msg.item[0]));
	(void)gp_peer_send(r->peer, &msg);
	free_request(r);
}

static void finish_if_done(struct gp_request *r)
{
	if (r->complete && !r->pending)
		finish(r);
}

/* The first thing that there is to say is said. */
static void say(struct gp_request *r, const char *text)
{
	if (text[0] && !r->text[0])
		snprintf(r->text, sizeof(r->text), "%s", text);
}

static void end_item(struct waiter *w, int status, uint64_t latency_ns)
{
	struct gp_request *r = w->request;
	struct gp_wire_item *item = &r->items[w - r->waiters];

	gp_list_remove(&w->of_queue);
	item->status = status;
	item->latency_ns = latency_ns;
	r->pending--;
}

static void note_way(struct gp_request *r, uint32_t way)
{
	r->way = r->gone_any && r->way != way ? GP_KFD_WAY_AUTO : way;
	r->gone_any = true;
}

void gp_request_ended(struct gp_queue *q, uint32_t goal, int status, uint64_t latency_ns)
{
	gp_list_each_safe(pos, &q->waiters) {
		struct waiter *w = gp_container(pos, struct waiter, of_queue);
		struct gp_request *r = w->request;

		if (w->goal != goal)
			continue;
		end_item(w, status, latency_ns);
		say(r, q->why);
		if (status == 0 && goal == GP_STOP)
			note_way(r, q->way);
		finish_if_done(r);
	}
}

/* The rest has taken too long. */
static void overdue(void *arg)
{
	struct gp_request *r = arg;
	struct gp_manager *m = r->m;

	for (uint32_t i = 0; i < r->n; i++) {
		struct waiter *w = &r->waiters[i];
		struct gp_queue *q = gp_world_queue(&m->world, r->items[i].queue);

		if (gp_list_empty(&w->of_queue))
			continue;
		end_item(w, -ETIMEDOUT, 0);
		if (q && w->goal == GP_STOP)
			gp_holds_release(m->holds, q->handle, q->client->handle, r->peer->id);
	}
	say(r, "no answer came in time");
	finish_if_done(r);
	gp_drive_changes(m);
}

static int new_request(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg, uint32_t goal,
		       struct gp_request **ret)
{
	struct gp_request *r = calloc(1, sizeof(*r));
	uint32_t n = msg->items.n;

	if (!r)
		return -ENOMEM;
	gp_list_init(&r->all);
	r->m = m;
	r->peer = p;
	r->serial = msg->serial;
	r->n = n;
	r->items = calloc(n + 1, sizeof(*r->items));
	r->waiters = calloc(n + 1, sizeof(*r->waiters));
	for (uint32_t i = 0; r->waiters && i < n; i++) {
		gp_list_init(&r->waiters[i].of_queue);
		r->waiters[i].request = r;
		r->waiters[i].goal = goal;
	}
	if (!r->items || !r->waiters || gp_alarm_init(&m->loop, &r->overdue, overdue, r) < 0) {
		free_request(r);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		r->items[i] = (struct gp_wire_item){ .queue = msg->item[i].queue, .want = goal };
	gp_list_append(&m->requests, &r->all);
	*ret = r;
	return 0;
}

static void wait_for(struct gp_request *r, uint32_t i, struct gp_queue *q)
{
	gp_list_append(&q->waiters, &r->waiters[i].of_queue);
	r->items[i].status = -EINPROGRESS;
	r->pending++;
}

/* Items that need not wait: their queue is there already, or will not go there. */
static void end_what_is_done(struct gp_request *r, uint32_t goal)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct gp_queue *q = gp_world_queue(&r->m->world, r->items[i].queue);

		if (gp_list_empty(&r->waiters[i].of_queue) || !q)
			continue;
		if (goal == GP_STOP && q->state == GP_QUEUE_SUSPENDED && q->wanted == GP_STOP) {
			note_way(r, q->way);
			end_item(&r->waiters[i], 0, 0);
		} else if (goal == GP_RUN && q->wanted == GP_STOP) {
			say(r, q->parked ? "stopped by a reservation" : "still held by another");
			end_item(&r->waiters[i], 0, 0);
		} else if (goal == GP_RUN && q->state == GP_QUEUE_RUNNING) {
			end_item(&r->waiters[i], 0, 0);
		}
	}
}

static void begin(struct gp_request *r, uint32_t goal, uint64_t timeout_ns)
{
	struct gp_manager *m = r->m;

	gp_drive_changes(m);
	for (uint32_t i = 0; i < r->n; i++) {
		struct gp_queue *q = gp_world_queue(&m->world, r->items[i].queue);

		/* Held before, by an agent that went: this may be another chance. */
		if (q && !gp_list_empty(&r->waiters[i].of_queue))
			gp_drive_want(m, q);
	}
	end_what_is_done(r, goal);
	r->complete = true;
	gp_alarm_in(&m->loop, &r->overdue, m->conf->patience_ns + timeout_ns);
	finish_if_done(r);
}

static int may_hold(const struct gp_manager *m, const struct gp_msg_items *items, char *text, size_t size)
{
	if (items->type == GP_PREEMPT_RESET) {
		snprintf(text, size, "reset kills what is running: it is refused; ask for save or drain");
		return -EOPNOTSUPP;
	}
	if (items->hold & ~GP_HOLD_NEW_QUEUES) {
		snprintf(text, size, "unknown flags 0x%x", items->hold & ~GP_HOLD_NEW_QUEUES);
		return -EINVAL;
	}
	if (items->way != GP_KFD_WAY_AUTO && !gp_ways_permit(&m->conf->ways, items->way)) {
		snprintf(text, size, "%s is not among this gpreemptd's --ways", gp_way_name(items->way));
		return -EOPNOTSUPP;
	}
	if (m->ending) {
		snprintf(text, size, "gpreemptd is ending");
		return -ESHUTDOWN;
	}
	return 0;
}

/* 0: to be held; else the item's status. */
static int check_hold(struct gp_request *r, const struct gp_queue *q, uint32_t way)
{
	char text[160];

	if (!q || !gp_queue_listed(q))
		return -ENOENT;
	if (!gp_may_act(r->peer, q->client)) {
		say(r, "only root and group gpreempt may act on other users' queues");
		return -EPERM;
	}
	if (!gp_drive_way(r->m, q, way)) {
		say(r, gp_drive_why_not(r->m, q, text, sizeof(text)));
		return -EOPNOTSUPP;
	}
	return 0;
}

static uint64_t end_of_lease(const struct gp_manager *m, uint64_t lease_ns)
{
	uint64_t until;

	if (!lease_ns)
		return GP_NO_LEASE;
	return __builtin_add_overflow(m->loop.now_ns, lease_ns, &until) ? GP_NO_LEASE - 1 : until;
}

static int hold_one(struct gp_request *r, struct gp_queue *q, const struct gp_msg_items *items)
{
	struct gp_hold hold = { .holder = r->peer->id,
				.queue = q->handle,
				.client = q->client->handle,
				.until_ns = end_of_lease(r->m, items->lease_ns),
				.flags = items->hold };

	if (q->wanted == GP_RUN || q->state == GP_QUEUE_RUNNING) {
		q->asked.way = items->way;
		q->asked.type = items->type;
		q->asked.timeout_ns = items->timeout_ns;
	}
	return gp_holds_add(r->m->holds, &hold);
}

void gp_request_hold(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	struct gp_msg_items items = msg->items;
	struct gp_request *r = NULL;
	char text[160] = "out of memory";
	int status = may_hold(m, &items, text, sizeof(text));

	if (!items.timeout_ns)
		items.timeout_ns = GP_DRAIN_NS;
	if (items.timeout_ns > GP_MOST_TIMEOUT_NS)
		items.timeout_ns = GP_MOST_TIMEOUT_NS;
	if (status == 0)
		status = new_request(m, p, msg, GP_STOP, &r);
	if (status < 0) {
		(void)gp_peer_error(p, msg->serial, status, text);
		return;
	}
	for (uint32_t i = 0; i < r->n; i++) {
		struct gp_queue *q = gp_world_queue(&m->world, r->items[i].queue);

		status = check_hold(r, q, items.way);
		if (status == 0)
			status = hold_one(r, q, &items);
		if (status == 0)
			wait_for(r, i, q);
		else
			r->items[i].status = status;
	}
	begin(r, GP_STOP, items.type == GP_PREEMPT_DRAIN ? items.timeout_ns : 0);
}

static int check_release(struct gp_request *r, const struct gp_queue *q)
{
	if (!q)
		return -ENOENT;
	if (gp_may_act(r->peer, q->client))
		return 0;
	say(r, "only root and group gpreempt may act on other users' queues");
	return -EPERM;
}

/*
 * Who holds a queue lets go of that hold alone.  Who does not releases everybody's: there must be a way to
 * resume what somebody else has left behind.
 */
void gp_request_release(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	struct gp_request *r;

	if (new_request(m, p, msg, GP_RUN, &r) < 0) {
		(void)gp_peer_error(p, msg->serial, -ENOMEM, "out of memory");
		return;
	}
	/* First who holds what, then the releasing: a queue may be listed twice. */
	for (uint32_t i = 0; i < r->n; i++)
		if (gp_holds_held_by(m->holds, r->items[i].queue, p->id))
			r->waiters[i].holder = p->id;
	for (uint32_t i = 0; i < r->n; i++) {
		struct gp_queue *q = gp_world_queue(&m->world, r->items[i].queue);

		r->items[i].status = check_release(r, q);
		if (r->items[i].status < 0)
			continue;
		gp_holds_release(m->holds, q->handle, q->client->handle, r->waiters[i].holder);
		wait_for(r, i, q);
	}
	begin(r, GP_RUN, 0);
}

void gp_request_close(struct gp_manager *m, struct gp_peer *p)
{
	gp_list_each_safe(pos, &m->requests) {
		struct gp_request *r = gp_container(pos, struct gp_request, all);

		if (r->peer == p)
			free_request(r);
	}
}
