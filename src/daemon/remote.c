// SPDX-License-Identifier: MIT
#include "daemon/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/manager.h"

struct gp_backend {
	struct gp_manager *m;
	uint32_t last_serial;
	struct gp_done *done; /* that nobody asked for yet */
	size_t ndone, capacity;
	struct gp_msg msg; /* large */
};

static int open_remote(const struct gp_backend_opts *opts, struct gp_backend **ret)
{
	struct gp_backend *be = calloc(1, sizeof(*be));

	if (!be)
		return -ENOMEM;
	be->m = (struct gp_manager *)opts->params;
	*ret = be;
	return 0;
}

/* The connections end with us, and with them every stop. */
static void close_remote(struct gp_backend *be)
{
	free(be->done);
	free(be);
}

static int devices(struct gp_backend *be, struct gp_device_info *infos, size_t n)
{
	struct gp_device_info info;
	uint32_t i;

	for (i = 0; gp_answer_device(be->m, i, &info) == 0; i++)
		if (i < n)
			infos[i] = info;
	return (int)i;
}

static int queues(struct gp_backend *be, struct gp_queue_info *infos, size_t n)
{
	size_t i = 0;

	gp_list_each(pos, &be->m->world.all_queues) {
		const struct gp_queue *q = gp_container(pos, struct gp_queue, all);

		if (!gp_queue_listed(q))
			continue;
		if (i < n)
			gp_answer_queue(be->m, q, true, &infos[i]);
		i++;
	}
	return (int)i;
}

static const struct gp_link *link_in(const struct gp_queue *q, uint32_t way)
{
	return (way ? way : q->way) == GP_KFD_WAY_DBG ? &q->proxy : &q->agent;
}

/* Who is to do it, or what is wrong. */
static int resolve(struct gp_backend *be, const struct gp_want *want, uint32_t way, struct gp_queue **ret)
{
	struct gp_queue *q = gp_world_queue(&be->m->world, want->queue);

	if (!q)
		return -ENOENT;
	if (want->want == GP_BACKGROUND)
		return -ENOTSUP;
	if (!link_in(q, way)->peer)
		return -ESRCH;
	*ret = q;
	return -EINPROGRESS;
}

static uint32_t next_serial(struct gp_backend *be)
{
	be->last_serial += be->last_serial == UINT32_MAX ? 2 : 1; /* 0 is none */
	return be->last_serial;
}

static void begin(struct gp_backend *be, const struct gp_apply_opts *opts)
{
	memset(&be->msg, 0, offsetof(struct gp_msg, item));
	be->msg.type = GP_MSG_WANTS;
	be->msg.serial = next_serial(be);
	be->msg.items.way = opts->way;
	be->msg.items.type = opts->type;
	be->msg.items.timeout_ns = opts->timeout_ns;
	be->msg.items.lease_ns = opts->lease_ns;
}

/* One message with all that is left for this peer, from wants[i] on; done[] are those that were sent. */
static void send_to(struct gp_backend *be, struct gp_peer *peer, struct gp_want *wants, size_t n,
		    const struct gp_apply_opts *opts, char *done)
{
	struct gp_msg_items *items = &be->msg.items;

	begin(be, opts);
	for (size_t i = 0; i < n && items->n < GP_WIRE_MOST_ITEMS; i++) {
		struct gp_queue *q = done[i] ? NULL : gp_world_queue(&be->m->world, wants[i].queue);

		if (!q || link_in(q, opts->way)->peer != peer)
			continue;
		be->msg.item[items->n++] = (struct gp_wire_item){ .queue = link_in(q, opts->way)->number,
								  .want = wants[i].want };
		q->sent_serial = be->msg.serial;
		q->sent_to = peer;
		done[i] = 1;
	}
	/* If it cannot be sent, the peer is dropped, and its queues are told so. */
	(void)gp_peer_send(peer, &be->msg);
}

static int apply(struct gp_backend *be, struct gp_want *wants, size_t n, const struct gp_apply_opts *opts)
{
	struct gp_queue *q;
	char *done = calloc(n ? n : 1, 1);
	int first = 0;

	for (size_t i = 0; i < n; i++) {
		wants[i].status = done ? resolve(be, &wants[i], opts->way, &q) : -ENOMEM;
		if (wants[i].status == -EINPROGRESS)
			continue;
		first = first ? first : wants[i].status;
		if (done)
			done[i] = 1;
	}
	for (size_t i = 0; done && i < n; i++) {
		if (done[i])
			continue;
		q = gp_world_queue(&be->m->world, wants[i].queue);
		send_to(be, link_in(q, opts->way)->peer, wants + i, n - i, opts, done + i);
	}
	free(done);
	return first;
}

static int complete(struct gp_backend *be, struct gp_done *done, size_t n)
{
	if (n > be->ndone)
		n = be->ndone;
	if (!n)
		return 0;
	memcpy(done, be->done, n * sizeof(*done));
	be->ndone -= n;
	memmove(be->done, be->done + n, be->ndone * sizeof(*done));
	return (int)n;
}

static int activity(struct gp_backend *be, uint64_t queue, struct gp_activity *ret)
{
	const struct gp_queue *q = gp_world_queue(&be->m->world, queue);

	if (!q)
		return -ENOENT;
	*ret = (struct gp_activity){ .activity = q->activity };
	return 0;
}

static int add_done(struct gp_backend *be, const struct gp_done *done)
{
	if (be->ndone == be->capacity) {
		size_t capacity = be->capacity ? 2 * be->capacity : 64;
		struct gp_done *more = realloc(be->done, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		be->done = more;
		be->capacity = capacity;
	}
	be->done[be->ndone++] = *done;
	return 0;
}

void gp_remote_done(struct gp_backend *be, struct gp_peer *p, const struct gp_msg *msg)
{
	for (uint32_t i = 0; i < msg->items.n; i++) {
		const struct gp_wire_item *item = &msg->item[i];
		struct gp_queue *q = gp_map_get(&p->queues, item->queue);
		struct gp_done done = { .latency_ns = item->latency_ns };

		/* Anything else is the answer to what we have changed our mind about since. */
		if (!q || q->sent_to != p || !q->sent_serial || q->sent_serial != msg->serial)
			continue;
		q->sent_serial = 0;
		done.want = (struct gp_want){ q->handle, q->state == GP_QUEUE_SUSPENDING ? GP_STOP : GP_RUN,
					      item->status };
		if (add_done(be, &done) < 0)
			gp_peer_drop(p, "there is no memory for what it did");
	}
}

const struct gp_backend_ops gp_remote_ops = {
	.size = sizeof(gp_remote_ops),
	.abi = GP_BACKEND_ABI,
	.name = "remote",
	.open = open_remote,
	.close = close_remote,
	.devices = devices,
	.queues = queues,
	.apply = apply,
	.complete = complete,
	.activity = activity,
};
