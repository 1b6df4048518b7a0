// SPDX-License-Identifier: MIT
/*
 * What the daemon wants of the queues.  The answer has the same items, and how long each took from here;
 * what drains is answered by itself, when it has ended.
 */
#include "agent/internal.h"

#include <errno.h>

/* The driver keeps this thread from everything else: not for longer than the lease. */
static uint64_t longest_call(const struct gp_agent *a, uint64_t timeout_ns)
{
	uint64_t now = gp_now_ns(), end = a->heard_ns + a->lease_ns, most = end > now ? end - now : 1;

	return timeout_ns < most ? timeout_ns : most;
}

static uint64_t timeout_of(const struct gp_msg_items *how)
{
	return how->timeout_ns ? how->timeout_ns : GP_DEFAULT_TIMEOUT_NS;
}

static int apply(struct gp_agent *a, const struct gp_wire_item *item, uint32_t way, uint32_t type,
		 uint64_t timeout_ns)
{
	struct gp_apply_opts opts = {
		.size = sizeof(opts), .way = way, .type = type, .timeout_ns = longest_call(a, timeout_ns)
	};
	struct gp_want want = { .queue = item->queue, .want = item->want };
	int driver = gp_agent_driver(a);

	return driver < 0 ? -EBADF : a->ops->apply(a->own, driver, &want, 1, &opts);
}

/* Drains */

static int end_drain(struct gp_agent *a, uint32_t i, int status)
{
	struct gp_drain *d = &a->drain;
	const struct gp_draining *q = &d->how[i];

	d->msg.type = GP_MSG_DONE;
	d->msg.serial = q->serial;
	d->msg.items = (struct gp_msg_items){ .way = q->way, .type = GP_PREEMPT_DRAIN, .n = 1 };
	d->msg.item[0] = (struct gp_wire_item){ .queue = d->queues[i],
						.want = GP_STOP,
						.status = status,
						.latency_ns = gp_now_ns() - q->start_ns };
	d->n--;
	d->is_on = d->n > 0;
	d->queues[i] = d->queues[d->n];
	d->how[i] = d->how[d->n];
	return gp_agent_send(a, &d->msg);
}

/* Something else is wanted of the queue. */
static int call_off(struct gp_agent *a, uint64_t queue)
{
	struct gp_drain *d = &a->drain;

	for (uint32_t i = 0; d->is_on && i < d->n; i++)
		if (d->queues[i] == queue)
			return end_drain(a, i, -ECANCELED);
	return 0;
}

static int begin_drain(struct gp_agent *a, const struct gp_msg *msg, uint64_t queue, uint64_t start_ns)
{
	struct gp_drain *d = &a->drain;

	if (!d->is_on)
		d->n = 0;
	if (d->n == GP_OWN_MOST)
		return -EBUSY;
	d->is_on = 1;
	d->queues[d->n] = queue;
	d->how[d->n++] = (struct gp_draining){ .start_ns = start_ns,
					       .end_ns = start_ns + timeout_of(&msg->items),
					       .serial = msg->serial,
					       .way = msg->items.way };
	return -EINPROGRESS;
}

static int has_finished(struct gp_agent *a, const uint64_t *queues, uint32_t n, struct gp_activity *ret)
{
	int r = a->ops->activity(a->own, queues, n, ret), error = a->ops->finished(a->own, queues, n, ret);

	return r ? r : error;
}

/* -EINPROGRESS: it is not there yet. */
static int drain_here(struct gp_agent *a, uint32_t i)
{
	const struct gp_wire_item item = { .queue = a->drain.queues[i], .want = GP_STOP };
	const struct gp_draining *q = &a->drain.how[i];
	struct gp_activity *seen = &a->drain.seen[i];
	int r = 0;

	if (seen->activity == GP_ACTIVITY_UNKNOWN) /* in itself, or because of an error */
		r = has_finished(a, &item.queue, 1, seen);
	if (r < 0)
		return r;
	if (seen->activity == GP_ACTIVITY_IDLE)
		return apply(a, &item, q->way, GP_PREEMPT_SAVE, GP_DEFAULT_TIMEOUT_NS);
	if (gp_now_ns() < q->end_ns)
		return -EINPROGRESS;
	return seen->activity == GP_ACTIVITY_BUSY ? -ETIMEDOUT : -ENODATA;
}

/* In pieces, where it may take longer than a call. */
static int drain_in_driver(struct gp_agent *a, uint32_t i)
{
	const struct gp_wire_item item = { .queue = a->drain.queues[i], .want = GP_STOP };
	const struct gp_draining *q = &a->drain.how[i];
	uint64_t now = gp_now_ns(), left = q->end_ns > now ? q->end_ns - now : 1;
	int r = apply(a, &item, q->way, GP_PREEMPT_DRAIN, left);

	return r == -ETIMEDOUT && gp_now_ns() < q->end_ns ? -EINPROGRESS : r;
}

int gp_agent_go_on_draining(struct gp_agent *a)
{
	struct gp_drain *d = &a->drain;
	int status, r = 0;

	if (!d->is_on)
		return 0;
	(void)has_finished(a, d->queues, d->n, d->seen); /* unknown is an answer too */
	for (uint32_t i = d->n; i-- > 0 && r == 0;) {    /* what ends makes place for the last */
		status = d->how[i].way & a->ops->drain_ways ? drain_in_driver(a, i) : drain_here(a, i);
		if (status != -EINPROGRESS)
			r = end_drain(a, i, status);
	}
	return r;
}

static int do_one(struct gp_agent *a, const struct gp_msg *msg, struct gp_wire_item *item, uint64_t start_ns)
{
	const struct gp_msg_items *how = &msg->items;
	int r = call_off(a, item->queue);

	if (how->type == GP_PREEMPT_DRAIN && item->want == GP_STOP)
		item->status = begin_drain(a, msg, item->queue, start_ns);
	else
		item->status = apply(a, item, how->way, how->type, timeout_of(how));
	item->latency_ns = gp_now_ns() - start_ns;
	return r;
}

/* For all of them one call, and one time. */
static int do_together(struct gp_agent *a, struct gp_msg *msg, uint64_t start_ns)
{
	const struct gp_msg_items *how = &msg->items;
	struct gp_apply_opts opts = { .size = sizeof(opts),
				      .way = how->way,
				      .type = how->type,
				      .timeout_ns = longest_call(a, timeout_of(how)) };
	struct gp_want wants[GP_WIRE_MOST_ITEMS];
	int driver = gp_agent_driver(a), r = 0;

	for (uint32_t i = 0; i < how->n; i++) {
		wants[i] = (struct gp_want){ .queue = msg->item[i].queue,
					     .want = msg->item[i].want,
					     .status = -EBADF };
		if (r == 0)
			r = call_off(a, wants[i].queue);
	}
	if (driver >= 0)
		(void)a->ops->apply(a->own, driver, wants, how->n, &opts); /* each has a status */
	for (uint32_t i = 0; i < how->n; i++) {
		msg->item[i].status = wants[i].status;
		msg->item[i].latency_ns = gp_now_ns() - start_ns;
	}
	return r;
}

static int do_each(struct gp_agent *a, struct gp_msg *msg, uint64_t start_ns, uint32_t *ret_done)
{
	int r = 0;

	*ret_done = 0;
	for (uint32_t i = 0; i < msg->items.n && r == 0; i++) {
		r = do_one(a, msg, &msg->item[i], start_ns);
		if (msg->item[i].status != -EINPROGRESS)
			msg->item[(*ret_done)++] = msg->item[i];
	}
	return r;
}

int gp_agent_do_wants(struct gp_agent *a, struct gp_msg *msg)
{
	uint64_t start = gp_now_ns();
	uint32_t n = msg->items.n, done = n;
	int r;

	if (!msg->items.way)
		msg->items.way = a->ops->usual_way;
	if (a->ops->batches && msg->items.type != GP_PREEMPT_DRAIN)
		r = do_together(a, msg, start);
	else
		r = do_each(a, msg, start, &done);
	msg->type = GP_MSG_DONE;
	msg->items.n = done;
	msg->items.text[0] = '\0';
	if (r == 0 && (done || !n))
		r = gp_agent_send(a, msg);
	return r < 0 ? r : gp_agent_go_on_draining(a);
}
