// SPDX-License-Identifier: MIT
#include "daemon/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/event_words.h"
#include "daemon/peer.h"
#include "ini/words.h"

#define AT_ONCE 64 /* of those that are kept */

/* The rings: OTHERS has changes that failed, or that there is something to say of. */
enum { CHANGES, CLIENTS, OTHERS, BACKOFFS, EJECTIONS, LEASES, STARVED, POLICIES, CLASSES };

_Static_assert(CLASSES + 1 == GP_EVENT_RINGS, "there are as many rings as sorts");

int gp_events_open(struct gp_events *e)
{
	struct gp_events_room *room = calloc(1, sizeof(*room));

	if (!room)
		return -ENOMEM;
	e->room = room;
	gp_list_init(&e->behind);
	gp_list_init(&e->told);
	e->rings[CHANGES] = (struct gp_event_ring){ .kept = room->changes, .room = GP_CHANGES_KEPT };
	e->rings[CLIENTS] = (struct gp_event_ring){ .kept = room->clients, .room = GP_CLIENTS_KEPT };
	for (int i = 0; i < GP_OTHER_RINGS; i++)
		e->rings[OTHERS + i] = (struct gp_event_ring){ .kept = room->others[i],
							       .texts = room->texts[i],
							       .room = GP_OTHERS_KEPT };
	return 0;
}

void gp_events_close(struct gp_events *e)
{
	free(e->room);
	e->room = NULL;
}

/* What is kept */

static uint64_t oldest(const struct gp_event_ring *ring)
{
	return ring->added < ring->room ? 0 : ring->added - ring->room;
}

static int ring_of(const struct gp_happened *what)
{
	switch (what->kind) {
	case GP_EVENT_SUSPEND:
	case GP_EVENT_RESUME:
		return what->text && what->text[0] ? OTHERS : CHANGES;
	case GP_EVENT_CLIENT:
	case GP_EVENT_GONE:
		return CLIENTS;
	case GP_EVENT_BACKOFF:
		return BACKOFFS;
	case GP_EVENT_EJECTED:
		return EJECTIONS;
	case GP_EVENT_LEASE:
		return LEASES;
	case GP_EVENT_STARVED:
		return STARVED;
	case GP_EVENT_POLICY:
		return POLICIES;
	case GP_EVENT_CLASS:
		return CLASSES;
	default:
		return OTHERS;
	}
}

static void drop(struct gp_event_ring *ring, const struct gp_kept_event *kept)
{
	ring->dropped[kept->kind].n++;
	ring->dropped[kept->kind].number = kept->number;
	ring->dropped[kept->kind].at_ns = kept->at_ns;
}

/* Not by snprintf(): this is done for every queue that stops or goes on. */
static void copy_text(char *to, size_t size, const char *from)
{
	size_t len = from ? strnlen(from, size - 1) : 0;

	if (len)
		memcpy(to, from, len);
	to[len] = '\0';
}

static uint64_t wall_clock_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
	return (uint64_t)now.tv_sec * GP_S + (uint64_t)now.tv_nsec;
}

static void keep(struct gp_events *e, const struct gp_happened *what)
{
	struct gp_event_ring *ring = &e->rings[ring_of(what)];
	uint64_t place = ring->added % ring->room;
	struct gp_kept_event *kept = &ring->kept[place];

	if (ring->added++ >= ring->room)
		drop(ring, kept);
	*kept = (struct gp_kept_event){ .number = ++e->last,
					.at_ns = wall_clock_ns(),
					.client = what->client,
					.queue = what->queue,
					.latency_ns = what->latency_ns,
					.device = what->device,
					.pid = what->pid,
					.status = what->status,
					.kind = (uint16_t)what->kind,
					.way = (uint8_t)what->way,
					.tried = (uint8_t)what->tried };
	copy_text(kept->name, sizeof(kept->name), what->name);
	if (ring->texts)
		copy_text(ring->texts[place], GP_EVENT_TEXT, what->text);
}

/* What is told */

static bool is_asked_for(const struct gp_event_reader *r, uint32_t kind)
{
	return !r->kinds || r->kinds & 1u << kind;
}

/* Whether it is to hear that some of the kind were lost: of all kinds who asks for that alone. */
static bool is_counted(const struct gp_event_reader *r, uint32_t kind)
{
	return is_asked_for(r, kind) || r->kinds == 1u << GP_EVENT_LOST;
}

/* How many of the kind it lost since it was told so last, if it is to hear of them. */
static uint64_t count_lost(const struct gp_event_ring *ring, const struct gp_event_reader *r,
			   const struct gp_event_place *at, uint32_t kind)
{
	return is_counted(r, kind) ? ring->dropped[kind].n - at->passed[kind] : 0;
}

/* How many are lost. */
static uint64_t describe_lost(const struct gp_event_ring *ring, const struct gp_event_reader *r,
			      const struct gp_event_place *at, char text[GP_EVENT_TEXT])
{
	const char *words = GP_EVENT_WORDS;
	const char *before = ": ";
	char name[GP_NAME_LEN];
	uint64_t n = 0;
	int len;

	for (uint32_t kind = 0; kind < GP_EVENT_KINDS; kind++)
		n += count_lost(ring, r, at, kind);
	len = snprintf(text, GP_EVENT_TEXT, "%llu earlier event%s not kept", (unsigned long long)n,
		       n == 1 ? " is" : "s are");
	for (uint32_t kind = 0; kind < GP_EVENT_KINDS && gp_word_next(&words, name, sizeof(name)); kind++) {
		if (!count_lost(ring, r, at, kind))
			continue;
		len += snprintf(text + len, (size_t)(GP_EVENT_TEXT - len), "%s%s", before, name);
		before = ", ";
	}
	return n;
}

/* Of which kind the last is. */
static uint32_t last_lost(const struct gp_event_ring *ring, const struct gp_event_reader *r)
{
	uint64_t number = 0;
	uint32_t last = 0;

	for (uint32_t kind = 0; kind < GP_EVENT_KINDS; kind++) {
		if (!is_counted(r, kind) || ring->dropped[kind].number <= number)
			continue;
		number = ring->dropped[kind].number;
		last = kind;
	}
	return last;
}

/* In the place of the last of them: what was before it and is kept comes first. false: none was asked for. */
static bool take_lost(const struct gp_event_ring *ring, const struct gp_event_reader *r,
		      struct gp_event_place *at, struct gp_event *ret)
{
	uint32_t last = last_lost(ring, r);
	uint64_t n;

	*ret = (struct gp_event){ .size = sizeof(*ret),
				  .number = ring->dropped[last].number,
				  .at_ns = ring->dropped[last].at_ns,
				  .kind = GP_EVENT_LOST,
				  .device = GP_ALL_DEVICES };
	n = describe_lost(ring, r, at, ret->text);
	at->next = oldest(ring);
	for (uint32_t kind = 0; kind < GP_EVENT_KINDS; kind++)
		at->passed[kind] = ring->dropped[kind].n;
	return n > 0;
}

/* The same: false if it was not asked for. */
static bool take_kept(const struct gp_event_ring *ring, const struct gp_event_reader *r,
		      struct gp_event_place *at, struct gp_event *ret)
{
	uint64_t place = at->next++ % ring->room;
	const struct gp_kept_event *kept = &ring->kept[place];

	at->passed[kept->kind]++;
	if (!is_asked_for(r, kept->kind))
		return false;
	*ret = (struct gp_event){ .size = sizeof(*ret),
				  .number = kept->number,
				  .at_ns = kept->at_ns,
				  .kind = kept->kind,
				  .device = kept->device,
				  .client = kept->client,
				  .queue = kept->queue,
				  .latency_ns = kept->latency_ns,
				  .pid = kept->pid,
				  .tried = kept->tried,
				  .status = kept->status };
	copy_text(ret->client_name, sizeof(ret->client_name), kept->name);
	copy_text(ret->way, sizeof(ret->way), kept->way ? gp_way_name(kept->way) : NULL);
	copy_text(ret->text, sizeof(ret->text), ring->texts ? ring->texts[place] : NULL);
	return true;
}

/* UINT64_MAX: it has been told all. */
static uint64_t next_number(const struct gp_event_ring *ring, const struct gp_event_reader *r,
			    const struct gp_event_place *at)
{
	if (at->next == ring->added)
		return UINT64_MAX;
	return at->next < oldest(ring) ? ring->dropped[last_lost(ring, r)].number
				       : ring->kept[at->next % ring->room].number;
}

/* The ring whose next event is the oldest; -1: it has been told all. */
static int next_ring(const struct gp_events *e, const struct gp_event_reader *r)
{
	uint64_t first = UINT64_MAX;
	int found = -1;

	for (int i = 0; i < GP_EVENT_RINGS; i++) {
		uint64_t number = next_number(&e->rings[i], r, &r->at[i]);

		if (number < first) {
			first = number;
			found = i;
		}
	}
	return found;
}

/* From that ring. false: it was not asked for. */
static bool take(const struct gp_event_ring *ring, const struct gp_event_reader *r, struct gp_event_place *at,
		 struct gp_event *ret)
{
	return at->next < oldest(ring) ? take_lost(ring, r, at, ret) : take_kept(ring, r, at, ret);
}

/* 1: there was one, whether it was asked for or not; 0: it has been told all. */
static int say_next(struct gp_events *e, struct gp_event_reader *r)
{
	static struct gp_msg msg;
	int i = next_ring(e, r), sent = 0;

	if (i < 0)
		return 0;
	msg.type = GP_MSG_EVENT;
	msg.serial = r->serial;
	if (take(&e->rings[i], r, &r->at[i], &msg.event))
		sent = gp_peer_send(r->peer, &msg);
	return sent < 0 ? sent : 1;
}

/* As if it had been told all. */
static void pass_kept(const struct gp_events *e, struct gp_event_reader *r)
{
	struct gp_event passed;

	for (int i = 0; i < GP_EVENT_RINGS; i++)
		while (r->at[i].next < e->rings[i].added)
			(void)take(&e->rings[i], r, &r->at[i], &passed);
}

/* Behind all others that are. */
static void put_in_line(struct gp_events *e, struct gp_event_reader *r)
{
	gp_list_remove(&r->in_line);
	gp_list_append(next_ring(e, r) < 0 ? &e->told : &e->behind, &r->in_line);
}

bool gp_events_tell(struct gp_events *e, int n)
{
	for (int i = 0; i < n && !gp_list_empty(&e->behind); i++) {
		struct gp_event_reader *r = gp_container(e->behind.next, struct gp_event_reader, in_line);

		gp_list_remove(&r->in_line);
		if (say_next(e, r) >= 0 && !gp_peer_has_unread(r->peer))
			put_in_line(e, r); /* else when it has read that */
	}
	return !gp_list_empty(&e->behind);
}

/* One that does not follow asks for what there is, in its own turns. */
static void say_kept(struct gp_events *e, struct gp_event_reader *r)
{
	static struct gp_msg end = { .type = GP_MSG_END };
	struct gp_peer *p = r->peer;
	int more;

	for (int i = 0; i < AT_ONCE; i++) {
		more = say_next(e, r);
		if (more < 0 || gp_peer_has_unread(p))
			return; /* it is called again when that is read */
		if (more)
			continue;
		end.serial = r->serial;
		gp_events_leave(p);
		(void)gp_peer_send(p, &end);
		return;
	}
	gp_peer_more_later(p);
}

void gp_events_more(struct gp_events *e, struct gp_peer *p)
{
	if (!p->events)
		return;
	if (p->events->follows)
		put_in_line(e, p->events);
	else
		say_kept(e, p->events);
}

void gp_events_add(struct gp_events *e, const struct gp_happened *what)
{
	keep(e, what);
	gp_list_each_safe(pos, &e->told)
		put_in_line(e, gp_container(pos, struct gp_event_reader, in_line));
}

void gp_events_ask(struct gp_events *e, struct gp_peer *p, const struct gp_msg *msg)
{
	struct gp_event_reader *r;

	if (p->events) {
		(void)gp_peer_error(p, msg->serial, -EBUSY, "it is told of events already");
		return;
	}
	if (msg->events.follow && p->account->now.followers >= p->account->most->followers) {
		(void)gp_peer_error(p, msg->serial, -EBUSY, "too many of this user's follow events already");
		return;
	}
	r = calloc(1, sizeof(*r));
	if (!r) {
		(void)gp_peer_error(p, msg->serial, -ENOMEM, "no memory");
		return;
	}
	r->peer = p;
	r->follows = (int)msg->events.follow;
	r->kinds = msg->events.kinds;
	r->serial = msg->serial;
	gp_list_init(&r->in_line);
	p->events = r;
	p->account->now.followers += msg->events.follow;
	if (msg->events.only_new)
		pass_kept(e, r);
	gp_events_more(e, p);
}

void gp_events_leave(struct gp_peer *p)
{
	if (!p->events)
		return;
	gp_list_remove(&p->events->in_line);
	p->account->now.followers -= (uint32_t)p->events->follows;
	free(p->events);
	p->events = NULL;
}
