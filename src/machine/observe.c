// SPDX-License-Identifier: MIT
/* The figures of a run, and its timeline. */
#include "machine/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gp_observe_init(struct gp_machine *m)
{
	m->episodes = calloc(m->sc.devices, sizeof(*m->episodes));
	m->online_on_device = calloc(m->sc.devices, sizeof(*m->online_on_device));
	m->online_since_ns = calloc(m->sc.devices, sizeof(*m->online_since_ns));
	return m->episodes && m->online_on_device && m->online_since_ns ? 0 : -ENOMEM;
}

void gp_observe_free(struct gp_machine *m)
{
	free(m->episodes);
	free(m->online_on_device);
	free(m->online_since_ns);
}

static int is_offline(const struct client *c)
{
	return c->group->client_class != GP_CLASS_ONLINE;
}

/* Its job has not ended. */
static int is_there(const struct client *c)
{
	return c->group != NULL;
}

static uint64_t offline_work(struct gp_machine *m)
{
	uint64_t work = m->gone_wave_ns;

	for (uint32_t i = 0; i < m->nclients; i++) {
		struct client *c = &m->clients[i];

		for (uint64_t k = 0; is_there(c) && is_offline(c) && k < c->group->queues; k++)
			work += gpm_exec_work(&gp_sim_queue(m->be, c->queues[k])->ctx, m->now);
	}
	return work;
}

struct gpm_counters gp_observe_counters(struct gp_machine *m)
{
	struct gpm_counters sum = { 0 };

	for (uint32_t i = 0; i < m->sc.devices; i++) {
		const struct gpm_gpu *g = gp_sim_gpu(m->be, i);

		sum.events += g->count.events + g->exec.events;
		sum.cycles += g->count.cycles;
		sum.yields += g->count.yields;
	}
	return sum;
}

void gp_observe_demand(struct gp_machine *m, struct request *r)
{
	struct episode *e = &m->episodes[r->client->group->device];

	r->demand_ns = m->now;
	if (!e->stopped && !e->demand_ns)
		e->demand_ns = m->now;
}

void gp_observe_action(struct gp_machine *m, const struct gp_action *action)
{
	struct episode *e = &m->episodes[action->device];

	if (!action->stops)
		return;
	e->action_ns = m->now;
	e->called_ns = UINT64_MAX;
	e->off_ns = 0;
	e->under_way += action->stops;
	e->stopped += action->stops;
	if (m->measuring && e->demand_ns)
		gp_hist_add(&m->result->to_decision, m->now - e->demand_ns);
}

/* Demand that came while offline was off already has no beginning of its own. */
static void end_episode(struct gp_machine *m, struct episode *e)
{
	if (m->measuring)
		m->result->preemptions++;
	if (m->measuring && e->demand_ns) {
		gp_hist_add(&m->result->preempt, e->off_ns - e->demand_ns);
		gp_hist_add(&m->result->to_call, e->called_ns - e->demand_ns);
	}
	e->demand_ns = 0;
}

void gp_observe_done(struct gp_machine *m, const struct gp_done *done)
{
	const struct gpm_queue *q = gp_sim_queue(m->be, done->want.queue);
	uint64_t called = gp_sim_called_ns(m->be, done->want.queue);
	struct gp_core_queue_status status;
	struct episode *e;

	if (!q || gp_core_queue_status(m->core, done->want.queue, &status) < 0)
		return;
	e = &m->episodes[status.device];
	if (done->want.want != GP_STOP) {
		if (status.state == GP_QUEUE_RESUMING && m->measuring)
			gp_hist_add(&m->result->resume, done->latency_ns);
		e->stopped -= status.state == GP_QUEUE_RESUMING;
		return;
	}
	e->called_ns = called < e->called_ns ? called : e->called_ns;
	if (e->action_ns + done->latency_ns > e->off_ns)
		e->off_ns = e->action_ns + done->latency_ns;
	if (e->under_way && !--e->under_way)
		end_episode(m, e);
}

static void count_online(struct gp_machine *m, uint32_t device, int sign)
{
	uint64_t from = m->online_since_ns[device] > m->from_ns ? m->online_since_ns[device] : m->from_ns;
	uint32_t before = m->online_on_device[device];

	m->online_on_device[device] += (uint32_t)sign;
	if (!before)
		m->online_since_ns[device] = m->now;
	else if (!m->online_on_device[device] && m->measuring)
		m->result->online_busy_ns += m->now - from;
}

uint64_t gp_machine_online_busy(const struct gp_machine *m)
{
	uint64_t busy = m->result->online_busy_ns;

	for (uint32_t d = 0; d < m->sc.devices; d++) {
		uint64_t from = m->online_since_ns[d] > m->from_ns ? m->online_since_ns[d] : m->from_ns;

		if (m->online_on_device[d])
			busy += m->now - from;
	}
	return busy;
}

void gp_observe_submitted(struct gp_machine *m, struct request *r)
{
	uint32_t device = (uint32_t)r->client->group->device;

	r->alone = !m->online_on_device[device];
	count_online(m, device, 1);
}

static void add_span(struct gp_machine *m, uint32_t lane, uint32_t kind, uint64_t begin, uint64_t end)
{
	struct gp_run_result *res = m->result;

	if (lane >= res->nlanes || res->nspans >= m->max_spans || begin >= res->timeline_to_ns)
		return;
	res->spans[res->nspans++] = (struct gp_span){ begin, end, kind, lane };
}

static uint64_t slice_ns(const struct gp_machine *m)
{
	uint64_t ns = (m->sc.duration_ns - m->sc.warmup_ns) / 100;

	return ns ? ns : 1;
}

static void count_latency(struct gp_machine *m, struct request *r)
{
	struct gp_run_result *res = m->result;
	uint64_t latency = m->now - r->arrival_ns, slo = r->client->group->slo_ns;
	uint64_t slice = (m->now - m->from_ns) / slice_ns(m);

	if (r->arrival_ns < m->from_ns)
		return;
	res->requests++;
	gp_hist_add(&res->latency, latency);
	res->slo_requests += slo != 0;
	res->slo_met += slo && latency <= slo;
	if (slice < 100)
		res->online_done[slice]++;
}

/* Where the device gives way by itself, a preemption is from the submission to the first wave. */
static void count_first_wave(struct gp_machine *m, const struct request *r)
{
	struct gp_run_result *res = m->result;
	struct gp_core_status status;

	if (!m->core || !r->alone || r->arrival_ns < m->from_ns)
		return;
	gp_hist_add(&res->to_first_wave, r->cmd.first_ns - r->demand_ns);
	(void)gp_core_device_status(m->core, (uint32_t)r->client->group->device, &status);
	if (status.mechanism != GP_MECH_YIELD)
		return;
	res->preemptions++;
	gp_hist_add(&res->preempt, r->cmd.first_ns - r->cmd.submitted_ns);
}

static uint64_t work_of(const struct gpm_cmd *cmd, uint64_t kernels)
{
	uint64_t waves = (uint64_t)cmd->kernel.workgroups * cmd->kernel.waves_per_wg;
	uint64_t long_ones = cmd->every && cmd->every_wave_ns ? kernels / cmd->every : 0;

	return waves * ((kernels - long_ones) * cmd->kernel.wave_ns + long_ones * cmd->every_wave_ns);
}

void gp_observe_finished(struct gp_machine *m, struct request *r)
{
	m->finished_wave_ns += work_of(&r->cmd, r->cmd.count);
	if (is_offline(r->client)) {
		if (m->measuring)
			m->result->offline_steps++;
		return;
	}
	count_online(m, (uint32_t)r->client->group->device, -1);
	if (!m->measuring)
		return;
	count_latency(m, r);
	count_first_wave(m, r);
	add_span(m, r->client->lane, GP_SPAN_REQUEST, r->arrival_ns, m->now);
}

/* What is under way on the queue is not heard of again. */
void gp_observe_gone(struct gp_machine *m, uint64_t queue)
{
	struct gp_core_queue_status status;
	struct episode *e;

	m->gone_wave_ns += gpm_exec_work(&gp_sim_queue(m->be, queue)->ctx, m->now);
	if (!m->core || gp_core_queue_status(m->core, queue, &status) < 0 || status.state == GP_QUEUE_RUNNING)
		return;
	e = &m->episodes[status.device];
	e->stopped--;
	if (status.state == GP_QUEUE_SUSPENDING && e->under_way && !--e->under_way)
		e->demand_ns = 0; /* nothing was stopped for it in the end */
}

void gp_observe_hint(struct gp_machine *m, const struct request *r)
{
	if (m->measuring)
		add_span(m, r->client->lane, GP_SPAN_HINT, r->hint_ns, m->now);
}

void gp_observe_slice(struct gp_machine *m)
{
	uint64_t work = offline_work(m);

	if (m->next_slice < 100)
		m->result->offline_done[m->next_slice++] = work - m->slice_work_ns;
	m->slice_work_ns = work;
	if (m->next_slice < 100)
		(void)gp_timer_set(&m->timers, &m->slice.timer, m->now + slice_ns(m));
}

static uint32_t offline_kind(struct gp_machine *m, const struct client *c)
{
	for (uint64_t i = 0; i < c->group->queues; i++) {
		const struct gpm_queue *q = gp_sim_queue(m->be, c->queues[i]);

		if (q->ctx.mapped && (!q->closed || q->ctx.busy))
			return GP_SPAN_WORK;
	}
	return GP_SPAN_SUSPENDED;
}

static void lane_is(struct gp_machine *m, uint32_t lane, uint32_t kind)
{
	if (m->lane_kind[lane] == kind)
		return;
	if (m->lane_kind[lane] != UINT32_MAX)
		add_span(m, lane, m->lane_kind[lane], m->lane_since_ns[lane], m->now);
	m->lane_kind[lane] = kind;
	m->lane_since_ns[lane] = m->now;
}

int gp_observe_is_drawing(const struct gp_machine *m)
{
	return m->measuring && m->result->nlanes && m->lane_since_ns[0] < m->result->timeline_to_ns;
}

void gp_observe_step(struct gp_machine *m)
{
	struct gp_run_result *res = m->result;

	if (!gp_observe_is_drawing(m))
		return;
	for (uint32_t i = 0; i < m->nclients; i++)
		if (is_there(&m->clients[i]) && m->clients[i].lane < GP_TIMELINE_LANES &&
		    is_offline(&m->clients[i]))
			lane_is(m, m->clients[i].lane, offline_kind(m, &m->clients[i]));
	for (uint32_t i = 0; i < res->nlanes && res->lanes[i].client_class == GP_CLASS_UNKNOWN; i++) {
		uint32_t idle = gp_sim_gpu(m->be, res->lanes[i].device)->phase == GPM_IDLE;

		lane_is(m, i, idle ? UINT32_MAX : GP_SPAN_CYCLE);
	}
}

static uint32_t add_lane(struct gp_run_result *res, const char *name, uint32_t client_class, uint32_t device)
{
	struct gp_lane *lane = &res->lanes[res->nlanes];

	if (res->nlanes == GP_TIMELINE_LANES)
		return UINT32_MAX;
	(void)snprintf(lane->name, sizeof(lane->name), "%s", name);
	lane->client_class = client_class;
	lane->device = device;
	return res->nlanes++;
}

static void add_lanes(struct gp_machine *m)
{
	char name[2 * GP_SCENARIO_NAME];

	for (uint32_t i = 0; i < m->sc.devices; i++) {
		(void)snprintf(name, sizeof(name), "device %u", i);
		(void)add_lane(m->result, name, GP_CLASS_UNKNOWN, i);
	}
	for (uint32_t i = 0; i < m->nclients; i++) {
		struct client *c = &m->clients[i];

		(void)snprintf(name, sizeof(name), "%s %llu", c->group->name,
			       (unsigned long long)c->load.client);
		c->lane = add_lane(m->result, name, c->group->client_class, (uint32_t)c->group->device);
	}
	memset(m->lane_kind, 0xff, sizeof(m->lane_kind));
}

void gp_machine_measure(struct gp_machine *m)
{
	m->measuring = 1;
	m->from_ns = m->now;
	m->counters_at_start = gp_observe_counters(m);
	m->work_at_start_ns = m->slice_work_ns = offline_work(m);
	(void)gp_timer_set(&m->timers, &m->slice.timer, m->now + slice_ns(m));
	if (m->result->timeline_to_ns) {
		m->result->timeline_from_ns = m->now;
		m->result->timeline_to_ns += m->now;
		add_lanes(m);
	}
}

/* What the queues did, against what the kernels that ended (and the parts of those that run) were to do. */
static uint64_t lost_work(struct gp_machine *m)
{
	uint64_t done = m->gone_wave_ns, expected = m->finished_wave_ns;

	for (uint32_t i = 0; i < m->nclients; i++) {
		for (uint64_t k = 0; is_there(&m->clients[i]) && k < m->clients[i].group->queues; k++) {
			const struct gpm_queue *q = gp_sim_queue(m->be, m->clients[i].queues[k]);
			const struct gpm_dispatch *d = &q->ctx.dispatch;

			done += gpm_exec_work(&q->ctx, m->now);
			if (q->first)
				expected += work_of(q->first, q->kernel);
			if (q->ctx.busy)
				expected += (uint64_t)d->workgroups * d->waves_per_wg * d->wave_ns -
					    gpm_exec_left(&q->ctx, m->now);
		}
	}
	return done > expected ? done - expected : expected - done;
}

static void close_lanes(struct gp_machine *m)
{
	for (uint32_t i = 0; i < m->result->nlanes; i++)
		if (m->lane_kind[i] != UINT32_MAX)
			lane_is(m, i, UINT32_MAX);
}

static void close_requests(struct gp_machine *m)
{
	gp_list_each(pos, &m->open) {
		struct request *r = gp_container(pos, struct request, node);

		if (is_offline(r->client) || r->cmd.done_ns < m->now)
			continue;
		count_latency(m, r); /* it took at least as long */
		m->result->unfinished += r->arrival_ns >= m->from_ns;
		add_span(m, r->client->lane, GP_SPAN_REQUEST, r->arrival_ns, m->now);
	}
	for (uint32_t d = 0; d < m->sc.devices; d++)
		while (m->online_on_device[d])
			count_online(m, d, -1);
}

static void describe_core(struct gp_machine *m)
{
	static const char *const names[GP_MECH_COUNT] = { "none", "throttle", "gate", "interrupt", "yield" };
	struct gp_run_result *res = m->result;
	struct gp_core_status status;

	for (uint32_t d = 0; m->core && d < m->sc.devices; d++) {
		(void)gp_core_device_status(m->core, d, &status);
		(void)snprintf(res->mechanism, sizeof(res->mechanism), "%s", names[status.mechanism]);
		if (!res->reason[0])
			(void)snprintf(res->reason, sizeof(res->reason), "%s",
				       status.ejection[0] ? status.ejection : status.reason);
		res->limited += status.limited;
	}
}

void gp_machine_finish(struct gp_machine *m)
{
	struct gp_run_result *res = m->result;
	struct gpm_counters c = gp_observe_counters(m);

	close_requests(m);
	close_lanes(m);
	res->measured_ns = m->now - m->from_ns;
	res->online_busy_ns /= m->sc.devices;
	res->offline_wave_ns = offline_work(m) - m->work_at_start_ns;
	res->cycles = c.cycles + c.yields - m->counters_at_start.cycles - m->counters_at_start.yields;
	res->events = c.events;
	res->lost_wave_ns = lost_work(m);
	while (m->next_slice < 100)
		gp_observe_slice(m);
	describe_core(m);
}
