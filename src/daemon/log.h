/* SPDX-License-Identifier: MIT */
/* One line on stderr for each event that somebody may want to know of, never for each request. */
#ifndef GP_DAEMON_LOG_H
#define GP_DAEMON_LOG_H

__attribute__((format(printf, 1, 2))) void gp_log(const char *fmt, ...);
/* The same, and 1 to be the exit status. */
__attribute__((format(printf, 1, 2))) int gp_die(const char *fmt, ...);

#endif
