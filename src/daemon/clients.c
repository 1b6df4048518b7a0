// SPDX-License-Identifier: MIT
/* What tools ask about clients and devices, and tell of policies. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/manager.h"
#include "discover/describe.h"
#include "policy/registry.h"

#define AT_ONCE 64 /* clients of a list */
#define MOST_SEATS \
	(2 * (GP_MOST_DEVICES + 1)) /* of a client: two classes, and the device that nobody knows */

void gp_answer_done(struct gp_peer *p, uint32_t serial)
{
	static struct gp_msg result = { .type = GP_MSG_RESULT };

	result.serial = serial;
	(void)gp_peer_send(p, &result);
}

/* By the first of its queues that is there for it: they are judged alike, but for their priorities. */
static void find_verdict(const struct gp_manager *m, const struct gp_client *c,
			 const struct gp_core_seat *seat, struct gp_class_verdict *ret)
{
	gp_list_each(pos, &c->queues) {
		const struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);
		bool is_online = q->client_class == GP_CLASS_ONLINE;

		if (is_online == (seat->client_class == GP_CLASS_ONLINE) &&
		    gp_queue_device(&m->world, q) == seat->device) {
			gp_verdict(m, q, ret);
			return;
		}
	}
	*ret = c->verdict;
}

static int say_client(const struct gp_manager *m, struct gp_peer *p, const struct gp_client *c,
		      const struct gp_core_seat *seat, struct gp_msg *msg)
{
	struct gp_client_info *info = &msg->client_info;
	struct gp_class_verdict verdict;

	*info = (struct gp_client_info){ .size = sizeof(*info),
					 .client = c->handle,
					 .pid = c->pid,
					 .uid = c->uid,
					 .device = seat->device,
					 .client_class = seat->client_class,
					 .weight = seat->weight,
					 .state = seat->state,
					 .slo_ns = seat->slo_ns,
					 .queues = seat->queues,
					 .stopped = seat->stopped,
					 .resuming = seat->resuming,
					 .hints = seat->hints,
					 .share_permille = seat->share_permille,
					 .hinted = seat->hinted,
					 .sampled = seat->sampled };
	find_verdict(m, c, seat, &verdict);
	snprintf(info->name, sizeof(info->name), "%s", c->name);
	snprintf(info->rule, sizeof(info->rule), "%s", verdict.rule);
	gp_describe_place(&c->found, info->place, sizeof(info->place));
	return gp_peer_send(p, msg);
}

/* One that gives hints, and has no queue yet. */
static struct gp_core_seat without_queues(const struct gp_client *c)
{
	return (struct gp_core_seat){ .client = c->handle,
				      .slo_ns = gp_job_slo(c),
				      .device = GP_NO_DEVICE,
				      .client_class = c->verdict.client_class,
				      .weight = gp_job_weight(c) ? gp_job_weight(c) : 100 };
}

static int say_seats(struct gp_manager *m, struct gp_peer *p, const struct gp_client *c, struct gp_msg *msg)
{
	static struct gp_core_seat seats[MOST_SEATS];
	int r = 0, n = gp_core_seats(m->core, c->handle, seats, MOST_SEATS, m->loop.now_ns);

	if (n == 0 && (c->agent || c->hinters)) {
		seats[0] = without_queues(c);
		n = 1;
	}
	for (int i = 0; i < n && i < MOST_SEATS && r == 0; i++)
		r = say_client(m, p, c, &seats[i], msg);
	return r;
}

/* As much as it takes now, and not much at a time: others wait. */
void gp_answer_more_clients(struct gp_manager *m, struct gp_peer *p)
{
	static struct gp_msg msg;
	int n = 0;

	msg.serial = p->list_serial;
	msg.type = GP_MSG_CLIENT_INFO;
	gp_list_each(pos, &m->world.all_clients) {
		const struct gp_client *c = gp_container(pos, struct gp_client, all);

		if (c->handle <= p->listed)
			continue; /* they are in order of handle */
		if (n++ == AT_ONCE) {
			gp_peer_more_later(p);
			return;
		}
		p->listed = c->handle;
		if (say_seats(m, p, c, &msg) < 0 || gp_peer_has_unread(p))
			return;
	}
	p->listing = GP_LISTS_NOTHING;
	msg.type = GP_MSG_END;
	(void)gp_peer_send(p, &msg);
}

static void answer_own(struct gp_manager *m, struct gp_peer *p, uint32_t serial)
{
	static struct gp_msg msg;
	const struct gp_client *own = gp_map_get(&m->world.clients, p->pid);

	msg.serial = serial;
	msg.type = GP_MSG_CLIENT_INFO;
	if (own && say_seats(m, p, own, &msg) < 0)
		return;
	msg.type = GP_MSG_END;
	(void)gp_peer_send(p, &msg);
}

void gp_answer_clients(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	if (p->listing) {
		(void)gp_peer_error(p, msg->serial, -EBUSY, "read the first list first");
		return;
	}
	if (msg->clients.own) {
		answer_own(m, p, msg->serial);
		return;
	}
	p->listing = GP_LISTS_CLIENTS;
	p->list_serial = msg->serial;
	p->listed = 0;
	gp_answer_more_clients(m, p);
}

/* Each queue of an agent is a call of its own, and each a cycle of the device; a session has counted. */
static uint64_t cycles_of(const struct gp_stats *s, const struct gp_device_session *session)
{
	return s->suspends + s->resumes - session->changes + session->cycles;
}

/* What holds now, which nobody counts. */
static void add_now(const struct gp_manager *m, struct gp_stats *to)
{
	gp_list_each(pos, &m->world.all_queues) {
		const struct gp_queue *q = gp_container(pos, struct gp_queue, all);
		uint32_t state = gp_schedule_status(m, q).state;

		if (gp_queue_device(&m->world, q) != to->device)
			continue;
		to->stopped += state == GP_QUEUE_SUSPENDED || state == GP_QUEUE_RESUMING;
		to->yielding += state == GP_QUEUE_RUNNING && q->route.yields;
	}
	to->slices = m->slices[to->device].set;
	to->slice_failures = m->slices[to->device].failed;
	if (!to->reason[0])
		(void)gp_route_unreached(m, to->device, to->reason, sizeof(to->reason));
}

void gp_answer_stats(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	static struct gp_msg answer = { .type = GP_MSG_STATS_INFO };
	struct gp_stats *stats = &answer.stats_info;
	uint32_t device = msg->stats.device;

	if (!gp_devices_at(&m->world.devices, device) ||
	    gp_core_device_stats(m->core, device, stats, m->loop.now_ns) < 0) {
		(void)gp_peer_error(p, msg->serial, -ENODEV, "no such device");
		return;
	}
	stats->cycles = cycles_of(stats, &m->sessions.of[device]);
	add_now(m, stats);
	answer.serial = msg->serial;
	(void)gp_peer_send(p, &answer);
}

/* On every device that it is for. by: a uid. */
static int set_policy(struct gp_manager *m, const struct gp_msg_policy *asked, uint32_t by, char *why,
		      size_t size)
{
	const struct gp_policy_ops *ops = gp_policy_find(asked->name);
	char names[128], text[64];
	int r = -ENODEV;

	snprintf(why, size, "gpreemptd is ending");
	if (m->ending)
		return -ESHUTDOWN;
	gp_policy_names(names, sizeof(names));
	snprintf(why, size, "there is no such policy; there are: %s", names);
	if (!ops)
		return -ENOENT;
	snprintf(text, sizeof(text), "%s, by user %u", ops->name, by);
	snprintf(why, size, asked->device == GP_ALL_DEVICES ? "there is no device yet" : "no such device");
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++) {
		int one;

		if ((asked->device != GP_ALL_DEVICES && asked->device != i) ||
		    !gp_devices_at(&m->world.devices, i))
			continue;
		one = gp_core_set_policy(m->core, i, ops, m->loop.now_ns);
		if (one == 0)
			gp_schedule_policy_chosen(m, i, text);
		r = r == -ENODEV || (r == 0 && one < 0) ? one : r;
	}
	m->policies_changed = true;
	m->is_wary = false;
	if (r < 0 && r != -ENODEV)
		snprintf(why, size, "%s", strerror(-r));
	return r;
}

void gp_answer_policy(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	char why[192] = "only root and group gpreempt may change a policy", where[32] = "every device";
	int r = p->rights & GP_RIGHT_OTHERS ? set_policy(m, &msg->policy, p->uid, why, sizeof(why)) : -EPERM;

	if (r < 0) {
		(void)gp_peer_error(p, msg->serial, r, why);
		return;
	}
	if (msg->policy.device != GP_ALL_DEVICES)
		snprintf(where, sizeof(where), "device %u", msg->policy.device);
	gp_log_about(&(struct gp_about){ .event = "policy",
					 .number = m->events.last,
					 .has_device = msg->policy.device != GP_ALL_DEVICES,
					 .device = msg->policy.device },
		     "policy %s on %s, by user %u", msg->policy.name, where, p->uid);
	gp_answer_done(p, msg->serial);
}

/* A group's members may be online by their own word, and not by others'. */
bool gp_may_order(const struct gp_peer *p)
{
	if (!(p->rights & GP_RIGHT_OTHERS))
		return false;
	return geteuid() != 0 || (gp_identity_is_root(&p->identity) && gp_identity_is_local(&p->identity));
}

static void tell_class(struct gp_manager *m, const struct gp_client *c, uint32_t by)
{
	char text[64];

	snprintf(text, sizeof(text), "%s, by user %u", c->ordered == GP_CLASS_ONLINE ? "online" : "offline",
		 by);
	gp_events_add(&m->events, &(struct gp_happened){ .kind = GP_EVENT_CLASS,
							 .device = GP_NO_DEVICE,
							 .client = c->handle,
							 .pid = c->pid,
							 .name = c->name,
							 .text = text });
	gp_log_about(
		&(struct gp_about){
			.event = "class", .number = m->events.last, .pid = c->pid, .name = c->name },
		"process %u (%s) is %s", c->pid, c->name, text);
}

/* It lasts as long as the process, or we do. */
void gp_answer_class(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	struct gp_client *c = gp_world_client_by_handle(&m->world, msg->class.client);

	if (!gp_may_order(p)) {
		(void)gp_peer_error(p, msg->serial, -EPERM,
				    "only root may change a class, on the host itself; or the user whose "
				    "gpreemptd this is");
		return;
	}
	if (!c) {
		(void)gp_peer_error(p, msg->serial, -ENOENT, "there is no such client; it may have ended");
		return;
	}
	c->ordered = msg->class.client_class;
	gp_judge_client(m, c);
	tell_class(m, c, p->uid);
	gp_answer_done(p, msg->serial);
}
