/* SPDX-License-Identifier: MIT */
/*
 * gpreemptd --dbg PID --uid UID: a process that debugs one other, and speaks to gpreemptd over
 * a socket (descriptor 3) like an agent of that one.  Tracing and debugging take a number, so
 * there is a handle besides (descriptor 4): once the process is traced its number stays its
 * own, and if the handle is alive then, and the process still that user's, it is the right one.
 *
 * It is a process of its own because the driver lets only the thread that traces a process
 * debug it, because a call into the driver may hang, and because the driver undoes what a
 * debugger did when the debugger's memory goes: killing gpreemptd closes the socket, this
 * one lets go of its target and ends, and if it is killed as well, the driver does it.
 */
#ifndef GP_DAEMON_DBG_H
#define GP_DAEMON_DBG_H

#include <stdint.h>

#define GP_DBG_SOCKET 3
#define GP_DBG_PROCESS 4

int gp_dbg_main(uint32_t pid, uint32_t uid); /* the exit status */

#endif
