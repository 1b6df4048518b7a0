/* SPDX-License-Identifier: MIT */
#ifndef GP_DAEMON_SUBUID_H
#define GP_DAEMON_SUBUID_H

#include <stdint.h>

/*
 * Whose a uid is that was lent by /etc/subuid below root; any other is its own.  Names are looked up
 * in /etc/passwd there: to ask a name service may take longer than agents wait.  An owner who is not
 * in it has no uid here, and a number above all of those instead.
 */
uint64_t gp_subuid_owner(const char *root, uint32_t uid);

#endif
