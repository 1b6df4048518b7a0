/* SPDX-License-Identifier: MIT */
#ifndef GP_DAEMON_SUBUID_H
#define GP_DAEMON_SUBUID_H

#include <stdint.h>

/* Whose a uid is that was lent by /etc/subuid below root; any other is its own. */
uint32_t gp_subuid_owner(const char *root, uint32_t uid);

#endif
