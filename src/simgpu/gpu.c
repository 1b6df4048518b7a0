// SPDX-License-Identifier: MIT
/*
 * The device's time is the clock's since it was made.  Before anything is done the model catches up, event by
 * event, so that what a client is told happened when the model says, however late this process woke.
 *
 * A client that does not read costs what it has submitted and no more: what it is to be told waits in the
 * commands and queues themselves.
 */
#include "simgpu/gpu.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "backend/registry.h"
#include "backend/sim/sim.h"
#include "base/list.h"
#include "base/listen.h"
#include "base/map.h"
#include "base/text.h"
#include "simgpu/known.h"
#include "simgpu/proto.h"

#define SECOND 1000000000ull
#define TICK_NS 100000u       /* it wakes no more often for the model alone: kernels are shorter than that */
#define MOST_KERNELS 1000000u /* of one command */
#define MESSAGES_AT_ONCE 64
#define OTHERS 3 /* descriptors that are no client's */
/* Above what a KFD gpu_id can be; process numbers have 22 bits. */
#define DEVICE_ID(pid, device) (0x80000000u | (uint32_t)(pid) << 4 | (device))

struct command {
	struct gpm_cmd cmd;  /* must be first */
	struct gp_list node; /* of its queue while it is open, then of its client */
	struct queue *queue;
	uint64_t tag;
};

struct queue {
	struct client *client;
	uint64_t handle;
	struct gp_list open;
	uint32_t number, nopen; /* nopen: until the client was told */
	uint32_t under_way;     /* the backend has a want */
	uint32_t is_asked;      /* a want is to be answered: */
	uint32_t want, serial;
	uint64_t asked_ns;
	uint32_t has_answer; /* that the client was not told yet; the last one alone matters */
	struct gp_simgpu_applied answer;
	int answer_status;
};

struct client {
	struct gp_list node;
	int fd; /* -1: it is gone, and the device has not let go of its queues yet */
	uint32_t pid;
	uint64_t id;
	char name[GP_NAME_LEN];
	struct queue queues[GP_SIMGPU_MOST_QUEUES];
	uint32_t nqueues; /* 0: it has not said HELLO */
	uint32_t is_full; /* its socket */
	struct gp_list finished;
};

struct gp_simgpu {
	struct gp_simgpu_opts opts;
	struct gpm_device device;
	struct gp_backend_ops ops;
	struct gp_backend *be;
	struct gp_listen listen;
	struct gp_list clients;
	uint32_t nclients;
	uint64_t epoch_ns, now_ns, last_client;
	struct gp_map queues; /* by handle */
	struct gp_device_info devices[GP_SIMGPU_MOST_DEVICES];
	uint64_t key[2];
	struct gp_simknown known;
};

/* What is told */

__attribute__((format(printf, 3, 4))) static void say(const struct gp_simgpu *g, const struct client *c,
						      const char *fmt, ...)
{
	char text[192];
	va_list args;
	int n;

	if (!g->opts.say || !c->nqueues)
		return;
	n = snprintf(text, sizeof(text), "%s (process %u): ", c->name, c->pid);
	va_start(args, fmt);
	(void)vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, args);
	va_end(args);
	gp_text_clean(text);
	g->opts.say(text);
}

static int tell_finished(struct client *c, struct command *cmd)
{
	const struct gp_simgpu_msg msg = { .type = GP_SIMGPU_FINISHED,
					   .queue = cmd->queue->number,
					   .finished = { .tag = cmd->tag, .done_ns = cmd->cmd.done_ns } };
	int r = gp_simgpu_send(c->fd, &msg);

	if (r < 0)
		return r;
	cmd->queue->nopen--;
	gp_list_remove(&cmd->node);
	free(cmd);
	return 0;
}

static int tell_answer(struct client *c, struct queue *q)
{
	const struct gp_simgpu_msg msg = { .type = GP_SIMGPU_APPLIED,
					   .queue = q->number,
					   .status = q->answer_status,
					   .applied = q->answer };
	int r = gp_simgpu_send(c->fd, &msg);

	if (r == 0)
		q->has_answer = 0;
	return r;
}

/* 0; -EAGAIN: its socket is full; else it is lost. */
static int tell(struct client *c)
{
	int r = 0;

	for (uint32_t i = 0; i < c->nqueues && r == 0; i++)
		if (c->queues[i].has_answer)
			r = tell_answer(c, &c->queues[i]);
	while (r == 0 && !gp_list_empty(&c->finished))
		r = tell_finished(c, gp_container(c->finished.next, struct command, node));
	return r;
}

static void answer(struct gp_simgpu *g, struct queue *q, int status)
{
	if (!q->is_asked)
		return;
	q->is_asked = 0;
	q->has_answer = 1;
	q->answer_status = status;
	q->answer = (struct gp_simgpu_applied){ .serial = q->serial,
						.want = q->want,
						.latency_ns = g->now_ns - q->asked_ns };
}

/* What clients want */

/* The queues of one call must be stopped or resumed together: on most devices that is one device cycle. */
static void apply(struct gp_simgpu *g, struct queue *const *queues, uint32_t n)
{
	static const struct gp_apply_opts none = { .size = sizeof(none) };
	struct gp_want wants[GP_SIMGPU_MOST_QUEUES];

	for (uint32_t i = 0; i < n; i++)
		wants[i] = (struct gp_want){ .queue = queues[i]->handle, .want = queues[i]->want };
	if (n)
		(void)g->ops.apply(g->be, wants, n, &none);
	for (uint32_t i = 0; i < n; i++) {
		queues[i]->under_way = wants[i].status == -EINPROGRESS;
		if (!queues[i]->under_way)
			answer(g, queues[i], wants[i].status);
	}
}

static int take_apply(struct gp_simgpu *g, struct client *c, const struct gp_simgpu_apply *msg)
{
	struct queue *queues[GP_SIMGPU_MOST_QUEUES];
	uint32_t n = 0;

	if (msg->n > c->nqueues)
		return -EPROTO;
	for (uint32_t i = 0; i < msg->n; i++) {
		struct queue *q = &c->queues[msg->wants[i].queue % GP_SIMGPU_MOST_QUEUES];

		if (msg->wants[i].queue >= c->nqueues || msg->wants[i].want > GP_STOP)
			return -EPROTO;
		answer(g, q, -ECANCELED);
		q->is_asked = 1;
		q->want = msg->wants[i].want;
		q->serial = msg->serial;
		q->asked_ns = g->now_ns;
		if (!q->under_way)
			queues[n++] = q;
		q->under_way = 1;
	}
	apply(g, queues, n);
	return 0;
}

static bool is_work(const struct gp_work *w)
{
	return w->kernels && w->kernels <= MOST_KERNELS && w->length_ns && w->length_ns <= 100 * SECOND &&
	       w->share_permille && w->share_permille <= 1000 && w->every_length_ns <= 100 * SECOND &&
	       w->interval_ns <= SECOND;
}

static int take_submit(struct gp_simgpu *g, struct client *c, const struct gp_simgpu_msg *msg)
{
	struct queue *q = &c->queues[msg->queue % GP_SIMGPU_MOST_QUEUES];
	struct command *cmd;
	int r;

	if (msg->queue >= c->nqueues || q->nopen >= GP_SIMGPU_MOST_OPEN || !is_work(&msg->submit.work))
		return -EPROTO;
	cmd = calloc(1, sizeof(*cmd));
	if (!cmd)
		return -ENOMEM;
	cmd->cmd = gp_work_cmd(&msg->submit.work, &g->device);
	cmd->queue = q;
	cmd->tag = msg->submit.tag;
	r = gp_sim_submit(g->be, q->handle, &cmd->cmd);
	if (r < 0) {
		free(cmd);
		return r;
	}
	gp_list_append(&q->open, &cmd->node);
	q->nopen++;
	return 0;
}

/* Who comes */

static int add_queue(struct gp_simgpu *g, struct client *c, const struct gp_simgpu_hello *hello)
{
	const struct gp_sim_queue_opts opts = { .client = c->id,
						.client_name = c->name,
						.device = hello->device,
						.client_class = hello->client_class };
	struct queue *q = &c->queues[c->nqueues];
	int r = gp_sim_queue_add(g->be, &opts, &q->handle);

	if (r < 0)
		return r;
	q->client = c;
	q->number = c->nqueues++;
	gp_list_init(&q->open);
	return gp_map_put(&g->queues, q->handle, q);
}

static int describe(const struct gp_simgpu *g, uint32_t device, struct gp_simgpu_device *ret)
{
	if (device >= g->opts.devices)
		return -ENODEV;
	ret->epoch_ns = g->epoch_ns;
	ret->info = g->devices[device];
	memcpy(ret->key, g->key, sizeof(ret->key));
	return 0;
}

static int take_hello(struct gp_simgpu *g, struct client *c, const struct gp_simgpu_hello *hello)
{
	struct gp_simgpu_msg answer = { .type = GP_SIMGPU_DEVICE };
	int r = 0, sent;

	if (c->nqueues || !hello->queues || hello->queues > GP_SIMGPU_MOST_QUEUES ||
	    hello->client_class > GP_CLASS_ONLINE)
		return -EPROTO;
	(void)gp_text_copy(c->name, sizeof(c->name), hello->name, strnlen(hello->name, sizeof(hello->name)));
	answer.status = describe(g, hello->device, &answer.device);
	for (uint32_t i = 0; i < hello->queues && r == 0 && answer.status == 0; i++)
		r = add_queue(g, c, hello);
	if (r < 0)
		answer.status = r;
	sent = gp_simgpu_send(c->fd, &answer);
	if (answer.status < 0 || sent < 0)
		return answer.status < 0 ? answer.status : sent;
	say(g, c, "%s, %u queue%s on device %u",
	    hello->client_class == GP_CLASS_ONLINE ? "online" : "offline", c->nqueues,
	    c->nqueues == 1 ? "" : "s", hello->device);
	return 0;
}

static int take(struct gp_simgpu *g, struct client *c, const struct gp_simgpu_msg *msg)
{
	switch (msg->type) {
	case GP_SIMGPU_HELLO:
		return take_hello(g, c, &msg->hello);
	case GP_SIMGPU_SUBMIT:
		return take_submit(g, c, msg);
	case GP_SIMGPU_APPLY:
		return take_apply(g, c, &msg->apply);
	default:
		return -EPROTO;
	}
}

static void lose(struct gp_simgpu *g, struct client *c, int why)
{
	if (why == -ECONNRESET)
		say(g, c, "gone");
	else
		say(g, c, "dropped: %s", strerror(-why));
	close(c->fd);
	c->fd = -1;
	for (uint32_t i = 0; i < c->nqueues; i++)
		(void)gp_sim_queue_remove(g->be, c->queues[i].handle);
}

static void receive(struct gp_simgpu *g, struct client *c)
{
	struct gp_simgpu_msg msg;
	int r = 0;

	for (int i = 0; i < MESSAGES_AT_ONCE && r == 0; i++) {
		r = gp_simgpu_receive(c->fd, &msg);
		if (r == 0)
			r = take(g, c, &msg);
	}
	if (r < 0 && r != -EAGAIN)
		lose(g, c, r);
}

/* The HELLO is read, if it is there: a socket that is closed with something in it takes the answer along. */
static void refuse(int fd, int why)
{
	const struct gp_simgpu_msg msg = { .type = GP_SIMGPU_DEVICE, .status = why };
	struct gp_simgpu_msg hello;

	(void)gp_simgpu_receive(fd, &hello);
	(void)gp_simgpu_send(fd, &msg);
	close(fd);
}

static void admit(struct gp_simgpu *g, int fd)
{
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	struct client *c;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
	    (peer.uid != geteuid() && peer.uid != 0)) {
		refuse(fd, -EPERM);
		return;
	}
	c = g->nclients < GP_SIMGPU_MOST_CLIENTS ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		refuse(fd, -EBUSY);
		return;
	}
	c->fd = fd;
	c->pid = (uint32_t)peer.pid;
	c->id = ++g->last_client;
	gp_list_init(&c->finished);
	gp_list_append(&g->clients, &c->node);
	g->nclients++;
}

static void accept_some(struct gp_simgpu *g)
{
	int fd;

	while ((fd = accept4(g->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		admit(g, fd);
}

/* The device's time */

static void take_results(struct gp_simgpu *g)
{
	struct command *cmd;
	struct gp_done done;
	struct queue *q;

	while ((cmd = (struct command *)gp_sim_finished(g->be))) {
		gp_list_remove(&cmd->node);
		gp_list_append(&cmd->queue->client->finished, &cmd->node);
	}
	while (g->ops.complete(g->be, &done, 1) == 1) {
		q = gp_map_get(&g->queues, done.want.queue);
		if (!q)
			continue;
		q->under_way = 0;
		if (done.want.want == q->want)
			answer(g, q, done.want.status);
		else
			apply(g, &q, 1); /* it is wanted otherwise by now */
	}
}

static void catch_up(struct gp_simgpu *g)
{
	uint64_t now = gp_simgpu_now_ns() - g->epoch_ns, next;

	while ((next = gp_sim_next(g->be)) <= now) {
		g->now_ns = next > g->now_ns ? next : g->now_ns;
		gp_sim_advance(g->be, g->now_ns);
		take_results(g);
	}
	g->now_ns = now;
	gp_sim_advance(g->be, now);
	take_results(g);
}

static void free_commands(struct gp_list *commands)
{
	gp_list_each_safe(pos, commands)
		free(gp_container(pos, struct command, node));
}

static void free_client(struct gp_simgpu *g, struct client *c)
{
	for (uint32_t i = 0; i < c->nqueues; i++) {
		free_commands(&c->queues[i].open);
		(void)gp_map_remove(&g->queues, c->queues[i].handle);
	}
	free_commands(&c->finished);
	if (c->fd >= 0)
		close(c->fd);
	gp_list_remove(&c->node);
	g->nclients--;
	free(c);
}

static bool has_queues(const struct gp_simgpu *g, const struct client *c)
{
	for (uint32_t i = 0; i < c->nqueues; i++)
		if (gp_sim_queue(g->be, c->queues[i].handle))
			return true;
	return false;
}

static void tell_all(struct gp_simgpu *g)
{
	gp_list_each_safe(pos, &g->clients) {
		struct client *c = gp_container(pos, struct client, node);
		int r = c->fd >= 0 ? tell(c) : 0;

		c->is_full = r == -EAGAIN;
		if (r < 0 && r != -EAGAIN)
			lose(g, c, r);
		if (c->fd < 0 && !has_queues(g, c))
			free_client(g, c);
	}
}

/* When something is due, by the device's time. */
static uint64_t next_due(const struct gp_simgpu *g)
{
	uint64_t next = gp_sim_next(g->be), turn = gp_simknown_next_ns(&g->known);

	if (turn != UINT64_MAX)
		turn = turn > g->epoch_ns ? turn - g->epoch_ns : 0;
	return next < turn ? next : turn;
}

/* How many descriptors have something; who is behind each but the first OTHERS is in clients[]. */
static int wait_for_work(struct gp_simgpu *g, struct pollfd *fds, struct client **clients, nfds_t *ret_n)
{
	uint64_t next = next_due(g), now = gp_simgpu_now_ns() - g->epoch_ns, ns;
	struct timespec t;
	nfds_t n = OTHERS;

	fds[0] = (struct pollfd){ .fd = g->opts.end_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = g->listen.fd, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = g->known.conn.fd, .events = POLLIN };
	gp_list_each(pos, &g->clients) {
		struct client *c = gp_container(pos, struct client, node);

		if (c->fd < 0)
			continue;
		clients[n] = c;
		fds[n++] = (struct pollfd){ .fd = c->fd, .events = POLLIN | (c->is_full ? POLLOUT : 0) };
	}
	*ret_n = n;
	ns = next > now + TICK_NS ? next - now : TICK_NS;
	t = (struct timespec){ .tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND) };
	return ppoll(fds, n, next == UINT64_MAX ? NULL : &t, NULL);
}

int gp_simgpu_run(struct gp_simgpu *g)
{
	struct pollfd fds[OTHERS + GP_SIMGPU_MOST_CLIENTS];
	struct client *clients[OTHERS + GP_SIMGPU_MOST_CLIENTS];
	nfds_t n;

	for (;;) {
		gp_simknown_turn(&g->known, gp_simgpu_now_ns());
		catch_up(g);
		tell_all(g);
		if (wait_for_work(g, fds, clients, &n) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		if (fds[0].revents)
			return 0;
		catch_up(g);
		for (nfds_t i = OTHERS; i < n; i++)
			if (fds[i].revents & ~POLLOUT)
				receive(g, clients[i]);
		if (fds[1].revents)
			accept_some(g);
	}
}

static int open_backend(struct gp_simgpu *g)
{
	const struct gp_sim_params params = { .device = &g->device,
					      .devices = g->opts.devices,
					      .seed = g->opts.seed };
	const struct gp_backend_opts opts = { .size = sizeof(opts),
					      .device = g->opts.name,
					      .params = &params };

	int r = gp_backend_open("sim", &opts, &g->ops, &g->be);

	if (r == 0)
		r = g->ops.devices(g->be, g->devices, g->opts.devices);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < g->opts.devices; i++)
		g->devices[i].device = DEVICE_ID(getpid(), i);
	return 0;
}

int gp_simgpu_new(const struct gp_simgpu_opts *opts, struct gp_simgpu **ret, char *text, size_t size)
{
	struct gp_simgpu *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	g->opts = *opts;
	g->device = *opts->device;
	g->listen.fd = g->listen.lock = -1;
	gp_list_init(&g->clients);
	if (getrandom(g->key, sizeof(g->key), 0) != (ssize_t)sizeof(g->key))
		memset(g->key, 0,
		       sizeof(g->key)); /* then a container's programs are on a device of their own */
	gp_simknown_init(&g->known, g->devices, opts->devices, g->key, opts->say);
	r = open_backend(g);
	if (r < 0)
		(void)snprintf(text, size, "cannot make the device: %s", strerror(-r));
	else
		r = gp_listen_open(&g->listen, "sim-gpu", opts->path, false);
	if (r < 0 && g->listen.error[0])
		(void)snprintf(text, size, "%s", g->listen.error);
	if (r < 0) {
		gp_simgpu_free(g);
		return r;
	}
	g->epoch_ns = gp_simgpu_now_ns();
	*ret = g;
	return 0;
}

struct gp_simgpu *gp_simgpu_free(struct gp_simgpu *g)
{
	if (!g)
		return NULL;
	gp_listen_close(&g->listen);
	gp_simknown_close(&g->known);
	gp_list_each_safe(pos, &g->clients)
		free_client(g, gp_container(pos, struct client, node));
	gp_map_free(&g->queues);
	if (g->be)
		g->ops.close(g->be);
	free(g);
	return NULL;
}
