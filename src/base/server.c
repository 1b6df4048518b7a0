// SPDX-License-Identifier: MIT
#include "base/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define USUAL_OVERFLOW_UID 65534u
#define ALL_USERS 4294967295u

/* Where /proc is not there to ask it may be one. */
static int is_user_namespace(void)
{
	unsigned int inside, outside, count;
	char text[64];

	return sscanf(gp_file_text("/proc/self/uid_map", text, sizeof(text)), "%u %u %u", &inside, &outside,
		      &count) != 3 ||
	       inside || outside || count != ALL_USERS;
}

static uint32_t overflow_uid(void)
{
	unsigned int uid;
	char text[16];

	return sscanf(gp_file_text("/proc/sys/kernel/overflowuid", text, sizeof(text)), "%u", &uid) == 1
		       ? uid
		       : USUAL_OVERFLOW_UID;
}

int gp_server_folder_owner(const char *path, uint32_t *ret_uid)
{
	const char *slash = strrchr(path, '/');
	char folder[128] = ".";
	struct statx s;

	if (slash &&
	    snprintf(folder, sizeof(folder), "%.*s/", (int)(slash - path), path) >= (int)sizeof(folder))
		return -ENAMETOOLONG;
	if (statx(AT_FDCWD, folder, 0, STATX_UID, &s) < 0)
		return -errno;
	*ret_uid = s.stx_uid;
	return 0;
}

static int is_trusted(uint32_t uid, const char *path, const char *roots_path)
{
	if (uid == 0 || uid == geteuid())
		return 1;
	return !strcmp(path, roots_path) && is_user_namespace() && uid == overflow_uid();
}

/*
 * The kernel noted the server's user when it began to listen, so nothing that is moved about now
 * changes that answer; the folder's owner is asked for besides, against a listening socket that
 * was handed on to somebody else.
 */
int gp_server_check(int fd, const char *path, const char *roots_path, uint32_t *ret_uid)
{
	struct ucred server;
	socklen_t size = sizeof(server);
	uint32_t owner = 0;
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size) < 0)
		return -errno;
	r = gp_server_folder_owner(path, &owner);
	if (r < 0)
		return r;
	if (is_trusted(server.uid, path, roots_path) && owner == server.uid)
		return 0;
	*ret_uid = server.uid;
	return -EKEYREJECTED;
}
