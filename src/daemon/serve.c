// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/manager.h"

#define MOST_SLO_NS (3600 * GP_S)

/* Root mounted one socket or the other: what the process says of itself changes nothing about it. */
void gp_verdict_of_client(const struct gp_manager *m, const struct gp_client *c,
			  const struct gp_found_queue *queue, struct gp_class_verdict *ret)
{
	const struct gp_class_subject subject = { .client = &c->found,
						  .queue = queue,
						  .tag = c->tag[0] ? c->tag : NULL,
						  .trusted = c->trusted,
						  .seen = c->seen };

	if (c->ordered != GP_CLASS_UNKNOWN) {
		ret->client_class = c->ordered;
		snprintf(ret->rule, sizeof(ret->rule), "by root's word");
		return;
	}
	if (gp_job_verdict(c, ret))
		return;
	if (c->granted == GP_CLASS_UNKNOWN) {
		gp_classes_judge(m->conf->classes, &subject, ret);
		return;
	}
	ret->client_class = c->granted;
	snprintf(ret->rule, sizeof(ret->rule), "socket %s",
		 c->granted == GP_CLASS_ONLINE ? "online" : "offline");
}

void gp_verdict(const struct gp_manager *m, const struct gp_queue *q, struct gp_class_verdict *ret)
{
	gp_verdict_of_client(m, q->client, &q->found, ret);
}

void gp_judge(struct gp_manager *m, struct gp_queue *q)
{
	struct gp_class_verdict verdict;

	gp_verdict(m, q, &verdict);
	if (verdict.client_class != q->client_class)
		m->reserves_changed = true;
	q->client_class = verdict.client_class;
	if (gp_schedule_queue(m, q) < 0)
		gp_account_log(gp_queue_account(q), m->loop.now_ns, GP_ABOUT_QUEUE(q),
			       "queue %llu of process %u is not scheduled: out of memory",
			       (unsigned long long)q->handle, q->client->pid);
}

void gp_serve_describe(struct gp_manager *m, struct gp_client *c, const struct gp_peer *p)
{
	const struct gp_msg_hello *hello = &p->hello;

	c->uid = c->found.uid = p->uid;
	c->trusted = p->rights & GP_RIGHT_OTHERS;
	c->granted = p->granted;
	snprintf(c->name, sizeof(c->name), "%s", hello->name);
	if (!c->found.name[0])
		snprintf(c->found.name, sizeof(c->found.name), "%s", hello->name);
	c->seen = hello->seen;
	snprintf(c->tag, sizeof(c->tag), "%s", hello->tag);
	c->weight = hello->weight < GP_MOST_WEIGHT ? hello->weight : GP_MOST_WEIGHT;
	c->slo_ns = hello->slo_ns < MOST_SLO_NS ? hello->slo_ns : MOST_SLO_NS;
	gp_jobs_forget_sight(c);
	gp_jobs_find(m, c);
	gp_schedule_client_changed(m, c);
}

static int welcome_agent(struct gp_manager *m, struct gp_peer *p)
{
	struct gp_client *c;
	int r = gp_world_client(&m->world, p->pid, &p->process, &c);

	if (r < 0)
		return r;
	if (c->agent) { /* a process that called exec(): the old program's connection is as good as closed */
		struct gp_peer *old = c->agent;

		gp_peer_drop(old, NULL);
		gp_serve_gone(m, old);
		/* The client may have gone with it. */
		r = gp_world_client(&m->world, p->pid, &p->process, &c);
		if (r < 0)
			return r;
	}
	c->agent = p;
	p->client = c;
	gp_check_owner(m, c);
	gp_serve_describe(m, c, p);
	gp_schedule_came_or_went(m, c, GP_EVENT_CLIENT);
	gp_account_log(p->account, m->loop.now_ns,
		       &(struct gp_about){
			       .event = "client", .number = m->events.last, .pid = p->pid, .name = c->name },
		       "agent in process %u (%s) of user %u", p->pid, c->name, p->uid);
	return 0;
}

/*
 * What it says from here on was said after we knew its process: nobody else can have said it, if
 * that one lives.  A tool that has ended since may have let go of something, if the kernel itself
 * says that it was it.
 */
static int introduce(struct gp_manager *m, struct gp_peer *p)
{
	bool is_agent = p->role == GP_ROLE_AGENT;

	if ((is_agent || !p->process.is_exact) && !gp_process_lives(&p->process))
		return -ESRCH;
	p->is_known = true;
	return is_agent ? welcome_agent(m, p) : 0;
}

static uint32_t describe_rights(const struct gp_peer *p)
{
	uint32_t rights = p->rights;

	if (p->granted != GP_CLASS_UNKNOWN)
		rights |= p->granted == GP_CLASS_ONLINE ? GP_GIVEN_ONLINE : GP_GIVEN_OFFLINE;
	if (geteuid() != 0)
		return rights | GP_OWN_DAEMON; /* who may not be able to look at namespaces */
	return gp_identity_is_local(&p->identity) ? rights : rights | GP_IN_CONTAINER;
}

static void hello(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	static struct gp_msg answer;
	uint32_t role = msg->hello.role;

	if (role != GP_ROLE_AGENT && role != GP_ROLE_CONTROL) {
		gp_peer_refuse(p, msg->serial, -EPERM, "come as an agent or as a tool");
		return;
	}
	if (gp_peer_has_input(p)) {
		gp_peer_refuse(p, msg->serial, -EPROTO, "after HELLO wait for WELCOME");
		return;
	}
	p->role = role;
	p->ways = msg->hello.ways;
	p->features = msg->hello.features & GP_FEATURES;
	p->hello = msg->hello;
	gp_alarm_cancel(&m->loop, &p->patience);
	answer.type = GP_MSG_WELCOME;
	answer.serial = msg->serial;
	p->lease_ns = m->conf->lease_ns;
	answer.welcome = (struct gp_msg_welcome){ .lease_ns = p->lease_ns,
						  .rights = describe_rights(p),
						  .sample = m->conf->sample,
						  .features = p->features };
	(void)gp_peer_send(p, &answer);
}

static bool too_many(const struct gp_peer *p, uint64_t number)
{
	return p->account->now.queues >= p->account->most->queues && !gp_map_get(&p->queues, number);
}

static void queue_told(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	struct gp_queue *q;
	int r = too_many(p, msg->queue.queue) ? -ENOSPC : gp_world_told(&m->world, p, &msg->queue, &q);

	if (r < 0) {
		(void)gp_peer_error(p, msg->serial, r, r == -ENOSPC ? "too many queues" : "out of memory");
		return;
	}
	gp_judge(m, q);
	m->reserves_changed = true;
	gp_route_found(m, q, p, msg->queue.stopped);
}

static void activity_told(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	struct gp_queue *q = gp_map_get(&p->queues, msg->activity.queue);

	if (!q)
		return;
	q->activity = msg->activity.activity;
	gp_schedule_activity(m, q);
}

static void device_told(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	uint32_t most = p->role == GP_ROLE_AGENT ? 1 : GP_MOST_TOLD;
	int r = p->ndevices == most ? -EEXIST
				    : gp_devices_told(&m->world.devices, p->account->key, &msg->device,
						      msg->device_key, &p->devices[p->ndevices]);

	if (r < 0) {
		(void)gp_peer_error(p, msg->serial, r,
				    r == -EEXIST   ? "it has told of its device"
				    : r == -EINVAL ? "only simulated devices are told of"
						   : "too many simulated devices");
		return;
	}
	p->ndevices++;
	gp_schedule_devices(m);
	if (msg->serial)
		gp_answer_done(p, msg->serial);
}

static bool from_agent(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	if (!p->client)
		return true; /* of a process whose number has another owner by now */
	switch (msg->type) {
	case GP_MSG_QUEUE:
		queue_told(m, p, msg);
		return true;
	case GP_MSG_GONE:
		gp_world_gone(&m->world, p, msg->queue.queue);
		return true;
	case GP_MSG_ACTIVITY:
		activity_told(m, p, msg);
		return true;
	case GP_MSG_DEVICE:
		device_told(m, p, msg);
		return true;
	case GP_MSG_HINT:
		gp_hint_request(m, p, msg);
		return true;
	case GP_MSG_DONE:
		gp_route_answered(m->route, p, msg);
		return true;
	case GP_MSG_CLIENTS:
		gp_answer_clients(m, p, msg);
		return true;
	default:
		return false;
	}
}

static void proxy_failed(struct gp_manager *m, struct gp_peer *p, const struct gp_msg_error *error)
{
	gp_account_log(p->account, m->loop.now_ns, GP_ABOUT_PROCESS(p->pid), "cannot debug process %u: %s",
		       p->pid, error->text);
	if (!p->client)
		return;
	p->client->proxy_state = GP_PROXY_ENDING; /* it says so last */
	gp_proxy_failed(m, p->client);
	gp_route_proxy_failed(m, p->client, error->status, error->text);
	gp_schedule_reach(m, p->client);
}

static bool from_proxy(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	if (msg->type == GP_MSG_HELLO)
		return true;
	if (msg->type == GP_MSG_ERROR) {
		proxy_failed(m, p, &msg->error);
		return true;
	}
	if (msg->type == GP_MSG_END && p->client) {
		p->client->proxy_state = GP_PROXY_READY;
		p->client->proxy_failures = 0;
		gp_route_proxy_ready(m, p->client);
		gp_proxy_used(m, p->client);
		gp_schedule_reach(m, p->client);
		return true;
	}
	return from_agent(m, p, msg);
}

static bool from_control(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	switch (msg->type) {
	case GP_MSG_LIST:
		gp_answer_list(m, p, msg->serial);
		return true;
	case GP_MSG_HOLD:
		gp_request_hold(m, p, msg);
		return true;
	case GP_MSG_RELEASE:
		gp_request_release(m, p, msg);
		return true;
	case GP_MSG_RESERVE:
		gp_reserve_request(m, p, msg);
		return true;
	case GP_MSG_HINT:
		gp_hint_request(m, p, msg);
		return true;
	case GP_MSG_POLICY:
		gp_answer_policy(m, p, msg);
		return true;
	case GP_MSG_CLIENTS:
		gp_answer_clients(m, p, msg);
		return true;
	case GP_MSG_STATS:
		gp_answer_stats(m, p, msg);
		return true;
	case GP_MSG_EVENTS:
		gp_events_ask(&m->events, p, msg);
		return true;
	case GP_MSG_DEVICE:
		device_told(m, p, msg);
		return true;
	case GP_MSG_ATTACH:
		gp_attach_request(m, p, msg);
		return true;
	case GP_MSG_CLASS:
		gp_answer_class(m, p, msg);
		return true;
	case GP_MSG_JOB:
		gp_jobs_declare(m, p, msg);
		return true;
	case GP_MSG_JOBS:
		gp_jobs_list(m, p, msg->serial);
		return true;
	default:
		return false;
	}
}

static bool dispatch(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	switch (p->role) {
	case GP_ROLE_AGENT:
		return from_agent(m, p, msg);
	case GP_ROLE_PROXY:
		return from_proxy(m, p, msg);
	case GP_ROLE_CONTROL:
		return from_control(m, p, msg);
	default:
		return false;
	}
}

void gp_serve_message(void *manager, struct gp_peer *p, const struct gp_msg *msg)
{
	struct gp_manager *m = manager;
	char text[64];

	if (p->refused) {
		gp_peer_refuse(p, msg->serial, p->refused, p->refusal);
		return;
	}
	if (!p->role && msg->type == GP_MSG_HELLO) {
		hello(m, p, msg);
		return;
	}
	if (p->role && !p->is_known && introduce(m, p) < 0) {
		gp_peer_drop(p, "its process has ended, or there is no memory for it");
		return;
	}
	if (msg->type == GP_MSG_PING || dispatch(m, p, msg))
		return;
	snprintf(text, sizeof(text), p->role ? "%s is not for you to send" : "%s before HELLO",
		 gp_msg_name(msg->type));
	(void)gp_peer_error(p, msg->serial, -EINVAL, text);
	if (!p->role)
		gp_peer_drop(p, "it did not say HELLO");
}

static void proxy_gone(struct gp_manager *m, struct gp_client *c)
{
	bool starting = c->proxy_state == GP_PROXY_STARTING, again = false;
	const char *why;
	int r;

	c->proxy_state = GP_PROXY_NONE;
	gp_alarm_cancel(&m->loop, &c->unused);
	if (starting) {
		gp_proxy_failed(m, c);
		gp_route_proxy_failed(m, c, -ECONNRESET, "the debugger ended");
	}
	gp_list_each(pos, &c->queues)
		again |= gp_container(pos, struct gp_queue, of_client)->route.awaits_proxy;
	r = again ? gp_proxy_need(m, c, &why) : 0;
	if (r < 0)
		gp_route_proxy_failed(m, c, r, why);
}

/* Nobody stops these now, whatever was under way. The holds stay: the agent may come back with its queues. */
static void agent_gone(struct gp_manager *m, struct gp_peer *p)
{
	gp_list_each(pos, &p->client->queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);

		if (q->agent.peer != p)
			continue;
		q->activity = GP_ACTIVITY_UNKNOWN; /* nobody looks at it now: busy would be so for ever */
		if (q->route.under_way && q->route.way & (GP_KFD_WAY_DBG | GP_KFD_WAY_SESSION))
			continue;
		gp_route_say(&q->route, "the agent in process %u is gone", p->pid);
		gp_request_ended(q, GP_STOP, -ESRCH, 0);
	}
	gp_schedule_came_or_went(m, p->client, GP_EVENT_GONE);
	gp_account_log(
		p->account, m->loop.now_ns,
		&(struct gp_about){
			.event = "gone", .number = m->events.last, .pid = p->pid, .name = p->client->name },
		"agent in process %u (%s) is gone", p->pid, p->client->name);
}

static void client_lost(struct gp_manager *m, const struct gp_peer *p, struct gp_client *c)
{
	gp_schedule_reach(m, c);
	if (p->role == GP_ROLE_PROXY)
		proxy_gone(m, c);
	gp_schedule_step(m); /* the core hears of it before any queue goes */
	gp_world_tidy(&m->world, c);
}

/* Its queues are nobody's, its holds end, its requests have nobody to answer to. */
void gp_serve_gone(struct gp_manager *m, struct gp_peer *p)
{
	struct gp_client *c = p->client;

	gp_request_close(p);
	gp_events_leave(p);
	gp_hint_giver_gone(m, p);
	gp_core_holder_gone(m->core, p->id, m->loop.now_ns);
	if (p->role == GP_ROLE_PROXY)
		gp_proxy_ended(m, p);
	gp_route_lost(m, p);
	if (p->role == GP_ROLE_AGENT && c)
		agent_gone(m, p);
	gp_world_unlink(p);
	if (c)
		client_lost(m, p, c);
	if (!p->ndevices)
		return;
	while (p->ndevices)
		gp_devices_left(p->devices[--p->ndevices]);
	p->devices[0] = NULL;
	gp_schedule_devices(m);
}
