/* SPDX-License-Identifier: MIT */
/* Whose word about itself counts: who may be online because it says so. */
#ifndef GP_DISCOVER_TRUST_H
#define GP_DISCOVER_TRUST_H

#include <stddef.h>
#include <stdint.h>

/*
 * By the text of /proc/PID/status: root, which is user 0 in all four ids with CAP_SYS_ADMIN in effect; a
 * member of the group (-1: there is none), by its effective or a supplementary one; and the user that the
 * daemon is (0: root's daemon has no other).  A line that is cut off says nothing.
 *
 * The text does not tell user namespaces apart: the caller does.
 */
int gp_status_trusted(const char *text, size_t len, int64_t group, uint32_t daemon_uid);
/* The same of a process under this root. One that cannot be read is not trusted. */
int gp_process_trusted(const char *root, uint32_t pid, int64_t group, uint32_t daemon_uid);

#endif
