// SPDX-License-Identifier: MIT
#include "daemon/events.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "daemon/peer.h"

#define AT_ONCE 64 /* of those that are kept */

void gp_events_init(struct gp_events *e)
{
	gp_list_init(&e->behind);
	gp_list_init(&e->told);
}

static uint64_t oldest(const struct gp_events *e)
{
	return e->last < GP_EVENTS_KEPT ? 1 : e->last - GP_EVENTS_KEPT + 1;
}

static int say_lost(struct gp_peer *p, struct gp_msg *msg, uint64_t n)
{
	msg->event = (struct gp_event){ .size = sizeof(msg->event), .kind = GP_EVENT_LOST };
	snprintf(msg->event.text, sizeof(msg->event.text), "%llu events before this are not kept any more",
		 (unsigned long long)n);
	return gp_peer_send(p, msg);
}

static int say_next(struct gp_events *e, struct gp_peer *p)
{
	static struct gp_msg msg;
	struct gp_event_reader *r = &p->events;
	uint64_t first = oldest(e), lost = r->next < first ? first - r->next : 0;

	msg.type = GP_MSG_EVENT;
	msg.serial = r->serial;
	if (lost) {
		r->next = first;
		return say_lost(p, &msg, lost);
	}
	msg.event = e->kept[r->next++ % GP_EVENTS_KEPT];
	if (r->kinds && !(r->kinds & 1u << msg.event.kind))
		return 0;
	return gp_peer_send(p, &msg);
}

/* Behind all others that are. */
static void put_in_line(struct gp_events *e, struct gp_event_reader *r)
{
	gp_list_remove(&r->in_line);
	gp_list_append(r->next <= e->last ? &e->behind : &e->told, &r->in_line);
}

bool gp_events_tell(struct gp_events *e, int n)
{
	for (int i = 0; i < n && !gp_list_empty(&e->behind); i++) {
		struct gp_event_reader *r = gp_container(e->behind.next, struct gp_event_reader, in_line);
		struct gp_peer *p = gp_container(r, struct gp_peer, events);

		gp_list_remove(&r->in_line);
		if (say_next(e, p) == 0 && !gp_peer_has_unread(p))
			put_in_line(e, r); /* else when it has read that */
	}
	return !gp_list_empty(&e->behind);
}

/* One that does not follow asks for what there is, in its own turns. */
static void say_kept(struct gp_events *e, struct gp_peer *p)
{
	static struct gp_msg end = { .type = GP_MSG_END };
	struct gp_event_reader *r = &p->events;

	for (int i = 0; r->next <= e->last; i++) {
		if (i == AT_ONCE) {
			gp_peer_more_later(p);
			return;
		}
		if (say_next(e, p) < 0 || gp_peer_has_unread(p))
			return; /* it is called again when that is read */
	}
	end.serial = r->serial;
	gp_events_leave(p);
	(void)gp_peer_send(p, &end);
}

void gp_events_more(struct gp_events *e, struct gp_peer *p)
{
	if (!p->events.is_on)
		return;
	if (p->events.follows)
		put_in_line(e, &p->events);
	else
		say_kept(e, p);
}

void gp_events_add(struct gp_events *e, const struct gp_event *event)
{
	struct gp_event *kept = &e->kept[++e->last % GP_EVENTS_KEPT];
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
	*kept = *event;
	kept->size = sizeof(*kept);
	kept->number = e->last;
	kept->at_ns = (uint64_t)now.tv_sec * GP_S + (uint64_t)now.tv_nsec;
	gp_list_each_safe(pos, &e->told)
		put_in_line(e, gp_container(pos, struct gp_event_reader, in_line));
}

void gp_events_ask(struct gp_events *e, struct gp_peer *p, const struct gp_msg *msg)
{
	struct gp_event_reader *r = &p->events;

	if (r->is_on) {
		(void)gp_peer_error(p, msg->serial, -EBUSY, "it is told of events already");
		return;
	}
	if (msg->events.follow && p->account->now.followers >= p->account->most->followers) {
		(void)gp_peer_error(p, msg->serial, -EBUSY, "too many of this user's follow events already");
		return;
	}
	r->is_on = 1;
	r->follows = (int)msg->events.follow;
	p->account->now.followers += (uint32_t)r->follows;
	r->kinds = msg->events.kinds;
	r->serial = msg->serial;
	r->next = oldest(e);
	gp_list_init(&r->in_line);
	gp_events_more(e, p);
}

void gp_events_leave(struct gp_peer *p)
{
	if (!p->events.is_on)
		return;
	gp_list_remove(&p->events.in_line);
	p->account->now.followers -= (uint32_t)p->events.follows;
	p->events.is_on = 0;
}
