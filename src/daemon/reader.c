// SPDX-License-Identifier: MIT
#include "daemon/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LONG_NS (5 * GP_MS) /* others would notice */

static void *read_all(void *arg)
{
	struct gp_reader *r = arg;
	const struct gp_discover_opts opts = { .root = r->root };
	uint64_t begun = gp_clock_ns(), used = gp_cpu_ns();

	r->r = gp_discover(&opts, &r->found);
	r->cpu_ns = gp_cpu_ns() - used;
	r->is_slow = r->is_slow || gp_clock_ns() - begun > LONG_NS; /* it may have slept on a driver's lock */
	return NULL;
}

static void *read_beside(void *arg)
{
	struct gp_reader *r = arg;

	(void)read_all(r);
	(void)eventfd_write(r->ended.fd, 1); /* cannot fail: it is 0 */
	return NULL;
}

static void finish(struct gp_reader *r)
{
	(void)pthread_join(r->thread, NULL);
	r->is_reading = false;
}

static void ended(void *arg, uint32_t events)
{
	struct gp_reader *r = arg;
	eventfd_t value;

	(void)events;
	(void)eventfd_read(r->ended.fd, &value);
	finish(r);
	r->fn(r->arg);
}

int gp_reader_open(struct gp_reader *r, struct gp_loop *loop, const char *root, void (*fn)(void *arg),
		   void *arg)
{
	*r = (struct gp_reader){ .loop = loop, .root = strdup(root), .fn = fn, .arg = arg };
	r->ended = (struct gp_watch){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .fn = ended, .arg = r };
	if (r->ended.fd < 0)
		return -errno;
	return r->root ? gp_loop_add(loop, &r->ended, EPOLLIN) : -ENOMEM;
}

void gp_reader_close(struct gp_reader *r)
{
	if (r->is_reading) {
		finish(r);
		if (r->r == 0)
			gp_found_free(r->found);
	}
	if (r->ended.fd >= 0)
		close(r->ended.fd);
	r->ended.fd = -1;
	free(r->root);
	r->root = NULL;
}

void gp_reader_begin(struct gp_reader *r)
{
	if (r->is_reading)
		return;
	r->begun_ns = r->loop->now_ns;
	if (r->is_slow && pthread_create(&r->thread, NULL, read_beside, r) == 0) {
		r->is_reading = true;
		return;
	}
	(void)read_all(r);
	r->fn(r->arg);
}
