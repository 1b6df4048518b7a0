// SPDX-License-Identifier: MIT
#include "daemon/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_QUEUES 1024 /* of a process: as many as the driver allows */

uint64_t gp_process_start(const char *root, uint32_t pid)
{
	char path[256], text[1024];
	const char *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/proc/%u/stat", root, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strrchr(text, ')'); /* a name may have anything in it, but nothing after it has a bracket */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

void gp_world_init(struct gp_world *w)
{
	gp_list_init(&w->all_clients);
	gp_list_init(&w->all_queues);
}

/* Queues */

static void cut(struct gp_link *link)
{
	if (link->peer)
		gp_map_remove(&link->peer->queues, link->number);
	*link = (struct gp_link){ 0 };
}

static void free_queue(struct gp_world *w, struct gp_queue *q)
{
	w->goes(w->manager, q);
	cut(&q->agent);
	cut(&q->proxy);
	gp_alarm_free(w->loop, &q->overdue);
	gp_list_remove(&q->all);
	gp_list_remove(&q->of_client);
	gp_list_remove(&q->outbox);
	gp_map_remove(&w->queues, q->handle);
	free(q);
}

static int new_queue(struct gp_world *w, struct gp_client *client, struct gp_queue **ret)
{
	struct gp_queue *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return -ENOMEM;
	q->handle = w->last_handle + 1;
	q->client = client;
	q->manager = w->manager;
	gp_list_init(&q->outbox);
	gp_list_init(&q->waiters);
	r = gp_alarm_init(w->loop, &q->overdue, w->overdue, q);
	if (r == 0)
		r = gp_map_put(&w->queues, q->handle, q);
	if (r < 0) {
		gp_alarm_free(w->loop, &q->overdue);
		free(q);
		return r;
	}
	w->last_handle++;
	gp_list_append(&w->all_queues, &q->all);
	gp_list_append(&client->queues, &q->of_client);
	*ret = q;
	return 0;
}

static void set_field(struct gp_found_queue *f, enum gp_field field, uint32_t *to, uint32_t value)
{
	*to = value;
	f->from[field] = GP_SOURCE_AGENT;
}

static void overlay(struct gp_found_queue *f, const struct gp_msg_queue *told)
{
	set_field(f, GP_FIELD_ID, &f->queue_id, told->queue_id);
	set_field(f, GP_FIELD_GPU, &f->gpu_id, told->gpu_id);
	set_field(f, GP_FIELD_KIND, &f->kind, told->kind);
	f->ring = told->ring;
	f->ring_size = told->ring_size;
	f->from[GP_FIELD_RING] = f->from[GP_FIELD_RING_SIZE] = GP_SOURCE_AGENT;
}

/* What its own process says of a queue is surer than what was found of it; whether it runs the driver knows.
 */
static void merge(struct gp_queue *q)
{
	struct gp_found_queue *f = &q->found;

	*f = q->scanned ? q->scan : (struct gp_found_queue){ 0 };
	f->pid = q->client->pid;
	if (q->proxy.peer)
		overlay(f, &q->proxy.told);
	if (!q->agent.peer)
		return;
	overlay(f, &q->agent.told);
	set_field(f, GP_FIELD_PRIORITY, &f->priority, q->agent.told.priority);
	if (!f->from[GP_FIELD_ACTIVE])
		set_field(f, GP_FIELD_ACTIVE, &f->active,
			  q->agent.told.percent > 0 && !q->agent.told.stopped);
}

/* The ring decides if both sides know it: ids are used again. */
static bool same_queue(const struct gp_found_queue *a, const struct gp_found_queue *b)
{
	if (a->from[GP_FIELD_RING] && b->from[GP_FIELD_RING] && a->ring && b->ring)
		return a->ring == b->ring;
	return a->from[GP_FIELD_ID] && b->from[GP_FIELD_ID] && a->queue_id == b->queue_id;
}

static struct gp_queue *find_queue(const struct gp_client *client, const struct gp_found_queue *like)
{
	gp_list_each(pos, &client->queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);
		const struct gp_found_queue *known = gp_queue_listed(q) ? &q->found : &q->scan;

		if (same_queue(known, like))
			return q;
	}
	return NULL;
}

struct gp_queue *gp_world_queue(const struct gp_world *w, uint64_t handle)
{
	return gp_map_get(&w->queues, handle);
}

bool gp_queue_listed(const struct gp_queue *q)
{
	return q->agent.peer || q->proxy.peer || q->scanned;
}

/* Clients */

static void free_client(struct gp_world *w, struct gp_client *c)
{
	gp_list_each_safe(pos, &c->queues)
		free_queue(w, gp_container(pos, struct gp_queue, of_client));
	if (c->agent)
		c->agent->client = NULL;
	if (c->proxy)
		c->proxy->client = NULL;
	gp_alarm_free(w->loop, &c->unused);
	gp_list_remove(&c->all);
	gp_map_remove(&w->clients, c->pid);
	free(c);
}

void gp_world_free(struct gp_world *w)
{
	gp_list_each_safe(pos, &w->all_clients)
		free_client(w, gp_container(pos, struct gp_client, all));
	gp_map_free(&w->clients);
	gp_map_free(&w->queues);
	gp_found_free(w->found);
	w->found = NULL;
}

static int new_client(struct gp_world *w, uint32_t pid, uint64_t start, struct gp_client **ret)
{
	struct gp_client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->pid = c->found.pid = c->found.inner_pid = pid;
	c->uid = c->found.uid = c->found.pasid = UINT32_MAX;
	c->start = start;
	c->manager = w->manager;
	gp_list_init(&c->queues);
	r = gp_alarm_init(w->loop, &c->unused, w->proxy_unused, c);
	if (r == 0)
		r = gp_map_put(&w->clients, pid, c);
	if (r < 0) {
		gp_alarm_free(w->loop, &c->unused);
		free(c);
		return r;
	}
	c->handle = ++w->last_handle;
	gp_list_append(&w->all_clients, &c->all);
	*ret = c;
	return 0;
}

int gp_world_client(struct gp_world *w, uint32_t pid, uint64_t start, struct gp_client **ret)
{
	struct gp_client *c = gp_map_get(&w->clients, pid);

	if (c && c->start && start && c->start != start) {
		free_client(w, c);
		c = NULL;
	}
	if (!c)
		return new_client(w, pid, start, ret);
	if (!c->start)
		c->start = start;
	*ret = c;
	return 0;
}

static bool client_needed(const struct gp_client *c)
{
	return !gp_list_empty(&c->queues) || c->agent || c->proxy || c->scanned;
}

void gp_world_tidy(struct gp_world *w, struct gp_client *client)
{
	gp_list_each_safe(pos, &client->queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);

		if (!gp_queue_listed(q) && !w->needed(w->manager, q))
			free_queue(w, q);
	}
	if (!client_needed(client))
		free_client(w, client);
}

/* What agents and proxies say */

static struct gp_link *link_of(struct gp_queue *q, const struct gp_peer *peer)
{
	return peer->role == GP_ROLE_PROXY ? &q->proxy : &q->agent;
}

static int attach(struct gp_world *w, struct gp_peer *peer, const struct gp_msg_queue *told,
		  struct gp_queue **ret)
{
	struct gp_found_queue like = { 0 };
	struct gp_queue *q;
	int r;

	if (peer->queues.used >= MOST_QUEUES)
		return -ENOSPC;
	overlay(&like, told);
	q = find_queue(peer->client, &like);
	if (q && link_of(q, peer)->peer)
		q = NULL; /* another one with that ring: believe the peer, not the ring */
	if (!q) {
		r = new_queue(w, peer->client, &q);
		if (r < 0)
			return r;
		q->scan = like;
	}
	r = gp_map_put(&peer->queues, told->queue, q);
	if (r < 0) {
		gp_world_tidy(w, peer->client);
		return r;
	}
	*link_of(q, peer) = (struct gp_link){ .peer = peer, .number = told->queue };
	*ret = q;
	return 0;
}

int gp_world_told(struct gp_world *w, struct gp_peer *peer, const struct gp_msg_queue *told,
		  struct gp_queue **ret)
{
	struct gp_queue *q = gp_map_get(&peer->queues, told->queue);
	bool is_new = !q;
	int r;

	if (!q) {
		r = attach(w, peer, told, &q);
		if (r < 0)
			return r;
	}
	link_of(q, peer)->told = *told;
	merge(q);
	if (is_new)
		w->came(w->manager, q); /* a scan may have had it first, when nobody could stop it */
	*ret = q;
	return 0;
}

void gp_world_gone(struct gp_world *w, struct gp_peer *peer, uint64_t number)
{
	struct gp_queue *q = gp_map_get(&peer->queues, number);

	/* Its own process or the driver says so: a scan that still has it is older. */
	if (q)
		free_queue(w, q);
}

void gp_world_unlink(struct gp_peer *peer)
{
	struct gp_client *c = peer->client;

	if (!c)
		return;
	gp_list_each_safe(pos, &c->queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);
		struct gp_link *link = link_of(q, peer);

		if (link->peer != peer)
			continue;
		q->scan = q->scanned ? q->scan : q->found; /* by which it is known again */
		cut(link);
		merge(q);
	}
	if (c->agent == peer)
		c->agent = NULL;
	if (c->proxy == peer)
		c->proxy = NULL;
	peer->client = NULL;
}

/* What scans find */

static void take_queue(struct gp_world *w, const struct gp_found_queue *found)
{
	struct gp_client *c;
	struct gp_queue *q;
	bool is_new;

	if (!found->pid || gp_world_client(w, found->pid, gp_process_start(w->root, found->pid), &c) < 0)
		return;
	q = find_queue(c, found);
	is_new = !q;
	if (!q && new_queue(w, c, &q) < 0)
		return; /* it is found again by the next scan */
	q->scanned = true;
	q->scan = *found;
	merge(q);
	if (is_new)
		w->came(w->manager, q);
}

static void take_client(struct gp_world *w, const struct gp_found_client *found)
{
	struct gp_client *c;

	if (gp_world_client(w, found->pid, gp_process_start(w->root, found->pid), &c) < 0)
		return;
	c->scanned = true;
	c->found = *found;
	/* An agent's is the kernel's word. */
	if (!c->agent)
		c->uid = found->uid;
	c->found.uid = c->uid;
	if (!c->agent || !c->name[0])
		snprintf(c->name, sizeof(c->name), "%s", found->name);
}

static void forget_scan(struct gp_world *w)
{
	gp_list_each(pos, &w->all_clients)
		gp_container(pos, struct gp_client, all)->scanned = false;
	gp_list_each(pos, &w->all_queues)
		gp_container(pos, struct gp_queue, all)->scanned = false;
}

void gp_world_scan(struct gp_world *w, struct gp_found *found)
{
	gp_found_free(w->found);
	w->found = found;
	forget_scan(w);
	for (size_t i = 0; i < found->nclients; i++)
		take_client(w, &found->clients[i]);
	for (size_t i = 0; i < found->nqueues; i++)
		take_queue(w, &found->queues[i]);
	gp_list_each(pos, &w->all_queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, all);

		if (!q->scanned)
			merge(q);
	}
	gp_list_each_safe(pos, &w->all_clients)
		gp_world_tidy(w, gp_container(pos, struct gp_client, all));
}

uint32_t gp_world_device(const struct gp_world *w, uint32_t gpu_id)
{
	for (size_t i = 0; w->found && i < w->found->ndevices; i++)
		if (w->found->devices[i].gpu_id == gpu_id)
			return (uint32_t)i;
	return UINT32_MAX;
}
