/* SPDX-License-Identifier: MIT */
/*
 * Hints on their way to gpreemptd.  Nothing is waited for, and any thread may give one at any
 * time.  They go over the context's connection as long as that lasts, and then over one of
 * their own, made anew whenever gpreemptd is.
 */
#ifndef GP_LIB_HINTS_H
#define GP_LIB_HINTS_H

#include "wire/wire.h"

struct gp_hints;

/* places: where gpreemptd may be, in the order tried; at most two. */
int gp_hints_new(const char *const *places, size_t n, struct gp_hints **ret);
/* Takes no lock: in a child after fork() another thread of the parent may have it. */
void gp_hints_free(struct gp_hints *hints);
/*
 * A welcomed connection that stays its owner's; -1: no longer. When it returns the old one is not in use. The
 * first hint of this process over it is answered, under GP_LINK_HINT.
 */
void gp_hints_lend(struct gp_hints *hints, int fd);
/*
 * -EAGAIN: no room in the socket, or gpreemptd is being greeted; -ENODEV: there is none now, or it does not
 * serve us.  The hint is lost then; a later one may not be.
 */
int gp_hints_send(struct gp_hints *hints, const struct gp_msg_hint *hint);

#endif
