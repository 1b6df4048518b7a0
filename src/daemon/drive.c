// SPDX-License-Identifier: MIT
/*
 *            wanted STOP                    done
 *   RUNNING -------------> SUSPENDING ---------------> SUSPENDED
 *      ^  ^                 |   |  ^                    |     ^
 *      |  '--- no way left -'   |  '- failed: next way; |     | failed: again in a second
 *      |                        |     not drained: save |     |
 *      |                        | wanted RUN: at once   |     |
 *      '------- done ---- RESUMING <--------------------'-----'
 *
 * A resume overtakes the stop that is under way: peers do what they are told in order.  A
 * stop waits for the resume before it.  A stop that nobody answers in time counts as failed
 * and is followed by a resume, since it may have been done all the same.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/manager.h"

#define BATCH 1024

static void begin_stop(struct gp_manager *m, struct gp_queue *q);
static void begin_resume(struct gp_manager *m, struct gp_queue *q);

/* One that is starting has not told of all queues yet; one that is ending does nothing more. */
static bool has_proxy(const struct gp_queue *q)
{
	return q->proxy.peer && q->client->proxy_state == GP_PROXY_READY;
}

static uint32_t ways_of(const struct gp_manager *m, const struct gp_queue *q)
{
	uint32_t has = 0;

	if (q->agent.peer)
		has = q->agent.peer->ways & (GP_KFD_WAY_UPDATE | GP_KFD_WAY_PRIVATE);
	/* A debugger that is there and does not see the queue never will. */
	if (gp_ways_permit(&m->conf->ways, GP_KFD_WAY_DBG) && gp_queue_listed(q) &&
	    (has_proxy(q) || q->client->proxy_state != GP_PROXY_READY))
		has |= GP_KFD_WAY_DBG;
	return has;
}

uint32_t gp_drive_way(const struct gp_manager *m, const struct gp_queue *q, uint32_t asked)
{
	return gp_ways_next(&m->conf->ways, ways_of(m, q), asked, 0);
}

const char *gp_drive_why_not(const struct gp_manager *m, const struct gp_queue *q, char *text, size_t size)
{
	const struct gp_ways *ways = &m->conf->ways;
	const char *dbg = gp_ways_permit(ways, GP_KFD_WAY_DBG) ? "dbg is for requests that name it"
							       : "dbg is not among --ways";

	if (gp_ways_permit(ways, GP_KFD_WAY_DBG) && q->client->proxy_state == GP_PROXY_READY && !has_proxy(q))
		snprintf(text, size, "the debugger of process %u does not see this queue", q->client->pid);
	else if (q->agent.peer)
		snprintf(text, size, "the agent in process %u has none of the ways in --ways",
			 q->client->pid);
	else
		snprintf(text, size,
			 "no agent in process %u (start it with LD_PRELOAD=libgpreempt-agent.so), and %s",
			 q->client->pid, dbg);
	return text;
}

/* With a stop as it is asked for. */
static uint64_t patience_for(const struct gp_manager *m, const struct gp_queue *q)
{
	return m->conf->patience_ns + (q->asked.type == GP_PREEMPT_DRAIN ? q->asked.timeout_ns : 0);
}

static uint64_t patience(const struct gp_manager *m, const struct gp_queue *q)
{
	return q->state == GP_QUEUE_SUSPENDING ? patience_for(m, q) : m->conf->patience_ns;
}

/* To be sent; what was sent before it, nobody waits for any more. */
static void post(struct gp_manager *m, struct gp_queue *q)
{
	q->sent_serial = 0;
	gp_list_remove(&q->outbox);
	gp_list_append(&m->outbox, &q->outbox);
	gp_alarm_in(&m->loop, &q->overdue, patience(m, q));
}

static void set_running(struct gp_manager *m, struct gp_queue *q)
{
	q->state = GP_QUEUE_RUNNING;
	q->tried = 0;
	q->status = 0;
	q->sent_serial = 0;
	q->awaits_proxy = false;
	gp_list_remove(&q->outbox);
	gp_alarm_cancel(&m->loop, &q->overdue);
	gp_proxy_used(m, q->client);
}

__attribute__((format(printf, 2, 3))) static void add_why(struct gp_queue *q, const char *fmt, ...)
{
	size_t n = strlen(q->why);
	va_list args;

	if (n)
		n += (size_t)snprintf(q->why + n, sizeof(q->why) - n, "; ");
	if (n >= sizeof(q->why))
		return;
	va_start(args, fmt);
	vsnprintf(q->why + n, sizeof(q->why) - n, fmt, args);
	va_end(args);
}

/* No way is left. Holding what runs would only deceive. */
static void stop_failed(struct gp_manager *m, struct gp_queue *q)
{
	int status = q->status ? q->status : -EOPNOTSUPP;
	char text[160];

	if (!q->status && !q->why[0])
		add_why(q, "%s", gp_drive_why_not(m, q, text, sizeof(text)));
	set_running(m, q);
	if (q->parked)
		q->unparkable_until_ns = m->loop.now_ns + GP_UNPARKABLE_NS;
	gp_reserve_park(m, q, false);
	q->wanted = GP_RUN;
	m->reserves_changed = true;
	gp_request_ended(q, GP_STOP, status, 0);
	gp_holds_forget(m->holds, q->handle);
}

static void way_failed(struct gp_manager *m, struct gp_queue *q, int status, const char *text)
{
	add_why(q, "%s failed: %s", gp_way_name(q->way), text ? text : strerror(-status));
	q->tried |= q->way;
	q->status = q->status ? q->status : status;
	q->awaits_proxy = false;
	q->state = GP_QUEUE_RUNNING;
	gp_alarm_cancel(&m->loop, &q->overdue);
	if (gp_ways_may_fall_back(status))
		begin_stop(m, q);
	else
		stop_failed(m, q);
}

/* A drain ended, and the queue was not known to be empty and finished: it runs. */
static bool is_undrained(const struct gp_queue *q, int status)
{
	return q->asked.type == GP_PREEMPT_DRAIN && (status == -ETIMEDOUT || status == -ENODATA);
}

/* Another way would have to wait as long. */
static void not_drained(struct gp_manager *m, struct gp_queue *q, int status)
{
	const char *then = q->asked.strict ? ", and runs on" : ": saved";
	double ms = (double)q->asked.timeout_ns / GP_MS;

	if (status == -ENODATA)
		add_why(q, "may not have finished within %g ms, its last packet has no completion signal%s",
			ms, then);
	else
		add_why(q, "did not run empty within %g ms%s", ms, then);
	if (q->asked.strict) {
		q->status = status;
		stop_failed(m, q);
	} else {
		q->asked.type = GP_PREEMPT_SAVE;
		post(m, q);
	}
}

void gp_drive_hurry(struct gp_manager *m, struct gp_queue *q, uint32_t type, uint64_t timeout_ns)
{
	bool is_under_way = q->state == GP_QUEUE_SUSPENDING && !q->awaits_proxy;
	uint64_t now = m->loop.now_ns,
		 left = is_under_way ? q->overdue.timer.at_ns - now : patience_for(m, q);

	if (q->asked.type != GP_PREEMPT_DRAIN || q->state == GP_QUEUE_SUSPENDED)
		return;
	if (type == GP_PREEMPT_DRAIN && m->conf->patience_ns + timeout_ns >= left)
		return;
	if (type == GP_PREEMPT_SAVE)
		add_why(q, "somebody did not want to wait for the drain: saved");
	q->asked.type = type;
	q->asked.timeout_ns = timeout_ns;
	if (is_under_way)
		post(m, q); /* else it is asked for like that when its time comes */
}

static void begin_stop(struct gp_manager *m, struct gp_queue *q)
{
	uint32_t way = gp_ways_next(&m->conf->ways, ways_of(m, q), q->asked.way, q->tried);
	const char *why;
	int r;

	if (!way) {
		stop_failed(m, q);
		return;
	}
	q->state = GP_QUEUE_SUSPENDING;
	q->way = way;
	gp_proxy_used(m, q->client);
	if (way != GP_KFD_WAY_DBG || has_proxy(q)) {
		post(m, q);
		return;
	}
	q->awaits_proxy = true;
	gp_alarm_in(&m->loop, &q->overdue, patience(m, q));
	r = gp_proxy_need(m, q->client, &why);
	if (r < 0)
		way_failed(m, q, r, why);
}

static void begin_resume(struct gp_manager *m, struct gp_queue *q)
{
	q->state = GP_QUEUE_RESUMING;
	post(m, q);
}

/* What the last scan saw of it is older. */
static void note_active(struct gp_queue *q, uint32_t active)
{
	q->scan.active = q->found.active = active;
	q->scan.from[GP_FIELD_ACTIVE] = q->found.from[GP_FIELD_ACTIVE] = GP_SOURCE_AGENT;
}

static void stopped(struct gp_manager *m, struct gp_queue *q, uint64_t latency_ns)
{
	if (q->tried)
		add_why(q, "used %s", gp_way_name(q->way));
	q->state = GP_QUEUE_SUSPENDED;
	note_active(q, 0);
	q->tried = 0;
	q->status = 0;
	gp_alarm_cancel(&m->loop, &q->overdue);
	gp_request_ended(q, GP_STOP, 0, latency_ns);
	q->why[0] = '\0';
	if (q->wanted == GP_RUN)
		begin_resume(m, q);
}

static void runs(struct gp_manager *m, struct gp_queue *q, uint64_t latency_ns)
{
	set_running(m, q);
	note_active(q, !q->agent.peer || q->agent.told.percent);
	q->why[0] = '\0';
	gp_request_ended(q, GP_RUN, 0, latency_ns);
	if (q->wanted == GP_STOP)
		begin_stop(m, q);
}

/*
 * Resuming must win: it is tried until it works or nothing is left to resume.  Unless somebody
 * wants it stopped again by now: then it is where it should be.
 */
static void resume_failed(struct gp_manager *m, struct gp_queue *q, int status)
{
	if (q->wanted == GP_STOP) {
		stopped(m, q, 0);
		return;
	}
	if (!q->why[0])
		gp_account_log(
			gp_queue_account(q), m->loop.now_ns,
			"cannot resume queue %llu of process %u (%s): %s; it is tried again every second",
			(unsigned long long)q->handle, q->client->pid, q->client->name, strerror(-status));
	snprintf(q->why, sizeof(q->why), "cannot resume: %s; it is tried again every second",
		 strerror(-status));
	q->state = GP_QUEUE_SUSPENDED;
	gp_request_ended(q, GP_RUN, status, 0);
	gp_alarm_in(&m->loop, &q->overdue, GP_RETRY_NS);
}

static void ended(struct gp_manager *m, const struct gp_done *done)
{
	struct gp_queue *q = gp_world_queue(&m->world, done->want.queue);
	int status = done->want.status;

	if (!q)
		return;
	if (done->want.want == GP_STOP && q->state == GP_QUEUE_SUSPENDING) {
		if (status == 0)
			stopped(m, q, done->latency_ns);
		else if (is_undrained(q, status))
			not_drained(m, q, status);
		else
			way_failed(m, q, status, NULL);
	} else if (done->want.want == GP_RUN && q->state == GP_QUEUE_RESUMING) {
		if (status == 0 || status == -ENOENT || status == -ESRCH)
			runs(m, q, done->latency_ns);
		else
			resume_failed(m, q, status);
	}
}

void gp_drive_overdue(void *arg)
{
	struct gp_queue *q = arg;
	struct gp_manager *m = q->manager;

	if (q->state == GP_QUEUE_SUSPENDED || q->state == GP_QUEUE_RESUMING) {
		begin_resume(m, q); /* again */
		return;
	}
	if (q->state != GP_QUEUE_SUSPENDING)
		return;
	if (q->awaits_proxy) {
		way_failed(m, q, -ETIMEDOUT, NULL);
		return;
	}
	gp_account_log(gp_queue_account(q), m->loop.now_ns,
		       "process %u (%s) does not answer: queue %llu is not stopped", q->client->pid,
		       q->client->name, (unsigned long long)q->handle);
	add_why(q, "%s failed: no answer came", gp_way_name(q->way));
	q->status = q->status ? q->status : -ETIMEDOUT;
	stop_failed(m, q);
	begin_resume(m, q); /* it may have been done all the same */
}

/* What is wanted has changed. */

static void now_run(struct gp_manager *m, struct gp_queue *q)
{
	bool unsent = q->awaits_proxy || !gp_list_empty(&q->outbox);

	gp_request_ended(q, GP_STOP, -ECANCELED, 0);
	if (q->state == GP_QUEUE_SUSPENDING && unsent)
		set_running(m, q);
	else if (q->state == GP_QUEUE_SUSPENDING || q->state == GP_QUEUE_SUSPENDED)
		begin_resume(m, q);
}

static void now_stop(struct gp_manager *m, struct gp_queue *q)
{
	gp_request_ended(q, GP_RUN, 0, 0); /* it was let go, and somebody else wants it still */
	q->tried = 0;
	q->status = 0;
	q->why[0] = '\0';
	if (q->state == GP_QUEUE_RESUMING && !gp_list_empty(&q->outbox)) {
		gp_list_remove(&q->outbox);
		stopped(m, q, 0);
	} else if (q->state == GP_QUEUE_SUSPENDED) {
		stopped(m, q, 0); /* a resume that failed need not be tried again */
	} else if (q->state == GP_QUEUE_RUNNING) {
		begin_stop(m, q);
	}
}

void gp_drive_want(struct gp_manager *m, struct gp_queue *q)
{
	uint32_t wanted = gp_holds_held(m->holds, q->handle) || q->parked ? GP_STOP : GP_RUN;

	if (wanted == q->wanted && (wanted == GP_RUN || q->state != GP_QUEUE_RUNNING))
		return;
	q->wanted = wanted;
	if (wanted == GP_RUN)
		now_run(m, q);
	else
		now_stop(m, q);
	gp_proxy_used(m, q->client);
}

void gp_drive_changes(struct gp_manager *m)
{
	uint64_t handle;
	struct gp_queue *q;

	while (gp_holds_changed(m->holds, &handle)) {
		q = gp_world_queue(&m->world, handle);
		m->reserves_changed = true;
		if (q)
			gp_drive_want(m, q);
	}
}

/* What becomes of it by others' doing. */

static bool goes_by(const struct gp_queue *q, const struct gp_peer *p)
{
	const struct gp_link *link = q->way == GP_KFD_WAY_DBG ? &q->proxy : &q->agent;

	return q->state != GP_QUEUE_RUNNING && !q->awaits_proxy && link->peer == p;
}

void gp_drive_told(struct gp_manager *m, struct gp_queue *q, const struct gp_peer *p, bool is_stopped)
{
	/* An agent that heard nothing for too long has resumed by itself. */
	if (q->state == GP_QUEUE_SUSPENDED && !is_stopped && goes_by(q, p))
		set_running(m, q);
	if (q->state == GP_QUEUE_RUNNING && q->wanted == GP_STOP) {
		q->why[0] = '\0';
		begin_stop(m, q);
	} else if (q->state == GP_QUEUE_RUNNING && is_stopped) {
		q->way = p->role == GP_ROLE_PROXY ? GP_KFD_WAY_DBG : GP_KFD_WAY_UPDATE;
		begin_resume(m, q);
	}
}

/* Whoever did it has resumed everything, or the driver has for it. */
static void lost(struct gp_manager *m, struct gp_queue *q, const struct gp_peer *p)
{
	gp_list_remove(&q->outbox);
	if (p->role == GP_ROLE_PROXY && q->wanted == GP_STOP) {
		gp_account_log(p->account, m->loop.now_ns,
			       "the debugger of process %u ended: queue %llu runs again", q->client->pid,
			       (unsigned long long)q->handle);
		way_failed(m, q, -ECONNRESET, "the debugger ended");
		return;
	}
	/* The hold stays: the agent may come back with the queue. */
	set_running(m, q);
	snprintf(q->why, sizeof(q->why), "the agent in process %u is gone", q->client->pid);
	gp_request_ended(q, GP_STOP, -ESRCH, 0);
	q->why[0] = '\0';
	gp_request_ended(q, GP_RUN, 0, 0);
}

void gp_drive_lost(struct gp_manager *m, struct gp_peer *p)
{
	if (!p->client)
		return;
	gp_list_each(pos, &p->client->queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);

		if (q->sent_to == p) {
			q->sent_to = NULL;
			q->sent_serial = 0;
		}
		if (goes_by(q, p))
			lost(m, q, p);
	}
}

void gp_drive_gone(struct gp_manager *m, struct gp_queue *q)
{
	gp_request_ended(q, GP_STOP, -ENOENT, 0);
	gp_request_ended(q, GP_RUN, 0, 0);
	gp_holds_forget(m->holds, q->handle);
	gp_reserve_park(m, q, false);
	m->reserves_changed = true;
}

void gp_drive_proxy_ready(struct gp_manager *m, struct gp_client *c)
{
	gp_list_each(pos, &c->queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);

		if (!q->awaits_proxy)
			continue;
		q->awaits_proxy = false;
		if (has_proxy(q))
			post(m, q);
		else
			way_failed(m, q, -ENXIO, "the debugger does not see this queue");
	}
}

void gp_drive_proxy_failed(struct gp_manager *m, struct gp_client *c, int status, const char *text)
{
	gp_list_each(pos, &c->queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);

		if (q->awaits_proxy)
			way_failed(m, q, status, text);
	}
}

/* What goes to the backend, at the end of a step */

static struct gp_apply_opts opts_of(const struct gp_manager *m, const struct gp_queue *q)
{
	struct gp_apply_opts opts = { .size = sizeof(opts), .lease_ns = m->conf->lease_ns, .way = q->way };

	if (q->state == GP_QUEUE_SUSPENDING) {
		opts.type = q->asked.type;
		opts.timeout_ns = q->asked.timeout_ns;
	}
	return opts;
}

/* As many as go with the first in one call. */
static size_t take_batch(struct gp_manager *m, struct gp_want *wants, struct gp_apply_opts *ret)
{
	size_t n = 0;

	gp_list_each_safe(pos, &m->outbox) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, outbox);
		struct gp_apply_opts opts = opts_of(m, q);

		if (!n)
			*ret = opts;
		if (n == BATCH)
			break;
		if (memcmp(&opts, ret, sizeof(opts)) != 0)
			continue;
		gp_list_remove(&q->outbox);
		wants[n++] = (struct gp_want){ .queue = q->handle,
					       .want = q->state == GP_QUEUE_SUSPENDING ? GP_STOP : GP_RUN };
	}
	return n;
}

static void send_outbox(struct gp_manager *m)
{
	static struct gp_want wants[BATCH];
	struct gp_apply_opts opts;
	size_t n;

	while ((n = take_batch(m, wants, &opts)) > 0) {
		(void)m->ops.apply(m->remote, wants, n, &opts);
		for (size_t i = 0; i < n; i++)
			if (wants[i].status != -EINPROGRESS)
				ended(m, &(struct gp_done){ .want = wants[i] });
	}
}

void gp_drive_flush(struct gp_manager *m)
{
	struct gp_done done[64];
	int n;

	do {
		n = m->ops.complete(m->remote, done, 64);
		for (int i = 0; i < n; i++)
			ended(m, &done[i]);
		gp_drive_changes(m);
		send_outbox(m);
	} while (n > 0 || !gp_list_empty(&m->outbox));
}

bool gp_drive_at_rest(const struct gp_manager *m)
{
	gp_list_each(pos, &m->world.all_queues)
		if (gp_container(pos, struct gp_queue, all)->state != GP_QUEUE_RUNNING)
			return false;
	return true;
}
