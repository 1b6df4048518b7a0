// SPDX-License-Identifier: MIT
/* Requests that clients say are on their way. */
#include <errno.h>
#include <stdio.h>

#include "daemon/manager.h"

#define MOST_EXPIRY_NS (3600 * GP_S)

/* A tool that gives hints for its own process, whose agent may come later or never. */
static int own_client(struct gp_manager *m, struct gp_peer *p, struct gp_client **ret)
{
	struct gp_client *c;
	int r;

	if (p->role == GP_ROLE_AGENT) {
		*ret = p->client;
		return p->client ? 0 : -ESRCH;
	}
	r = gp_world_client(&m->world, p->pid, &p->process, &c);
	if (r < 0)
		return r;
	if (p->hints_for != c->handle) {
		p->hints_for = c->handle;
		c->hinters++;
		if (!c->agent)
			gp_serve_describe(m, c, p);
	}
	*ret = c;
	return 0;
}

/* Somebody else's, for whom a tool speaks: such a hint belongs to nobody's connection. */
static int other_client(struct gp_manager *m, const struct gp_peer *p, uint64_t handle, const char **ret_why)
{
	struct gp_client *c = gp_world_client_by_handle(&m->world, handle);

	*ret_why = "there is no such client";
	if (!c)
		return -ENOENT;
	*ret_why = "only root and group gpreempt may give hints for other users' clients";
	return gp_may_act(m, p, c) ? 0 : -EPERM;
}

static int take(struct gp_manager *m, struct gp_peer *p, const struct gp_msg_hint *said, const char **ret_why)
{
	struct gp_core_hint hint = { .client = said->client,
				     .number = said->number,
				     .expiry_ns = said->expiry_ns,
				     .device = said->device };
	struct gp_client *c;
	int r;

	*ret_why = NULL;
	if (hint.expiry_ns > MOST_EXPIRY_NS)
		hint.expiry_ns = MOST_EXPIRY_NS;
	if (said->client) {
		r = other_client(m, p, said->client, ret_why);
	} else {
		r = own_client(m, p, &c);
		hint.client = r == 0 ? c->handle : 0;
		hint.giver = p->id;
	}
	if (r < 0)
		return r;
	*ret_why = "no such device";
	if (said->device != GP_ALL_DEVICES && !gp_devices_at(&m->world.devices, said->device))
		return -ENODEV;
	if (said->what == GP_HINT_BEGIN)
		r = gp_core_hint_begin(m->core, &hint, m->loop.now_ns);
	else
		r = gp_core_hint_end(m->core, &hint, m->loop.now_ns);
	*ret_why =
		r == -EPERM
			? "the client is not online: only online clients give hints; start it with gpreempt "
			  "run --online, as root or a member of group gpreempt, or write a rule: "
			  "gpreempt-classes(5)"
		: r == -EALREADY ? "no such hint is open"
		: r == -EBUSY    ? "too many hints of this client are open"
				 : "out of memory";
	return r;
}

void gp_hint_request(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	const char *why;
	int r = take(m, p, &msg->hint, &why);

	if (!msg->serial)
		return; /* the shortest way: nobody waits for an answer */
	if (r < 0)
		(void)gp_peer_error(p, msg->serial, r, why ? why : "its process is gone");
	else
		gp_answer_done(p, msg->serial);
}

void gp_hint_giver_gone(struct gp_manager *m, const struct gp_peer *p)
{
	struct gp_client *c;

	if (p->role == GP_ROLE_AGENT && p->client)
		gp_core_hints_gone(m->core, p->client->handle, p->id, m->loop.now_ns);
	if (!p->hints_for)
		return;
	gp_core_hints_gone(m->core, p->hints_for, p->id, m->loop.now_ns);
	c = gp_map_get(&m->world.clients, p->pid);
	if (!c || c->handle != p->hints_for)
		return; /* its number has another owner by now */
	c->hinters--;
	gp_world_tidy(&m->world, c);
}
