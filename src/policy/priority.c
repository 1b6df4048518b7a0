// SPDX-License-Identifier: MIT
/* Online first, strictly: while an online client has work, no offline client runs. The default. */
#include "policy/offline.h"

struct state {
	struct gp_offline offline;
	uint32_t online; /* clients with work */
};

static int init(struct gp_policy *p)
{
	struct state *s = gp_policy_state(p);

	gp_offline_init(&s->offline);
	return 0;
}

static void enqueue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	struct state *s = gp_policy_state(p);

	(void)now;
	if (c->client_class != GP_CLASS_ONLINE) {
		gp_offline_add(&s->offline, c);
		return;
	}
	s->online++;
	(void)gp_policy_run(p, c->id);
}

static void dequeue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	struct state *s = gp_policy_state(p);

	(void)now;
	if (c->client_class == GP_CLASS_ONLINE)
		s->online--;
	else
		gp_offline_remove(c);
}

static uint64_t decide(struct gp_policy *p, uint64_t now)
{
	struct state *s = gp_policy_state(p);

	if (!s->online || gp_policy_limits(p)->yields)
		return gp_offline_run(p, &s->offline, s->online != 0, now);
	gp_offline_stop_all(p, &s->offline);
	return GP_NEVER;
}

const struct gp_policy_ops gp_policy_priority = {
	.size = sizeof(gp_policy_priority),
	.abi = GP_POLICY_ABI,
	.name = "priority",
	.state_size = sizeof(struct state),
	.priv_size = sizeof(struct gp_offline_link),
	.init = init,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.decide = decide,
};
