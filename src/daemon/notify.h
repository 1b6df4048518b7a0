/* SPDX-License-Identifier: MIT */
/* What systemd and a service of its say to each other: sd_notify(3), sd_listen_fds(3), without its library.
 */
#ifndef GP_DAEMON_NOTIFY_H
#define GP_DAEMON_NOTIFY_H

#include <stdint.h>

void gp_notify(const char *state); /* "READY=1" */
uint64_t gp_notify_watchdog(void); /* how often "WATCHDOG=1" is due, in ns; 0: never */

/*
 * The socket that systemd listens on at this path, for us; -1: none.  Others that came with it are closed to
 * everybody, and named in the log: nobody would be heard there.  Once: the environment tells of them no more.
 */
int gp_notify_socket(const char *path);

#endif
