// SPDX-License-Identifier: MIT
#include "daemon/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/log.h"

#define AT_ONCE 32 /* messages, before others have their turn */
#define MOST_GROUPS 1024

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* Linux 4.13 */
#endif

struct packet {
	struct gp_list list;
	size_t size;
	unsigned char bytes[];
};

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

/* If we were the slow one, it may have done its part meanwhile. */
static void out_of_patience(void *arg)
{
	struct gp_peer *p = arg;
	size_t unread = p->unread_bytes;

	if (!p->role)
		receive(p);
	else if (!p->deaf)
		send_unread(p);
	if (p->dead)
		return;
	if (p->deaf)
		gp_peer_drop(p, NULL);
	else if (!p->role)
		gp_peer_drop(p, "it did not say HELLO");
	else if (unread && p->unread_bytes == unread)
		gp_peer_drop(p, "it does not read what is sent to it");
}

int gp_peer_new(struct gp_loop *loop, int fd, uint64_t id, uint64_t patience_ns,
		const struct gp_peer_calls *calls, void *arg, struct gp_peer **ret)
{
	struct gp_peer *p = calloc(1, sizeof(*p));
	int r;

	if (!p) {
		close(fd);
		return -ENOMEM;
	}
	p->loop = loop;
	p->id = id;
	p->patience_ns = patience_ns;
	p->calls = calls;
	p->arg = arg;
	p->watch = (struct gp_watch){ .fd = fd, .fn = ready, .arg = p };
	gp_list_init(&p->all);
	gp_list_init(&p->unread);
	r = gp_alarm_init(loop, &p->patience, out_of_patience, p);
	if (r == 0)
		r = gp_loop_add(loop, &p->watch, EPOLLIN);
	if (r < 0) {
		gp_peer_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void gp_peer_free(struct gp_peer *p)
{
	gp_list_each_safe(pos, &p->unread)
		free(gp_container(pos, struct packet, list));
	gp_alarm_free(p->loop, &p->patience);
	gp_loop_remove(p->loop, &p->watch);
	gp_list_remove(&p->all);
	gp_map_free(&p->queues);
	close(p->watch.fd);
	free(p);
}

static int in_group(int fd, int64_t group)
{
	gid_t groups[MOST_GROUPS];
	socklen_t size = sizeof(groups);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		return 0;
	for (size_t i = 0; i < size / sizeof(groups[0]); i++)
		if (groups[i] == group)
			return 1;
	return 0;
}

int gp_peer_identify(struct gp_peer *p, int64_t group)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	if (getsockopt(p->watch.fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return -errno;
	p->pid = (uint32_t)cred.pid;
	p->uid = cred.uid;
	/* A user's own daemon is that user's alone: who may speak to it may do what it can do. */
	if (cred.uid == 0 || (geteuid() != 0 && cred.uid == geteuid()))
		p->rights = GP_RIGHT_OTHERS;
	else if (group >= 0 && (cred.gid == group || in_group(p->watch.fd, group)))
		p->rights = GP_RIGHT_OTHERS;
	return 0;
}

void gp_peer_expect_hello(struct gp_peer *p, uint64_t ns)
{
	gp_alarm_in(p->loop, &p->patience, ns);
}

void gp_peer_drop(struct gp_peer *p, const char *why)
{
	if (p->dead)
		return;
	p->dead = 1;
	if (why)
		gp_log("process %u (user %u) is dropped: %s", p->pid, p->uid, why);
	gp_alarm_cancel(p->loop, &p->patience);
	gp_loop_remove(p->loop, &p->watch);
	p->calls->dead(p->arg);
}

static void not_a_message(struct gp_peer *p, int r)
{
	gp_peer_error(p, 0, r,
		      r == -EPROTO ? "this gpreemptd speaks version 1 of the protocol" : "not a message");
	gp_peer_drop(p, r == -EPROTO ? "it speaks another version of the protocol"
				     : "it sent what is not a message");
}

/* 0: there is no more now. */
static int receive_one(struct gp_peer *p)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	static struct gp_msg msg; /* large, and one is read at a time */
	ssize_t n = recv(p->watch.fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		gp_peer_drop(p, NULL);
		return 0;
	}
	r = (size_t)n > sizeof(packet) ? -EBADMSG : gp_wire_decode(packet, (size_t)n, &msg);
	if (r == 0)
		p->calls->message(p->arg, p, &msg);
	else if (r != -ENOMSG) /* of a newer peer: nothing we would do anything with */
		not_a_message(p, r);
	return 1;
}

static void receive(struct gp_peer *p)
{
	for (int i = 0; i < AT_ONCE && !p->dead; i++)
		if (!receive_one(p))
			return;
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
		p->unread_bytes -= packet->size;
		gp_list_remove(&packet->list);
		free(packet);
		gp_alarm_in(p->loop, &p->patience, p->patience_ns);
	}
	if (p->dead)
		return;
	gp_alarm_cancel(p->loop, &p->patience);
	(void)gp_loop_change(p->loop, &p->watch, EPOLLIN);
	p->calls->read_all(p->arg, p);
}

static int keep(struct gp_peer *p, const void *bytes, size_t size)
{
	struct packet *packet;
	int first = gp_list_empty(&p->unread);

	packet = p->unread_bytes + size > GP_MOST_UNREAD ? NULL : malloc(sizeof(*packet) + size);
	if (!packet) {
		gp_peer_drop(p, "it does not read what is sent to it");
		return -EPIPE;
	}
	packet->size = size;
	memcpy(packet->bytes, bytes, size);
	gp_list_append(&p->unread, &packet->list);
	p->unread_bytes += size;
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
	n = gp_wire_encode(msg, packet, sizeof(packet));
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

int gp_peer_has_unread(const struct gp_peer *p)
{
	return !gp_list_empty(&p->unread);
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
