// SPDX-License-Identifier: MIT
/*
 *              no way left: failed
 *             .--------------------------------------.
 *             |                                      |
 *   STOP -> a way --> (a debugger starts) --> sent --+--> done
 *             ^                                      |
 *             '-------- failed: the next way --------'
 *                       not drained: the same, to save
 *
 *   RUN -> sent, the way the stop went -> done, or failed: whoever wants it asks again
 *
 * RUN overtakes a STOP that is under way: peers do what they are told in order.
 */
#include "daemon/route.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/manager.h"

#define WHY_LEN 192 /* as a message has room for */

struct gp_backend {
	struct gp_manager *m;
	uint32_t last_serial;
	struct gp_list outbox, sessions, ended; /* of queues; sessions: to be sent by one */
	struct gp_msg msg;                      /* large */
};

static struct gp_queue *queue_of(struct gp_route *r)
{
	return gp_container(r, struct gp_queue, route);
}

/* Which way */

/* One that is starting has not told of all queues yet; one that is ending does nothing more. */
static bool has_proxy(const struct gp_queue *q)
{
	return q->proxy.peer && q->client->proxy_state == GP_PROXY_READY;
}

/* The background is there with it. */
static bool can_park(const struct gp_queue *q)
{
	return q->agent.peer && q->agent.peer->ways & GP_NVRM_WAY_PARK;
}

static uint32_t ways_of(const struct gp_manager *m, const struct gp_queue *q)
{
	uint32_t has = gp_sessions_reach(m, q) ? GP_KFD_WAY_SESSION : 0;

	if (q->agent.peer)
		has |= q->agent.peer->ways & (GP_KFD_WAY_UPDATE | GP_KFD_WAY_PRIVATE | GP_NVRM_WAY_PARK);
	/* A debugger that is there and does not see the queue never will. Another driver's queues it does not
	 * see, but that the driver shows one counts for more than what its agent says. */
	if (gp_ways_permit(&m->conf->ways, GP_KFD_WAY_DBG) && gp_queue_listed(q) &&
	    (q->scanned || !can_park(q)) && (has_proxy(q) || q->client->proxy_state != GP_PROXY_READY))
		has |= GP_KFD_WAY_DBG;
	return has;
}

uint32_t gp_route_way(const struct gp_manager *m, const struct gp_queue *q, uint32_t asked)
{
	return gp_ways_next(&m->conf->ways, ways_of(m, q), asked, 0);
}

/* Those that could be gone on a device, with an agent in each program. */
static uint32_t ways_on(const struct gp_manager *m, const struct gp_device *d)
{
	uint32_t all = gp_ways_all(&m->conf->ways);

	if (!gp_device_is_kfd(d))
		return all & (d->is_simulated ? GP_KFD_WAY_UPDATE : GP_NVRM_WAY_PARK);
	return all & (GP_KFD_WAY_UPDATE | GP_KFD_WAY_DBG | GP_KFD_WAY_PRIVATE |
		      (gp_sessions_may_open(m) ? GP_KFD_WAY_SESSION : 0));
}

bool gp_route_unreached(const struct gp_manager *m, uint32_t device, char *text, size_t size)
{
	const struct gp_device *d = gp_devices_at(&m->world.devices, device);
	bool is_nvidia;

	if (!d || ways_on(m, d))
		return false;
	is_nvidia = !d->is_simulated && !gp_device_is_kfd(d);
	snprintf(text, size, "nothing here can be stopped: --ways has no way for %s; add %s",
		 is_nvidia         ? "NVIDIA GPUs"
		 : d->is_simulated ? "simulated GPUs"
				   : "AMD GPUs with this driver",
		 is_nvidia ? "park" : "update");
	return true;
}

const char *gp_route_why_not(const struct gp_manager *m, const struct gp_queue *q, char *text, size_t size)
{
	const struct gp_ways *ways = &m->conf->ways;
	const char *dbg = gp_ways_permit(ways, GP_KFD_WAY_DBG) ? "dbg is for requests that name it"
							       : "dbg is not among --ways";

	if (gp_route_unreached(m, gp_queue_device(&m->world, q), text, size))
		return text;
	if (gp_ways_permit(ways, GP_KFD_WAY_DBG) && q->client->proxy_state == GP_PROXY_READY && !has_proxy(q))
		snprintf(text, size, "the debugger of process %u does not see this queue", q->client->pid);
	else if (!gp_ways_permit(ways, GP_KFD_WAY_UPDATE) && gp_ways_permit(ways, GP_KFD_WAY_SESSION))
		snprintf(text, size, "no scheduling session for process %u: %s", q->client->pid,
			 gp_sessions_why_not(m, q));
	else if (q->agent.peer)
		snprintf(text, size, "the agent in process %u has none of the ways in --ways",
			 q->client->pid);
	else
		snprintf(text, size, "no agent in process %u (start it with gpreempt run), and %s",
			 q->client->pid, dbg);
	return text;
}

static bool by_session(const struct gp_route *r)
{
	return r->way == GP_KFD_WAY_SESSION;
}

/* A session is nobody that is spoken to. */
static const struct gp_contact *link_of(const struct gp_queue *q)
{
	static const struct gp_contact nobody;

	if (by_session(&q->route))
		return &nobody;
	return q->route.way == GP_KFD_WAY_DBG ? &q->proxy : &q->agent;
}

/* Beginning and end */

const char *gp_route_why(const struct gp_route *r)
{
	return r->why ? r->why : "";
}

static void forget_why(struct gp_route *r)
{
	free(r->why);
	r->why = NULL;
}

/* On no memory, nothing is said. */
__attribute__((format(printf, 2, 0))) static void append_why(struct gp_route *r, const char *fmt,
							     va_list args)
{
	size_t n;

	if (!r->why)
		r->why = calloc(1, WHY_LEN);
	if (!r->why)
		return;
	n = strlen(r->why);
	if (n)
		n += (size_t)snprintf(r->why + n, WHY_LEN - n, "; ");
	if (n < WHY_LEN)
		vsnprintf(r->why + n, WHY_LEN - n, fmt, args);
}

__attribute__((format(printf, 2, 3))) static void add_why(struct gp_route *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	append_why(r, fmt, args);
	va_end(args);
}

void gp_route_say(struct gp_route *r, const char *fmt, ...)
{
	va_list args;

	forget_why(r);
	va_start(args, fmt);
	append_why(r, fmt, args);
	va_end(args);
}

/* Nobody waits for an answer any more. */
static void settle(struct gp_manager *m, struct gp_route *r)
{
	r->under_way = false;
	r->awaits_proxy = false;
	r->sent_serial = 0;
	gp_list_remove(&r->outbox);
	gp_alarm_cancel(&m->loop, &r->overdue);
}

/* NVIDIA's agents leave the slices of groups for copies alone. */
static void count_slice(struct gp_manager *m, struct gp_queue *q, int status)
{
	struct gp_route *r = &q->route;
	uint32_t device = gp_queue_device(&m->world, q);
	bool yields = r->want == GP_BACKGROUND;

	if (r->want == GP_STOP || yields == r->yields || device >= GP_MOST_DEVICES ||
	    (can_park(q) && q->found.kind != GP_KIND_COMPUTE))
		return;
	m->slices[device].set += status == 0;
	m->slices[device].failed += status < 0;
	r->yields = status < 0 ? r->yields : yields;
}

/* latency_ns: by the word of who did it; it was not longer than it took for us. */
static void end(struct gp_queue *q, int status, uint64_t latency_ns)
{
	struct gp_manager *m = q->manager;
	struct gp_route *r = &q->route;
	uint64_t took = m->loop.now_ns - r->begun_ns;

	settle(m, r);
	count_slice(m, q, status);
	r->status = status == -EINPROGRESS ? -EPROTO : status; /* it has ended, whatever a peer says */
	r->latency_ns = latency_ns < took ? latency_ns : took;
	gp_list_remove(&r->ended);
	gp_list_append(&m->route->ended, &r->ended);
	gp_proxy_used(m, q->client);
}

static uint64_t patience(const struct gp_manager *m, const struct gp_route *r)
{
	bool drains = r->want == GP_STOP && r->manner.type == GP_PREEMPT_DRAIN;

	return m->conf->patience_ns + (drains ? r->manner.timeout_ns : 0);
}

/* To be sent; what was sent before it, nobody waits for any more. */
static void post(struct gp_manager *m, struct gp_route *r)
{
	r->sent_serial = 0;
	gp_list_remove(&r->outbox);
	gp_list_append(by_session(r) ? &m->route->sessions : &m->route->outbox, &r->outbox);
	gp_alarm_in(&m->loop, &r->overdue, patience(m, r));
}

static void begin(struct gp_manager *m, struct gp_route *r, uint32_t want)
{
	settle(m, r);
	gp_list_remove(&r->ended);
	r->under_way = true;
	r->want = want;
	r->begun_ns = m->loop.now_ns;
	r->status = 0;
	r->doubtful = false;
	forget_why(r);
}

/* A stop */

static void go_next_way(struct gp_manager *m, struct gp_queue *q);

static void way_failed(struct gp_manager *m, struct gp_queue *q, int status, const char *text)
{
	struct gp_route *r = &q->route;

	add_why(r, "%s failed: %s", gp_way_name(r->way), text ? text : strerror(-status));
	r->tried |= r->way;
	r->status = r->status ? r->status : status;
	r->awaits_proxy = false;
	gp_alarm_cancel(&m->loop, &r->overdue);
	if (gp_ways_may_fall_back(status))
		go_next_way(m, q);
	else
		end(q, r->status, 0);
}

static void need_proxy(struct gp_manager *m, struct gp_queue *q)
{
	const char *why;
	int r;

	q->route.awaits_proxy = true;
	gp_alarm_in(&m->loop, &q->route.overdue, patience(m, &q->route));
	r = gp_proxy_need(m, q->client, &why);
	if (r < 0)
		way_failed(m, q, r, why);
}

/* Who names a way is told why another is used. */
static void pass_over_named(struct gp_manager *m, struct gp_queue *q)
{
	struct gp_route *r = &q->route;

	if (!(r->manner.way & ~ways_of(m, q)))
		return;
	if (r->manner.way == GP_KFD_WAY_SESSION)
		add_why(r, "process %u cannot be stopped by session: %s", q->client->pid,
			gp_sessions_why_not(m, q));
	else if (r->manner.way == GP_KFD_WAY_PRIVATE && q->agent.peer)
		add_why(r,
			"the agent in process %u does not offer private: start it with GPREEMPT_WAYS=private",
			q->client->pid);
	else
		add_why(r, "process %u cannot be stopped by %s", q->client->pid, gp_way_name(r->manner.way));
	r->tried |= r->manner.way;
}

/* gpreemptd's sessions save. Where nothing else is left they do that at once, unless they are not to. */
static uint32_t choose_way(struct gp_manager *m, struct gp_queue *q)
{
	struct gp_route *r = &q->route;
	uint32_t has = ways_of(m, q), cannot = r->manner.type == GP_PREEMPT_DRAIN ? GP_KFD_WAY_SESSION : 0;
	uint32_t way = gp_ways_next(&m->conf->ways, has & ~cannot, r->manner.way, r->tried);

	if (way || !cannot || r->manner.strict)
		return way;
	way = gp_ways_next(&m->conf->ways, has, r->manner.way, r->tried);
	if (way) {
		add_why(r, "no agent is there to drain: saved");
		r->manner.type = GP_PREEMPT_SAVE;
	}
	return way;
}

static void go_next_way(struct gp_manager *m, struct gp_queue *q)
{
	struct gp_route *r = &q->route;
	uint32_t way = choose_way(m, q);
	char text[160];

	if (!way) {
		if (!r->status)
			add_why(r, "%s", gp_route_why_not(m, q, text, sizeof(text)));
		end(q, r->status ? r->status : -EOPNOTSUPP, 0);
		return;
	}
	r->way = way;
	r->device = gp_queue_device(&m->world, q);
	r->queue_id = q->scanned && q->scan.from[GP_FIELD_ID] ? q->scan.queue_id : q->found.queue_id;
	gp_proxy_used(m, q->client);
	if (way == GP_KFD_WAY_DBG && !has_proxy(q))
		need_proxy(m, q);
	else
		post(m, r);
}

/* A drain ended, and the queue was not known to be empty and finished: it runs. */
static bool is_undrained(const struct gp_route *r, int status)
{
	return r->manner.type == GP_PREEMPT_DRAIN && (status == -ETIMEDOUT || status == -ENODATA);
}

/* Another way would have to wait as long. */
static void not_drained(struct gp_manager *m, struct gp_queue *q, int status)
{
	struct gp_route *r = &q->route;
	const char *then = r->manner.strict ? ", and runs on" : ": saved";
	double ms = (double)r->manner.timeout_ns / GP_MS;

	if (status == -ENODATA && can_park(q))
		add_why(r, "on an NVIDIA GPU nobody sees whether it has finished; after %g ms%s", ms,
			r->manner.strict ? " it runs on" : " it was parked");
	else if (status == -ENODATA)
		add_why(r, "may not have finished within %g ms, its last packet has no completion signal%s",
			ms, then);
	else
		add_why(r, "did not run empty within %g ms%s", ms, then);
	if (r->manner.strict) {
		end(q, status, 0);
	} else {
		r->manner.type = GP_PREEMPT_SAVE;
		post(m, r);
	}
}

void gp_route_hurry(struct gp_manager *m, struct gp_queue *q, uint32_t type, uint64_t timeout_ns)
{
	struct gp_route *r = &q->route;
	uint64_t left = patience(m, r);

	if (!r->under_way || r->want != GP_STOP || r->manner.type != GP_PREEMPT_DRAIN)
		return;
	if (!r->awaits_proxy)
		left = r->overdue.timer.at_ns > m->loop.now_ns ? r->overdue.timer.at_ns - m->loop.now_ns : 0;
	if (type == GP_PREEMPT_DRAIN && m->conf->patience_ns + timeout_ns >= left)
		return;
	if (type == GP_PREEMPT_SAVE)
		add_why(r, "somebody did not want to wait for the drain: saved");
	r->manner.type = type;
	r->manner.timeout_ns = timeout_ns;
	if (!r->awaits_proxy)
		post(m, r); /* else it is asked for like that when its time comes */
}

static void stop(struct gp_manager *m, struct gp_queue *q)
{
	const struct gp_core_queue_status status = gp_schedule_status(m, q);

	if (q->route.under_way && q->route.want == GP_STOP) { /* it was for a hold, which could wait */
		gp_route_hurry(m, q, GP_PREEMPT_SAVE, 0);
		return;
	}
	begin(m, &q->route, GP_STOP);
	q->route.tried = 0;
	q->route.manner = status.held ? q->asked : (struct gp_manner){ 0 };
	if (status.for_others)
		q->route.manner.type = GP_PREEMPT_SAVE;
	pass_over_named(m, q);
	go_next_way(m, q);
}

/* A resume */

/* want: GP_RUN, or GP_BACKGROUND where something below us takes it off for others. */
static void run(struct gp_manager *m, struct gp_queue *q, uint32_t want)
{
	struct gp_route *r = &q->route;
	bool is_unsent = r->under_way && (r->awaits_proxy || !gp_list_empty(&r->outbox)) && !can_park(q);

	begin(m, r, want);
	if (is_unsent || (!by_session(r) && !link_of(q)->peer))
		end(q, 0, 0); /* it was not stopped, or who stopped it has resumed it in going */
	else
		post(m, r);
}

/* What peers say */

static void stop_answered(struct gp_manager *m, struct gp_queue *q, int status, uint64_t latency_ns)
{
	struct gp_route *r = &q->route;

	if (status == 0 && r->tried)
		add_why(r, "used %s", gp_way_name(r->way));
	if (status == 0)
		end(q, 0, latency_ns);
	else if (is_undrained(r, status))
		not_drained(m, q, status);
	else
		way_failed(m, q, status, NULL);
}

static void answered(struct gp_manager *m, struct gp_queue *q, const struct gp_wire_item *item)
{
	int status = item->status;

	q->route.sent_serial = 0;
	if (q->route.want == GP_STOP)
		stop_answered(m, q, status, item->latency_ns);
	else
		end(q, status == -ENOENT || status == -ESRCH ? 0 : status, item->latency_ns);
}

void gp_route_answered(struct gp_backend *be, struct gp_peer *p, const struct gp_msg *msg)
{
	for (uint32_t i = 0; i < msg->items.n; i++) {
		struct gp_queue *q = gp_map_get(&p->queues, msg->item[i].queue);

		/* Anything else is the answer to what we have changed our mind about since. */
		if (q && q->route.sent_to == p && q->route.sent_serial && q->route.sent_serial == msg->serial)
			answered(be->m, q, &msg->item[i]);
	}
}

/* The driver may have done it though the GPU did not: then a resume comes next. */
static void session_stop_did(struct gp_manager *m, struct gp_queue *q, int status, const char *why,
			     uint64_t latency_ns)
{
	struct gp_route *r = &q->route;

	if (status == 0 && why)
		add_why(r, "%s", why);
	if (status == 0) {
		stop_answered(m, q, 0, latency_ns);
	} else if (status == -EIO) {
		add_why(r, "session failed: %s", why);
		r->doubtful = true;
		end(q, status, 0);
	} else {
		way_failed(m, q, status, why);
	}
}

void gp_route_session_did(struct gp_manager *m, struct gp_queue *q, int status, const char *why,
			  uint64_t latency_ns)
{
	q->route.sent_serial = 0;
	if (q->route.want == GP_STOP)
		session_stop_did(m, q, status, why, latency_ns);
	else if (status == -EBUSY) /* it was not this session that stopped it */
		end(q, 0, latency_ns);
	else
		end(q, status == -ENOENT ? 0 : status, latency_ns);
}

/* Nobody asked for it, and it is so. */
static void is_now(struct gp_manager *m, struct gp_queue *q, uint32_t want)
{
	begin(m, &q->route, want);
	end(q, 0, 0);
}

void gp_route_found(struct gp_manager *m, struct gp_queue *q, const struct gp_peer *p, bool is_stopped)
{
	uint32_t state;

	if (q->route.under_way)
		return; /* the answer will say */
	if (!gp_list_empty(&q->route.ended))
		gp_schedule_step(m); /* so that the core has heard of the last one */
	state = gp_schedule_status(m, q).state;
	/* An agent that heard nothing for too long has resumed by itself. */
	if (state == GP_QUEUE_SUSPENDED && !is_stopped && link_of(q)->peer == p)
		is_now(m, q, GP_RUN);
	if (state == GP_QUEUE_RUNNING && is_stopped) {
		q->route.way = p->role == GP_ROLE_PROXY ? GP_KFD_WAY_DBG
			       : can_park(q)            ? GP_NVRM_WAY_PARK
							: GP_KFD_WAY_UPDATE;
		is_now(m, q, GP_STOP);
	}
}

void gp_route_session_ended(struct gp_manager *m, uint32_t device)
{
	gp_schedule_step(m); /* so that the core has heard of what it did before */
	gp_list_each(pos, &m->world.all_queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, all);

		if (by_session(&q->route) && q->route.device == device && !q->route.under_way &&
		    gp_schedule_status(m, q).state == GP_QUEUE_SUSPENDED)
			is_now(m, q, GP_RUN);
	}
}

void gp_route_overdue(void *arg)
{
	struct gp_queue *q = arg;
	struct gp_manager *m = q->manager;
	struct gp_route *r = &q->route;

	if (r->awaits_proxy) {
		way_failed(m, q, -ETIMEDOUT, NULL);
		return;
	}
	if (r->want == GP_STOP) {
		gp_account_log(gp_queue_account(q), m->loop.now_ns, GP_ABOUT_QUEUE(q),
			       "%s %u (%s) does not answer: queue %llu is not stopped",
			       by_session(r) ? "the GPU of process" : "process", q->client->pid,
			       q->client->name, (unsigned long long)q->handle);
		add_why(r, "%s failed: no answer came", gp_way_name(r->way));
	}
	r->doubtful = true;
	end(q, -ETIMEDOUT, 0);
}

/* Who comes and goes */

/* Whoever did it has resumed everything, or the driver has for it. */
static void lost(struct gp_manager *m, struct gp_queue *q, const struct gp_peer *p)
{
	bool is_proxy = p->role == GP_ROLE_PROXY;

	if (!gp_list_empty(&q->route.ended)) { /* the core has not heard of it yet */
		if (q->route.want != GP_STOP)
			q->route.status = 0;
		else if (!q->route.status)
			q->route.status = -ESRCH;
		return;
	}
	if (is_proxy && (q->route.under_way ? q->route.want : GP_STOP) == GP_STOP)
		gp_account_log(p->account, m->loop.now_ns, GP_ABOUT_QUEUE(q),
			       "the debugger of process %u ended: queue %llu runs again", q->client->pid,
			       (unsigned long long)q->handle);
	if (!q->route.under_way) {
		is_now(m, q, GP_RUN);
	} else if (q->route.want != GP_STOP) {
		end(q, 0, 0);
	} else if (is_proxy) {
		way_failed(m, q, -ECONNRESET, "the debugger ended");
	} else {
		end(q, -ESRCH, 0);
	}
}

void gp_route_lost(struct gp_manager *m, struct gp_peer *p)
{
	if (!p->client)
		return;
	gp_list_each(pos, &p->client->queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);
		struct gp_route *r = &q->route;

		if (r->sent_to == p) {
			r->sent_to = NULL;
			r->sent_serial = 0;
		}
		if (link_of(q)->peer == p && !r->awaits_proxy &&
		    (r->under_way || gp_schedule_status(m, q).state != GP_QUEUE_RUNNING))
			lost(m, q, p);
	}
}

void gp_route_gone(struct gp_manager *m, struct gp_queue *q)
{
	gp_sessions_queue_gone(m, q);
	settle(m, &q->route);
	gp_list_remove(&q->route.ended);
	forget_why(&q->route);
}

void gp_route_proxy_ready(struct gp_manager *m, struct gp_client *c)
{
	gp_list_each(pos, &c->queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);

		if (!q->route.awaits_proxy)
			continue;
		q->route.awaits_proxy = false;
		if (has_proxy(q))
			post(m, &q->route);
		else
			way_failed(m, q, -ENXIO, "the debugger does not see this queue");
	}
}

void gp_route_proxy_failed(struct gp_manager *m, struct gp_client *c, int status, const char *text)
{
	gp_list_each(pos, &c->queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);

		if (q->route.awaits_proxy)
			way_failed(m, q, status, text);
	}
}

/* What is sent: to each peer one message with all that goes together */

static uint32_t next_serial(struct gp_backend *be)
{
	be->last_serial += be->last_serial == UINT32_MAX ? 2 : 1; /* 0 is none */
	return be->last_serial;
}

/* A resume has none, and goes with any stop that has none. */
static uint32_t type_of(const struct gp_route *r)
{
	return r->want == GP_STOP ? r->manner.type : 0;
}

static uint64_t timeout_of(const struct gp_route *r)
{
	return r->want == GP_STOP ? r->manner.timeout_ns : 0;
}

static void begin_message(struct gp_backend *be, const struct gp_route *first)
{
	struct gp_msg_items *items = &be->msg.items;

	memset(&be->msg, 0, offsetof(struct gp_msg, item));
	be->msg.type = GP_MSG_WANTS;
	be->msg.serial = next_serial(be);
	items->way = first->way;
	items->lease_ns = be->m->conf->lease_ns;
	items->type = type_of(first);
	items->timeout_ns = timeout_of(first);
}

static bool goes_with(const struct gp_route *a, const struct gp_route *b)
{
	return a->way == b->way && type_of(a) == type_of(b) && timeout_of(a) == timeout_of(b);
}

/* Where the driver has the background by itself, an agent just lets it run. */
static uint32_t want_of(struct gp_route *r)
{
	return r->want == GP_BACKGROUND && !can_park(queue_of(r)) ? GP_RUN : r->want;
}

static void send_first(struct gp_backend *be)
{
	struct gp_msg_items *items = &be->msg.items;
	struct gp_route *first = gp_container(be->outbox.next, struct gp_route, outbox);
	struct gp_peer *peer = link_of(queue_of(first))->peer;

	begin_message(be, first);
	gp_list_each_safe(pos, &be->outbox) {
		struct gp_route *r = gp_container(pos, struct gp_route, outbox);
		const struct gp_contact *link = link_of(queue_of(r));

		if (link->peer != peer || !goes_with(r, first) || items->n == GP_WIRE_MOST_ITEMS)
			continue;
		gp_list_remove(&r->outbox);
		be->msg.item[items->n++] =
			(struct gp_wire_item){ .queue = link->told.queue, .want = want_of(r) };
		r->sent_serial = be->msg.serial;
		r->sent_to = peer;
	}
	/* If it cannot be sent, the peer is dropped, and its queues are told so. */
	(void)gp_peer_send(peer, &be->msg);
}

void gp_route_flush(struct gp_backend *be)
{
	while (!gp_list_empty(&be->outbox))
		send_first(be);
	if (!gp_list_empty(&be->sessions))
		gp_sessions_send(be->m, &be->sessions, next_serial(be));
}

/* The backend's table */

static int open_route(const struct gp_backend_opts *opts, struct gp_backend **ret)
{
	struct gp_backend *be = calloc(1, sizeof(*be));

	if (!be)
		return -ENOMEM;
	be->m = (struct gp_manager *)opts->params;
	gp_list_init(&be->outbox);
	gp_list_init(&be->sessions);
	gp_list_init(&be->ended);
	*ret = be;
	return 0;
}

/* The connections end with us, and with them every stop. */
static void close_route(struct gp_backend *be)
{
	free(be);
}

static int apply(struct gp_backend *be, struct gp_want *wants, size_t n, const struct gp_apply_opts *opts)
{
	int r = 0;

	(void)opts; /* the lease is that of the connection */
	for (size_t i = 0; i < n; i++) {
		struct gp_queue *q = gp_world_queue(&be->m->world, wants[i].queue);

		wants[i].status = q ? -EINPROGRESS : -ENOENT;
		if (!q)
			r = r ? r : wants[i].status;
		else if (wants[i].want == GP_STOP)
			stop(be->m, q);
		else
			run(be->m, q, wants[i].want);
	}
	gp_route_flush(be);
	return r;
}

static int complete(struct gp_backend *be, struct gp_done *done, size_t n)
{
	size_t i;

	for (i = 0; i < n && !gp_list_empty(&be->ended); i++) {
		struct gp_route *r = gp_container(be->ended.next, struct gp_route, ended);

		gp_list_remove(&r->ended);
		done[i] = (struct gp_done){ .want = { queue_of(r)->handle, r->want, r->status },
					    .latency_ns = r->latency_ns,
					    .doubtful = r->doubtful };
	}
	return (int)i;
}

const struct gp_backend_ops gp_route_ops = {
	.size = sizeof(gp_route_ops),
	.abi = GP_BACKEND_ABI,
	.name = "route",
	.open = open_route,
	.close = close_route,
	.apply = apply,
	.complete = complete,
};
