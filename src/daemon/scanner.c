// SPDX-License-Identifier: MIT
#include "daemon/scanner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LONG_NS (5 * GP_MS) /* others would notice */

static void *read_all(void *arg)
{
	struct gp_scanner *s = arg;
	const struct gp_discover_opts opts = { .root = s->root };
	uint64_t begun = gp_clock_ns(), used = gp_cpu_ns();

	s->r = gp_discover(&opts, &s->found);
	gp_discover_processes(s->root, s->others, s->nothers);
	s->cpu_ns = gp_cpu_ns() - used;
	s->is_slow = s->is_slow || gp_clock_ns() - begun > LONG_NS; /* it may have slept on a driver's lock */
	return NULL;
}

static void *read_beside(void *arg)
{
	struct gp_scanner *s = arg;

	(void)read_all(s);
	(void)eventfd_write(s->ended.fd, 1); /* cannot fail: it is 0 */
	return NULL;
}

static void finish(struct gp_scanner *s)
{
	(void)pthread_join(s->thread, NULL);
	s->is_reading = false;
}

static void ended(void *arg, uint32_t events)
{
	struct gp_scanner *s = arg;
	eventfd_t value;

	(void)events;
	(void)eventfd_read(s->ended.fd, &value);
	finish(s);
	s->fn(s->arg);
}

int gp_scanner_open(struct gp_scanner *s, struct gp_loop *loop, const char *root, void (*fn)(void *arg),
		    void *arg)
{
	*s = (struct gp_scanner){ .loop = loop, .root = strdup(root), .fn = fn, .arg = arg };
	s->ended = (struct gp_watch){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .fn = ended, .arg = s };
	if (s->ended.fd < 0)
		return -errno;
	return s->root ? gp_loop_add(loop, &s->ended, EPOLLIN) : -ENOMEM;
}

void gp_scanner_close(struct gp_scanner *s)
{
	if (s->is_reading) {
		finish(s);
		if (s->r == 0)
			gp_found_free(s->found);
		free(s->others);
	}
	if (s->ended.fd >= 0)
		close(s->ended.fd);
	s->ended.fd = -1;
	free(s->root);
	s->root = NULL;
}

void gp_scanner_begin(struct gp_scanner *s, struct gp_found_client *others, size_t nothers)
{
	if (s->is_reading) {
		free(others);
		return;
	}
	s->others = others;
	s->nothers = nothers;
	s->begun_ns = s->loop->now_ns;
	if (s->is_slow && pthread_create(&s->thread, NULL, read_beside, s) == 0) {
		s->is_reading = true;
		return;
	}
	(void)read_all(s);
	s->fn(s->arg);
}
