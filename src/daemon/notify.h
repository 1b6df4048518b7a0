/* SPDX-License-Identifier: MIT */
/* What systemd wants to hear of a service of Type=notify, if it is one: sd_notify(3), without its library. */
#ifndef GP_DAEMON_NOTIFY_H
#define GP_DAEMON_NOTIFY_H

#include <stdint.h>

void gp_notify(const char *state); /* "READY=1" */
uint64_t gp_notify_watchdog(void); /* how often "WATCHDOG=1" is due, in ns; 0: never */

#endif
