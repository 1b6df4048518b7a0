// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/manager.h"

static bool takes_a_seat(const struct gp_manager *m, const struct gp_queue *q, uint32_t device)
{
	return gp_queue_listed(q) && gp_world_device(&m->world, q->found.gpu_id) == device &&
	       q->found.kind == GP_KIND_COMPUTE && q->verdict.client_class != GP_CLASS_ONLINE &&
	       !gp_holds_held(m->holds, q->handle);
}

static bool stoppable(const struct gp_manager *m, const struct gp_queue *q)
{
	return gp_drive_way(m, q, GP_KFD_WAY_AUTO) && m->loop.now_ns >= q->unparkable_until_ns;
}

/* How many; all_queues are in order of handle, and so are the seats. */
static size_t find_seats(const struct gp_manager *m, uint32_t device, struct gp_seat *seats)
{
	size_t n = 0;

	gp_list_each(pos, &m->world.all_queues) {
		const struct gp_queue *q = gp_container(pos, struct gp_queue, all);

		if (takes_a_seat(m, q, device))
			seats[n++] = (struct gp_seat){ .queue = q->handle,
						       .stoppable = stoppable(m, q),
						       .parked = q->parked };
	}
	return n;
}

static void park(struct gp_manager *m, const struct gp_seat *seats, size_t n)
{
	/* Who leaves goes first: the limit holds while they change places. */
	for (int stopping = 1; stopping >= 0; stopping--) {
		for (size_t i = 0; i < n; i++) {
			struct gp_queue *q = gp_world_queue(&m->world, seats[i].queue);

			if (!q || (int)seats[i].parked != stopping || q->parked == !!seats[i].parked)
				continue;
			q->parked = seats[i].parked;
			memset(&q->asked, 0, sizeof(q->asked));
			gp_drive_want(m, q);
		}
	}
}

static void apply_one(struct gp_manager *m, uint32_t device, bool turn)
{
	struct gp_reserve *r = &m->reserves[device];
	struct gp_seat *seats = calloc(m->world.queues.used + 1, sizeof(*seats));
	size_t n;

	if (!seats)
		return; /* the next turn comes in a second */
	n = find_seats(m, device, seats);
	if (turn)
		gp_reserve_turn(r, seats, n);
	gp_reserve_choose(r, seats, n);
	park(m, seats, n);
	free(seats);
}

/* What is online, held or not listed any more is nobody's to park. */
static void unpark_others(struct gp_manager *m)
{
	gp_list_each(pos, &m->world.all_queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, all);
		uint32_t device = gp_world_device(&m->world, q->found.gpu_id);

		if (!q->parked || (device < GP_MOST_DEVICES && gp_reserve_is_set(&m->reserves[device]) &&
				   takes_a_seat(m, q, device)))
			continue;
		q->parked = false;
		gp_drive_want(m, q);
	}
}

static bool apply_all(struct gp_manager *m, bool turn)
{
	bool any = false;

	m->reserves_changed = false;
	unpark_others(m);
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++) {
		if (!gp_reserve_is_set(&m->reserves[i]))
			continue;
		apply_one(m, i, turn);
		any = true;
	}
	return any;
}

void gp_reserve_apply(struct gp_manager *m)
{
	if (m->reserves_changed)
		(void)apply_all(m, false);
}

void gp_reserve_next(void *arg)
{
	struct gp_manager *m = arg;

	if (apply_all(m, true))
		gp_alarm_in(&m->loop, &m->turns, GP_RETRY_NS);
}

static int set(struct gp_manager *m, const struct gp_msg_reserve *asked, const char **ret_text)
{
	struct gp_device_info info;
	int r;

	*ret_text = "no such device";
	if (asked->device >= GP_MOST_DEVICES || gp_answer_device(m, asked->device, &info) < 0)
		return -ENODEV;
	r = gp_reserve_set(&m->reserves[asked->device], info.queue_slots, asked->online_percent,
			   asked->offline_percent);
	*ret_text = r == -EINVAL ? "online and offline are more than 100 percent"
				 : "nobody knows how many queue slots this device has";
	return r;
}

void gp_reserve_request(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	static struct gp_msg result;
	const struct gp_msg_reserve *asked = &msg->reserve;
	const char *text = "only root and group gpreempt may reserve";
	int r = p->rights & GP_RIGHT_OTHERS ? set(m, asked, &text) : -EPERM;

	if (r < 0) {
		(void)gp_peer_error(p, msg->serial, r, text);
		return;
	}
	gp_log("device %u: %u %% online, %u %% offline, at most %u offline queues at a time, by user %u",
	       asked->device, asked->online_percent, asked->offline_percent, m->reserves[asked->device].limit,
	       p->uid);
	m->reserves_changed = true;
	gp_alarm_in(&m->loop, &m->turns, GP_RETRY_NS);
	result.type = GP_MSG_RESULT;
	result.serial = msg->serial;
	(void)gp_peer_send(p, &result);
}
