/* SPDX-License-Identifier: MIT */
/* GET /metrics over HTTP. */
#ifndef GP_METRICS_SERVE_H
#define GP_METRICS_SERVE_H

#include "metrics/collect.h"

struct gp_serving; /* a thread of its own answers */

/* Takes the listening socket in any case. -errno, -EIO: libmicrohttpd cannot. */
int gp_serve_start(int fd, struct gp_source *source, int per_client, struct gp_serving **ret);
void gp_serve_stop(struct gp_serving *s);

#endif
