/* SPDX-License-Identifier: MIT */
/*
 * The backend ops over the wire, to agents and proxies.  apply() sends each of them what it
 * is to do and does not wait; complete() tells what they have done.
 */
#ifndef GP_DAEMON_REMOTE_H
#define GP_DAEMON_REMOTE_H

#include <gpreempt/backend.h>

struct gp_msg;
struct gp_peer;

extern const struct gp_backend_ops gp_remote_ops; /* opts.params: struct gp_manager */

/* DONE came. */
void gp_remote_done(struct gp_backend *be, struct gp_peer *p, const struct gp_msg *msg);

#endif
