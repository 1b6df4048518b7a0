/* SPDX-License-Identifier: MIT */
/* Whose word about itself counts: who may be online because it says so. */
#ifndef GP_DISCOVER_TRUST_H
#define GP_DISCOVER_TRUST_H

#include <stddef.h>
#include <stdint.h>

/*
 * By the text of /proc/PID/status.  It does not tell namespaces apart: the caller does.  A line
 * that is cut off says nothing.
 */

/* UINT32_MAX: its four user ids are not the same, or not there. */
uint32_t gp_status_user(const char *text, size_t len);
/* Its pid in its own pid namespace; 0: not there. */
uint32_t gp_status_inner_pid(const char *text, size_t len);
/* CAP_SYS_ADMIN is in effect. */
int gp_status_is_administrator(const char *text, size_t len);
/* By its effective group or a supplementary one; group -1: there is none. */
int gp_status_is_member(const char *text, size_t len, int64_t group);
/* Root with that capability, a member, or the user that the daemon is (0: root's daemon has no other). */
int gp_status_trusted(const char *text, size_t len, int64_t group, uint32_t daemon_uid);
/* The same of a process under this root, in the namespaces of this one as far as they can be seen. One that
 * cannot be read is not trusted. */
int gp_proc_trusted(const char *root, uint32_t pid, int64_t group, uint32_t daemon_uid);

#endif
