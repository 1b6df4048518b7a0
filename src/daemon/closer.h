/* SPDX-License-Identifier: MIT */
/*
 * To close a socket may take as long as whoever sent something over it likes: descriptors can lie in
 * it unread, and the last to close such a one waits for what its owner asked for (SO_LINGER).  So a
 * socket with descriptors in it is closed by a process that has nothing else to do.
 */
#ifndef GP_DAEMON_CLOSER_H
#define GP_DAEMON_CLOSER_H

#include <stdbool.h>
#include <sys/types.h>

/* 1: the next packet brings descriptors; -errno: there is none. Takes nothing. */
int gp_brings_descriptors(int socket);
/* Nobody says anything over it any more. Whether descriptors are among what was said; what is before them is
 * thrown away. */
bool gp_keeps_descriptors(int socket);
/* Closes it, and a process that has a copy closes that last. false: too many are at it, or there is none to
 * be had. */
bool gp_close_elsewhere(int socket);
void gp_closer_ended(pid_t pid); /* if it was one */

#endif
