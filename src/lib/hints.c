// SPDX-License-Identifier: MIT
#include "lib/hints.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/link.h"

#define SECOND 1000000000ull
#define RETRY_NS (SECOND / 5)
#define MOST_PLACES 2

struct gp_hints {
	pthread_mutex_t lock;
	char places[MOST_PLACES][108];
	size_t nplaces;
	int fd;          /* -1: none */
	int lent;        /* 1: it is another's */
	int welcome;     /* 1: hints may be said */
	int asked;       /* 1: one has been said that is answered */
	uint64_t try_ns; /* not before */
	struct gp_msg msg;
	unsigned char packet[GP_WIRE_MOST_BYTES];
};

int gp_hints_new(const char *const *places, size_t n, struct gp_hints **ret)
{
	struct gp_hints *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	(void)pthread_mutex_init(&h->lock, NULL); /* cannot fail without attributes */
	h->fd = -1;
	for (; h->nplaces < n && h->nplaces < MOST_PLACES; h->nplaces++)
		(void)snprintf(h->places[h->nplaces], sizeof(h->places[0]), "%s", places[h->nplaces]);
	*ret = h;
	return 0;
}

static void drop(struct gp_hints *h)
{
	if (h->fd >= 0 && !h->lent)
		close(h->fd);
	h->fd = -1;
	h->lent = h->welcome = h->asked = 0;
}

void gp_hints_free(struct gp_hints *h)
{
	if (h)
		drop(h);
	free(h);
}

void gp_hints_lend(struct gp_hints *h, int fd)
{
	(void)pthread_mutex_lock(&h->lock);
	if (fd >= 0 || h->lent)
		drop(h);
	if (fd >= 0) {
		h->fd = fd;
		h->lent = h->welcome = 1;
	}
	(void)pthread_mutex_unlock(&h->lock);
}

/* h->msg. -EAGAIN: there is no room; -ECONNRESET: the connection has ended. */
static int put(struct gp_hints *h)
{
	int n = gp_wire_encode(&h->msg, 0, h->packet, sizeof(h->packet));

	if (n < 0)
		return n;
	while (send(h->fd, h->packet, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		return errno == EPIPE || errno == ENOTCONN ? -ECONNRESET : -errno;
	}
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* Greets the first that listens. */
static void greet(struct gp_hints *h)
{
	char refusal[192];
	uint64_t now = now_ns();

	if (now < h->try_ns)
		return;
	h->try_ns = now + RETRY_NS;
	for (size_t i = 0; i < h->nplaces && h->fd < 0; i++) {
		if (gp_link_connect(h->places[i], 0, &h->fd, refusal, sizeof(refusal)) < 0)
			continue;
		gp_link_hello(&h->msg);
		if (put(h) < 0)
			drop(h);
	}
}

/* gpreemptd drops who says more before its WELCOME. */
static void hear_welcome(struct gp_hints *h)
{
	ssize_t n = recv(h->fd, h->packet, sizeof(h->packet), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && gp_wire_decode(h->packet, (size_t)n, &h->msg) == 0 && h->msg.type == GP_MSG_WELCOME)
		h->welcome = 1;
	else
		drop(h);
}

/* Whether a hint can be said now. */
static int get_ready(struct gp_hints *h)
{
	if (h->fd < 0)
		greet(h);
	if (h->fd >= 0 && !h->welcome)
		hear_welcome(h);
	if (h->fd < 0)
		return -ENODEV;
	return h->welcome ? 0 : -EAGAIN;
}

/* The first of this process, whose answer the owner of the connection will read. */
static int is_to_be_answered(const struct gp_hints *h, const struct gp_msg_hint *hint)
{
	return h->lent && !h->asked && !hint->client && hint->what == GP_HINT_BEGIN;
}

static int try_to_send(struct gp_hints *h, const struct gp_msg_hint *hint)
{
	int r = get_ready(h);

	if (r < 0)
		return r;
	h->msg.type = GP_MSG_HINT;
	h->msg.serial = is_to_be_answered(h, hint) ? GP_LINK_HINT : 0;
	h->msg.hint = *hint;
	r = put(h);
	if (r == 0 && h->msg.serial)
		h->asked = 1;
	return r;
}

int gp_hints_send(struct gp_hints *h, const struct gp_msg_hint *hint)
{
	int r;

	(void)pthread_mutex_lock(&h->lock);
	r = try_to_send(h, hint);
	if (r == -ECONNRESET) {
		drop(h);
		r = try_to_send(h, hint);
	}
	(void)pthread_mutex_unlock(&h->lock);
	return r;
}
