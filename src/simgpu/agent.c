// SPDX-License-Identifier: MIT
/*
 * The client's agent: what libgpreempt-agent is to a program on a real GPU.  It has no device to call, so
 * what gpreemptd wants goes to the simulated GPU, and DONE follows when that has answered.  Without a word
 * for the lease, or with the connection lost, everything runs again.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "simgpu/internal.h"

#define SECOND 1000000000ull
#define ASKS_CLASS 1u
#define ASK_AGAIN_NS (2 * SECOND) /* in which container it is gpreemptd learns after it has come */
#define OWN 0u                    /* serial of what the agent wants by itself; gpreemptd has none such */

static uint64_t number_of(uint32_t queue)
{
	return queue + 1;
}

void gp_simagent_init(struct gp_simclient *c)
{
	gp_simconn_init(&c->agent.conn, c->opts.socket);
	c->agent.told_class = c->opts.client_class;
}

/* Once: it looks again, but nobody wants to read that every time. */
static void complain(struct gp_simclient *c, const char *why)
{
	char text[256];

	if (c->agent.has_complained || !c->opts.say)
		return;
	c->agent.has_complained = 1;
	(void)snprintf(text, sizeof(text), "%s: it runs unscheduled", why);
	c->opts.say(text);
}

static int resume_all(struct gp_simclient *c)
{
	struct gp_simgpu_want wants[GP_SIMGPU_MOST_QUEUES];
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->opts.queues; i++) {
		c->queues[i].is_draining = 0;
		if (c->queues[i].want != GP_RUN)
			wants[n++] = (struct gp_simgpu_want){ .queue = i, .want = GP_RUN };
	}
	return gp_simclient_ask(c, OWN, wants, n);
}

static int lose(struct gp_simclient *c)
{
	gp_simconn_lose(&c->agent.conn, (int)c->agent.is_welcome, gp_simgpu_now_ns());
	c->agent.is_welcome = 0;
	return resume_all(c);
}

/* What is in msg. If it cannot be sent the connection is lost, and what that means comes with it. */
static int send_msg(struct gp_simclient *c)
{
	return gp_simconn_send(&c->agent.conn) < 0 ? lose(c) : 0;
}

static struct gp_msg *begin_msg(struct gp_simclient *c, uint32_t type, uint32_t serial)
{
	return gp_simconn_begin(&c->agent.conn, type, serial);
}

static int say_hello(struct gp_simclient *c)
{
	struct gp_msg_hello *hello = &begin_msg(c, GP_MSG_HELLO, 0)->hello;

	hello->role = GP_ROLE_AGENT;
	hello->ways = GP_KFD_WAY_UPDATE; /* by its own process: the only one that it can have */
	hello->pid = (uint32_t)getpid();
	hello->seen = c->opts.client_class;
	(void)snprintf(hello->name, sizeof(hello->name), "%s", c->opts.name);
	hello->features = GP_FEATURES;
	hello->weight = c->opts.weight;
	hello->slo_ns = c->opts.slo_ns;
	return send_msg(c);
}

static int say_device(struct gp_simclient *c)
{
	struct gp_msg *msg = begin_msg(c, GP_MSG_DEVICE, 0);

	msg->device = c->device;
	memcpy(msg->device_key, c->device_key, sizeof(msg->device_key));
	return send_msg(c);
}

static int say_queue(struct gp_simclient *c, uint32_t queue)
{
	begin_msg(c, GP_MSG_QUEUE, 0)->queue =
		(struct gp_msg_queue){ .queue = number_of(queue),
				       .ring = number_of(queue) << 12, /* tells one from the other */
				       .ring_size = GP_SIMGPU_MOST_OPEN,
				       .queue_id = queue,
				       .gpu_id = c->device.device,
				       .kind = GP_KIND_COMPUTE,
				       .percent = 100,
				       .stopped = c->queues[queue].want == GP_STOP };
	return send_msg(c);
}

int gp_simagent_look(struct gp_simclient *c, uint32_t queue)
{
	struct gp_simqueue *q = &c->queues[queue];
	uint32_t activity = gp_simqueue_is_busy(q) ? GP_ACTIVITY_BUSY : GP_ACTIVITY_IDLE;

	if (!c->agent.is_welcome || !c->agent.samples || activity == q->activity)
		return 0;
	q->activity = activity;
	begin_msg(c, GP_MSG_ACTIVITY, 0)->activity = (struct gp_msg_activity){
		.queue = number_of(queue), .rptr = q->first, .wptr = q->next, .activity = activity
	};
	return send_msg(c);
}

static int say_hint(struct gp_simclient *c, uint32_t queue, uint64_t tag, uint32_t what)
{
	begin_msg(c, GP_MSG_HINT, 0)->hint = (struct gp_msg_hint){
		.number = tag * GP_SIMGPU_MOST_QUEUES + queue, .what = what, .device = GP_ALL_DEVICES
	};
	return send_msg(c);
}

int gp_simagent_hint_begin(struct gp_simclient *c, uint32_t queue, uint64_t tag)
{
	uint32_t *hinted = &c->queues[queue].hinted[tag % GP_SIMGPU_MOST_OPEN];

	*hinted = 0;
	if (!c->opts.hints || !c->agent.is_welcome)
		return 0;
	*hinted = c->agent.welcomes;
	return say_hint(c, queue, tag, GP_HINT_BEGIN);
}

int gp_simagent_hint_end(struct gp_simclient *c, uint32_t queue, uint64_t tag)
{
	uint32_t hinted = c->queues[queue].hinted[tag % GP_SIMGPU_MOST_OPEN];

	if (!c->agent.is_welcome || hinted != c->agent.welcomes)
		return 0;
	return say_hint(c, queue, tag, GP_HINT_END);
}

static int say_done(struct gp_simclient *c, uint32_t serial, const struct gp_wire_item *item)
{
	struct gp_msg *msg;

	if (serial == OWN || !c->agent.is_welcome)
		return 0;
	msg = begin_msg(c, GP_MSG_DONE, serial);
	msg->items.way = GP_KFD_WAY_UPDATE;
	msg->items.n = 1;
	msg->item[0] = *item;
	return send_msg(c);
}

int gp_simagent_applied(struct gp_simclient *c, const struct gp_simgpu_msg *msg)
{
	const struct gp_wire_item item = { .queue = number_of(msg->queue),
					   .want = msg->applied.want,
					   .status = msg->status,
					   .latency_ns = msg->applied.latency_ns };

	return say_done(c, msg->applied.serial, &item);
}

/* Drains */

static int end_drain(struct gp_simclient *c, uint32_t queue, int status)
{
	struct gp_simqueue *q = &c->queues[queue];
	const struct gp_wire_item item = { .queue = number_of(queue),
					   .want = GP_STOP,
					   .status = status,
					   .latency_ns = gp_simgpu_now_ns() - q->drain_start_ns };

	if (!q->is_draining)
		return 0;
	q->is_draining = 0;
	return say_done(c, q->drain_serial, &item);
}

static int go_on_draining(struct gp_simclient *c, uint64_t now_ns)
{
	int r = 0;

	for (uint32_t i = 0; i < c->opts.queues && r == 0 && c->agent.is_welcome; i++) {
		struct gp_simqueue *q = &c->queues[i];
		const struct gp_simgpu_want stop = { .queue = i, .want = GP_STOP };

		if (q->is_draining && !gp_simqueue_is_busy(q)) {
			q->is_draining = 0;
			r = gp_simclient_ask(c, q->drain_serial, &stop, 1);
		} else if (q->is_draining && now_ns >= q->drain_end_ns) {
			r = end_drain(c, i, -ETIMEDOUT);
		}
	}
	return r;
}

static void begin_drain(struct gp_simqueue *q, uint32_t serial, uint64_t timeout_ns, uint64_t now_ns)
{
	q->is_draining = 1;
	q->drain_serial = serial;
	q->drain_start_ns = now_ns;
	q->drain_end_ns = now_ns + (timeout_ns ? timeout_ns : GP_DEFAULT_TIMEOUT_NS);
}

/* What it hears */

/* msg is used again for what is answered at once: its items are taken out first. */
static int do_wants(struct gp_simclient *c, uint64_t now_ns)
{
	const struct gp_msg_items how = c->agent.conn.msg.items;
	uint32_t serial = c->agent.conn.msg.serial, asked = 0, n = 0;
	struct gp_simgpu_want wants[GP_SIMGPU_MOST_QUEUES], now[GP_SIMGPU_MOST_QUEUES];
	int r = 0;

	for (uint32_t i = 0; i < how.n && n < GP_SIMGPU_MOST_QUEUES; i++) {
		uint64_t queue = c->agent.conn.msg.item[i].queue - 1;

		if (queue < c->opts.queues) /* else it has no such, and gpreemptd has a peer that lies */
			wants[n++] = (struct gp_simgpu_want){ .queue = (uint32_t)queue,
							      .want = c->agent.conn.msg.item[i].want };
	}
	for (uint32_t i = 0; i < n && r == 0 && c->agent.is_welcome; i++) {
		r = end_drain(c, wants[i].queue, -ECANCELED);
		if (how.type == GP_PREEMPT_DRAIN && wants[i].want == GP_STOP)
			begin_drain(&c->queues[wants[i].queue], serial, how.timeout_ns, now_ns);
		else
			now[asked++] = wants[i];
	}
	if (r < 0 || !c->agent.is_welcome) /* the connection was lost: everything was resumed */
		return r;
	r = gp_simclient_ask(c, serial, now, asked);
	return r < 0 ? r : go_on_draining(c, now_ns);
}

/* Each time that it is not what was said last. */
static void hear_class(struct gp_simclient *c)
{
	const struct gp_client_info *info = &c->agent.conn.msg.client_info;
	uint32_t is = info->client_class == GP_CLASS_ONLINE ? GP_CLASS_ONLINE : GP_CLASS_OFFLINE;
	char text[256];

	if (c->agent.conn.msg.serial != ASKS_CLASS || /* the pid says nothing: in a container it is another */
	    is == c->agent.told_class || !c->opts.say)
		return;
	c->agent.told_class = is;
	(void)snprintf(text, sizeof(text), "gpreemptd takes it for %s: %s",
		       is == GP_CLASS_ONLINE ? "online" : "offline",
		       info->rule[0] ? info->rule : "no rule says otherwise");
	c->opts.say(text);
}

static int ask_class(struct gp_simclient *c)
{
	c->agent.ask_ns = gp_simgpu_now_ns() + ASK_AGAIN_NS;
	begin_msg(c, GP_MSG_CLIENTS, ASKS_CLASS)->clients.own = 1;
	return send_msg(c);
}

static int welcome(struct gp_simclient *c)
{
	struct gp_simagent *a = &c->agent;
	int r;

	/* A lease of no length, or of no end, is none. */
	a->lease_ns = a->conn.msg.welcome.lease_ns;
	if (!a->lease_ns || a->lease_ns > 3600 * SECOND)
		a->lease_ns = SECOND;
	a->samples = a->conn.msg.welcome.sample;
	a->conn.features = a->conn.msg.welcome.features;
	a->welcomes++;
	a->is_welcome = c->figures->scheduled = 1;
	r = say_device(c);
	for (uint32_t i = 0; i < c->opts.queues && r == 0 && a->is_welcome; i++) {
		c->queues[i].activity = GP_ACTIVITY_UNKNOWN;
		r = say_queue(c, i);
		if (r == 0)
			r = gp_simagent_look(c, i);
	}
	if (r < 0 || !a->is_welcome)
		return r;
	return ask_class(c);
}

static int handle(struct gp_simclient *c, uint64_t now_ns)
{
	struct gp_simagent *a = &c->agent;
	char why[224];

	if (a->conn.msg.type == GP_MSG_WELCOME && !a->is_welcome)
		return welcome(c);
	if (a->conn.msg.type == GP_MSG_WANTS && a->is_welcome)
		return do_wants(c, now_ns);
	if (a->conn.msg.type == GP_MSG_CLIENT_INFO)
		hear_class(c);
	if (a->conn.msg.type == GP_MSG_ERROR && !a->is_welcome) {
		(void)snprintf(why, sizeof(why), "gpreemptd refuses it (%s)", a->conn.msg.error.text);
		complain(c, why);
		return lose(c);
	}
	return 0; /* PING, or nothing for us: it was heard */
}

int gp_simagent_receive(struct gp_simclient *c, uint64_t now_ns)
{
	struct gp_simagent *a = &c->agent;
	int got, r = 0;

	for (int i = 0; i < GP_SIMCONN_AT_ONCE && r == 0 && a->conn.fd >= 0; i++) {
		got = gp_simconn_receive(&a->conn);
		if (got == -EAGAIN)
			return 0;
		if (got < 0 && got != -ENOMSG)
			return lose(c);
		a->heard_ns = now_ns;
		if (got == 0)
			r = handle(c, now_ns);
	}
	return r;
}

static int look_for_daemon(struct gp_simclient *c, uint64_t now_ns)
{
	struct gp_simagent *a = &c->agent;

	if (gp_simconn_open(&a->conn, now_ns) < 0) {
		complain(c, "no gpreemptd");
		return 0;
	}
	a->heard_ns = now_ns;
	return say_hello(c);
}

static int is_any_stopped(const struct gp_simclient *c)
{
	for (uint32_t i = 0; i < c->opts.queues; i++)
		if (c->queues[i].want != GP_RUN)
			return 1;
	return 0;
}

static uint64_t lease_end(const struct gp_simagent *a)
{
	return a->heard_ns + (a->is_welcome ? a->lease_ns : GP_SIMCONN_GREETING_NS);
}

int gp_simagent_turn(struct gp_simclient *c, uint64_t now_ns)
{
	struct gp_simagent *a = &c->agent;
	int r = 0;

	if (a->conn.fd >= 0 && now_ns >= lease_end(a)) {
		if (!a->is_welcome || is_any_stopped(c))
			r = lose(c);
		else
			a->heard_ns = now_ns; /* it may be slow: nobody suffers */
	}
	if (r == 0 && a->is_welcome && now_ns >= a->ask_ns)
		r = ask_class(c);
	if (r == 0 && gp_simconn_is_due(&a->conn, now_ns))
		r = look_for_daemon(c, now_ns);
	return r < 0 ? r : go_on_draining(c, now_ns);
}

uint64_t gp_simagent_next_ns(const struct gp_simclient *c)
{
	const struct gp_simagent *a = &c->agent;
	uint64_t next = UINT64_MAX;

	if (a->conn.fd >= 0)
		next = a->is_welcome && a->ask_ns < lease_end(a) ? a->ask_ns : lease_end(a);
	else if (a->conn.paths[0][0])
		next = a->conn.retry_ns;
	for (uint32_t i = 0; i < c->opts.queues; i++)
		if (c->queues[i].is_draining && c->queues[i].drain_end_ns < next)
			next = c->queues[i].drain_end_ns;
	return next;
}

void gp_simagent_close(struct gp_simclient *c)
{
	for (uint32_t i = 0; i < c->opts.queues && c->agent.is_welcome; i++) {
		begin_msg(c, GP_MSG_GONE, 0)->queue.queue = number_of(i);
		(void)send_msg(c);
	}
	if (c->agent.conn.fd >= 0)
		close(c->agent.conn.fd);
}
