// SPDX-License-Identifier: MIT
#include "policy/offline.h"

/* A turn that is due waits for online work for this part of one, and is never shorter than that. */
#define PATIENCE 4
#define LEAST 10

static void init(struct gp_offline_link *head)
{
	head->next = head->prev = head;
}

static void unlink_client(struct gp_offline_link *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	init(l);
}

static void append(struct gp_offline_link *head, struct gp_offline_link *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

static int is_empty(const struct gp_offline_link *head)
{
	return head->next == head;
}

void gp_offline_init(struct gp_offline *o)
{
	init(&o->running);
	init(&o->waiting);
}

void gp_offline_add(struct gp_offline *o, struct gp_policy_client *c)
{
	struct gp_offline_link *l = c->priv;

	l->client = c;
	append(c->running ? &o->running : &o->waiting, l);
}

void gp_offline_remove(struct gp_policy_client *c)
{
	unlink_client(c->priv);
}

static void run_first(struct gp_policy *p, struct gp_offline *o)
{
	struct gp_offline_link *l = o->waiting.next;

	unlink_client(l);
	append(&o->running, l);
	(void)gp_policy_run(p, l->client->id);
}

static void stop_first(struct gp_policy *p, struct gp_offline *o)
{
	struct gp_offline_link *l = o->running.next;

	unlink_client(l);
	append(&o->waiting, l);
	(void)gp_policy_stop(p, l->client->id);
}

void gp_offline_stop_all(struct gp_policy *p, struct gp_offline *o)
{
	while (!is_empty(&o->running))
		stop_first(p, o);
}

static void count(const struct gp_offline_link *head, uint64_t *n, uint64_t *weights)
{
	for (const struct gp_offline_link *l = head->next; l != head; l = l->next) {
		*weights += l->client->weight;
		++*n;
	}
}

/* In a round everybody has one turn, as long as its weight says, less what the last one was too long. */
static uint64_t turn_length(const struct gp_offline *o, const struct gp_offline_link *l, uint64_t quantum_ns)
{
	uint64_t n = 0, weights = 0, round, length, least = quantum_ns / LEAST;

	count(&o->running, &n, &weights);
	count(&o->waiting, &n, &weights);
	round = n * quantum_ns;
	length = round / weights * l->client->weight + round % weights * l->client->weight / weights;
	return length > least + l->late_ns ? length - l->late_ns : least;
}

static void begin_turn(struct gp_policy *p, struct gp_offline *o, uint64_t now)
{
	run_first(p, o);
	o->turn_end_ns = now + turn_length(o, o->running.next, gp_policy_limits(p)->quantum_ns);
}

static void end_turn(struct gp_policy *p, struct gp_offline *o, uint64_t patience_ns, uint64_t now)
{
	uint64_t late = now - o->turn_end_ns;

	o->running.next->late_ns = late < patience_ns ? late : patience_ns; /* alone, it owed nothing */
	stop_first(p, o);
}

/*
 * One at a time. A turn that is due waits for a moment without online work, which would feel it, or in which
 * offline stands still anyway, but not for long.
 */
static uint64_t take_turns(struct gp_policy *p, struct gp_offline *o, int online_active, uint64_t now)
{
	const struct gp_policy_limits *limits = gp_policy_limits(p);
	uint64_t patience = limits->quantum_ns / PATIENCE, latest;

	while (!is_empty(&o->running) && o->running.next->next != &o->running)
		stop_first(p, o);
	if (is_empty(&o->waiting))
		return GP_NEVER;
	if (is_empty(&o->running)) {
		begin_turn(p, o, now);
		return is_empty(&o->waiting) ? GP_NEVER : o->turn_end_ns;
	}
	latest = o->turn_end_ns + patience;
	if (now < o->turn_end_ns)
		return o->turn_end_ns;
	if (online_active && !limits->parked && now < latest)
		return latest;
	end_turn(p, o, patience, now);
	begin_turn(p, o, now);
	return o->turn_end_ns;
}

uint64_t gp_offline_run(struct gp_policy *p, struct gp_offline *o, int online_active, uint64_t now)
{
	if (gp_policy_limits(p)->max_offline == 1)
		return take_turns(p, o, online_active, now);
	while (!is_empty(&o->waiting))
		run_first(p, o);
	return GP_NEVER;
}
