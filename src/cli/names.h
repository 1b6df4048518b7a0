/* SPDX-License-Identifier: MIT */
/*
 * Names of users and groups.  Not by getpwuid() and its like: they load libraries, which a program that is
 * linked statically must not.  /etc/passwd and /etc/group are read here; of users and groups that are kept
 * elsewhere (sssd, LDAP) the program getent tells, where there is one.
 */
#ifndef GP_CLI_NAMES_H
#define GP_CLI_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define GP_ACCOUNT_NAME 64

/* The name, or the number where there is none. Returns name. */
const char *gp_user_name(uid_t uid, char name[GP_ACCOUNT_NAME]);
/* False: it has none, and name is the number. */
bool gp_group_name(gid_t gid, char name[GP_ACCOUNT_NAME]);
/* False: there is no such group. */
bool gp_group_find(const char *name, gid_t *ret);

#define GP_GROUP "gpreempt"
/* How to become a member of groups that are there. */
#define GP_JOIN(groups) "sudo usermod -aG " groups " $USER, then log in again"
/* How to become a member of gpreempt's group, made first where there is none. */
const char *gp_group_advice(void);

#endif
