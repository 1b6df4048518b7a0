// SPDX-License-Identifier: MIT
/* What the daemon wants of the queues. The answer has the same items, and how long each took from here. */
#include "agent/internal.h"

#include <errno.h>

#define SECOND 1000000000ull

/* A drain in the driver keeps this thread from everything else: not for longer than the lease. */
static uint64_t longest_call(const struct gp_agent *a, uint64_t timeout_ns)
{
	uint64_t now = gp_now_ns(), end = a->heard_ns + a->lease_ns, most = end > now ? end - now : 1;

	if (!timeout_ns)
		timeout_ns = SECOND;
	return timeout_ns < most ? timeout_ns : most;
}

static void apply(struct gp_agent *a, const struct gp_msg_items *how, uint32_t type,
		  struct gp_wire_item *item, uint64_t start_ns)
{
	struct gp_apply_opts opts = { .size = sizeof(opts),
				      .way = how->way,
				      .type = type,
				      .timeout_ns = longest_call(a, how->timeout_ns) };
	struct gp_want want = { .queue = item->queue, .want = item->want };
	int kfd = gp_agent_kfd(a);

	item->status = kfd < 0 ? -EBADF : gp_own_apply(a->own, kfd, &want, 1, &opts);
	item->latency_ns = gp_now_ns() - start_ns;
}

static int answer(struct gp_agent *a, struct gp_msg *msg)
{
	msg->type = GP_MSG_DONE;
	msg->items.text[0] = '\0';
	return gp_agent_send(a, msg);
}

/* A queue that somebody wants to run is not waited for any more. */
static void call_off(struct gp_agent *a, const struct gp_wire_item *item)
{
	struct gp_drain *d = &a->drain;

	if (!d->is_on || item->want != GP_RUN)
		return;
	for (uint32_t i = 0; i < d->msg.items.n; i++)
		if (d->msg.item[i].queue == item->queue && d->msg.item[i].status == -EINPROGRESS)
			d->msg.item[i].status = -ECANCELED;
}

/* We drain in this thread, between other things, unless the driver does it. */
static int drains_here(const struct gp_msg_items *how, const struct gp_wire_item *item)
{
	return how->type == GP_PREEMPT_DRAIN && how->way == GP_KFD_WAY_UPDATE && item->want == GP_STOP;
}

static void do_at_once(struct gp_agent *a, struct gp_msg *msg, uint64_t start_ns)
{
	for (uint32_t i = 0; i < msg->items.n; i++) {
		struct gp_wire_item *item = &msg->item[i];

		call_off(a, item);
		if (drains_here(&msg->items, item))
			item->status = a->drain.is_on ? -EBUSY : -EINPROGRESS;
		else
			apply(a, &msg->items, msg->items.type, item, start_ns);
	}
}

static int is_waiting(const struct gp_msg *msg)
{
	for (uint32_t i = 0; i < msg->items.n; i++)
		if (msg->item[i].status == -EINPROGRESS)
			return 1;
	return 0;
}

int gp_agent_do_wants(struct gp_agent *a, struct gp_msg *msg)
{
	uint64_t start = gp_now_ns();

	if (msg->items.way == GP_KFD_WAY_AUTO)
		msg->items.way = GP_KFD_WAY_UPDATE;
	do_at_once(a, msg, start);
	if (!is_waiting(msg))
		return answer(a, msg);
	a->drain.is_on = 1;
	a->drain.start_ns = start;
	a->drain.end_ns = start + (msg->items.timeout_ns ? msg->items.timeout_ns : SECOND);
	a->drain.msg = *msg;
	return gp_agent_go_on_draining(a);
}

static void drain_one(struct gp_agent *a, struct gp_wire_item *item)
{
	struct gp_drain *d = &a->drain;
	struct gp_activity activity;
	int r = gp_own_activity(a->own, &item->queue, 1, &activity);

	if (r == 0 && activity.activity == GP_ACTIVITY_IDLE) {
		apply(a, &d->msg.items, GP_PREEMPT_SAVE, item, d->start_ns);
		return;
	}
	if (r == 0 && gp_now_ns() >= d->end_ns)
		r = -ETIMEDOUT;
	if (r < 0) {
		item->status = r;
		item->latency_ns = gp_now_ns() - d->start_ns;
	}
}

int gp_agent_go_on_draining(struct gp_agent *a)
{
	struct gp_drain *d = &a->drain;

	for (uint32_t i = 0; i < d->msg.items.n; i++)
		if (d->msg.item[i].status == -EINPROGRESS)
			drain_one(a, &d->msg.item[i]);
	if (is_waiting(&d->msg))
		return 0;
	d->is_on = 0;
	return answer(a, &d->msg);
}
