// SPDX-License-Identifier: MIT
/*
 * The load.  Online work comes when the clock says, whether the device keeps up or not; what finds its queue
 * full waits here, and counts from when it was to come.  A request is done when the device says it was, not
 * when this process heard of it.
 */
#include "simgpu/client.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "simgpu/internal.h"

#define SECOND 1000000000ull
#define PATIENCE_MS 5000 /* for the device to answer, or to read */
#define AHEAD 2u         /* offline steps in each queue, so that it never runs dry between them */
#define STREAM 1u

static int is_online(const struct gp_simclient *c)
{
	return c->opts.client_class == GP_CLASS_ONLINE;
}

static int send_to_gpu(struct gp_simclient *c, const struct gp_simgpu_msg *msg)
{
	struct pollfd p = { .fd = c->gpu, .events = POLLOUT };
	int r;

	while ((r = gp_simgpu_send(c->gpu, msg)) == -EAGAIN) {
		r = poll(&p, 1, PATIENCE_MS);
		if (r == 0)
			return -ETIMEDOUT;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
	return r;
}

int gp_simclient_ask(struct gp_simclient *c, uint32_t serial, const struct gp_simgpu_want *wants, uint32_t n)
{
	struct gp_simgpu_msg msg = { .type = GP_SIMGPU_APPLY, .apply = { .serial = serial, .n = n } };

	if (!n)
		return 0;
	memcpy(msg.apply.wants, wants, n * sizeof(*wants));
	for (uint32_t i = 0; i < n; i++)
		c->queues[wants[i].queue].want = wants[i].want;
	return send_to_gpu(c, &msg);
}

/* The load */

static int submit(struct gp_simclient *c, uint32_t queue, uint64_t arrival_ns)
{
	struct gp_simqueue *q = &c->queues[queue];
	const struct gp_simgpu_msg msg = { .type = GP_SIMGPU_SUBMIT,
					   .queue = queue,
					   .submit = { .tag = q->next, .work = c->opts.work } };
	int r = gp_simagent_hint_begin(c, queue, q->next);

	if (r == 0)
		r = send_to_gpu(c, &msg);
	if (r < 0)
		return r;
	q->arrival_ns[q->next++ % GP_SIMGPU_MOST_OPEN] = arrival_ns;
	c->figures->submitted++;
	return gp_simagent_look(c, queue);
}

static int has_more(const struct gp_simclient *c)
{
	return !c->opts.requests || c->figures->submitted < c->opts.requests;
}

static int has_room(const struct gp_simqueue *q)
{
	return q->next - q->first < GP_SIMGPU_MOST_OPEN;
}

static int submit_arrived(struct gp_simclient *c, uint64_t now_ns)
{
	int r = 0;

	while (r == 0 && has_more(c) && c->arrival_ns <= now_ns && has_room(&c->queues[c->next_queue])) {
		r = submit(c, c->next_queue, c->arrival_ns);
		c->next_queue = (c->next_queue + 1) % c->opts.queues;
		c->arrival_ns = c->start_ns + gp_load_next(&c->load);
	}
	return r;
}

static int submit_steps(struct gp_simclient *c, uint64_t now_ns)
{
	int r = 0;

	for (uint32_t i = 0; i < c->opts.queues; i++)
		while (r == 0 && has_more(c) && c->queues[i].next - c->queues[i].first < AHEAD)
			r = submit(c, i, now_ns);
	return r;
}

static int submit_due(struct gp_simclient *c, uint64_t now_ns)
{
	return is_online(c) ? submit_arrived(c, now_ns) : submit_steps(c, now_ns);
}

static void count(struct gp_simclient *c, uint64_t latency_ns)
{
	gp_hist_add(&c->figures->latency, latency_ns);
	c->figures->slo_met += c->opts.slo_ns && latency_ns <= c->opts.slo_ns;
}

static void say_done(const struct gp_simclient *c, uint32_t queue, uint64_t number)
{
	char line[96];

	if (!c->opts.verbose || !c->opts.say)
		return;
	(void)snprintf(line, sizeof(line), "queue %" PRIu32 ": %" PRIu64 " done, stops: %" PRIu64, queue,
		       number, c->queues[queue].stops);
	c->opts.say(line);
}

/* Each must come once, and in its turn: else the device has lost or made work. */
static int take_finished(struct gp_simclient *c, uint32_t queue, const struct gp_simgpu_finished *done)
{
	struct gp_simqueue *q = &c->queues[queue];
	uint64_t done_ns = c->epoch_ns + done->done_ns, arrival_ns;
	int r;

	if (!gp_simqueue_is_busy(q) || done->tag != q->first)
		return -EBADMSG;
	arrival_ns = q->arrival_ns[q->first++ % GP_SIMGPU_MOST_OPEN];
	c->figures->completed++;
	say_done(c, queue, q->first);
	if (is_online(c))
		count(c, done_ns > arrival_ns ? done_ns - arrival_ns : 0);
	r = gp_simagent_hint_end(c, queue, done->tag);
	return r < 0 ? r : gp_simagent_look(c, queue);
}

static void note_stopped(struct gp_simclient *c, struct gp_simqueue *q, uint32_t is_stopped)
{
	uint64_t now = gp_simgpu_now_ns();

	if (q->is_stopped == is_stopped)
		return;
	q->is_stopped = is_stopped;
	if (is_stopped) {
		q->stopped_since_ns = now;
		q->stops++;
		c->figures->stops++;
	} else {
		q->stopped_ns += now - q->stopped_since_ns;
	}
}

static int take(struct gp_simclient *c, const struct gp_simgpu_msg *msg)
{
	if (msg->queue >= c->opts.queues)
		return -EPROTO;
	switch (msg->type) {
	case GP_SIMGPU_FINISHED:
		return take_finished(c, msg->queue, &msg->finished);
	case GP_SIMGPU_APPLIED:
		if (msg->status == 0)
			note_stopped(c, &c->queues[msg->queue], msg->applied.want == GP_STOP);
		return gp_simagent_applied(c, msg);
	default:
		return -EPROTO;
	}
}

static int receive(struct gp_simclient *c)
{
	struct gp_simgpu_msg msg;
	int r;

	do {
		r = gp_simgpu_receive(c->gpu, &msg);
		if (r == 0)
			r = take(c, &msg);
	} while (r == 0);
	return r == -EAGAIN ? 0 : r;
}

/* The loop */

static uint64_t end_ns(const struct gp_simclient *c)
{
	return c->opts.duration_ns ? c->start_ns + c->opts.duration_ns : UINT64_MAX;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_ns(const struct gp_simclient *c)
{
	uint64_t next = sooner(end_ns(c), gp_simagent_next_ns(c));

	if (is_online(c) && has_more(c) && has_room(&c->queues[c->next_queue]))
		next = sooner(next, c->arrival_ns);
	return next;
}

/* It slept, and was to wake by then whatever came. */
static void note_wake(struct gp_simclient *c, uint64_t due_ns)
{
	uint64_t now = gp_simgpu_now_ns();

	if (now >= due_ns)
		gp_hist_add(&c->figures->late, now - due_ns);
}

/* 1: it is over. */
static int wait_for_work(struct gp_simclient *c)
{
	struct pollfd fds[3] = { { .fd = c->opts.end_fd, .events = POLLIN },
				 { .fd = c->gpu, .events = POLLIN },
				 { .fd = c->agent.conn.fd, .events = POLLIN } };
	uint64_t next = next_ns(c), now = gp_simgpu_now_ns(), ns = next > now ? next - now : 0;
	struct timespec t = { .tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND) };
	int r = ppoll(fds, 3, next == UINT64_MAX ? NULL : &t, NULL) < 0 ? -errno : 0;

	if (ns)
		note_wake(c, next);
	if (r < 0)
		return r == -EINTR ? 0 : r;
	if (fds[0].revents)
		return 1;
	if (fds[1].revents)
		r = receive(c);
	if (r == 0 && fds[2].revents)
		r = gp_simagent_receive(c, gp_simgpu_now_ns());
	return r;
}

static int is_over(const struct gp_simclient *c, uint64_t now_ns)
{
	return now_ns >= end_ns(c) || (c->opts.requests && c->figures->completed >= c->opts.requests);
}

static int loop(struct gp_simclient *c)
{
	uint64_t now = c->start_ns;
	int r = 0;

	while (r == 0 && !is_over(c, now)) {
		r = gp_simagent_turn(c, now);
		if (r == 0)
			r = submit_due(c, now);
		if (r == 0)
			r = wait_for_work(c);
		now = gp_simgpu_now_ns();
	}
	return r < 0 ? r : 0;
}

static void close_figures(struct gp_simclient *c)
{
	uint64_t now = gp_simgpu_now_ns(), stopped = 0;

	c->figures->elapsed_ns = now - c->start_ns;
	for (uint32_t i = 0; i < c->opts.queues; i++) {
		struct gp_simqueue *q = &c->queues[i];

		stopped += q->stopped_ns + (q->is_stopped ? now - q->stopped_since_ns : 0);
		for (uint64_t tag = q->first; is_online(c) && tag < q->next; tag++)
			count(c, now - q->arrival_ns[tag % GP_SIMGPU_MOST_OPEN]);
	}
	c->figures->stopped_ns = stopped / c->opts.queues;
}

/* The device */

static int await_device(struct gp_simclient *c, struct gp_simgpu_msg *ret)
{
	struct pollfd p = { .fd = c->gpu, .events = POLLIN };
	int r;

	while ((r = gp_simgpu_receive(c->gpu, ret)) == -EAGAIN) {
		r = poll(&p, 1, PATIENCE_MS);
		if (r == 0)
			return -ETIMEDOUT;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
	if (r == 0 && ret->type != GP_SIMGPU_DEVICE)
		r = -EPROTO;
	return r < 0 ? r : ret->status;
}

static int open_gpu(struct gp_simclient *c)
{
	struct gp_simgpu_msg msg = { .type = GP_SIMGPU_HELLO,
				     .hello = { .device = c->opts.device,
						.client_class = c->opts.client_class,
						.queues = c->opts.queues } };
	int r;

	c->gpu = gp_simgpu_connect(c->opts.gpu, GP_SIMGPU_SOCKET);
	if (c->gpu < 0)
		return c->gpu;
	(void)snprintf(msg.hello.name, sizeof(msg.hello.name), "%s", c->opts.name);
	(void)send_to_gpu(c, &msg); /* whoever closed on us has said why */
	r = await_device(c, &msg);
	if (r < 0)
		return r;
	c->epoch_ns = msg.device.epoch_ns;
	c->device = c->figures->device = msg.device.info;
	memcpy(c->device_key, msg.device.key, sizeof(c->device_key));
	return 0;
}

static void explain_open(const struct gp_simclient *c, int r, char *text, size_t size)
{
	if (r == -ENOENT || r == -ECONNREFUSED)
		(void)snprintf(text, size, "no simulated GPU at %s; start one: gpreempt sim-gpu",
			       c->opts.gpu);
	else if (r == -ENODEV)
		(void)snprintf(text, size,
			       "the simulated GPU at %s has no device %u; see gpreempt sim-gpu --devices",
			       c->opts.gpu, c->opts.device);
	else if (r == -EBUSY)
		(void)snprintf(text, size, "the simulated GPU at %s has as many clients as it takes",
			       c->opts.gpu);
	else if (r == -EPERM || r == -EKEYREJECTED)
		(void)snprintf(text, size,
			       "the simulated GPU at %s is another user's; start your own: gpreempt sim-gpu",
			       c->opts.gpu);
	else
		(void)snprintf(text, size, "cannot use the simulated GPU at %s: %s", c->opts.gpu,
			       strerror(-r));
}

static void explain_end(int r, char *text, size_t size)
{
	if (r == -ECONNRESET || r == -EPIPE)
		(void)snprintf(text, size, "the simulated GPU has gone: its sim-gpu ended");
	else if (r == -EBADMSG)
		(void)snprintf(text, size,
			       "the simulated GPU finished what it was not to: work was lost or made");
	else
		(void)snprintf(text, size, "the simulated GPU is lost: %s", strerror(-r));
}

static void begin_load(struct gp_simclient *c)
{
	c->group = (struct gp_group){ .client_class = c->opts.client_class,
				      .arrival = c->opts.arrival,
				      .work = c->opts.work,
				      .rate_milli = c->opts.rate_milli };
	c->start_ns = gp_simgpu_now_ns();
	if (!is_online(c))
		return;
	gp_load_init(&c->load, &c->group, 0, c->opts.seed, STREAM);
	c->arrival_ns = c->start_ns + gp_load_next(&c->load);
}

int gp_simclient_run(const struct gp_simclient_opts *opts, struct gp_simclient_figures *ret, char *text,
		     size_t size)
{
	struct gp_simclient *c = calloc(1, sizeof(*c));
	int r;

	memset(ret, 0, sizeof(*ret));
	if (!c) {
		(void)snprintf(text, size, "out of memory");
		return -ENOMEM;
	}
	c->opts = *opts;
	c->figures = ret;
	r = open_gpu(c);
	if (r < 0) {
		explain_open(c, r, text, size);
	} else {
		gp_simagent_init(c);
		begin_load(c);
		r = loop(c);
		close_figures(c);
		gp_simagent_close(c);
		if (r < 0)
			explain_end(r, text, size);
	}
	if (c->gpu >= 0)
		close(c->gpu);
	free(c);
	return r;
}
