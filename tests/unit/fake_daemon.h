/* SPDX-License-Identifier: MIT */
/*
 * A gpreemptd made of nothing: it says what the test told it to, keeps who holds what,
 * and lets go of it when a connection ends.  One thread; a test looks at it between
 * its calls, when it is at rest.
 */
#ifndef GP_TESTS_FAKE_DAEMON_H
#define GP_TESTS_FAKE_DAEMON_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "wire/wire.h"

#define FAKE_MOST_CONNECTIONS 16
#define FAKE_HANDLES 1000 /* the first queue's is one more */
#define FAKE_MOST 8       /* clients and events */

struct fake_queue {
	struct gp_queue_info info;
	int32_t status;    /* what a HOLD of it comes to */
	int holder;        /* connection, or -1 */
	int hidden;        /* 1: not listed, and unknown unless it is held */
	uint64_t until_ns; /* the lease's end; 0: with its connection */
};

struct fake_daemon {
	char path[108];
	struct fake_queue *queues;
	size_t nqueues, ndevices, nreal; /* of the devices the last are simulated, unless that is 0 */
	uint32_t caps;                   /* of the devices */
	uint32_t first_only;             /* those that only the first has */
	uint32_t gpu_ids;                /* the first device's, the next has the next; 0: it does not tell */
	struct gp_client_info clients[FAKE_MOST];
	struct gp_event events[FAKE_MOST]; /* those it keeps */
	struct gp_stats stats;             /* of each device */
	size_t nclients, nevents;

	/* What goes wrong, if anything: at messages of this type. */
	uint32_t silent_at, drop_at, error_at, lie_at;
	int unwelcome; /* 1: everybody is refused with error and text, before a word is read; 2: but not
			  before one came */
	int last_word; /* 1: it says error and text before it hangs up at drop_at */
	int32_t error;
	int32_t auto_status; /* what a HOLD comes to that names no way */
	uint16_t version;    /* in its packets; 0: the right one */
	char text[192];      /* of its RESULTs and ERRORs */
	uint32_t pings;      /* before each answer, and as many devices that nobody asked for */
	uint32_t features;   /* that its WELCOME says; what it sends has them */
	uint32_t no_rights;  /* 1: so says its WELCOME */

	/* What it saw. */
	uint32_t seen[GP_MSG_TYPES], items[GP_MSG_TYPES];
	struct gp_msg_items hold; /* the last one's head */
	struct gp_msg_reserve reserve;
	struct gp_msg_hello hello;
	struct gp_msg_hint hint;
	uint32_t hint_serial;
	uint64_t hint_numbers;       /* added up */
	struct gp_msg_policy policy; /* and from then on its devices' */
	struct gp_msg_class class;
	struct gp_msg_job job; /* the last one, which is all that it lists, */
	uint32_t jobs[2];      /* but for so many of Slurm's: the first time, and from then on */
	struct gp_msg_events wanted;
	int follower; /* the last one's connection; serial: its question's */
	uint32_t follower_serial;
	uint32_t connections; /* there now */
	uint32_t offered;     /* the last HELLO's features */
	uint32_t flags;       /* of the last packet */

	int listener, wake[2], fds[FAKE_MOST_CONNECTIONS];
	pthread_t thread;
	pthread_mutex_t lock;
	struct gp_msg msg, answer;
	unsigned char packet[GP_WIRE_MOST_BYTES];
};

static inline uint64_t fake_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static inline struct fake_queue *fake_find(struct fake_daemon *d, uint64_t handle)
{
	return handle > FAKE_HANDLES && handle - FAKE_HANDLES <= d->nqueues
		       ? &d->queues[handle - FAKE_HANDLES - 1]
		       : NULL;
}

/* Queue n of the machine; what it does not say is what an ordinary training job has. */
static inline struct fake_queue *fake_add(struct fake_daemon *d, uint32_t pid, uint32_t queue_id,
					  uint64_t ring)
{
	struct fake_queue *q;

	/* Twice as many at each power of two: a sanitizer's realloc() copies all there is. */
	if (!(d->nqueues & (d->nqueues - 1)))
		d->queues = realloc(d->queues, (2 * d->nqueues + 1) * sizeof(*q));
	q = &d->queues[d->nqueues++];
	*q = (struct fake_queue){ .holder = -1 };
	q->info = (struct gp_queue_info){ .size = sizeof(q->info),
					  .queue = FAKE_HANDLES + d->nqueues,
					  .client = pid,
					  .priority = 7,
					  .client_class = GP_CLASS_OFFLINE,
					  .ring = ring,
					  .pid = pid,
					  .queue_id = queue_id,
					  .gpu_id = 0x96ab,
					  .kind = GP_KIND_COMPUTE,
					  .active = 1,
					  .known = GP_KNOWN_QUEUE_ID | GP_KNOWN_RING | GP_KNOWN_PRIORITY |
						   GP_KNOWN_ACTIVE,
					  .client_name = "train",
					  .way = "update",
					  .rule = "priority 7 < 10" };
	return q;
}

static inline void fake_send(struct fake_daemon *d, int fd, struct gp_msg *m)
{
	int n;

	m->serial = d->msg.serial;
	n = gp_wire_encode(m, d->features, d->packet, sizeof(d->packet));
	if (d->version && n > 0)
		memcpy(d->packet + 6, &d->version, sizeof(d->version));
	if (n > 0)
		(void)!send(fd, d->packet, (size_t)n, MSG_NOSIGNAL);
}

static inline struct gp_msg *fake_answer(struct fake_daemon *d, uint32_t type)
{
	memset(&d->answer, 0, sizeof(d->answer));
	d->answer.type = type;
	return &d->answer;
}

static inline const char *fake_policy(const struct fake_daemon *d)
{
	return d->policy.name[0] ? d->policy.name : "priority";
}

static inline void fake_list(struct fake_daemon *d, int fd)
{
	struct gp_msg *m;

	for (uint32_t i = 0; i < d->ndevices; i++) {
		m = fake_answer(d, GP_MSG_DEVICE);
		m->device = (struct gp_device_info){ .name = "gfx942",
						     .backend = "kfd",
						     .device = i,
						     .caps = i ? d->caps & ~d->first_only : d->caps,
						     .compute_units = 80,
						     .queue_slots = 24,
						     .gpu_id = d->gpu_ids ? d->gpu_ids + i : 0 };
		if (d->nreal && i >= d->nreal)
			strcpy(m->device.backend, "sim");
		snprintf(m->device.policy, sizeof(m->device.policy), "%s", fake_policy(d));
		fake_send(d, fd, m);
	}
	for (size_t i = 0; i < d->nqueues; i++) {
		struct fake_queue *q = &d->queues[i];

		if (q->hidden)
			continue;
		if (q->until_ns && fake_now() > q->until_ns)
			q->holder = -1, q->until_ns = 0;
		q->info.held = q->holder >= 0 || q->until_ns;
		q->info.state = q->info.held ? GP_QUEUE_SUSPENDED : GP_QUEUE_RUNNING;
		m = fake_answer(d, GP_MSG_QUEUE_INFO);
		m->info = q->info;
		fake_send(d, fd, m);
	}
	fake_send(d, fd, fake_answer(d, GP_MSG_END));
}

static inline int32_t fake_act(struct fake_daemon *d, int connection, uint64_t handle)
{
	struct fake_queue *q = fake_find(d, handle);

	if (!q || (q->hidden && q->holder < 0))
		return -ENOENT;
	if (d->msg.type == GP_MSG_HOLD && q->status)
		return q->status;
	if (d->msg.type == GP_MSG_HOLD && d->msg.items.way == GP_KFD_WAY_AUTO && d->auto_status)
		return d->auto_status;
	q->holder = d->msg.type == GP_MSG_HOLD ? connection : -1;
	q->until_ns =
		d->msg.type == GP_MSG_HOLD && d->msg.items.lease_ns ? fake_now() + d->msg.items.lease_ns : 0;
	return 0;
}

static inline void fake_items(struct fake_daemon *d, int connection)
{
	struct gp_msg *m = fake_answer(d, GP_MSG_RESULT);

	d->items[d->msg.type] += d->msg.items.n;
	if (d->msg.type == GP_MSG_HOLD)
		d->hold = d->msg.items;
	m->items.n = d->msg.items.n - (d->lie_at == d->msg.type);
	for (uint32_t i = 0; i < d->msg.items.n; i++)
		m->item[i] = (struct gp_wire_item){ .queue = d->msg.item[i].queue,
						    .status = fake_act(d, connection, d->msg.item[i].queue) };
	memcpy(m->items.text, d->text, sizeof(m->items.text));
	fake_send(d, d->fds[connection], m);
}

static inline void fake_clients(struct fake_daemon *d, int fd)
{
	struct gp_msg *m;

	for (size_t i = 0; i < d->nclients; i++) {
		m = fake_answer(d, GP_MSG_CLIENT_INFO);
		m->client_info = d->clients[i];
		fake_send(d, fd, m);
	}
	fake_send(d, fd, fake_answer(d, d->lie_at == GP_MSG_CLIENTS ? GP_MSG_RESULT : GP_MSG_END));
}

static inline void fake_stats(struct fake_daemon *d, int fd)
{
	uint32_t device = d->msg.stats.device;
	struct gp_msg *m = fake_answer(d, device < d->ndevices ? GP_MSG_STATS_INFO : GP_MSG_ERROR);

	if (m->type == GP_MSG_STATS_INFO) {
		m->stats_info = d->stats;
		m->stats_info.device = device + (d->lie_at == GP_MSG_STATS);
		memcpy(m->stats_info.policy, fake_policy(d), strlen(fake_policy(d)) + 1);
	} else {
		m->error.status = -ENOENT;
		strcpy(m->error.text, "there is no such device");
	}
	fake_send(d, fd, m);
}

static inline void fake_jobs(struct fake_daemon *d, int fd)
{
	struct gp_msg *m;

	if (d->job.pid) {
		m = fake_answer(d, GP_MSG_JOB_INFO);
		m->job_info = (struct gp_job_info){ .pid = d->job.pid, .client_class = d->job.client_class };
		fake_send(d, fd, m);
	}
	for (uint32_t i = 0; i < d->jobs[d->seen[GP_MSG_JOBS] > 1]; i++) {
		m = fake_answer(d, GP_MSG_JOB_INFO);
		m->job_info.client_class = GP_CLASS_OFFLINE;
		snprintf(m->job_info.name, sizeof(m->job_info.name), "slurm %u.batch", i + 1);
		fake_send(d, fd, m);
	}
	fake_send(d, fd, fake_answer(d, GP_MSG_END));
}

static inline void fake_event(struct fake_daemon *d, int fd, const struct gp_event *event)
{
	struct gp_msg *m = fake_answer(d, d->lie_at == GP_MSG_EVENTS ? GP_MSG_DEVICE : GP_MSG_EVENT);

	if (m->type == GP_MSG_EVENT)
		m->event = *event;
	fake_send(d, fd, m);
}

static inline void fake_events(struct fake_daemon *d, int connection)
{
	d->wanted = d->msg.events;
	for (size_t i = 0; i < d->nevents; i++)
		if (!d->wanted.kinds || d->wanted.kinds & (1u << d->events[i].kind))
			fake_event(d, d->fds[connection], &d->events[i]);
	if (!d->wanted.follow) {
		fake_send(d, d->fds[connection], fake_answer(d, GP_MSG_END));
		return;
	}
	d->follower = connection;
	d->follower_serial = d->msg.serial;
}

/* To who follows. */
static inline void fake_tell(struct fake_daemon *d, const struct gp_event *event)
{
	pthread_mutex_lock(&d->lock);
	d->msg.serial = d->follower_serial;
	fake_event(d, d->fds[d->follower], event);
	pthread_mutex_unlock(&d->lock);
}

/* Takes it down, and answers who asks for that. */
static inline void fake_take(struct fake_daemon *d, int fd)
{
	if (d->msg.type == GP_MSG_RESERVE)
		d->reserve = d->msg.reserve;
	else if (d->msg.type == GP_MSG_POLICY)
		d->policy = d->msg.policy;
	else if (d->msg.type == GP_MSG_CLASS)
		d->class = d->msg.class;
	else if (d->msg.type == GP_MSG_JOB)
		d->job = d->msg.job;
	else
		d->hint = d->msg.hint, d->hint_serial = d->msg.serial, d->hint_numbers += d->hint.number;
	if (d->msg.serial)
		fake_send(d, fd, fake_answer(d, GP_MSG_RESULT));
}

/* Says what is not meant for the one who asks. */
static inline void fake_chat(struct fake_daemon *d, int fd)
{
	uint32_t serial = d->msg.serial;

	fake_send(d, fd, fake_answer(d, GP_MSG_PING));
	d->msg.serial = 0;
	fake_send(d, fd, fake_answer(d, GP_MSG_DEVICE));
	d->msg.serial = serial;
}

static inline void fake_reply(struct fake_daemon *d, int connection)
{
	int fd = d->fds[connection];
	struct gp_msg *m;

	for (uint32_t i = 0; i < d->pings; i++)
		fake_chat(d, fd);
	if (d->msg.type == d->error_at) {
		m = fake_answer(d, GP_MSG_ERROR);
		m->error.status = d->error;
		memcpy(m->error.text, d->text, sizeof(m->error.text));
		fake_send(d, fd, m);
	} else if (d->msg.type == GP_MSG_POLICY && !d->msg.policy.name[0]) { /* which are there? */
		m = fake_answer(d, GP_MSG_ERROR);
		m->error.status = -ENOENT;
		strcpy(m->error.text, "there is no such policy; there are: fifo priority fair deadline");
		fake_send(d, fd, m);
	} else if (d->msg.type == GP_MSG_HELLO) {
		m = fake_answer(d, GP_MSG_WELCOME);
		m->welcome.rights = d->no_rights ? 0 : GP_RIGHT_OTHERS;
		m->welcome.features = d->features;
		d->offered = d->msg.hello.features;
		d->hello = d->msg.hello;
		fake_send(d, fd, m);
	} else if (d->msg.type == GP_MSG_LIST) {
		fake_list(d, fd);
	} else if (d->msg.type == GP_MSG_HOLD || d->msg.type == GP_MSG_RELEASE) {
		fake_items(d, connection);
	} else if (d->msg.type == GP_MSG_CLIENTS) {
		fake_clients(d, fd);
	} else if (d->msg.type == GP_MSG_STATS) {
		fake_stats(d, fd);
	} else if (d->msg.type == GP_MSG_JOBS) {
		fake_jobs(d, fd);
	} else if (d->msg.type == GP_MSG_EVENTS) {
		fake_events(d, connection);
	} else {
		fake_take(d, fd);
	}
}

/* Its end lets go of what it held without a lease. */
static inline void fake_hang_up(struct fake_daemon *d, int connection)
{
	close(d->fds[connection]);
	d->fds[connection] = -1;
	d->connections--;
	for (size_t i = 0; i < d->nqueues; i++)
		if (d->queues[i].holder == connection && !d->queues[i].until_ns)
			d->queues[i].holder = -1;
}

static inline void fake_tell_why(struct fake_daemon *d, int fd)
{
	struct gp_msg *m;

	d->msg.serial = 0;
	m = fake_answer(d, GP_MSG_ERROR);
	m->error.status = d->error;
	memcpy(m->error.text, d->text, sizeof(m->error.text));
	fake_send(d, fd, m);
}

static inline void fake_hear(struct fake_daemon *d, int connection)
{
	ssize_t n = recv(d->fds[connection], d->packet, sizeof(d->packet), 0);

	if (n <= 0 || gp_wire_decode(d->packet, (size_t)n, &d->msg) < 0) {
		fake_hang_up(d, connection);
		return;
	}
	d->seen[d->msg.type]++;
	memcpy(&d->flags, d->packet + 8, sizeof(d->flags));
	if (d->msg.type == d->drop_at && d->last_word)
		fake_tell_why(d, d->fds[connection]);
	if (d->msg.type == d->drop_at)
		fake_hang_up(d, connection);
	else if (d->msg.type != d->silent_at)
		fake_reply(d, connection);
}

static inline void fake_refuse(struct fake_daemon *d, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (d->unwelcome > 1)
		(void)poll(&p, 1, 5000);
	fake_tell_why(d, fd);
	close(fd);
}

static inline void fake_accept(struct fake_daemon *d)
{
	int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);

	if (d->unwelcome) {
		fake_refuse(d, fd);
		return;
	}
	for (int i = 0; fd >= 0 && i < FAKE_MOST_CONNECTIONS; i++) {
		if (d->fds[i] < 0) {
			d->fds[i] = fd;
			d->connections++;
			return;
		}
	}
	close(fd);
}

static inline void *fake_run(void *arg)
{
	struct fake_daemon *d = arg;
	struct pollfd p[FAKE_MOST_CONNECTIONS + 2];

	for (;;) {
		for (int i = 0; i < FAKE_MOST_CONNECTIONS; i++)
			p[i] = (struct pollfd){ .fd = d->fds[i], .events = POLLIN };
		p[FAKE_MOST_CONNECTIONS] = (struct pollfd){ .fd = d->listener, .events = POLLIN };
		p[FAKE_MOST_CONNECTIONS + 1] = (struct pollfd){ .fd = d->wake[0], .events = POLLIN };
		if (poll(p, FAKE_MOST_CONNECTIONS + 2, -1) < 0)
			continue;
		if (p[FAKE_MOST_CONNECTIONS + 1].revents)
			return NULL;
		pthread_mutex_lock(&d->lock);
		for (int i = 0; i < FAKE_MOST_CONNECTIONS; i++)
			if (p[i].revents)
				fake_hear(d, i);
		if (p[FAKE_MOST_CONNECTIONS].revents)
			fake_accept(d);
		pthread_mutex_unlock(&d->lock);
	}
}

/* 0, or -errno. The caller has set what is not zero. */
static inline int fake_start(struct fake_daemon *d, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(d->path, sizeof(d->path), "%s", path);
	strcpy(address.sun_path, d->path);
	for (int i = 0; i < FAKE_MOST_CONNECTIONS; i++)
		d->fds[i] = -1;
	pthread_mutex_init(&d->lock, NULL);
	d->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (d->listener < 0 || bind(d->listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(d->listener, 8) < 0 || pipe(d->wake) < 0)
		return -errno;
	return -pthread_create(&d->thread, NULL, fake_run, d);
}

/* Its queues stay: it may be started again. */
static inline void fake_end(struct fake_daemon *d)
{
	(void)!write(d->wake[1], "", 1);
	pthread_join(d->thread, NULL);
	for (int i = 0; i < FAKE_MOST_CONNECTIONS; i++)
		if (d->fds[i] >= 0)
			close(d->fds[i]);
	d->connections = 0;
	close(d->listener);
	close(d->wake[0]);
	close(d->wake[1]);
	unlink(d->path);
}

static inline void fake_stop(struct fake_daemon *d)
{
	fake_end(d);
	free(d->queues);
	d->queues = NULL;
}

/* How many messages of this type came. They take a moment: it waits for that many. */
static inline uint32_t fake_seen(struct fake_daemon *d, uint32_t type, uint32_t want)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t end = fake_now() + 5000000000ull;
	uint32_t seen;

	for (;;) {
		pthread_mutex_lock(&d->lock);
		seen = d->seen[type];
		pthread_mutex_unlock(&d->lock);
		if (seen >= want || fake_now() > end)
			return seen;
		nanosleep(&pause, NULL);
	}
}

/* How many are held. What follows the end of a connection takes a moment: it waits for that many. */
static inline size_t fake_held(struct fake_daemon *d, size_t want)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t end = fake_now() + 5000000000ull;
	size_t held;

	do {
		held = 0;
		pthread_mutex_lock(&d->lock);
		for (size_t i = 0; i < d->nqueues; i++)
			held += d->queues[i].holder >= 0;
		pthread_mutex_unlock(&d->lock);
		if (held != want)
			nanosleep(&pause, NULL);
	} while (held != want && fake_now() < end);
	return held;
}

#endif
