// SPDX-License-Identifier: MIT
/* From the run set to wants: what each queue should be, how to get there, and how often. */
#include "core/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
/* A cycle, in the units of the budget: each nanosecond adds as many as there may be cycles per second. */
#define CYCLE 1000000000ull
/* Each way of stopping is tried so often before they are compared, and again once in a while. */
#define TRIES 8
#define TRY_AGAIN 1024
/* How long a turn waits for the last one to be off, and the part of it that it waits at most. */
#define TURN_PATIENCE_NS (50 * MS)
#define TURN_PATIENCE_PART 2

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

static int has_unpaid(const struct seat *s)
{
	return !gp_list_empty(&s->unpaid);
}

/* A tenth of a second's worth, and at least the one that a stop needs. */
uint64_t gp_act_full_credit(const struct device *d)
{
	uint64_t tenth = d->core->opts.max_stops_per_s * (CYCLE / 10);

	return tenth > CYCLE ? tenth : CYCLE;
}

static void refill(struct device *d, uint64_t now)
{
	uint64_t most = gp_act_full_credit(d), passed = now - d->credit_at_ns;

	d->credit_at_ns = now;
	if (passed > 1000 * MS)
		passed = 1000 * MS; /* that fills it, whatever the rate */
	d->credit += passed * d->core->opts.max_stops_per_s;
	if (d->credit > most)
		d->credit = most;
}

/* Takes a cycle from the budget. Where the device can batch, one is enough for all that go with it. */
static int pay_one(struct device *d, uint64_t now)
{
	if (d->paid && (d->caps & GP_CAP_BATCH))
		return 1;
	refill(d, now);
	if (d->credit < CYCLE)
		return 0;
	d->credit -= CYCLE;
	d->paid = 1;
	return 1;
}

static void wait_for_credit(struct device *d, uint64_t now)
{
	uint32_t rate = d->core->opts.max_stops_per_s;

	gp_core_arm(d->core, &d->limit_timer, now + (CYCLE - d->credit + rate - 1) / rate);
}

/* In a crowd turns are short: one that waited as long as a long one does would be over before it began. */
static uint64_t patience(const struct device *d)
{
	uint64_t most = d->policy->limits.quantum_ns / TURN_PATIENCE_PART;

	return most < TURN_PATIENCE_NS ? most : TURN_PATIENCE_NS;
}

static void put_in_line(struct queue *q, uint64_t now)
{
	struct device *d = q->seat->device;

	gp_list_remove(&q->in_pending);
	gp_list_append(&d->pending, &q->in_pending);
	if (q->have == GP_STOP && (d->caps & GP_CAP_TAKES_TURNS) && !d->patience_timer.timer.place)
		gp_core_arm(d->core, &d->patience_timer, now + patience(d));
}

static void stop_unpaid(struct seat *s, uint64_t now)
{
	gp_list_each_safe(pos, &s->unpaid) {
		struct queue *q = gp_container(pos, struct queue, in_pending);

		put_in_line(q, now);
		s->owes += q->reach != GP_REACH_FREE;
	}
}

/* Not one that changed its mind, nor one that has nothing but free ones to stop. */
static int is_to_pay(const struct seat *s)
{
	gp_list_each(pos, &s->unpaid)
		if (gp_container(pos, struct queue, in_pending)->reach != GP_REACH_FREE)
			return 1;
	return s->owes > 0;
}

/*
 * Each seat with queues to stop, or that still owes for those it stopped, pays one cycle, and
 * round again, for as long as the budget lasts.  A client is stopped as a whole with the first
 * cycle that it pays, and not again before it has paid for all.  So one that owes nothing waits
 * for one cycle of each other seat at most, however many queues they have and whatever they do.
 */
void gp_act_pay_all(struct device *d, uint64_t now)
{
	while (!gp_list_empty(&d->payers)) {
		struct seat *s = gp_container(d->payers.next, struct seat, in_payers);

		if (is_to_pay(s) && !pay_one(d, now)) {
			wait_for_credit(d, now);
			return;
		}
		gp_list_remove(&s->in_payers);
		if (!s->owes)
			stop_unpaid(s, now);
		if (s->owes)
			s->owes--;
		if (s->owes || has_unpaid(s))
			gp_list_append(&d->payers, &s->in_payers);
	}
}

/* For a while, or until online is gone. */
int gp_act_backs_off(const struct seat *s)
{
	return s->backoff_timer.timer.place || s->cannot_stop;
}

void gp_act_pay(struct seat *s, uint64_t now)
{
	if (gp_act_backs_off(s))
		return; /* its timer calls again */
	if (gp_list_empty(&s->in_payers))
		gp_list_append(&s->device->payers, &s->in_payers);
	gp_act_pay_all(s->device, now);
}

void gp_act_backed_off(struct seat *s, uint64_t now)
{
	gp_seat_dirty(s);
	gp_act_pay(s, now);
}

#define MOST_NAME 64 /* of a reason, so that there is room for what happened */

/* Who it is comes first: what is wrong is often read where a line is short. */
__attribute__((format(printf, 3, 4))) static void blame(const struct seat *s, uint64_t now,
							const char *format, ...)
{
	const struct gp_core_opts *opts = &s->device->core->opts;
	struct device *d = s->device;
	size_t n;
	va_list args;

	(void)snprintf(d->reason, MOST_NAME, "client %" PRIu64, s->client->id);
	if (opts->name)
		opts->name(opts->note_arg, s->client->id, d->reason, MOST_NAME);
	n = strlen(d->reason);
	d->reason[n++] = ' ';
	va_start(args, format);
	(void)vsnprintf(d->reason + n, sizeof(d->reason) - n, format, args);
	va_end(args);
	d->reason_ns = now;
}

static void note_put_off(const struct seat *s)
{
	gp_core_note(s->device, &(struct gp_core_note){ .kind = GP_NOTE_PUT_OFF,
							.client = s->client->id,
							.text = s->device->reason });
}

static int can_yield(const struct seat *s)
{
	return s->view.client_class != GP_CLASS_ONLINE && s->device->background && !s->cannot_yield;
}

/* Who cannot be stopped starves in the background: it is out of it for its slice. */
static uint32_t allowed_want(const struct seat *s)
{
	return can_yield(s) && !(s->cannot_stop && s->guarded) ? GP_BACKGROUND : GP_RUN;
}

static int is_parked(const struct seat *s)
{
	const struct device *d = s->device;

	return s->view.client_class != GP_CLASS_ONLINE && (d->parks || (s->cannot_yield && d->online_active));
}

static int is_to_wait(const struct seat *s)
{
	return s->active && (!s->view.running || is_parked(s)) && !s->guarded;
}

static int gang_is_to_wait(const struct seat *of)
{
	int runs = 0;

	gp_list_each(pos, &of->client->seats) {
		const struct seat *s = gp_container(pos, struct seat, in_client);

		if (gp_list_empty(&s->in_gang) || !s->active)
			continue;
		if (is_to_wait(s) && s->device->online_active)
			return 1;
		runs |= !is_to_wait(s);
	}
	return of->active && !runs;
}

/* Whose stop failed yields meanwhile, where it can: with slices of its own it would keep online waiting. */
static int can_stop(const struct seat *s)
{
	return gp_act_can_stop(s->device) && !s->cannot_stop &&
	       !(gp_act_backs_off(s) && allowed_want(s) == GP_BACKGROUND);
}

static uint32_t seat_target(const struct seat *s)
{
	int waits = gp_list_empty(&s->in_gang) ? is_to_wait(s) : s->active && gang_is_to_wait(s);

	return waits && can_stop(s) ? GP_STOP : allowed_want(s);
}

static uint32_t queue_target(const struct queue *q)
{
	if (q->doubtful)
		return allowed_want(q->seat);
	if (q->held && q->reach != GP_REACH_NONE)
		return GP_STOP;
	if (q->reach == GP_REACH_ALL || q->reach == GP_REACH_FREE)
		return q->seat->target;
	return q->have == GP_STOP ? allowed_want(q->seat) : q->have;
}

/* Whether what is wanted need not wait for the stop that is under way. */
static int overtakes(const struct queue *q)
{
	if (q->asked != GP_STOP || !(q->seat->device->caps & GP_CORE_OVERTAKES))
		return 0;
	return q->target != GP_STOP || (q->for_hold_alone && q->seat->target == GP_STOP);
}

/* Puts the queue in line for what it should be, or takes it out of line if it is, or will be, that already.
 * gp_core_done() looks again. */
static void aim(struct queue *q, uint64_t now)
{
	q->target = queue_target(q);
	gp_list_remove(&q->in_pending);
	if (q->under_way ? !overtakes(q) : q->target == q->have)
		return;
	if (q->target == GP_STOP && !q->held)
		gp_list_append(&q->seat->unpaid, &q->in_pending);
	else if (q->retry_at_ns > now)
		gp_core_arm(q->seat->device->core, &q->retry_timer, q->retry_at_ns);
	else
		put_in_line(q, now);
}

static void ask_to_stop(struct seat *s, uint64_t now)
{
	struct device *d = s->device;

	gp_act_pay(s, now);
	if (!has_unpaid(s) || s->cannot_stop)
		return;
	d->limited++;
	if (gp_act_backs_off(s))
		return;
	(void)snprintf(d->reason, sizeof(d->reason), "preemption capped at %" PRIu32 " cycles per second",
		       d->core->opts.max_stops_per_s);
	d->reason_ns = now;
	note_put_off(s);
}

void gp_act_queue(struct queue *q, uint64_t now)
{
	int waits = has_unpaid(q->seat);

	aim(q, now);
	if (!waits && has_unpaid(q->seat))
		ask_to_stop(q->seat, now);
}

void gp_act_reconcile(struct device *d, uint64_t now)
{
	gp_list_each_safe(pos, &d->dirty_seats) {
		struct seat *s = gp_container(pos, struct seat, in_dirty);
		uint32_t before = s->target;

		gp_list_remove(&s->in_dirty);
		s->target = seat_target(s);
		gp_seat_watch(s, now);
		if (s->target == before)
			continue;
		gp_seat_use(s, now);
		gp_list_each(qpos, &s->queues)
			aim(gp_container(qpos, struct queue, in_seat), now);
		if (has_unpaid(s))
			ask_to_stop(s, now);
	}
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

static void set_have(struct queue *q, uint32_t have)
{
	gp_seat_count(q, -1);
	q->have = have;
	gp_seat_count(q, 1);
}

/* It may have been stopped, or resumed, or not. */
static void doubt(struct queue *q)
{
	q->doubtful = 1;
	q->undoes |= q->have != GP_STOP;
	q->target = queue_target(q);
	set_have(q, GP_STOP);
}

static void hand_out(struct queue *q, struct gp_want *want, uint32_t mechanism, uint64_t now)
{
	gp_list_remove(&q->in_pending);
	if (q->under_way && q->target != GP_STOP)
		doubt(q);
	gp_act_settled(q); /* what it overtakes */
	q->asked = q->target;
	q->asked_ns = now;
	q->under_way = 1;
	q->for_hold_alone = q->held && q->seat->target != GP_STOP;
	if (q->asked == GP_STOP)
		q->mechanism = mechanism;
	*want = (struct gp_want){ .queue = q->handle, .want = q->asked };
}

int gp_act_is_stopping(const struct device *d)
{
	if (d->stops_under_way)
		return 1;
	gp_list_each(pos, &d->pending) {
		if (gp_container(pos, struct queue, in_pending)->target == GP_STOP)
			return 1;
	}
	return 0;
}

/*
 * Where two background clients thrash, the next one's turn begins when the last one is
 * off: for the length of a call the device idles, which costs less than both on it.  Nobody
 * is held back for longer than patience_timer, set with the first that is to go on: not by a
 * stop that is never answered, nor by one that is needed again and again.
 */
static int stops_go_first(const struct device *d)
{
	return d->background && d->patience_timer.timer.place && gp_act_is_stopping(d);
}

/*
 * A request that is open would feel a call that gives the device to another.  When offline stood still for
 * long enough it waits no more, nor where online is stopped as others are: its slices may be shorter than
 * the patience.
 */
static int feels_resumes(const struct device *d)
{
	return d->open_hints && !d->park_spent && !(d->policy->ops.flags & GP_POLICY_STOPS_ONLINE);
}

static int is_held_back(const struct queue *q, int only_stops)
{
	const struct device *d = q->seat->device;
	int is_offline = q->seat->view.client_class != GP_CLASS_ONLINE;

	if (q->target == GP_STOP || q->have != GP_STOP)
		return 0;
	return only_stops || (is_offline && d->background && d->patience_timer.timer.place &&
			      feels_resumes(d) && !q->seat->guarded);
}

/*
 * From the slowest of the stops that have ended: when none is under way any more, or others are
 * handed out.  One that is never answered keeps nothing from being learnt.
 */
static void learn(struct device *d)
{
	for (uint32_t i = 0; i < GP_MECH_COUNT; i++) {
		struct estimate *e = &d->estimate[i];

		if (e->slowest_ns)
			e->cost_ns = e->cost_ns ? (7 * e->cost_ns + e->slowest_ns) / 8 : e->slowest_ns;
		e->slowest_ns = 0;
	}
}

static void take_from(struct device *d, struct gp_action *ret, uint64_t now)
{
	uint32_t mechanism = gp_act_mechanism(d), preempts = 0;
	int only_stops = stops_go_first(d), held_back = 0;

	*ret = (struct gp_action){ .device = d->id };
	gp_list_each_safe(pos, &d->pending) {
		struct queue *q = gp_container(pos, struct queue, in_pending);

		if (is_held_back(q, only_stops)) {
			held_back = 1;
			continue;
		}
		if (reserve_wants(d, ret->nwants + 1) < 0)
			break; /* what is left stays in line */
		hand_out(q, &d->wants[ret->nwants++], mechanism, now);
		ret->stops += q->asked == GP_STOP;
		preempts |= q->asked == GP_STOP && !q->held;
	}
	if (!held_back)
		gp_core_arm(d->core, &d->patience_timer, GP_NEVER);
	ret->wants = d->wants;
	ret->opts = (struct gp_apply_opts){ .size = sizeof(ret->opts),
					    .lease_ns = d->core->opts.lease_ns,
					    .mechanism = ret->stops ? mechanism : GP_MECH_NONE };
	d->stops_under_way += ret->stops;
	d->preemptions += preempts;
	if (!ret->stops)
		return;
	d->paid = 0;
	d->stops_decided++;
	d->estimate[mechanism].tried++;
	learn(d);
}

int gp_core_take(struct gp_core *core, struct gp_action *ret, uint64_t now)
{
	gp_list_each(pos, &core->devices) {
		struct device *d = gp_container(pos, struct device, node);

		if (gp_list_empty(&d->pending))
			continue;
		take_from(d, ret, now);
		if (ret->nwants)
			return 1;
	}
	return 0;
}

static int is_off(const struct queue *q)
{
	if (q->reach != GP_REACH_ALL && q->reach != GP_REACH_FREE)
		return 1; /* the policy has no say in it */
	return q->have == GP_STOP && !q->doubtful;
}

/* But for this one. Its neighbour, which is often stopped next, is asked first. */
static int others_are_off(const struct queue *q)
{
	const struct gp_list *all = &q->seat->queues;

	for (const struct gp_list *pos = q->in_seat.next; pos != &q->in_seat; pos = pos->next)
		if (pos != all && !is_off(gp_container(pos, struct queue, in_seat)))
			return 0;
	return 1;
}

static void count_success(struct queue *q, uint64_t latency_ns, uint64_t now)
{
	struct device *d = q->seat->device;
	struct estimate *e = &d->estimate[q->mechanism];
	uint64_t took = now > q->asked_ns ? now - q->asked_ns : 1;

	q->retries = 0;
	q->retry_at_ns = 0;
	if (q->asked != GP_STOP) {
		if (q->have != GP_STOP || q->undoes)
			return;
		d->resumes++;
		gp_hist_add(&d->resume, latency_ns);
		return;
	}
	d->suspends++;
	if (q->seat->failures_in_row && others_are_off(q)) /* else what fails would be tried again at once */
		q->seat->failures_in_row = 0;
	if (q->seat->cannot_stop && q->for_hold_alone) /* it can, by now */
		gp_seat_cannot_stop(q->seat, 0);
	gp_hist_add(&d->suspend, latency_ns);
	if (q->for_hold_alone && (d->caps & GP_CORE_OVERTAKES))
		return; /* it may have been left to run empty */
	if (q->reach == GP_REACH_FREE)
		return; /* nobody but its client says that there is anything to stop */
	e->slowest_ns = took > e->slowest_ns ? took : e->slowest_ns;
	if (!d->stops_under_way)
		learn(d);
}

static uint64_t delay_after(uint32_t failures, uint32_t most_shift)
{
	return MS << (failures < most_shift ? failures : most_shift);
}

/* One call that fails for many queues is one failure. */
static void back_off(struct seat *s, uint64_t now)
{
	if (gp_act_backs_off(s))
		return;
	gp_core_arm(s->device->core, &s->backoff_timer, now + delay_after(s->failures_in_row++, 10));
	note_put_off(s);
	gp_list_remove(&s->in_payers);
	gp_seat_dirty(s);
}

/* The next mechanism: it stays in the background, whoever's turn it is, and nobody asks again. */
static void refuse_stop(struct queue *q, int status, uint64_t now)
{
	struct device *d = q->seat->device;
	int is_known = (int)q->seat->cannot_stop;

	blame(q->seat, now, "cannot be stopped: %s; it stays in the background instead", strerror(-status));
	if (is_known)
		return;
	gp_seat_cannot_stop(q->seat, 1);
	gp_list_remove(&q->seat->in_payers);
	gp_core_note(d, &(struct gp_core_note){ .kind = GP_NOTE_NO_STOP,
						.client = q->seat->client->id,
						.queue = q->handle,
						.status = status,
						.tried = 1 + GP_ATTEMPT_SUSPEND,
						.text = d->reason });
}

/* Trying again would not help; but where nothing else can be done it is tried. */
static int is_no_stop(const struct queue *q, int status)
{
	return (status == -ENOTSUP || status == -EPERM) && can_yield(q->seat);
}

/*
 * A stop that failed leaves the queue running, and all stops of its client wait, longer each
 * time, but for holds; nobody else's do.  A resume that failed is tried again soon, for ever:
 * nothing stays stopped because of us.
 */
static void count_failure(struct queue *q, int status, uint64_t now)
{
	static const char *const done[GP_ATTEMPTS] = { "stopped", "resumed", "made to yield" };
	struct device *d = q->seat->device;

	gp_stats_failure(q, status);
	blame(q->seat, now, "was not %s: %s", done[gp_stats_attempt(q)], strerror(-status));
	if (q->asked == GP_STOP) {
		if (is_no_stop(q, status))
			refuse_stop(q, status, now);
		else if (!q->for_hold_alone || !(d->caps & GP_CORE_OVERTAKES))
			back_off(q->seat, now);
		if (q->held && status != -ESRCH)
			gp_holds_forget(d->core->holds, q->handle);
	} else {
		q->retry_at_ns = now + delay_after(q->retries++, 10);
	}
}

/* It is so, whether it was asked for or not: a lease ended, or somebody else did it. */
static void settle(struct queue *q, const struct gp_done *done, int asked, uint64_t now)
{
	uint32_t was = q->have;

	if (asked)
		count_success(q, done->latency_ns, now);
	set_have(q, done->want.want);
	q->undoes = 0;
	if (q->held)
		gp_seat_update(q->seat, now);
	if (q->have != GP_STOP)
		q->doubtful = 0;
	if (asked || was != q->have)
		gp_core_note(
			q->seat->device,
			&(struct gp_core_note){ .kind = q->have == GP_STOP ? GP_NOTE_STOPPED : GP_NOTE_RUNS,
						.client = q->seat->client->id,
						.queue = q->handle,
						.latency_ns = done->latency_ns,
						.ran = was != GP_STOP,
						.unasked = !asked });
}

/* Trying again would not help. */
static int is_refusal(const struct gp_done *done)
{
	int status = done->want.status;

	return done->want.want == GP_BACKGROUND &&
	       (status == -ENOTSUP || status == -EPERM || status == -EINVAL || status == -ENODATA);
}

/* The next mechanism: its seat is stopped while online works, though that was refused before. */
static void refuse_yield(struct queue *q, int status, uint64_t now)
{
	struct device *d = q->seat->device;

	if (q->seat->cannot_yield)
		return;
	gp_stats_failure(q, status);
	blame(q->seat, now, "cannot yield: %s; it is stopped for requests instead", strerror(-status));
	gp_seat_cannot_yield(q->seat, 1);
	if (q->seat->cannot_stop)
		gp_seat_cannot_stop(q->seat, 0);
	gp_core_note(d, &(struct gp_core_note){ .kind = GP_NOTE_NO_YIELD,
						.client = q->seat->client->id,
						.queue = q->handle,
						.status = status,
						.tried = 1 + GP_ATTEMPT_YIELD,
						.text = d->reason });
}

static void fail(struct queue *q, const struct gp_done *done, uint64_t now)
{
	const struct gp_core_note note = { .kind = q->asked == GP_STOP ? GP_NOTE_STOPPED : GP_NOTE_RUNS,
					   .client = q->seat->client->id,
					   .queue = q->handle,
					   .status = done->want.status,
					   .tried = 1 + gp_stats_attempt(q) };
	int status = done->want.status;

	if (is_refusal(done)) {
		refuse_yield(q, status, now);
		return;
	}
	count_failure(q, status, now);
	if (done->doubtful)
		doubt(q);
	if (q->asked == GP_STOP && status == -ESRCH)
		q->reach = GP_REACH_NONE; /* until we hear otherwise */
	gp_core_note(q->seat->device, &note);
	gp_core_follow_holds(q->seat->device->core, now);
}

int gp_core_done(struct gp_core *core, const struct gp_done *done, uint64_t now)
{
	struct queue *q = gp_map_get(&core->queues, done->want.queue);
	int asked = q && q->under_way;

	if (!q)
		return -ENOENT; /* it went while the want was under way */
	if (done->want.want > GP_STOP || done->want.status > 0 || done->want.status == -EINPROGRESS)
		return -EINVAL;
	if (asked && done->want.want != q->asked)
		return -EINVAL;
	gp_act_settled(q);
	if (done->want.status == 0)
		settle(q, done, asked, now);
	else if (asked)
		fail(q, done, now);
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

/* 0: it is not set. */
static uint64_t due(const struct timer *t)
{
	return t->timer.place ? t->timer.at_ns : 0;
}

int gp_core_queue_status(struct gp_core *core, uint64_t queue, struct gp_core_queue_status *ret)
{
	struct queue *q = gp_map_get(&core->queues, queue);

	if (!q)
		return -ENOENT;
	*ret = (struct gp_core_queue_status){ .client = q->seat->client->id,
					      .device = q->seat->device->id,
					      .state = queue_state(q),
					      .wanted = q->target,
					      .client_class = q->own_class ? q->own_class
									   : q->seat->client->client_class,
					      .held = q->held,
					      .for_others = q->seat->target == GP_STOP,
					      .backoff_until_ns = due(&q->seat->backoff_timer) };
	return 0;
}

/* When the next stop can be paid for, if one waits. */
static uint64_t capped_until(const struct device *d)
{
	gp_list_each(pos, &d->payers) {
		if (has_unpaid(gp_container(pos, struct seat, in_payers)))
			return due(&d->limit_timer);
	}
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
					.hinted = d->hinted,
					.sampled = d->sampled,
					.backoff_until_ns = capped_until(d),
					.suspend = &d->suspend,
					.resume = &d->resume };
	(void)snprintf(ret->policy, sizeof(ret->policy), "%s", d->policy->ops.name);
	(void)snprintf(ret->reason, sizeof(ret->reason), "%s", d->reason);
	ret->reason_ns = d->reason_ns;
	(void)snprintf(ret->ejection, sizeof(ret->ejection), "%s", d->ejection);
	return 0;
}
