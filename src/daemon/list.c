// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/manager.h"
#include "discover/describe.h"
#include "discover/trust.h"

#define AT_ONCE 64 /* queues of a list */

/* A bit for each device of which some queue can be stopped, or could if it asked for it. */
static uint64_t find_reached(const struct gp_manager *m)
{
	uint64_t reached = 0;

	gp_list_each(pos, &m->world.all_queues) {
		const struct gp_queue *q = gp_container(pos, struct gp_queue, all);
		uint32_t device = gp_queue_device(&m->world, q);

		if (device < GP_MOST_DEVICES && !(reached >> device & 1) &&
		    gp_route_way(m, q, GP_KFD_WAY_AUTO))
			reached |= 1ull << device;
	}
	return reached;
}

static int say_device(const struct gp_manager *m, uint32_t number, bool is_reached,
		      struct gp_device_info *ret)
{
	const struct gp_device *device = gp_devices_at(&m->world.devices, number);
	struct gp_core_status status;

	if (!device)
		return -ENODEV;
	*ret = device->info;
	ret->online_percent = m->reserves[number].online_percent;
	ret->offline_percent = m->reserves[number].offline_percent;
	ret->caps = device->caps;
	if (is_reached)
		ret->caps |= GP_CAP_INTERRUPT | GP_CAP_CROSS_PROCESS |
			     (device->is_simulated || !ret->queue_slots ? 0 : GP_CAP_RESERVE);
	ret->caps |= gp_sessions_caps(m, number);
	ret->caps |= gp_settings_background(m, number) ? GP_CAP_BACKGROUND : 0;
	if (gp_core_device_status(m->core, number, &status) == 0)
		snprintf(ret->policy, sizeof(ret->policy), "%s", status.policy);
	return 0;
}

/* Who holds it is where the field held came from; it is the last, as it is not one word. */
static void tell_holder(const struct gp_manager *m, const struct gp_queue *q, struct gp_queue_info *ret)
{
	size_t used = strlen(ret->from);
	char who[96];

	if (ret->held)
		snprintf(ret->from + used, sizeof(ret->from) - used, "%sheld=%s", used ? " " : "",
			 gp_holder_name(m, q, who, sizeof(who)));
}

void gp_answer_queue(const struct gp_manager *m, const struct gp_queue *q, bool with_ring,
		     struct gp_queue_info *ret)
{
	const struct gp_core_queue_status status = gp_schedule_status(m, q);
	uint32_t way = gp_route_way(m, q, GP_KFD_WAY_AUTO);
	struct gp_class_verdict verdict;

	gp_verdict(m, q, &verdict);
	*ret = (struct gp_queue_info){ .size = sizeof(*ret),
				       .queue = q->handle,
				       .client = q->client->handle,
				       .device = gp_queue_device(&m->world, q),
				       .client_class = q->client_class,
				       .state = status.state,
				       .activity = q->activity,
				       .held = (uint32_t)gp_holds_held_but(gp_core_holds(m->core), q->handle,
									   GP_HOLDER_HOST) };
	snprintf(ret->client_name, sizeof(ret->client_name), "%s", q->client->name);
	snprintf(ret->way, sizeof(ret->way), "%s", way ? gp_way_name(way) : "");
	snprintf(ret->rule, sizeof(ret->rule), "%s", verdict.rule);
	gp_describe_queue(&q->found, &q->client->found, with_ring, ret);
	tell_holder(m, q, ret);
}

/* The client's pid as the peer counts; 0: it is elsewhere. */
static uint64_t pid_for(const struct gp_manager *m, const struct gp_peer *p, struct gp_client *c)
{
	char status[8192];
	int n;

	if (p->identity.pid_ns == gp_process_self()->pid_ns)
		return c->pid;
	if (!p->identity.pid_ns || gp_client_identity(&m->world, c)->pid_ns != p->identity.pid_ns)
		return 0;
	n = gp_process_read(&c->process, "status", status, sizeof(status));
	return n > 0 ? gp_status_inner_pid(status, (size_t)n) : 0;
}

/* Behind the last that was told. It may be gone: queues are in order of handle. */
static struct gp_list *next_of(const struct gp_world *w, uint64_t listed)
{
	struct gp_queue *last = gp_world_queue(w, listed);
	struct gp_list *pos = last ? last->all.next : w->all_queues.next;

	while (pos != &w->all_queues && gp_container(pos, struct gp_queue, all)->handle <= listed)
		pos = pos->next;
	return pos;
}

/* As much as it takes now, and not much at a time: others wait. */
void gp_answer_more(void *manager, struct gp_peer *p)
{
	static struct gp_msg msg;
	struct gp_manager *m = manager;
	struct gp_list *pos, *end = &m->world.all_queues;

	if (p->listing == GP_LISTS_CLIENTS)
		gp_answer_more_clients(m, p);
	if (p->listing != GP_LISTS_QUEUES)
		return;
	pos = next_of(&m->world, p->listed);
	msg.serial = p->list_serial;
	msg.type = GP_MSG_QUEUE_INFO;
	for (int i = 0; i < AT_ONCE && pos != end; i++, pos = pos->next) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, all);

		p->listed = q->handle;
		if (!gp_queue_listed(q))
			continue;
		gp_answer_queue(m, q, gp_may_act(m, p, q->client), &msg.info);
		msg.info.local_pid = pid_for(m, p, q->client);
		if (gp_peer_send(p, &msg) < 0 || gp_peer_has_unread(p))
			return;
	}
	if (pos != end) {
		gp_peer_more_later(p);
		return;
	}
	p->listing = GP_LISTS_NOTHING;
	msg.type = GP_MSG_END;
	(void)gp_peer_send(p, &msg);
}

void gp_answer_list(struct gp_manager *m, struct gp_peer *p, uint32_t serial)
{
	static struct gp_msg msg;
	uint64_t reached;

	if (p->listing) {
		(void)gp_peer_error(p, serial, -EBUSY, "read the first list first");
		return;
	}
	p->listing = GP_LISTS_QUEUES;
	p->list_serial = msg.serial = serial;
	p->listed = 0;
	msg.type = GP_MSG_DEVICE;
	reached = find_reached(m);
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++)
		if (say_device(m, i, reached >> i & 1, &msg.device) == 0)
			(void)gp_peer_send(p, &msg);
	gp_answer_more(m, p);
}
