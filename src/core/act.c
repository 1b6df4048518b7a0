// SPDX-License-Identifier: MIT
/* From the run set to wants: what each queue should be, how to get there, and how often. */
#include "core/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
/* Each way of stopping is tried so often before they are compared, and again once in a while. */
#define TRIES 8
#define TRY_AGAIN 1024
/* How long a turn waits for the last one's stop to be answered. */
#define TURN_PATIENCE_NS (50 * MS)

static const struct {
	uint32_t cap;
	uint32_t mechanism;
} by_level[] = {
	{ GP_CAP_INTERRUPT, GP_MECH_INTERRUPT },
	{ GP_CAP_GATE, GP_MECH_GATE },
	{ GP_CAP_THROTTLE, GP_MECH_THROTTLE },
};

int gp_act_can_stop(const struct device *d)
{
	return !!(d->caps & (GP_CAP_INTERRUPT | GP_CAP_GATE | GP_CAP_THROTTLE));
}

/* One that never worked has no measured cost, and is no bargain for that. */
static uint64_t known_cost(const struct estimate *e)
{
	return e->cost_ns ? e->cost_ns : UINT64_MAX;
}

/* The highest level first; once all were tried, the one that was cheapest. */
uint32_t gp_act_mechanism(const struct device *d)
{
	uint32_t best = GP_MECH_NONE, rarest = GP_MECH_NONE;

	for (size_t i = 0; i < sizeof(by_level) / sizeof(by_level[0]); i++) {
		uint32_t m = by_level[i].mechanism;

		if (!(d->caps & by_level[i].cap))
			continue;
		if (d->estimate[m].tried < TRIES)
			return m;
		if (!best || known_cost(&d->estimate[m]) < known_cost(&d->estimate[best]))
			best = m;
		if (!rarest || d->estimate[m].tried < d->estimate[rarest].tried)
			rarest = m;
	}
	return d->stops_decided % TRY_AGAIN == TRY_AGAIN - 1 ? rarest : best;
}

/* A tenth of a second's worth, and at least the one that a stop needs. */
int64_t gp_act_most_tokens(const struct device *d)
{
	int64_t tenth = (int64_t)d->core->opts.max_stops_per_s * 100;

	return tenth > 1000 ? tenth : 1000;
}

static void refill(struct device *d, uint64_t now)
{
	int64_t rate = d->core->opts.max_stops_per_s, most = gp_act_most_tokens(d);
	uint64_t passed = now - d->tokens_at_ns;

	d->tokens_at_ns = now;
	if (passed > 1000 * MS)
		passed = 1000 * MS;
	d->tokens_milli += (int64_t)passed * rate / (int64_t)MS;
	if (d->tokens_milli > most)
		d->tokens_milli = most;
}

static void back_off(struct device *d, uint64_t until)
{
	d->backoff_until_ns = until;
	gp_core_arm(d->core, &d->limit_timer, until);
}

/* One cycle stops any number of queues where the device can batch, else it is one for each. */
static int may_stop(struct device *d, uint32_t nqueues, uint64_t now)
{
	uint32_t rate = d->core->opts.max_stops_per_s;

	if (d->backoff_until_ns > now)
		return 0;
	refill(d, now);
	if (d->charged && (d->caps & GP_CAP_BATCH))
		return 1;
	if (d->tokens_milli < 1000) {
		(void)snprintf(d->reason, sizeof(d->reason),
			       "preemption capped at %" PRIu32 " cycles per second", rate);
		back_off(d, now + (uint64_t)(1000 - d->tokens_milli) * MS / rate + 1);
		return 0;
	}
	d->tokens_milli -= 1000 * (int64_t)(d->caps & GP_CAP_BATCH ? 1 : nqueues);
	return 1;
}

static uint32_t allowed_want(const struct seat *s)
{
	if (s->view.client_class != GP_CLASS_ONLINE && s->device->background)
		return GP_BACKGROUND;
	return GP_RUN;
}

static uint32_t seat_target(struct seat *s, uint64_t now)
{
	struct device *d = s->device;

	if (!s->active || s->view.running || s->guarded || !gp_act_can_stop(d))
		return allowed_want(s);
	if (s->target == GP_STOP)
		return GP_STOP;
	if (!may_stop(d, s->nqueues, now)) {
		d->limited++;
		return allowed_want(s);
	}
	if (!d->charged)
		d->preemptions++;
	d->charged = 1;
	return GP_STOP;
}

void gp_act_reconcile(struct device *d, uint64_t now)
{
	d->charged = 0;
	gp_list_each_safe(pos, &d->dirty_seats) {
		struct seat *s = gp_container(pos, struct seat, in_dirty);
		uint32_t target = seat_target(s, now);

		gp_list_remove(&s->in_dirty);
		if (target == s->target)
			continue;
		s->target = target;
		gp_list_each(qpos, &s->queues)
			gp_act_queue(gp_container(qpos, struct queue, in_seat), now);
	}
}

/* Puts the queue in line for what it should be, or takes it out of line if it is that already. */
void gp_act_queue(struct queue *q, uint64_t now)
{
	struct device *d = q->seat->device;

	q->target = q->held ? GP_STOP : q->seat->target;
	if (q->under_way)
		return; /* gp_core_done() looks again */
	gp_list_remove(&q->in_pending);
	if (q->target == q->have)
		return;
	if (q->retry_at_ns > now) {
		gp_core_arm(d->core, &q->retry_timer, q->retry_at_ns);
		return;
	}
	gp_list_append(&d->pending, &q->in_pending);
	if (q->target == GP_STOP && (d->caps & GP_CAP_TAKES_TURNS) && !d->stops_under_way)
		gp_core_arm(d->core, &d->patience_timer, now + TURN_PATIENCE_NS);
}

static int reserve_wants(struct device *d, size_t n)
{
	size_t capacity = d->wants_capacity ? d->wants_capacity : 64;
	struct gp_want *wants;

	while (capacity < n)
		capacity *= 2;
	if (capacity == d->wants_capacity)
		return 0;
	wants = realloc(d->wants, capacity * sizeof(*wants));
	if (!wants)
		return -ENOMEM;
	d->wants = wants;
	d->wants_capacity = capacity;
	return 0;
}

static void hand_out(struct queue *q, struct gp_want *want, uint32_t mechanism)
{
	gp_list_remove(&q->in_pending);
	q->asked = q->target;
	q->under_way = 1;
	if (q->asked == GP_STOP)
		q->mechanism = mechanism;
	*want = (struct gp_want){ .queue = q->handle, .want = q->asked };
}

/*
 * Where two background clients thrash, the next one's turn begins when the last one is
 * off: for the length of a call the device idles, which costs less than both on it.  A
 * stop that is not answered in time holds nobody back: when patience_timer, set with the
 * first of them, has fired.
 */
static int stops_go_first(const struct device *d)
{
	if (!(d->caps & GP_CAP_TAKES_TURNS) || !d->background)
		return 0;
	if (d->stops_under_way)
		return d->patience_timer.timer.place != 0;
	gp_list_each(pos, &d->pending) {
		if (gp_container(pos, struct queue, in_pending)->target == GP_STOP)
			return 1;
	}
	return 0;
}

static void take_from(struct device *d, struct gp_action *ret)
{
	uint32_t mechanism = gp_act_mechanism(d);
	int only_stops = stops_go_first(d);

	*ret = (struct gp_action){ .device = d->id };
	gp_list_each_safe(pos, &d->pending) {
		struct queue *q = gp_container(pos, struct queue, in_pending);

		if (only_stops && q->target != GP_STOP && q->have == GP_STOP)
			continue;
		if (reserve_wants(d, ret->nwants + 1) < 0)
			break; /* what is left stays in line */
		hand_out(q, &d->wants[ret->nwants++], mechanism);
		ret->stops += q->asked == GP_STOP;
	}
	ret->wants = d->wants;
	ret->opts = (struct gp_apply_opts){ .size = sizeof(ret->opts),
					    .lease_ns = d->core->opts.lease_ns,
					    .mechanism = ret->stops ? mechanism : GP_MECH_NONE };
	d->stops_under_way += ret->stops;
	if (!ret->stops)
		return;
	d->stops_decided++;
	d->estimate[mechanism].tried++;
}

int gp_core_take(struct gp_core *core, struct gp_action *ret)
{
	gp_list_each(pos, &core->devices) {
		struct device *d = gp_container(pos, struct device, node);

		if (gp_list_empty(&d->pending))
			continue;
		take_from(d, ret);
		if (ret->nwants)
			return 1;
	}
	return 0;
}

static void count_success(struct queue *q, uint64_t latency_ns)
{
	struct device *d = q->seat->device;
	struct estimate *e = &d->estimate[q->mechanism];

	q->retries = 0;
	q->retry_at_ns = 0;
	if (q->asked != GP_STOP) {
		d->resumes += q->have == GP_STOP;
		if (q->have == GP_STOP)
			gp_hist_add(&d->resume, latency_ns);
		return;
	}
	d->suspends++;
	d->failures_in_row = 0;
	gp_hist_add(&d->suspend, latency_ns);
	e->cost_ns = e->cost_ns ? (7 * e->cost_ns + latency_ns) / 8 : latency_ns;
	e->cost_ns = e->cost_ns ? e->cost_ns : 1; /* 0 is unknown */
}

static uint64_t delay_after(uint32_t failures, uint32_t most_shift)
{
	return MS << (failures < most_shift ? failures : most_shift);
}

/*
 * A stop that failed leaves the queue running, and all stops wait, longer each time.
 * A resume that failed is tried again soon, for ever: nothing stays stopped because of us.
 */
static void count_failure(struct queue *q, int status, uint64_t now)
{
	struct device *d = q->seat->device;
	const char *what = q->asked == GP_STOP ? "stopping" : "resuming";

	d->failures++;
	(void)snprintf(d->reason, sizeof(d->reason), "%s queue %" PRIu64 " failed: %s", what, q->handle,
		       strerror(-status));
	if (q->asked == GP_STOP) {
		if (d->backoff_until_ns <= now) /* one call that fails for many queues is one failure */
			back_off(d, now + delay_after(d->failures_in_row++, 10));
		q->retry_at_ns = d->backoff_until_ns;
	} else {
		q->retry_at_ns = now + delay_after(q->retries++, 5);
	}
}

int gp_core_done(struct gp_core *core, const struct gp_done *done, uint64_t now)
{
	struct queue *q = gp_map_get(&core->queues, done->want.queue);
	uint32_t asked = q && q->under_way;

	if (!q)
		return -ENOENT; /* it went while the want was under way */
	if (done->want.want > GP_STOP || done->want.status > 0 || done->want.status == -EINPROGRESS)
		return -EINVAL;
	if (asked && done->want.want != q->asked)
		return -EINVAL;
	gp_act_settled(q);
	if (done->want.status < 0) {
		if (asked)
			count_failure(q, done->want.status, now);
	} else {
		/* Not asked for: a lease ended, or somebody else did it. It is so all the same. */
		if (asked)
			count_success(q, done->latency_ns);
		q->have = done->want.want;
	}
	gp_act_queue(q, now);
	return 0;
}

/* Nothing is under way on the queue any more. */
void gp_act_settled(struct queue *q)
{
	struct device *d = q->seat->device;

	if (q->under_way && q->asked == GP_STOP)
		d->stops_under_way--;
	q->under_way = 0;
}

static uint32_t queue_state(const struct queue *q)
{
	if (q->under_way && q->asked == GP_STOP)
		return GP_QUEUE_SUSPENDING;
	if (q->have != GP_STOP)
		return GP_QUEUE_RUNNING;
	return q->under_way ? GP_QUEUE_RESUMING : GP_QUEUE_SUSPENDED;
}

int gp_core_queue_status(struct gp_core *core, uint64_t queue, struct gp_core_queue_status *ret)
{
	struct queue *q = gp_map_get(&core->queues, queue);

	if (!q)
		return -ENOENT;
	*ret = (struct gp_core_queue_status){ .client = q->seat->client->id,
					      .device = q->seat->device->id,
					      .state = queue_state(q),
					      .client_class = q->seat->client->client_class,
					      .held = q->held };
	return 0;
}

int gp_core_device_status(struct gp_core *core, uint32_t device, struct gp_core_status *ret)
{
	struct device *d = gp_core_find_device(core, device);

	if (!d)
		return -ENOENT;
	*ret = (struct gp_core_status){ .mechanism = d->background ? GP_MECH_YIELD : gp_act_mechanism(d),
					.ejected = d->ejected,
					.preemptions = d->preemptions,
					.suspends = d->suspends,
					.resumes = d->resumes,
					.failures = d->failures,
					.limited = d->limited,
					.backoff_until_ns = d->backoff_until_ns,
					.suspend = &d->suspend,
					.resume = &d->resume };
	(void)snprintf(ret->policy, sizeof(ret->policy), "%s", d->policy->ops.name);
	(void)snprintf(ret->reason, sizeof(ret->reason), "%s", d->reason);
	(void)snprintf(ret->ejection, sizeof(ret->ejection), "%s", d->ejection);
	return 0;
}
