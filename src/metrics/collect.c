// SPDX-License-Identifier: MIT
#include "metrics/collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64 /* as many devices as gpreemptd has at most */

/* As far as the last call has noticed. */
static int is_connected(const struct gp_source *source)
{
	uint32_t rights;

	return source->ctx && gp_ctx_rights(source->ctx, &rights) == 0;
}

/* Another may listen there by the next time. */
static void lose(struct gp_source *source, int r)
{
	const char *text = source->ctx ? gp_ctx_errmsg(source->ctx) : "";

	(void)snprintf(source->why, sizeof(source->why), "%s", *text ? text : gp_strerror(r));
	gp_source_close(source);
}

static int connect_to(struct gp_source *source)
{
	const struct gp_open_opts opts = { .size = sizeof(opts),
					   .backend = "kfd",
					   .socket = source->socket,
					   .errmsg = source->why,
					   .errmsg_size = sizeof(source->why) };
	int r;

	if (is_connected(source))
		return 0;
	gp_source_close(source);
	r = gp_ctx_open(&opts, &source->ctx);
	if (r < 0)
		return r;
	source->why[0] = '\0';
	if (is_connected(source))
		return 0;
	(void)snprintf(source->why, sizeof(source->why), "%s", gp_ctx_notice(source->ctx));
	gp_source_close(source);
	return -ENODEV;
}

typedef int list_fn(struct gp_ctx *ctx, void *infos, size_t n);

static int list_devices(struct gp_ctx *ctx, void *infos, size_t n)
{
	return gp_device_list(ctx, infos, n);
}

static int list_clients(struct gp_ctx *ctx, void *infos, size_t n)
{
	return gp_client_list(ctx, infos, n);
}

/* How many, of this size each.  They come and go meanwhile: again with more room, until all that there are
 * fit. */
static int read_all(struct gp_source *source, list_fn *list, size_t size, void **ret)
{
	size_t room = FIRST_ROOM;

	for (;;) {
		void *infos = calloc(room, size);
		int n;

		if (!infos)
			return -ENOMEM;
		*(size_t *)infos = size;
		n = list(source->ctx, infos, room);
		if (n >= 0 && (size_t)n <= room) {
			*ret = infos;
			return n;
		}
		free(infos);
		if (n < 0)
			return n;
		room = 2 * (size_t)n;
	}
}

/* One that went since it was listed is left out. */
static int tell_devices(struct gp_source *source, const struct gp_device_info *infos, size_t n,
			struct gp_snapshot *ret)
{
	ret->devices = calloc(n + 1, sizeof(*ret->devices));
	if (!ret->devices)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct gp_told *to = &ret->devices[ret->ndevices];
		int r;

		to->info = infos[i];
		to->stats.size = sizeof(to->stats);
		r = gp_device_stats(source->ctx, infos[i].device, &to->stats);
		if (r == 0)
			ret->ndevices++;
		else if (!is_connected(source))
			return r;
	}
	return 0;
}

static int read_devices(struct gp_source *source, struct gp_snapshot *ret)
{
	void *infos;
	int n = read_all(source, list_devices, sizeof(struct gp_device_info), &infos);

	if (n < 0)
		return n;
	n = tell_devices(source, infos, (size_t)n, ret);
	free(infos);
	return n;
}

static int read_clients(struct gp_source *source, struct gp_snapshot *ret)
{
	void *infos;
	int n = read_all(source, list_clients, sizeof(struct gp_client_info), &infos);

	if (n < 0)
		return n;
	ret->clients = infos;
	ret->nclients = (size_t)n;
	return 0;
}

static int collect(struct gp_source *source, struct gp_snapshot *ret)
{
	int r = connect_to(source);

	if (r < 0)
		return r;
	r = read_devices(source, ret);
	if (r >= 0)
		r = read_clients(source, ret);
	if (r < 0) {
		lose(source, r);
		gp_snapshot_free(ret);
	}
	return r;
}

/* A connection of before may be to a gpreemptd that has ended, and another may have been started since. */
void gp_collect(struct gp_source *source, struct gp_snapshot *ret)
{
	const int was_connected = source->ctx != NULL;
	int r;

	*ret = (struct gp_snapshot){ 0 };
	r = collect(source, ret);
	if (r == -ECONNRESET && was_connected)
		r = collect(source, ret);
	ret->is_up = r >= 0;
}

void gp_snapshot_free(struct gp_snapshot *s)
{
	free(s->devices);
	free(s->clients);
	*s = (struct gp_snapshot){ 0 };
}

void gp_source_close(struct gp_source *source)
{
	source->ctx = gp_ctx_close(source->ctx);
}
