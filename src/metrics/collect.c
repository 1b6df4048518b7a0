// SPDX-License-Identifier: MIT
#include "metrics/collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CLIENTS 64

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

/* One that went since it was listed is left out. */
static int tell_devices(struct gp_source *source, const struct gp_device_info *infos, size_t n,
			struct gp_snapshot *ret)
{
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
	int r = 0, n = gp_device_list(source->ctx, NULL, 0);
	struct gp_device_info *infos;

	if (n <= 0)
		return n;
	infos = calloc((size_t)n, sizeof(*infos));
	ret->devices = calloc((size_t)n, sizeof(*ret->devices));
	if (infos && ret->devices) {
		infos[0].size = sizeof(*infos);
		r = gp_device_list(source->ctx, infos, (size_t)n);
		if (r >= 0)
			r = tell_devices(source, infos, (size_t)(r < n ? r : n), ret);
	} else {
		r = -ENOMEM;
	}
	free(infos);
	return r;
}

/* They come and go while they are counted: again with more room, until all that there are fit. */
static int read_clients(struct gp_source *source, struct gp_snapshot *ret)
{
	size_t room = FIRST_CLIENTS;

	for (;;) {
		struct gp_client_info *clients = calloc(room, sizeof(*clients));
		int n;

		if (!clients)
			return -ENOMEM;
		clients[0].size = sizeof(*clients);
		n = gp_client_list(source->ctx, clients, room);
		if (n >= 0 && (size_t)n <= room) {
			ret->clients = clients;
			ret->nclients = (size_t)n;
			return 0;
		}
		free(clients);
		if (n < 0)
			return n;
		room = 2 * (size_t)n;
	}
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

/* A gpreemptd that was started again since the last time has not heard of the connection that there was. */
void gp_collect(struct gp_source *source, struct gp_snapshot *ret)
{
	const int was_connected = source->ctx != NULL;
	int r;

	*ret = (struct gp_snapshot){ 0 };
	r = collect(source, ret);
	if (r < 0 && was_connected && r != -ETIMEDOUT)
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
