/* SPDX-License-Identifier: MIT */
/*
 * Who is behind a unix socket.  A server can stop the queues of whoever comes to it, and where
 * it is comes from the environment, which sudo -E brings along from another user.
 */
#ifndef GP_BASE_SERVER_H
#define GP_BASE_SERVER_H

#include <stdint.h>

/*
 * Of a connected socket and the path it was connected to: 0 if the server runs as root or as this
 * process's effective user, and the folder of the socket is that user's.  In a user namespace a
 * user without a number there, as root outside is, shows as the overflow user; that one is taken
 * for root at roots_path alone, where only root can put a socket.
 *
 * -EKEYREJECTED: somebody else, who is in *ret_uid; or another -errno.
 */
int gp_server_check(int fd, const char *path, const char *roots_path, uint32_t *ret_uid);
/* The user whose folder the socket is in. */
int gp_server_folder_owner(const char *path, uint32_t *ret_uid);

#endif
