// SPDX-License-Identifier: MIT
#include "lib/link.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/server.h"
#include "wire/environment.h"

#define MS 1000000ull
#define SECOND 1000000000ull
#define PATIENCE (5 * SECOND)
#define PATIENCE_S 5

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* Signals do not make it shorter. */
static int wait_for(int fd, short events, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = events };
	uint64_t now;
	int n;

	do {
		now = now_ns();
		if (now >= deadline)
			return -ETIMEDOUT;
		n = poll(&p, 1, (int)((deadline - now) / MS) + 1);
	} while (n == 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : 0;
}

static int send_packet(struct gp_link *link, size_t size, uint64_t deadline)
{
	int r;

	for (;;) {
		if (send(link->fd, link->packet, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return errno == EPIPE ? -ECONNRESET : -errno;
		r = wait_for(link->fd, POLLOUT, deadline);
		if (r < 0)
			return r;
	}
}

/* The bytes of the next packet. */
static int receive_packet(struct gp_link *link, uint64_t deadline)
{
	ssize_t n;
	int r;

	for (;;) {
		n = recv(link->fd, link->packet, sizeof(link->packet), MSG_DONTWAIT | MSG_TRUNC);
		if (n == 0)
			return -ECONNRESET;
		if (n > (ssize_t)sizeof(link->packet))
			return -EBADMSG;
		if (n > 0)
			return (int)n;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = wait_for(link->fd, POLLIN, deadline);
		if (r < 0)
			return r;
	}
}

void gp_link_begin(struct gp_link *link, uint32_t type)
{
	memset(&link->msg, 0, offsetof(struct gp_msg, item));
	link->msg.type = type;
}

int gp_link_ask(struct gp_link *link)
{
	int n;

	link->msg.serial = ++link->serial;
	n = gp_wire_encode(&link->msg, link->features, link->packet, sizeof(link->packet));
	return n < 0 ? n : send_packet(link, (size_t)n, now_ns() + link->patience_ns);
}

/* What gpreemptd says of itself, and what this version does not know, is not meant for the one who asks. */
static int answers(const struct gp_link *link)
{
	if (link->msg.type == GP_MSG_PING)
		return 0;
	return link->msg.serial == link->serial || (link->msg.type == GP_MSG_ERROR && !link->msg.serial);
}

int gp_link_answer(struct gp_link *link, uint64_t timeout_ns)
{
	uint64_t deadline = now_ns() + timeout_ns;
	int n, r;

	do {
		n = receive_packet(link, deadline);
		if (n < 0)
			return n;
		r = gp_wire_decode(link->packet, (size_t)n, &link->msg);
		if (r < 0 && r != -ENOMSG)
			return r;
		if (r == 0 && link->msg.type == GP_MSG_ERROR && link->msg.serial == GP_LINK_HINT)
			link->about_hint = link->msg.error;
	} while (r == -ENOMSG || !answers(link));
	return 0;
}

int gp_link_connect(const char *path, int waits, int *ret_fd, char *refusal, size_t size)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE_S };
	uint32_t uid;
	int fd, r;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK), 0);
	if (fd < 0)
		return -errno;
	/* A listener that does not accept makes connect() wait, this long at most. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		r = errno == EAGAIN && waits ? -ETIMEDOUT : -errno;
	else
		r = gp_server_check(fd, path, GP_WIRE_SOCKET, &uid);
	if (r == -EKEYREJECTED)
		(void)snprintf(refusal, size,
			       uid == 0 || uid == geteuid()
				       ? "its folder is another user's than user %" PRIu32 ", who runs it"
				       : "user %" PRIu32 " runs it, who is neither root nor you",
			       uid);
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

static int refused(const struct gp_msg_error *e, char *refusal, size_t size)
{
	(void)snprintf(refusal, size, "%s", e->text[0] ? e->text : gp_strerror(e->status));
	return e->status;
}

/* Who refuses us says why and hangs up, perhaps before it has read a word: then we hear of that first. */
static int say_hello(struct gp_link *link)
{
	int r = gp_link_ask(link);

	if (r < 0 && r != -ECONNRESET)
		return r;
	r = gp_link_answer(link, link->patience_ns);
	return r == -ECONNRESET ? gp_link_answer(link, link->patience_ns) : r;
}

void gp_link_hello(struct gp_msg *ret)
{
	struct gp_claim who;

	memset(ret, 0, offsetof(struct gp_msg, item));
	ret->type = GP_MSG_HELLO;
	ret->hello.role = GP_ROLE_CONTROL;
	ret->hello.pid = (uint32_t)getpid();
	ret->hello.features = GP_FEATURES;
	(void)snprintf(ret->hello.name, sizeof(ret->hello.name), "%s", program_invocation_short_name);
	gp_environment_claim(secure_getenv, &who);
	gp_claim_put(&ret->hello, &who);
}

static int introduce(struct gp_link *link, char *refusal, size_t size)
{
	int r;

	gp_link_hello(&link->msg);
	r = say_hello(link);
	if (r < 0)
		return r;
	if (link->msg.type == GP_MSG_ERROR)
		return refused(&link->msg.error, refusal, size);
	if (link->msg.type != GP_MSG_WELCOME)
		return -EBADMSG;
	link->rights = link->msg.welcome.rights;
	link->features = link->msg.welcome.features;
	return 0;
}

int gp_link_open(const char *path, struct gp_link **ret, char *refusal, size_t size)
{
	struct gp_link *link = calloc(1, sizeof(*link));
	int r;

	refusal[0] = '\0';
	if (!link)
		return -ENOMEM;
	link->patience_ns = PATIENCE;
	r = gp_link_connect(path, 1, &link->fd, refusal, size);
	if (r < 0) {
		free(link);
		return r;
	}
	r = introduce(link, refusal, size);
	if (r < 0) {
		gp_link_close(link);
		return r;
	}
	*ret = link;
	return 0;
}

void gp_link_close(struct gp_link *link)
{
	if (!link)
		return;
	close(link->fd);
	free(link);
}
