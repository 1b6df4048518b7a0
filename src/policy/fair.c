// SPDX-License-Identifier: MIT
/*
 * Weighted fair shares: one client at a time, a slice each, always the one that has
 * had least for its weight.  Online and offline alike: latency is whatever the
 * weights give.  A client that comes, or comes back, starts level with the one that has
 * had least, so that having been away earns nothing.
 */
#include <gpreempt/policy.h>

#define SLICES_PER_QUANTUM 10

struct link {
	struct link *next, *prev; /* in order of share */
	struct gp_policy_client *client;
	uint64_t share_ns;   /* time in the run set, divided by the weight */
	uint64_t counted_ns; /* how much of client->run_ns is in it */
};

struct state {
	struct link waiting;
	struct link *current;
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

static void charge(struct link *l)
{
	l->share_ns += (l->client->run_ns - l->counted_ns) * 100 / l->client->weight;
	l->counted_ns = l->client->run_ns;
}

/* What the one with least has had by now: one that runs alone is charged only when its slice ends. */
static uint64_t least_share(const struct state *s, uint64_t now)
{
	const struct link *current = s->current, *first = s->waiting.next;
	uint64_t least = s->least_ns;

	if (current)
		least = current->share_ns + (now - current->client->since_ns) * 100 / current->client->weight;
	if (first != &s->waiting && first->share_ns < least)
		least = first->share_ns;
	return least;
}

static void enqueue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	struct state *s = gp_policy_state(p);
	struct link *l = c->priv;
	uint64_t least = least_share(s, now);

	l->client = c;
	l->counted_ns = c->run_ns;
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

	(void)now;
	if (s->current == l) {
		(void)gp_policy_stop(p, c->id); /* so that its time is counted */
		charge(l);
		s->current = NULL;
		s->least_ns = l->share_ns; /* for whoever comes to an empty device */
	} else {
		unlink_client(l);
	}
}

static void end_slice(struct gp_policy *p, struct state *s)
{
	struct link *l = s->current;

	(void)gp_policy_stop(p, l->client->id);
	charge(l);
	insert(s, l);
	s->current = NULL;
}

static void run_least(struct gp_policy *p, struct state *s, uint64_t now)
{
	struct link *l = s->waiting.next;

	unlink_client(l);
	s->current = l;
	s->slice_end_ns = now + gp_policy_limits(p)->quantum_ns / SLICES_PER_QUANTUM;
	(void)gp_policy_run(p, l->client->id);
}

static uint64_t decide(struct gp_policy *p, uint64_t now)
{
	struct state *s = gp_policy_state(p);
	int others = s->waiting.next != &s->waiting;

	if (s->current && others && now >= s->slice_end_ns)
		end_slice(p, s);
	if (!s->current && s->waiting.next != &s->waiting)
		run_least(p, s, now);
	others = s->waiting.next != &s->waiting;
	return others ? s->slice_end_ns : GP_NEVER;
}

const struct gp_policy_ops gp_policy_fair = {
	.size = sizeof(gp_policy_fair),
	.abi = GP_POLICY_ABI,
	.flags = GP_POLICY_STOPS_ONLINE,
	.name = "fair",
	.state_size = sizeof(struct state),
	.priv_size = sizeof(struct link),
	.init = init,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.decide = decide,
};
