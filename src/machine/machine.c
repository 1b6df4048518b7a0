// SPDX-License-Identifier: MIT
#include "machine/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/registry.h"
#include "policy/registry.h"

/* How many timers each has: room for them is reserved with it. */
enum { REQUEST_TIMERS = 2, CLIENT_TIMERS = 2, MACHINE_TIMERS = 2 };

/* What each configuration leaves the core to work with. */
static uint32_t caps_of(const struct gp_scenario *sc, uint32_t kind)
{
	uint32_t all = gp_sim_caps(&sc->device);

	switch (kind) {
	case GP_CONFIG_THROTTLE:
		return GP_CAP_THROTTLE | GP_CAP_ACTIVITY;
	case GP_CONFIG_GATE:
	case GP_CONFIG_FLUSH:
		return GP_CAP_GATE | GP_CAP_ACTIVITY;
	case GP_CONFIG_SINGLE:
		return all & ~(GP_CAP_BATCH | GP_CAP_CROSS_PROCESS | GP_CAP_BACKGROUND);
	case GP_CONFIG_BATCH:
		return all & ~GP_CAP_BACKGROUND;
	case GP_CONFIG_SLICE:
		return GP_CAP_BACKGROUND | GP_CAP_ACTIVITY;
	default:
		return all;
	}
}

static uint32_t shim_of(uint32_t kind)
{
	switch (kind) {
	case GP_CONFIG_THROTTLE:
		return GPM_SHIM_THROTTLE;
	case GP_CONFIG_GATE:
		return GPM_SHIM_GATE;
	case GP_CONFIG_FLUSH:
		return GPM_SHIM_FLUSH;
	default:
		return GPM_SHIM_NONE;
	}
}

static void arm(struct gp_machine *m, struct event *e, uint64_t at)
{
	if (at != UINT64_MAX)
		(void)gp_timer_set(&m->timers, &e->timer, at); /* whoever has a timer reserved room for it */
}

static int is_online(const struct client *c)
{
	return c->group->client_class == GP_CLASS_ONLINE;
}

static struct request *get_request(struct gp_machine *m, struct client *c)
{
	struct request *r;

	if (gp_list_empty(&m->unused)) {
		r = calloc(1, sizeof(*r));
		if (!r || gp_timers_reserve(&m->timers, REQUEST_TIMERS) < 0) {
			free(r);
			return NULL;
		}
	} else {
		r = gp_container(m->unused.next, struct request, node);
		gp_list_remove(&r->node);
		memset(r, 0, sizeof(*r));
	}
	r->cmd = gp_work_cmd(&c->group->work, &m->sc.device);
	r->cmd.done_ns = UINT64_MAX; /* it may wait in line when all ends */
	r->client = c;
	r->prepared = (struct event){ .kind = EVENT_PREPARED, .owner = r };
	r->hint = (struct event){ .kind = EVENT_HINT_BEGIN, .owner = r };
	gp_list_append(&m->open, &r->node);
	return r;
}

static void put_request(struct gp_machine *m, struct request *r)
{
	gp_list_remove(&r->node);
	gp_list_append(&m->unused, &r->node);
}

/*
 * The agent looks at its queues every sample_ns, in no step with the requests, and says what changed.  Of the
 * looks only those that may find a change are made.
 */
static void sample_later(struct gp_machine *m, struct client *c)
{
	uint64_t period = m->sc.device.sample_ns;

	if (!m->core || c->sample.timer.place)
		return;
	if (c->seen_busy)
		c->look_ns += (m->now - c->look_ns + period - 1) / period * period;
	else
		c->look_ns = m->now + gp_random_between(&c->sample_random, 0, period);
	arm(m, &c->sample, c->look_ns + m->sc.device.message_ns);
}

static void sampled(struct gp_machine *m, struct client *c)
{
	struct gp_activity activity;

	c->seen_busy = 0;
	for (uint64_t i = 0; i < c->group->queues; i++) {
		(void)m->ops.activity(m->be, c->queues[i], &activity);
		c->seen_busy |= activity.activity == GP_ACTIVITY_BUSY;
		(void)gp_core_activity(m->core, c->queues[i], activity.activity, m->now);
	}
}

static void submit(struct gp_machine *m, struct request *r)
{
	struct client *c = r->client;

	if (c->group->serial && c->is_serving != r->is_next) {
		gp_list_append(&c->line, &r->in_line);
		return;
	}
	c->is_serving = 1;

	if (is_online(c)) {
		gp_observe_submitted(m, r);
		if (!m->config.hints)
			gp_observe_demand(m, r);
	}
	(void)gp_sim_submit(m->be, c->queues[c->next_queue], &r->cmd); /* gp_machine_new() tried one */
	r->cmd.tag = c->next_queue;
	c->next_queue = (c->next_queue + 1) % (uint32_t)c->group->queues;
	if (is_online(c))
		sample_later(m, c);
}

/* CPU work varies: between half and one and a half times what the scenario says. */
static uint64_t prepare_ns(struct client *c)
{
	uint64_t ns = c->group->prepare_ns;

	return gp_random_between(&c->prepare_random, ns - ns / 2, ns + ns / 2);
}

static void arrive(struct gp_machine *m, struct client *c)
{
	struct request *r = get_request(m, c);

	if (r) {
		r->arrival_ns = m->now;
		if (m->core && m->config.hints) {
			gp_observe_demand(m, r);
			arm(m, &r->hint, m->now + m->sc.device.message_ns);
		}
		if (c->group->prepare_ns)
			arm(m, &r->prepared, m->now + prepare_ns(c));
		else
			submit(m, r);
	}
	arm(m, &c->arrival, gp_load_next(&c->load));
}

static void hint(struct gp_machine *m, struct request *r)
{
	const struct gp_core_hint which = { .client = r->client->id, .device = GP_ALL_DEVICES };

	if (r->hint.kind == EVENT_HINT_BEGIN) {
		/* Refused (too many are open): it runs unhinted, and its queue is seen to be busy. */
		r->hinted = gp_core_hint_begin(m->core, &which, m->now) == 0;
		r->hint.kind = EVENT_HINT_END;
		r->hint_ns = m->now;
	} else {
		if (r->hinted) {
			(void)gp_core_hint_end(m->core, &which, m->now);
			gp_observe_hint(m, r);
		}
		put_request(m, r);
	}
}

static void send_next(struct gp_machine *m, struct client *c)
{
	struct request *r = gp_container(c->line.next, struct request, in_line);

	c->is_serving = !gp_list_empty(&c->line);
	if (!c->is_serving)
		return;
	gp_list_remove(&r->in_line);
	r->is_next = 1;
	arm(m, &r->prepared, m->now + m->sc.device.launch_ns);
}

static void finish_online(struct gp_machine *m, struct request *r)
{
	struct client *c = r->client;

	if (c->group->serial)
		send_next(m, c);

	gp_observe_finished(m, r);
	if (c->group->arrival == GP_ARRIVAL_CLOSED)
		arm(m, &c->arrival, m->now + gp_load_think(&c->load));
	sample_later(m, c);
	if (!m->core || !m->config.hints) {
		put_request(m, r);
		return;
	}
	if (r->hint.kind == EVENT_HINT_BEGIN) { /* done before its hint arrived */
		gp_timer_cancel(&m->timers, &r->hint.timer);
		hint(m, r);
	}
	arm(m, &r->hint, m->now + m->sc.device.message_ns);
}

/* Its last step is done. */
static void end_job(struct gp_machine *m, struct client *c)
{
	for (uint64_t i = 0; i < c->group->queues + c->group->idle_queues; i++) {
		gp_observe_gone(m, c->queues[i]);
		if (m->core)
			(void)gp_core_queue_remove(m->core, c->queues[i], m->now);
		(void)gp_sim_queue_remove(m->be, c->queues[i]);
	}
	if (m->core)
		(void)gp_core_client_remove(m->core, c->id, m->now);
	if (m->nended < GP_MAX_CLIENTS) /* who asks before each start misses none */
		m->ended[m->nended++] = (struct gp_job_end){ .tag = c->tag, .end_ns = m->now };
	free(c->queues);
	*c = (struct client){ 0 }; /* room for another */
}

int gp_machine_job_ended(struct gp_machine *m, struct gp_job_end *ret)
{
	if (!m->nended)
		return 0;
	*ret = m->ended[0];
	memmove(m->ended, m->ended + 1, --m->nended * sizeof(*m->ended));
	return 1;
}

static void finish_job_step(struct gp_machine *m, struct request *r)
{
	struct client *c = r->client;

	put_request(m, r);
	if (!--c->steps_open)
		end_job(m, c);
}

/* Offline always has work: the next step begins when one is done. */
static void finish_offline(struct gp_machine *m, struct request *r)
{
	uint64_t queue = r->client->queues[r->cmd.tag], tag = r->cmd.tag;

	gp_observe_finished(m, r);
	if (r->client->is_job && !r->client->steps_left) {
		finish_job_step(m, r);
		return;
	}
	r->client->steps_left -= r->client->is_job;
	r->cmd = gp_work_cmd(&r->client->group->work, &m->sc.device);
	r->cmd.tag = tag;
	(void)gp_sim_submit(m->be, queue, &r->cmd);
}

static void fire(struct gp_machine *m, struct event *e)
{
	static const struct gp_apply_opts renewal = { .size = sizeof(renewal) };

	gp_timer_cancel(&m->timers, &e->timer);
	switch (e->kind) {
	case EVENT_ARRIVAL:
		arrive(m, e->owner);
		break;
	case EVENT_PREPARED:
		submit(m, e->owner);
		break;
	case EVENT_HINT_BEGIN:
	case EVENT_HINT_END:
		hint(m, e->owner);
		break;
	case EVENT_SAMPLE:
		sampled(m, e->owner);
		break;
	case EVENT_RENEW:
		(void)m->ops.apply(m->be, NULL, 0, &renewal);
		arm(m, &m->renew, m->now + 1000000000);
		break;
	case EVENT_SLICE:
		gp_observe_slice(m);
		break;
	}
}

static void acts(void *machine, const struct gp_action *action)
{
	gp_observe_action(machine, action);
}

static void done(void *machine, const struct gp_done *what)
{
	gp_observe_done(machine, what);
}

void gp_machine_settle(struct gp_machine *m)
{
	const struct gp_core_host host = {
		.ops = &m->ops, .backend = m->be, .acts = acts, .done = done, .arg = m
	};

	if (!m->core)
		return;
	m->core_next_ns = gp_core_step(m->core, &host, m->now);
}

uint64_t gp_machine_next(const struct gp_machine *m)
{
	uint64_t next = gp_sim_next(m->be), timer = gp_timers_next(&m->timers);

	next = timer < next ? timer : next;
	return m->core && m->core_next_ns < next ? m->core_next_ns : next;
}

void gp_machine_step(struct gp_machine *m, uint64_t now_ns)
{
	struct gpm_cmd *cmd;
	struct gp_timer *t;

	m->now = now_ns;
	gp_sim_advance(m->be, now_ns);
	while ((cmd = gp_sim_finished(m->be))) {
		struct request *r = (struct request *)cmd;

		if (is_online(r->client))
			finish_online(m, r);
		else
			finish_offline(m, r);
	}
	while ((t = gp_timers_first(&m->timers)) && t->at_ns <= now_ns)
		fire(m, (struct event *)t);
	gp_machine_settle(m);
	gp_observe_step(m);
}

/* Kernels that begin and end concern nobody but the device. */
static void pass_kernels(struct gp_machine *m, uint64_t limit_ns)
{
	uint64_t timer = gp_timers_next(&m->timers);

	if (gp_observe_is_drawing(m))
		return;
	limit_ns = timer < limit_ns ? timer : limit_ns;
	gp_sim_run(m->be, m->core && m->core_next_ns < limit_ns ? m->core_next_ns : limit_ns);
}

void gp_machine_run_until(struct gp_machine *m, uint64_t now_ns)
{
	uint64_t next;

	while ((next = gp_machine_next(m)) < now_ns) {
		gp_machine_step(m, next);
		pass_kernels(m, now_ns);
	}
	gp_machine_step(m, now_ns);
}

static int add_queues(struct gp_machine *m, struct client *c, const char *name)
{
	struct gp_sim_queue_opts opts = { .client = c->id,
					  .client_name = name,
					  .device = (uint32_t)c->group->device,
					  .client_class = c->group->client_class,
					  .priority = (uint32_t)c->group->priority };
	uint64_t n = c->group->queues + c->group->idle_queues;
	int r = 0;

	/* A launch hook is needed where the policy may stop the client. */
	if (!is_online(c) || m->policy->flags & GP_POLICY_STOPS_ONLINE) {
		opts.shim = shim_of(m->config.kind);
		opts.depth = (uint32_t)m->sc.throttle_depth;
	}
	c->queues = calloc(n, sizeof(*c->queues));
	if (!c->queues)
		return -ENOMEM;
	for (uint64_t i = 0; i < n && r == 0; i++) {
		r = gp_sim_queue_add(m->be, &opts, &c->queues[i]);
		if (r == 0 && m->core)
			r = gp_core_queue_add(m->core,
					      &(struct gp_core_queue){ .queue = c->queues[i],
								       .client = c->id,
								       .device = opts.device },
					      m->now);
		if (r == 0 && m->core)
			r = gp_core_activity(m->core, c->queues[i],
					     is_online(c) ? GP_ACTIVITY_IDLE : GP_ACTIVITY_BUSY, m->now);
	}
	return r;
}

static int start_offline(struct gp_machine *m, struct client *c)
{
	/* Two steps in each queue, so that it never runs dry between them. */
	for (uint64_t i = 0; i < 2 * c->group->queues && (!c->is_job || c->steps_left); i++) {
		struct request *r = get_request(m, c);
		uint64_t queue = i % c->group->queues;

		if (!r)
			return -ENOMEM;
		c->steps_left -= c->is_job;
		c->steps_open += c->is_job;
		r->cmd.tag = queue;
		if (gp_sim_submit(m->be, c->queues[queue], &r->cmd) < 0)
			return -EINVAL;
	}
	return 0;
}

static int begin_client(struct gp_machine *m, struct client *c, const struct gp_group *g, uint64_t number)
{
	struct gp_core_client core = { .id = ++m->last_id,
				       .slo_ns = g->slo_ns,
				       .client_class = g->client_class,
				       .weight = (uint32_t)g->weight };
	char name[GP_NAME_LEN + 24];
	int r;

	(void)snprintf(name, sizeof(name), "%s %llu", g->name, (unsigned long long)number);
	c->id = core.id;
	c->group = g;
	c->lane = UINT32_MAX;
	gp_list_init(&c->line);
	c->arrival = (struct event){ .kind = EVENT_ARRIVAL, .owner = c };
	c->sample = (struct event){ .kind = EVENT_SAMPLE, .owner = c };
	r = m->core ? gp_core_client_add(m->core, &core) : 0;
	if (r == 0)
		r = add_queues(m, c, name);
	return r;
}

static int add_client(struct gp_machine *m, const struct gp_group *g, uint64_t number)
{
	struct client *c = &m->clients[m->nclients++];
	int r = begin_client(m, c, g, number);

	if (r < 0)
		return r;
	gp_load_init(&c->load, g, number, m->sc.seed, c->id);
	gp_random_init(&c->prepare_random, m->sc.seed, c->id + ((uint64_t)1 << 32));
	gp_random_init(&c->sample_random, m->sc.seed, c->id + ((uint64_t)2 << 32));
	if (!is_online(c))
		return start_offline(m, c);
	arm(m, &c->arrival,
	    g->arrival == GP_ARRIVAL_CLOSED ? gp_load_think(&c->load) : gp_load_next(&c->load));
	return 0;
}

/* One whose job has ended, or the next. */
static struct client *free_client(struct gp_machine *m)
{
	for (uint32_t i = 0; i < m->nclients; i++)
		if (!m->clients[i].group)
			return &m->clients[i];
	return m->nclients < GP_MAX_CLIENTS ? &m->clients[m->nclients++] : NULL;
}

int gp_machine_job_start(struct gp_machine *m, const struct gp_group *group, uint64_t steps, uint64_t tag)
{
	struct client *c = free_client(m);
	int r;

	if (!c)
		return -ENOSPC;
	c->is_job = 1;
	c->steps_left = steps;
	c->tag = tag;
	r = begin_client(m, c, group, tag);
	if (r == 0)
		r = start_offline(m, c);
	if (r == 0)
		gp_machine_settle(m);
	return r;
}

static int add_groups(struct gp_machine *m)
{
	int r = 0;

	for (uint32_t g = 0; g < m->sc.ngroups; g++) {
		const struct gp_group *group = &m->sc.groups[g];

		if (m->config.kind == GP_CONFIG_EXCLUSIVE && group->client_class != GP_CLASS_ONLINE)
			continue;
		for (uint64_t i = 0; i < group->clients && r == 0; i++)
			r = add_client(m, group, i);
	}
	return r;
}

static int open_backend(struct gp_machine *m)
{
	struct gp_sim_params params = { .device = &m->sc.device,
					.devices = (uint32_t)m->sc.devices,
					.caps = caps_of(&m->sc, m->config.kind),
					.seed = m->sc.seed,
					.yield_slice_ns = m->sc.yield_slice_ns };
	struct gp_backend_opts opts = { .size = sizeof(opts),
					.device = m->sc.device_name,
					.params = &params };

	return gp_backend_open("sim", &opts, &m->ops, &m->be);
}

static int start_core(struct gp_machine *m)
{
	struct gp_core_opts opts = { .max_starve_ns = m->sc.max_starve_ns,
				     .no_turns = !m->sc.rotate,
				     .quantum_ns = m->sc.quantum_ns,
				     .park_hints = (uint32_t)m->sc.park,
				     .yield_on_demand = m->config.kind == GP_CONFIG_SLICE };
	int r = 0;

	m->policy = m->sc.policy_ops ? m->sc.policy_ops : gp_policy_find(m->sc.policy);
	if (!m->policy)
		return -EINVAL;
	if (m->config.kind == GP_CONFIG_EXCLUSIVE || m->config.kind == GP_CONFIG_NATIVE)
		return 0;
	m->core = gp_core_new(&opts);
	if (!m->core)
		return -ENOMEM;
	for (uint32_t d = 0; d < m->sc.devices && r == 0; d++) {
		r = gp_core_device_add(m->core, d, caps_of(&m->sc, m->config.kind));
		if (r == 0)
			r = gp_core_set_policy(m->core, d, m->policy, 0);
	}
	return r;
}

static int set_up(struct gp_machine *m)
{
	int r = open_backend(m);

	if (r < 0)
		return r;
	m->clients = calloc(GP_MAX_CLIENTS, sizeof(*m->clients));
	if (!m->clients)
		return -ENOMEM;
	r = gp_timers_reserve(&m->timers, MACHINE_TIMERS + GP_MAX_CLIENTS * CLIENT_TIMERS);
	if (r < 0)
		return r;
	r = start_core(m);
	if (r == 0)
		r = gp_observe_init(m);
	if (r == 0)
		r = add_groups(m);
	return r;
}

int gp_machine_new(const struct gp_scenario *sc, const struct gp_config *config, struct gp_run_result *result,
		   struct gp_machine **ret)
{
	struct gp_machine *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->sc = *sc;
	m->config = *config;
	m->result = result;
	m->core_next_ns = UINT64_MAX;
	m->renew = (struct event){ .kind = EVENT_RENEW };
	m->slice = (struct event){ .kind = EVENT_SLICE };
	gp_list_init(&m->open);
	gp_list_init(&m->unused);
	r = set_up(m);
	if (r < 0) {
		gp_machine_free(m);
		return r;
	}
	if (m->core)
		arm(m, &m->renew, 1000000000);
	*ret = m;
	return 0;
}

static void free_requests(struct gp_list *list)
{
	gp_list_each_safe(pos, list)
		free(gp_container(pos, struct request, node));
}

struct gp_machine *gp_machine_free(struct gp_machine *m)
{
	if (!m)
		return NULL;
	gp_core_free(m->core);
	if (m->be)
		m->ops.close(m->be);
	free_requests(&m->open);
	free_requests(&m->unused);
	for (uint32_t i = 0; i < m->nclients; i++)
		free(m->clients[i].queues);
	free(m->clients);
	gp_observe_free(m);
	gp_timers_free(&m->timers);
	free(m);
	return NULL;
}

struct gp_core *gp_machine_core(struct gp_machine *m)
{
	return m->core;
}

struct gp_backend *gp_machine_backend(struct gp_machine *m)
{
	return m->be;
}

const struct gp_backend_ops *gp_machine_ops(const struct gp_machine *m)
{
	return &m->ops;
}

uint64_t gp_machine_now(const struct gp_machine *m)
{
	return m->now;
}

uint64_t gp_machine_cycles(struct gp_machine *m)
{
	struct gpm_counters c = gp_observe_counters(m);

	return c.cycles + c.yields;
}
