// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/manager.h"

#define APART_NS (5 * GP_MS) /* a look at every queue; those who cause it may do so often */

static bool takes_a_seat(const struct gp_manager *m, const struct gp_queue *q, uint32_t device)
{
	return !gp_settings_reserve(m, device) && gp_queue_counts(&m->world, q, device) &&
	       q->client_class != GP_CLASS_ONLINE &&
	       !gp_holds_held_but(gp_core_holds(m->core), q->handle, GP_HOLDER_HOST);
}

static bool stoppable(const struct gp_manager *m, const struct gp_queue *q)
{
	return gp_route_way(m, q, GP_KFD_WAY_AUTO) && m->loop.now_ns >= q->unparkable_until_ns;
}

static size_t find_seats(const struct gp_manager *m, uint32_t device, struct gp_candidate *seats)
{
	size_t n = 0;

	gp_list_each(pos, &m->world.line) {
		const struct gp_queue *q = gp_container(pos, struct gp_queue, in_line);

		if (takes_a_seat(m, q, device))
			seats[n++] = (struct gp_candidate){ .queue = q->handle,
							    .user = q->client->account,
							    .stoppable = stoppable(m, q),
							    .parked = q->parked };
	}
	return n;
}

void gp_reserve_park(struct gp_manager *m, struct gp_queue *q, bool is_parked)
{
	m->nparked += is_parked;
	m->nparked -= q->parked;
	q->parked = is_parked;
}

void gp_reserve_failed(struct gp_manager *m, struct gp_queue *q)
{
	q->unparkable_until_ns = m->loop.now_ns + GP_UNPARKABLE_NS;
	gp_reserve_park(m, q, false);
	m->reserves_changed = true;
}

/* A reservation is one more that holds queues. */
static void set_parked(struct gp_manager *m, struct gp_queue *q, bool is_parked)
{
	const struct gp_hold hold = { .holder = GP_HOLDER_HOST,
				      .owner = GP_HOLDER_HOST,
				      .queue = q->handle,
				      .client = q->client->handle,
				      .until_ns = GP_NO_LEASE,
				      .most = UINT32_MAX };
	int r = 0;

	memset(&q->asked, 0, sizeof(q->asked));
	gp_reserve_park(m, q, is_parked);
	if (is_parked)
		r = gp_core_hold(m->core, &hold, m->loop.now_ns);
	else
		(void)gp_core_release(m->core, q->handle, (struct gp_whose){ .holder = GP_HOLDER_HOST },
				      m->loop.now_ns);
	if (r < 0)
		gp_reserve_failed(m, q);
}

static void park(struct gp_manager *m, const struct gp_candidate *seats, size_t n)
{
	/* Who leaves goes first: the limit holds while they change places. */
	for (int stopping = 1; stopping >= 0; stopping--) {
		for (size_t i = 0; i < n; i++) {
			struct gp_queue *q = gp_world_queue(&m->world, seats[i].queue);

			if (q && (int)seats[i].parked == stopping && q->parked != !!stopping)
				set_parked(m, q, stopping);
		}
	}
}

static void keep_line(struct gp_manager *m, const struct gp_candidate *seats, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct gp_queue *q = gp_world_queue(&m->world, seats[i].queue);

		if (!q)
			continue;
		gp_list_remove(&q->in_line);
		gp_list_append(&m->world.line, &q->in_line);
	}
}

static void apply_one(struct gp_manager *m, uint32_t device, bool turn)
{
	struct gp_reserve *r = &m->reserves[device];
	struct gp_candidate *seats = calloc(m->world.queues.used + 1, sizeof(*seats));
	size_t n;

	if (!seats)
		return; /* the next turn comes in a second */
	n = find_seats(m, device, seats);
	if (gp_reserve_choose(r, seats, n, turn) == 0) {
		keep_line(m, seats, n);
		park(m, seats, n);
	}
	free(seats);
}

/* What is online, held or not listed any more is nobody's to park. */
static void unpark_others(struct gp_manager *m)
{
	gp_list_each(pos, &m->world.all_queues) {
		struct gp_queue *q = gp_container(pos, struct gp_queue, all);
		uint32_t device = gp_queue_device(&m->world, q);

		if (!q->parked || (device < GP_MOST_DEVICES && gp_reserve_is_set(&m->reserves[device]) &&
				   takes_a_seat(m, q, device)))
			continue;
		set_parked(m, q, false);
	}
}

static void apply_all(struct gp_manager *m, bool turn)
{
	m->reserves_changed = false;
	m->reserves_ns = m->loop.now_ns;
	gp_settings_look(m);
	if (m->nparked)
		unpark_others(m);
	for (uint32_t i = 0; m->nreserves && i < GP_MOST_DEVICES; i++)
		if (gp_reserve_is_set(&m->reserves[i]))
			apply_one(m, i, turn);
}

uint64_t gp_reserve_due(const struct gp_manager *m)
{
	return m->nreserves || m->conf->driver_watches ? m->reserves_ns + APART_NS : 0;
}

void gp_reserve_apply(struct gp_manager *m)
{
	if (m->reserves_changed && m->loop.now_ns >= gp_reserve_due(m))
		apply_all(m, false);
}

void gp_reserve_again(void *arg)
{
	gp_reserve_apply(arg);
}

void gp_reserve_next(void *arg)
{
	struct gp_manager *m = arg;

	apply_all(m, true);
	if (m->nreserves)
		gp_alarm_in(&m->loop, &m->reserve_turn, GP_TURN_NS);
}

static void count_reserves(struct gp_manager *m)
{
	m->nreserves = 0;
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++)
		m->nreserves += gp_reserve_is_set(&m->reserves[i]);
}

static int set(struct gp_manager *m, const struct gp_msg_reserve *asked, const char **ret_text)
{
	const struct gp_device *device = gp_devices_at(&m->world.devices, asked->device);
	int r;

	*ret_text = "no such device";
	if (!device)
		return -ENODEV;
	*ret_text = "on a simulated GPU nothing can be reserved: only what the driver shows counts";
	if (device->is_simulated)
		return -EOPNOTSUPP;
	*ret_text = "queue slots can be reserved on AMD GPUs alone";
	if (!gp_device_is_kfd(device))
		return -EOPNOTSUPP;
	r = gp_reserve_set(&m->reserves[asked->device], device->info.queue_slots, asked->online_percent,
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
	if (gp_reserve_is_set(&m->reserves[asked->device]))
		gp_log_about(
			GP_ABOUT_DEVICE(asked->device),
			"device %u: %u %% online, %u %% offline, at most %u offline queues at a time, by user %u",
			asked->device, asked->online_percent, asked->offline_percent,
			m->reserves[asked->device].limit, p->uid);
	else
		gp_log_about(GP_ABOUT_DEVICE(asked->device),
			     "device %u: nothing is reserved any more, by user %u", asked->device, p->uid);
	count_reserves(m);
	m->reserves_changed = true;
	m->reserves_ns = 0;
	gp_alarm_in(&m->loop, &m->reserve_turn, GP_TURN_NS);
	result.type = GP_MSG_RESULT;
	result.serial = msg->serial;
	(void)gp_peer_send(p, &result);
}
