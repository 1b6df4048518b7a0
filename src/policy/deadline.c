// SPDX-License-Identifier: MIT
/*
 * Least laxity: offline leaves only when the tightest online request would otherwise
 * miss its SLO.  A request's laxity is what is left until its deadline, less the
 * measured length of a request and twice the measured cost of stopping offline.  Requests
 * with time to spare share the device with offline until then, so fewer of them cost
 * a preemption.  A client without an SLO has no time to spare, nor has any while one of these is unknown.
 */
#include "policy/offline.h"

struct state {
	struct gp_offline offline;
	struct gp_offline_link online; /* the same links, another list */
};

static int init(struct gp_policy *p)
{
	struct state *s = gp_policy_state(p);

	gp_offline_init(&s->offline);
	s->online.next = s->online.prev = &s->online;
	return 0;
}

static void enqueue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	struct state *s = gp_policy_state(p);
	struct gp_offline_link *l = c->priv;

	(void)now;
	if (c->client_class != GP_CLASS_ONLINE) {
		gp_offline_add(&s->offline, c);
		return;
	}
	l->client = c;
	l->next = &s->online;
	l->prev = s->online.prev;
	l->prev->next = l->next->prev = l;
	(void)gp_policy_run(p, c->id);
}

static void dequeue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	(void)p;
	(void)now;
	gp_offline_remove(c); /* the same links, whichever list it is in */
}

/* The time from which offline must be off the device for this client; 0: at once. */
static uint64_t start_by(const struct gp_policy_client *c, uint64_t preempt_ns)
{
	uint64_t needs = c->service_ns + 2 * preempt_ns;

	if (c->deadline_ns == GP_NEVER || !c->service_ns || !preempt_ns || c->deadline_ns < needs)
		return 0;
	return c->deadline_ns - needs;
}

static uint64_t decide(struct gp_policy *p, uint64_t now)
{
	const struct gp_policy_limits *limits = gp_policy_limits(p);
	struct state *s = gp_policy_state(p);
	uint64_t tightest = GP_NEVER, turn;

	for (struct gp_offline_link *l = s->online.next; l != &s->online; l = l->next) {
		uint64_t by = start_by(l->client, limits->preempt_ns);

		tightest = by < tightest ? by : tightest;
	}
	if (!limits->yields && tightest <= now) {
		gp_offline_stop_all(p, &s->offline);
		return GP_NEVER;
	}
	turn = gp_offline_run(p, &s->offline, tightest != GP_NEVER, now);
	if (limits->yields)
		return turn;
	return tightest < turn ? tightest : turn;
}

const struct gp_policy_ops gp_policy_deadline = {
	.size = sizeof(gp_policy_deadline),
	.abi = GP_POLICY_ABI,
	.name = "deadline",
	.state_size = sizeof(struct state),
	.priv_size = sizeof(struct gp_offline_link),
	.init = init,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.decide = decide,
};
