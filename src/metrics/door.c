// SPDX-License-Identifier: MIT
#include "metrics/door.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOPBACK "127.0.0.1"

__attribute__((format(printf, 3, 4))) static int fail(struct gp_door *d, int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(d->name, sizeof(d->name), format, args);
	va_end(args);
	return r;
}

/* Without a host it is this machine's own. */
static int split(struct gp_door *d, const char *address, char host[256], char port[16])
{
	const char *colon = strrchr(address, ':');
	const char *from = address;
	size_t len = colon ? (size_t)(colon - address) : 0;

	if (len >= 2 && address[0] == '[' && address[len - 1] == ']') {
		from++;
		len -= 2;
	} else if (memchr(address, ':', len)) {
		len = 256; /* an IPv6 address must be in brackets: else where does it end? */
	}
	if (len >= 256 || snprintf(port, 16, "%s", colon ? colon + 1 : address) >= 16 || !*port ||
	    strspn(port, "0123456789") != strlen(port) || strtoul(port, NULL, 10) > 65535)
		return fail(d, -EINVAL,
			    "\"%s\" is no address; write it as 127.0.0.1:9847, [::1]:9847, or the port alone",
			    address);
	snprintf(host, 256, "%.*s", len ? (int)len : (int)sizeof(LOOPBACK), len ? from : LOOPBACK);
	return 0;
}

static int bind_to(const struct addrinfo *a)
{
	const int on = 1;
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol), r;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

/* With the port that it got, if any would do. */
static void name_door(struct gp_door *d)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	char host[128] = "?", port[16] = "?";

	if (getsockname(d->fd, (struct sockaddr *)&at, &len) == 0)
		(void)getnameinfo((struct sockaddr *)&at, len, host, sizeof(host), port, sizeof(port),
				  NI_NUMERICHOST | NI_NUMERICSERV);
	(void)snprintf(d->name, sizeof(d->name),
		       strchr(host, ':') ? "http://[%s]:%s/metrics" : "http://%s:%s/metrics", host, port);
}

int gp_door_listen(struct gp_door *d, const char *address)
{
	const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM,
					 .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	struct addrinfo *found;
	char host[256], port[16];
	int r = split(d, address, host, port);

	d->path[0] = '\0';
	if (r < 0)
		return r;
	r = getaddrinfo(host, port, &wanted, &found);
	if (r != 0)
		return fail(d, -EINVAL, "%s: %s", address, gai_strerror(r));
	d->fd = -EADDRNOTAVAIL;
	for (const struct addrinfo *a = found; a && d->fd < 0; a = a->ai_next)
		d->fd = bind_to(a);
	freeaddrinfo(found);
	if (d->fd < 0)
		return fail(d, d->fd, "cannot listen on %s: %s; choose another by --listen", address,
			    strerror(-d->fd));
	name_door(d);
	return 0;
}

/* The socket of one that ended without a word. One that is busy is there: it is not waited for. */
static int is_left_behind(const struct sockaddr_un *at)
{
	struct stat s;
	int fd, is_dead;

	if (lstat(at->sun_path, &s) < 0 || !S_ISSOCK(s.st_mode))
		return 0;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return 0;
	is_dead = connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 && errno == ECONNREFUSED;
	close(fd);
	return is_dead;
}

/* For everybody who can enter its folder, as gpreemptd's own: a proxy is another user.  By the umask, for
 * what has that name a moment later may be somebody's link. */
static int bind_for_all(const struct addrinfo *a)
{
	const mode_t was = umask(0111);
	int fd = bind_to(a);

	(void)umask(was);
	return fd;
}

int gp_door_unix(struct gp_door *d, const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const struct addrinfo wanted = { .ai_family = AF_UNIX,
					 .ai_socktype = SOCK_STREAM,
					 .ai_addr = (struct sockaddr *)&at,
					 .ai_addrlen = sizeof(at) };

	d->path[0] = '\0';
	if (strlen(path) >= sizeof(at.sun_path))
		return fail(d, -ENAMETOOLONG, "%s: a socket's path has at most %zu characters", path,
			    sizeof(at.sun_path) - 1);
	strcpy(at.sun_path, path);
	d->fd = bind_for_all(&wanted);
	if (d->fd == -EADDRINUSE && is_left_behind(&at) && unlink(path) == 0)
		d->fd = bind_for_all(&wanted);
	if (d->fd < 0)
		return fail(d, d->fd, "cannot listen on %s: %s; choose another by --unix", path,
			    d->fd == -EADDRINUSE ? "something else is there" : strerror(-d->fd));
	if (lstat(path, &d->made) == 0)
		strcpy(d->path, path);
	(void)snprintf(d->name, sizeof(d->name), "%s, path /metrics", path);
	return 0;
}

void gp_door_remove(const struct gp_door *d)
{
	struct stat s;

	if (d->path[0] && lstat(d->path, &s) == 0 && s.st_dev == d->made.st_dev && s.st_ino == d->made.st_ino)
		(void)unlink(d->path);
}
