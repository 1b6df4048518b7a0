/* SPDX-License-Identifier: MIT */
/* What the next gpreemptd is to know, in files beside our socket: SOCKET.NAME. */
#ifndef GP_DAEMON_KEPT_H
#define GP_DAEMON_KEPT_H

#include <stddef.h>

#include "daemon/conf.h"

/* A new one in its place: a reader has the old or the new; or none, where an old one would be wrong. */
void gp_kept_write(const struct gp_conf *conf, const char *name, const char *text, size_t size);
/* What we wrote, or another gpreemptd of our user, with a zero byte behind it; empty: nothing. */
void gp_kept_read(const struct gp_conf *conf, const char *name, char *text, size_t size);

#endif
