// SPDX-License-Identifier: MIT
/* The run set of a device and the policy that keeps it: hands it the clients, takes its decisions, throws it
 * out. */
#include "core/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "policy/registry.h"

/* Asking to be called again at once, or nearly so, so often in a row, is spinning. */
#define MAX_SPINS 1000
/* A policy's state, and its memory of a client, are at most this large. */
#define MAX_MEMORY (1u << 20)
#define SPIN_NS 1000
/* A turn is never shorter than this part of the quantum. */
#define LEAST_TURN 10
/* No stop is faster: who answers sooner has not done it yet. */
#define LEAST_STOP_NS 50000
/* Whoever takes longer is not waited for: requests would have no time to spare for as long as it is there. */
#define MOST_STOP_NS 100000000
#define KNOWN_FLAGS (GP_POLICY_STOPS_ONLINE | GP_POLICY_NEEDS_IDLE)

__attribute__((format(printf, 2, 3))) static void fail(struct gp_policy *p, const char *format, ...)
{
	struct device *d = p->device;
	va_list args;
	int n;

	if (p->failed)
		return; /* the first reason is the one that matters */
	p->failed = 1;
	n = snprintf(d->ejection, sizeof(d->ejection), "policy %s ejected: ", p->ops.name);
	if (n < 0 || (size_t)n >= sizeof(d->ejection))
		return;
	va_start(args, format);
	(void)vsnprintf(d->ejection + n, sizeof(d->ejection) - (size_t)n, format, args);
	va_end(args);
}

static uint64_t cpu_ns(const struct gp_policy *p)
{
	return p->is_timed && p->device->core->opts.cpu_ns ? p->device->core->opts.cpu_ns() : 0;
}

/* Its own time alone: what the host does with a step is not its doing. */
static void call_ended(struct gp_policy *p, uint64_t begun_ns)
{
	p->spent_ns += cpu_ns(p) - begun_ns;
	if (p->spent_ns > p->device->core->opts.late_ns)
		fail(p, "returned late");
}

static void enqueue(struct gp_policy *p, struct seat *s, uint64_t now)
{
	uint64_t begun = cpu_ns(p);

	p->ops.enqueue(p, &s->view, now);
	call_ended(p, begun);
}

static void dequeue(struct gp_policy *p, struct seat *s, uint64_t now)
{
	uint64_t begun = cpu_ns(p);

	p->ops.dequeue(p, &s->view, now);
	call_ended(p, begun);
}

static void tell_change(struct gp_policy *p, struct seat *s, uint64_t now)
{
	uint64_t begun = cpu_ns(p);

	p->ops.changed(p, &s->view, now);
	call_ended(p, begun);
}

static uint64_t decide(struct gp_policy *p, uint64_t now)
{
	uint64_t begun = cpu_ns(p), next = p->failed ? GP_NEVER : p->ops.decide(p, now);

	call_ended(p, begun);
	p->spent_ns = 0;
	return next;
}

void *gp_policy_state(struct gp_policy *p)
{
	return p->state;
}

const struct gp_policy_limits *gp_policy_limits(const struct gp_policy *p)
{
	return &p->limits;
}

static struct seat *owned_seat(struct gp_policy *p, uint64_t client, const char *did)
{
	struct seat *s = gp_seat_by_id(p->device, client);

	if (!s || !s->owned || p->device->policy != p) { /* in init() it owns nobody yet */
		fail(p, "%s client %" PRIu64 ", which it does not own", did, client);
		return NULL;
	}
	return s;
}

static void wait_in_line(struct seat *s, uint64_t now)
{
	s->view.since_ns = now;
	gp_list_remove(&s->in_waiting);
	if (!s->guarded)
		gp_list_append(&s->device->waiting, &s->in_waiting);
}

/* In or out of the run set, with everything that is counted about it. */
static void set_running(struct seat *s, uint32_t running, uint64_t now)
{
	struct device *d = s->device;
	uint32_t offline = s->view.client_class != GP_CLASS_ONLINE;

	if (s->view.running == running)
		return;
	if (!running)
		s->view.run_ns += now - s->view.since_ns;
	s->view.running = running;
	d->running += running ? 1 : -1u;
	if (offline)
		d->running_offline += running ? 1 : -1u;
	s->view.since_ns = now;
	if (running)
		gp_list_remove(&s->in_waiting);
	else if (s->owned)
		wait_in_line(s, now);
	gp_seat_dirty(s);
}

void gp_runset_waits(struct seat *s, uint64_t now)
{
	if (s->owned && !s->view.running)
		wait_in_line(s, now);
}

int gp_policy_run(struct gp_policy *p, uint64_t client)
{
	struct seat *s = owned_seat(p, client, "ran");

	if (!s)
		return -EINVAL;
	set_running(s, 1, p->last_now);
	return 0;
}

int gp_policy_stop(struct gp_policy *p, uint64_t client)
{
	struct seat *s = owned_seat(p, client, "stopped");

	if (!s)
		return -EINVAL;
	set_running(s, 0, p->last_now);
	return 0;
}

static uint64_t stop_cost(const struct device *d)
{
	uint64_t cost = d->estimate[gp_act_mechanism(d)].cost_ns;

	if (!cost)
		return 0;
	if (cost > MOST_STOP_NS)
		return MOST_STOP_NS;
	return cost > LEAST_STOP_NS ? cost : LEAST_STOP_NS;
}

/*
 * So short that nobody starves, though each turn may wait for a quarter of one, but for a crowd: its turns
 * would be nothing but stops and resumes.
 */
static uint64_t turn_length(const struct gp_core_opts *o, uint64_t waiting)
{
	uint64_t ns = o->quantum_ns, least = o->quantum_ns / LEAST_TURN;
	uint64_t most = o->max_starve_ns / (waiting + 1) / 5 * 4;

	if (o->max_starve_ns != GP_NEVER && most < ns)
		ns = most;
	return ns > least ? ns : least;
}

static void update_limits(struct device *d)
{
	const struct gp_core_opts *o = &d->core->opts;
	struct gp_policy_limits *l = &d->policy->limits;

	l->yields = (d->caps & GP_CAP_BACKGROUND) && d->online;
	l->max_offline = GP_UNLIMITED;
	if (l->yields && (d->caps & GP_CAP_TAKES_TURNS) && !o->no_turns)
		l->max_offline = 1;
	l->quantum_ns = turn_length(o, d->owned - d->running);
	l->preempt_ns = stop_cost(d);
	l->parked = d->parks;
}

static struct gp_policy *enter(struct device *d, uint64_t now)
{
	update_limits(d);
	d->policy->last_now = now;
	return d->policy;
}

/* What a table leaves out: enqueue and the rest do nothing, and decide is first come, first served. */
static int no_init(struct gp_policy *p)
{
	(void)p;
	return 0;
}

static void no_exit(struct gp_policy *p)
{
	(void)p;
}

static void no_event(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	(void)p;
	(void)c;
	(void)now;
}

static void stop_surplus(struct gp_policy *p)
{
	struct device *d = p->device;

	for (struct gp_list *pos = d->seats.prev; pos != &d->seats; pos = pos->prev) {
		struct seat *s = gp_container(pos, struct seat, in_device);

		if (d->running_offline <= p->limits.max_offline)
			return;
		if (s->view.running && s->view.client_class != GP_CLASS_ONLINE)
			set_running(s, 0, p->last_now);
	}
}

static uint64_t decide_fifo(struct gp_policy *p, uint64_t now)
{
	struct device *d = p->device;

	stop_surplus(p);
	gp_list_each_safe(pos, &d->waiting) {
		struct seat *s = gp_container(pos, struct seat, in_waiting);

		if (s->view.client_class != GP_CLASS_ONLINE && d->running_offline >= p->limits.max_offline)
			continue;
		set_running(s, 1, now);
	}
	return GP_NEVER;
}

static int complete(struct gp_policy_ops *dst, const struct gp_policy_ops *ops)
{
	int r = gp_sized_copy(dst, sizeof(*dst), ops, ops->size);

	if (r < 0)
		return r;
	if (dst->abi != GP_POLICY_ABI)
		return -EPROTO;
	if (!dst->name || dst->flags & ~KNOWN_FLAGS)
		return -EINVAL;
	if (dst->state_size > MAX_MEMORY || dst->priv_size > MAX_MEMORY)
		return -EINVAL;
	dst->init = dst->init ? dst->init : no_init;
	dst->exit = dst->exit ? dst->exit : no_exit;
	dst->enqueue = dst->enqueue ? dst->enqueue : no_event;
	dst->dequeue = dst->dequeue ? dst->dequeue : no_event;
	dst->changed = dst->changed ? dst->changed : no_event;
	dst->decide = dst->decide ? dst->decide : decide_fifo;
	return 0;
}

int gp_runset_seat_init(struct seat *s)
{
	s->view.priv = calloc(1, s->device->policy->ops.priv_size + 1);
	return s->view.priv ? 0 : -ENOMEM;
}

static void detach(struct device *d)
{
	struct gp_policy *p = d->policy;

	if (!p)
		return;
	p->ops.exit(p);
	free(p->state);
	*p = (struct gp_policy){ 0 };
	d->policy = NULL;
}

void gp_runset_free(struct device *d)
{
	detach(d);
	gp_timer_cancel(&d->core->timers, &d->policy_timer.timer);
	gp_timer_cancel(&d->core->timers, &d->stall_timer.timer);
	gp_timer_cancel(&d->core->timers, &d->limit_timer.timer);
	gp_timer_cancel(&d->core->timers, &d->starve_timer.timer);
	gp_timer_cancel(&d->core->timers, &d->patience_timer.timer);
	gp_timer_cancel(&d->core->timers, &d->park_timer.timer);
}

/* The new policy's memory of each client; without it the old policy stays, else it goes here: it may
 * look at its own memory until then. */
static int replace_priv(struct device *d, size_t size)
{
	size_t n = 0, i = 0;
	void **fresh;

	gp_list_each(pos, &d->seats)
		n++;
	fresh = calloc(n + 1, sizeof(*fresh));
	if (!fresh)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		fresh[i] = calloc(1, size + 1);
		if (!fresh[i])
			break;
	}
	if (i < n) {
		while (i--)
			free(fresh[i]);
		free(fresh);
		return -ENOMEM;
	}
	detach(d);
	i = 0;
	gp_list_each(pos, &d->seats) {
		struct seat *s = gp_container(pos, struct seat, in_device);

		free(s->view.priv);
		s->view.priv = fresh[i++];
	}
	free(fresh);
	return 0;
}

static void hand_over(struct device *d, uint64_t now)
{
	(void)enter(d, now);
	gp_core_arm(d->core, &d->stall_timer, GP_NEVER); /* not this policy's doing */
	gp_list_each(pos, &d->seats) {
		struct seat *s = gp_container(pos, struct seat, in_device);

		if (s->owned)
			enqueue(d->policy, s, now);
	}
	d->dirty = 1;
}

static int prepare(struct device *d, struct gp_policy *p, const struct gp_policy_ops *ops)
{
	int r;

	*p = (struct gp_policy){ .device = d };
	r = complete(&p->ops, ops);
	if (r < 0)
		return r;
	p->is_timed = !gp_policy_is_built_in(ops);
	p->state = calloc(1, p->ops.state_size + 1);
	if (!p->state)
		return -ENOMEM;
	r = p->ops.init(p);
	if (r < 0)
		free(p->state);
	return r < 0 ? r : 0;
}

int gp_runset_attach(struct device *d, const struct gp_policy_ops *ops, uint64_t now)
{
	struct gp_policy *p = d->policy == &d->policies[0] ? &d->policies[1] : &d->policies[0];
	int r = prepare(d, p, ops);

	if (r < 0)
		return r;
	r = replace_priv(d, p->ops.priv_size);
	if (r < 0) {
		p->ops.exit(p);
		free(p->state);
		return r;
	}
	d->policy = p;
	if (!p->failed)
		d->ejection[0] = '\0'; /* who was ejected is in nobody's place any more */
	hand_over(d, now);
	return 0;
}

/* Fifo needs no memory of its own: this cannot fail when it is needed most. */
static void eject(struct device *d, uint64_t now)
{
	static const struct gp_policy_ops fallback = { .size = sizeof(fallback),
						       .abi = GP_POLICY_ABI,
						       .name = "fifo" };
	struct gp_policy *p = d->policy;

	d->ejected++;
	gp_core_note(d, &(struct gp_core_note){ .kind = GP_NOTE_POLICY_EJECTED, .text = d->ejection });
	p->ops.exit(p);
	free(p->state);
	*p = (struct gp_policy){ .device = d };
	(void)complete(&p->ops, &fallback);
	gp_core_arm(d->core, &d->policy_timer, GP_NEVER);
	hand_over(d, now);
}

void gp_runset_enqueue(struct seat *s, uint64_t now)
{
	struct gp_policy *p = enter(s->device, now);

	s->owned = 1;
	s->device->owned++;
	gp_runset_waits(s, now);
	enqueue(p, s, now);
}

void gp_runset_dequeue(struct seat *s, uint64_t now)
{
	struct gp_policy *p = enter(s->device, now);

	dequeue(p, s, now);
	set_running(s, 0, now);
	gp_list_remove(&s->in_waiting);
	s->owned = 0;
	s->device->owned--;
}

void gp_runset_changed(struct seat *s, uint64_t now)
{
	struct gp_policy *p = enter(s->device, now);

	if (s->owned)
		tell_change(p, s, now);
	s->device->dirty = 1;
}

/* Who runs because it starved, a policy need not run. */
static uint32_t count_left_out(const struct device *d)
{
	uint32_t n = 0;

	if (d->online_active == d->running - d->running_offline)
		return 0;
	gp_list_each(pos, &d->seats) {
		const struct seat *s = gp_container(pos, struct seat, in_device);

		n += s->active && s->view.client_class == GP_CLASS_ONLINE && !s->view.running && !s->guarded;
	}
	return n;
}

static void check_rules(struct gp_policy *p, uint64_t next, uint64_t now)
{
	struct device *d = p->device;
	uint32_t left_out = p->ops.flags & GP_POLICY_STOPS_ONLINE ? 0 : count_left_out(d);

	if (left_out)
		fail(p, "left out %u online clients without GP_POLICY_STOPS_ONLINE", left_out);
	if (d->running_offline > p->limits.max_offline)
		fail(p, "ran %u offline clients where %u may run", d->running_offline, p->limits.max_offline);
	p->spins = next < now + SPIN_NS ? p->spins + 1 : 0;
	if (p->spins > MAX_SPINS)
		fail(p, "asked to be called again at once, %u times in a row", MAX_SPINS);
}

static void watch_for_stall(struct device *d, uint64_t now)
{
	if (!d->owned || d->running)
		gp_core_arm(d->core, &d->stall_timer, GP_NEVER);
	else if (!d->stall_timer.timer.place)
		gp_core_arm(d->core, &d->stall_timer, now + d->core->opts.stall_ns);
}

void gp_runset_stalled(struct device *d, uint64_t now)
{
	if (!d->owned || d->running)
		return; /* that ended since, and nobody decided yet */
	fail(d->policy, "ran nobody while %u clients waited", d->owned);
	eject(d, now);
}

static void watch_for_starving(struct device *d)
{
	uint64_t limit = d->core->opts.max_starve_ns;
	struct seat *s = gp_container(d->waiting.next, struct seat, in_waiting);

	if (gp_list_empty(&d->waiting) || limit == GP_NEVER)
		gp_core_arm(d->core, &d->starve_timer, GP_NEVER);
	else
		gp_core_arm(d->core, &d->starve_timer, s->view.since_ns + limit);
}

void gp_runset_decide(struct device *d, uint64_t now)
{
	struct gp_policy *p = enter(d, now);
	uint64_t next = decide(p, now);

	check_rules(p, next, now);
	if (p->failed) {
		eject(d, now);
		next = decide(enter(d, now), now);
	}
	gp_core_arm(d->core, &d->policy_timer, next < now ? now : next);
	watch_for_stall(d, now);
	watch_for_starving(d);
}
