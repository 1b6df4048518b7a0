// SPDX-License-Identifier: MIT
/*
 * Weighted fair shares: one client at a time, a slice each.  Users have equal shares, and a weight divides
 * its user's among the user's clients: always the user that has had least, and of its clients the one that
 * has had least for its weight.  Online and offline alike: latency is whatever the weights give.  Who comes,
 * or comes back, starts level with the one that has had least, so that having been away earns nothing.  What
 * a user has had stays with the user when its clients go: to leave and come back earns nothing either.
 */
#include <gpreempt/policy.h>

#define SLICES_PER_QUANTUM 10
/* With work at a time. More share the last one's account; of those who are away, who had least is forgotten.
 */
#define MOST_USERS 256
/* A client's share is in parts of a nanosecond, for weights that are large. */
#define PARTS 4096

struct link {
	struct link *next, *prev; /* in order of share */
	struct gp_policy_client *client;
	struct account *account;
	uint64_t share; /* time in the run set, divided by its weight */
	uint64_t round; /* of its account, that the share is of */
};

struct account {
	uint64_t user;
	uint64_t had_ns;  /* in the run set, by any of its clients, now and before */
	uint64_t clients; /* with work */
	uint64_t round;   /* shares begin anew with the first client that comes */
	struct link waiting;
};

struct state {
	struct account accounts[MOST_USERS];
	struct link *current;
	uint64_t naccounts;
	uint64_t charged_ns; /* until when the current one has paid */
	uint64_t slice_end_ns;
	uint64_t least_ns; /* what the last user that left while it ran had had */
};

static void insert(struct link *l)
{
	struct link *waiting = &l->account->waiting, *after = waiting->prev;

	while (after != waiting && after->share > l->share)
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

static int waits(const struct account *a)
{
	return a->waiting.next != &a->waiting;
}

static struct account *open_account(struct account *a, uint64_t user)
{
	*a = (struct account){ .user = user };
	a->waiting.next = a->waiting.prev = &a->waiting;
	return a;
}

static struct account *account_of(struct state *s, uint64_t user)
{
	struct account *away = NULL;

	for (uint64_t i = 0; i < s->naccounts; i++) {
		struct account *a = &s->accounts[i];

		if (a->user == user)
			return a;
		if (!a->clients && (!away || a->had_ns < away->had_ns))
			away = a;
	}
	if (s->naccounts < MOST_USERS)
		return open_account(&s->accounts[s->naccounts++], user);
	return away ? open_account(away, user) : &s->accounts[MOST_USERS - 1];
}

static void charge(struct state *s, uint64_t now)
{
	uint64_t ns = now - s->charged_ns, weight;

	s->charged_ns = now;
	if (!s->current)
		return;
	weight = s->current->client->weight;
	s->current->account->had_ns += ns;
	s->current->share += ns / weight * PARTS + ns % weight * PARTS / weight;
}

/* Of the users with work. */
static uint64_t least_had(const struct state *s)
{
	uint64_t least = GP_NEVER;

	for (uint64_t i = 0; i < s->naccounts; i++)
		if (s->accounts[i].clients && s->accounts[i].had_ns < least)
			least = s->accounts[i].had_ns;
	return least != GP_NEVER ? least : s->least_ns;
}

/* Of a user's clients with work, of which there is one. */
static uint64_t least_share(const struct state *s, const struct account *a)
{
	if (!waits(a) ||
	    (s->current && s->current->account == a && s->current->share < a->waiting.next->share))
		return s->current->share;
	return a->waiting.next->share;
}

static void enqueue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	struct state *s = gp_policy_state(p);
	struct account *a = account_of(s, c->user);
	struct link *l = c->priv;
	uint64_t least;

	charge(s, now);
	least = least_had(s);
	if (!a->clients && a->had_ns < least)
		a->had_ns = least;
	a->round += !a->clients;
	least = a->clients++ ? least_share(s, a) : 0;
	if (l->account != a || l->round != a->round || l->share < least)
		l->share = least;
	l->round = a->round;
	l->client = c;
	l->account = a;
	insert(l);
	if (c->running)
		(void)gp_policy_stop(p, c->id); /* taken over from another policy: everyone queues up */
}

static void dequeue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	struct state *s = gp_policy_state(p);
	struct link *l = c->priv;

	charge(s, now);
	l->account->clients--;
	if (s->current == l) {
		(void)gp_policy_stop(p, c->id);
		s->current = NULL;
		s->least_ns = l->account->had_ns;
	} else {
		unlink_client(l);
	}
}

static void end_slice(struct gp_policy *p, struct state *s, uint64_t now)
{
	struct link *l = s->current;

	charge(s, now);
	(void)gp_policy_stop(p, l->client->id);
	insert(l);
	s->current = NULL;
}

/* Of those that wait, the one of the user that has had least; NULL: nobody waits. */
static struct link *next_client(struct state *s)
{
	struct account *next = NULL;

	for (uint64_t i = 0; i < s->naccounts; i++) {
		struct account *a = &s->accounts[i];

		if (waits(a) && (!next || a->had_ns < next->had_ns))
			next = a;
	}
	return next ? next->waiting.next : NULL;
}

static void run(struct gp_policy *p, struct state *s, struct link *l, uint64_t now)
{
	unlink_client(l);
	s->current = l;
	s->charged_ns = now;
	s->slice_end_ns = now + gp_policy_limits(p)->quantum_ns / SLICES_PER_QUANTUM;
	(void)gp_policy_run(p, l->client->id);
}

static uint64_t decide(struct gp_policy *p, uint64_t now)
{
	struct state *s = gp_policy_state(p);
	struct link *next = next_client(s);

	if (s->current && next && now >= s->slice_end_ns) {
		end_slice(p, s, now);
		next = next_client(s);
	}
	if (!s->current && next)
		run(p, s, next, now);
	return next_client(s) ? s->slice_end_ns : GP_NEVER;
}

const struct gp_policy_ops gp_policy_fair = {
	.size = sizeof(gp_policy_fair),
	.abi = GP_POLICY_ABI,
	.flags = GP_POLICY_STOPS_ONLINE | GP_POLICY_NEEDS_IDLE,
	.name = "fair",
	.state_size = sizeof(struct state),
	.priv_size = sizeof(struct link),
	.enqueue = enqueue,
	.dequeue = dequeue,
	.decide = decide,
};
