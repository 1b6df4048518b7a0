/* SPDX-License-Identifier: MIT */
/* Where Prometheus comes to. */
#ifndef GP_METRICS_DOOR_H
#define GP_METRICS_DOOR_H

#include <limits.h>
#include <stddef.h>
#include <sys/stat.h>

struct gp_door {
	int fd;
	char name[320];   /* of it, to be shown; or what is wrong */
	char path[108];   /* of a unix socket, to be removed; empty: there is none */
	struct stat made; /* it: another's may be there by then */
};

/* "HOST:PORT", "[IPV6]:PORT" or "PORT"; -EINVAL: it is no address; -errno. name says what. */
int gp_door_listen(struct gp_door *d, const char *address);
/* One that nobody listens on is replaced. */
int gp_door_unix(struct gp_door *d, const char *path);
void gp_door_remove(const struct gp_door *d);

#endif
