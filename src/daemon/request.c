// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/manager.h"

#define HOLD_FLAGS (GP_HOLD_NEW_QUEUES | GP_HOLD_STRICT)

struct gp_request;

/* One item of a request, while its queue has not got there. */
struct waiter {
	struct gp_list of_queue;
	struct gp_request *request;
	uint32_t goal;         /* GP_RUN or GP_STOP */
	struct gp_whose whose; /* of a RELEASE: whose holds end */
};

struct gp_request {
	struct gp_list of_peer;
	struct gp_manager *m;
	struct gp_peer *peer;
	struct gp_alarm overdue;
	uint32_t serial, n, pending;
	uint32_t type; /* of a HOLD: enum gp_preempt_type */
	uint32_t way;  /* that was gone; AUTO: none, or several */
	bool gone_any;
	bool complete; /* all of its items are in: it may end */
	char text[192];
	struct gp_wire_item *items;
	struct waiter *waiters;
};

/* What it was when its agent connected means nothing any more: a program may become another by exec(). */
bool gp_may_act(const struct gp_manager *m, const struct gp_peer *p, struct gp_client *c)
{
	const struct gp_identity *id;

	if (p->rights & GP_RIGHT_OTHERS)
		return true;
	id = gp_client_identity(&m->world, c);
	if (p->granted != GP_CLASS_UNKNOWN &&
	    (id->root[0] != p->identity.root[0] || id->root[1] != p->identity.root[1]))
		return false; /* who came through a container's socket acts within that container */
	return id->uid != UINT32_MAX && id->uid == p->uid && id->user_ns && id->pid_ns &&
	       id->user_ns == p->identity.user_ns && id->pid_ns == p->identity.pid_ns;
}

static void free_request(struct gp_request *r)
{
	for (uint32_t i = 0; r->waiters && i < r->n; i++)
		gp_list_remove(&r->waiters[i].of_queue);
	gp_alarm_free(&r->m->loop, &r->overdue);
	gp_list_remove(&r->of_peer);
	r->peer->account->now.requests--;
	r->peer->account->now.items -= r->n;
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
		say(r, gp_route_why(&q->route));
		if (status == 0 && goal == GP_STOP)
			note_way(r, q->route.way);
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
			(void)gp_core_release(m->core, q->handle, (struct gp_whose){ .holder = r->peer->id },
					      m->loop.now_ns);
	}
	say(r, "no answer came in time");
	finish_if_done(r);
}

static bool may_wait(const struct gp_account *a, uint32_t items)
{
	return a->now.requests < a->most->requests && a->now.items + items <= a->most->items;
}

static int new_request(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg, uint32_t goal,
		       struct gp_request **ret)
{
	uint32_t n = msg->items.n;
	struct gp_request *r;

	if (!may_wait(p->account, n))
		return -EBUSY;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->m = m;
	r->peer = p;
	r->serial = msg->serial;
	r->type = msg->items.type;
	r->n = n;
	gp_list_append(&p->requests, &r->of_peer);
	p->account->now.requests++;
	p->account->now.items += n;
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
	*ret = r;
	return 0;
}

static void refuse(struct gp_peer *p, uint32_t serial, int status, const char *text)
{
	(void)gp_peer_error(p, serial, status,
			    status == -EBUSY    ? "too many requests of this user wait already"
			    : status == -ENOMEM ? "out of memory"
						: text);
}

static void wait_for(struct gp_request *r, uint32_t i, struct gp_queue *q)
{
	gp_list_append(&q->waiters, &r->waiters[i].of_queue);
	r->items[i].status = -EINPROGRESS;
	r->pending++;
}

static const struct gp_peer *peer_by_id(const struct gp_manager *m, uint64_t id)
{
	gp_list_each(pos, &m->peers) {
		const struct gp_peer *p = gp_container(pos, struct gp_peer, all);

		if (p->id == id)
			return p;
	}
	return NULL;
}

const char *gp_holder_name(const struct gp_manager *m, const struct gp_queue *q, char *text, size_t size)
{
	struct gp_whose whose = gp_holds_whose(gp_core_holds(m->core), q->handle);
	const struct gp_peer *p = whose.holder ? peer_by_id(m, whose.holder) : NULL;
	char name[64];

	text[0] = '\0';
	if (p)
		snprintf(text, size, "%s, process %u", gp_account_name(p->account, name, sizeof(name)),
			 p->pid);
	else if (whose.holder)
		gp_accounts_name(&m->accounts, whose.owner, text, size);
	return text;
}

static void say_why_it_waits(struct gp_request *r, const struct gp_queue *q)
{
	char who[96], text[128];

	snprintf(text, sizeof(text), "still held by %s", gp_holder_name(r->m, q, who, sizeof(who)));
	say(r, who[0] ? text : q->parked ? "stopped by a reservation" : "stopped for online work");
}

/* Items that need not wait: their queue is there already, or will not go there. */
static void end_what_is_done(struct gp_request *r, uint32_t goal)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct gp_queue *q = gp_world_queue(&r->m->world, r->items[i].queue);
		struct gp_core_queue_status status;

		if (gp_list_empty(&r->waiters[i].of_queue) || !q)
			continue;
		status = gp_schedule_status(r->m, q);
		if (goal == GP_STOP && status.state == GP_QUEUE_SUSPENDED && status.wanted == GP_STOP) {
			note_way(r, q->route.way);
			if (r->type == GP_PREEMPT_DRAIN && q->route.manner.type != GP_PREEMPT_DRAIN)
				say(r, "it was suspended already, saved and not drained");
			end_item(&r->waiters[i], 0, 0);
		} else if (goal == GP_RUN && status.wanted == GP_STOP) {
			say_why_it_waits(r, q);
			end_item(&r->waiters[i], 0, 0);
		} else if (goal == GP_RUN && status.state == GP_QUEUE_RUNNING) {
			end_item(&r->waiters[i], 0, 0);
		}
	}
}

static void begin(struct gp_request *r, uint32_t goal, uint64_t timeout_ns)
{
	end_what_is_done(r, goal);
	r->complete = true;
	gp_alarm_in(&r->m->loop, &r->overdue, r->m->conf->patience_ns + timeout_ns);
	finish_if_done(r);
}

static int may_hold(const struct gp_manager *m, const struct gp_msg_items *items, char *text, size_t size)
{
	if (items->type == GP_PREEMPT_RESET) {
		snprintf(text, size, "reset kills what is running: it is refused; ask for save or drain");
		return -EOPNOTSUPP;
	}
	if (items->lease_ns > GP_MOST_LEASE_NS) {
		snprintf(text, size, "a lease of more than a day: hold without one, or renew it");
		return -EINVAL;
	}
	if (items->hold & ~HOLD_FLAGS) {
		snprintf(text, size, "unknown flags 0x%x", items->hold & ~HOLD_FLAGS);
		return -EINVAL;
	}
	if (items->type == GP_PREEMPT_DRAIN && items->lease_ns && items->lease_ns < items->timeout_ns) {
		snprintf(text, size, "the lease would end before the drain's timeout");
		return -EINVAL;
	}
	if (items->way != GP_KFD_WAY_AUTO && !gp_ways_permit(&m->conf->ways, items->way)) {
		snprintf(
			text, size,
			"%s is not among this gpreemptd's --ways: start it with %s? behind those that it has",
			gp_way_name(items->way), gp_way_name(items->way));
		return -EOPNOTSUPP;
	}
	if (m->ending) {
		snprintf(text, size, "gpreemptd is ending");
		return -ESHUTDOWN;
	}
	return 0;
}

/* 0: to be held; else the item's status. */
static int check_hold(struct gp_request *r, struct gp_queue *q, uint32_t way)
{
	char text[160];

	if (!q || !gp_queue_listed(q))
		return -ENOENT;
	if (!gp_may_act(r->m, r->peer, q->client)) {
		say(r, "only root and group gpreempt may act on other users' queues");
		return -EPERM;
	}
	if (!gp_route_way(r->m, q, way)) {
		say(r, gp_route_why_not(r->m, q, text, sizeof(text)));
		return -EOPNOTSUPP;
	}
	return 0;
}

static bool is_sooner(const struct gp_manner *a, const struct gp_manner *b)
{
	return b->type == GP_PREEMPT_DRAIN && (a->type == GP_PREEMPT_SAVE || a->timeout_ns < b->timeout_ns);
}

/* Of a stop that is wanted already, what the most impatient wants counts. */
static void ask_for(struct gp_manager *m, struct gp_queue *q, const struct gp_msg_items *items)
{
	const struct gp_core_queue_status status = gp_schedule_status(m, q);
	const struct gp_manner manner = { .way = items->way,
					  .type = items->type,
					  .strict = (items->hold & GP_HOLD_STRICT) != 0,
					  .timeout_ns = items->timeout_ns };

	if (!status.held || status.wanted != GP_STOP) {
		q->asked = manner;
		return;
	}
	q->asked.strict &= manner.strict;
	q->route.manner.strict &= manner.strict;
	if (is_sooner(&manner, &q->asked)) {
		q->asked.type = manner.type;
		q->asked.timeout_ns = manner.timeout_ns;
	}
	gp_route_hurry(m, q, manner.type, manner.timeout_ns);
}

static int hold_one(struct gp_request *r, struct gp_queue *q, const struct gp_msg_items *items)
{
	uint64_t now = r->m->loop.now_ns;
	const struct gp_hold hold = { .holder = r->peer->id,
				      .owner = r->peer->account->id,
				      .queue = q->handle,
				      .client = q->client->handle,
				      .until_ns = items->lease_ns ? now + items->lease_ns : GP_NO_LEASE,
				      .new_queues = !!(items->hold & GP_HOLD_NEW_QUEUES),
				      .gentle = items->type == GP_PREEMPT_DRAIN,
				      .most = r->peer->account->most->holds };
	int status;

	ask_for(r->m, q, items);
	status = gp_core_hold(r->m->core, &hold, now);
	if (status == -ENOSPC)
		say(r, "this user holds too many queues already");
	return status;
}

void gp_request_hold(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	struct gp_msg_items items = msg->items;
	struct gp_request *r = NULL;
	char text[160];
	int status;

	if (!items.timeout_ns)
		items.timeout_ns = GP_DEFAULT_TIMEOUT_NS;
	if (items.timeout_ns > GP_MOST_TIMEOUT_NS)
		items.timeout_ns = GP_MOST_TIMEOUT_NS;
	status = may_hold(m, &items, text, sizeof(text));
	if (status == 0)
		status = new_request(m, p, msg, GP_STOP, &r);
	if (status < 0) {
		refuse(p, msg->serial, status, text);
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

static int check_release(struct gp_request *r, struct gp_queue *q)
{
	if (!q)
		return -ENOENT;
	if (gp_may_act(r->m, r->peer, q->client))
		return 0;
	say(r, "only root and group gpreempt may act on other users' queues");
	return -EPERM;
}

/*
 * Who holds a queue lets go of that hold alone.  Who does not releases all of that user's, or
 * everybody's with rights over others: there must be a way to resume what was left behind.
 */
static struct gp_whose whose(const struct gp_manager *m, const struct gp_peer *p, uint64_t queue)
{
	if (gp_holds_held_by(gp_core_holds(m->core), queue, p->id))
		return (struct gp_whose){ .holder = p->id };
	if (p->rights & GP_RIGHT_OTHERS)
		return GP_EVERYBODYS;
	return (struct gp_whose){ .owner = p->account->id };
}

void gp_request_release(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	struct gp_request *r;
	int status = new_request(m, p, msg, GP_RUN, &r);

	if (status < 0) {
		refuse(p, msg->serial, status, "");
		return;
	}
	/* First who holds what, then the releasing: a queue may be listed twice. */
	for (uint32_t i = 0; i < r->n; i++)
		r->waiters[i].whose = whose(m, p, r->items[i].queue);
	for (uint32_t i = 0; i < r->n; i++) {
		struct gp_queue *q = gp_world_queue(&m->world, r->items[i].queue);

		r->items[i].status = check_release(r, q);
		if (r->items[i].status < 0)
			continue;
		(void)gp_core_release(m->core, q->handle, r->waiters[i].whose, m->loop.now_ns);
		wait_for(r, i, q);
	}
	begin(r, GP_RUN, 0);
}

void gp_request_close(struct gp_peer *p)
{
	gp_list_each_safe(pos, &p->requests)
		free_request(gp_container(pos, struct gp_request, of_peer));
}
