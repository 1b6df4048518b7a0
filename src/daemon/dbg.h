/* SPDX-License-Identifier: MIT */
/*
 * gpreemptd --dbg PID --fd N: a process that debugs one other, and speaks to gpreemptd over
 * a socket like an agent of that one.
 *
 * It is a process of its own because the driver lets only the thread that traces a process
 * debug it, because a call into the driver may hang, and because the driver undoes what a
 * debugger did when the debugger's memory goes: killing gpreemptd closes the socket, this
 * one lets go of its target and ends, and if it is killed as well, the driver does it.
 */
#ifndef GP_DAEMON_DBG_H
#define GP_DAEMON_DBG_H

#include <stdint.h>

int gp_dbg_main(uint32_t pid, int fd); /* the exit status */

#endif
