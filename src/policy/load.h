/* SPDX-License-Identifier: MIT */
/*
 * Policies from shared objects, whose code then runs in this process, as this user.  For programs that
 * export what a policy calls (policy.list), not for the library: it is a guest itself.
 */
#ifndef GP_POLICY_LOAD_H
#define GP_POLICY_LOAD_H

#include <gpreempt/policy.h>

/* The gp_policy of the file, which stays loaded. On an error, text says what is wrong and what to do. */
int gp_policy_load(const char *path, const struct gp_policy_ops **ret, char *text, size_t size);

#endif
