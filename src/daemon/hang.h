/* SPDX-License-Identifier: MIT */
/*
 * A policy that never returns keeps the whole of gpreemptd from its work.  A timer of the
 * loop's own CPU time ends it then: agents resume everything, and the next gpreemptd finds a
 * mark and begins with fifo.  One that waits, is stopped or gets no CPU is not meant.
 */
#ifndef GP_DAEMON_HANG_H
#define GP_DAEMON_HANG_H

#include <stdbool.h>
#include <stdint.h>

/* From the loop's thread. socket: beside which the mark is left. Whether the last gpreemptd there was ended
 * so; the mark is gone then. */
bool gp_hang_watch(const char *socket);
void gp_hang_alive(uint64_t now_ns); /* in each step of the loop */

#endif
