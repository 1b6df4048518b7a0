// SPDX-License-Identifier: MIT
#include "daemon/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/listen.h"
#include "daemon/closer.h"
#include "daemon/log.h"

#define TURN_NS (200 * GP_US) /* then others have theirs; so many messages fit in it at the most: */
#define AT_ONCE 32
#define ALONE 4        /* turns with one message in a row: it is not asked for another, */
#define LOOK_AGAIN 16  /* but in every so many */
#define LAST_WORDS 256 /* messages of one that has ended */
#define MOST_GROUPS 1024

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* Linux 4.13 */
#endif

struct packet {
	struct gp_list list;
	size_t size;
	unsigned char bytes[];
};

static void ended(void *arg, uint32_t events);
static void receive(struct gp_peer *p);
static void send_unread(struct gp_peer *p);

static void ready(void *arg, uint32_t events)
{
	struct gp_peer *p = arg;

	if (events & EPOLLOUT)
		send_unread(p);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive(p);
}

static bool can_take(const struct gp_peer *p)
{
	struct pollfd room = { .fd = p->watch.fd, .events = POLLOUT };

	return poll(&room, 1, 0) == 1;
}

/* If we were the slow one, it may have done its part meanwhile. */
static void out_of_patience(void *arg)
{
	struct gp_peer *p = arg;
	size_t unread = p->unread_bytes;

	if (p->role && !p->deaf && can_take(p)) {
		send_unread(p);
		return;
	}
	if (!p->role)
		receive(p);
	if (p->dead)
		return;
	if (p->deaf)
		gp_peer_drop(p, NULL);
	else if (!p->role)
		gp_peer_drop(p, "it did not say HELLO");
	else if (p->wants_more || (unread && p->unread_bytes == unread))
		gp_peer_drop(p, "it does not read what is sent to it");
}

int gp_peer_new(struct gp_loop *loop, int fd, uint64_t id, uint64_t patience_ns,
		const struct gp_peer_calls *calls, void *arg, struct gp_peer **ret)
{
	struct gp_peer *p = calloc(1, sizeof(*p));

	if (!p || gp_alarm_init(loop, &p->patience, out_of_patience, p) < 0) {
		free(p);
		close(fd);
		return -ENOMEM;
	}
	p->loop = loop;
	p->id = id;
	p->patience_ns = patience_ns;
	p->calls = calls;
	p->arg = arg;
	p->process = GP_NO_PROCESS;
	p->takes_descriptors = !gp_listen_bars_descriptors(fd);
	p->watch = (struct gp_watch){ .fd = fd, .fn = ready, .arg = p, .epoll = -1 };
	p->ended = (struct gp_watch){ .fd = -1, .fn = ended, .arg = p, .epoll = -1 };
	gp_list_init(&p->all);
	gp_list_init(&p->of_dead);
	gp_list_init(&p->unread);
	gp_list_init(&p->requests);
	*ret = p;
	return 0;
}

int gp_peer_begin(struct gp_peer *p, struct gp_account *account)
{
	int r = gp_turns_add(&account->turns, &p->watch, EPOLLIN);

	p->account = account;
	p->is_counted = true;
	account->now.peers++;
	if (r == 0 && p->process.is_pidfd) {
		p->ended.fd = p->process.fd;
		r = gp_turns_add(&account->turns, &p->ended, EPOLLIN);
	}
	return r;
}

/* Its place is free again. */
static void stop_watching(struct gp_peer *p)
{
	if (p->is_counted)
		p->account->now.peers--;
	p->is_counted = false;
	gp_alarm_cancel(p->loop, &p->patience);
	gp_loop_remove(p->loop, &p->watch);
	gp_loop_remove(p->loop, &p->ended);
}

static void forget_packet(struct gp_peer *p, struct packet *packet)
{
	p->unread_bytes -= packet->size;
	p->account->now.unread -= packet->size;
	gp_list_remove(&packet->list);
	free(packet);
}

bool gp_peer_may_free(struct gp_peer *p)
{
	if (p->is_ours || !gp_keeps_descriptors(p->watch.fd))
		return true;
	if (gp_close_elsewhere(p->watch.fd)) {
		p->watch.fd = -1;
		return true;
	}
	if (p->account && !p->is_counted)
		p->account->now.peers++; /* it has its place until then */
	p->is_counted = p->account != NULL;
	return false;
}

void gp_peer_free(struct gp_peer *p)
{
	gp_list_each_safe(pos, &p->unread)
		forget_packet(p, gp_container(pos, struct packet, list));
	stop_watching(p);
	gp_alarm_free(p->loop, &p->patience);
	gp_list_remove(&p->all);
	gp_list_remove(&p->of_dead);
	gp_map_free(&p->queues);
	gp_process_close(&p->process);
	if (p->watch.fd >= 0)
		close(p->watch.fd);
	free(p);
}

static bool in_group(int fd, int64_t group)
{
	gid_t groups[MOST_GROUPS];
	socklen_t size = sizeof(groups);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		return false;
	for (size_t i = 0; i < size / sizeof(groups[0]); i++)
		if (groups[i] == group)
			return true;
	return false;
}

/*
 * A group counts where it was given by our own administrator: root in a container may take
 * any.  A user's own daemon is that user's alone: who may speak to it may do what it can do,
 * and it cannot look at other users' namespaces.
 */
static bool has_rights(const struct gp_peer *p, const struct ucred *cred, int64_t group)
{
	struct gp_identity id = p->identity;

	if (geteuid() != 0) {
		id.user_ns = gp_process_self()->user_ns;
		return cred->uid == geteuid() || (cred->uid == 0 && gp_identity_is_root(&id));
	}
	if (cred->uid == 0 && gp_identity_is_root(&id))
		return true;
	return group >= 0 && gp_identity_is_local(&id) &&
	       (cred->gid == group || in_group(p->watch.fd, group));
}

int gp_peer_identify(struct gp_peer *p, int64_t group)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);
	int r;

	if (getsockopt(p->watch.fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return -errno;
	p->pid = (uint32_t)cred.pid;
	p->uid = cred.uid;
	if (!cred.pid)
		return -ESRCH; /* in a pid namespace that is not below ours */
	r = gp_process_of_peer(p->watch.fd, p->pid, &p->process);
	if (r == 0)
		r = gp_process_identify(&p->process, &p->identity);
	if (r < 0)
		return r;
	p->identity.uid = cred.uid; /* as it was when it connected */
	if (has_rights(p, &cred, group))
		p->rights = GP_RIGHT_OTHERS;
	return 0;
}

void gp_peer_expect_hello(struct gp_peer *p, uint64_t ns)
{
	gp_alarm_in(p->loop, &p->patience, ns);
}

bool gp_peer_has_input(const struct gp_peer *p)
{
	char byte;

	return recv(p->watch.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
}

void gp_peer_drop(struct gp_peer *p, const char *why)
{
	if (p->dead)
		return;
	p->dead = 1;
	if (why && p->account)
		gp_account_log(p->account, p->loop->now_ns, GP_ABOUT_PROCESS(p->pid),
			       "process %u (user %u) is dropped: %s", p->pid, p->uid, why);
	stop_watching(p);
	p->calls->dead(p->arg, p);
}

/* Who closes on what was not read resets the connection, and the peer may never read what it was told. */
void gp_peer_refuse(struct gp_peer *p, uint32_t serial, int status, const char *why)
{
	char byte;

	(void)gp_peer_error(p, serial, status, why);
	for (int i = 0; i < LAST_WORDS && gp_brings_descriptors(p->watch.fd) <= 0; i++)
		if (recv(p->watch.fd, &byte, 1, MSG_DONTWAIT) <= 0)
			break;
	gp_peer_drop(p, why);
}

static void not_a_message(struct gp_peer *p, int r)
{
	gp_peer_refuse(p, 0, r,
		       r == -EPROTO ? "this gpreemptd speaks version 1 of the protocol" : "not a message");
}

/* A packet, and who sent it. */
static ssize_t receive_packet(struct gp_peer *p, void *packet, size_t size, struct ucred *ret)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec room = { packet, size };
	struct msghdr msg = {
		.msg_iov = &room, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	const struct cmsghdr *c;
	ssize_t n = recvmsg(p->watch.fd, &msg, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);

	*ret = (struct ucred){ .pid = 0, .uid = UINT32_MAX };
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
		memcpy(ret, CMSG_DATA(c), sizeof(*ret));
	return n;
}

/*
 * What was connected by one process is spoken for by that one alone, under the name it had at
 * first: a child that kept the descriptor, or a program that became somebody else, connects
 * anew.
 */
static bool is_its_own(struct gp_peer *p, const struct ucred *sender)
{
	if (p->is_ours)
		return true;
	if (!p->has_spoken)
		p->speaks_as = sender->uid;
	p->has_spoken = true;
	return (uint32_t)sender->pid == p->pid && sender->uid == p->speaks_as;
}

static void take_packet(struct gp_peer *p, const void *packet, size_t size)
{
	static struct gp_msg msg; /* large, and one is read at a time */
	int r = size > GP_WIRE_MOST_BYTES ? -EBADMSG : gp_wire_decode(packet, size, &msg);

	if (r == 0)
		p->calls->message(p->arg, p, &msg);
	else if (r != -ENOMSG) /* of a newer peer: nothing we would do anything with */
		not_a_message(p, r);
}

/* 0: there is no more now. */
static int receive_one(struct gp_peer *p)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	int brings = p->takes_descriptors ? gp_brings_descriptors(p->watch.fd) : 0;
	struct ucred sender;
	ssize_t n;

	if (brings == -EAGAIN)
		return 0;
	if (brings > 0) {
		gp_peer_drop(p, "it sends descriptors");
		return 0;
	}
	n = receive_packet(p, packet, sizeof(packet), &sender);
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0) {
		gp_peer_drop(p, NULL);
		return 0;
	}
	if (is_its_own(p, &sender))
		take_packet(p, packet, (size_t)n);
	else
		gp_peer_refuse(p, 0, -EPERM, "another process or user spoke for it: connect anew");
	return 1;
}

/*
 * Hints and answers come one at a time: to ask for the next is a system call for nothing.  What
 * comes in a crowd is worth one turn.
 */
static void receive(struct gp_peer *p)
{
	uint64_t end = p->loop->now_ns + TURN_NS;
	bool looks = p->alone < ALONE || p->alone % LOOK_AGAIN == 0;

	p->alone++;
	for (int i = 0; i < AT_ONCE && !p->dead && receive_one(p); i++) {
		p->alone = i ? 0 : p->alone;
		if (!looks || gp_clock_ns() >= end)
			return;
	}
}

/* What it said before counts. */
static void ended(void *arg, uint32_t events)
{
	struct gp_peer *p = arg;

	(void)events;
	for (int i = 0; i < LAST_WORDS && !p->dead; i++)
		if (!receive_one(p))
			break;
	gp_peer_drop(p, NULL);
}

void gp_peer_look(struct gp_peer *p)
{
	if (!p->dead && !p->is_ours && !gp_process_lives(&p->process))
		ended(p, 0);
}

/* 1: it went; 0: not now; -errno */
static int send_packet(struct gp_peer *p, const void *bytes, size_t size)
{
	if (send(p->watch.fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 1;
	return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -errno;
}

/* It has closed; what it said before that is still to be read, and then the end of it. */
static void hears_no_more(struct gp_peer *p)
{
	p->deaf = 1;
	gp_alarm_in(p->loop, &p->patience, GP_S);
	(void)gp_loop_change(p->loop, &p->watch, EPOLLIN);
}

static void send_unread(struct gp_peer *p)
{
	while (!p->dead && !gp_list_empty(&p->unread)) {
		struct packet *packet = gp_container(p->unread.next, struct packet, list);
		int r = send_packet(p, packet->bytes, packet->size);

		if (r < 0)
			hears_no_more(p);
		if (r <= 0)
			return;
		forget_packet(p, packet);
		gp_alarm_in(p->loop, &p->patience, p->patience_ns);
	}
	if (p->dead)
		return;
	p->wants_more = false;
	gp_alarm_cancel(p->loop, &p->patience);
	(void)gp_loop_change(p->loop, &p->watch, EPOLLIN);
	p->calls->read_all(p->arg, p);
}

static int keep(struct gp_peer *p, const void *bytes, size_t size)
{
	struct gp_account *a = p->account;
	bool fits = a && p->unread_bytes + size <= GP_MOST_UNREAD && a->now.unread + size <= a->most->unread;
	struct packet *packet = fits ? malloc(sizeof(*packet) + size) : NULL;
	int first = gp_list_empty(&p->unread);

	if (!packet) {
		gp_peer_drop(p, "it does not read what is sent to it");
		return -EPIPE;
	}
	packet->size = size;
	memcpy(packet->bytes, bytes, size);
	gp_list_append(&p->unread, &packet->list);
	p->unread_bytes += size;
	a->now.unread += size;
	if (first) {
		gp_alarm_in(p->loop, &p->patience, p->patience_ns);
		(void)gp_loop_change(p->loop, &p->watch, EPOLLIN | EPOLLOUT);
	}
	return 0;
}

int gp_peer_send(struct gp_peer *p, const struct gp_msg *msg)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	int n, r = 0;

	if (p->dead || p->deaf)
		return -EPIPE;
	n = gp_wire_encode(msg, p->features, packet, sizeof(packet));
	if (n < 0)
		return n;
	if (gp_list_empty(&p->unread))
		r = send_packet(p, packet, (size_t)n);
	if (r < 0) {
		hears_no_more(p);
		return -EPIPE;
	}
	return r ? 0 : keep(p, packet, (size_t)n);
}

bool gp_peer_has_unread(const struct gp_peer *p)
{
	return !gp_list_empty(&p->unread);
}

void gp_peer_more_later(struct gp_peer *p)
{
	if (p->dead || p->deaf)
		return;
	p->wants_more = true;
	gp_alarm_in(p->loop, &p->patience, p->patience_ns);
	(void)gp_loop_change(p->loop, &p->watch, EPOLLIN | EPOLLOUT);
}

int gp_peer_error(struct gp_peer *p, uint32_t serial, int status, const char *text)
{
	static struct gp_msg msg;

	msg.type = GP_MSG_ERROR;
	msg.serial = serial;
	msg.error.status = status;
	snprintf(msg.error.text, sizeof(msg.error.text), "%s", text);
	return gp_peer_send(p, &msg);
}
