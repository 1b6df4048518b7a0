// SPDX-License-Identifier: MIT
#include "agent/held.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int identify(int fd, uint64_t *ret_device, uint64_t *ret_inode)
{
	struct statx s;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_INO, &s) < 0)
		return -1;
	*ret_device = (uint64_t)s.stx_dev_major << 32 | s.stx_dev_minor;
	*ret_inode = s.stx_ino;
	return 0;
}

/* Not close(): that is a point at which the application's thread can be cancelled. */
static void shut(int fd)
{
	(void)syscall(SYS_close, fd);
}

struct gp_held gp_held_take(int fd)
{
	/* Most processes may have 1024. */
	static const int places[] = { 1000, 500, 200 };
	struct gp_held held = GP_HELD_NONE;
	int high = -1;

	if (fd < 0)
		return held;
	for (size_t i = 0; high < 0 && i < sizeof(places) / sizeof(places[0]); i++)
		high = fcntl(fd, F_DUPFD_CLOEXEC, places[i]);
	if (high >= 0)
		shut(fd);
	held.fd = high >= 0 ? high : fd;
	if (identify(held.fd, &held.device, &held.inode) < 0) {
		if (errno != EBADF) /* else the program closed it, and the number may be its own by now */
			shut(held.fd);
		held.fd = -1;
	}
	return held;
}

int gp_held_is_ours(const struct gp_held *held)
{
	uint64_t device, inode;

	return identify(held->fd, &device, &inode) == 0 && device == held->device && inode == held->inode;
}

void gp_held_drop(struct gp_held *held)
{
	if (gp_held_is_ours(held))
		shut(held->fd);
	held->fd = -1;
}
