// SPDX-License-Identifier: MIT
#include "daemon/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discover/describe.h"

#define MOST_QUEUES 1024 /* of a process: as many as the driver allows */

void gp_world_init(struct gp_world *w, uint64_t now_ns)
{
	w->last_handle = now_ns / GP_US;
	gp_list_init(&w->all_clients);
	gp_list_init(&w->all_queues);
	gp_list_init(&w->line);
}

/* Queues */

static void cut(struct gp_contact *link)
{
	if (link->peer) {
		gp_map_remove(&link->peer->queues, link->told.queue);
		link->peer->account->now.queues--;
	}
	*link = (struct gp_contact){ 0 };
}

static void free_queue(struct gp_world *w, struct gp_queue *q)
{
	w->goes(w->manager, q);
	cut(&q->agent);
	cut(&q->proxy);
	gp_alarm_free(w->loop, &q->route.overdue);
	gp_list_remove(&q->all);
	gp_list_remove(&q->of_client);
	gp_list_remove(&q->in_line);
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
	gp_list_init(&q->route.outbox);
	gp_list_init(&q->route.ended);
	gp_list_init(&q->waiters);
	r = gp_alarm_init(w->loop, &q->route.overdue, w->overdue, q);
	if (r == 0)
		r = gp_map_put(&w->queues, q->handle, q);
	if (r < 0) {
		gp_alarm_free(w->loop, &q->route.overdue);
		free(q);
		return r;
	}
	w->last_handle++;
	gp_list_append(&w->all_queues, &q->all);
	gp_list_append(&w->line, &q->in_line);
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
	f->from[GP_FIELD_RING] = f->from[GP_FIELD_RING_SIZE] =
		told->ring || told->ring_size ? GP_SOURCE_AGENT : GP_SOURCE_UNKNOWN;
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

void gp_queue_note_active(struct gp_queue *q, uint32_t active)
{
	q->scan.active = q->found.active = active;
	q->scan.from[GP_FIELD_ACTIVE] = q->found.from[GP_FIELD_ACTIVE] = GP_SOURCE_AGENT;
}

bool gp_queue_listed(const struct gp_queue *q)
{
	return q->agent.peer || q->proxy.peer || q->scanned;
}

struct gp_account *gp_queue_account(const struct gp_queue *q)
{
	const struct gp_peer *p = q->agent.peer ? q->agent.peer : q->proxy.peer;

	return p ? p->account : NULL;
}

/* Clients */

static void close_process(struct gp_world *w, struct gp_client *c);

static bool has_ended(const struct gp_client *c)
{
	return c->process.fd >= 0 && !gp_process_lives(&c->process);
}

static void free_client(struct gp_world *w, struct gp_client *c)
{
	gp_list_each_safe(pos, &c->queues)
		free_queue(w, gp_container(pos, struct gp_queue, of_client));
	w->client_goes(w->manager, c);
	for (int i = 0; i < 2; i++) {
		struct gp_peer *peer = i ? c->proxy : c->agent;

		if (!peer)
			continue;
		peer->client = NULL;
		gp_peer_drop(peer, NULL); /* whoever it spoke for is not there */
	}
	if (w->is_scanned && c->process.fd >= 0) /* it may be about to end */
		(void)gp_map_put(&w->went, c->pid, w);
	gp_alarm_free(w->loop, &c->unused);
	gp_list_remove(&c->all);
	gp_map_remove(&w->clients, c->pid);
	close_process(w, c);
	free(c);
}

void gp_world_free(struct gp_world *w)
{
	gp_list_each_safe(pos, &w->all_clients)
		free_client(w, gp_container(pos, struct gp_client, all));
	gp_map_free(&w->clients);
	gp_map_free(&w->queues);
	gp_map_free(&w->went);
	gp_devices_free(&w->devices);
}

static int new_client(struct gp_world *w, uint32_t pid, struct gp_client **ret)
{
	struct gp_client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->pid = c->found.pid = c->found.inner_pid = pid;
	c->uid = c->found.uid = c->found.pasid = UINT32_MAX;
	c->process = GP_NO_PROCESS;
	c->account = GP_ACCOUNT_UNSEEN;
	c->identity.uid = c->owner.uid = UINT32_MAX;
	c->manager = w->manager;
	gp_list_init(&c->queues);
	c->handle = ++w->last_handle;
	r = gp_alarm_init(w->loop, &c->unused, w->proxy_unused, c);
	if (r == 0)
		r = gp_map_put(&w->clients, pid, c);
	if (r == 0) {
		r = w->client_came(w->manager, c);
		if (r < 0)
			gp_map_remove(&w->clients, pid);
	}
	if (r < 0) {
		gp_alarm_free(w->loop, &c->unused);
		free(c);
		return r;
	}
	gp_list_append(&w->all_clients, &c->all);
	*ret = c;
	return 0;
}

static bool may_keep(const struct gp_world *w, const struct gp_account *payer)
{
	return w->processes < w->most_processes && payer->now.processes < payer->most->processes;
}

/* Its user pays for the descriptor: an agent's with its place, any other's within a limit. */
static void keep_process(struct gp_world *w, struct gp_client *c, struct gp_process *process, bool is_paid)
{
	c->process = *process;
	c->seen_ns = 0;
	c->account = gp_account_key(w->accounts, gp_client_identity(w, c));
	if (gp_account_get(w->accounts, c->account, &c->payer) < 0)
		c->payer = NULL;
	if (!c->payer || !(is_paid || may_keep(w, c->payer))) {
		gp_account_put(w->accounts, c->payer);
		c->payer = NULL;
		gp_process_close(&c->process);
		return; /* it is nobody's to act on but root's */
	}
	c->owner = c->identity;
	c->start = gp_proc_start("", c->pid);
	if (!gp_process_lives(&c->process))
		c->start = 0; /* it may be another's */
	c->payer->now.processes++;
	w->processes++;
}

static void close_process(struct gp_world *w, struct gp_client *c)
{
	if (c->process.fd < 0)
		return;
	gp_process_close(&c->process);
	c->start = 0;
	w->processes--;
	c->payer->now.processes--;
	gp_account_put(w->accounts, c->payer);
}

/* Of a tree that was recorded elsewhere the numbers are nobody's here. */
static void find_process(struct gp_world *w, struct gp_client *c, const struct gp_process *known)
{
	struct gp_process process;
	int r = -ESRCH;

	if (known)
		r = gp_process_copy(known, &process);
	else if (!strcmp(w->root, "/"))
		r = gp_process_open(c->pid, &process);
	if (r == 0)
		keep_process(w, c, &process, known != NULL);
}

const struct gp_identity *gp_client_identity(const struct gp_world *w, struct gp_client *c)
{
	if (c->seen_ns == w->loop->now_ns)
		return &c->identity;
	c->seen_ns = w->loop->now_ns;
	if (gp_process_identify(&c->process, &c->identity) < 0)
		c->identity = (struct gp_identity){ .uid = UINT32_MAX };
	return &c->identity;
}

bool gp_client_changed_hands(struct gp_world *w, struct gp_client *c)
{
	const struct gp_identity *now = gp_client_identity(w, c), *then = &c->owner;

	if (now->uid == then->uid && now->user_ns == then->user_ns && now->pid_ns == then->pid_ns)
		return false;
	c->owner = *now;
	c->account = gp_account_key(w->accounts, now);
	return true;
}

int gp_world_client(struct gp_world *w, uint32_t pid, const struct gp_process *process,
		    struct gp_client **ret)
{
	struct gp_client *c = gp_map_get(&w->clients, pid);
	int r;

	if (c && has_ended(c)) {
		free_client(w, c);
		c = NULL;
	}
	if (!c) {
		r = new_client(w, pid, &c);
		if (r < 0)
			return r;
	}
	if (c->process.fd < 0)
		find_process(w, c, process);
	*ret = c;
	return 0;
}

struct gp_client *gp_world_client_by_handle(const struct gp_world *w, uint64_t handle)
{
	gp_list_each(pos, &w->all_clients)
		if (gp_container(pos, struct gp_client, all)->handle == handle)
			return gp_container(pos, struct gp_client, all);
	return NULL;
}

static bool client_needed(const struct gp_client *c)
{
	return !gp_list_empty(&c->queues) || c->agent || c->proxy || c->scanned || c->hinters;
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

void gp_world_tidy_all(struct gp_world *w)
{
	gp_list_each_safe(pos, &w->all_clients)
		gp_world_tidy(w, gp_container(pos, struct gp_client, all));
}

/* What agents and proxies say */

static struct gp_contact *link_of(struct gp_queue *q, const struct gp_peer *peer)
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
	*link_of(q, peer) = (struct gp_contact){ .peer = peer, .told = *told };
	peer->account->now.queues++;
	*ret = q;
	return 0;
}

static bool is_taken(const struct gp_client *c, uint32_t queue_id)
{
	gp_list_each(pos, &c->queues) {
		const struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);

		if (q->scanned && q->scan.queue_id == queue_id)
			return true;
	}
	return false;
}

/* The driver shows a queue before its program has it. One that it shows is one queue, whoever tells of two.
 */
static bool is_there(const struct gp_world *w, const struct gp_client *c, uint32_t queue_id,
		     struct gp_found_queue *ret)
{
	return !is_taken(c, queue_id) && gp_discover_queue(w->root, c->pid, queue_id, ret) == 0;
}

static void confirm(const struct gp_world *w, struct gp_queue *q, uint32_t queue_id)
{
	struct gp_found_queue found;

	if (!is_there(w, q->client, queue_id, &found))
		return;
	q->scanned = true;
	q->confirmed_ns = w->loop->now_ns;
	q->scan = found;
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
	if (!q->scanned)
		confirm(w, q, told->queue_id);
	merge(q);
	if (is_new)
		w->came(w->manager, q); /* a scan may have had it first, when nobody could stop it */
	*ret = q;
	return 0;
}

void gp_world_gone(struct gp_world *w, struct gp_peer *peer, uint64_t number)
{
	struct gp_queue *q = gp_map_get(&peer->queues, number);

	if (!q)
		return;
	/* Its own process or the driver says so: a scan that still has it is older. */
	q->client->gone_ns = w->loop->now_ns;
	free_queue(w, q);
}

void gp_world_unlink(struct gp_peer *peer)
{
	struct gp_client *c = peer->client;

	if (!c)
		return;
	gp_list_each_safe(pos, &c->queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);
		struct gp_contact *link = link_of(q, peer);

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

void gp_world_scan_begins(struct gp_world *w)
{
	w->is_scanned = true;
}

void gp_world_scan_ends(struct gp_world *w)
{
	w->is_scanned = false;
	gp_map_free(&w->went);
}

/* Or another of that number. */
static bool is_there_now(uint32_t pid)
{
	struct gp_process process;
	int r = gp_process_open(pid, &process);

	if (r == 0)
		gp_process_close(&process);
	return r != -ESRCH;
}

static int find_client(struct gp_world *w, uint32_t pid, struct gp_client **ret)
{
	struct gp_client *c = gp_map_get(&w->clients, pid);

	if (c && c->scanned) { /* it was looked for just now */
		*ret = c;
		return 0;
	}
	if (c && has_ended(c))
		free_client(w, c);
	if (gp_map_get(&w->went, pid) && !is_there_now(pid))
		return -ESRCH;
	return gp_world_client(w, pid, NULL, ret);
}

/* Others may not be hidden by an agent that says GONE over and over: the driver is asked which one went. */
static bool has_gone(const struct gp_world *w, const struct gp_client *c, const struct gp_found_queue *found,
		     uint64_t begun_ns)
{
	struct gp_found_queue now;

	return w->driver_shows && c->gone_ns > begun_ns && !is_there(w, c, found->queue_id, &now);
}

static void take_queue(struct gp_world *w, const struct gp_found_queue *found, uint64_t begun_ns)
{
	struct gp_client *c;
	struct gp_queue *q;
	bool is_new;

	if (!found->pid || find_client(w, found->pid, &c) < 0)
		return;
	q = find_queue(c, found);
	is_new = !q;
	if (!q && (has_gone(w, c, found, begun_ns) || new_queue(w, c, &q) < 0))
		return;
	if (!q->scanned) /* else the driver was asked since the scan began */
		q->scan = *found;
	q->scanned = true;
	merge(q);
	if (is_new)
		w->came(w->manager, q);
}

static void take_client(struct gp_world *w, const struct gp_found_client *found)
{
	struct gp_client *c;

	if (find_client(w, found->pid, &c) < 0)
		return;
	c->scanned = true;
	c->found = *found;
	if (found->uid != UINT32_MAX)
		c->uid = found->uid;
	c->found.uid = c->uid;
	if (c->process.fd < 0) /* as far as can be told */
		c->account = gp_account_key(w->accounts, &(struct gp_identity){ .uid = c->uid });
	if (!c->agent || !c->name[0])
		snprintf(c->name, sizeof(c->name), "%s", found->name);
}

static void forget_scan(struct gp_world *w, uint64_t begun_ns)
{
	gp_list_each(pos, &w->all_clients)
		gp_container(pos, struct gp_client, all)->scanned = false;
	gp_list_each(pos, &w->all_queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, all);

		q->scanned = q->scanned && q->confirmed_ns > begun_ns;
	}
}

void gp_world_scan(struct gp_world *w, struct gp_found *found, uint64_t begun_ns)
{
	w->driver_shows = found->sources[GP_SOURCE_SYSFS].status == 0;
	forget_scan(w, begun_ns);
	for (size_t i = 0; i < found->nclients; i++)
		take_client(w, &found->clients[i]);
	for (size_t i = 0; i < found->nqueues; i++)
		take_queue(w, &found->queues[i], begun_ns);
	gp_list_each(pos, &w->all_queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, all);

		if (!q->scanned)
			merge(q);
	}
	gp_found_free(found);
	gp_world_tidy_all(w);
}

/* to: NULL: they are counted. */
static size_t note_unseen(const struct gp_world *w, struct gp_found_client *to)
{
	size_t n = 0;

	gp_list_each(pos, &w->all_clients) {
		const struct gp_client *c = gp_container(pos, struct gp_client, all);

		if (c->scanned)
			continue;
		if (to)
			to[n].pid = c->pid;
		n++;
	}
	return n;
}

size_t gp_world_unseen(const struct gp_world *w, struct gp_found_client **ret)
{
	size_t n = note_unseen(w, NULL);

	*ret = n ? calloc(n, sizeof(**ret)) : NULL;
	return *ret ? note_unseen(w, *ret) : 0;
}

/* What it said of itself stays. It lives, so the number was its own when /proc was read. */
static void take_place(struct gp_client *c, struct gp_found_client *found)
{
	if (c->scanned || !gp_process_lives(&c->process))
		return;
	found->uid = c->found.uid;
	found->pasid = c->found.pasid;
	if (c->found.name[0])
		memcpy(found->name, c->found.name, sizeof(found->name));
	c->found = *found;
}

void gp_world_take_places(struct gp_world *w, struct gp_found_client *unseen, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct gp_client *c = gp_map_get(&w->clients, unseen[i].pid);

		if (c)
			take_place(c, &unseen[i]);
	}
	free(unseen);
}

bool gp_queue_is_shown(const struct gp_world *w, const struct gp_queue *q)
{
	const struct gp_device *simulated = q->agent.peer ? q->agent.peer->devices[0] : NULL;

	return q->scanned || !w->driver_shows || (simulated && simulated->number == gp_queue_device(w, q));
}

bool gp_queue_counts(const struct gp_world *w, const struct gp_queue *q, uint32_t device)
{
	const struct gp_found_queue *f = &q->scan;
	uint32_t kind = f->from[GP_FIELD_KIND] ? f->kind : q->found.kind;

	return q->scanned && f->from[GP_FIELD_GPU] && gp_devices_number(&w->devices, f->gpu_id) == device &&
	       kind == GP_KIND_COMPUTE;
}

uint32_t gp_queue_device(const struct gp_world *w, const struct gp_queue *q)
{
	const struct gp_device *simulated = q->agent.peer ? q->agent.peer->devices[0] : NULL;

	/* What the driver shows is so, whatever an agent says. */
	if (q->scanned && q->scan.from[GP_FIELD_GPU])
		return gp_devices_number(&w->devices, q->scan.gpu_id);
	if (!q->found.from[GP_FIELD_GPU])
		return GP_NO_DEVICE;
	if (simulated && simulated->gpu_id == q->found.gpu_id)
		return simulated->number;
	return gp_devices_number(&w->devices, q->found.gpu_id);
}
