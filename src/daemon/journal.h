/* SPDX-License-Identifier: MIT */
/*
 * systemd's journal, by its own protocol: https://systemd.io/JOURNAL_NATIVE_PROTOCOL.  libsystemd would do
 * the same for one more library in the daemon, which not all systems that it runs on have.
 */
#ifndef GP_DAEMON_JOURNAL_H
#define GP_DAEMON_JOURNAL_H

#include "daemon/log.h"

#define GP_JOURNAL_SOCKET "run/systemd/journal/socket"

/* Of syslog(3). */
enum gp_priority { GP_PRIORITY_ERROR = 3, GP_PRIORITY_WARNING = 4, GP_PRIORITY_INFO = 6 };

/* stderr is a stream to it, by the word of whoever started us (JOURNAL_STREAM, systemd.exec(5)). */
bool gp_journal_is_stderr(void);
/* One entry; message is text. -errno: it did not take it, and nothing waits for that. */
int gp_journal_send(const char *path, enum gp_priority priority, const char *message,
		    const struct gp_about *about);

#endif
