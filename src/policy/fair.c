// SPDX-License-Identifier: MIT
/*
 * Weighted fair shares: one client at a time, a slice each, always the one that has
 * had least for its weight.  Users have equal shares, and a weight divides its user's among
 * the user's clients.  Online and offline alike: latency is whatever the weights give.  A client that comes,
 * or comes back, starts level with the one that has had least, so that having been away earns nothing.
 */
#include <gpreempt/policy.h>

#define SLICES_PER_QUANTUM 10

struct link {
	struct link *next, *prev; /* in order of share */
	struct gp_policy_client *client;
	uint64_t share_ns; /* time in the run set, divided by its part of its user's weight */
};

struct state {
	struct link waiting;
	struct link *current;
	uint64_t charged_ns; /* until when the current one has paid */
	uint64_t slice_end_ns;
	uint64_t least_ns; /* share of the last one picked, while nobody is */
};

static int init(struct gp_policy *p)
{
	struct state *s = gp_policy_state(p);

	s->waiting.next = s->waiting.prev = &s->waiting;
	return 0;
}

static void insert(struct state *s, struct link *l)
{
	struct link *after = s->waiting.prev;

	while (after != &s->waiting && after->share_ns > l->share_ns)
		after = after->prev;
	l->prev = after;
	l->next = after->next;
	l->prev->next = l->next->prev = l;
}

static void unlink_client(struct link *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
}

/* What a time on the device is of its user's share: more, the less of that is the client's. */
static uint64_t share_of(const struct state *s, const struct link *of, uint64_t ns)
{
	uint64_t all = of->client->weight;

	for (const struct link *l = s->waiting.next; l != &s->waiting; l = l->next)
		if (l != of && l->client->user == of->client->user)
			all += l->client->weight;
	return ns * all / of->client->weight;
}

/* Before anybody comes or goes, too: its part of its user's weight changes then. */
static void charge(struct state *s, uint64_t now)
{
	if (s->current)
		s->current->share_ns += share_of(s, s->current, now - s->charged_ns);
	s->charged_ns = now;
}

static uint64_t least_share(const struct state *s)
{
	const struct link *first = s->waiting.next;
	uint64_t least = s->current ? s->current->share_ns : s->least_ns;

	if (first != &s->waiting && first->share_ns < least)
		least = first->share_ns;
	return least;
}

static void enqueue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	struct state *s = gp_policy_state(p);
	struct link *l = c->priv;
	uint64_t least;

	charge(s, now);
	least = least_share(s);
	l->client = c;
	if (l->share_ns < least)
		l->share_ns = least;
	insert(s, l);
	if (c->running)
		(void)gp_policy_stop(p, c->id); /* taken over from another policy: everyone queues up */
}

static void dequeue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	struct state *s = gp_policy_state(p);
	struct link *l = c->priv;

	charge(s, now);
	if (s->current == l) {
		(void)gp_policy_stop(p, c->id);
		s->current = NULL;
		s->least_ns = l->share_ns; /* for whoever comes to an empty device */
	} else {
		unlink_client(l);
	}
}

static void end_slice(struct gp_policy *p, struct state *s, uint64_t now)
{
	struct link *l = s->current;

	charge(s, now);
	(void)gp_policy_stop(p, l->client->id);
	insert(s, l);
	s->current = NULL;
}

static void run_least(struct gp_policy *p, struct state *s, uint64_t now)
{
	struct link *l = s->waiting.next;

	unlink_client(l);
	s->current = l;
	s->charged_ns = now;
	s->slice_end_ns = now + gp_policy_limits(p)->quantum_ns / SLICES_PER_QUANTUM;
	(void)gp_policy_run(p, l->client->id);
}

static uint64_t decide(struct gp_policy *p, uint64_t now)
{
	struct state *s = gp_policy_state(p);
	int others = s->waiting.next != &s->waiting;

	if (s->current && others && now >= s->slice_end_ns)
		end_slice(p, s, now);
	if (!s->current && s->waiting.next != &s->waiting)
		run_least(p, s, now);
	others = s->waiting.next != &s->waiting;
	return others ? s->slice_end_ns : GP_NEVER;
}

const struct gp_policy_ops gp_policy_fair = {
	.size = sizeof(gp_policy_fair),
	.abi = GP_POLICY_ABI,
	.flags = GP_POLICY_STOPS_ONLINE | GP_POLICY_NEEDS_IDLE,
	.name = "fair",
	.state_size = sizeof(struct state),
	.priv_size = sizeof(struct link),
	.init = init,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.decide = decide,
};
